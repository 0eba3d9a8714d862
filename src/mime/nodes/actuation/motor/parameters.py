"""What a motor is made of: its metadata, its parameters and effects, and what is refused."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Array, ArrayLike

from mime.core.arguments import numbers
from mime.core.node import Node, Scalar, State
from mime.core.parameters import known
from mime.core.pose import IDENTITY_POSE
from mime.core.problem import Problem
from mime.core.spec import LABORATORY, Mapped, NodeMeta, ValidatedRange, effect, option, parameter
from mime.nodes.actuation.friction import Coulomb, LoadFriction, Stribeck
from mime.nodes.actuation.motor.gear import Gear
from mime.nodes.actuation.motor.imbalance import Imbalance
from mime.nodes.actuation.motor.limits import Limits
from mime.nodes.actuation.motor.magnetics import Cogging, Saturation
from mime.nodes.actuation.motor.thermal import Winding

KE_TOLERANCE = 0.01
"""ke and kt are one constant in SI units; data sheets round each to two or three digits."""


@dataclasses.dataclass(frozen=True)
class MotorMeta(NodeMeta):
    """A motor's metadata, and which effects beyond the plain motor it has."""

    has_cogging: bool = False
    has_imbalance_vibration: bool = False

    def problems(self) -> list[str]:
        """Fields left empty; a `has_...` that is False is not empty."""
        return [problem for problem in super().problems() if "meta.has_" not in problem]


_MODULE = "mime.nodes.actuation.motor"
_UPDATE = f"{_MODULE}.MotorNode.update"

MOTOR_META = MotorMeta(
    id="MIME-NODE-100",
    version="2.6.0",
    stability="experimental",
    summary=(
        "Single-axis rotary DC brushed motor that spins a body-fixed rotor, and any tool rigidly "
        "attached to it, about an axis of the parent frame. Commanded by torque, terminal voltage "
        "or angular velocity; publishes the tool's pose in the world."
    ),
    equations=(
        r"J \dot\omega = \tau_\text{cmd} + \tau_\text{load} + \tau_\text{motor} - b \omega, "
        r"\quad \dot\theta = \omega",
        r"L \, di/dt = V - R i - k_e \omega, \quad \tau_\text{motor} = k_t i "
        r"\quad \text{(voltage mode)}",
        r"\tau_\text{cmd} = K_p (\omega_\text{des} - \omega) "
        r"+ K_i \int (\omega_\text{des} - \omega) \, dt \quad \text{(velocity mode)}",
        r"\tau_s = e N (\tau_\text{motor} - b N \omega_s + \tau_\text{cog}), \quad "
        r"\omega = N \omega_s \quad \text{(driven shaft)}",
        r"J(\dot\omega + \hat e\cdot\dot{\boldsymbol\omega}_p) = \tau - b\omega + \hat e\cdot"
        r"(\mathbf M_\text{tool} - \mathbf M_\text{imb}), \quad \mathbf M_p = "
        r"\mathbf M_\text{tool} - J(\omega + \hat e\cdot\boldsymbol\omega_p)\,"
        r"\boldsymbol\omega_p\times\hat e - \mathbf M_\text{imb} \perp \hat e "
        r"\quad \text{(reaction 'full')}",
        r"\mathbf F_\text{imb} = \dot{\mathbf w}\times\mathbf s + \mathbf w\times(\mathbf w\times"
        r"\mathbf s), \quad \mathbf M_\text{imb} = D\dot{\mathbf w} + \mathbf w\times D\mathbf w + "
        r"\mathbf s\times(\mathbf a - \mathbf g)",
        r"P_\text{rotor}^\text{world} = P_\text{parent}^\text{world} \oplus R(\hat e, \theta) "
        r"\oplus P_\text{tool}^\text{rotor}",
    ),
    discretisation=(
        r"I_{n+1} = I_n + (\omega_\text{des} - \omega_n) \Delta t "
        r"\quad \text{(velocity mode, else frozen)}",
        r"i_{n+1} = \frac{i_n + \frac{\Delta t}{L} (V - k_e \omega_n)}{1 + \Delta t R / L}",
        r"\omega_{n+1} = \frac{J \omega_n + \Delta t \, \tau_\text{drive}}{J + \Delta t \, b}, "
        r"\quad \theta_{n+1} = \theta_n + \omega_{n+1} \Delta t",
        r"\text{driven shaft:} \quad i_{n+1} \text{ at the constant } \omega_s, "
        r"\quad \theta_{n+1} = \theta_n + N \omega_s \Delta t",
        r"\text{exact:} \quad x_{n+1} = x_{ss} + e^{A \Delta t} (x_n - x_{ss}), \quad "
        r"\text{with dry friction from event to event}",
    ),
    assumptions=(
        "One rotational degree of freedom, a rigid tool, a constant inertia; balanced unless "
        "`imbalance` is given.",
        "With reaction 'axial' the parent stands still, or turns so slowly that its motion is not "
        "felt. With 'full' the rotor's mass and its inertia across the axis are in the parent's "
        "own model (`RotorStage.payload`).",
        "Viscous bearing friction b w; dry friction only where `friction` is given.",
        "DC brushed armature: V = R i + L di/dt + ke w.",
        "kt = ke in SI units; a ke that differs by more than 1 % is refused unless allowed.",
        "Inputs are constant over a step.",
        "Outside voltage mode the electrical circuit is not simulated: the drive's torque is "
        "immediate, `current` is zero, and the winding is heated by torque / kt.",
    ),
    limitations=(
        "Without `cogging` low speeds are smoother than a real motor's; without `saturation` "
        "torque is linear in current at any current.",
        "Without `winding` or `rated_current_a` an overload goes unnoticed; one that `limits` "
        "clip is in no record but the current's and the torque's. The winding has one temperature; "
        "the housing's slower one is not simulated.",
        "A terminal voltage is smooth; the ripple of a switched one needs a PwmDriveNode at its "
        "own fast rate.",
        "The PI's default gains suit a small rotor (J = 1e-4 kg·m², b = 0.01 N·m·s/rad).",
        "command_mode 'auto' takes a command of zero for none: 0 V coasts, it does not brake.",
        "Semi-implicit Euler is of first order, and takes the back-EMF and the PI explicitly: "
        "beyond largest_stable_timestep(), about 2 J R / (kt ke) in voltage mode, it grows without "
        "bound, and the node warns. integrator='exact' has no such limit.",
        "With dry friction an exact step finds up to four stops, breakaways and reversals (with a "
        "limited current nine of these and its limits) and spends the rest of the step at rest. "
        "With Coulomb friction none has more with real poles, or if it lasts half a period of "
        "complex ones at most; a longer step warns.",
        "An exact step takes Stribeck friction as linear about its first speed: it is of second "
        "order.",
        "The reaction torque is that of the end of the step; in velocity mode it differs from the "
        "step's mean by Kp (w_{n+1} - w_n).",
        "With reaction 'full' the mount's acceleration is that over the step, and its first step "
        "knows none; fed back along a delayed edge, gyroscopic moment and imbalance are of first "
        "order in the step.",
        "A gear has no backlash and no elasticity, and the same efficiency in both directions.",
        "With a driven shaft the back-EMF, the damping and the gear's losses act on the mechanism "
        "explicitly, unless both are in a coupling group; the reaction on the parent is the "
        "mechanism's to compute.",
    ),
    validated_ranges=(
        ValidatedRange("inertia_kg_m2", 1e-7, 1e-2, "kg·m²", "at the timesteps below"),
        ValidatedRange("kt_n_m_per_a", 1e-3, 1.0, "N·m/A", "at the timesteps below"),
        ValidatedRange("commanded_velocity", 0.0, 500.0, "rad/s", "at the timesteps below"),
        ValidatedRange(
            "timestep",
            1e-7,
            100.0,
            "s",
            "integrator 'exact'; 'semi_implicit' below largest_stable_timestep() and to 1e-3: "
            "voltage mode dt² kt ke < (2 L + R dt)(2 J + b dt), velocity mode "
            "dt² Ki + 2 dt (Kp - b) < 4 J",
        ),
    ),
    changelog=(
        ("1.0.0", "2026-11-15", "Three command modes, semi-implicit Euler, pose composition."),
        ("1.1.0", "2026-11-15", "Fixed modes, exact integrator, effects, data sheets, reaction."),
        ("1.2.0", "2026-11-16", "Driven shaft."),
        ("2.0.0", "2026-11-16", "Effects are values: `gear=Gear(ratio=20.0)`."),
        ("2.0.1", "2026-11-16", "`largest_stable_timestep`, a warning beyond it; ranges as run."),
        ("2.1.0", "2026-11-16", "`rated_current_a`, a monitor of the current."),
        ("2.2.0", "2026-11-18", "`reaction='full'`: gyroscopic moment, imbalance, tool wrench."),
        ("2.3.0", "2026-11-19", "Coulomb friction with the exact integrator."),
        ("2.4.0", "2026-11-19", "Voltage mode has the input `series_resistance`: of a bridge."),
        ("2.5.0", "2026-11-19", "`friction=LoadFriction(...)`: friction that grows with the load."),
        (
            "2.6.0",
            "2026-11-20",
            "Exact integrator: Stribeck friction, events of a limited current.",
        ),
    ),
    operating_context=f"{LABORATORY} Between the arm that carries it and the magnet or tool "
    "that it turns, it makes a command a rotation.",
    references=(
        "[@Krause2013] Krause, P. C., Wasynczuk, O., Sudhoff, S. D., Pekarek, S. D. (2013). "
        "Analysis of Electric Machinery and Drive Systems. The DC brushed motor's equations.",
        "[@Olsson1998] Olsson, H., Åström, K. J., Canudas de Wit, C., Gäfvert, M., Lischinsky, P. "
        "(1998). Friction Models and Friction Compensation. Coulomb and Stribeck friction.",
        "[@Duclusaud2025] Duclusaud, M., Passault, G., Padois, V., Ly, O. (2025). Extended "
        "Friction Models for the Physics Simulation of Servo Actuators. Friction that "
        "grows with the load.",
        "[@CTMS] Control Tutorials for MATLAB and Simulink: DC motor speed, system modeling. "
        "University of Michigan. State space and transfer function.",
        "[@Higham2008] Higham, N. J. (2008). Functions of Matrices. Newton's divided differences "
        "for f(A).",
    ),
    implementation=(
        Mapped("J dw/dt = tau_net - b w", f"{_MODULE}.rotor.next_speed", "implicit in b w"),
        Mapped("L di/dt = V - R i - ke w", _UPDATE, "implicit in R i"),
        Mapped("tau_motor = kt i", _UPDATE, "voltage mode only"),
        Mapped("tau_PI = Kp e + Ki ∫e dt", f"{_MODULE}.drive.command", "anti-windup at limits"),
        Mapped("theta_{n+1} = theta_n + w_{n+1} dt", _UPDATE, "semi-implicit Euler"),
        Mapped("pose composition", f"{_MODULE}.compose_pose", "quaternion product"),
        Mapped("axis-angle to quaternion", f"{_MODULE}._quat_from_axis_angle", "in compose_pose"),
        Mapped("mode dispatch", f"{_MODULE}.drive.mode_of", "torque > voltage > velocity"),
        Mapped("e^{A dt}", "mime.control.linear_flow.flow", "2x2, closed form"),
        Mapped("stop, breakaway", f"{_MODULE}.events.step_with_friction", "exact"),
        Mapped("driven shaft", f"{_MODULE}.rotor.driven_step"),
        Mapped("tau_s", f"{_MODULE}.rotor.shaft_torque"),
        Mapped("M_p, F_p", f"{_MODULE}.carried.reaction_wrench", "reaction 'full'"),
        Mapped("J (dw/dt + e . dw_p/dt)", f"{_MODULE}.carried.load_torque", "as a load"),
        Mapped("F_imb, M_imb", f"{_MODULE}.imbalance.Imbalance.wrench"),
        Mapped("gear: e N tau", f"{_MODULE}.gear.Gear.torque_on_output"),
        Mapped(
            "friction: tau_f(w)",
            "mime.nodes.actuation.friction.Stribeck.torque",
            "implicit, sticks",
        ),
        Mapped(
            "friction: tau_f(w, tau_m, tau_e)",
            "mime.nodes.actuation.friction.LoadFriction.largest",
            "implicit, sticks",
        ),
        Mapped("cogging: A sin(n theta + phase)", f"{_MODULE}.magnetics.Cogging.torque"),
        Mapped("saturation: kt(i) / kt", f"{_MODULE}.magnetics.Saturation.factor"),
        Mapped("winding: T", f"{_MODULE}.thermal.Winding.next_temperature", "exact at constant i"),
        Mapped("limits", f"{_MODULE}.limits.Limits.torque"),
        Mapped("largest stable dt", f"{_MODULE}.stability.largest_stable_timestep"),
        Mapped("A, B, C, D", f"{_MODULE}.MotorNode.state_space"),
    ),
)


class MotorParameters(Node):
    """The fields of a motor. Effects are absent (None) unless given."""

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
    rated_current_a: Scalar | None = parameter(
        "A", above=0.0, default=None, doc="clips nothing: a run with a larger current says so"
    )

    command_mode: str = option(default="auto", choices=("auto", "torque", "voltage", "velocity"))
    """`"auto"`: first non-zero command wins. `"torque"`, `"voltage"`, `"velocity"`: 0 is obeyed."""
    integrator: str = option(default="semi_implicit", choices=("semi_implicit", "exact"))
    """`"semi_implicit"` Euler, or `"exact"`: matrix exponential, right for a step of any length.
    With dry friction it finds stops, breakaways and reversals within the step; with Stribeck's it
    is of second order."""
    shaft: str = option(default="free", choices=("free", "driven"))
    """`"free"`: the rotor turns by the torques on it. `"driven"`: the mechanism that carries its
    inertia turns it, at the input `shaft_velocity`, and takes the flux `shaft_torque`."""
    reaction: str = option(default="axial", choices=("axial", "full"))
    """What the parent feels. `"axial"`: the torque about the axis. `"full"`: the gyroscopic moment,
    an imbalance and the wrench on the tool too, of a rotor that knows its parent's twist."""

    gear: Gear | None = effect(Gear, doc="between the rotor and the output shaft")
    friction: Coulomb | Stribeck | LoadFriction | None = effect(
        Coulomb, Stribeck, LoadFriction, doc="dry friction of the rotor"
    )
    cogging: Cogging | None = effect(Cogging, doc="torque ripple of the magnets and slots")
    saturation: Saturation | None = effect(Saturation, doc="of the torque constant, by the current")
    winding: Winding | None = effect(Winding, doc="temperature of the winding, and R(T)")
    limits: Limits | None = effect(Limits, doc="what the drive and its supply can give")
    imbalance: Imbalance | None = effect(Imbalance, doc="mass off the axis, with reaction 'full'")

    allow_ke_kt_mismatch: bool = option(default=False)
    """Accept a ke that differs from kt by more than 1 %, which creates or destroys energy."""
    ke_follows_kt: bool = option(init=False)
    """ke was not given: `with_params(kt_n_m_per_a=...)` then moves both."""

    def __post_init__(self) -> None:
        self.ke_follows_kt = self.ke_v_s_per_rad is None
        if self.ke_v_s_per_rad is None:
            self.ke_v_s_per_rad = self.kt_n_m_per_a
        self.tool_offset_in_rotor_frame = _unit_quaternion(self.tool_offset_in_rotor_frame)

    def with_params(self, **values: ArrayLike) -> "MotorParameters":
        if self.ke_follows_kt and "kt_n_m_per_a" in values:
            values = {"ke_v_s_per_rad": values["kt_n_m_per_a"], **values}
        return super().with_params(**values)

    def resistance(self, state: State) -> Any:
        """R(T) of a winding at the state's temperature; R of one that has none."""
        if self.winding is None:
            return self.r_ohm
        return self.winding.resistance(self.r_ohm, state["winding_temperature"])

    def constants(self, i: Any) -> tuple[Any, Any]:
        """kt(i) and ke(i)."""
        if self.saturation is None:
            return self.kt_n_m_per_a, self.ke_v_s_per_rad
        factor = self.saturation.factor(i)
        return self.kt_n_m_per_a * factor, self.ke_v_s_per_rad * factor

    def value_problems(self) -> Iterator[Problem]:
        mode = self.command_mode
        if mode in ("auto", "voltage") and _number(self.l_henry) == 0:
            yield Problem(
                ("l_henry",),
                f"must be > 0 H where a voltage can be commanded (command_mode {mode!r}), got 0",
                "Give the data sheet's, or one that is too small to matter, such as "
                "r_ohm * timestep / 100; or set command_mode to 'torque' or 'velocity'",
            )
        axis, quaternion = self.axis_in_parent_frame, self.tool_offset_in_rotor_frame[3:]
        if known(axis) and not 1e-6 <= np.linalg.norm(axis) <= 1e6:  # its square must be finite
            message = f"must have a length > 0, from 1e-6 to 1e6, got {axis}"
            yield Problem(("axis_in_parent_frame",), message)
        if known(quaternion) and np.linalg.norm(quaternion) < 1e-6:
            message = f"must have a quaternion of length > 0, got {quaternion}"
            yield Problem(("tool_offset_in_rotor_frame",), message)
        ke, kt = _number(self.ke_v_s_per_rad), _number(self.kt_n_m_per_a)
        if not self.allow_ke_kt_mismatch and abs(ke / kt - 1) > KE_TOLERANCE:
            yield Problem(
                ("ke_v_s_per_rad",),
                f"must equal kt_n_m_per_a = {kt:g} within {KE_TOLERANCE:.0%} (in SI units they are "
                f"one constant), got {ke:g}",
                "Leave it out, check for V/krpm (times 0.00954930 is V·s/rad), or set "
                "allow_ke_kt_mismatch to true",
            )
        supply = self.limits is not None and self.limits.supply_voltage_v is not None
        if supply and mode != "voltage" and _number(self.r_ohm) == 0:
            yield Problem(
                ("r_ohm",),
                "must be > 0 Ω with limits.supply_voltage_v outside command_mode 'voltage' (it "
                "sets the torque that the supply can drive), got 0",
            )
        if self.friction is not None:
            scalar = self.friction.scalar_problems()
            yield from (problem.inside("friction") for problem in scalar)
        if self.shaft == "driven" and self.friction is not None:
            yield Problem(
                ("friction",),
                f"must be None with shaft 'driven' (what sticks belongs to the mechanism that "
                f"integrates the speed), got {type(self.friction).__name__}",
                "Give the mechanism that friction, gear.ratio times as large at the output shaft",
            )
        if self.imbalance is not None:
            if self.reaction != "full":
                hint = "Set reaction to 'full' and wire parent_twist_world"
                yield Problem(("imbalance",), "must be None with reaction 'axial'", hint)
            about = self.imbalance.problems_about(axis)
            yield from (problem.inside("imbalance") for problem in about)
        if self.reaction == "full":
            yield from self._not_carried()
        if self.integrator == "exact" and self.shaft == "free":
            yield from self._not_linear()

    def _not_carried(self) -> Iterator[Problem]:
        """What ties the rotor's inertia to its parent: that must not be fed back along an edge."""
        hint = "Make the rotor a joint of the arm's tree, and this motor's shaft 'driven'"
        if self.shaft == "driven":
            hint = "Leave reaction out: the mechanism has the rotor's mass and pushes its parent"
            yield Problem(("reaction",), "must be 'axial' with shaft 'driven'", hint)
        for name in ("gear", "friction"):
            if getattr(self, name) is not None:
                words = "must be None with reaction 'full': it ties the rotor to its parent"
                yield Problem((name,), words, hint)

    def _not_linear(self) -> Iterator[Problem]:
        mode, hint = self.command_mode, "Use integrator 'semi_implicit'"
        if isinstance(self.friction, LoadFriction):
            kind = type(self.friction).__name__
            message = f"must be Coulomb, Stribeck or None with integrator 'exact', got a {kind}"
            yield Problem(("friction",), message, hint)
        losses = None if self.gear is None else self.gear.efficiency
        limits = None if mode == "voltage" else self.limits
        message = f"must be None with integrator 'exact' and command_mode {mode!r}: not linear"
        for place, given in {("gear", "efficiency"): losses, ("limits",): limits}.items():
            if given is not None:
                yield Problem(place, message, hint)


def _unit_quaternion(pose: Any) -> Any:
    """The pose with its quaternion scaled to unit length; one of zero is left to the check."""
    if not known(pose) or np.shape(numbers("tool_offset_in_rotor_frame", pose)) != (7,):
        return pose
    pose = np.asarray(pose, dtype=float)
    length = np.linalg.norm(pose[3:])
    return pose if length < 1e-6 else np.concatenate([pose[:3], pose[3:] / length])


def _number(value: Any) -> float:
    """The value as a float, on which `jit` does not trace comparisons; NaN, which fails all of
    them, where it is traced itself.
    """
    return float(value) if known(value) else float("nan")
