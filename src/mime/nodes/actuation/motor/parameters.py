"""What a motor is made of: MotorNode's parameters, their ranges, and what is refused."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Array, ArrayLike

from mime.core.node import Node, ParameterError, Scalar, option, parameter
from mime.core.pose import IDENTITY_POSE

COMMAND_MODES = ("auto", "torque", "voltage", "velocity")
INTEGRATORS = ("semi_implicit", "exact")
SHAFTS = ("free", "driven")
KE_TOLERANCE = 0.01
"""ke and kt are one constant in SI units; data sheets round each to two or three digits."""


if TYPE_CHECKING:
    Extension = Any  # mypy cannot follow that a field is given because another one is
else:
    Extension = Scalar | None


class MotorParameters(Node):
    """The fields of a motor. Those that default to None are extensions, absent unless given."""

    inertia_kg_m2: Scalar = parameter("kg·m²", above=0.0, doc="J, rotor inertia about the axis")
    kt_n_m_per_a: Scalar = parameter("N·m/A", above=0.0, doc="kt, torque constant")
    r_ohm: Scalar = parameter("Ω", at_least=0.0, doc="R, armature resistance")
    l_henry: Scalar = parameter("H", at_least=0.0, doc="L, armature inductance")
    damping_n_m_s: Scalar = parameter("N·m·s/rad", at_least=0.0, doc="b, viscous damping")
    ke_v_s_per_rad: Scalar = parameter(
        "V·s/rad", above=0.0, default=None, doc="ke, back-EMF constant; kt when not given"
    )
    axis_in_parent_frame: Array = parameter(
        "", shape=(3,), default=(0.0, 0.0, 1.0), doc="spin axis, of any length but zero"
    )
    tool_offset_in_rotor_frame: Array = parameter(
        "m", shape=(7,), default=IDENTITY_POSE, doc="tool pose [x, y, z, qw, qx, qy, qz]"
    )
    velocity_kp: Scalar = parameter("N·m·s/rad", at_least=0.0, default=1e-3, doc="Kp of the PI")
    velocity_ki: Scalar = parameter("N·m/rad", at_least=0.0, default=1e-2, doc="Ki of the PI")

    command_mode: str = option(default="auto")
    """`"auto"`: first non-zero command wins. `"torque"`, `"voltage"`, `"velocity"`: 0 is obeyed."""
    integrator: str = option(default="semi_implicit")
    """`"semi_implicit"` Euler, or `"exact"`: matrix exponential, right for a step of any length."""
    shaft: str = option(default="free")
    """`"free"`: the rotor turns by the torques on it. `"driven"`: the mechanism that carries its
    inertia turns it, at the input `shaft_velocity`, and takes the flux `shaft_torque`."""

    gear_ratio: Extension = parameter(
        "", above=0.0, default=None, doc="N, rotor turns per turn of the output shaft"
    )
    gear_efficiency: Extension = parameter(
        "", above=0.0, at_most=1.0, default=None, doc="eta, output power over input power"
    )
    output_inertia_kg_m2: Extension = parameter(
        "kg·m²", at_least=0.0, default=None, doc="Jo, inertia on the output shaft"
    )
    coulomb_torque_n_m: Extension = parameter(
        "N·m", at_least=0.0, default=None, doc="tau_c, dry friction of the rotor"
    )
    static_torque_n_m: Extension = parameter(
        "N·m", at_least=0.0, default=None, doc="tau_s, breakaway torque, at least tau_c"
    )
    stribeck_velocity_rad_s: Extension = parameter(
        "rad/s", above=0.0, default=None, doc="w_s, speed at which tau_s falls to tau_c"
    )
    cogging_torque_n_m: Extension = parameter(
        "N·m", at_least=0.0, default=None, doc="amplitude of the cogging torque"
    )
    cogging_periods_per_turn: Extension = parameter(
        "1/turn", above=0.0, default=None, doc="cogging periods in one turn of the rotor"
    )
    cogging_phase_rad: Extension = parameter("rad", default=None, doc="phase; 0 when not given")
    saturation_current_a: Extension = parameter(
        "A", above=0.0, default=None, doc="i_s in kt(i) = kt tanh(i / i_s) / (i / i_s)"
    )
    supply_voltage_v: Extension = parameter(
        "V", above=0.0, default=None, doc="largest terminal voltage the drive can give"
    )
    current_limit_a: Extension = parameter(
        "A", above=0.0, default=None, doc="largest current the drive lets through"
    )
    torque_limit_n_m: Extension = parameter(
        "N·m", above=0.0, default=None, doc="largest electromagnetic torque the drive asks for"
    )
    thermal_resistance_k_per_w: Extension = parameter(
        "K/W", above=0.0, default=None, doc="Rth, winding to ambient"
    )
    thermal_capacitance_j_per_k: Extension = parameter(
        "J/K", above=0.0, default=None, doc="Cth of the winding"
    )
    ambient_temperature_c: Extension = parameter("°C", default=None, doc="25 when not given")
    reference_temperature_c: Extension = parameter(
        "°C", default=None, doc="temperature at which r_ohm holds; 25 when not given"
    )
    copper_coefficient_per_k: Extension = parameter(
        "1/K", at_least=0.0, default=None, doc="alpha of R(T); copper's 0.00393 when not given"
    )
    max_winding_temperature_c: Extension = parameter(
        "°C", default=None, doc="above it the flux `overload` is 1"
    )

    allow_ke_kt_mismatch: bool = option(default=False)
    """Accept a ke that differs from kt by more than 1 %, which creates or destroys energy."""
    ke_follows_kt: bool = option(init=False)
    """ke was not given: `with_params(kt_n_m_per_a=...)` then moves both."""

    def __post_init__(self) -> None:
        self.ke_follows_kt = self.ke_v_s_per_rad is None
        if self.ke_v_s_per_rad is None:
            self.ke_v_s_per_rad = self.kt_n_m_per_a
        self.tool_offset_in_rotor_frame = _unit_quaternion(self.tool_offset_in_rotor_frame)
        if self.cogging_torque_n_m is not None and self.cogging_phase_rad is None:
            self.cogging_phase_rad = 0.0
        if self.thermal_resistance_k_per_w is not None:
            defaults = {
                "ambient_temperature_c": 25.0,
                "reference_temperature_c": 25.0,
                "copper_coefficient_per_k": 0.00393,
            }
            for name, value in defaults.items():
                if getattr(self, name) is None:
                    setattr(self, name, value)

    def with_params(self, **values: ArrayLike) -> "MotorParameters":
        if self.ke_follows_kt and "kt_n_m_per_a" in values:
            values = {"ke_v_s_per_rad": values["kt_n_m_per_a"], **values}
        return super().with_params(**values)

    def __check_init__(self) -> None:
        super().__check_init__()
        where = f"{type(self).__name__} {self.name!r}"
        for problem in (*_option_problems(self), *_value_problems(self), *_pairing_problems(self)):
            raise ParameterError(f"{where}: {problem}")


def _unit_quaternion(pose: Any) -> Any:
    """The pose with its quaternion scaled to unit length; one of zero is left to the check."""
    if isinstance(pose, jax.core.Tracer) or np.shape(pose) != (7,):
        return pose
    pose = np.asarray(pose, dtype=float)
    length = np.linalg.norm(pose[3:])
    return pose if length < 1e-6 else np.concatenate([pose[:3], pose[3:] / length])


def _option_problems(node: MotorParameters) -> Iterator[str]:
    choices = {"command_mode": COMMAND_MODES, "integrator": INTEGRATORS, "shaft": SHAFTS}
    for name, allowed in choices.items():
        if getattr(node, name) not in allowed:
            yield f"{name} must be one of {', '.join(allowed)}, got {getattr(node, name)!r}"


def _value_problems(node: MotorParameters) -> Iterator[str]:
    if (
        node.command_mode in ("auto", "voltage")
        and _known(node.l_henry)
        and _plain(node.l_henry) == 0
    ):
        yield (
            f"l_henry must be > 0 H where a voltage can be commanded (command_mode "
            f"{node.command_mode!r}), got 0. Give the data sheet's, or one that is too small to "
            f"matter, such as r_ohm * timestep / 100; or set command_mode to 'torque' or 'velocity'"
        )
    axis, quaternion = node.axis_in_parent_frame, node.tool_offset_in_rotor_frame[3:]
    if _known(axis) and np.linalg.norm(axis) < 1e-6:
        yield f"axis_in_parent_frame must have a length > 0, got {axis}"
    if _known(quaternion) and np.linalg.norm(quaternion) < 1e-6:
        yield f"tool_offset_in_rotor_frame must have a quaternion of length > 0, got {quaternion}"
    ke, kt = _plain(node.ke_v_s_per_rad), _plain(node.kt_n_m_per_a)
    if not node.allow_ke_kt_mismatch and _known(ke, kt) and abs(ke / kt - 1) > KE_TOLERANCE:
        yield (
            f"ke_v_s_per_rad must equal kt_n_m_per_a = {kt:g} within {KE_TOLERANCE:.0%} (in SI "
            f"units they are one constant), got {ke:g}. Leave it out, check for V/krpm (times "
            f"0.00954930 is V·s/rad), or pass allow_ke_kt_mismatch=True"
        )
    supply_sets_torque = node.supply_voltage_v is not None and node.command_mode != "voltage"
    if supply_sets_torque and _known(node.r_ohm) and _plain(node.r_ohm) == 0:
        yield (
            "r_ohm must be > 0 Ω with supply_voltage_v outside command_mode 'voltage' (it sets "
            "the torque that the supply can drive), got 0"
        )
    tau_c, tau_s = _plain(node.coulomb_torque_n_m), _plain(node.static_torque_n_m)
    if tau_s is not None and tau_c is not None and _known(tau_s, tau_c) and tau_s < tau_c:
        yield f"static_torque_n_m must be >= coulomb_torque_n_m = {tau_c:g} N·m, got {tau_s:g}"


_NEEDS = {
    "gear_efficiency": ("gear_ratio",),
    "output_inertia_kg_m2": ("gear_ratio",),
    "static_torque_n_m": ("coulomb_torque_n_m", "stribeck_velocity_rad_s"),
    "stribeck_velocity_rad_s": ("static_torque_n_m",),
    "cogging_torque_n_m": ("cogging_periods_per_turn",),
    "cogging_periods_per_turn": ("cogging_torque_n_m",),
    "cogging_phase_rad": ("cogging_torque_n_m",),
    "thermal_resistance_k_per_w": ("thermal_capacitance_j_per_k",),
    "thermal_capacitance_j_per_k": ("thermal_resistance_k_per_w",),
    "ambient_temperature_c": ("thermal_resistance_k_per_w",),
    "reference_temperature_c": ("thermal_resistance_k_per_w",),
    "copper_coefficient_per_k": ("thermal_resistance_k_per_w",),
    "max_winding_temperature_c": ("thermal_resistance_k_per_w",),
}
_NOT_EXACT = ("gear_efficiency", "coulomb_torque_n_m")
_NOT_EXACT_UNLESS_VOLTAGE = ("supply_voltage_v", "current_limit_a", "torque_limit_n_m")


def _pairing_problems(node: MotorParameters) -> Iterator[str]:
    given = {name for name in node.parameter_specs() if getattr(node, name) is not None}
    for name, needed in _NEEDS.items():
        for other in needed:
            if name in given and other not in given:
                yield f"{name} needs {other} as well, got None"
    if node.shaft == "driven" and "coulomb_torque_n_m" in given:
        yield (
            f"coulomb_torque_n_m must be None with shaft 'driven' (what sticks belongs to the "
            f"mechanism that integrates the speed), got {node.coulomb_torque_n_m}. Give the "
            f"mechanism that friction, gear_ratio times as large at the output shaft"
        )
    if node.integrator == "exact" and node.shaft == "free":
        refused = _NOT_EXACT + (() if node.command_mode == "voltage" else _NOT_EXACT_UNLESS_VOLTAGE)
        for name in refused:
            if name in given:
                yield (
                    f"{name} must be None with integrator 'exact' and command_mode "
                    f"{node.command_mode!r} (the step is then not linear), got "
                    f"{getattr(node, name)}. Use integrator 'semi_implicit'"
                )


def _known(*values: Any) -> bool:
    """Not traced, so its value can be looked at."""
    return not any(isinstance(value, jax.core.Tracer) for value in values)


def _plain(value: Any) -> Any:
    """A float if known: inside `jit` even arrays that are known compare to something traced."""
    return float(value) if value is not None and _known(value) else value
