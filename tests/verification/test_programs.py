"""The rollout of the benchmarks is that of the library, at any timestep and length."""

import jax
import numpy as np
import pytest

from mime import GraphManager, MotorNode
from mime.verification.benchmarks.motor import REFERENCE
from mime.verification.programs import final_state, rollout


@pytest.mark.parametrize(("samples", "every", "dt"), [(40, 1, 1e-3), (40, 1, 5e-4), (8, 5, 1e-3)])
def test_it_agrees_with_a_simulation(samples, every, dt):
    volts = np.random.default_rng(0).normal(size=samples)
    inputs = {"commanded_voltage": volts, "load_torque": 0.01}
    start = {"angular_velocity": 3.0}
    with jax.enable_x64(True):
        states = rollout(
            MotorNode("motor", 1e-3, **REFERENCE), inputs, samples, every=every, dt=dt, start=start
        )
        graph = GraphManager()
        graph.add_node(MotorNode("motor", dt, **REFERENCE))
        for name in inputs:
            graph.add_external_input("motor", name)
        program = graph.compile()
        in_full = {"commanded_voltage": np.repeat(volts, every), "load_torque": 0.01}
        _, recorded = program.rollout(
            program.init_state({"motor": start}),
            {"motor": in_full},
            samples * every,
            record={"motor": ["angle", "angular_velocity", "current"]},
            every=every,
        )
    for name, values in recorded["motor"].items():
        assert np.ptp(values) > 0
        np.testing.assert_allclose(states[name], values, rtol=1e-12)


def test_a_final_state_is_the_last_of_a_rollout_and_leaves_the_node_alone():
    with jax.enable_x64(True):
        motor = MotorNode("motor", 1e-3, **REFERENCE)
        states = rollout(motor, {"commanded_torque": 0.01}, 30)
        end = final_state(motor, {"commanded_torque": 0.01}, 30)
    assert motor.timestep == 1e-3
    assert states["angle"].shape == (30,)
    assert {name: values[-1] for name, values in states.items()} == end
