"""The magnetic body: against Magpylib, two dipoles and its energy; reaction on magnet and motor."""

import jax
import jax.numpy as jnp
import magpylib
import numpy as np
import pytest
from scipy.constants import mu_0
from scipy.spatial.transform import Rotation

from mime import (
    DivergenceError,
    GraphManager,
    MagneticBodyNode,
    MotorNode,
    ParameterError,
    PermanentMagnetNode,
    SoftEllipsoid,
)

MAGNET_MOMENT, BODY_MOMENT = 18.89, np.array([2e-3, -1e-3, 0.5e-3])
TURN_MAGNET, TURN_BODY = (
    Rotation.from_rotvec([0.4, 1.0, -0.3]),
    Rotation.from_rotvec([1.1, -0.2, 2]),
)
CENTRE, PLACE = np.array([0.02, -0.01, 0.03]), np.array([0.1, 0.06, -0.05])


def pose(place, turn):
    return np.concatenate([place, np.roll(turn.as_quat(), 1)])


MAGNET_POSE, BODY_POSE = pose(CENTRE, TURN_MAGNET), pose(PLACE, TURN_BODY)


def body(**changes):
    given = {"moment_a_m2": BODY_MOMENT, "rotor_axis": (0.0, 1.0, 2.0), **changes}
    return MagneticBodyNode("body", 1e-3, **given)


def magnet_inputs(place=PLACE, **changes):
    """What a magnet at MAGNET_POSE gives to a body at `place`."""
    magnet = PermanentMagnetNode("magnet", 1e-3, moment_a_m2=MAGNET_MOMENT, **changes)
    inputs = {"magnet_pose_world": MAGNET_POSE, "points_world": place}
    fluxes = magnet.compute_boundary_fluxes({}, inputs, 1e-3)
    wired = ("field_world", "field_gradient_world", "inside")
    return {"magnet_pose_world": MAGNET_POSE, **{name: fluxes[name] for name in wired}}


def at(node, inputs, body_pose=BODY_POSE):
    given = {"body_pose_world": body_pose, **inputs}
    fluxes = node.compute_boundary_fluxes(node.initial_state(), given, 1e-3)
    return {name: np.array(value) for name, value in fluxes.items()}


@pytest.mark.parametrize("size", [{}, {"radius_m": 0.0175, "length_m": 0.02}])
def test_the_wrench_is_that_of_magpylib(size):
    direction = TURN_MAGNET.apply([1.0, 0.0, 0.0])
    if size:
        volume = np.pi * size["radius_m"] ** 2 * size["length_m"]
        magnet = magpylib.magnet.Cylinder(
            magnetization=np.array([1.0, 0, 0]) * MAGNET_MOMENT / volume,
            dimension=(2 * size["radius_m"], size["length_m"]),
            position=CENTRE,
            orientation=TURN_MAGNET,
        )
    else:
        magnet = magpylib.misc.Dipole(moment=MAGNET_MOMENT * direction, position=CENTRE)
    target = magpylib.misc.Dipole(moment=TURN_BODY.apply(BODY_MOMENT), position=PLACE)
    force, torque = magpylib.getFT(magnet, target)
    ours = at(body(), magnet_inputs(**size))["wrench_world"]
    # Magpylib takes the gradient by differences over 1e-5 m: (1e-5/r)² and 1e-16 r/1e-5 of it.
    np.testing.assert_allclose(ours[:3], force, rtol=0, atol=1e-7 * np.linalg.norm(force))
    np.testing.assert_allclose(ours[3:], torque, rtol=0, atol=1e-12 * np.linalg.norm(torque))


def dipole(r, m):
    r2 = r @ r
    return mu_0 / (4 * np.pi) * (3 * (m @ r) * r / r2 - m) / r2**1.5


def dipole_force(r, m1, m2):
    """On m2, which is r away from m1: the textbook's formula."""
    d = np.linalg.norm(r)
    n = r / d
    sum_ = (m1 @ n) * m2 + (m2 @ n) * m1 + (m1 @ m2) * n - 5 * (m1 @ n) * (m2 @ n) * n
    return 3 * mu_0 / (4 * np.pi * d**4) * sum_


def test_action_is_reaction_for_two_dipoles():
    found = at(body(rotor_axis_point_m=(0.01, 0.02, -0.03)), magnet_inputs())
    m1, m2 = TURN_MAGNET.apply([MAGNET_MOMENT, 0, 0]), TURN_BODY.apply(BODY_MOMENT)
    r = PLACE - CENTRE
    force = dipole_force(r, m1, m2)
    rounding = 1e-14 * np.linalg.norm(force)
    np.testing.assert_allclose(found["wrench_world"][:3], force, rtol=0, atol=rounding)
    np.testing.assert_allclose(found["magnet_wrench_world"][:3], -force, rtol=0, atol=rounding)
    # The field of the body turns the magnet: computed without any reaction.
    torque = np.cross(m1, dipole(-r, m2))
    rounding = 1e-14 * np.linalg.norm(torque)
    np.testing.assert_allclose(found["magnet_wrench_world"][3:], torque, rtol=0, atol=rounding)
    for point in (np.zeros(3), np.array([0.3, -0.2, 0.5])):
        total = np.zeros(3)
        for place, wrench in ((PLACE, "wrench_world"), (CENTRE, "magnet_wrench_world")):
            total += found[wrench][3:] + np.cross(place - point, found[wrench][:3])
        assert np.abs(total).max() < 10 * rounding
    axis = TURN_MAGNET.apply(np.array([0.0, 1.0, 2.0]) / np.sqrt(5.0))
    arm = TURN_MAGNET.apply([-0.01, -0.02, 0.03])  # from the axis to the magnet
    expected = axis @ (torque + np.cross(arm, -force))
    assert float(found["load_torque"]) == pytest.approx(expected, rel=1e-13)


def test_nobody_feels_the_reaction_to_a_background_field():
    earth = np.array([2e-5, -1e-5, 4.5e-5])
    without, with_it = (at(body(**given), magnet_inputs())
                        for given in ({}, {"background_field_t": earth}))  # fmt: skip
    np.testing.assert_array_equal(with_it["magnet_wrench_world"], without["magnet_wrench_world"])
    added = with_it["wrench_world"] - without["wrench_world"]
    expected = np.cross(TURN_BODY.apply(BODY_MOMENT), earth)
    np.testing.assert_allclose(added, [0, 0, 0, *expected], rtol=0, atol=1e-18)


SOFT = SoftEllipsoid(
    susceptibility=5.0, volume_m3=1e-9, demagnetisation_factors=(0.4, 0.35, 0.25)
)  # fmt: skip


@pytest.mark.parametrize("given", [{}, {"soft": SOFT}])
def test_force_and_torque_are_the_slopes_of_the_energy(given):
    node = body(**given)
    found, h = at(node, magnet_inputs())["wrench_world"], 1e-5
    slopes = []
    for step in h * np.eye(3):
        ends = [
            at(node, magnet_inputs(PLACE + s), pose(PLACE + s, TURN_BODY)) for s in (step, -step)
        ]
        slopes.append((ends[0]["potential_energy"] - ends[1]["potential_energy"]) / (2 * h))
    for step in h * np.eye(3):
        turns = [pose(PLACE, Rotation.from_rotvec(s) * TURN_BODY) for s in (step, -step)]
        ends = [at(node, magnet_inputs(), turned)["potential_energy"] for turned in turns]
        slopes.append((ends[0] - ends[1]) / (2 * h))
    # Central differences: (h/r)² = 1e-8, its factor some ten.
    for part in (slice(0, 3), slice(3, 6)):
        size = np.linalg.norm(found[part])
        np.testing.assert_allclose(found[part], -np.array(slopes)[part], rtol=0, atol=2e-7 * size)


def test_a_soft_sphere_has_the_textbook_moment_and_a_needle_turns_along_the_field():
    sphere = SoftEllipsoid(susceptibility=1e9, volume_m3=4 / 3 * np.pi * 1e-9)
    B = np.array([0.01, 0.02, 0.0])
    found = at(body(moment_a_m2=None, soft=sphere), {"field_world": B})
    # m = 4 pi a³ B/mu0 of a perfect sphere of 1 mm; chi is not infinite: 3/chi.
    np.testing.assert_allclose(
        found["moment_world"], 4 * np.pi * 1e-9 * B / mu_0, rtol=1e-8, atol=1e-18
    )
    assert np.abs(found["wrench_world"]).max() < 1e-18
    needle = body(moment_a_m2=None, soft=SOFT)
    angle, strength = 0.3, 0.01
    B = strength * np.array([np.sin(angle), 0.0, np.cos(angle)])
    torque = at(needle, {"field_world": B}, pose(PLACE, Rotation.identity()))["wrench_world"][4]
    along, across = 5 / (1 + 0.25 * 5), 5 / (1 + 0.4 * 5)
    expected = 1e-9 * strength**2 / (2 * mu_0) * (along - across) * np.sin(2 * angle)
    assert torque == pytest.approx(expected, rel=1e-13)


def test_a_rotor_swings_in_the_field_of_the_body_and_keeps_its_energy():
    """The load torque alone moves the rotor: J w²/2 + U is what it was, sign and all."""
    dt, inertia = 2e-4, 1e-5
    graph = GraphManager()
    graph.add_node(MotorNode(
        "motor", dt, inertia_kg_m2=inertia, kt_n_m_per_a=0.05, r_ohm=1.0, l_henry=1e-3,
        damping_n_m_s=0.0, axis_in_parent_frame=(0.0, 0.0, 1.0),
    ))  # fmt: skip
    graph.add_node(PermanentMagnetNode("magnet", dt, moment_a_m2=MAGNET_MOMENT))
    graph.add_node(MagneticBodyNode("body", dt, moment_a_m2=(0.0, 1.0, 0.0)))
    for target, name in (("magnet", "magnet_pose_world"), ("body", "magnet_pose_world")):
        graph.add_edge("motor", target, "rotor_pose_world", name)
    for name in ("field_world", "field_gradient_world", "inside"):
        graph.add_edge("magnet", "body", name, name)
    graph.add_edge("body", "motor", "load_torque", "load_torque", delay=True)
    graph.add_external_input("magnet", "points_world")
    graph.add_external_input("body", "body_pose_world")
    place = (0.15, 0.05, 0.02)
    inputs = {
        "magnet": {"points_world": np.array(place)},
        "body": {"body_pose_world": np.array([*place, 1.0, 0, 0, 0])},
    }
    run = graph.compile().run(
        1.0, inputs=inputs, record={"motor": ["angular_velocity"], "body": ["potential_energy"]}
    )
    kinetic = 0.5 * inertia * run["motor"]["angular_velocity"] ** 2
    energy = kinetic + run["body"]["potential_energy"]
    assert kinetic.max() > 1e-4  # it swings
    # Semi-implicit Euler: energy oscillates by dt times the rate of swing, some 10/s, and stays.
    assert np.ptp(energy) < 5e-3 * kinetic.max()


def test_a_body_that_comes_into_the_magnet_stops_the_run():
    dt = 1e-3
    graph = GraphManager()
    graph.add_node(PermanentMagnetNode("magnet", dt, 1.0, radius_m=0.01, length_m=0.02))
    graph.add_node(MagneticBodyNode("body", dt, moment_a_m2=(0.0, 0.0, 1e-3)))
    for name in ("field_world", "field_gradient_world", "inside"):
        graph.add_edge("magnet", "body", name, name)
    graph.add_external_input("magnet", "points_world")
    falls = lambda t: jnp.stack([0 * t + 0.003, 0 * t, 0.02 - t])  # noqa: E731
    with pytest.raises(DivergenceError) as stopped:
        graph.compile().run(0.02, inputs={"magnet": {"points_world": falls}})
    where = stopped.value.where
    assert (where.node, where.field) == ("body", "moment_world")
    # Inside after 10 ms, and that is seen in the step that starts a millisecond later.
    assert where.time_s == pytest.approx(0.012, abs=1.1e-3)


def test_gradient_and_single_precision():
    inputs = {"body_pose_world": BODY_POSE, **magnet_inputs()}

    def load(scale):
        node = body(moment_a_m2=scale * BODY_MOMENT)
        return node.compute_boundary_fluxes(node.initial_state(), inputs, 1e-3)["load_torque"]

    assert float(jax.grad(load)(1.0)) == pytest.approx(float(load(1.0)), rel=1e-14)  # linear
    with jax.enable_x64(False):
        single = at(body(), {name: np.asarray(x, np.float32) for name, x in inputs.items()})
    assert single["wrench_world"].dtype == np.float32
    double = at(body(), inputs)
    for name in ("wrench_world", "magnet_wrench_world"):
        size = np.linalg.norm(double[name])
        np.testing.assert_allclose(single[name], double[name], rtol=0, atol=1e-6 * size)


@pytest.mark.parametrize(("given", "words"), [
    ({"moment_a_m2": None}, "does nothing to the body"),
    ({"moment_a_m2": (0, 0, 0)}, "does nothing to the body"),
    ({"rotor_axis": (0, 0, 0)}, "no direction"),
])  # fmt: skip
def test_bad_bodies_are_refused_by_name(given, words):
    with pytest.raises(ParameterError, match=words):
        body(**given)


def test_bad_soft_matter_is_refused_by_name():
    with pytest.raises(ParameterError, match=r"sum 1, got 1\.2"):
        body(soft=SoftEllipsoid(1.0, 1e-9, (0.4, 0.4, 0.4)))
    with pytest.raises(ParameterError, match="> 0 m³"):
        body(soft=SoftEllipsoid(1.0, 0.0))


def test_metadata_is_whole():
    assert body().validate_mime_consistency() == []


def test_fields_of_two_magnets_add_where_they_are_wired():
    places = np.array([[0.0, 0.0, 0.1], [0.05, -0.08, 0.0]])
    graph = GraphManager()
    graph.add_node(MagneticBodyNode("body", 1e-3, moment_a_m2=(1e-3, 2e-3, 0.0)))
    for k in range(2):
        graph.add_node(PermanentMagnetNode(f"magnet{k}", 1e-3, moment_a_m2=10.0 + k))
        for name in ("magnet_pose_world", "points_world"):
            graph.add_external_input(f"magnet{k}", name)
        for name in ("field_world", "field_gradient_world"):
            graph.add_edge(f"magnet{k}", "body", name, name)
    poses = np.hstack([places, np.tile([1.0, 0.0, 0.0, 0.0], (2, 1))])
    here = np.zeros(3)
    inputs = {f"magnet{k}": {"magnet_pose_world": poses[k], "points_world": here} for k in range(2)}
    run = graph.compile().run(1e-3, inputs, record={"body": ["wrench_world"]})
    both = magpylib.Collection(
        *(magpylib.misc.Dipole(places[k], moment=(10.0 + k, 0, 0)) for k in range(2))
    )
    m, B = np.array([1e-3, 2e-3, 0.0]), both.getB(here)
    np.testing.assert_allclose(run["body"]["wrench_world"][0, 3:], np.cross(m, B), rtol=1e-12)
    nearby = both.getB(1e-6 * np.array([[1, 0, 0], [-1, 0, 0]]))
    pull = m @ (nearby[0] - nearby[1]) / 2e-6
    assert run["body"]["wrench_world"][0, 0] == pytest.approx(pull, rel=1e-7)  # differences
