"""What drives a joint: how a control becomes a torque, as plain data of a robot's file."""

from typing import NamedTuple

Range = tuple[float, float]
Affine = tuple[float, float, float]
"""c0 + c1 l + c2 l' of the actuator's length l = gear q and its velocity."""


class DcMotor(NamedTuple):
    """v = R i + L di/dt + K w,   tau = K i, at the rotor, which turns at w = gear q̇.

    The figures are those of a `MotorNode` with `shaft="driven"` and the gear of the actuator.
    """

    motor_constant_n_m_per_a: float
    resistance_ohm: float
    inductance_henry: float = 0.0
    """0: the current follows the voltage at once."""
    cogging_n_m: float = 0.0
    cogging_periods: float = 0.0
    cogging_phase_rad: float = 0.0


class Actuator(NamedTuple):
    """tau = gear · clip((g0 + g1 l + g2 l') u + b0 + b1 l + b2 l'),   l = gear q

    u is the control within its range, the clip that of `force_range`. Inertia and damping of the
    actuator are counted at its joint.
    """

    name: str
    kind: str
    """motor, position, velocity, general or dcmotor."""
    joint_name: str
    gear: float = 1.0
    """N·m or N at the joint for one of the actuator's; l per rad or m of the joint."""
    gain: Affine = (1.0, 0.0, 0.0)
    """g0, g1, g2: force for a control of 1, and what it adds for each of l and l'."""
    bias: Affine = (0.0, 0.0, 0.0)
    """b0, b1, b2: N·m or N without control, and what it adds for each of l and l'."""
    control_range: Range = (-float("inf"), float("inf"))
    """Least and largest u."""
    force_range: Range = (-float("inf"), float("inf"))
    """N·m or N, before the gear."""
    motor: DcMotor | None = None
    """The electrical side of a dcmotor, whose control is a voltage."""
    at_drive: bool = False
    """It acts on the drive with the name of the joint, after its gear: q is (C q)_i there. The same
    where that drive moves no other joint.
    """

    @property
    def effort(self) -> float:
        """N·m or N, the largest torque on the joint that its ranges allow; infinite if none."""
        if not self.gear:  # it drives nothing, and 0 times infinity is no number
            return 0.0
        force = max(map(abs, self.force_range))
        if self.motor is None and not (any(self.gain[1:]) or any(self.bias)):
            gain, reach = abs(self.gain[0]), max(map(abs, self.control_range))
            force = min(force, gain * reach) if gain else 0.0
        return abs(self.gear) * force if force else float("inf")


class Keyframe(NamedTuple):
    """A state that a file names. Joints are in the order of `tree.joint_names`."""

    name: str
    joint_angles: tuple[float, ...]
    joint_velocities: tuple[float, ...]
    controls: tuple[float, ...]
    """In the order of `tree.actuators`."""
    base_pose_world: tuple[float, ...] = ()
    """[x y z qw qx qy qz] of a base that floats; empty where the base is fixed."""
    base_twist_world: tuple[float, ...] = ()
    """Its [v; w] at its origin, in world axes."""
