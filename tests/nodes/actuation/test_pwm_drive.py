"""The PWM drive: mean voltage, refusals, and a motor behind it in a graph."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mime.core.problem import ParameterError
from mime.nodes.actuation.motor import MotorNode
from mime.nodes.actuation.pwm_drive import PwmDriveNode
from mime.running.graph import GraphManager


def test_metadata_is_whole():
    assert PwmDriveNode("drive", 1e-6, 24.0, 2e4).validate_mime_consistency() == []


@pytest.mark.parametrize("switching", ["unipolar", "bipolar"])
def test_the_mean_over_a_period_is_the_command_whatever_the_duty(switching):
    drive = PwmDriveNode("drive", 3e-6, 24.0, 2e4, switching=switching)  # 16.67 steps a period

    def mean(V):
        def step(state, _):
            state = drive.update(state, {"commanded_voltage": V}, 3e-6)
            flux = drive.compute_boundary_fluxes(state, {"commanded_voltage": V}, 3e-6)
            return state, flux["terminal_voltage"]

        return jnp.mean(jax.lax.scan(step, drive.initial_state(), length=50)[1])  # 3 periods

    commands = np.array([-30.0, -24.0, -7.1, 0.0, 0.001, 11.9, 24.0, 30.0])
    means = jax.jit(jax.vmap(mean))(commands)
    np.testing.assert_allclose(means, np.clip(commands, -24, 24), atol=1e-11)


def test_a_step_too_coarse_for_the_period_is_refused():
    with pytest.raises(ParameterError, match=r"timestep must be <= 5e-06 s.*got 1e-05"):
        PwmDriveNode("drive", 1e-5, 24.0, 2e4)
    with pytest.raises(ParameterError, match="switching must be one of 'unipolar', 'bipolar', g"):
        PwmDriveNode("drive", 1e-6, 24.0, 2e4, switching="tri")


def test_a_switched_motor_turns_as_one_driven_by_the_mean_voltage():
    drive = PwmDriveNode("drive", 2.5e-6, 24.0, 2e4)  # 20 steps a period, 5 of them on
    motor = MotorNode(
        "motor", 2.5e-6, 1e-4, 0.05, 1.0, 1e-3, 5e-4, command_mode="voltage", integrator="exact"
    )
    graph = GraphManager()
    graph.add_node(drive)
    graph.add_node(motor)
    graph.add_edge("drive", "motor", "terminal_voltage", "commanded_voltage")
    graph.add_external_input("drive", "commanded_voltage")
    simulation = graph.compile()
    inputs = {"drive": {"commanded_voltage": 6.0}}
    recorded = simulation.run(steps=8000, inputs=inputs)
    speed = recorded["motor"]["rotor_angular_velocity"][-1]
    smooth = motor.step_response(np.array([0.02]), amplitude=6.0)[0]
    # Pulses that start at t = 0 are (1 - D) T / 2 = 19 us ahead of their mean; the speed rises by
    # about 0.6 rad/s a ms then, on 21 rad/s.
    assert float(speed) == pytest.approx(float(smooth), rel=2e-3)
    current = recorded["motor"]["motor_torque"][-20:] / 0.05
    assert np.ptp(current) == pytest.approx(
        24 * 0.25 * 0.75 * 5e-5 / 1e-3, rel=0.02
    )  # V D (1-D) T/L
