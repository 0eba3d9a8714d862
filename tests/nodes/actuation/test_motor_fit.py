"""R, L, kt, J and b recovered from one noisy log of voltage, current and speed."""

import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest

from mime.nodes.actuation.motor import MotorNode

NAMES = ("r_ohm", "l_henry", "kt_n_m_per_a", "inertia_kg_m2", "damping_n_m_s")
TRUE = dict(zip(NAMES, (1.2, 2e-3, 0.045, 8e-5, 4e-4), strict=True))
GUESS = dict(zip(NAMES, (3.0, 1e-3, 0.1, 2e-4, 1e-4), strict=True))


@pytest.mark.soak("tests/fitting recovers them by mime.fit")
def test_five_parameters_are_recovered_from_one_noisy_voltage_log():
    node = MotorNode("motor", 1e-3, command_mode="voltage", **TRUE)
    rng = np.random.default_rng(3)
    voltage = jnp.asarray(np.repeat(rng.choice([-6.0, 6.0], 60), 25))  # 1.5 s, switched every 25 ms

    def log(parameters):
        motor = node.with_params(**parameters)

        def step(state, V):
            state = motor.update(state, {"commanded_voltage": V}, 1e-3)
            return state, (state["current"], state["angular_velocity"])

        return jnp.stack(jax.lax.scan(step, motor.initial_state(), voltage)[1])

    sigma = jnp.asarray([[0.05], [0.5]])  # 50 mA and 0.5 rad/s: about 1 % of the largest values
    measured = log(TRUE) + sigma * rng.normal(size=(2, 1500))

    def residual(logs, _):
        parameters = dict(zip(NAMES, jnp.exp(logs), strict=True))
        return (log(parameters) - measured) / sigma

    @jax.jit
    def fit(guess):
        solver = optx.LevenbergMarquardt(rtol=1e-8, atol=1e-8)
        solution = optx.least_squares(residual, solver, guess, max_steps=100)
        jacobian = jax.jacfwd(lambda x: residual(x, None).ravel())(solution.value)
        return solution.value, jnp.linalg.inv(jacobian.T @ jacobian)

    logs, covariance = fit(jnp.log(jnp.asarray([GUESS[name] for name in NAMES])))
    found = dict(zip(NAMES, np.exp(logs), strict=True))
    deviation = np.sqrt(np.diag(covariance))  # of the logarithms: relative errors
    for name, standard_error in zip(NAMES, deviation, strict=True):
        error = abs(found[name] / TRUE[name] - 1)
        assert error < 4 * standard_error, (name, error)  # beyond 4 sigma is no noise
        assert standard_error < 0.01, (name, standard_error)  # and the log does tell the value
