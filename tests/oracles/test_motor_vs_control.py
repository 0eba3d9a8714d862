"""The motor's linear side against python-control."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import control
from mime.nodes.actuation.motor import Gear, MotorNode

MOTORS = {
    "smartmouse": MotorNode("m", 1e-3, 6.58e-4, 0.0787, 5.0, 0.58, 1.2615e-6),
    "oscillating": MotorNode("m", 1e-3, 1e-4, 0.05, 1.0, 0.2, 5e-4),
    "geared": MotorNode(
        "m", 1e-3, 1e-6, 0.01, 2.0, 1e-3, 1e-6, gear=Gear(10.0, output_inertia_kg_m2=1e-4)
    ),
}
MODES = ["torque", "voltage", "velocity"]


@pytest.mark.small("smartmouse-torque", "oscillating-voltage", "geared-velocity")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("motor", MOTORS.values(), ids=list(MOTORS))
def test_poles_step_and_bode_agree_with_python_control(motor, mode):
    system = control.ss(*(np.asarray(matrix) for matrix in motor.state_space(mode)))
    by_size = lambda poles: sorted(poles, key=lambda s: (np.imag(s), -np.real(s)))  # noqa: E731
    np.testing.assert_allclose(by_size(motor.poles(mode)), by_size(system.poles()), rtol=1e-9)

    numerator, denominator = (np.asarray(c) for c in motor.transfer_function(mode))
    slow = 1 / abs(by_size(system.poles())[0])
    frequencies = np.logspace(-3, 3, 61) / slow
    response = motor.frequency_response(frequencies, mode)
    by_space = np.squeeze(system(1j * frequencies))
    by_fraction = np.squeeze(control.tf(numerator, denominator)(1j * frequencies))
    np.testing.assert_allclose(response, by_space, rtol=1e-8)
    np.testing.assert_allclose(response, by_fraction, rtol=1e-10)

    magnitude, phase = motor.bode(frequencies, mode)
    theirs = control.frequency_response(system, frequencies)
    np.testing.assert_allclose(magnitude, np.squeeze(theirs.magnitude), rtol=1e-8)
    np.testing.assert_allclose(phase, np.unwrap(np.squeeze(theirs.phase)), atol=1e-8)

    times = np.linspace(0, 5 * slow, 201)
    step = control.step_response(system, times).outputs.squeeze()
    ours = np.asarray(motor.step_response(times, mode))
    # control steps through the matrix exponential: its error adds up over 200 steps.
    np.testing.assert_allclose(ours, step, atol=1e-9 * np.max(np.abs(step)))


@pytest.mark.small("voltage")
@pytest.mark.parametrize("mode", MODES)
def test_forced_response_to_any_held_input_agrees(mode):
    dt, steps = 2e-3, 300
    node = MotorNode("m", dt, 1e-4, 0.05, 1.0, 0.01, 5e-4, command_mode=mode, integrator="exact")
    rng = np.random.default_rng(1)
    inputs = np.stack([rng.normal(size=steps), 0.01 * rng.normal(size=steps)])

    @jax.jit
    def scan(inputs):
        def step(state, u):
            return node.update(state, {f"commanded_{mode}": u[0], "load_torque": u[1]}, dt), state

        return jax.lax.scan(step, node.initial_state(), inputs)[1]["angular_velocity"]

    plant = control.ss(*(np.asarray(matrix) for matrix in node.state_space(mode, load_input=True)))
    held = control.c2d(plant, dt)
    theirs = control.forced_response(held, dt * np.arange(steps), inputs).outputs.squeeze()
    ours = np.asarray(scan(jnp.asarray(inputs.T)))
    np.testing.assert_allclose(ours, theirs, atol=1e-10 * np.max(np.abs(theirs)))
