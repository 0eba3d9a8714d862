"""MIME-VER-116: the error of an encoder."""

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from mime.nodes.sensing.encoder import EncoderNode
from mime.verification.benchmark import Finding, Measurement, Subject, benchmark, scaled
from mime.verification.programs import QUICK


@benchmark(
    116,
    "Error of an encoder is uniform within one tick",
    subject=EncoderNode,
    node_id="MIME-NODE-120",
    fault=scaled("ticks_per_turn", 16383 / 16384),
    configuration={
        "ticks_per_turn": 16384,
        "angles": "20,000, uniform in ±50 rad, NumPy's default_rng(0)",
    },
    reference="""The rest of a division by the tick d = 2 pi/n, uniform over [0, d):

    theta - measured in [0, d),   standard deviation d/sqrt(12)""",
    procedure=("Read 20,000 random angles; compare each with what was read.",),
    covers=("the tick's width, rounding towards minus infinity on both sides of zero",),
    excludes=("index, speed and noise, which tests/nodes/sensing/test_encoder.py has",),
)
def encoder_error(Encoder: Subject) -> Iterator[Finding]:
    """0 <= theta - measured < d,   rms about the mean = d/sqrt(12),   d = 2 pi/n

    A position between two ticks reads as the lower one.
    """
    n = 16384
    tick = 2 * np.pi / n
    angles = np.random.default_rng(0).uniform(-50, 50, 20_000)
    read = np.asarray(_read(Encoder("encoder", 1e-3, ticks_per_turn=n), jnp.asarray(angles)))
    error = angles - read
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


@partial(jax.jit, compiler_options=QUICK)
def _read(encoder: EncoderNode, angles: jax.Array) -> jax.Array:
    def step(state: dict, angle: jax.Array) -> tuple[dict, jax.Array]:
        state = encoder.update(state, {"angle": angle}, encoder.timestep)
        fluxes = encoder.compute_boundary_fluxes(state, {"angle": angle}, encoder.timestep)
        return state, fluxes["measured_angle"]

    return jax.lax.scan(step, encoder.initial_state(), angles)[1]
