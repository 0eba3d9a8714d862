"""The regressor of an arm: its torques are linear in the moments of its links.

    tau = Y(q, q̇, q̈) theta + armature q̈      theta_i = (m, h, I) of link i, about its own origin

    f_i = m a + A h                           A = [ẇ]× + [w]×[w]×,  a: of the origin, less gravity
    n_i = h × a + I ẇ + w × I w               in the link's axes
    tau_j = sum over the links i that joint j moves of S_j · (f_i, n_i)

All rows of a motion are taken at once, and only the poses of links follow one another: a program
of few, large operations, which is compiled in a second and has a gradient as cheap as itself.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.control.kinematics import KinematicTree
from mime.control.kinematics.joint_types import JOINT_TYPE_PRISMATIC

PER_LINK = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Moments of a link about its own origin, in its own axes."""
_ENTRIES = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
_EPSILON = np.zeros((3, 3, 3))
"""(v × x)_i = epsilon_ijk v_j x_k."""
for _i, _j, _k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    _EPSILON[_i, _j, _k], _EPSILON[_i, _k, _j] = 1.0, -1.0
_SYMMETRIC = np.zeros((3, 3, 6))
"""(I x)_i = symmetric_ijp x_j I_p, the six entries of I in the order above."""
for _p, (_i, _j) in enumerate(_ENTRIES):
    _SYMMETRIC[_i, _j, _p] = _SYMMETRIC[_j, _i, _p] = 1.0


def moments_of(tree: KinematicTree) -> np.ndarray:
    """theta (10 links) of the links as they are."""
    mass, centre = np.asarray(tree.masses), np.asarray(tree.coms)
    square = np.sum(centre**2, axis=1)[:, None, None] * np.eye(3)
    shift = mass[:, None, None] * (square - centre[:, :, None] * centre[:, None, :])
    inertia = np.asarray(tree.inertias) + shift
    entries = [inertia[:, i, j] for i, j in _ENTRIES]
    return np.column_stack([mass, mass[:, None] * centre, *entries]).ravel()


def regressor(tree: KinematicTree, q: Any, qd: Any, qdd: Any, gravity: Any) -> Any:
    """Y (rows, N, 10 links) of a motion, q, q̇, q̈ (rows, N); gravity in the root's axes."""
    links, share = tree.num_links, _share(tree)
    at = share @ q.T + np.asarray(tree.mimic_offset)[:, None]
    R, r, u, w, w_dot, a = _motions(tree, at, share @ qd.T, share @ qdd.T, gravity)
    local = [jnp.sum(R * vector[:, :, None], axis=1) for vector in (w, w_dot, a)]  # Rᵀ v
    f, n = (_times(R, part) for part in _wrenches(*local))
    n = n + _cross(r[:, :, None], f)  # about the root's origin
    slides = _slides(tree)[:, None, None]
    S = jnp.where(slides, u, _cross(r, u)), jnp.where(slides, 0.0, u)
    Y: Any = sum(
        jnp.sum(axis[:, None, :, None] * wrench[None], axis=2)
        for axis, wrench in zip(S, (f, n), strict=True)
    )
    Y = (Y * _moves(tree)[:, :, None, None]).reshape(links, -1, len(q))
    return jnp.einsum("lj,lpr->rjp", share, Y)


def _share(tree: KinematicTree) -> np.ndarray:
    """(links, N): by how much each coordinate moves the joint of each link."""
    found = np.zeros((tree.num_links, tree.num_joints))
    found[np.arange(tree.num_links), list(tree.coordinate_idxs)] = tree.mimic_multiplier
    return found


def _slides(tree: KinematicTree) -> np.ndarray:
    return np.array([kind == JOINT_TYPE_PRISMATIC for kind in tree.joint_kinds])


def _moves(tree: KinematicTree) -> np.ndarray:
    """(joint of link j, link i): 1 where the joint moves that link."""
    found = np.eye(tree.num_links)
    for i, parent in enumerate(tree.parent_idxs):
        if parent >= 0:
            found[:, i] += found[:, parent]
    return found


def _motions(tree: KinematicTree, q: Any, qd: Any, qdd: Any, gravity: Any) -> list[Any]:
    """Axes, origins, joint axes, w, ẇ and a of links (links, ..., rows), in the root's axes.

    One loop over the links, parents first; place 0 of what it carries is the root.
    """
    rows, links = q.shape[1], tree.num_links
    still = jnp.zeros((3, rows))
    upright = jnp.broadcast_to(np.eye(3)[:, :, None], (3, 3, rows))
    at_root = (upright, still, still, still, still - gravity[:, None])
    carried = tuple(jnp.zeros((links + 1, *x.shape)).at[0].set(x) for x in at_root)
    frames, axes = np.asarray(tree.joint_frames), np.asarray(tree.joint_axes_local)
    K = np.einsum("ijk,lj->lik", _EPSILON, axes)
    given = (
        np.arange(links), np.array(tree.parent_idxs) + 1, frames[:, :3, :3], frames[:, :3, 3],
        axes, K, _slides(tree), q, qd, qdd,
    )  # fmt: skip

    def move(carried: Any, one: Any) -> tuple[Any, Any]:
        i, parent, F, offset, axis, K, slides, q, qd, qdd = one
        R, r, w, w_dot, a = (part[parent] for part in carried)
        angle, slide = jnp.where(slides, 0.0, q), jnp.where(slides, q, 0.0)
        qd, qdd = qd[None], qdd[None]
        sine, rest = jnp.sin(angle)[None, None], (1 - jnp.cos(angle))[None, None]
        turn = np.eye(3)[..., None] + sine * K[..., None] + rest * (K @ K)[..., None]  # Rodrigues
        R_i = _times(R, jnp.einsum("ij,jkr->ikr", F, turn))
        u = jnp.einsum("ijr,j->ir", R_i, axis)
        d = jnp.einsum("ijr,j->ir", R, offset) + u * slide[None]
        turns, slips = jnp.where(slides, 0.0, u), jnp.where(slides, u, 0.0)
        a = a + _cross(w_dot, d) + _cross(w, _cross(w, d)) + slips * qdd
        a = a + 2 * _cross(w, slips * qd)
        w_dot = w_dot + turns * qdd + _cross(w, turns * qd)
        moved = R_i, r + d, w + turns * qd, w_dot, a
        carried = tuple(part.at[i + 1].set(x) for part, x in zip(carried, moved, strict=True))
        return carried, (R_i, r + d, u, *moved[2:])

    return list(jax.lax.scan(move, carried, given)[1])


def _times(A: Any, B: Any) -> Any:
    """A B of every row (..., 3, 3, rows), (..., 3, n, rows)."""
    return jnp.sum(A[..., :, :, None, :] * B[..., None, :, :, :], axis=-3)


def _cross(v: Any, x: Any) -> Any:
    """v × x of every row: components are in axis 0, or in axis 1 of tables by link."""
    axis = 0 if v.ndim == 2 else 1
    return jnp.cross(v, x, axis=axis)


def _wrenches(w: Any, w_dot: Any, a: Any) -> tuple[Any, Any]:
    """f and n (links, 3, 10, rows) of each moment, in the link's axes at its origin."""
    spin, turn, push = (jnp.einsum("ijk,ljr->likr", _EPSILON, x) for x in (w, w_dot, a))
    swing, change = (jnp.einsum("ijp,ljr->lipr", _SYMMETRIC, x) for x in (w, w_dot))
    f = [a[:, :, None], turn + _times(spin, spin), jnp.zeros_like(swing)]
    n = [jnp.zeros_like(a)[:, :, None], -push, change + _times(spin, swing)]
    return jnp.concatenate(f, axis=2), jnp.concatenate(n, axis=2)
