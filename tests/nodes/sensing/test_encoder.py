"""The encoder: counts, index, speed, noise, gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mime.core.problem import ParameterError
from mime.nodes.actuation.motor import MotorNode
from mime.nodes.sensing.encoder import EncoderNode
from mime.running.graph import GraphManager


def measure(encoder, angles, dt=1e-3):
    """The fluxes at each angle in turn."""

    @jax.jit
    def scan(angles):
        def step(state, angle):
            state = encoder.update(state, {"angle": angle}, dt)
            return state, encoder.compute_boundary_fluxes(state, {"angle": angle}, dt)

        return jax.lax.scan(step, encoder.initial_state(), angles)[1]

    return scan(jnp.asarray(angles))


@pytest.mark.parametrize("noise", [None, 1e-4])
def test_metadata_is_whole(noise):
    assert EncoderNode("encoder", 1e-3, 16384, noise_rad=noise).validate_mime_consistency() == []


def test_counting_is_the_same_forwards_and_backwards():
    angles = np.concatenate([np.linspace(0, 7, 500), np.linspace(7, -7, 1000)])
    ticks = np.asarray(measure(EncoderNode("e", 1e-3, 100), angles)["ticks"])
    np.testing.assert_array_equal(ticks, np.floor(100 * angles / (2 * np.pi)))


def test_the_index_shows_once_a_turn_in_both_directions():
    angles = np.concatenate([np.linspace(0.1, 20, 2000), np.linspace(20, 0.1, 2000)])
    index = np.asarray(measure(EncoderNode("e", 1e-3, 64), angles)["index"])
    assert index[:2000].sum() == index[2000:].sum() == 3  # at 2 pi, 4 pi and 6 pi


def test_the_speed_is_the_mean_over_the_step_within_one_tick():
    omega, n = 12.3, 2048
    fluxes = measure(EncoderNode("e", 1e-3, n), omega * 1e-3 * np.arange(1, 2000))
    error = np.asarray(fluxes["measured_velocity"]) - omega
    assert np.max(np.abs(error)) < 2 * np.pi / n / 1e-3
    assert abs(np.mean(error)) < 2 * np.pi / n / 2.0  # one tick over two seconds


def test_noise_has_its_deviation_and_follows_its_seed():
    angles = np.zeros(20_000)
    noisy = [
        np.asarray(
            measure(EncoderNode("e", 1e-3, 1e6, noise_rad=1e-3, seed=s), angles)["measured_angle"]
        )
        for s in (1, 1, 2)
    ]
    assert np.std(noisy[0]) == pytest.approx(1e-3, rel=0.02)  # 1 / sqrt(2 * 20000) and a margin
    assert np.array_equal(noisy[0], noisy[1])
    assert not np.array_equal(noisy[0], noisy[2])


def test_the_gradient_is_zero_or_straight_through():
    def read(angle, encoder):
        state = encoder.update(encoder.initial_state(), {"angle": angle}, 1e-3)
        return encoder.compute_boundary_fluxes(state, {"angle": angle}, 1e-3)["measured_angle"]

    for straight, slope in ((False, 0.0), (True, 1.0)):
        encoder = EncoderNode("e", 1e-3, 100, straight_through=straight)
        assert float(jax.grad(read)(1.0, encoder)) == slope
    assert float(read(1.0, EncoderNode("e", 1e-3, 100, straight_through=True))) == pytest.approx(
        15 * 2 * np.pi / 100
    )


def test_a_bad_resolution_is_refused():
    with pytest.raises(ParameterError, match="ticks_per_turn must be > 0 1/turn, got 0"):
        EncoderNode("e", 1e-3, 0)


def test_single_precision_stays_single():
    single = lambda tree: jax.tree.map(  # noqa: E731
        lambda x: x.astype(jnp.float32) if jnp.issubdtype(x.dtype, jnp.floating) else x, tree
    )
    encoder = EncoderNode("e", 1e-3, 100, noise_rad=1e-3)
    state = single(encoder).update(single(encoder.initial_state()), {}, 1e-3)
    fluxes = single(encoder).compute_boundary_fluxes(state, {}, 1e-3)
    assert {v.dtype for v in fluxes.values()} == {jnp.dtype("float32")}


def test_an_encoder_reads_a_motor_in_a_graph():
    graph = GraphManager()
    graph.add_node(MotorNode("motor", 1e-3, 1e-4, 0.05, 1.0, 1e-3, 5e-4))
    graph.add_node(EncoderNode("encoder", 1e-3, 4096))
    graph.add_edge("motor", "encoder", "rotor_angle", "angle")
    graph.add_external_input("motor", "commanded_torque")
    simulation = graph.compile()
    _, recorded = simulation.rollout(
        simulation.init_state(), {"motor": {"commanded_torque": 0.01}}, steps=500
    )
    angle = recorded["motor"]["rotor_angle"]
    error = np.asarray(angle - recorded["encoder"]["measured_angle"])
    assert np.all(error >= -1e-12)
    assert np.all(error < 2 * np.pi / 4096 + 1e-12)
