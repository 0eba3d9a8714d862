"""MIME-NODE-120: an incremental encoder."""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp

from mime.core.node import Node, Scalar, State, Values
from mime.core.spec import Input, Mapped, NodeMeta, Output, ValidatedRange, option, parameter


class EncoderNode(Node):
    """Incremental encoder with an index mark.

        ticks = floor(n (theta + noise) / 2 pi),   angle = 2 pi ticks / n,   speed = d(angle) / dt

    A turn has n ticks (counted on all edges); the index mark is at angle zero.
    """

    is_sampled: ClassVar[bool | None] = True
    meta: ClassVar[NodeMeta] = NodeMeta(
        id="MIME-NODE-120",
        version="1.0.0",
        stability="experimental",
        summary="Incremental encoder: counts ticks of a shaft, with index mark and noise.",
        equations=(
            r"k = \lfloor n (\theta + \nu) / 2\pi \rfloor, \quad \nu \sim \mathcal N(0, \sigma^2)",
            r"\hat\theta = 2\pi k / n, \quad "
            r"\hat\omega = (\hat\theta_{n+1} - \hat\theta_n) / \Delta t",
        ),
        discretisation=("The angle is sampled once per step; nothing is integrated.",),
        assumptions=(
            "Ticks are evenly spaced, and none is missed at any speed.",
            "The shaft starts at the index mark unless the initial state says otherwise.",
        ),
        limitations=(
            "The count is a float: exact to 2^24 ticks in single and 2^53 in double precision.",
            "The gradient of a count is zero; straight_through=True gives that of the angle.",
        ),
        validated_ranges=(ValidatedRange("ticks_per_turn", 1.0, 65536.0, "1/turn"),),
        changelog=(("1.0.0", "2026-11-15", "First version."),),
        references=(
            "[@Petrella2007] Petrella, R. et al. (2007). Speed measurement algorithms for "
            "encoders: a review.",
        ),
        implementation=(
            Mapped("k", "mime.nodes.sensing.encoder.EncoderNode.update"),
            Mapped(
                "theta, omega", "mime.nodes.sensing.encoder.EncoderNode.compute_boundary_fluxes"
            ),
        ),
    )

    ticks_per_turn: Scalar = parameter("1/turn", above=0.0, doc="n, edges counted per turn")
    noise_rad: Scalar | None = parameter(
        "rad", at_least=0.0, default=None, doc="sigma of the angle's noise; none when absent"
    )
    seed: int = option(default=0)
    """Seed of the noise. Two noisy nodes in one graph need two seeds."""
    straight_through: bool = option(default=False)
    """Differentiate `measured_angle` as if it were the angle: for tuning through an encoder."""

    def boundary_input_spec(self) -> dict[str, Input]:
        return {"angle": Input((), "rad", 0.0, "replacive", "angle of the shaft")}

    def boundary_flux_spec(self) -> dict[str, Output]:
        return {
            "ticks": Output((), "", "signed count since angle zero"),
            "measured_angle": Output((), "rad", "2 pi ticks / n"),
            "measured_velocity": Output((), "rad/s", "change of the measured angle over the step"),
            "index": Output((), "", "1 when the index mark was passed in this step, else 0"),
        }

    def state_spec(self) -> dict[str, Output]:
        spec = {
            "ticks": Output((), "", "count after the step"),
            "ticks_before": Output((), "", "count before the step"),
        }
        if self.noise_rad is not None:
            spec["key"] = Output((2,), "", "state of the random generator")
        return spec

    def initial_state(self) -> State:
        state = super().initial_state()
        if self.noise_rad is not None:
            state["key"] = jax.random.key_data(jax.random.key(self.seed, impl="threefry2x32"))
        return state

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """Count the ticks at this angle."""
        ticks = state["ticks"]
        angle = boundary_inputs["angle"].astype(ticks.dtype)
        new = {"ticks_before": ticks}
        if self.noise_rad is not None:
            key, draw = jax.random.split(
                jax.random.wrap_key_data(state["key"], impl="threefry2x32")
            )
            angle = angle + self.noise_rad * jax.random.normal(draw, (), ticks.dtype)
            new["key"] = jax.random.key_data(key)
        return {"ticks": jnp.floor(self.ticks_per_turn * angle / (2.0 * math.pi)), **new}

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        """Angle and speed as a controller sees them."""
        ticks, before = state["ticks"], state["ticks_before"]
        tick_rad = 2.0 * math.pi / self.ticks_per_turn
        measured = tick_rad * ticks
        if self.straight_through:
            angle = boundary_inputs["angle"].astype(ticks.dtype)
            measured = angle + jax.lax.stop_gradient(measured - angle)
        passed = jnp.floor(ticks / self.ticks_per_turn) != jnp.floor(before / self.ticks_per_turn)
        return {
            "ticks": ticks,
            "measured_angle": measured,
            "measured_velocity": tick_rad * (ticks - before) / dt,
            "index": jnp.where(passed, 1.0, 0.0).astype(ticks.dtype),
        }
