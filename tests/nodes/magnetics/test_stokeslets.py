"""Regularised Stokeslets: sphere, torus, spheroid and Taylor's helix; and what theories miss."""

import jax
import numpy as np
import pytest
import scipy

from mime import HelicalSwimmerNode, InputError, ParameterError, Tube
from mime.nodes.magnetics.resistive_force import Helix, filament_coefficients, helix_resistance
from mime.nodes.magnetics.stokeslets import (
    points_of,
    resistance_of_points,
    sphere_points,
    stokeslet_resistance,
)
from sizes import sized

SQRT_E = np.exp(0.5)


def test_a_sphere_has_stokes_drag_and_torque():
    points = sphere_points(15)
    side = np.sqrt(4 * np.pi / len(points))
    blobs = np.full(len(points), 0.52376 * side)
    R = resistance_of_points((1 - 0.11408 * side) * points, blobs, 1.0)
    # A surface of 284 points; depth and blobs are set by motion along z and turning about it.
    assert np.diag(R)[:3] / (6 * np.pi) == pytest.approx(np.ones(3), abs=4e-4)
    assert np.diag(R)[3:] / (8 * np.pi) == pytest.approx(np.ones(3), abs=4e-4)
    assert np.abs(R[:3, 3:]).max() < 1e-3 * R[0, 0]


@pytest.mark.parametrize(("thin", "exact", "points", "within"), [
    (0.1, 0.7843079118776118, 58, 7e-3), (0.01, 0.5773112010340116, 573, 3e-4),
])  # fmt: skip
def test_a_torus_falls_as_mitchell_and_others_computed(thin, exact, points, within):
    # Their Table 2: drag along the axis over that of the sphere about the torus (arXiv 2102.01791).
    phi = 2 * np.pi * np.arange(points) / points
    ring = np.stack([np.cos(phi), np.sin(phi), 0 * phi], 1)
    R = resistance_of_points(ring, np.full(points, SQRT_E * thin), 1.0)
    # Slender-body theory is off by the square of the thickness times its logarithm.
    assert float(R[2, 2]) / (6 * np.pi * (1 + thin)) == pytest.approx(exact, rel=within)


def test_a_spheroid_has_the_drag_of_its_closed_form():
    ratio, n = 20, 58
    angle = np.pi * (np.arange(n) + 0.5) / n
    line = np.stack([0 * angle, 0 * angle, np.cos(angle)], 1)
    R = resistance_of_points(line, SQRT_E / ratio * np.sin(angle), 1.0)
    e = np.sqrt(1 - 1 / ratio**2)  # Chwang and Wu (1975)
    log = np.log((1 + e) / (1 - e))
    along = 16 * np.pi * e**3 / ((1 + e**2) * log - 2 * e)
    across = 32 * np.pi * e**3 / (2 * e + (3 * e**2 - 1) * log)
    turn = 32 / 3 * np.pi * e**3 * (2 - e**2) / ((1 + e**2) * log - 2 * e)
    # Of the order (a / length)² and its logarithm.
    assert R[2, 2] == pytest.approx(along, rel=1e-4)
    assert R[0, 0] == pytest.approx(across, rel=2e-3)
    assert R[3, 3] == pytest.approx(turn, rel=4e-3)


def test_a_slight_helix_swims_as_taylors():
    k, b, a = 2 * np.pi, 0.01, 0.02
    K0 = scipy.special.k0(k * a)
    expected = (K0 - 0.5) / (K0 + 0.5)
    errors = []
    for turns in sized((4, 8, 16), small=(2, 4, 8)):
        R = stokeslet_resistance(Helix(1.0, b, turns, a), 1.0, filament_points=48 * turns)
        errors.append(1 - float(-R[2, 5] / R[2, 2]) / (k * b**2) / expected)
    # Taylor's has no ends: what they cost goes as one over the number of turns.
    assert errors[0] > errors[1] > errors[2] > 0.0
    assert errors[2] < sized(3e-3, small=2e-2)


HELIX = Helix(4.0, 1.0, 2.0, 1.0 / 16.0)


@pytest.fixture(scope="module")
def with_head():
    return np.array(stokeslet_resistance(HELIX, 1.0, 1.2, head_rings=12))


def test_the_propulsion_matrix_is_symmetric_and_takes_energy(with_head):
    R = with_head
    scale = np.sqrt(np.outer(np.diag(R), np.diag(R)))
    assert np.abs(R - R.T).max() == 0.0
    assert np.linalg.eigvalsh(R / scale).min() > 0.0
    assert R[2, 2] * R[5, 5] > R[2, 5] ** 2  # Purcell's 2x2
    left = stokeslet_resistance(HELIX._replace(handedness=-1.0), 1.0, 1.2, head_rings=12)
    mirror = np.diag([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])  # y to -y; turning is axial
    assert np.abs(np.array(left) - mirror @ R @ mirror).max() < 1e-10 * R.max()


def test_more_points_change_little(with_head):
    n = points_of(HELIX)
    base = np.array(stokeslet_resistance(HELIX, 1.0))
    finer = np.array(stokeslet_resistance(HELIX, 1.0, filament_points=round(1.4 * n)))
    for i, j, within in ((2, 2, 2e-3), (2, 5, 2e-3), (5, 5, 2e-3), (0, 0, 2e-3), (3, 3, 6e-3)):
        assert finer[i, j] == pytest.approx(base[i, j], rel=within)
    # A head adds less than it has alone: it swims in the helix' flow, and the helix in its.
    alone = 6 * np.pi * 1.2
    assert 0.3 * alone < with_head[2, 2] - base[2, 2] < 0.8 * alone


def excess(pitch, turns, theory):
    """Drag, thrust and torque of a theory over those of Stokeslets."""
    helix = Helix(pitch, 1.0, turns, 1.0 / 16.0)
    theirs = helix_resistance(helix, *filament_coefficients(helix, 1.0, theory))
    ours = stokeslet_resistance(helix, 1.0, filament_points=200)
    return [float(theirs[i, j] / ours[i, j]) for i, j in ((2, 2), (2, 5), (5, 5))]


def test_resistive_force_theory_fails_where_rodenborn_and_others_measured_it_to():
    # In words: off above all for pitches below six radii, and for helices longer than three
    # turns; Stokeslets are within the measurement's few percent everywhere.
    wide, tight = excess(8.0, 1.5, "lighthill"), excess(2.5, 4.0, "lighthill")
    assert 1.3 < wide[0] < 1.7
    assert tight[0] > 2.5
    assert tight[1] > 2.5
    assert tight[2] == pytest.approx(1.0, abs=0.1)  # torque is what it has right
    short, long = excess(4.0, 1.0, "lighthill"), excess(4.0, 3.0, "lighthill")
    assert 1.4 < short[0] < 1.5
    assert long[0] > 2.0
    gray = excess(2.5, 4.0, "gray_hancock")
    assert 1.0 < gray[0] < tight[0]
    assert gray[2] < 0.85


def test_the_gradient_of_the_speed_by_pitch_is_that_of_differences():
    helix = Helix(4.0, 1.0, 1.0, 0.125)
    n = points_of(helix)

    def advance(pitch_m):
        R = stokeslet_resistance(helix._replace(pitch_m=pitch_m), 1.0, filament_points=n)
        return -R[2, 5] / R[2, 2]

    slope = float(jax.grad(advance)(4.0))
    expected = float(advance(4.0 + 1e-4) - advance(4.0 - 1e-4)) / 2e-4
    assert slope == pytest.approx(expected, rel=1e-7)  # 1e-8 of curvature, 1e-12 of the solution


SWIMMER = {
    "pitch_m": 4e-3, "helix_radius_m": 1e-3, "turns": 2.0, "filament_radius_m": 1e-3 / 16,
    "viscosity_pa_s": 1e-3,
}  # fmt: skip


def test_a_swimmer_with_stokeslets_has_their_resistance():
    node = HelicalSwimmerNode("swimmer", 1e-3, **SWIMMER, theory="stokeslets")
    base = np.array(stokeslet_resistance(HELIX, 1.0))
    units = np.array([1.0] * 3 + [1e-3] * 3)
    expected = 1e-6 * base * np.outer(units, units)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs(np.array(node.resistance()) - expected).max() / scale.max() < 1e-12
    assert node.validate_mime_consistency() == []


@pytest.mark.parametrize(("given", "words"), [
    ({"resistance_matrix": np.eye(6) + np.eye(6, k=1)}, "must be symmetric"),
    ({"resistance_matrix": np.diag([1, 1, 1, 1, 1, -1.0])}, "must be positive definite"),
    ({"resistance_matrix": np.eye(6), "tube": Tube(radius_m=1e-2)}, "wall_drag must be 'none'"),
])  # fmt: skip
def test_bad_matrices_are_refused(given, words):
    with pytest.raises(ParameterError, match=words):
        HelicalSwimmerNode("swimmer", 1e-3, **SWIMMER, **given)


def test_a_filament_too_thin_for_them_is_refused():
    with pytest.raises(InputError, match="needs 21685 points, at most 2000"):
        points_of(HELIX._replace(filament_radius_m=1 / 1600))
