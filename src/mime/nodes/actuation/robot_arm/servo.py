"""A position and velocity servo at every joint of an arm, taken implicitly.

    τ = tau_cmd + g(q) + kp (q_des - q') + kd (q̇_des - q̇'),      |τ| <= T,   |q̇'| <= V

Primes are the end of the step: stiffness and damping join M on the diagonal, M + dt kd + dt² kp,
and no gain is too large for a step. Limits hold inside the same step, see
`mime.control.falling_torques`. At its speed limit a servo brakes, with as much torque as it has.
The joint of a spring has its servo on the rotor. Where drives move several joints, a servo is at
its drive: q is C q then (`drive_coupling`), and gains and limits are the drive's, after its gear.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mime.control import drives
from mime.control.kinematics import KinematicTree, gravity_vector
from mime.control.servo_lines import ServoLaw
from mime.core.node import Values
from mime.core.parameters import EffectByName, with_fields
from mime.core.spec import Input, option, parameter

_LIMITS = ("torque_limits_n_m", "velocity_limits_rad_per_s")


class Servo(EffectByName):
    """τ = tau_cmd + g(q) + kp (q_des - q') + kd (q̇_des - q̇') within limits, at the step's end.

    g is what is left of gravity where something bears a part of it (`compensating_torques`).

    Values are one for all joints, one per joint, or a mapping from joint names (joints not named
    have no gain, and the limits of the URDF).
    """

    kp: Any = parameter("N·m/rad", shape=None, at_least=0.0, folds=True, doc="per error")
    kd: Any = parameter("N·m·s/rad", shape=None, at_least=0.0, folds=True, doc="per its rate")
    torque_limits_n_m: Any = parameter(
        "N·m", shape=None, above=0.0, folds=True, may_be_infinite=True, default=None,
        doc="default: the URDF's effort",
    )  # fmt: skip
    velocity_limits_rad_per_s: Any = parameter(
        "rad/s", shape=None, above=0.0, folds=True, may_be_infinite=True, default=None,
        doc="default: the URDF's velocity",
    )  # fmt: skip
    gravity_compensation: bool = option(default=True)
    limit_torque: bool = option(default=True)
    limit_speed: bool = option(default=True)

    def of_joints(self, tree: KinematicTree, per_joint: Callable[[str, Any, Any], Any]) -> "Servo":
        """The servo with an entry per joint: `per_joint(name, value, of joints not named)`."""
        defaults = (0.0, 0.0, tree.effort_limits, tree.velocity_limits)
        changed = {
            name: per_joint(name, value, default)
            for name, default in zip(("kp", "kd", *_LIMITS), defaults, strict=True)
            if (value := getattr(self, name)) is not None
        }
        return dataclasses.replace(self, **changed)

    def with_free_joints(self, tree: KinematicTree, count: int) -> "Servo":
        """The servo of a tree with `count` joints more in front, which it leaves alone."""

        def padded(values: Any, of_free: float) -> Any:
            xp: Any = np if isinstance(values, np.ndarray) else jnp
            return xp.concatenate([np.full(count, of_free, values.dtype), values])

        T, V = self.torque_limits_n_m, self.velocity_limits_rad_per_s
        none = np.full(tree.num_joints, np.inf)
        T = none if not self.limit_torque else tree.effort_limits if T is None else T
        V = none if not self.limit_speed else tree.velocity_limits if V is None else V
        return with_fields(
            self,
            kp=padded(self.kp, 0.0),
            kd=padded(self.kd, 0.0),
            torque_limits_n_m=padded(T, 0.0),
            velocity_limits_rad_per_s=padded(V, np.inf),
            limit_torque=True,
            limit_speed=True,
        )

    def limits(self, tree: KinematicTree, dtype: Any) -> tuple[Array, Array]:
        """T and V (N,), infinite where there is none."""
        torque, speed = self.torque_limits_n_m, self.velocity_limits_rad_per_s
        given = (
            (self.limit_torque, tree.effort_limits if torque is None else torque),
            (self.limit_speed, tree.velocity_limits if speed is None else speed),
        )
        none = jnp.full(tree.num_joints, jnp.inf, dtype)
        T, V = (jnp.asarray(limit, dtype) if on else none for on, limit in given)
        return T, V

    def inputs(self, n: int) -> dict[str, Input]:
        """What an arm with a servo can be told besides."""
        return {
            "desired_joint_angles": Input((n,), "rad", 0.0, "replacive", "q_des of the servo"),
            "desired_joint_velocities": Input((n,), "rad/s", 0.0, "replacive", "q̇_des"),
        }

    def pull(
        self, tree: KinematicTree, q: Array, rotors: Array, inputs: Values, gravity_base: Any
    ) -> Array:
        """tau_cmd + g(q) + kp (q_des - θ) + kd q̇_des (N,): the torque at rest, without limits.

        All of it is at the drives, where they move several joints.
        """
        dtype = q.dtype
        kp, kd = jnp.asarray(self.kp, dtype), jnp.asarray(self.kd, dtype)
        angles, velocities, command = (
            jnp.asarray(inputs[name], dtype)
            for name in (
                "desired_joint_angles",
                "desired_joint_velocities",
                "commanded_joint_torques",
            )
        )
        b = drives.torques_of(tree, command) + kp * drives.of_joints(tree, angles - rotors)
        b = b + kd * drives.of_joints(tree, velocities)
        if self.gravity_compensation:
            b = b + drives.torques_of(tree, jnp.asarray(gravity_vector(tree, q, gravity_base)))
        return b

    def law(self, tree: KinematicTree, b: Array, dt: Any) -> ServoLaw:
        """Torque of each joint over the velocity at the end of the step; b is the `pull`."""
        K = jnp.asarray(self.kd, b.dtype) + dt * jnp.asarray(self.kp, b.dtype)
        return ServoLaw(b, K, *self.limits(tree, b.dtype))
