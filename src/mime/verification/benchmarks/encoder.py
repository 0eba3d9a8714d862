"""MIME-VER-116: the error of an encoder."""

import jax
import jax.numpy as jnp
import numpy as np

from mime.nodes.sensing.encoder import EncoderNode
from mime.verification.benchmark import Measurement, benchmark, scaled
from mime.verification.programs import quick_jit


@benchmark(
    116,
    "Error of an encoder is uniform within one tick",
    EncoderNode,
    scaled("ticks_per_turn", 16383 / 16384),
)
def encoder_error(Encoder, *, ticks_per_turn=16384, angles=20_000, within_rad=(-50.0, 50.0)):
    """0 <= theta - measured < d,   rms about the mean = d/sqrt(12),   d = 2 pi/n

    A position between two ticks reads as the lower one.

    Reference: The rest of a division by the tick d, uniform over [0, d).
    Procedure: Read uniformly random angles (seed 0); compare each with what was read.
    Covers: the tick's width, rounding towards minus infinity on both sides of zero
    Excludes: index, speed and noise, which tests/nodes/sensing/test_encoder.py has
    """
    tick = 2 * np.pi / ticks_per_turn
    theta = np.random.default_rng(0).uniform(within_rad[0], within_rad[1], angles)
    encoder = Encoder("encoder", 1e-3, ticks_per_turn=ticks_per_turn)
    error = theta - np.asarray(_read(encoder, jnp.asarray(theta)))
    yield Measurement(
        "least error", float(np.min(error)), -1e-12, "rad", at_least=True, why="round-off at 50 rad"
    )
    yield Measurement(
        "largest error over one tick, less one",
        float(np.max(error)) / tick - 1,
        limit=1e-12 / tick,
        why="round-off at 50 rad, in ticks",
    )
    yield Measurement(
        "relative error of the standard deviation",
        abs(float(np.std(error)) * np.sqrt(12) / tick - 1),
        limit=0.02,
        why="3/sqrt(20,000), of a sample of that size",
    )


@quick_jit
def _read(encoder: EncoderNode, angles: jax.Array) -> jax.Array:
    def step(state: dict, angle: jax.Array) -> tuple[dict, jax.Array]:
        state = encoder.update(state, {"angle": angle}, encoder.timestep)
        fluxes = encoder.compute_boundary_fluxes(state, {"angle": angle}, encoder.timestep)
        return state, fluxes["measured_angle"]

    return jax.lax.scan(step, encoder.initial_state(), angles)[1]
