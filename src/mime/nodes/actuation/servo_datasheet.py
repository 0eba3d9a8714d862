"""Real servos, with figures as their makers print them. Each entry names its source."""

import dataclasses
import math
from typing import Any

from mime.core.problem import ParameterError, Problem
from mime.nodes.actuation.printed_figures import SERVO_COLUMNS, SERVO_ROWS, SERVO_SOURCES

_UNITS = {
    "kp": "",
    "duty_per_kp": "1/rad",
    "duty_limit": "",
    "ticks_per_turn": "1/turn",
    "gear_ratio": "",
    "nominal_voltage_v": "V",
    "no_load_speed_rpm": "rpm",
    "no_load_current_a": "A",
    "stall_torque_n_m": "N·m",
    "stall_current_a": "A",
}
NEVER_PUBLISHED = "rotor inertia, inductance, friction, rate and delay of the firmware"
"""What no maker of servos prints: a fit tells it, or a guess."""


@dataclasses.dataclass(frozen=True, repr=False)
class ServoDatasheet:
    """A servo's figures: its firmware's gain, and its shaft at nominal voltage.

    `kp` is the register as it is delivered, `duty_per_kp` the duty that one unit of it makes of an
    error of one radian. Speed and torque are those of the output shaft.
    """

    kp: float
    duty_per_kp: float
    ticks_per_turn: float
    gear_ratio: float
    nominal_voltage_v: float
    no_load_speed_rpm: float
    stall_torque_n_m: float
    stall_current_a: float
    duty_limit: float = 1.0
    no_load_current_a: float | None = None
    source: str = ""
    """Where the figures are printed."""
    gain_source: str = ""
    """Where `duty_per_kp` is from."""

    def __post_init__(self) -> None:
        problems = [
            Problem((name,), f"must be > 0, got {value!r}")
            for name, (value, _) in self.figures().items()
            if not (math.isfinite(value) and value > 0)
        ]
        if problems:
            raise ParameterError("servo's data sheet", problems)

    def figures(self) -> dict[str, tuple[float, str]]:
        """What the sheet says, by name: value and unit."""
        return {
            name: (value, unit)
            for name, unit in _UNITS.items()
            if (value := getattr(self, name)) is not None
        }

    @property
    def not_published(self) -> str:
        """What a simulation needs and the sheet does not say."""
        more = ", no-load current" if self.no_load_current_a is None else ""
        return NEVER_PUBLISHED + more

    @property
    def r_ohm(self) -> float:
        """V / I_stall, the bridge's resistance included."""
        return self.nominal_voltage_v / self.stall_current_a

    @property
    def kt_n_m_per_a(self) -> float:
        """tau_stall / (N I_stall), less than the motor's own by the losses of the gear."""
        return self.stall_torque_n_m / (self.gear_ratio * self.stall_current_a)

    def __repr__(self) -> str:
        lines = [f"  {name} = {value:g} {unit}" for name, (value, unit) in self.figures().items()]
        words = (f"  not published: {self.not_published}", f"  duty_per_kp: {self.gain_source}")
        text = [line.rstrip() for line in (*lines, *words)]
        return "\n".join([f"ServoDatasheet: {self.source or 'of no source'}", *text])


def _sheet(name: str) -> ServoDatasheet:
    row = (None if value is None else float(value) for value in SERVO_ROWS[name])
    figures: dict[str, Any] = dict(zip(SERVO_COLUMNS, row, strict=True))
    source, gain_source = SERVO_SOURCES[name]
    return ServoDatasheet(**figures, source=source, gain_source=gain_source)


SERVOS = {name: _sheet(name) for name in SERVO_ROWS}
"""`ServoNode.from_datasheet("servo", 1e-3, SERVOS["xl330_m288"])`"""
