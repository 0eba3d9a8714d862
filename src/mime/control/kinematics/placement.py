"""Where the links of a large tree are: forward kinematics in a loop.

The loop multiplies small arrays: with one variable per scalar (`columns`) it runs and compiles more
slowly (benchmarks/kinematics.py, all frames of the humanoid).
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from mime.control.kinematics.recursion import (
    Run,
    columns,
    common_dtype,
    of_runs,
    outward,
    runs,
    runs_to,
)
from mime.control.kinematics.scalar import Array, sub
from mime.control.kinematics.spatial import IDENTITY, Frame, Motion, Vector
from mime.control.kinematics.tree import JOINT_TYPE_PRISMATIC, KinematicTree, frame_from_matrix

_CROSS = np.cross(np.eye(3)[:, None, :], np.eye(3)[None, :, :]).transpose(0, 2, 1).reshape(3, 9)
"""u @ _CROSS: the entries of [u]×."""


class Links(NamedTuple):
    """Links in a configuration, in world axes."""

    array: jax.Array
    """[R, p, r, axis] of each link; the other fields are its columns."""
    pose: Frame
    """The frame of the link in the world."""
    X: Frame
    """The frame of the link in its parent: a shift."""
    S: Motion
    """The motion of the link per unit of its joint's velocity."""


class Joints(NamedTuple):
    """[R_i, r_i, r_i, R_i u_i] = fixed + turning cos(q) + across sin(q) + sliding q.

    All are in the parent's axes, which the parent turns. Cosine and sine are operands of a loop,
    since XLA would evaluate them once for each entry that they take part in.
    """

    fixed: jax.Array
    turning: jax.Array
    across: jax.Array
    sliding: jax.Array | None
    cos: jax.Array
    sin: jax.Array
    shift: jax.Array | None


def joints(tree: KinematicTree, q: Array, dtype: DTypeLike, width: int = 6) -> Joints:
    """R_i = R_0 (u uᵀ + cos(q) (1 - u uᵀ) + sin(q) [u]×)  of joints that turn,
    r_i = r_0 + q R_0 u  of joints that slide.
    """
    T, u = tree.joint_frames.astype(dtype), tree.joint_axes_local.astype(dtype)
    R, r = T[:, :3, :3], T[:, :3, 3:]
    along, across = R @ u[:, :, None], R @ (u @ _CROSS.astype(dtype)).reshape(-1, 3, 3)
    kept = along * u[:, None, :]
    slides = _slides(tree)
    any_slides = bool(np.any(slides))
    angle = jnp.asarray(q, dtype) * (1.0 - slides).astype(dtype)

    def wide(*parts: Array) -> jax.Array:
        joined = jnp.concatenate([jnp.asarray(x) for x in parts], axis=2)[:, :, :width]
        return jnp.pad(joined, ((0, 0), (0, 0), (0, width - joined.shape[2])))

    return Joints(
        wide(kept, r, r, along),
        wide(R - kept),
        wide(across),
        wide(0 * R, along, along) if any_slides else None,
        jnp.cos(angle),
        jnp.sin(angle),
        jnp.asarray(q, dtype) * slides.astype(dtype) if any_slides else None,
    )


def place(parent: jax.Array, joint: Joints) -> jax.Array:
    """[R, p, ...] = R_p [R_i, r_i, ...] + [0, p_p, 0]"""
    x = joint.fixed + joint.turning * joint.cos + joint.across * joint.sin
    if joint.sliding is not None and joint.shift is not None:
        x = x + joint.sliding * joint.shift
    is_p = (np.arange(parent.shape[1]) == 3).astype(parent.dtype)[None, :]
    return product(parent[:, :3], x) + parent * is_p


def placed_arrays(
    tree: KinematicTree, q: Array, dtype: DTypeLike, tree_runs: Sequence[Run], width: int = 6
) -> jax.Array:
    """`place` along the tree."""
    root = jnp.eye(3, width, dtype=dtype)
    return outward(tree_runs, place, root, joints(tree, q, dtype, width), dtype)


def placed(tree: KinematicTree, q: Array, dtype: DTypeLike, tree_runs: Sequence[Run]) -> Links:
    """R_i = R_p R_i(q),   p_i = p_p + R_p r_i"""
    array = placed_arrays(tree, q, dtype, tree_runs)
    x = columns(array, dtype)
    r, axis = (Vector(row[k] for row in x) for k in (4, 5))
    slides = of_runs(tree_runs, columns(_slides(tree), dtype))
    S = Motion(axis * slides, axis * sub(1.0, slides))
    return Links(array, frame_from_matrix(x), Frame(IDENTITY, r), S)


def frames(tree: KinematicTree, q: Array, at_com: bool) -> jax.Array:
    """4x4 matrices of all links in the world."""
    dtype = common_dtype(tree, q)
    T = placed_arrays(tree, q, dtype, runs(tree.parent_idxs), 4)
    if at_com:
        com = tree.coms.astype(dtype)[:, None, :]
        T = T.at[:, :, 3].add(jnp.sum(T[:, :, :3] * com, axis=2))
    return _square(T)


def tip_frame(tree: KinematicTree, q: Array, link_idx: int) -> jax.Array:
    """4x4 matrix of a link in the world."""
    path = runs_to(tree.parent_idxs, link_idx)
    return _square(placed_arrays(tree, q, common_dtype(tree, q), path, 4)[-1])


def _slides(tree: KinematicTree) -> np.ndarray:
    return np.equal(tree.joint_types, JOINT_TYPE_PRISMATIC).astype(float)


def product(A: jax.Array, B: jax.Array) -> jax.Array:
    """A B, where A has three columns; not by `dot`, which XLA does not fuse with other code."""
    return A[:, 0:1] * B[0:1] + A[:, 1:2] * B[1:2] + A[:, 2:3] * B[2:3]


def _square(T: jax.Array) -> jax.Array:
    """Homogeneous matrices: the last row is added."""
    last = jnp.array([[0.0, 0.0, 0.0, 1.0]], T.dtype)
    return jnp.concatenate([T, jnp.broadcast_to(last, (*T.shape[:-2], 1, 4))], axis=-2)
