"""An arm whose drives move several joints: rotors, friction, servos and limits at the drives."""

import dataclasses

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

import mime
from mime import Coulomb, GraphManager, RobotArmNode, Servo
from mime.control.kinematics import Actuator, actuator_torques, potential_energy
from mime.core.problem import ParameterError
from mime.models import model_path
from mime.nodes.actuation.robot_arm.inverse import commanded_torques
from tree_dynamics import mass_and_bias

ARM = dataclasses.replace(
    mime.parse_urdf(model_path("planar_arm_3link")),
    velocity_limits=np.full(3, np.inf),
    effort_limits=np.full(3, np.inf),
)
GRAVITY = np.array([0.0, 0.0, -9.80665])
T = np.array([[40.0, 0.0, 0.0], [0.0, 50.0, 25.0], [0.0, 30.0, -15.0]])
"""Joints 2 and 3 hang on a differential."""
C = T / np.diag(T)[:, None]
J = np.array([2e-5, 1e-5, 3e-5])
F, DRY = np.array([0.3, 0.2, 0.1]), np.array([0.5, 0.4, 0.3])
DT = 1e-3
Q, QD = np.array([0.4, -0.7, 0.5]), np.array([0.6, -0.3, 0.8])


def node(**options):
    options = {"rotor_inertia_kg_m2": J, "transmission": T, "joint_friction_n_m_s": F} | options
    tip = ARM.link_names[-1]
    return RobotArmNode("arm", options.pop("timestep", DT), ARM, tip, **options)


def run(arm, steps, state, driven="commanded_joint_torques", value=None):
    graph = GraphManager()
    graph.add_node(arm)
    graph.add_external_input("arm", driven)
    inputs = {"arm": {driven: np.zeros(3) if value is None else np.asarray(value)}}
    simulation = graph.compile()
    names = ("joint_angles", "joint_velocities")
    state = dict(zip(names, state, strict=True))
    ran = simulation.run(steps=steps, inputs=inputs, initial_state={"arm": state}, progress=False)
    assert simulation.backend.native
    return {name: np.asarray(ran["arm"][name], float) for name in arm.boundary_flux_spec()}


def mass(q):
    M, _ = mass_and_bias(ARM, q, np.zeros(3), GRAVITY)
    return M + T.T @ np.diag(J) @ T


def acceleration(q, qd, tau):
    M, bias = mass_and_bias(ARM, q, qd, GRAVITY)
    M = M + T.T @ np.diag(J) @ T
    return np.linalg.solve(M, tau - C.T @ (F * (C @ qd)) - bias)


def test_a_swing_is_scipys_solution_of_the_equations_with_rotors_and_friction_at_the_drives():
    tau = np.array([2.0, -1.0, 0.5])
    arm = node(integrator="gauss4", joint_limit_override=[[-9.0, 9.0]] * 3)
    found = run(arm, 300, (Q, QD), value=tau)
    exact = solve_ivp(
        lambda _, y: np.concatenate([y[3:], acceleration(y[:3], y[3:], tau)]),
        (0.0, 300 * DT), np.concatenate([Q, QD]), rtol=1e-11, atol=1e-11, method="DOP853",
    ).y[:, -1]  # fmt: skip
    # fourth order: 1e-12 of a swing of 1 s, some hundred times its derivatives
    np.testing.assert_allclose(found["joint_angles"][-1], exact[:3], rtol=0, atol=1e-8)
    np.testing.assert_allclose(found["motor_angles"][-1], T @ exact[:3], rtol=0, atol=1e-6)


def test_energy_of_a_free_arm_with_coupled_rotors_stays():
    arm = node(integrator="gauss4", joint_friction_n_m_s=np.zeros(3),
               joint_limit_override=[[-99.0, 99.0]] * 3)  # fmt: skip
    found = run(arm, 1000, (Q, QD))

    def energy(k):
        q, qd = found["joint_angles"][k], found["joint_velocities"][k]
        return 0.5 * qd @ mass(q) @ qd + float(potential_energy(ARM, q, GRAVITY))

    drift = [energy(k) - energy(0) for k in (100, 500, 999)]
    np.testing.assert_allclose(drift, 0.0, atol=1e-6)  # J; the scheme's error is bounded


@pytest.mark.parametrize("integrator", ["implicit", "explicit"])
def test_a_step_takes_viscous_friction_at_the_drives(integrator):
    found = run(node(integrator=integrator), 1, (Q, QD))
    M, bias = mass_and_bias(ARM, Q, QD, GRAVITY)
    M, rubbed = mass(Q), C.T @ np.diag(F) @ C
    H = M + DT * rubbed if integrator == "implicit" else M
    expected = QD + DT * np.linalg.solve(H, -bias - rubbed @ QD)
    # ten products of 1e-16
    np.testing.assert_allclose(found["joint_velocities"][-1], expected, rtol=1e-13)


def test_dry_friction_of_the_drives_is_the_minimum_that_scipy_finds():
    """min ½ (v - v_free)ᵀ H (v - v_free) + dt Σ tau_c |C v|_i, one drive sticking."""
    qd = np.array([0.6, -0.05, 0.1001])  # drive 2 turns by 5e-5 rad/s
    found = run(node(friction=Coulomb(DRY)), 1, (Q, qd))["joint_velocities"][-1]
    _, bias = mass_and_bias(ARM, Q, qd, GRAVITY)
    rubbed = C.T @ np.diag(F) @ C
    H = mass(Q) + DT * rubbed
    free = qd + DT * np.linalg.solve(H, -bias - rubbed @ qd)

    def cost(v):
        return 0.5 * (v - free) @ H @ (v - free) + DT * DRY @ np.abs(C @ v)

    best = minimize(cost, found + 1e-3, method="Nelder-Mead",
                    options={"xatol": 1e-12, "fatol": 1e-18, "maxiter": 4000})  # fmt: skip
    assert cost(found) <= best.fun + 1e-15
    np.testing.assert_allclose(found, best.x, rtol=0, atol=1e-6)  # of a search without slopes


def test_drives_at_rest_hold_the_joints_until_they_are_pushed_harder_than_they_rub():
    floor = node(friction=Coulomb(DRY), gravity_world=np.zeros(3))
    most = C.T @ (0.99 * DRY * [1, 1, -1])  # each drive just below its friction
    held = run(floor, 20, (Q, 0 * QD), value=most)
    np.testing.assert_array_equal(held["joint_velocities"], 0.0)
    torques = np.linalg.solve(T.T, most)
    np.testing.assert_allclose(held["motor_torques"][-1], torques, rtol=1e-14)
    assert np.any(run(floor, 20, (Q, 0 * QD), value=most * 1.03)["joint_velocities"][-1] != 0.0)


def test_saturation_and_monitors_are_those_of_the_drives():
    limits = np.array([5.0, 2.0, 3.0])
    tree = dataclasses.replace(ARM.with_drives(J, T), effort_limits=limits)
    arm = RobotArmNode("arm", DT, tree, tree.link_names[-1], saturate_effort=True)
    found = run(arm, 1, (Q, QD), value=[100.0, 100.0, 100.0])
    wanted = np.linalg.solve(C.T, [100.0, 100.0, 100.0])
    given = np.clip(wanted, -limits, limits)
    np.testing.assert_allclose(found["motor_torques"][-1], given / np.diag(T), rtol=1e-14)
    read = RobotArmNode("arm", DT, tree, tree.link_names[-1]).monitors()["commanded torque"]
    shown = read.read({}, {"commanded_joint_torques": jnp.asarray([100.0, 100.0, 100.0])})
    np.testing.assert_allclose(shown, np.abs(wanted), rtol=1e-6)  # single precision outside


def test_a_servo_sits_at_the_drives_and_keeps_their_limits():
    kp, kd, most = np.array([300.0, 200.0, 100.0]), np.array([20.0, 10.0, 5.0]), 4.0
    goal = np.array([0.1, -0.2, 0.3])
    servo = Servo(kp=kp, kd=kd, torque_limits_n_m=np.full(3, most), limit_speed=False)
    found = run(node(servo=servo), 400, (Q, 0 * QD), "desired_joint_angles", goal)
    drives = found["motor_torques"] * np.diag(T)
    assert np.abs(drives).max() <= most * (1 + 1e-12)
    assert np.abs(drives[0]).max() >= most * (1 - 1e-12)
    np.testing.assert_allclose(found["servo_torques"], drives @ C, rtol=0, atol=1e-12)
    loose = Servo(kp=kp, kd=kd, limit_torque=False, limit_speed=False)
    settled = run(node(servo=loose), 3000, (Q, 0 * QD), "desired_joint_angles", goal)
    np.testing.assert_allclose(settled["joint_angles"][-1], goal, atol=1e-4)  # it creeps in


def test_mujoco_has_servo_and_friction_at_the_drives_of_the_written_graph(tmp_path):
    kp, kd, most = np.array([300.0, 200.0, 100.0]), np.array([20.0, 10.0, 5.0]), 40.0
    servo = Servo(kp, kd, torque_limits_n_m=np.full(3, most), gravity_compensation=False)
    spring = [900.0, np.inf, np.inf]
    arm = node(servo=servo, friction=Coulomb(DRY), joint_stiffness_n_m_per_rad=spring)
    graph = GraphManager()
    graph.add_node(arm)
    graph.compile().to_mjcf(tmp_path / "arm.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    data = mujoco.MjData(model)
    u = np.array([0.1, 0.5, -0.3])
    names = [model.joint(j).name for j in range(4)]
    drives = [names.index(name) for name in ARM.joint_names]
    data.qpos[drives], data.qvel[drives], data.ctrl[:] = Q, QD, u
    mujoco.mj_forward(model, data)
    tau = np.clip(kp * (u - C @ Q) - kd * (C @ QD), -most, most)
    np.testing.assert_allclose(data.qfrc_actuator[drives], C.T @ tau, rtol=1e-13)
    np.testing.assert_allclose(data.qfrc_damper[drives], -C.T @ (F * (C @ QD)), rtol=1e-13)
    assert {*model.dof_frictionloss, *model.tendon_frictionloss} == {0.0, *DRY}
    u_elsewhere = actuator_torques(
        dataclasses.replace(ARM.with_drives(J, T), actuators=(SERVO_OF_ELBOW,)), u[1:2], Q, QD
    )
    np.testing.assert_allclose(u_elsewhere, C[1] * (200.0 * (u[1] - C[1] @ Q)), rtol=1e-14)


SERVO_OF_ELBOW = Actuator(
    "servo", "position", "elbow", 1.0, (200.0, 0.0, 0.0), (0.0, -200.0, 0.0), at_drive=True
)


def test_inverse_and_forward_dynamics_are_each_others_inverse():
    arm = node(friction=Coulomb(DRY))
    with jax.enable_x64(True):
        q, qd, qdd = map(jnp.asarray, (Q, QD, np.array([1.0, -2.0, 3.0])))
        tau = commanded_torques(arm, q, qd, qdd)
        dry = C.T @ (DRY * np.sign(C @ QD))
        found = arm.accelerations(
            {"joint_angles": q, "joint_velocities": qd}, {"commanded_joint_torques": tau - dry}
        )[0]
        np.testing.assert_allclose(found, qdd, rtol=0, atol=1e-12)


def test_an_elastic_joint_beside_shared_drives_is_the_same_arm_when_its_spring_is_stiff():
    q0, command = np.zeros(3), np.array([1.0, 0.5, -0.2])
    flat = {"gravity_world": np.zeros(3), "friction": Coulomb(0.1 * DRY)}
    rigid = run(node(**flat), 200, (q0, q0), value=command)
    spring = np.array([1e6, np.inf, np.inf])
    soft = node(joint_stiffness_n_m_per_rad=spring, spring_integrator="backward_euler", **flat)
    found = run(soft, 200, (q0, q0), value=command)
    # the spring yields by 1e-6 rad
    np.testing.assert_allclose(found["joint_angles"], rigid["joint_angles"], rtol=0, atol=2e-5)
    np.testing.assert_allclose(found["motor_angles"], found["joint_angles"] @ T.T, rtol=1e-12)


def test_single_precision_and_a_floating_base_run():
    with jax.enable_x64(False):
        arm = node(friction=Coulomb(DRY), base="floating")
        state = arm.initial_state() | {"joint_angles": jnp.asarray(Q, jnp.float32)}
        new = jax.jit(lambda s: arm.update(s, arm.complete_inputs({}, jnp.float32), DT))(state)
        assert {x.dtype for x in jax.tree.leaves(new)} == {np.dtype(np.float32)}
        assert all(bool(jnp.all(jnp.isfinite(x))) for x in jax.tree.leaves(new))


def test_gradients_of_a_step_by_friction_and_rotors_are_central_differences():
    arm = node(friction=Coulomb(DRY))
    with jax.enable_x64(True):
        state = {"joint_angles": jnp.asarray(Q), "joint_velocities": jnp.asarray(QD)}
        inputs = arm.complete_inputs({}, jnp.float64)

        def speed(f, c, J):
            tree = arm.tree.with_drives(J)
            changed = mime.core.parameters.with_fields(
                arm, joint_friction_n_m_s=f, friction=Coulomb(c), tree=tree
            )
            return jnp.sum(changed.update(state, inputs, DT)["joint_velocities"])

        at = [jnp.asarray(x) for x in (F, DRY, J)]
        slopes = jax.grad(speed, argnums=(0, 1, 2))(*at)
        for k, h in enumerate((1e-4, 1e-4, 1e-9)):
            step = jnp.zeros(3).at[1].set(h)
            up, down = ([x + s * step if i == k else x for i, x in enumerate(at)] for s in (1, -1))
            slope = (speed(*up) - speed(*down)) / (2 * h)
            np.testing.assert_allclose(slopes[k][1], slope, rtol=1e-5)  # rounding over the step


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gear_ratio": np.ones(3)}, "gear_ratio cannot be given beside transmission"),
        ({"transmission": np.ones((3, 3))}, "transmission must be invertible; the motors"),
        ({"transmission": {"ankle": 3.0}}, "transmission names no motor 'ankle'"),
        (
            {"joint_stiffness_n_m_per_rad": [np.inf, 1e4, np.inf]},
            "joint_stiffness_n_m_per_rad must be inf at joint",
        ),
        (
            {
                "joint_stiffness_n_m_per_rad": [1e4, np.inf, np.inf],
                "joint_model": "inserted_body",
                "inserted_inertia_kg_m2": np.full(3, 1e-3),
            },
            "'inserted_body' needs a drive for each joint",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(options, words):
    with pytest.raises(ParameterError) as refusal:
        node(**options)
    assert words in str(refusal.value)
