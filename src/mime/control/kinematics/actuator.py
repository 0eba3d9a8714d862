"""What drives a joint: how a control becomes a torque, as plain data of a robot's file."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime._text import quoted

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


def actuator_torques(
    tree: Any, controls: Any, joint_angles: Any, joint_velocities: Any, gravity_world: Any = None
) -> Float[Array | np.ndarray, " n"]:
    """The torque of a tree's actuators on each joint, in N·m, from their controls (A,).

    At `tree.actuator_compensated_joints` they give the compensation of weight besides, as MuJoCo's
    do, for `gravity_world` (seen from the root; by default the file's). A joint feels no more than
    its effort limit. A motor with an inductance has a current of its own: simulate it as a
    `MotorNode`. NumPy arrays give a NumPy array.
    """
    compensation = _compensation(tree, joint_angles, gravity_world)
    given = (controls, joint_angles, joint_velocities, tree.effort_limits, compensation)
    xp: Any = jnp if any(isinstance(values, jax.Array) for values in given) else np
    u, q, qd = (xp.asarray(values) for values in given[:3])
    tau = [xp.zeros_like(q[0])] * len(tree.joint_names)
    for actuator, control in zip(tree.actuators, u, strict=True):
        j = tree.joint_names.index(actuator.joint_name)
        tau[j] = tau[j] + actuator.gear * _force(actuator, control, q[j], qd[j], xp)
    limit = xp.asarray(tree.effort_limits, q.dtype)
    return xp.clip(xp.stack(tau) + compensation, -limit, limit)


def _compensation(tree: Any, q: Any, gravity: Any) -> Any:
    """What actuators add at the joints whose compensation is theirs; a plain 0 without any."""
    if not tree.actuator_compensated_joints:
        return 0.0
    from mime.control.kinematics.compensation import by_actuators, compensating_torques

    if gravity is None:
        gravity = None if tree.base == "floating" else tree.gravity_m_per_s2
    if gravity is None:
        joints = quoted(tree.actuator_compensated_joints)
        raise ValueError(
            f"{tree.name}: actuators bear weight at {joints}, so their torques depend on gravity "
            "as the root sees it; got none. Pass gravity_world"
        )
    tau = compensating_torques(tree, q, np.asarray(gravity, float))[-len(tree.joint_names) :]
    return tau * by_actuators(tree)


def _force(actuator: Actuator, control: Any, q: Any, qd: Any, xp: Any) -> Any:
    """What an actuator gives before its gear."""
    length, rate = actuator.gear * q, actuator.gear * qd
    u = xp.clip(control, *actuator.control_range)
    if actuator.motor is None:
        (g0, g1, g2), (b0, b1, b2) = actuator.gain, actuator.bias
        force = (g0 + g1 * length + g2 * rate) * u + b0 + b1 * length + b2 * rate
    else:
        force = _motor_torque(actuator.name, actuator.motor, u, length, rate, xp)
    return xp.clip(force, *actuator.force_range)


def _motor_torque(name: str, motor: DcMotor, voltage: Any, angle: Any, speed: Any, xp: Any) -> Any:
    """K (v - K w) / R + A sin(n θ + φ)"""
    if motor.inductance_henry:
        raise ValueError(
            f"actuator {name!r} has an inductance of {motor.inductance_henry} H, so its torque "
            "depends on a current. Simulate it as a MotorNode with shaft='driven'."
        )
    K, R = motor.motor_constant_n_m_per_a, motor.resistance_ohm
    cogging = motor.cogging_n_m * xp.sin(motor.cogging_periods * angle + motor.cogging_phase_rad)
    return K * (voltage - K * speed) / R + cogging
