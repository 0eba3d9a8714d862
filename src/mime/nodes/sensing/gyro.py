"""MIME-NODE-122: a rate gyroscope."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from mime.core.node import Node, Scalar, State, Values
from mime.core.problem import Problem
from mime.core.spec import Input, Mapped, NodeMeta, Output, ValidatedRange, option, parameter

_HERE = "mime.nodes.sensing.gyro.GyroNode"


class GyroNode(Node):
    """Rate gyroscope about one axis.

        measured = q round(clip((1 + s) w_f + b + b_n + sigma nu, -range, range) / q)
        w_f' = 2 pi f_c (w - w_f),   b_(n+1) = b_n + K sqrt(dt) nu'

    s is the scale error, b the bias, b_n its random walk, q the resolution, f_c the bandwidth; nu
    and nu' are standard normal deviates. Every part is off unless its parameter is given.
    """

    is_sampled: ClassVar[bool | None] = True
    meta: ClassVar[NodeMeta] = NodeMeta(
        id="MIME-NODE-122",
        version="1.0.0",
        stability="experimental",
        summary="Rate gyroscope: scale error, bias and its walk, noise, bandwidth, range, steps.",
        equations=(
            r"\hat\omega = q \operatorname{round}\big(\operatorname{clip}((1 + s)\omega_f + b + b_n"
            r" + \sigma\nu,\, -\omega_{\max},\, \omega_{\max}) / q\big)",
            r"\dot\omega_f = 2\pi f_c (\omega - \omega_f), \quad b_{n+1} = b_n + K\sqrt{\Delta t}"
            r"\,\nu', \quad \sigma = N/\sqrt{2\Delta t}",
        ),
        discretisation=(
            "The first-order lag is solved exactly for a rate that is constant over the step.",
            "The walk's variance after a time t is K² t, whatever the step.",
        ),
        assumptions=(
            "The noise is white up to half the sampling rate; N is a one-sided density, as data "
            "sheets give it, so the integrated angle's variance is N² t / 2.",
            "The axis is that of the turn: no cross-axis sensitivity.",
        ),
        limitations=(
            "No dependence on temperature or acceleration.",
            "The gradient of a quantised rate is 0; straight_through=True gives that of the rate.",
        ),
        validated_ranges=(ValidatedRange("bandwidth_hz", 1.0, 1000.0, "Hz", "step response"),),
        changelog=(("1.0.0", "2026-11-16", "First version."),),
        references=(
            "[@IEEE952] IEEE Std 952-1997. Specification format guide and test procedure for "
            "single-axis interferometric fiber optic gyros, annex C.",
        ),
        implementation=(
            Mapped("w_f, b_n, nu", f"{_HERE}.update"),
            Mapped("measured", f"{_HERE}.compute_boundary_fluxes"),
        ),
    )

    scale_error: Scalar | None = parameter("", above=-1.0, default=None, doc="s")
    bias_rad_per_s: Scalar | None = parameter("rad/s", default=None, doc="b, constant")
    noise_rad_per_s: Scalar | None = parameter(
        "rad/s", at_least=0.0, default=None, doc="sigma of each sample"
    )
    noise_density_rad_per_s_sqrt_hz: Scalar | None = parameter(
        "rad/s/√Hz", at_least=0.0, default=None, doc="N, one-sided: sigma = N / sqrt(2 dt)"
    )
    bias_walk_rad_per_s_sqrt_s: Scalar | None = parameter(
        "rad/s/√s", at_least=0.0, default=None, doc="K"
    )
    resolution_rad_per_s: Scalar | None = parameter("rad/s", above=0.0, default=None, doc="q")
    range_rad_per_s: Scalar | None = parameter("rad/s", above=0.0, default=None, doc="saturation")
    bandwidth_hz: Scalar | None = parameter("Hz", above=0.0, default=None, doc="f_c")
    seed: int = option(default=0)
    """Seed of the noise. Two noisy nodes in one graph need two seeds."""
    straight_through: bool = option(default=False)
    """Differentiate a quantised rate as if it were not."""

    def value_problems(self) -> Iterator[Problem]:
        if self.noise_rad_per_s is not None and self.noise_density_rad_per_s_sqrt_hz is not None:
            place = ("noise_density_rad_per_s_sqrt_hz",)
            yield Problem(place, "says the same as noise_rad_per_s", "Give one of them")

    @property
    def _noisy(self) -> bool:
        return self.noise_rad_per_s is not None or self.noise_density_rad_per_s_sqrt_hz is not None

    def boundary_input_spec(self) -> dict[str, Input]:
        return {"turn_rate": Input((), "rad/s", 0.0, "replacive", "of the body, about the axis")}

    def boundary_flux_spec(self) -> dict[str, Output]:
        return {"measured_turn_rate": Output((), "rad/s", "as a controller sees it")}

    def state_spec(self) -> dict[str, Output]:
        spec = {}
        if self.bandwidth_hz is not None:
            spec["filtered_turn_rate"] = Output((), "rad/s", "w_f")
        if self.bias_walk_rad_per_s_sqrt_s is not None:
            spec["bias_drift"] = Output((), "rad/s", "b_n")
        if self._noisy:
            spec["noise"] = Output((), "", "nu, this step's normal deviate")
        if self._noisy or self.bias_walk_rad_per_s_sqrt_s is not None:
            spec["key"] = Output((2,), "", "state of the random generator")
        return spec

    def initial_state(self) -> State:
        state = super().initial_state()
        if "key" in state:
            state["key"] = jax.random.key_data(jax.random.key(self.seed, impl="threefry2x32"))
        return state

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """The lag over the step, and this step's random numbers."""
        new: State = {}
        if self.bandwidth_hz is not None:
            before = state["filtered_turn_rate"]
            share = -jnp.expm1(-2.0 * math.pi * self.bandwidth_hz * dt)
            new["filtered_turn_rate"] = before + share * (boundary_inputs["turn_rate"] - before)
        if "key" in state:
            key, draw = jax.random.split(
                jax.random.wrap_key_data(state["key"], impl="threefry2x32")
            )
            nu = jax.random.normal(draw, (2,), self._dtype(state))
            new["key"] = jax.random.key_data(key)
            if self._noisy:
                new["noise"] = nu[0]
            if self.bias_walk_rad_per_s_sqrt_s is not None:
                new["bias_drift"] = (
                    state["bias_drift"] + self.bias_walk_rad_per_s_sqrt_s * jnp.sqrt(dt) * nu[1]
                )
        return new

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        """The rate with all its errors."""
        rate: Any = state.get("filtered_turn_rate", boundary_inputs["turn_rate"])
        if self.scale_error is not None:
            rate = (1.0 + self.scale_error) * rate
        if self.bias_rad_per_s is not None:
            rate = rate + self.bias_rad_per_s
        if self.bias_walk_rad_per_s_sqrt_s is not None:
            rate = rate + state["bias_drift"]
        if self._noisy:
            rate = rate + self.noise_deviation(dt) * state["noise"]
        if self.range_rad_per_s is not None:
            rate = jnp.clip(rate, -self.range_rad_per_s, self.range_rad_per_s)
        if self.resolution_rad_per_s is not None:
            stepped = self.resolution_rad_per_s * jnp.round(rate / self.resolution_rad_per_s)
            rate = (
                rate + jax.lax.stop_gradient(stepped - rate) if self.straight_through else stepped
            )
        return {"measured_turn_rate": jnp.asarray(rate)}

    def noise_deviation(self, dt: float | Scalar) -> Any:
        """sigma of one sample: as given, or N / sqrt(2 dt)."""
        if self.noise_density_rad_per_s_sqrt_hz is None:
            return 0.0 if self.noise_rad_per_s is None else self.noise_rad_per_s
        return self.noise_density_rad_per_s_sqrt_hz / jnp.sqrt(2.0 * dt)

    def _dtype(self, state: State) -> Any:
        return state["noise" if self._noisy else "bias_drift"].dtype
