"""The motor's metadata: the one source of its equations, assumptions, limits and ranges."""

import dataclasses

from mime.core.spec import Mapped, NodeMeta, ValidatedRange


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

META = MotorMeta(
    id="MIME-NODE-100",
    version="1.2.0",
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
        r"\text{exact:} \quad x_{n+1} = x_{ss} + e^{A \Delta t} (x_n - x_{ss})",
    ),
    assumptions=(
        "One rotational degree of freedom.",
        "Viscous bearing friction b w; dry friction only where coulomb_torque_n_m is given.",
        "DC brushed armature: V = R i + L di/dt + ke w.",
        "kt = ke in SI units; a ke that differs by more than 1 % is refused unless allowed.",
        "The rotor's inertia is constant: no imbalance.",
        "The tool is rigid in the rotor's frame.",
        "Inputs are constant over a step.",
        "Outside voltage mode the electrical circuit is not simulated: the drive's torque is "
        "immediate, `current` is zero, and the winding is heated by torque / kt.",
    ),
    limitations=(
        "Without the cogging parameters low speeds are smoother than a real motor's.",
        "Without the thermal parameters a sustained overload goes unnoticed. The winding has one "
        "temperature; the housing's slower one is not simulated.",
        "A terminal voltage is smooth; the ripple of a switched one needs a PwmDriveNode at its "
        "own fast rate.",
        "The PI's default gains suit a small rotor (J = 1e-4 kg·m², b = 0.01 N·m·s/rad): others "
        "need their own.",
        "Without saturation_current_a torque is linear in current at any current.",
        "command_mode 'auto' takes a command of zero for none: 0 V coasts, it does not brake.",
        "Semi-implicit Euler is of first order, and takes the back-EMF explicitly: with "
        "dt > 2 J R / (kt ke) the voltage mode oscillates. integrator='exact' has no such limit.",
        "The reaction torque is that of the end of the step; in velocity mode it differs from the "
        "step's mean by Kp (w_{n+1} - w_n).",
        "A gear has no backlash and no elasticity, and the same efficiency in both directions.",
        "With a driven shaft the back-EMF, the damping and the gear's losses act on the mechanism "
        "explicitly, unless both are in a coupling group; the reaction on the parent is the "
        "mechanism's to compute.",
    ),
    validated_ranges=(
        ValidatedRange("inertia_kg_m2", 1e-7, 1e-2, "kg·m²", "lab scale to small servo motors"),
        ValidatedRange(
            "kt_n_m_per_a", 1e-3, 1.0, "N·m/A", "small brushed motors to NEMA 23 servos"
        ),
        ValidatedRange("commanded_velocity", 0.0, 500.0, "rad/s", "default PI to about 50 rad/s"),
        ValidatedRange("timestep", 1e-7, 100.0, "s", "integrator 'exact'; 'semi_implicit' to 1e-3"),
    ),
    references=(
        "Krause, P. C., Wasynczuk, O., Sudhoff, S. D., Pekarek, S. D. (2013). Analysis of Electric "
        "Machinery and Drive Systems. The DC brushed motor's equations.",
        "Olsson, H., Åström, K. J., Canudas de Wit, C., Gäfvert, M., Lischinsky, P. (1998). "
        "Friction Models and Friction Compensation. Coulomb and Stribeck friction.",
        "Higham, N. J. (2008). Functions of Matrices. Newton's divided differences for f(A).",
    ),
    implementation=(
        Mapped("J dw/dt = tau_net - b w", _UPDATE, "implicit in b w"),
        Mapped("L di/dt = V - R i - ke w", _UPDATE, "implicit in R i"),
        Mapped("tau_motor = kt i", _UPDATE, "voltage mode only"),
        Mapped("tau_PI = Kp e + Ki ∫e dt", _UPDATE, "frozen outside velocity mode"),
        Mapped("theta_{n+1} = theta_n + w_{n+1} dt", _UPDATE, "semi-implicit Euler"),
        Mapped("pose composition", f"{_MODULE}.compose_pose", "quaternion product"),
        Mapped("axis-angle to quaternion", f"{_MODULE}._quat_from_axis_angle", "in compose_pose"),
        Mapped("mode dispatch", f"{_MODULE}.drive.mode_of", "torque > voltage > velocity"),
        Mapped("limits, anti-windup", f"{_MODULE}.drive.command"),
        Mapped("e^{A dt}", f"{_MODULE}.exponential.flow", "2x2, closed form"),
        Mapped("dry friction, gear losses", f"{_MODULE}.friction.next_speed", "implicit, sticks"),
        Mapped("driven shaft", f"{_MODULE}.driven.step"),
        Mapped("tau_s", f"{_MODULE}.driven.shaft_torque"),
        Mapped("winding temperature", f"{_MODULE}.thermal.next_temperature", "exact at constant i"),
        Mapped("kt(i), cogging", f"{_MODULE}.magnetics.constants"),
        Mapped("A, B, C, D", f"{_MODULE}.MotorNode.state_space"),
    ),
)
