"""Forward kinematics: where the links are, and how fast a point moves for each joint.

"World" is the frame of the root link. Whoever places the robot elsewhere composes its base pose in
front.
"""

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Float

from mime.control.kinematics.joints import joint_frames, joint_motions
from mime.control.kinematics.recursion import Walk, walk
from mime.control.kinematics.rnea import move_link
from mime.control.kinematics.scalar import Array, Scalar, pack, unpack
from mime.control.kinematics.spatial import (
    AT_REST,
    IDENTITY_FRAME,
    Frame,
    LinkMotion,
    Motion,
    Vector,
    frame_from_matrix,
)
from mime.control.kinematics.tree import KinematicTree, path_to_root
from mime.core.pose import quat_from_matrix
from mime.native.straight import kernel_function


def link_frames(walk: Walk, X: Any) -> Any:
    """X_world_i = X_world_parent X_i, for each link."""

    def place(parent: Frame, X: Frame) -> tuple[Frame, Frame]:
        frame = parent.compose(X)
        return frame, frame

    return walk.outward(place, IDENTITY_FRAME, X)


@kernel_function()
def joint_to_world_transforms(
    tree: KinematicTree, q: Float[Array, " joints"]
) -> Float[Array, "links 4 4"]:
    """Pose of each URDF link frame (which is its joint's frame) in the world."""
    links = walk(tree, q)
    frames = link_frames(links, joint_frames(links, q))
    return links.array(links.each(_rows, frames), q).reshape(-1, 4, 4)


@kernel_function()
def link_to_world_transforms(
    tree: KinematicTree, q: Float[Array, " joints"]
) -> Float[Array, "links 4 4"]:
    """Pose of each link's `<inertial>` origin in the world; its axes are those of the link."""
    links = walk(tree, q)
    frames, origins = link_frames(links, joint_frames(links, q)), tree.inertial_origins
    at_origin = lambda X, p: _rows(Frame(X.R, X.point(Vector(p))))  # noqa: E731
    rows = links.each(at_origin, frames, links.link_table(origins))
    return links.array(rows, q).reshape(-1, 4, 4)


@kernel_function()
def link_world_poses(
    tree: KinematicTree, q: Float[Array, " joints"]
) -> Float[jax.Array, "links 7"]:
    """[x, y, z, qw, qx, qy, qz] of each link's `<inertial>` origin, in the link's axes."""
    return jax.vmap(_pose)(jnp.asarray(link_to_world_transforms(tree, q)))


@kernel_function("frame_name")
def frame_transform(
    tree: KinematicTree, q: Float[Array, " joints"], frame_name: str
) -> Float[Array, "4 4"]:
    """Pose of any URDF link frame in the world, merged links and the root included."""
    link_idx, offset = tree.frame(frame_name)
    links = _path(tree, link_idx, q)
    X = frame_from_matrix(unpack(offset, links.dtype))
    if link_idx >= 0:
        X = links.last(link_frames(links, joint_frames(links, q))).compose(X)
    return pack(_rows(X), links.dtype, q)


@kernel_function("frame_name")
def frame_pose(
    tree: KinematicTree, q: Float[Array, " joints"], frame_name: str
) -> Float[jax.Array, "7"]:
    """`frame_transform` as [x, y, z, qw, qx, qy, qz]."""
    return _pose(frame_transform(tree, q, frame_name))


@kernel_function("link_idx")
def frame_jacobian(
    tree: KinematicTree, q: Float[Array, " joints"], link_idx: int
) -> Float[Array, "6 joints"]:
    """[v; w] = J(q) q̇ of a link, in world axes: v of its `<inertial>` origin, w its turning."""
    return _jacobian(tree, q, _inertial_origin(tree, link_idx))


@kernel_function("frame_name")
def frame_jacobian_at(
    tree: KinematicTree,
    q: Float[Array, " joints"],
    frame_name: str,
    point_in_frame: Float[Array, "3"] | None = None,
) -> Float[Array, "6 joints"]:
    """[v; w] = J(q) q̇ of a point of any URDF link (default: the link's origin), in world axes."""
    return _jacobian(tree, q, _point_of_frame(tree, frame_name, point_in_frame))


@kernel_function("link_idx")
def frame_jacobian_dot_qd(
    tree: KinematicTree, q: Float[Array, " joints"], qd: Float[Array, " joints"], link_idx: int
) -> Float[Array, "6"]:
    """J̇ q̇: acceleration [v̇; ẇ] of a link's `<inertial>` origin when q̈ = 0, in world axes."""
    return _jacobian_dot_qd(tree, q, qd, _inertial_origin(tree, link_idx))


@kernel_function("frame_name")
def frame_jacobian_dot_qd_at(
    tree: KinematicTree,
    q: Float[Array, " joints"],
    qd: Float[Array, " joints"],
    frame_name: str,
    point_in_frame: Float[Array, "3"] | None = None,
) -> Float[Array, "6"]:
    """J̇ q̇ of a point of any URDF link (default: the link's origin), in world axes."""
    return _jacobian_dot_qd(tree, q, qd, _point_of_frame(tree, frame_name, point_in_frame))


class _Point(NamedTuple):
    """A point of a moving link (-1: the root), in a frame that is fixed to the link."""

    link_idx: int
    frame: Array
    point: Array

    def in_link(self, dtype: DTypeLike | None) -> Vector:
        return frame_from_matrix(unpack(self.frame, dtype)).point(Vector(unpack(self.point, dtype)))


def _inertial_origin(tree: KinematicTree, link_idx: int) -> _Point:
    if not 0 <= link_idx < tree.num_links:
        raise IndexError(
            f"{tree.name}: link_idx must be 0 to {tree.num_links - 1}, got {link_idx}. "
            "For a link by its name, the root or a merged one, use frame_jacobian_at."
        )
    return _Point(link_idx, np.eye(4), tree.inertial_origins[link_idx])


def _point_of_frame(tree: KinematicTree, frame_name: str, point_in_frame: Array | None) -> _Point:
    return _Point(
        *tree.frame(frame_name), np.zeros(3) if point_in_frame is None else point_in_frame
    )


def _jacobian(tree: KinematicTree, q: Array, point: _Point) -> Array:
    """Column of joint j:  [u × (p - p_j); u] if revolute, [u; 0] if prismatic."""
    links = _path(tree, point.link_idx, q, point)
    if point.link_idx < 0:
        return pack([[0.0] * tree.num_joints] * 6, links.dtype, q)
    frames = link_frames(links, joint_frames(links, q))
    p = links.last(frames).point(point.in_link(links.dtype))

    def column(p: Vector, frame: Frame, S: Motion) -> tuple[Callable, list[Scalar]]:
        v, w = frame.R @ S.linear, frame.R @ S.angular
        return lambda: p, [*(v + w.cross(p - frame.r)), *w]

    columns = links.inward(column, p, frames, joint_motions(links))
    rows = [links.to_joints(links.each(itemgetter(k), columns)) for k in range(6)]
    return links.rows(rows, q)


def _jacobian_dot_qd(tree: KinematicTree, q: Array, qd: Array, point: _Point) -> Array:
    """[a + A p; ẇ] when q̈ = 0, from the motions of the links up to that of the point."""

    def move(parent: LinkMotion, *joint: Any) -> tuple[LinkMotion, LinkMotion]:
        motion = move_link(parent, *joint)
        return motion, motion

    links = _path(tree, point.link_idx, q, qd, point)
    if point.link_idx < 0:
        return pack([0.0] * 6, links.dtype, q, qd)
    X, rates = joint_frames(links, q), links.to_links(links.joint_table(qd))
    still = links.to_links(links.joint_table(None))
    motions = links.outward(move, AT_REST, X, joint_motions(links), rates, still)
    (_, w_dot, a, A), R = links.last(motions), links.last(link_frames(links, X)).R
    return pack([*(R @ (a + A @ point.in_link(links.dtype))), *(R @ w_dot)], links.dtype, q, qd)


def _path(tree: KinematicTree, link_idx: int, *arguments: Any) -> Walk:
    """The links from the root to this one."""
    return walk(tree, *arguments, links=path_to_root(tree, link_idx)[::-1])


def _rows(X: Frame) -> list[list[Scalar]]:
    return [[*row, p] for row, p in zip(X.R, X.r, strict=True)] + [[0.0, 0.0, 0.0, 1.0]]


@partial(jax.jit, inline=True)  # traced once
def _pose(T: Array) -> jax.Array:
    return jnp.concatenate([T[:3, 3], quat_from_matrix(jnp.asarray(T[:3, :3]))])
