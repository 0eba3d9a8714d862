"""Kinematics and dynamics of large trees: every pass over the links is a loop.

All is written in **world axes**, about each link's own origin: the frame of a link in its parent
is then a shift alone, Frame(1, r), and the algebra of `spatial.py` folds the turning away. (About
the world's origin not even the shifts would be left, but there the inertia of a small link far out
drowns in m r².)

Small trees are faster unrolled, large ones in loops, since XLA's fusion evaluates again and again
what unrolled links share (see `mime.xla`). benchmarks/kinematics.py measures where they cross.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from mime.control.kinematics.placement import Links, placed
from mime.control.kinematics.recursion import (
    Run,
    columns,
    common_dtype,
    inward,
    of_runs,
    outward,
    runs,
    runs_to,
    scattered,
)
from mime.control.kinematics.scalar import Array, Scalar, add, mul, unpack
from mime.control.kinematics.spatial import (
    IDENTITY,
    ZERO,
    Frame,
    LinkMotion,
    MassMoments,
    Matrix,
    Motion,
    Vector,
    Wrench,
    acceleration_gradient,
    link_motion,
    moments_about_origin,
)
from mime.control.kinematics.tree import KinematicTree, ancestor_mask


def link_motions(
    links: Links, qd: Any, qdd: Any, root: Vector, dtype: DTypeLike, tree_runs: Sequence[Run]
) -> LinkMotion:
    """w_i = w_p + u q̇,  ẇ_i = ẇ_p + u q̈ + w_p × u q̇: `rnea.move_link` of all links at once.

    In world axes a link moves as its parent does and adds something to it. `root` is the
    acceleration of the root.
    """

    def summed(part: Vector) -> Vector:
        rows = stacked_rows(part, len(links.array), dtype)
        sums = outward(tree_runs, jnp.add, jnp.zeros(3, dtype), rows.T, dtype)
        return Vector(sums[:, k] for k in range(3))

    (slide, turn), (slide_dot, turn_dot), r = links.S * qd, links.S * qdd, links.X.r
    w = summed(turn)
    w_parent = w - turn
    w_dot_more = turn_dot + w_parent.cross(turn)
    w_dot = summed(w_dot_more)
    A_parent = acceleration_gradient(w_parent, w_dot - w_dot_more)
    a = summed(A_parent @ r + slide_dot + w_parent.cross(slide) * 2.0)
    return link_motion(w, w_dot, a + root)


def pseudo_inertias(tree: KinematicTree, links: Links, dtype: DTypeLike) -> jax.Array:
    """J = [[S, h], [hᵀ, m]] of each link about its origin, with the moments of `MassMoments`.

    In another frame it is T J Tᵀ, where T is the 4x4 matrix of the frame.
    """
    m, c, I = (x.astype(dtype) for x in (tree.masses, tree.coms, tree.inertias))
    xp = np if all(isinstance(x, np.ndarray) for x in (m, c, I)) else jnp
    one = np.eye(3, dtype=dtype)
    half_trace = (I * one[None]).sum(axis=(1, 2))[:, None, None] / 2
    h = m[:, None] * c
    S = half_trace * one[None] - I + h[:, :, None] * c[:, None, :]
    upper = xp.concatenate([S, h[:, :, None]], axis=2)
    lower = xp.concatenate([h, m[:, None]], axis=1)[:, None, :]
    J = xp.concatenate([upper, lower], axis=1)
    R = jnp.pad(links.array[:, :, :3], ((0, 0), (0, 1), (0, 1)))
    R = R + np.diag([0.0, 0.0, 0.0, 1.0]).astype(dtype)[None]
    RJ = sum(R[:, :, k, None] * J[:, None, k, :] for k in range(4))
    return sum(RJ[:, :, k, None] * R[:, None, :, k] for k in range(4))


def mass_columns(J: jax.Array, dtype: DTypeLike) -> MassMoments:
    """The moments that J holds, as columns."""
    x = columns(J, dtype)
    return MassMoments(x[3][3], Vector(x[3][:3]), Matrix(Vector(row[:3]) for row in x[:3]))


def link_masses(tree: KinematicTree, dtype: DTypeLike) -> MassMoments:
    """The moments about each link's origin, in its own axes: constants."""
    inertia = Matrix(map(Vector, columns(tree.inertias, dtype)))
    com = Vector(columns(tree.coms, dtype))
    return moments_about_origin(columns(tree.masses, dtype), com, inertia)


def com_shifts(tree: KinematicTree, links: Links, dtype: DTypeLike) -> Frame:
    """The frame of each centre of mass in its link: a shift."""
    return Frame(IDENTITY, links.pose.R @ Vector(columns(tree.coms, dtype)))


def needed_wrenches(
    tree: KinematicTree,
    links: Links,
    mass: MassMoments,
    motion: LinkMotion,
    F_ext: Array | None,
    dtype: DTypeLike,
) -> Wrench:
    """The wrench that each link needs for its motion, less what it gets from outside.

    A link's mass is constant in its own axes, so the motion is turned there and the wrench back.
    """
    R = links.pose.R
    w, w_dot, a = (R.T @ x for x in motion[:3])
    f = Frame(R, ZERO).wrench(mass.inertial_wrench(a, acceleration_gradient(w, w_dot)))
    return f if F_ext is None else f - wrenches_from_outside(tree, links, F_ext, dtype)


def wrenches_from_outside(
    tree: KinematicTree, links: Links, F_ext: Array, dtype: DTypeLike
) -> Wrench:
    """The outer wrenches, moved from the centres of mass to the links' origins."""
    F = columns(F_ext, dtype)
    return com_shifts(tree, links, dtype).wrench(Wrench(Vector(F[:3]), Vector(F[3:])))


def inverse_dynamics(
    tree: KinematicTree,
    q: Array,
    qd: Array | None,
    qdd: Array | None,
    gravity_world: Array,
    F_ext: Array | None,
) -> jax.Array:
    """tau_i = S_i · Σ f_j + armature q̈_i  over the links j that joint i moves, seen at the root."""
    dtype = common_dtype(tree, q, qd, qdd, gravity_world, F_ext)
    rates, qdds = (0.0 if x is None else columns(x, dtype) for x in (qd, qdd))
    tree_runs = runs(tree.parent_idxs)
    links = placed(tree, q, dtype, tree_runs)
    motion = link_motions(links, rates, qdds, -Vector(unpack(gravity_world)), dtype, tree_runs)
    f = needed_wrenches(tree, links, link_masses(tree, dtype), motion, F_ext, dtype)
    f, S = at_root(links, f)
    rows = six_rows(f, tree.num_links, dtype).T
    sums = inward(tree_runs, lambda x, y: 2 * (x + y,), jnp.zeros(6, dtype), rows, dtype)
    F = [sums[:, k] for k in range(6)]
    tau = Wrench(Vector(F[:3]), Vector(F[3:])).power(S)
    return add(tau, mul(columns(tree.armature, dtype), qdds))


def at_root(links: Links, f: Wrench) -> tuple[Wrench, Motion]:
    """Wrenches on the links, and the motions of their joints, seen at the root."""
    p = links.pose.r
    return Frame(IDENTITY, p).wrench(f), Frame(IDENTITY, -p).motion_of_child(links.S)


def mass_matrix(tree: KinematicTree, q: Array) -> jax.Array:
    """Ic_p += X_i Ic_i,   f_i = Ic_i S_i,   M_ij = f_i · S_j  for j between the root and i.

    Both f_i and S_j are seen at the root.
    """
    dtype, tree_runs = common_dtype(tree, q), runs(tree.parent_idxs)
    links = placed(tree, q, dtype, tree_runs)

    def join(beyond: jax.Array, link: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        J, r = link
        J = J + beyond
        rJ = J + r[:, None] * J[3:4]  # T J, T = [[1, r], [0, 1]]
        return rJ + rJ[:, 3:4] * r[None, :], J

    r = jnp.pad(links.array[:, :, 4], ((0, 0), (0, 1)))
    bodies = pseudo_inertias(tree, links, dtype), r
    Ic = inward(tree_runs, join, jnp.zeros((4, 4), dtype), bodies, dtype)
    f, S = at_root(links, mass_columns(Ic, dtype).momentum(links.S))
    M = six_rows(f, tree.num_links, dtype).T @ six_rows(S, tree.num_links, dtype)
    moves = ancestor_mask(tree)
    M = jnp.where(moves, M, jnp.where(moves.T, M.T, 0.0))
    return M + jnp.eye(tree.num_links, dtype=dtype) * jnp.asarray(tree.armature, dtype)[:, None]


def tip_jacobian(tree: KinematicTree, q: Array, link_idx: int, point_in_link: Vector) -> jax.Array:
    """Columns [v_j + w_j × (p - p_j); w_j], (v_j, w_j) = S_j, of the joints up to the link."""
    dtype, path = common_dtype(tree, q, point_in_link), runs_to(tree.parent_idxs, link_idx)
    links = placed(tree, q, dtype, path)
    p = jax.tree.map(lambda x: x[-1], links.pose).point(point_in_link)
    v, w = Frame(IDENTITY, p - links.pose.r).motion_of_child(links.S)
    return scattered(path, six_rows(Motion(v, w), len(links.pose.r[0]), dtype), tree.num_links)


def tip_acceleration(
    tree: KinematicTree, q: Array, qd: Array, link_idx: int, point_in_link: Vector
) -> jax.Array:
    """[v̇; ẇ] = [a + A p; ẇ] of a point p of the link when q̈ = 0."""
    dtype, path = common_dtype(tree, q, qd, point_in_link), runs_to(tree.parent_idxs, link_idx)
    links = placed(tree, q, dtype, path)
    qd = of_runs(path, columns(qd, dtype))
    chain = [Run(0, len(links.pose.r[0]), -1)]
    motion = link_motions(links, qd, 0.0, ZERO, dtype, chain)
    R, motion = jax.tree.map(lambda x: x[-1], (links.pose.R, motion))
    return jnp.stack([*(motion.a + motion.A @ (R @ point_in_link)), *motion.w_dot])


def six_rows(links: Motion | Wrench, num_links: int, dtype: DTypeLike) -> jax.Array:
    """Motions or wrenches as one array of six_rows rows, linear first."""
    return stacked_rows([x for part in links for x in part], num_links, dtype)


def stacked_rows(columns: Sequence[Scalar], num_links: int, dtype: DTypeLike) -> jax.Array:
    """The columns of all links as the rows of an array."""
    return jnp.stack([jnp.broadcast_to(jnp.asarray(x, dtype), num_links) for x in columns])
