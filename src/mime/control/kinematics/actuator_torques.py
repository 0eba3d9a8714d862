"""The torques of a tree's actuators, from their controls."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime._text import quoted
from mime.control.kinematics.actuator import Actuator, DcMotor
from mime.control.kinematics.compensation import by_actuators, compensating_torques
from mime.control.kinematics.tree import KinematicTree


def actuator_torques(
    tree: KinematicTree,
    controls: Any,
    joint_angles: Any,
    joint_velocities: Any,
    gravity_world: Any = None,
) -> Float[Array | np.ndarray, " n"]:
    """The torque of a tree's actuators on each joint, in N·m, from their controls (A,).

    At `tree.actuator_compensated_joints` they give the compensation of weight besides, as MuJoCo's
    do, for `gravity_world` (seen from the root; by default the file's). A joint feels no more than
    its effort limit, or than the drives that move it have. A motor with an inductance has a current
    of its own: simulate it as a `MotorNode`. NumPy arrays give a NumPy array.
    """
    compensation = _compensation(tree, joint_angles, gravity_world)
    given = (controls, joint_angles, joint_velocities, tree.effort_limits, compensation)
    xp: Any = jnp if any(isinstance(values, jax.Array) for values in given) else np
    u, q, qd = (xp.asarray(values) for values in given[:3])
    tau = [xp.zeros_like(q[0])] * len(tree.joint_names)
    for actuator, control in zip(tree.actuators, u, strict=True):
        j = tree.joint_names.index(actuator.joint_name)
        if not actuator.at_drive or tree.drive_coupling is None:
            tau[j] = tau[j] + actuator.gear * _force(actuator, control, q[j], qd[j], xp)
            continue
        row = xp.asarray(tree.drive_coupling[j], q.dtype)
        force = actuator.gear * _force(actuator, control, row @ q, row @ qd, xp)
        tau = [tau[k] + row[k] * force for k in range(len(tau))]
    limit = xp.asarray(tree.effort_limits, q.dtype)
    total = xp.stack(tau) + compensation
    if tree.drive_coupling is None:
        return xp.clip(total, -limit, limit)
    C = xp.asarray(tree.drive_coupling, q.dtype)
    return C.T @ xp.clip(xp.linalg.solve(C.T, total), -limit, limit)


def _compensation(tree: KinematicTree, q: Any, gravity: Any) -> Any:
    """What actuators add at the joints whose compensation is theirs; a plain 0 without any."""
    if not tree.actuator_compensated_joints:
        return 0.0
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
