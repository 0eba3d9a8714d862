"""From a data sheet to parameters, and whether the sheet agrees with itself.

no load   V = R I0 + ke w0,   kt I0 = friction       stall   V = R Is,   tau_s = kt Is
"""

import dataclasses
import math
from typing import Any

from mime._text import nearest, quoted, warn_user
from mime.core.node import ParameterError
from mime.nodes.actuation.motor.magnetics import RPM


class DatasheetWarning(UserWarning):
    """Figures of one data sheet that cannot all be true."""


@dataclasses.dataclass(frozen=True)
class Datasheet:
    """A motor's figures at nominal voltage, as its maker prints them, in SI units.

    Give the no-load speed as `no_load_speed_rad_s` or `no_load_speed_rpm`. Of the stall figures,
    resistance and torque constant, what is missing is derived from the rest.
    """

    nominal_voltage_v: float
    no_load_current_a: float
    rotor_inertia_kg_m2: float
    no_load_speed_rad_s: float | None = None
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
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            is_figure = isinstance(value, int | float) and "temperature" not in field.name
            if is_figure and not (math.isfinite(value) and value > 0):
                raise ParameterError(f"{field.name} must be > 0, got {value!r}")
        if (self.no_load_speed_rad_s is None) == (self.no_load_speed_rpm is None):
            raise ParameterError(
                "no_load_speed_rad_s or no_load_speed_rpm must be given, and not both; got "
                f"{self.no_load_speed_rad_s!r} and {self.no_load_speed_rpm!r}"
            )
        if self.r_ohm is None and self.stall_current_a is None:
            raise ParameterError("r_ohm or stall_current_a must be given, got None for both")

    @property
    def no_load_speed(self) -> float:
        """w0 in rad/s."""
        if self.no_load_speed_rad_s is not None:
            return self.no_load_speed_rad_s
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
            pairs.append(
                (
                    "r_ohm",
                    self.r_ohm,
                    "nominal_voltage_v / stall_current_a",
                    V / self.stall_current_a,
                    "Ω",
                )
            )
        if self.kt_n_m_per_a:
            no_load = "(nominal_voltage_v - R no_load_current_a) / no_load_speed"
            pairs.append(("kt_n_m_per_a", kt, no_load, self._kt_no_load(), "N·m/A"))
        if self.stall_torque_n_m:
            # Makers print the stall torque before or after friction: the nearer one is meant.
            printed = (stall_current, stall_current - self.no_load_current_a)
            kt_stall = min(
                (self.stall_torque_n_m / i for i in printed), key=lambda k: abs(k / kt - 1)
            )
            name = (
                "kt_n_m_per_a"
                if self.kt_n_m_per_a
                else "kt from nominal_voltage_v and no_load_speed"
            )
            pairs.append((name, kt, "stall_torque_n_m / stall current", kt_stall, "N·m/A"))
        if self.mechanical_time_constant_s:
            derived = self.rotor_inertia_kg_m2 * R / kt**2
            pairs.append(
                (
                    "mechanical_time_constant_s",
                    self.mechanical_time_constant_s,
                    "J R / kt²",
                    derived,
                    "s",
                )
            )
        return [
            f"{name} = {value:.4g} {unit}, but {other} = {other_value:.4g} {unit}: "
            f"{other_value / value - 1:+.1%}"
            for name, value, other, other_value, unit in pairs
            if abs(other_value / value - 1) > tolerance
        ]


def parameters_from(sheet: Datasheet | None, given: dict[str, Any]) -> dict[str, Any]:
    """MotorNode's parameters of a data sheet; `given` holds more figures and the node's options.

    `friction="viscous"` (default) makes the no-load current a damping b = kt I0 / w0, `"coulomb"` a
    dry friction tau_c = kt I0. `tolerance` (0.05) and `on_contradiction` ("warn", "raise",
    "ignore") say what to do with figures that disagree.
    """
    names = [field.name for field in dataclasses.fields(Datasheet)]
    figures = {name: given.pop(name) for name in names if name in given}
    if sheet is None:
        missing = [
            n
            for n in ("nominal_voltage_v", "no_load_current_a", "rotor_inertia_kg_m2")
            if n not in figures
        ]
        if missing:
            raise ParameterError(
                f"{quoted(missing)} must be given; a data sheet's figures are {quoted(names)}"
            )
        sheet = Datasheet(**figures)
    else:
        sheet = dataclasses.replace(sheet, **figures)
    friction = given.pop("friction", "viscous")
    tolerance, action = given.pop("tolerance", 0.05), given.pop("on_contradiction", "warn")
    for name, value, allowed in (
        ("friction", friction, ("viscous", "coulomb")),
        ("on_contradiction", action, ("warn", "raise", "ignore")),
    ):
        if value not in allowed:
            raise ParameterError(
                f"{name} must be one of {quoted(allowed)}, got {value!r}{nearest(value, allowed)}"
            )
    _report(sheet.contradictions(tolerance), action, sheet.source)

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
        parameters["coulomb_torque_n_m"] = friction_torque
    if "thermal_resistance_k_per_w" in given:
        parameters["reference_temperature_c"] = sheet.reference_temperature_c
    if sheet.l_henry is None:
        if given.get("command_mode") not in ("torque", "velocity"):
            raise ParameterError(
                "l_henry must be given where a voltage can be commanded, got None. Measure it, or "
                f"take R = {R:.3g} Ω times the electrical time constant of a motor of this size "
                "(0.1 ms to 1 ms for a small one); or set command_mode to 'torque' or 'velocity'"
            )
        parameters["l_henry"] = 0.0
    return {**parameters, **given}


def _report(contradictions: list[str], action: str, source: str) -> None:
    if not contradictions or action == "ignore":
        return
    message = f"data sheet{f' ({source})' if source else ''} contradicts itself: " + "; ".join(
        contradictions
    )
    if action == "raise":
        raise ParameterError(message)
    warn_user(DatasheetWarning(message))
