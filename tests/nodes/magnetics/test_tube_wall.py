"""The wall of a tube about Stokeslets: spheres and rods on its axis, and a helix that fills it."""

import jax
import numpy as np
import pytest

from mime import HelicalSwimmerNode, InputError, Tube
from mime.nodes.magnetics.resistive_force import Helix
from mime.nodes.magnetics.stokeslets import resistance_of_points, stokeslet_resistance
from mime.nodes.magnetics.tube_wall import wall_mobility

HELIX = Helix(4.0, 1.0, 1.0, 0.2, 1.0)
SQRT_E = np.exp(0.5)


def in_tube(points, blob, radius):
    blobs = np.full(len(points), blob)
    return resistance_of_points(points, blobs, 1.0, wall_mobility(points, radius))


@pytest.mark.small("0.5")
@pytest.mark.parametrize(
    ("ratio", "along", "within"),
    [(0.1, 1.263, 5e-4), (0.3, 2.371, 1.2e-3), (0.4, 3.596, 4e-3), (0.5, 5.970, 1.3e-2)],
    ids=["0.1", "0.3", "0.4", "0.5"],
)
def test_a_head_on_the_axis_has_the_drag_of_haberman_and_sayres_table(ratio, along, within):
    # A filament as short and thin as it may be, far below the head.
    nothing = Helix(1e-3, 1e-6, 1.0, 1e-4, 1.0)
    R = np.asarray(stokeslet_resistance(nothing, 1.0, 1.0, tube_radius_m=1 / ratio))
    alone = 6 * np.pi * 1e-3  # what the filament can add at most
    assert R[2, 2] / (6 * np.pi) == pytest.approx(along, rel=within + alone / R[2, 2])
    # 1 / (1 - 0.79682 l³) by Happel and Brenner; 4e-4 are the sphere's 284 points.
    assert R[5, 5] / (8 * np.pi) == pytest.approx(1 / (1 - 0.79682 * ratio**3), rel=5e-4)


def test_a_head_in_open_fluid_is_stokes_sphere():
    nothing = Helix(1e-3, 1e-6, 1.0, 1e-4, 1.0)
    R = np.asarray(stokeslet_resistance(nothing, 1.0, 1.0))
    drag, turn = np.diag(R)[:3] / (6 * np.pi), R[5, 5] / (8 * np.pi)
    np.testing.assert_allclose(drag, 1.0, rtol=1.1e-3)  # 1e-3 of them the filament
    assert turn == pytest.approx(1.0, rel=4e-4)


def test_a_metre_of_a_thin_rod_on_the_axis_has_the_drag_of_the_annulus():
    """2 pi mu / (ln(R/a) - (R² - a²) / (R² + a²)): fluid that the rod takes along flows back."""
    a, lengths = 0.05, (4.0, 6.0)
    drags = []
    for length in lengths:
        n = round(1.5 * length / (SQRT_E * a))
        z = ((np.arange(n) + 0.5) / n - 0.5) * length
        R = in_tube(np.stack([0 * z, 0 * z, z], 1), SQRT_E * a, 1.0)
        drags.append(R[2, 2])
    middle = (drags[1] - drags[0]) / (lengths[1] - lengths[0])  # ends are the same in both
    exact = 2 * np.pi / (np.log(1 / a) - (1 - a**2) / (1 + a**2))
    # A line of forces leaves out what is of the order (a / R)² ln(R / a).
    assert middle == pytest.approx(exact, rel=8e-3)


def test_forces_and_flows_can_be_exchanged():
    """Lorentz's reciprocal theorem: a slip in any wave about the tube breaks it."""
    W = wall_mobility(np.array([[0.3, 0.2, 0.0], [-0.5, 0.1, 0.7]]), 1.0)
    np.testing.assert_allclose(W, W.T, rtol=0, atol=1e-11 * np.abs(W).max())  # 24 waves about it


@pytest.mark.parametrize("off", [0.0, 0.1, 0.2])
def test_a_small_sphere_off_the_axis_feels_the_wall_as_happel_and_brenner_say(off):
    """6 pi mu b / (1 - f b/R),   f = 2.10444 - 0.6977 (r/R)² + ...   along the axis

    f = 1.8044 across it, on it.
    """
    across, _, along = -6 * np.pi * np.diag(wall_mobility(np.array([[off, 0.0, 0.0]]), 1.0))
    # What the waves leave out is 4e-5 of it; the next term of the series is about 1.8 (r/R)⁴.
    assert along == pytest.approx(2.10444 - 0.6977 * off**2, abs=1e-4 + 2 * off**4)
    if not off:
        assert across == pytest.approx(1.8044, abs=1e-4)


def test_the_wall_takes_energy_and_vanishes_with_distance():
    free = np.array(stokeslet_resistance(HELIX, 1.0))
    near, far = (np.array(stokeslet_resistance(HELIX, 1.0, tube_radius_m=R)) for R in (1.5, 300.0))
    assert np.linalg.eigvalsh(near - free).min() > 0  # a wall adds to the drag of every motion
    # Along a wide tube a body of drag f feels 2.105 f / (6 pi mu R) more (Haberman and Sayre).
    first = 2.105 * free[2, 2] / (6 * np.pi * 300.0)
    assert far[2, 2] / free[2, 2] - 1 == pytest.approx(first, rel=3e-2)  # and its square


def test_a_swimmer_with_stokeslets_knows_the_wall_of_its_tube():
    size = {"pitch_m": 4e-3, "helix_radius_m": 1e-3, "turns": 1.0, "filament_radius_m": 2e-4}
    swimmer = {**size, "viscosity_pa_s": 1e-3, "tube": Tube(radius_m=2e-3)}
    node = HelicalSwimmerNode("swimmer", 1e-3, **swimmer, theory="stokeslets")
    units = np.array([1.0] * 3 + [1e-3] * 3)
    expected = stokeslet_resistance(HELIX, 1.0, tube_radius_m=2.0) * np.outer(units, units)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs(np.array(node.resistance()) * 1e6 - expected).max() / scale.max() < 1e-9


@pytest.mark.parametrize(("head", "radius", "words"), [
    (None, 1.1, "must be >= 1.18 m for Stokeslets, got 1.1 m"),
    (0.9, 1.7, "must be >= 1.8 m for Stokeslets, got 1.7 m"),
])  # fmt: skip
def test_a_tube_too_narrow_for_them_is_refused(head, radius, words):
    with pytest.raises(InputError, match=words):
        stokeslet_resistance(HELIX, 1.0, head, tube_radius_m=radius)


def test_gradients_in_a_tube_are_refused():
    def drag(pitch):
        helix = HELIX._replace(pitch_m=pitch)
        return stokeslet_resistance(helix, 1.0, filament_points=100, tube_radius_m=2.0)[2, 2]

    with pytest.raises(InputError, match="the wall of a tube has no gradients here"):
        jax.grad(drag)(4.0)
