"""MIME-NODE-110: a PWM drive."""

from collections.abc import Iterator
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from mime.core.node import Node, Scalar, State, Values
from mime.core.parameters import known
from mime.core.problem import Problem
from mime.core.spec import Input, Mapped, NodeMeta, Output, ValidatedRange, option, parameter

STEPS_PER_PERIOD = 10
"""The least number of steps per switching period: fewer leave nothing of the ripple."""


class PwmDriveNode(Node):
    """H-bridge that switches its supply at a fixed frequency.

        D = V_cmd / V_supply in [-1, 1],   phase = f t mod 1
        unipolar   V = V_supply sign(D)  while phase < |D|,        else 0
        bipolar    V = V_supply          while phase < (1 + D)/2,  else -V_supply

    Over a step the terminal voltage is the mean of the switched one, so the mean over a period is
    V_cmd whatever the duty, and an edge inside a step costs no volt-seconds.
    """

    is_sampled: ClassVar[bool | None] = False
    meta: ClassVar[NodeMeta] = NodeMeta(
        id="MIME-NODE-110",
        version="1.0.0",
        stability="experimental",
        summary="H-bridge: a commanded voltage or duty in, a switched terminal voltage out.",
        equations=(
            r"D = V_\text{cmd} / V_\text{supply}, \quad \varphi = f t \bmod 1",
            r"V = \operatorname{sign}(D) V_\text{supply} \;\text{if}\; \varphi < |D| "
            r"\;\text{else}\; 0 \quad \text{(unipolar)}",
            r"V = V_\text{supply} \;\text{if}\; \varphi < (1 + D)/2 "
            r"\;\text{else}\; -V_\text{supply} \quad \text{(bipolar)}",
        ),
        discretisation=(
            r"V_n = \frac{1}{\Delta t} \int_{t_n}^{t_{n+1}} V \, dt, \quad "
            r"\varphi_{n+1} = (\varphi_n + f \Delta t) \bmod 1",
        ),
        assumptions=(
            "Ideal switches: no dead time, no voltage drop, no losses.",
            "The supply's voltage does not sag.",
            "The current never becomes discontinuous: the bridge always drives its terminals.",
        ),
        limitations=(
            "The step is at most a tenth of the switching period, and a motor behind the drive "
            "runs at the drive's rate; a coarser step is refused.",
            "The duty takes effect at once, not at the next period.",
        ),
        validated_ranges=(
            ValidatedRange("frequency_hz", 1e3, 1e5, "Hz", "ripple against its closed form"),
        ),
        changelog=(("1.0.0", "2026-11-15", "First version."),),
        references=(
            "[@Mohan2003] Mohan, N., Undeland, T. M., Robbins, W. P. (2003). Power Electronics. "
            "Full-bridge converters, bipolar and unipolar switching.",
        ),
        implementation=(
            Mapped("V_n", "mime.nodes.actuation.pwm_drive.PwmDriveNode.compute_boundary_fluxes"),
            Mapped("phi_{n+1}", "mime.nodes.actuation.pwm_drive.PwmDriveNode.update"),
        ),
    )

    supply_voltage_v: Scalar = parameter("V", above=0.0, doc="V_supply")
    frequency_hz: Scalar = parameter("Hz", above=0.0, doc="f, switching frequency")
    switching: str = option(default="unipolar", choices=("unipolar", "bipolar"))
    """`"unipolar"`: between 0 and the supply. `"bipolar"`: between plus and minus the supply."""

    def value_problems(self) -> Iterator[Problem]:
        if not known(self.frequency_hz):
            return
        largest = 1.0 / (STEPS_PER_PERIOD * float(np.max(self.frequency_hz)))
        if self.timestep > largest * (1 + 1e-9):
            yield Problem(
                ("timestep",),
                f"must be <= {largest:g} s, a {STEPS_PER_PERIOD}th of the period at frequency_hz = "
                f"{self.frequency_hz:g}, got {self.timestep:g}",
                "Give the drive and its motor a finer timestep, or drive the motor by its mean "
                "voltage alone",
            )

    def boundary_input_spec(self) -> dict[str, Input]:
        return {
            "commanded_voltage": Input((), "V", 0.0, "replacive", "mean voltage asked for"),
            "commanded_duty": Input(
                (), "", 0.0, "additive", "duty in [-1, 1], added to that voltage's"
            ),
        }

    def boundary_flux_spec(self) -> dict[str, Output]:
        return {
            "terminal_voltage": Output((), "V", "mean of the switched voltage over the step"),
            "duty": Output((), "", "D, within [-1, 1]"),
        }

    def state_spec(self) -> dict[str, Output]:
        return {
            "phase": Output((), "", "where in the switching period the next step begins, in [0, 1)")
        }

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """phase_{n+1} = (phase_n + f dt) mod 1."""
        phase = state["phase"] + self.frequency_hz * dt
        return {"phase": phase - jnp.floor(phase)}

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        """The voltage of the step that led to `state`."""
        dtype = state["phase"].dtype
        V_cmd = boundary_inputs["commanded_voltage"].astype(dtype)
        D = V_cmd / self.supply_voltage_v + boundary_inputs["commanded_duty"].astype(dtype)
        D = jnp.clip(D, -1.0, 1.0)
        width = self.frequency_hz * dt
        if self.switching == "unipolar":
            level = jnp.sign(D) * _on_fraction(state["phase"], width, jnp.abs(D))
        else:
            level = 2.0 * _on_fraction(state["phase"], width, 0.5 * (1.0 + D)) - 1.0
        return {"terminal_voltage": self.supply_voltage_v * level, "duty": D}


def _on_fraction(end: Any, width: Any, duty: Any) -> Any:
    """The part of the interval (end - width, end) of phase in which phase mod 1 < duty."""

    def on_time(phase: Any) -> Any:
        turns = jnp.floor(phase)
        return turns * duty + jnp.minimum(phase - turns, duty)

    return (on_time(end) - on_time(end - width)) / width
