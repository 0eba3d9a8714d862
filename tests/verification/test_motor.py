"""The motor's independent evidence: closed forms in NumPy beside `MotorNode.update`, step by step.

`mime verify 100-118` measures the same and more, each with a deliberate fault.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mime.nodes.actuation.motor import MotorNode, compose_pose
from mime.running.graph import GraphManager

J, B, K, R, L = 1e-4, 5e-4, 0.05, 1.0, 1e-3
DT = 1e-4
IDENTITY = np.array([0.0, 0, 0, 1, 0, 0, 0])


def motor(dt=DT, **changes):
    values = {"inertia_kg_m2": J, "kt_n_m_per_a": K, "r_ohm": R, "l_henry": L, "damping_n_m_s": B}
    return MotorNode("motor", dt, **values | changes)


def end(node, inputs, steps):
    """The state after so many steps, in one loop."""

    def step(_, state):
        return node.update(state, inputs, node.timestep)

    return jax.jit(lambda: jax.lax.fori_loop(0, steps, step, node.initial_state()))()


def test_ver100_torque_step_response():
    """w(t) = tau/b (1 - e^{-b t/J})"""
    node, tau, steps = motor(), 0.01, 10_000
    inputs = {
        "commanded_torque": jnp.asarray(tau),
        "commanded_voltage": jnp.asarray(0.0),
        "load_torque": jnp.asarray(0.0),
        "parent_pose_world": jnp.asarray(IDENTITY),
    }
    state, speeds, update = node.initial_state(), [], jax.jit(node.update)
    for _ in range(steps):
        state = update(state, inputs, DT)
        speeds.append(state["angular_velocity"])
    n = np.arange(steps)
    w_inf = tau / B

    def relative_rms(t):
        exact = w_inf * (1 - np.exp(-B * t / J))
        return np.sqrt(np.mean((np.array(speeds) - exact) ** 2)) / w_inf

    # Required: 5 %. Sample n is the speed after the step, at t_{n+1}; the grid t_n is one step off.
    assert relative_rms(n * DT) == pytest.approx(1.25e-4, rel=0.01)
    assert relative_rms((n + 1) * DT) == pytest.approx(5.58e-5, rel=0.01)
    discrete = w_inf * (1 - (1 + B * DT / J) ** -(n + 1.0))
    np.testing.assert_allclose(speeds, discrete, rtol=1e-12)  # 10,000 roundings of 1e-16


def test_steady_speed_in_voltage_mode_is_v_kt_over_kt_ke_plus_r_b():
    state = end(motor(), {"commanded_voltage": 5.0}, 10_000)
    assert state["angular_velocity"] == pytest.approx(5 * K / (K * K + R * B), rel=1e-9)


def test_velocity_mode_with_default_gains_is_within_one_per_cent_after_five_seconds():
    state = end(motor(1e-3, damping_n_m_s=0.01), {"commanded_velocity": 10.0}, 5000)
    assert state["angular_velocity"] == pytest.approx(10.0, rel=0.01)


def test_a_quarter_turn_about_z_moves_the_tool_from_x_to_y():
    tool = np.array([0.1, 0, 0, 1, 0, 0, 0])
    parent = np.array([1.0, 2, 3, 1, 0, 0, 0])
    half = np.sqrt(0.5)
    found = compose_pose(parent, np.array([0.0, 0, 1]), np.pi / 2, tool)
    np.testing.assert_allclose(found, [1, 2.1, 3, half, 0, 0, half], atol=1e-15)


def test_update_can_be_jitted_differentiated_and_batched():
    node = motor()

    def speed(torque):
        return node.update(node.initial_state(), {"commanded_torque": torque}, DT)[
            "angular_velocity"
        ]

    exact = DT / (J + DT * B)  # per N·m, from the formula of one step
    assert jax.jit(speed)(0.01) == pytest.approx(0.01 * exact, rel=1e-14)
    assert jax.grad(speed)(0.01) == pytest.approx(exact, rel=1e-14)
    torques = jnp.array([0.01, 0.02, 0.03])
    np.testing.assert_allclose(jax.vmap(speed)(torques), torques * exact, rtol=1e-14)


def test_a_graph_takes_one_step_with_torque_and_parent_pose_from_outside():
    graph = GraphManager()
    graph.add_node(motor())
    graph.add_external_input("motor", "commanded_torque")
    graph.add_external_input("motor", "parent_pose_world")
    pose = np.array([1.0, 2, 3, 1, 0, 0, 0])
    graph.step({"motor": {"commanded_torque": 0.01, "parent_pose_world": pose}})
    state = graph.get_node_state("motor")
    assert state["angular_velocity"] == pytest.approx(0.01 * DT / (J + DT * B), rel=1e-14)
