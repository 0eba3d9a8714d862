"""Forward kinematics: where the links are, and how fast a point moves for each joint.

"World" is the frame of the root link. Whoever places the robot elsewhere composes its base pose in
front.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Float

from mime.control.kinematics import in_loops, placement
from mime.control.kinematics.recursion import UNROLLED_FRAMES, UNROLLED_TORQUES, use_loops
from mime.control.kinematics.rnea import link_motions
from mime.control.kinematics.scalar import Array, Scalar, pack, unpack
from mime.control.kinematics.spatial import IDENTITY_FRAME, ZERO, Frame, Vector
from mime.control.kinematics.tree import (
    KinematicTree,
    frame_from_matrix,
    is_prismatic,
    joint_axes,
    joint_transforms,
    link_coordinates,
)
from mime.core.pose import quat_from_matrix


def link_frames(tree: KinematicTree, X: list[Frame]) -> list[Frame]:
    """X_world_i = X_world_parent X_i, for each link."""
    frames: list[Frame] = []
    for parent, X_i in zip(tree.parent_idxs, X, strict=True):
        frames.append(X_i if parent < 0 else frames[parent].compose(X_i))
    return frames


def com_frames(tree: KinematicTree, q: Array) -> list[Frame]:
    """The frame at each link's centre of mass, along the link's axes."""
    return _frames_at(tree, q, tree.coms)


def joint_to_world_transforms(
    tree: KinematicTree, q: Float[Array, " joints"]
) -> Float[Array, "links 4 4"]:
    """Pose of each URDF link frame (which is its joint's frame) in the world."""
    if use_loops(tree, UNROLLED_FRAMES, q):
        return placement.frames(tree, q, at_inertial_origin=False)
    return pack([_rows(X) for X in link_frames(tree, joint_transforms(tree, q))], q)


def link_to_world_transforms(
    tree: KinematicTree, q: Float[Array, " joints"]
) -> Float[Array, "links 4 4"]:
    """Pose of each link's `<inertial>` origin in the world; its axes are those of the link."""
    if use_loops(tree, UNROLLED_FRAMES, q):
        return placement.frames(tree, q, at_inertial_origin=True)
    return pack([_rows(X) for X in _frames_at(tree, q, tree.inertial_origins)], q)


def link_world_poses(
    tree: KinematicTree, q: Float[Array, " joints"]
) -> Float[jax.Array, "links 7"]:
    """[x, y, z, qw, qx, qy, qz] of each link's `<inertial>` origin, in the link's axes."""
    T = link_to_world_transforms(tree, q)
    return (
        jax.vmap(_pose)(T)
        if use_loops(tree, UNROLLED_FRAMES, q)
        else jnp.stack([_pose(t) for t in T])
    )


def frame_transform(
    tree: KinematicTree, q: Float[Array, " joints"], frame_name: str
) -> Float[Array, "4 4"]:
    """Pose of any URDF link frame in the world, merged links and the root included."""
    link_idx, offset = tree.frame(frame_name)
    if use_loops(tree, UNROLLED_TORQUES, q, link_idx=link_idx):
        return placement.tip_frame(tree, q, link_idx) @ jnp.asarray(offset, q.dtype)
    frames = link_frames(tree, joint_transforms(tree, q))
    X_world_link = IDENTITY_FRAME if link_idx < 0 else frames[link_idx]
    return pack(_rows(X_world_link.compose(frame_from_matrix(unpack(offset)))), q)


def frame_pose(
    tree: KinematicTree, q: Float[Array, " joints"], frame_name: str
) -> Float[jax.Array, "7"]:
    """`frame_transform` as [x, y, z, qw, qx, qy, qz]."""
    return _pose(frame_transform(tree, q, frame_name))


def frame_jacobian(
    tree: KinematicTree, q: Float[Array, " joints"], link_idx: int
) -> Float[Array, "6 joints"]:
    """[v; w] = J(q) q̇ of a link, in world axes: v of its `<inertial>` origin, w its turning."""
    return _jacobian(tree, q, link_idx, _inertial_origin(tree, link_idx))


def frame_jacobian_at(
    tree: KinematicTree,
    q: Float[Array, " joints"],
    frame_name: str,
    point_in_frame: Float[Array, "3"] | None = None,
) -> Float[Array, "6 joints"]:
    """[v; w] = J(q) q̇ of a point of any URDF link (default: the link's origin), in world axes."""
    return _jacobian(tree, q, *_point_of_frame(tree, frame_name, point_in_frame))


def frame_jacobian_dot_qd(
    tree: KinematicTree, q: Float[Array, " joints"], qd: Float[Array, " joints"], link_idx: int
) -> Float[Array, "6"]:
    """J̇ q̇: acceleration [v̇; ẇ] of a link's `<inertial>` origin when q̈ = 0, in world axes."""
    return _jacobian_dot_qd(tree, q, qd, link_idx, _inertial_origin(tree, link_idx))


def frame_jacobian_dot_qd_at(
    tree: KinematicTree,
    q: Float[Array, " joints"],
    qd: Float[Array, " joints"],
    frame_name: str,
    point_in_frame: Float[Array, "3"] | None = None,
) -> Float[Array, "6"]:
    """J̇ q̇ of a point of any URDF link (default: the link's origin), in world axes."""
    return _jacobian_dot_qd(tree, q, qd, *_point_of_frame(tree, frame_name, point_in_frame))


def _jacobian(tree: KinematicTree, q: Array, link_idx: int, point_in_link: Vector) -> Array:
    """Column of joint j:  [u × (p - p_j); u] if revolute, [u; 0] if prismatic."""
    if use_loops(tree, UNROLLED_FRAMES, q, link_idx=link_idx):
        return in_loops.tip_jacobian(tree, q, link_idx, point_in_link)
    columns = [ZERO] * (2 * tree.num_joints)
    if link_idx >= 0:
        frames = link_frames(tree, joint_transforms(tree, q))
        axes, multiplier = joint_axes(tree), unpack(tree.mimic_multiplier)
        p = frames[link_idx].point(point_in_link)
    j = link_idx
    while j >= 0:
        c = tree.coordinate_idxs[j]
        u = (frames[j].R @ axes[j]) * multiplier[j]
        if is_prismatic(tree, j):
            columns[2 * c] = columns[2 * c] + u
        else:
            columns[2 * c] = columns[2 * c] + u.cross(p - frames[j].r)
            columns[2 * c + 1] = columns[2 * c + 1] + u
        j = tree.parent_idxs[j]
    linear, angular = columns[0::2], columns[1::2]
    rows = [[v[k] for v in linear] for k in range(3)] + [[w[k] for w in angular] for k in range(3)]
    return pack(rows, q)


def _jacobian_dot_qd(
    tree: KinematicTree, q: Array, qd: Array, link_idx: int, point_in_link: Vector
) -> Array:
    if link_idx < 0:
        return pack([0.0] * 6, q, qd)
    if use_loops(tree, UNROLLED_TORQUES, q, qd, link_idx=link_idx):
        return in_loops.tip_acceleration(tree, q, qd, link_idx, point_in_link)
    X = joint_transforms(tree, q)
    no_acceleration: list[Scalar] = [0.0] * tree.num_links
    motion = link_motions(tree, X, link_coordinates(tree, unpack(qd)), no_acceleration, ZERO)[
        link_idx
    ]
    R = link_frames(tree, X)[link_idx].R
    return pack([*(R @ (motion.a + motion.A @ point_in_link)), *(R @ motion.w_dot)], q, qd)


def _inertial_origin(tree: KinematicTree, link_idx: int) -> Vector:
    if not 0 <= link_idx < tree.num_links:
        raise IndexError(
            f"{tree.name}: link_idx must be 0 to {tree.num_links - 1}, got {link_idx}. "
            "For a link by its name, the root or a merged one, use frame_jacobian_at."
        )
    return Vector(unpack(tree.inertial_origins)[link_idx])


def _frames_at(tree: KinematicTree, q: Array, points: Array) -> list[Frame]:
    """A frame at one point of each link, along the link's axes."""
    frames = link_frames(tree, joint_transforms(tree, q))
    return [Frame(X.R, X.point(Vector(p))) for X, p in zip(frames, unpack(points), strict=True)]


def _point_of_frame(
    tree: KinematicTree, frame_name: str, point_in_frame: Array | None
) -> tuple[int, Vector]:
    link_idx, offset = tree.frame(frame_name)
    point = ZERO if point_in_frame is None else Vector(unpack(point_in_frame))
    return link_idx, frame_from_matrix(unpack(offset)).point(point)


def _rows(X: Frame) -> list[list[Scalar]]:
    return [[*row, p] for row, p in zip(X.R, X.r, strict=True)] + [[0.0, 0.0, 0.0, 1.0]]


def _pose(T: Array) -> jax.Array:
    return jnp.concatenate([T[:3, 3], quat_from_matrix(jnp.asarray(T[:3, :3]))])
