"""Controllers against Pinocchio, against the linear error that they promise, and in a graph."""

from importlib import metadata

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import mime.control.kinematics as kin
from mime import DivergenceError, GraphManager, Input, Node, Output, ParameterError
from mime.control.control_laws import (
    computed_torque,
    pd_controller,
    pd_with_gravity_compensation,
    pi_controller,
)
from mime.models import model_path
from mime.nodes.control.joint_controllers import ComputedTorqueNode, JointPDNode
from mime.nodes.control.joint_trajectory import JointTrajectoryNode

GRAVITY = np.array([0.0, 0.0, -9.80665])
HOME = np.array([-0.02763, 0.49873, -1.51875, 1.54673, 1.55147, 0.0])
DESKTOP = kin.parse_urdf(model_path("desktop_arm_6axis"))
PLANAR = kin.parse_urdf(model_path("planar_arm_3link"))
DT = 1e-3
HOLD = kin.gravity_vector(DESKTOP, np.zeros(6), GRAVITY)


class Arm(Node):
    """The least arm: M q̈ + c + g = tau, semi-implicit Euler."""

    tree: kin.KinematicTree
    q_start: tuple = eqx.field(static=True)

    def boundary_input_spec(self):
        return {"torques": Input((self.tree.num_joints,), "N·m", coupling="additive")}

    def boundary_flux_spec(self):
        return self.state_spec()

    def state_spec(self):
        n = (self.tree.num_joints,)
        return {"joint_angles": Output(n, "rad"), "joint_velocities": Output(n, "rad/s")}

    def initial_state(self):
        return {**super().initial_state(), "joint_angles": jnp.array(self.q_start)}

    def update(self, state, boundary_inputs, dt):
        q, qd = state["joint_angles"], state["joint_velocities"]
        qdd = kin.forward_dynamics(self.tree, q, qd, boundary_inputs["torques"], GRAVITY)
        return {"joint_angles": q + dt * (qd + dt * qdd), "joint_velocities": qd + dt * qdd}

    def compute_boundary_fluxes(self, state, boundary_inputs, dt):
        return state


def closed_loop(controller, q_start, plan=None):
    graph = GraphManager()
    graph.add_node(Arm("arm", DT, controller.tree, tuple(map(float, q_start))))
    graph.add_node(controller)
    for name in ("joint_angles", "joint_velocities"):
        graph.add_edge("arm", controller.name, name, name)
    graph.add_edge(controller.name, "arm", "joint_torques", "torques", delay=True)
    if plan is None:
        graph.add_external_input(controller.name, "desired_joint_angles")
    else:
        graph.add_node(plan)
        for name in set(plan.boundary_flux_spec()) & set(controller.boundary_input_spec()):
            graph.add_edge(plan.name, controller.name, name, name)
    return graph.compile()


def test_torques_match_pinocchio():
    (file,) = (f for f in metadata.files("example-robot-data") if f.name == "ur5_robot.urdf")
    tree = kin.parse_urdf(file.locate())
    model = pin.buildModelFromUrdf(tree.source)
    model.gravity.linear = GRAVITY
    data = model.createData()
    rng = np.random.default_rng(0)
    q, qd, q_des, qd_des, qdd_des, kp, kd = rng.normal(size=(7, 6))
    kp, kd = np.abs(kp), np.abs(kd)
    pd = kp * (q_des - q) + kd * (qd_des - qd)
    M = pin.crba(model, data, q)
    M = np.triu(M) + np.triu(M, 1).T
    expected = M @ (qdd_des + pd) + pin.nonLinearEffects(model, data, q, qd)
    tau = computed_torque(tree, q, qd, q_des, qd_des, qdd_des, kp, kd, GRAVITY)
    np.testing.assert_allclose(tau, expected, rtol=1e-10)  # some hundred products of 1e-16 each
    tau = pd_with_gravity_compensation(tree, q, qd, q_des, qd_des, kp, kd, GRAVITY)
    gravity = pin.computeGeneralizedGravity(model, data, q)
    np.testing.assert_allclose(tau, pd + gravity, rtol=1e-10)


def test_at_its_target_an_arm_with_gravity_compensation_does_not_move():
    zero = np.zeros(6)
    tau = pd_with_gravity_compensation(DESKTOP, HOME, zero, HOME, zero, 5, 1, GRAVITY)
    qdd = kin.forward_dynamics(DESKTOP, HOME, zero, tau, GRAVITY)
    np.testing.assert_allclose(qdd, 0, atol=1e-10)  # cond(M) of 1e5 on 1e-16


def test_pd_with_gravity_compensation_settles_on_the_target_and_without_it_sags():
    target = np.array([0.4, -0.3, 0.5])
    ends = {}
    for compensated in (True, False):
        controller = JointPDNode(
            "pd", DT, PLANAR, [60, 40, 20], [15, 8, 2], gravity_compensation=compensated
        )
        simulation = closed_loop(controller, (0.0, 0.0, 0.0))
        run = simulation.run(duration=8.0, inputs={"pd": {"desired_joint_angles": target}})
        ends[compensated] = run["arm"]["joint_angles"][-1]
    # The slowest pole is near -2 per second: e^-16.
    np.testing.assert_allclose(ends[True], target, atol=1e-5)
    sag = kin.gravity_vector(PLANAR, np.asarray(ends[False]), GRAVITY) / [60, 40, 20]
    np.testing.assert_allclose(target - ends[False], sag, atol=1e-5)


@pytest.mark.slow
def test_computed_torque_makes_the_error_of_each_joint_the_linear_one_it_promises():
    kp, kd, steps = 400.0, 30.0, 300
    start = HOME + np.array([0.3, -0.2, 0.2, 0.4, -0.3, 1.0])
    simulation = closed_loop(ComputedTorqueNode("ct", DT, DESKTOP, kp, kd), start)
    inputs = {"ct": {"desired_joint_angles": HOME}}
    run = simulation.run(duration=(steps + 1) * DT, inputs=inputs)
    q = np.asarray(run["arm"]["joint_angles"])
    # The torque is held over a step: [e, ė] is multiplied by this at each one.
    step = np.array([[1 - DT * DT * kp, DT - DT * DT * kd], [-DT * kp, 1 - DT * kd]])
    first = np.stack([q[0] - HOME, np.asarray(run["arm"]["joint_velocities"])[0]])
    expected = np.linalg.matrix_power(step, steps) @ first
    # M⁻¹M loses cond(M) = 1e5 digits of 1e-16, in each of 300 steps.
    np.testing.assert_allclose(q[steps] - HOME, expected[0], atol=1e-9)
    assert np.max(np.abs(expected[0])) < 0.1 * np.max(np.abs(first[0]))


def test_the_held_torque_is_stable_up_to_the_limit_that_the_meta_states():
    kd = 500.0
    limit = (4 - 2 * kd * DT) / DT**2
    inputs = {"ct": {"desired_joint_angles": np.zeros(3)}}
    stable, unstable = (
        closed_loop(ComputedTorqueNode("ct", DT, PLANAR, factor * limit, kd), (1e-6, 0.0, 0.0))
        for factor in (0.98, 1.02)
    )
    # The first step is taken without torque: it falls by g dt², about 1e-5 rad.
    assert np.max(np.abs(stable.run(duration=0.5, inputs=inputs)["arm"]["joint_angles"])) < 1e-3
    try:
        left = unstable.run(duration=0.5, inputs=inputs)
    except DivergenceError as error:
        left = error.trajectory
    assert np.max(np.abs(left["arm"]["joint_angles"])) > 1


def test_an_arm_follows_an_s_curve_trajectory_by_computed_torque():
    plan = JointTrajectoryNode("plan", DT, [np.zeros(6), 0.9 * HOME], 1.0, 4.0, 20.0)
    simulation = closed_loop(ComputedTorqueNode("ct", DT, DESKTOP, 400, 40), np.zeros(6), plan)
    run = simulation.run(duration=2.5)
    q = np.asarray(run["arm"]["joint_angles"])
    time = DT * np.arange(1, len(q) + 1)
    desired = np.asarray(jax.jit(jax.vmap(lambda t: plan.trajectory(t).q))(time))
    # The first step, without torque, is a blow of g dt = 0.01 rad/s and up to 0.1 on light joints;
    # it decays at 20 per second, from at most 0.1/(20 e).
    assert np.max(np.abs(q - desired)) < 5e-3
    np.testing.assert_allclose(q[-1], 0.9 * HOME, atol=1e-5)


def test_torques_are_clipped_to_the_limits_and_to_those_of_the_urdf():
    far = {"desired_joint_angles": np.full(6, 100.0)}
    free = JointPDNode("pd", DT, DESKTOP, 100, 1)
    limits = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.5])
    limited = JointPDNode("pd", DT, DESKTOP, 100, 1, torque_limits_n_m=limits)
    tree = eqx.tree_at(lambda t: t.effort_limits, DESKTOP, np.array([7.0, np.inf] * 3))
    effort = ComputedTorqueNode("ct", DT, tree, 1e6, 1, saturate_effort=True)
    assert np.all(free.compute_boundary_fluxes({}, far, DT)["joint_torques"] > 9000)
    torques = limited.compute_boundary_fluxes({}, far, DT)["joint_torques"]
    np.testing.assert_array_equal(torques, limits)
    torques = effort.compute_boundary_fluxes({}, far, DT)["joint_torques"]
    assert np.all(np.abs(torques[::2]) == 7.0)
    assert np.all(np.isfinite(torques))
    assert np.max(np.abs(torques)) > 100


@pytest.mark.parametrize("kind", [JointPDNode, ComputedTorqueNode])
def test_controllers_are_complete_nodes_built_from_a_path_or_a_tree(kind):
    node = kind("control", DT, model_path("desktop_arm_6axis"), 10, [1, 1, 1, 1, 1, 1])
    assert node.validate_mime_consistency() == []
    assert node.params["tree"].num_joints == node.num_joints == 6
    heavier = node.with_params(**{"tree.masses": 2 * DESKTOP.masses})
    tau = [n.compute_boundary_fluxes({}, {}, DT)["joint_torques"] for n in (node, heavier)]
    assert not np.allclose(tau[0], tau[1])
    np.testing.assert_allclose(tau[0], HOLD, atol=1e-12)


@pytest.mark.parametrize("kind", [JointPDNode, ComputedTorqueNode])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kp": [1.0, 2.0], "kd": 1.0}, r"kp must be one number or one for each of 6 joints"),
        ({"kp": 1.0, "kd": -1.0}, "kd must be >= 0"),
        ({"kp": 1.0, "kd": 1.0, "torque_limits_n_m": 0.0}, r"torque_limits_n_m must be > 0 N·m"),
        ({"kp": 1.0, "kd": 1.0, "gravity_world": [0.0, 9.81]}, r"must have shape \(3,\)"),
    ],
)
def test_impossible_controllers_are_refused(kind, arguments, message):
    # Where jaxtyping is on it sees a wrong shape of a field first.
    with pytest.raises((ParameterError, TypeError), match=f"{message}|type"):
        kind("control", DT, DESKTOP, **arguments)


def test_angles_of_another_arm_are_refused():
    zero = np.zeros(3)
    with pytest.raises(ValueError, match=r"6 joints, so q must have shape \(6,\), got \(3,\)"):
        pd_with_gravity_compensation(DESKTOP, zero, zero, zero, zero, 1, 1)
    with pytest.raises(ValueError, match="6 joints"):
        computed_torque(DESKTOP, zero, zero, zero, zero, zero, 1, 1)


def test_lists_and_integers_are_angles_and_gains_too():
    tau = pd_controller([0, 0], [0, 0], [1, 2], [0, 0], 3, [1, 1])
    np.testing.assert_array_equal(tau, [3.0, 6.0])
    zero = [0] * 6
    tau = computed_torque(DESKTOP, zero, zero, zero, zero, zero, 1, 1, [0, 0, -9.80665])
    np.testing.assert_allclose(tau, HOLD, atol=1e-12)


def test_precision_is_that_of_the_angles(precision):
    x = jnp.ones(6, precision)
    tau = computed_torque(DESKTOP, x, x, x, x, x, 2.0, np.ones(6), GRAVITY)
    assert tau.dtype == precision
    node = JointPDNode("pd", DT, DESKTOP, 1.0, 1.0)
    assert node.compute_boundary_fluxes({}, {}, DT)["joint_torques"].dtype == precision


def test_the_final_error_can_be_differentiated_by_the_gains():
    def final_error(kp):
        controller = ComputedTorqueNode("ct", DT, PLANAR, kp, 20.0)
        simulation = closed_loop(controller, (0.5, 0.0, 0.0))
        inputs = {"ct": {"desired_joint_angles": np.zeros(3)}}
        state, _ = simulation.rollout(simulation.init_state(), inputs, 50)
        leaves = [x for x in jax.tree.leaves(state) if x.shape == (3,)]
        return sum(jnp.sum(x**2) for x in leaves[:1])

    value = jax.jit(final_error)
    central = (value(100.1) - value(99.9)) / 0.2
    # Differences of 0.1 in 100 err by 1e-6 times the curvature.
    np.testing.assert_allclose(jax.jit(jax.grad(final_error))(100.0), central, rtol=1e-5)
    assert central != 0


def test_the_pi_controller_integrates_first_and_stops_at_its_limit():
    u, integral = pi_controller(2.0, 1.0, 3.0, 5.0, 0.1)
    assert (float(u), float(integral)) == pytest.approx((3 * 2 + 5 * 1.2, 1.2))
    u, integral = pi_controller(2.0, 1.0, 3.0, 5.0, 0.1, limit=4.0)
    assert (float(u), float(integral)) == (4.0, 1.0)
    # Out of the limit again it may always integrate.
    u, integral = pi_controller(-1.0, 1.0, 3.0, 5.0, 0.1, limit=1.0)
    assert (float(u), float(integral)) == pytest.approx((1.0, 0.9))


def test_anti_windup_shortens_the_overshoot_of_a_limited_integrator():
    def overshoot(limit_known):
        x, integral, highest = 0.0, 0.0, 0.0
        for _ in range(400):
            limit = 0.5 if limit_known else None
            u, integral = pi_controller(1.0 - x, float(integral), 4.0, 4.0, 0.02, limit)
            x += 0.02 * float(np.clip(u, -0.5, 0.5))
            highest = max(highest, x)
        return highest - 1.0

    assert overshoot(True) < 0.5 * overshoot(False)
