"""An arm whose weight something bears (MJCF `gravcomp`): in balance, driven, held, written."""

import dataclasses

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from mime import Coulomb, GraphManager, Payload, RobotArmNode, Servo, parse_mjcf
from mime.control.control_laws import computed_torque, pd_with_gravity_compensation
from mime.control.kinematics import compensating_torques, forward_dynamics, gravity_vector
from mime.nodes.actuation.robot_arm.inverse import commanded_torques

DT = 1e-3
ARM = """<mujoco model="arm"><option gravity="0.4 -0.8 -9.7"/><worldbody>
<body name="base" gravcomp="{0}"><inertial mass="4" pos="0.1 0 0.05" diaginertia="0.2 0.2 0.2"/>
<body name="upper" pos="0 0 0.1" gravcomp="{0}"><joint name="a" axis="0 1 1" {1}/>
  <inertial mass="2" pos="0.1 0 0.3" diaginertia="0.02 0.03 0.02"/>
  <body name="fore" pos="0 0 0.5" gravcomp="{0}"><joint name="b" axis="1 0 0" {1}/>
    <inertial mass="0.7" pos="0 0.05 0.2" diaginertia="0.01 0.01 0.002"/>
  </body></body></body></worldbody><actuator><motor joint="b"/></actuator></mujoco>"""
BY_ACTUATORS = 'actuatorgravcomp="true" actuatorfrcrange="-20 20"'
Q = np.array([0.4, -0.7])
ELASTIC = {
    "rotor_inertia_kg_m2": {"a": 0.05, "b": 0.05},
    "joint_stiffness_n_m_per_rad": {"b": 300.0},
    "joint_stiffness_damping_n_m_s": {"b": 0.3},
}
INSERTED = ELASTIC | {"joint_model": "inserted_body", "inserted_inertia_kg_m2": {"b": 1e-3}}


def tree_of(tmp_path, part=1.0, flag="", base="fixed"):
    (tmp_path / "arm.xml").write_text(ARM.format(part, flag))
    return parse_mjcf(tmp_path / "arm.xml").with_base(base)


def arm_of(tree, **options):
    return RobotArmNode("arm", DT, tree, "fore", **options)


def at_rest(arm, **more):
    """The arm's state at Q."""
    return arm.initial_state() | {"joint_angles": jnp.asarray(Q)} | more


def drift(arm, state, steps=50, **inputs):
    """The largest change of any number of the state."""
    whole = arm.complete_inputs({k: np.asarray(x) for k, x in inputs.items()}, np.float64)

    @jax.jit
    def run(state):
        return jax.lax.fori_loop(0, steps, lambda _, s: arm.update(s, whole, DT), state)

    after = run({name: jnp.asarray(x) for name, x in state.items()})
    moved = [np.max(np.abs(np.asarray(after[k]) - np.asarray(state[k])), initial=0) for k in state]
    return max(moved)


BALANCED = {
    "implicit": {},
    "explicit": {"integrator": "explicit"},
    "midpoint": {"integrator": "midpoint"},
    "gauss4": {"integrator": "gauss4"},
    "rk4": {"integrator": "rk4"},
    "elastic": ELASTIC,
    "elastic, backward Euler": ELASTIC | {"spring_integrator": "backward_euler"},
    "elastic, gauss4": ELASTIC | {"integrator": "gauss4"},
    "inserted body": INSERTED,
    "dry friction": {"friction": Coulomb([1e-9, 1e-9])},
    "servo": {"servo": Servo(200.0, 10.0)},
    "servo, elastic": ELASTIC | {"servo": Servo(200.0, 10.0)},
    "servo, inserted body": INSERTED | {"servo": Servo(200.0, 10.0)},
}


@pytest.mark.small(
    "implicit-fixed", "rk4-floating", "implicit-floating", "inserted body-fixed", "servo-floating"
)
@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("case", BALANCED)
def test_an_arm_in_balance_stays_where_it_is(tmp_path, case, base):
    arm = arm_of(tree_of(tmp_path, base=base), **BALANCED[case])
    state = at_rest(arm)
    inputs = {"desired_joint_angles": Q} if arm.servo is not None else {}
    # Rounding of 10 N·m, over 50 ms: 1e-15 · 500 rad/s² · (0.05 s)², with some room.
    assert drift(arm, state, **inputs) < 1e-13
    bare = dataclasses.replace(arm.tree, compensated_masses=None, compensated_moments=None)
    if arm.servo is None:
        assert drift(arm_of(bare, **BALANCED[case]), state) > 1e-3


@pytest.mark.small("rigid-fixed", "elastic-floating")
@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("options", [{}, ELASTIC, INSERTED], ids=["rigid", "elastic", "inserted"])
def test_where_actuators_bear_it_a_rotor_winds_its_spring_up(tmp_path, options, base):
    arm = arm_of(tree_of(tmp_path, 1.0, BY_ACTUATORS, base), **options)
    state = arm.state_holding(Q)
    if options:
        g = gravity_vector(arm.tree, Q, np.asarray(arm.gravity_world))
        np.testing.assert_allclose(state["joint_deflections"], -g[1:] / 300.0, rtol=1e-14)
    assert drift(arm, state) < 1e-12  # also of the spring


def test_an_elastic_arm_is_held_by_what_is_left_of_its_weight(tmp_path):
    arm = arm_of(tree_of(tmp_path, 0.6), **ELASTIC)
    state = arm.state_holding(Q)
    g = np.asarray(gravity_vector(arm.tree, Q, np.asarray(arm.gravity_world)))
    np.testing.assert_allclose(state["joint_deflections"], -0.4 * g[1:] / 300.0, rtol=1e-14)
    assert drift(arm, state, commanded_joint_torques=0.4 * g) < 1e-12


def test_what_actuators_bear_counts_against_their_limit(tmp_path):
    """At every joint: command and weight together, clipped; without a flag the weight is beside."""
    command = {"commanded_joint_torques": np.array([30.0, -30.0])}
    for flag in (BY_ACTUATORS, 'actuatorfrcrange="-20 20"'):
        arm = arm_of(tree_of(tmp_path, 1.0, flag), saturate_effort=True)
        state, borne = (
            at_rest(arm),
            compensating_torques(arm.tree, Q, np.asarray(arm.gravity_world)),
        )
        given = np.array([20.0, -20.0]) + (0.0 if flag == BY_ACTUATORS else borne)
        fluxes = arm.compute_boundary_fluxes(state, arm.complete_inputs(command, np.float64), DT)
        np.testing.assert_allclose(fluxes["joint_torques_actual"], given, rtol=1e-15)
        expected = forward_dynamics(arm.tree, Q, 0 * Q, given, np.asarray(arm.gravity_world))
        np.testing.assert_allclose(arm.accelerations(state, command)[0], expected, rtol=1e-13)


@pytest.mark.parametrize("flag", ["", BY_ACTUATORS])
def test_a_servo_bears_only_what_is_left_and_within_its_limit(tmp_path, flag):
    tree = tree_of(tmp_path, 0.6, flag)
    g = np.asarray(gravity_vector(tree, Q, np.array(tree.gravity_m_per_s2)))
    goal = {"desired_joint_angles": Q}
    arm = arm_of(tree, servo=Servo(200.0, 10.0))
    state = at_rest(arm)
    after = arm.update(state, arm.complete_inputs(goal, np.float64), DT)
    np.testing.assert_allclose(after["joint_angles"], Q, rtol=0, atol=1e-14)
    torques = g if flag else 0.4 * g  # the actuators' own part counts as the servo's
    np.testing.assert_allclose(after["servo_torques"], torques, rtol=1e-12)
    limited = arm_of(tree, servo=Servo(200.0, 10.0, np.abs(g) / 2))
    after = limited.update(state, limited.complete_inputs(goal, np.float64), DT)
    held = np.allclose(after["joint_angles"], Q, rtol=0, atol=1e-14)
    assert held == (flag == "")


def test_the_limit_of_a_command_is_watched_with_the_weight(tmp_path):
    for base in ("fixed", "floating"):
        arm = arm_of(tree_of(tmp_path, 1.0, BY_ACTUATORS, base))
        read = arm.monitors()["commanded torque"].read
        borne = compensating_torques(arm.tree, Q, np.asarray(arm.gravity_world))[-2:]
        state = at_rest(arm)
        command = jnp.array([1.0, -2.0])
        seen = read(state, {"commanded_joint_torques": command})
        np.testing.assert_allclose(seen, np.abs(command + borne), rtol=1e-14)


@pytest.mark.parametrize("flag", ["", BY_ACTUATORS])
def test_inverse_dynamics_gives_the_command_that_moves_it_so(tmp_path, flag):
    arm = arm_of(tree_of(tmp_path, 0.7, flag), payload=Payload("fore", 0.5, (0, 0, 0.3)))
    qd, qdd = np.array([0.3, -0.5]), np.array([2.0, 1.0])
    command = commanded_torques(arm, *map(jnp.asarray, (Q, qd, qdd)))
    state = at_rest(arm, joint_velocities=jnp.asarray(qd))
    found, _ = arm.accelerations(state, {"commanded_joint_torques": command})
    np.testing.assert_allclose(found, qdd, rtol=1e-12)


def test_controllers_leave_to_the_robot_what_it_bears(tmp_path):
    tree = tree_of(tmp_path, 0.7)
    arm, gravity = arm_of(tree), np.array(tree.gravity_m_per_s2)
    state, none = at_rest(arm), np.zeros(2)
    rest = pd_with_gravity_compensation(tree, Q, none, Q, none, 1.0, 1.0, gravity)
    moving = computed_torque(tree, Q, none, Q, none, [1.0, -2.0], 1.0, 1.0, gravity)
    for command, expected in ((rest, none), (moving, [1.0, -2.0])):
        qdd, _ = arm.accelerations(state, {"commanded_joint_torques": np.asarray(command)})
        np.testing.assert_allclose(qdd, expected, rtol=0, atol=1e-12)


def test_what_is_borne_is_a_parameter_of_each_link_and_single_precision_stays(tmp_path):
    arm = arm_of(tree_of(tmp_path, 0.7))
    entries = arm.named_entries()["link"]
    assert entries["compensated_mass_kg"].leaf == "tree.compensated_masses"
    state = at_rest(arm)

    def speed(masses):
        varied = arm.with_params(**{"tree.compensated_masses": masses})
        return jnp.sum(varied.accelerations(state)[0])

    masses = jnp.asarray(arm.tree.compensated_masses)
    slope = jax.grad(speed)(masses)
    steps = 1e-4 * np.eye(2)
    central = [(speed(masses + s) - speed(masses - s)) / 2e-4 for s in steps]
    np.testing.assert_allclose(slope, central, rtol=1e-9)  # linear: rounding by the step
    with jax.enable_x64(False):
        single = arm_of(tree_of(tmp_path, 0.7))
        after = single.update(single.initial_state(), single.complete_inputs({}, np.float32), DT)
        assert after["joint_velocities"].dtype == jnp.float32


@pytest.mark.parametrize("flag", ["", BY_ACTUATORS])
@pytest.mark.parametrize("options", [{}, ELASTIC], ids=["rigid", "elastic"])
def test_what_is_written_of_a_graph_accelerates_in_mujoco_as_here(tmp_path, options, flag):
    arm = arm_of(
        tree_of(tmp_path, 0.7, flag), payload=Payload("fore", 0.5, (0, 0.1, 0.3)), **options
    )
    graph = GraphManager()
    graph.add_node(arm)
    graph.add_external_input("arm", "commanded_joint_torques")
    graph.compile().to_mjcf(tmp_path / "out.xml")
    words = "the rotor of elastic joint 'b' bears weight (gravcomp): here its link does"
    unsaid = words in (tmp_path / "out.xml").read_text()
    assert unsaid == bool(options and flag)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "out.xml"))
    data = mujoco.MjData(model)
    angles = {"a": Q[0], "b": Q[1], "b_spring": 0.0}
    for joint, angle in angles.items():
        if joint != "b_spring" or options:
            data.qpos[model.joint(joint).qposadr[0]] = angle
    mujoco.mj_forward(model, data)
    state = at_rest(arm)
    qdd, _ = arm.accelerations(state)
    theirs = {joint: data.qacc[model.joint(joint).dofadr[0]] for joint in ("a", "b")}
    theirs["b"] += data.qacc[model.joint("b_spring").dofadr[0]] if options else 0.0
    agree = np.allclose(qdd, [theirs["a"], theirs["b"]], rtol=1e-9)
    assert agree != unsaid
