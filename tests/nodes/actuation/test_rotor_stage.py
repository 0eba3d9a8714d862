"""A rotor with mass on a parent that moves: where its inertia goes, and what its parent feels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mime import Coulomb, Gear, Imbalance, MotorNode, ParameterError, RotorStage
from mime.control.kinematics import mass_matrix, parse_urdf
from mime.models import model_path

MOTOR = {"kt_n_m_per_a": 0.05, "r_ohm": 1.0, "l_henry": 1e-3, "damping_n_m_s": 1e-4}
AXIS = np.array([0.6, 0.0, 0.8])
STAGE = RotorStage(
    0.2, (2e-3, -1e-3, 0.03), [[3e-5, 2e-6, 1e-6], [2e-6, 2.5e-5, -2e-6], [1e-6, -2e-6, 2.2e-5]]
)


def motor(**changes):
    given = {"inertia_kg_m2": 3e-5, **MOTOR, "command_mode": "torque", "reaction": "full"}
    return MotorNode("rotor", 1e-3, **{**given, **changes})


def wrench(node, state, **inputs):
    """What its parent feels, in world axes."""
    state = node.initial_state() | {k: jnp.asarray(v, float) for k, v in state.items()}
    return np.array(node.compute_boundary_fluxes(state, inputs, 1e-3)["reaction_wrench_world"])


@pytest.mark.parametrize("angle", [0.0, 1.0, 2.5])
def test_payload_motor_and_imbalance_are_the_whole_stage_at_any_angle(angle):
    turn = Rotation.from_rotvec(angle * AXIS).as_matrix()
    c = turn @ STAGE.com_m
    about_mount = turn @ STAGE.inertia_kg_m2 @ turn.T
    about_mount += STAGE.mass_kg * (c @ c * np.eye(3) - np.outer(c, c))
    carried, imbalance = STAGE.payload("tool", AXIS), STAGE.imbalance(AXIS)
    z = np.array(carried.com_m)
    parts = np.array(carried.inertia_kg_m2) + STAGE.mass_kg * (z @ z * np.eye(3) - np.outer(z, z))
    parts += STAGE.axial_inertia(AXIS) * np.outer(AXIS, AXIS)
    parts += turn @ np.array(imbalance.dynamic_kg_m2) @ turn.T
    np.testing.assert_allclose(parts, about_mount, rtol=0, atol=1e-18)  # of 1e-4, some roundings
    first = STAGE.mass_kg * z + turn @ np.array(imbalance.static_kg_m)
    np.testing.assert_allclose(first, STAGE.mass_kg * c, rtol=0, atol=1e-18)
    assert list(motor(axis_in_parent_frame=AXIS, imbalance=imbalance).problems()) == []


def test_stages_add_and_a_cylinder_has_its_moments():
    half = RotorStage.cylinder(0.072, 0.0175, 0.01, (0.0, 0.0, 0.005))
    other = RotorStage.cylinder(0.072, 0.0175, 0.01, (0.0, 0.0, 0.015))
    whole, both = RotorStage.cylinder(0.144, 0.0175, 0.02, (0.0, 0.0, 0.01)), half + other
    np.testing.assert_allclose(both.inertia_kg_m2, whole.inertia_kg_m2, rtol=0, atol=1e-19)
    np.testing.assert_allclose(both.com_m, whole.com_m, rtol=0, atol=1e-17)
    assert whole.axial_inertia() == pytest.approx(2.205e-5, rel=1e-12)  # the magnet of the seeds


def test_as_a_joint_the_arm_has_the_same_mass_matrix_as_with_payload_and_motor():
    arm = parse_urdf(model_path("desktop_arm_6axis"))
    balanced = RotorStage.cylinder(0.144, 0.0175, 0.02, (0.0, 0.0, 0.03))
    q = np.array([0.3, 0.4, -0.9, 1.0, 1.1, 0.2])
    joined = np.array(mass_matrix(balanced.as_joint(arm, "tool"), np.append(q, 0.7)))
    payload = balanced.payload("tool")
    alone = np.array(mass_matrix(payload.on(arm), q))
    # About its axis the arm carries the rotor by the bearing, which does not hold it: Schur's
    # complement of the free joint is the arm with the payload.
    free = joined[:6, :6] - np.outer(joined[:6, 6], joined[6, :6]) / joined[6, 6]
    assert joined[6, 6] == pytest.approx(balanced.axial_inertia(), rel=1e-12)
    np.testing.assert_allclose(free, alone, rtol=0, atol=1e-15)  # of 0.3 kg·m²


def test_a_wrench_on_the_tool_turns_the_rotor_by_its_part_about_the_axis_and_the_rest_is_felt():
    tool = (0.02, 0.01, 0.05, 1.0, 0.0, 0.0, 0.0)
    node = motor(axis_in_parent_frame=AXIS, tool_offset_in_rotor_frame=tool, damping_n_m_s=0.0)
    place = np.array([0.3, -0.1, 0.2])
    turn, theta = Rotation.from_rotvec([0.4, 1.0, -0.3]), 0.9
    pose = np.concatenate([place, np.roll(turn.as_quat(), 1)])
    given = np.array([1.0, -2.0, 0.5, 0.1, 0.2, -0.3])
    felt = wrench(node, {"angle": theta}, parent_pose_world=pose, tool_wrench_world=given)
    arm = turn.apply((Rotation.from_rotvec(theta * AXIS)).apply(tool[:3]))
    moment, axis = given[3:] + np.cross(arm, given[:3]), turn.apply(AXIS)
    np.testing.assert_allclose(felt[:3], given[:3], rtol=1e-14)
    across = moment - (axis @ moment) * axis
    np.testing.assert_allclose(felt[3:], across, rtol=0, atol=1e-15)
    state = node.initial_state() | {"angle": jnp.asarray(theta)}
    inputs = {"parent_pose_world": pose, "tool_wrench_world": given}
    turned = node.update(state, inputs, 1e-3)["angular_velocity"]
    assert float(turned) == pytest.approx(1e-3 * axis @ moment / 3e-5, rel=1e-13)


def test_a_rotor_without_friction_keeps_its_speed_in_the_world_when_its_mount_spins_up():
    node = motor(damping_n_m_s=0.0)
    state = node.initial_state() | {"angular_velocity": jnp.asarray(100.0)}
    twist = np.zeros(6)
    for spin in (5.0, 7.0, 4.0):  # the first twist is where it starts, not a blow
        twist[5] = spin
        state = node.update(state, {"parent_twist_world": twist}, 1e-3)
    assert float(state["angular_velocity"]) == pytest.approx(100.0 + 5.0 - 4.0, rel=1e-14)


def test_gradients_of_the_imbalance_are_those_of_differences():
    imbalance = STAGE.imbalance(AXIS)
    node = motor(axis_in_parent_frame=AXIS, imbalance=imbalance)
    state = {"angle": 0.7, "angular_velocity": 50.0, "parent_acceleration_world": np.arange(6.0)}
    twist = np.array([0.1, 0.2, -0.1, 1.0, -2.0, 0.5])
    begin = node.initial_state() | {k: jnp.asarray(v, float) for k, v in state.items()}

    def moment(angle):
        at = begin | {"angle": angle}
        fluxes = node.compute_boundary_fluxes(at, {"parent_twist_world": twist}, 1e-3)
        return fluxes["reaction_wrench_world"] @ jnp.arange(1.0, 7.0)

    slope = float(jax.grad(moment)(jnp.asarray(0.7)))
    h = 1e-5
    numeric = float(moment(jnp.asarray(0.7 + h)) - moment(jnp.asarray(0.7 - h))) / (2 * h)
    assert slope == pytest.approx(numeric, rel=1e-9)  # h² and 1e-16 / h


def test_an_imbalance_is_an_effect_with_metadata_and_works_in_single_precision():
    node = motor(imbalance=STAGE.imbalance())
    assert node.effective_meta().has_imbalance_vibration
    assert not motor().effective_meta().has_imbalance_vibration
    assert node.validate_mime_consistency() == []
    single = {k: jnp.asarray(v, jnp.float32) for k, v in node.initial_state().items()}
    single["angular_velocity"] = jnp.float32(300.0)
    new = node.update(single, {}, 1e-3)
    assert {value.dtype for value in new.values()} == {np.dtype("float32")}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gear": Gear(ratio=3.0)}, "gear must be None with reaction 'full'"),
        ({"friction": Coulomb(torque_n_m=1e-3)}, "friction must be None with reaction 'full'"),
        ({"shaft": "driven"}, "reaction must be 'axial' with shaft 'driven'"),
        (
            {"reaction": "axial", "imbalance": Imbalance((1e-5, 0.0, 0.0))},
            "imbalance must be None with reaction 'axial'",
        ),
        (
            {"imbalance": Imbalance((0.0, 0.0, 1e-5))},
            "imbalance.static_kg_m must be at right angles",
        ),
        (
            {"imbalance": Imbalance(dynamic_kg_m2=np.diag([0.0, 0.0, 1e-6]))},
            "imbalance.dynamic_kg_m2 must have no moment about the axis",
        ),
        (
            {"imbalance": Imbalance(dynamic_kg_m2=np.diag([1e-6, 1e-6, 0.0]))},
            "imbalance.dynamic_kg_m2 must have no mean moment across the axis",
        ),
    ],
)
def test_what_cannot_be_carried_is_refused_by_name(changes, words):
    with pytest.raises(ParameterError, match=words):
        motor(**changes)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((-1.0,), "mass_kg must be >= 0 kg"),
        ((1.0, (0.0, 0.0)), "com_m"),
        (
            (1.0, (0, 0, 0), np.diag([1.0, 1.0, -1.0])),
            "inertia_kg_m2 must have no principal moment",
        ),
    ],
)
def test_a_stage_that_no_body_is_is_refused(given, words):
    with pytest.raises(ParameterError, match=words):
        RotorStage(*given)
    with pytest.raises(ParameterError, match="axis must be a vector"):
        STAGE.axial_inertia((0.0, 0.0, 0.0))
