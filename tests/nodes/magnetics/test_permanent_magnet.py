"""The permanent magnet: its field against Magpylib and closed forms, Maxwell's equations, refusals.

Every test calls one of three compiled nodes: parameters and poses are arguments of the program.
"""

import jax
import jax.numpy as jnp
import magpylib
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mime import GraphManager, InputError, ParameterError, PermanentMagnetNode
from mime.nodes.magnetics.dipole_field import MU_0

MANY = 240
RADIUS, LENGTH, MOMENT = 0.0175, 0.02, 18.89
"""The magnet of the experiment: 35 mm x 20 mm."""
IDENTITY = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])


def magnet(**changes):
    given = {"remanence_t": 1.0, "radius_m": RADIUS, "length_m": LENGTH, **changes}
    return PermanentMagnetNode.from_remanence("magnet", 1e-3, points=MANY, **given)


def of_moment(**changes):
    given = {"moment_a_m2": MOMENT, "radius_m": RADIUS, "length_m": LENGTH, **changes}
    return PermanentMagnetNode("magnet", 1e-3, points=MANY, **given)


def at(node, points, pose=IDENTITY):
    """Fluxes at up to MANY points."""
    padded = np.vstack([points, np.full((MANY - len(points), 3), 1.0)])
    inputs = {"points_world": padded, "magnet_pose_world": pose}
    fluxes = node.compute_boundary_fluxes({}, inputs, 1e-3)
    return {
        name: np.array(x)[: len(points)] if len(x) == MANY else np.array(x)
        for name, x in fluxes.items()
    }


def around(radius, length, seed=0):
    """Points inside, near and as far as 100 radii, some on the axis, some at the mantle's level."""
    random = np.random.default_rng(seed)
    direction = random.normal(size=(MANY, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    size = np.hypot(radius, length / 2)
    points = direction * size * np.geomspace(0.1, 10.0, MANY)[:, None]
    points[::10, :2] = 0.0
    points[5::20] = [radius, 0.0, length]
    return points


@pytest.mark.parametrize(("radius", "length"), [(RADIUS, LENGTH), (1e-3, 0.1), (0.1, 1e-3)])
@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (2.0, -1.0, 2.0)])
def test_a_cylinder_is_that_of_magpylib(radius, length, axis):
    points = around(radius, length)
    unit = np.array(axis) / np.linalg.norm(axis)
    theirs = magpylib.magnet.Cylinder(polarization=unit, dimension=(2 * radius, length))
    node = magnet(radius_m=radius, length_m=length, magnetisation_axis=axis)
    field = theirs.getB(points)
    error = np.linalg.norm(at(node, points)["field_world"] - field, axis=1)
    # Magpylib takes differences of numbers of the remanence's size and, near the axis, divides
    # them by ρ²: there it is off by 1e-12 of the remanence, elsewhere by 2e-13.
    assert np.max(error - 1e-12 * np.linalg.norm(field, axis=1)) < 3e-12


@pytest.mark.parametrize(("distance_m", "diametral", "axial"), [
    (0.05, 13.0, 11.8), (0.07, 6.2, 5.7), (0.1, 3.0, 2.7), (0.15, 1.3, 1.2), (0.2, 0.72, 0.65),
])  # fmt: skip
def test_the_published_errors_of_a_dipole(distance_m, diametral, axial):
    polar = np.linspace(0.0, np.pi / 2, 60)
    for axis, expected in (((1, 0, 0), diametral), ((0, 0, 1), axial)):
        worst = 0.0
        for azimuth in (0.0, np.pi / 4, np.pi / 2):
            x, y = np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth)
            points = distance_m * np.stack([x, y, np.cos(polar)], axis=1)
            exact = at(magnet(magnetisation_axis=axis), points)["field_world"]
            dipole = at(magnet(magnetisation_axis=axis, model="dipole"), points)["field_world"]
            error = np.linalg.norm(dipole - exact, axis=1) / np.linalg.norm(exact, axis=1)
            worst = max(worst, 100 * np.max(error))
        assert worst == pytest.approx(expected, abs=0.5 * 10 ** -(1 + (expected < 1)))


def test_maxwell_holds_for_the_gradient_that_is_given():
    points = around(RADIUS, LENGTH, seed=1)
    points = points[~np.isclose(np.hypot(points[:, 0], points[:, 1]), RADIUS)]
    for axis in ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0)):
        gradient = at(magnet(magnetisation_axis=axis), points)["field_gradient_world"]
        size = np.linalg.norm(gradient, axis=(1, 2))
        # Second differences of the two ends lose (r/a)² roundings where they are last used.
        assert np.max(np.abs(np.trace(gradient, axis1=1, axis2=2)) / size) < 1e-11
        curl = gradient - gradient.transpose(0, 2, 1)
        assert np.max(np.linalg.norm(curl, axis=(1, 2)) / size) < 1e-11


def test_the_gradient_is_that_of_the_field():
    points, h = around(RADIUS, LENGTH, seed=2)[40:60:3], 1e-6
    node = magnet(magnetisation_axis=(1.0, 0.0, 1.0))
    gradient = at(node, points)["field_gradient_world"]
    for j, step in enumerate(h * np.eye(3)):
        sides = [at(node, points + sign * step)["field_world"] for sign in (1, -1)]
        slope = (sides[0] - sides[1]) / (2 * h)
        # Central differences: h² f'''/6 and 2e-16/h of the field.
        np.testing.assert_allclose(gradient[:, :, j], slope, rtol=1e-4, atol=1e-6)


def test_on_the_axis_is_the_textbook():
    z = np.linspace(-0.3, 0.3, 41)
    points = np.stack([0 * z, 0 * z, z], axis=1)
    upper, lower = z + LENGTH / 2, z - LENGTH / 2
    cosines = upper / np.hypot(upper, RADIUS) - lower / np.hypot(lower, RADIUS)
    axial = at(magnet(magnetisation_axis=(0, 0, 1)), points)
    np.testing.assert_allclose(axial["field_world"][:, 2], cosines / 2, rtol=0, atol=1e-16 * 4)
    assert np.all(axial["field_world"][:, :2] == 0.0)
    assert np.all(np.isfinite(axial["field_gradient_world"]))
    np.testing.assert_array_equal(axial["inside"], (np.abs(z) < LENGTH / 2).astype(float))
    # 0.553 mT at 150 mm: published for the diametral magnet of the experiment.
    there = at(of_moment(), np.array([[0.0, 0.0, 0.15]]))
    assert 1e3 * np.linalg.norm(there["field_world"]) == pytest.approx(0.553, abs=5e-4)


def test_far_away_it_is_its_dipole():
    points = 100 * around(RADIUS, LENGTH, seed=3)
    near = np.linalg.norm(points, axis=1) < 2.0
    points[near] *= 2.0 / np.linalg.norm(points[near], axis=1)[:, None]
    node = of_moment(magnetisation_axis=(1.0, 2.0, 3.0))
    dipole = at(of_moment(model="dipole", magnetisation_axis=(1.0, 2.0, 3.0)), points)
    exact = at(node, points)
    for name in ("field_world", "field_gradient_world"):
        size = np.abs(dipole[name]).max(axis=tuple(range(1, dipole[name].ndim)))
        error = np.abs(exact[name] - dipole[name]).max(axis=tuple(range(1, dipole[name].ndim)))
        # The next pole is (size/r)² = 1e-4 of it at 2 m, times the gradient's larger factor.
        assert np.max(error / size) < 3e-4


def test_pose_moves_the_magnet_and_the_background_adds():
    turn = Rotation.from_rotvec([0.3, -1.1, 0.7])
    place, earth = np.array([0.1, -0.2, 0.05]), np.array([2e-5, 0.0, -4e-5])
    pose = np.concatenate([place, np.roll(turn.as_quat(), 1)])
    points = around(RADIUS, LENGTH, seed=4)[100:140]
    axis = (1.0, 0.5, -0.5)
    here = at(magnet(magnetisation_axis=axis), points)
    there = at(
        magnet(magnetisation_axis=axis, background_field_t=earth), turn.apply(points) + place, pose
    )
    # The rotation of the point rounds by 1e-16 of its distance from the world's origin.
    np.testing.assert_allclose(
        there["field_world"], turn.apply(here["field_world"]) + earth, rtol=1e-9, atol=1e-13
    )
    R = turn.as_matrix()
    np.testing.assert_allclose(
        there["field_gradient_world"], R @ here["field_gradient_world"] @ R.T, rtol=1e-8, atol=1e-10
    )
    expected = turn.apply(np.array(axis)) / np.linalg.norm(axis) * float(magnet().moment_a_m2)
    np.testing.assert_allclose(there["moment_world"], expected, rtol=1e-14)


def test_remanence_and_moment_say_the_same():
    volume = np.pi * RADIUS**2 * LENGTH
    remanence = float(of_moment().remanence())
    assert remanence == pytest.approx(MU_0 * MOMENT / volume, rel=1e-15)
    assert remanence == pytest.approx(1.23, abs=5e-3)
    assert float(magnet(remanence_t=remanence).moment_a_m2) == pytest.approx(MOMENT, rel=1e-15)
    with pytest.raises(InputError, match="has no remanence"):
        PermanentMagnetNode("magnet", 1e-3, moment_a_m2=1.0).remanence()


def test_a_gradient_goes_through_a_graph_with_a_magnet():
    graph = GraphManager()
    graph.add_node(PermanentMagnetNode("magnet", 1e-3, moment_a_m2=1.0))
    for name in ("magnet_pose_world", "points_world"):
        graph.add_external_input("magnet", name)
    simulation = graph.compile()

    def strength(distance):
        inputs = {"magnet": {"points_world": jnp.stack([0 * distance, 0 * distance, distance])}}
        _, run = simulation.rollout(
            simulation.init_state(), inputs, record={"magnet": ["field_world"]}
        )
        return run["magnet"]["field_world"][0, 0]

    slope = jax.grad(strength)(jnp.asarray(0.1))
    # -mu0 m / (4 pi z³): its slope is 3 mu0 m / (4 pi z⁴).
    assert float(slope) == pytest.approx(3e-7 / 0.1**4, rel=1e-8)


@pytest.mark.parametrize(("given", "words"), [
    ({"moment_a_m2": 0.0}, "> 0 A·m²"),
    ({"radius_m": None}, "is needed by a cylinder"),
    ({"length_m": None}, "is needed by a cylinder"),
    ({"length_m": -0.1}, "> 0 m"),
    ({"magnetisation_axis": (0, 0, 0)}, "no direction"),
    ({"points": 0}, "a count from 1"),
    ({"model": "loop"}, "exact"),
])  # fmt: skip
def test_bad_magnets_are_refused_by_name(given, words):
    defaults = {"moment_a_m2": 1.0, "radius_m": RADIUS, "length_m": LENGTH}
    with pytest.raises(ParameterError, match=words):
        PermanentMagnetNode("magnet", 1e-3, **{**defaults, **given})


def test_metadata_is_whole():
    assert magnet().validate_mime_consistency() == []


def test_single_precision():
    points = around(RADIUS, LENGTH, seed=5)
    double = at(magnet(), points)["field_world"]
    with jax.enable_x64(False):
        single = at(magnet(), points.astype(np.float32), IDENTITY.astype(np.float32))["field_world"]
    assert single.dtype == np.float32
    error = np.linalg.norm(single - double, axis=1)
    # Differences of the ends lose up to 4³ roundings of the remanence's share.
    assert np.max(error - 2e-5 * np.linalg.norm(double, axis=1)) < 1e-6
