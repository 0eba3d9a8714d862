"""The regressor of an arm: its torques are linear in the moments of its links.

    tau = Y(q, q̇, q̈) theta + armature q̈      theta_i = (m, h, I) of link i, about its own origin

    V_i = sum S_j q̇_j,   A_i = -g + sum S_j q̈_j + V_j × S_j q̇_j      over the joints j that move i
    f_i = m a + A h                           A = [ẇ]× + [w]×[w]×,  a: of the origin, less gravity
    n_i = h × a + I ẇ + w × I w               in the link's axes
    tau_j = sum over the links i that joint j moves of S_j · (f_i, n_i)

S_j is the axis of joint j, V and A are velocity and acceleration of a link (linear part first), all
about the root's origin in its axes, so that sums are along the chain. Only poses need a loop.

The slope by q has a closed form: joint k turns whatever is behind it, dS_j / dq_k = S_k × S_j, and
what a link sees of a root's vector z turns the other way, d(X_i⁻¹ z) / dq_k = -X_i⁻¹ (S_k × z).
Of a scalar with slopes z̄ by every z that link i sees, and S̄_i by its axis:

    by q_k:  S_k · sum over the links i behind of P_i,    P_i = sum_z (z ×)ᵀ z̄ - (S_i ×)ᵀ S̄_i

All of it is NumPy: a hundred operations for all rows and links, and nothing to compile.
"""

import dataclasses
from typing import Any

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


def _wrenches() -> list[tuple[int, int, float]]:
    """(f, n) of each moment (6 × 10) by a, ẇ and the nine products w_j w_k (15): what is not 0."""
    found = np.zeros((6, 10, 15))
    f, n = found[:3], found[3:]
    f[:, 0, :3] = np.eye(3)
    f[:, 1:4, 3:6] = _EPSILON.transpose(0, 2, 1)
    f[:, 1:4, 6:] = np.einsum("ija,abk->ikjb", _EPSILON, _EPSILON).reshape(3, 3, 9)
    n[:, 1:4, :3] = _EPSILON
    n[:, 4:, 3:6] = _SYMMETRIC.transpose(0, 2, 1)
    n[:, 4:, 6:] = np.einsum("ija,abp->ipjb", _EPSILON, _SYMMETRIC).reshape(3, 6, 9)
    table = found.reshape(60, 15)
    return [(int(i), int(j), float(table[i, j])) for i, j in zip(*np.nonzero(table), strict=True)]


_WRENCHES = _wrenches()


def moments_of(tree: KinematicTree) -> np.ndarray:
    """theta (10 links) of the links as they are."""
    mass, centre = np.asarray(tree.masses), np.asarray(tree.coms)
    square = np.sum(centre**2, axis=1)[:, None, None] * np.eye(3)
    shift = mass[:, None, None] * (square - centre[:, :, None] * centre[:, None, :])
    inertia = np.asarray(tree.inertias) + shift
    entries = [inertia[:, i, j] for i, j in _ENTRIES]
    return np.column_stack([mass, mass[:, None] * centre, *entries]).ravel()


def regressor(
    tree: KinematicTree, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, gravity: Any
) -> np.ndarray:
    """Y (rows, N, 10 links) of a motion, q, q̇, q̈ (rows, N); gravity in the root's axes."""
    return Chain.of(tree, gravity).at(q.T, qd.T, qdd.T).Y.transpose(2, 1, 0)


@dataclasses.dataclass(frozen=True)
class Chain:
    """What of an arm is the same in all rows."""

    frames: np.ndarray
    """Of each link in its parent at q = 0, (links, 4, 4)."""
    axes: np.ndarray
    """(links, 3), each in its link's own axes."""
    parents: tuple[int, ...]
    slides: np.ndarray
    """(links,): a slider's joint."""
    share: np.ndarray
    """(links, N): by how much each coordinate moves the joint of each link."""
    offset: np.ndarray
    moves: np.ndarray
    """(joint of link j, link i): 1 where the joint moves that link."""
    pairs: np.ndarray
    """(2, pairs): all such j, i."""
    gravity: np.ndarray

    @classmethod
    def of(cls, tree: KinematicTree, gravity: Any) -> "Chain":
        """The chain of a tree; gravity in the root's axes."""
        share = np.zeros((tree.num_links, tree.num_joints))
        share[np.arange(tree.num_links), list(tree.coordinate_idxs)] = tree.mimic_multiplier
        moves = np.eye(tree.num_links)
        for i, parent in enumerate(tree.parent_idxs):
            if parent >= 0:
                moves[:, i] += moves[:, parent]
        return cls(
            np.asarray(tree.joint_frames, float),
            np.asarray(tree.joint_axes_local, float),
            tuple(tree.parent_idxs),
            np.array([kind == JOINT_TYPE_PRISMATIC for kind in tree.joint_kinds]),
            share,
            np.asarray(tree.mimic_offset, float),
            moves,
            np.array(np.nonzero(moves)),
            np.asarray(gravity, float),
        )

    def at(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> "Rows":
        """Y of a motion q, q̇, q̈ (N, rows), and the way back to it."""
        R, r = self._poses(self.share @ q + self.offset[:, None])
        u = np.einsum("ijlt,lj->ilt", R, self.axes)
        slides = self.slides[:, None]
        S = np.concatenate([np.where(slides, u, _cross(r, u)), np.where(slides, 0.0, u)])
        qd, qdd = self.share @ qd, self.share @ qdd
        V = self._summed(S * qd)
        A = self._summed(S * qdd + _spatial(V, S) * qd)
        A[:3] -= self.gravity[:, None, None]
        j, i = self.pairs
        seen = _seen(R[:, :, i], r[:, i], S[:, j])
        return Rows(self, qd, qdd, R, r, S, V, A, _seen(R, r, V), _seen(R, r, A), seen)

    def _poses(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Axes (3, 3, links, rows) and origins (3, links, rows) of links, parents first."""
        R = np.empty((3, 3, *q.shape))
        r = np.empty((3, *q.shape))
        K = np.einsum("ijk,lj->lik", _EPSILON, self.axes)
        for i, parent in enumerate(self.parents):
            F, offset = self.frames[i, :3, :3], self.frames[i, :3, 3, None]
            if self.slides[i]:
                offset, turn = offset + np.outer(F @ self.axes[i], q[i]), F[:, :, None]
            else:  # Rodrigues
                sine, rest = np.sin(q[i]), 1 - np.cos(q[i])
                turn = np.multiply.outer(F @ K[i], sine) + np.multiply.outer(F @ K[i] @ K[i], rest)
                turn += F[:, :, None]
            if parent < 0:
                R[:, :, i], r[:, i] = turn, offset
            else:
                before = R[:, :, parent]
                R[:, :, i] = np.sum(before[:, :, None] * turn[None], axis=1)
                r[:, i] = r[:, parent] + np.sum(before * offset[None], axis=1)
        return R, r

    def _summed(self, parts: np.ndarray) -> np.ndarray:
        """Of each link: the sum over the joints that move it."""
        return np.matmul(self.moves.T, parts)

    def _behind(self, parts: np.ndarray) -> np.ndarray:
        """Of each joint: the sum over the links that it moves."""
        return np.matmul(self.moves, parts)


class Rows:
    """A motion's regressor, and slopes by the motion of any function of it."""

    def __init__(self, chain: Chain, qd: Any, qdd: Any, R: Any, r: Any, S: Any, V: Any, A: Any,
                 v: Any, a: Any, s: Any):  # fmt: skip
        self._chain, self._qd, self._qdd = chain, qd, qdd
        self._R, self._r, self._S, self._V, self._A = R, r, S, V, A
        self._v, self._a, self._s = v, a, s  # as the links see them
        links, rows = qd.shape
        w = v[3:]
        origin = a[:3] + _cross(w, v[:3])
        products = (w[:, None] * w[None]).reshape(9, links, rows)
        features = np.concatenate([origin, a[3:], products])
        W = np.zeros((60, links, rows))
        for at, feature, factor in _WRENCHES:
            W[at] += factor * features[feature]
        self._W = W.reshape(6, 10, links, rows)
        self.Y = self._joined()
        """(10 links, N, rows)"""

    def _joined(self) -> np.ndarray:
        chain = self._chain
        Y = np.zeros((len(chain.axes), 10, chain.share.shape[1], self._qd.shape[1]))
        for k, (j, i) in enumerate(chain.pairs.T):
            part = np.einsum("ct,cpt->pt", self._s[:, k], self._W[:, :, i])
            for at in np.flatnonzero(chain.share[j]):
                Y[i, :, at] += chain.share[j, at] * part
        return Y.reshape(-1, *Y.shape[2:])

    def slopes(self, by_Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """By q, q̇ and q̈ (N, rows), of a function with slopes `by_Y` (10 links, N, rows)."""
        chain, S, V = self._chain, self._S, self._V
        j, i = chain.pairs
        by_Y = np.einsum("lj,ipjt->lipt", chain.share, by_Y.reshape(-1, 10, *by_Y.shape[1:]))
        by_W, by_s = np.zeros_like(self._W), np.empty_like(self._s)
        for k, (joint, link) in enumerate(chain.pairs.T):
            by_s[:, k] = np.einsum("pt,cpt->ct", by_Y[joint, link], self._W[:, :, link])
            by_W[:, :, link] += self._s[:, k, None] * by_Y[joint, link]
        by_v, by_a = self._by_motion(by_W)
        # Back to the root's axes, and P of what each link sees.
        by_s = _seen_back(self._R[:, :, i], self._r[:, i], by_s)
        by_V, by_A = (_seen_back(self._R, self._r, x) for x in (by_v, by_a))
        P = _spatial_back(V, by_V) + _spatial_back(self._A, by_A)
        own = _spatial_back(S[:, j], by_s)
        by_S = np.zeros_like(S)
        for k, (joint, link) in enumerate(chain.pairs.T):
            P[:, link] += own[:, k]
            by_S[:, joint] += by_s[:, k]
        # Along the chain: A, then V.
        term = chain._behind(by_A)
        by_qdd = np.sum(S * term, axis=0)
        by_qd = np.sum(_spatial(V, S) * term, axis=0)
        by_S += self._qdd * term + _spatial_back(V, self._qd * term)
        term = chain._behind(by_V - _spatial_back(S, self._qd * term))
        by_qd += np.sum(S * term, axis=0)
        by_S += self._qd * term
        P -= _spatial_back(S, by_S)
        by_q = np.sum(S * chain._behind(P), axis=0)
        by_q, by_qd, by_qdd = (chain.share.T @ x for x in (by_q, by_qd, by_qdd))
        return by_q, by_qd, by_qdd

    def _by_motion(self, by_W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """By velocity and acceleration as the links see them."""
        v, w = self._v[:3], self._v[3:]
        by, by_W = np.zeros((15, *w.shape[1:])), by_W.reshape(60, *w.shape[1:])
        for at, feature, factor in _WRENCHES:
            by[feature] += factor * by_W[at]
        products = by[6:].reshape(3, 3, *w.shape[1:])
        by_w = np.sum((products + products.transpose(1, 0, 2, 3)) * w, axis=1)
        by_w += _cross(v, by[:3])
        return np.concatenate([_cross(by[:3], w), by_w]), by[:6]


def _cross(v: np.ndarray, x: np.ndarray) -> np.ndarray:
    """v × x, components first."""
    found = np.empty(np.broadcast_shapes(v.shape, x.shape))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        found[i] = v[j] * x[k] - v[k] * x[j]
    return found


def _spatial(V: np.ndarray, X: np.ndarray) -> np.ndarray:
    """V × X of motions, linear parts first."""
    return np.concatenate([_cross(V[3:], X[:3]) + _cross(V[:3], X[3:]), _cross(V[3:], X[3:])])


def _spatial_back(V: np.ndarray, f: np.ndarray) -> np.ndarray:
    """(V ×)ᵀ f"""
    return np.concatenate([_cross(f[:3], V[3:]), _cross(f[:3], V[:3]) + _cross(f[3:], V[3:])])


def _seen(R: np.ndarray, r: np.ndarray, z: np.ndarray) -> np.ndarray:
    """X⁻¹ z: a motion about the root's origin as a link with axes R at r sees it."""
    linear = z[:3] + _cross(z[3:], r)
    return np.concatenate([np.sum(R * x[:, None], axis=0) for x in (linear, z[3:])])


def _seen_back(R: np.ndarray, r: np.ndarray, f: np.ndarray) -> np.ndarray:
    """X⁻ᵀ f"""
    linear, angular = (np.sum(R * x[None], axis=1) for x in (f[:3], f[3:]))
    return np.concatenate([linear, angular + _cross(r, linear)])
