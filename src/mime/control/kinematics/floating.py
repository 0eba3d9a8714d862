"""A base that floats: six joints in front of a tree, counted from where the base is now.

    u = [v; w; q̇],      M(q) u̇ + c(q, u) = [F; N; tau]

v and w are the velocity of the base's origin and its turning, in the base's axes. The joints are
three sliders along these axes and then three hinges about them. They are at 0 whenever they are
asked, since the base's pose is kept elsewhere, as a quaternion: no orientation is singular, and
all recursions over a tree on a fixed base serve one that floats.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from mime.control.kinematics.crba import mass_matrix
from mime.control.kinematics.forward_dynamics import forward_dynamics
from mime.control.kinematics.joints_without_inertia import refuse_joints_without_inertia
from mime.control.kinematics.rnea import rnea
from mime.control.kinematics.scalar import Array
from mime.control.kinematics.tree import JOINT_TYPE_CONTINUOUS, JOINT_TYPE_PRISMATIC, KinematicTree

BASE = 6
"""Joints, and links, that come before those of the tree; the last of these links is the base."""


def with_base_joints(tree: KinematicTree) -> KinematicTree:
    """The tree with the six joints of its base in front. The base is link 5, the root the world."""
    taken = {*tree.frame_names, *tree.link_joint_names}
    prefix = "base"
    while any(name.startswith(prefix) for name in taken):
        prefix += "'"
    world, names = f"{prefix}/world", [f"{prefix}/{axis}" for axis in ("x", "y", "z")]
    names += [f"{prefix}/{axis}" for axis in ("roll", "pitch", "yaw")]
    nothing, endless = np.zeros(BASE), np.full(BASE, np.inf)
    joints = KinematicTree(
        joint_frames=np.stack([np.eye(4)] * BASE),
        joint_axes_local=np.concatenate([np.eye(3), np.eye(3)]),
        mimic_multiplier=np.ones(BASE),
        mimic_offset=nothing,
        masses=nothing,
        coms=np.zeros((BASE, 3)),
        inertial_shifts=np.zeros((BASE, 3)),
        inertias=np.zeros((BASE, 3, 3)),
        joint_friction=nothing,
        joint_coulomb_friction=nothing,
        joint_limits=np.stack([-endless, endless], axis=1),
        effort_limits=endless,
        velocity_limits=endless,
        gear_ratio=np.ones(BASE),
        rotor_inertia=nothing,
        frame_offsets=np.stack([np.eye(4)] * 2),
        name=tree.name,
        source=tree.source,
        joint_names=tuple(names),
        link_names=tuple(names),
        link_joint_names=tuple(names),
        root_link_name=world,
        joint_kinds=(JOINT_TYPE_PRISMATIC,) * 3 + (JOINT_TYPE_CONTINUOUS,) * 3,
        parent_idxs=tuple(range(-1, BASE - 1)),
        coordinate_idxs=tuple(range(BASE)),
        frame_names=(world, prefix),
        frame_link_idxs=(-1, BASE - 1),
        visuals=(),
        report=(),
        gravity_m_per_s2=tree.gravity_m_per_s2,
    )
    return joints.attach(tree, prefix)


def at_base(q: Float[Array, " joints"]) -> Float[Array, " all"]:
    """[0; q]: the joints of the base are where it is."""
    xp: Any = np if isinstance(q, np.ndarray) else jnp
    return xp.concatenate([xp.zeros(BASE, q.dtype), q])


def turning_of_hinges(w: Float[Array, "3"]) -> Float[Array, "3"]:
    """ẇ = (α̈, β̈, γ̈) + (w_y w_z, -w_x w_z, w_x w_y): three hinges at 0 that turn one another."""
    xp: Any = np if isinstance(w, np.ndarray) else jnp
    x, y, z = w
    return xp.stack([y * z, -x * z, x * y])


def floating_mass_matrix(
    tree: KinematicTree, q: Float[Array, " joints"]
) -> Float[Array, "all all"]:
    """M(q), with T = ½ uᵀ M u; the first six rows and columns are the base's."""
    return mass_matrix(with_base_joints(tree), at_base(q))


def floating_rnea(
    tree: KinematicTree,
    q: Float[Array, " joints"],
    u: Float[Array, " all"],
    u_dot: Float[Array, " all"],
    gravity_base: Float[Array, "3"],
    F_ext: Float[Array, "links 6"] | None = None,
) -> Float[Array, " all"]:
    """[F; N; tau] = M u̇ + c(q, u) - Σ J_iᵀ F_i: what makes the robot move so.

    u̇ holds the acceleration of the base's origin (that of a point, v̇ + w × v), its angular
    acceleration, and q̈. Everything of the base is in its own axes, at its origin; `F_ext` holds a
    wrench per link, in the base's axes at the link's `<inertial>` origin.
    """
    given = _less_turning(u_dot, u)
    return rnea(with_base_joints(tree), at_base(q), u, given, gravity_base, _rows(F_ext))


def floating_forward_dynamics(
    tree: KinematicTree,
    q: Float[Array, " joints"],
    u: Float[Array, " all"],
    forces: Float[Array, " all"],
    gravity_base: Float[Array, "3"],
    F_ext: Float[Array, "links 6"] | None = None,
) -> Float[Array, " all"]:
    """u̇ of the forces [F; N; tau]; the inverse of `floating_rnea`.

    Raises:
        InputError: `joints_without_inertia` has some, the base's own six motions included.

    """
    refuse_joints_without_inertia(tree, floats=True)
    moving = with_base_joints(tree)
    u_dot = forward_dynamics(moving, at_base(q), u, forces, gravity_base, _rows(F_ext))
    return _less_turning(u_dot, u, -1.0)


def _less_turning(u_dot: Array, u: Array, sign: float = 1.0) -> Array:
    xp: Any = np if isinstance(u, np.ndarray) and isinstance(u_dot, np.ndarray) else jnp
    turning = sign * turning_of_hinges(u[3:BASE])
    return xp.concatenate([u_dot[:3], u_dot[3:BASE] - turning, u_dot[BASE:]])


def _rows(F_ext: Array | None) -> Array | None:
    if F_ext is None:
        return None
    xp: Any = np if isinstance(F_ext, np.ndarray) else jnp
    return xp.concatenate([xp.zeros((BASE, 6), F_ext.dtype), F_ext])
