"""From a data sheet to parameters, and whether the sheet agrees with itself.

no load   V = R I0 + ke w0,   kt I0 = friction       stall   V = R Is,   tau_s = kt Is
"""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

from mime._text import nearest, quoted, warn_user
from mime.core.problem import ParameterError, Problem
from mime.core.upward import drawer
from mime.nodes.actuation.friction import Coulomb
from mime.nodes.actuation.motor.thermal import Winding

RPM = 2.0 * math.pi / 60.0
"""One revolution per minute in rad/s."""


class DatasheetWarning(UserWarning):
    """Figures of one data sheet that cannot all be true."""


_UNITS = {
    "nominal_voltage_v": "V",
    "no_load_current_a": "A",
    "rotor_inertia_kg_m2": "kg·m²",
    "no_load_speed_rad_per_s": "rad/s",
    "no_load_speed_rpm": "rpm",
    "stall_torque_n_m": "N·m",
    "stall_current_a": "A",
    "r_ohm": "Ω",
    "l_henry": "H",
    "kt_n_m_per_a": "N·m/A",
    "mechanical_time_constant_s": "s",
    "reference_temperature_c": "°C",
}


@dataclasses.dataclass(frozen=True, repr=False)
class Datasheet:
    """A motor's figures at nominal voltage, as its maker prints them, in SI units.

    Give the no-load speed as `no_load_speed_rad_per_s` or `no_load_speed_rpm`. Of the stall
    figures, resistance and torque constant, what is missing is derived from the rest.
    """

    nominal_voltage_v: float
    no_load_current_a: float
    rotor_inertia_kg_m2: float
    no_load_speed_rad_per_s: float | None = None
    no_load_speed_rpm: float | None = None
    stall_torque_n_m: float | None = None
    stall_current_a: float | None = None
    r_ohm: float | None = None
    l_henry: float | None = None
    kt_n_m_per_a: float | None = None
    mechanical_time_constant_s: float | None = None
    """J R / kt^2. Not needed; checked when given."""
    reference_temperature_c: float = 25.0
    source: str = ""
    """Where the figures are printed: maker, title, edition."""

    def __post_init__(self) -> None:
        if problems := list(self._problems()):
            raise ParameterError("data sheet", problems)

    def _problems(self) -> Iterator[Problem]:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            is_figure = isinstance(value, int | float) and "temperature" not in field.name
            if is_figure and not (math.isfinite(value) and value > 0):
                yield Problem((field.name,), f"must be > 0, got {value!r}")
        speeds = (self.no_load_speed_rad_per_s, self.no_load_speed_rpm)
        if (speeds[0] is None) == (speeds[1] is None):
            yield Problem(
                ("no_load_speed_rad_per_s",),
                f"or no_load_speed_rpm must be given, and not both; got {speeds[0]}, {speeds[1]}",
            )
        if self.r_ohm is None and self.stall_current_a is None:
            yield Problem(("r_ohm",), "or stall_current_a must be given, got None for both")

    def figures(self) -> dict[str, tuple[float, str]]:
        """What the sheet says, by name: value and unit."""
        return {
            name: (value, unit)
            for name, unit in _UNITS.items()
            if (value := getattr(self, name)) is not None
        }

    def __repr__(self) -> str:
        lines = [f"  {name} = {value:g} {unit}" for name, (value, unit) in self.figures().items()]
        return "\n".join([f"Datasheet: {self.source or 'of no source'}", *lines])

    def _repr_html_(self) -> str:
        return drawer("Datasheet.html")(self)

    @property
    def no_load_speed(self) -> float:
        """w0 in rad/s."""
        if self.no_load_speed_rad_per_s is not None:
            return self.no_load_speed_rad_per_s
        assert self.no_load_speed_rpm is not None
        return self.no_load_speed_rpm * RPM

    @property
    def resistance(self) -> float:
        """R as printed, or V / Is."""
        return self.r_ohm or self.nominal_voltage_v / self.stall_current_a  # type: ignore[operator]

    @property
    def torque_constant(self) -> float:
        """The torque constant as printed, or (V - R I0) / w0."""
        return self.kt_n_m_per_a or self._kt_no_load()

    def _kt_no_load(self) -> float:
        return (
            self.nominal_voltage_v - self.resistance * self.no_load_current_a
        ) / self.no_load_speed

    def contradictions(self, tolerance: float = 0.05) -> list[str]:
        """Pairs of figures that disagree by more than `tolerance`, in words, with by how much."""
        V, R, kt = self.nominal_voltage_v, self.resistance, self.torque_constant
        stall_current = self.stall_current_a or V / R
        pairs = []
        if self.r_ohm and self.stall_current_a:
            other = "nominal_voltage_v / stall_current_a"
            pairs.append(("r_ohm", self.r_ohm, other, V / self.stall_current_a, "Ω"))
        if self.kt_n_m_per_a:
            other = "(nominal_voltage_v - R no_load_current_a) / no_load_speed"
            pairs.append(("kt_n_m_per_a", kt, other, self._kt_no_load(), "N·m/A"))
        if self.stall_torque_n_m:
            # Makers print the stall torque before or after friction: the nearer one is meant.
            currents = (stall_current, stall_current - self.no_load_current_a)
            kts = (self.stall_torque_n_m / i for i in currents)
            kt_stall = min(kts, key=lambda k: abs(k / kt - 1))
            derived = "kt from nominal_voltage_v and no_load_speed"
            name = "kt_n_m_per_a" if self.kt_n_m_per_a else derived
            pairs.append((name, kt, "stall_torque_n_m / stall current", kt_stall, "N·m/A"))
        if self.mechanical_time_constant_s:
            tau, name = self.mechanical_time_constant_s, "mechanical_time_constant_s"
            pairs.append((name, tau, "J R / kt²", self.rotor_inertia_kg_m2 * R / kt**2, "s"))
        return [
            f"{name} = {value:.4g} {unit}, but {other} = {other_value:.4g} {unit}: "
            f"{other_value / value - 1:+.1%}"
            for name, value, other, other_value, unit in pairs
            if abs(other_value / value - 1) > tolerance
        ]


def parameters_from(sheet: Datasheet | None, given: dict[str, Any]) -> dict[str, Any]:
    """MotorNode's parameters of a data sheet; `given` holds more figures and the node's options.

    `no_load_friction="viscous"` (default) makes the no-load current a damping b = kt I0 / w0,
    `"coulomb"` a dry friction tau_c = kt I0. `tolerance` (0.05) and `on_contradiction` ("warn",
    "raise", "ignore") say what to do with figures that disagree. A `winding` takes the sheet's
    reference temperature, at which its resistance holds.
    """
    names = [field.name for field in dataclasses.fields(Datasheet)]
    figures = {name: given.pop(name) for name in names if name in given}
    if sheet is None:
        needed = ("nominal_voltage_v", "no_load_current_a", "rotor_inertia_kg_m2")
        if missing := [name for name in needed if name not in figures]:
            raise ParameterError(
                f"{quoted(missing)} must be given; a data sheet's figures are {quoted(names)}"
            )
        sheet = Datasheet(**figures)
    else:
        sheet = dataclasses.replace(sheet, **figures)
    friction = _choice(given, "no_load_friction", ("viscous", "coulomb"))
    action = _choice(given, "on_contradiction", ("warn", "raise", "ignore"))
    _report(sheet.contradictions(given.pop("tolerance", 0.05)), action, sheet.source)

    kt, R = sheet.torque_constant, sheet.resistance
    friction_torque = kt * sheet.no_load_current_a
    parameters: dict[str, Any] = {
        "inertia_kg_m2": sheet.rotor_inertia_kg_m2,
        "kt_n_m_per_a": kt,
        "r_ohm": R,
        "l_henry": sheet.l_henry,
        "damping_n_m_s": friction_torque / sheet.no_load_speed if friction == "viscous" else 0.0,
    }
    if friction == "coulomb":
        parameters["friction"] = Coulomb(friction_torque)
    if isinstance(winding := given.get("winding"), Winding):
        at = sheet.reference_temperature_c
        given = {**given, "winding": dataclasses.replace(winding, reference_temperature_c=at)}
    if sheet.l_henry is None:
        if given.get("command_mode") not in ("torque", "velocity"):
            problem = Problem(
                ("l_henry",),
                "must be given where a voltage can be commanded, got None",
                f"Measure it, or take R = {R:.3g} Ω times the electrical time constant of a motor "
                "of this size (0.1 ms to 1 ms for a small one); or set command_mode to 'torque' "
                "or 'velocity'",
            )
            raise ParameterError("data sheet", [problem])
        parameters["l_henry"] = 0.0
    return {**parameters, **given}


def _choice(given: dict[str, Any], name: str, choices: tuple[str, ...]) -> str:
    """Take the option `name` out of what was given; the first choice is the default."""
    value = given.pop(name, choices[0])
    if value not in choices:
        message = f"must be one of {quoted(choices)}, got {value!r}{nearest(value, choices)}"
        raise ParameterError("data sheet", [Problem((name,), message)])
    return value


def _report(contradictions: list[str], action: str, source: str) -> None:
    if not contradictions or action == "ignore":
        return
    message = f"data sheet{f' ({source})' if source else ''} contradicts itself: " + "; ".join(
        contradictions
    )
    if action == "raise":
        raise ParameterError(message)
    warn_user(DatasheetWarning(message))
