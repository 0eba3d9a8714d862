"""Drives that move several joints, over a step: friction, servos and limits are the drives'.

    u = C q̇,    tau = Cᵀ tau_u,    C⁻ᵀ H C⁻¹ (u⁺ - u) = dt tau_u

u is the velocity of each drive after its gear, C the tree's `drive_coupling`. Where each drive
moves its own joint C is the identity, and drives are joints. A rotor resists as H does, and so does
viscous friction that is taken at the end of a step: dt f joins the inertia of the drive's rotor.
"""

import functools
import operator
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.control.joint_friction import coulomb_step
from mime.control.kinematics import KinematicTree
from mime.control.kinematics.coupling import Solve
from mime.control.positive_definite import solve, solve_held
from mime.control.servo_lines import ServoLaw
from mime.control.servo_step import servo_step


def of_joints(tree: KinematicTree, motion: Any) -> Any:
    """u = C q̇ (N,) of a motion of the joints; angles likewise."""
    C = tree.drive_coupling
    return motion if C is None else _product(C, motion)


def on_joints(tree: KinematicTree, torques: Any) -> Any:
    """Cᵀ tau_u (N,) of torques of the drives."""
    C = tree.drive_coupling
    return torques if C is None else _product(C.T, torques)


def _product(C: Any, x: Any) -> Any:
    """C x, sum by sum where C is constant: XLA computes x anew for every entry of a product."""
    if not isinstance(C, np.ndarray):
        return jnp.asarray(C, x.dtype) @ x
    rows = [[float(c) * x[j] for j, c in enumerate(row) if c] for row in C]
    return jnp.stack([functools.reduce(operator.add, terms) for terms in rows])


def torques_of(tree: KinematicTree, torques: Any) -> Any:
    """C⁻ᵀ tau (N,): what the drives give for torques on the joints; a plain 0 stays one."""
    if tree.drive_coupling is None or isinstance(torques, float):
        return torques
    return _inverse(tree, torques.dtype).T @ torques


def resisting(tree: KinematicTree, friction: Any) -> tuple[KinematicTree, Any]:
    """The tree and the diagonal that resist a step; friction is dt f (N,) of the drives, or None.

    A drive's gear ratio must not be 0 where drives are coupled.
    """
    if tree.drive_coupling is None or friction is None:
        return tree, friction
    rotors = tree.rotor_inertia + friction / tree.gear_ratio**2
    return eqx.tree_at(lambda t: t.rotor_inertia, tree, rotors), None


def dry_step(
    tree: KinematicTree, H: Float[Array, "m m"], v_free: Float[Array, " m"], impulse: Any
) -> Float[Array, " m"]:
    """v after a step with dry friction of the drives, which takes up to `impulse` (M,).

    v is q̇ (N,), or q̇ and then the velocities of rotors that springs part from their joints.
    """
    impulse = jnp.asarray(impulse, H.dtype)
    if tree.drive_coupling is None:
        return coulomb_step(H, v_free, impulse)
    back, C = _matrices(tree, H)
    return back @ coulomb_step(back.T @ H @ back, C @ v_free, impulse)


def servo_step_at_drives(
    tree: KinematicTree,
    solve_joints: Solve,
    H: Float[Array, "m m"],
    p: Float[Array, " m"],
    v_now: Float[Array, " m"],
    law: ServoLaw,
    dt: Any,
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """v and the torques on the joints (M,) after a step with servos at the drives.

    `solve_joints` solves with the zeros of H, where each drive moves its own joint.
    """
    if tree.drive_coupling is None:
        return servo_step(H, p, v_now, law, dt, solve_joints)
    back, C = _matrices(tree, H)
    u, torques = servo_step(back.T @ H @ back, back.T @ p, C @ v_now, law, dt, solve_held)
    return back @ u, C.T @ torques


def _matrices(tree: KinematicTree, H: Array) -> tuple[Array, Array]:
    """C⁻¹ and C, with ones for the rotors after the joints."""
    C = jnp.asarray(tree.drive_coupling, H.dtype)
    both = _inverse(tree, H.dtype), C
    n, m = tree.num_joints, len(H)
    if m == n:
        return both
    ones = jnp.eye(m, dtype=H.dtype)
    return ones.at[:n, :n].set(both[0]), ones.at[:n, :n].set(both[1])


def _inverse(tree: KinematicTree, dtype: Any) -> Array:
    """C⁻¹; of a coupling that varies by its normal equations, which take no pivots."""
    C = tree.drive_coupling
    if isinstance(C, np.ndarray):
        return jnp.asarray(np.linalg.inv(C), dtype)
    C = jnp.asarray(C, dtype)
    return solve(C.T @ C, C.T)
