"""Joints that nothing resists: which motions of a robot have no energy.

    T = ½ q̇ᵀ M q̇ = ½ Σ_i (m_i v_i² + w_iᵀ I_i w_i) + ½ Σ_c J_c u_c²,    u = C q̇

Masses and moments are >= 0, so M q̇ = 0 only where each body that moves has no mass or inertia in
the way it moves, and no drive that moves has a rotor. The joint nearest to the root in such a
motion carries a link that does not resist it even by itself. Where no link is that weak, M is
regular, and that is known at once. Else the articulated bodies of `aba` find the motions, in a
posture that is no special one, with all joints held that their rotors resist alone:

    D_i = S_i · (I_i S_i) = 0      I_i: link i and all beyond it, its joints free

says that joint i can move with no energy while the joints beyond it take the motion

    q̇_k = -U_k · a_k / D_k,      U_k = I_k S_k,      a_k: what link k has from its parent

A joint that mimics others moves by itself at first; of all motions those are left in which all
links of a coordinate agree, and in which all rotors of drives that joints share stand still. A
posture may be singular where this finds nothing: a straight arm with a point mass at its tip.
"""

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from mime._text import quoted
from mime.control.kinematics.joint_types import JOINT_TYPE_PRISMATIC
from mime.control.kinematics.scalar import Array
from mime.control.kinematics.transmission import moved_by_drives
from mime.control.kinematics.tree import KinematicTree, ancestor_mask
from mime.core.parameters import known
from mime.core.problem import InputError, Problem

MISSED = 1e-10
"""Of the second moment of mass about a joint: less does not count as inertia about its axis.

An angle of 1.5708 in a file turns an axis by 4e-6 away from a mass on it, and leaves 1e-11.
"""
NEAR = 1e-12
"""Of the robot's largest length, squared: a mass so near to an axis lies on it. Postures are
computed to 1e-16 of that length, chains of joints some hundred times worse.
"""
TAKES_PART = 1e-6
"""Of the largest velocity in a motion, in lengths of the robot: what is below is rounding."""
MOVING = tuple(f"the base's moving along {axis}" for axis in "xyz")
TURNING = tuple(f"the base's turning about {axis}" for axis in "xyz")


def joints_without_inertia(
    tree: KinematicTree, diagonal: Float[Array, " joints"] | None = None
) -> tuple[str, ...]:
    """The coordinates that take part in a motion with M(q) q̇ = 0, at a q that is no special one.

    Such a robot has kinematics, gravity torques and inverse dynamics; torques cause no definite
    accelerations.

    Args:
        tree: The robot. Of a floating base, moving and turning are coordinates too.
        diagonal: (N,) kg·m² or kg, what is added to the diagonal of M. An entry that is traced
            counts as one above 0.

    Returns:
        Names of joints, and words such as "the base's turning about x". None where masses,
        inertias or lengths are traced: nothing is known of them.

    """
    return _without_inertia(tree, diagonal, tree.base == "floating")


def _without_inertia(tree: KinematicTree, diagonal: Any, floats: bool) -> tuple[str, ...]:
    links = _links(tree, diagonal, floats)
    if links is None:
        return ()
    weak = links.weak
    if not weak.any():
        return ()
    N = _agreeing(links, _motions(links, _frames(tree, links), weak))
    first = 6 if floats else 0
    N = _with_rotors_at_rest(tree, N, first)
    names = (*MOVING, *TURNING)[:first] + tree.joint_names
    found = np.zeros(len(names), bool)
    for motion in N.T:
        size = np.abs(motion) * links.lever
        part = size > TAKES_PART * size.max()
        if part[3:first].any():  # turning about a line beside the origin: the axis says it
            part[:3] = False
        found |= part
    return tuple(name for name, part in zip(names, found, strict=True) if part)


def inertia_problem(tree: KinematicTree, names: Sequence[str]) -> Problem:
    """What forward dynamics lack where these coordinates are `joints_without_inertia`."""
    empty = _empty_links(tree, names)
    bodies = [i for i in range(tree.num_links) if not _is_empty(tree.masses[i], tree.inertias[i])]
    root = tree.root_body
    carried = tree.base == "floating" and not _is_empty(root.mass, root.inertia)
    if not bodies and not carried:
        kinematics = "frame_pose, frame_jacobian, inverse_kinematics or a JointTrajectoryNode"
        return Problem(
            ("tree",),
            f"has no mass in any link that moves ({quoted(empty)}): it is for kinematics",
            f"Use {kinematics}; or give its links masses (tree.with_payload), or its joints "
            "rotor inertia (rotor_inertia_kg_m2=)",
        )
    joints = [name for name in names if name in tree.joint_names]
    words = [*(name for name in names if name not in joints), *([quoted(joints)] * bool(joints))]
    message = f"gives no inertia to {', '.join(words)}: "
    if empty:
        one = len(empty) == 1
        message += f"link{'' if one else 's'} {quoted(empty)} {'has' if one else 'have'} no mass"
    else:
        message += "what they move has neither a mass off the axis nor a moment about it"
    hint = "Give a mass or an inertia to a link that moves (tree.with_payload, payload=)"
    if joints:
        held = ", ".join(f"{name!r}: {_rest(tree, name)!r}" for name in joints[:3])
        hint += f", rotor inertia (rotor_inertia_kg_m2=), or hold what need not move: lock={{{held}"
        hint += ", ...}" if len(joints) > 3 else "}"
    return Problem(("tree",), message, hint)


def refuse_joints_without_inertia(
    tree: KinematicTree, diagonal: Any = None, floats: bool = False
) -> None:
    """An `InputError` that names them; once a tree has passed, this takes no time."""
    key = id(tree), floats
    if key in _passed:
        return
    if names := _without_inertia(tree, diagonal, floats):
        problem = inertia_problem(tree, names)
        raise InputError(f"tree {tree.name!r} {problem.words}", place=problem.place)
    if diagonal is None:
        _passed.add(key)
        weakref.finalize(tree, _passed.discard, key).atexit = False


_passed: set[tuple[int, bool]] = set()
"""Identities of trees that live, and whose M is regular; on a base that floats or is held."""


class _Links(NamedTuple):
    """The links that move, those of a floating base in front."""

    parents: tuple[int, ...]
    S: np.ndarray
    """(L, 6) [v; w] of each link in its axes, per velocity of its coordinate."""
    bodies: np.ndarray
    """(L, 6, 6) inertia about the link's origin, of [v; w]."""
    held: np.ndarray
    """(L,) whether something resists the joint alone."""
    coordinates: tuple[int, ...]
    size: float
    """m, the largest length of the robot."""
    lever: np.ndarray
    """(coordinates,) m for each unit of a coordinate."""

    @property
    def weak(self) -> np.ndarray:
        """(L,) which links do not resist their own joint."""
        own = np.einsum("li,lij,lj->l", self.S, self.bodies, self.S)
        return ~self.held & (own <= self.least(self.bodies, self.S))

    def least(self, inertia: np.ndarray, S: np.ndarray) -> Any:
        """The S · (I S) that is rounding beside an inertia (..., 6, 6)."""
        mass = inertia[..., 0, 0]
        second = 0.5 * np.trace(inertia[..., 3:, 3:], axis1=-2, axis2=-1)
        turns = np.sum(S[..., 3:] ** 2, axis=-1)
        slides = np.sum(S[..., :3] ** 2, axis=-1)
        return MISSED * (turns * second + slides * mass) + NEAR * self.size**2 * turns * mass


def _links(tree: KinematicTree, diagonal: Any, floats: bool) -> _Links | None:
    """What the motions depend on; None where some of it is traced."""
    root = tree.root_body
    geometry = (tree.joint_frames, tree.joint_axes_local, tree.mimic_multiplier)
    masses = (tree.masses, tree.coms, tree.inertias)
    if not known(*geometry, *masses) or (floats and not known(*vars(root).values())):
        return None
    frames, axes, multiplier, m, c, I = (np.asarray(x, float) for x in (*geometry, *masses))
    slides = np.equal(tree.joint_kinds, JOINT_TYPE_PRISMATIC)
    offsets = np.linalg.norm(frames[:, :3, 3], axis=1), np.linalg.norm(c, axis=1)
    size = float(max(x.max(initial=0.0) for x in offsets)) or 1.0
    held = _resisted(tree, diagonal)
    coordinates, parents = np.array(tree.coordinate_idxs, dtype=int), tree.parent_idxs
    slide = np.zeros(tree.num_joints, bool)
    slide[coordinates] = slides
    S = multiplier[:, None] * np.concatenate(
        [axes * slides[:, None], axes * ~slides[:, None]], axis=1
    )
    lever = np.where(slide, 1.0, size)
    held = held[coordinates]
    if floats:
        none = np.zeros(5)
        m, held = np.concatenate([none, [root.mass], m]), np.concatenate([none > 0, [False], held])
        c = np.concatenate([np.zeros((5, 3)), [root.com], c])
        I = np.concatenate([np.zeros((5, 3, 3)), [root.inertia], I])
        S = np.concatenate([np.eye(6), S])
        parents = (*range(-1, 5), *(6 + p if p >= 0 else 5 for p in parents))
        coordinates = np.concatenate([np.arange(6), 6 + coordinates])
        lever = np.concatenate([np.ones(3), np.full(3, size), lever])
    return _Links(tuple(parents), S, _inertias(m, c, I), held, tuple(coordinates), size, lever)


def _frames(tree: KinematicTree, links: _Links) -> np.ndarray:
    """(L, 4, 4) of each link in its parent, in a posture that is no special one."""
    c, slides = list(tree.coordinate_idxs), np.equal(tree.joint_kinds, JOINT_TYPE_PRISMATIC)
    q = np.asarray(tree.mimic_multiplier) * np.random.default_rng(1).uniform(0.3, 1.2, len(c))[c]
    moved = _moved(np.asarray(tree.joint_axes_local), np.where(slides, links.size, 1.0) * q, slides)
    base = np.tile(np.eye(4), (len(links.S) - len(c), 1, 1))
    return np.concatenate([base, np.asarray(tree.joint_frames) @ moved])


def _resisted(tree: KinematicTree, diagonal: Any) -> np.ndarray:
    """(N,) which coordinates have something of their own on the diagonal of M.

    A drive counts where it moves no other joint; others are asked with the motions.
    """
    moved = moved_by_drives(tree)
    alone = (moved.sum(axis=1) == 1) if known(tree.drive_coupling) else np.ones(len(moved), bool)
    rotors = (_has_rotor(tree) & alone)[:, None] & moved
    return rotors.any(axis=0) | _is_there(tree, diagonal)


def _moved(axes: np.ndarray, q: np.ndarray, slides: np.ndarray) -> np.ndarray:
    """(L, 4, 4) of joints at q: R = 1 + sin q [u]× + (1 - cos q) [u]×²,  or a shift by u q."""
    u = _cross(axes)
    turn = np.where(slides, 0.0, q)[:, None, None]
    T = np.zeros((len(q), 4, 4))
    T[:, :3, :3] = np.eye(3) + np.sin(turn) * u + (1 - np.cos(turn)) * (u @ u)
    T[:, :3, 3] = axes * np.where(slides, q, 0.0)[:, None]
    T[:, 3, 3] = 1.0
    return T


def _inertias(m: np.ndarray, c: np.ndarray, I: np.ndarray) -> np.ndarray:
    """(L, 6, 6): [[m 1, -m [c]×], [m [c]×, I - m [c]×²]]"""
    found, cx, mass = np.zeros((len(m), 6, 6)), _cross(c), m[:, None, None]
    found[:, :3, :3] = mass * np.eye(3)
    found[:, :3, 3:], found[:, 3:, :3] = -mass * cx, mass * cx
    found[:, 3:, 3:] = I - mass * (cx @ cx)
    return found


def _cross(v: np.ndarray) -> np.ndarray:
    """[v]× (L, 3, 3)"""
    x, y, z = v.T
    o = np.zeros(len(v))
    return np.stack([o, -z, y, z, o, -x, -y, x, o], axis=1).reshape(-1, 3, 3)


def _motions(links: _Links, frames: np.ndarray, weak: np.ndarray) -> np.ndarray:
    """(L, k): the velocities of all joints in k independent motions with no energy."""
    count, S = len(links.S), links.S
    X = np.zeros((count, 6, 6))  # what a link has from its parent: [Rᵀ, -Rᵀ [r]×; 0, Rᵀ]
    R = frames[:, :3, :3].transpose(0, 2, 1)
    X[:, :3, :3] = X[:, 3:, 3:] = R
    X[:, :3, 3:] = -R @ _cross(frames[:, :3, 3])
    free, whole = links.bodies.copy(), links.bodies.copy()
    U, D, open_ = np.zeros((count, 6)), np.ones(count), np.zeros(count, bool)
    alone: list[int] = []
    together: list[int] = []
    for i in reversed(range(count)):
        if not links.held[i]:
            U[i] = free[i] @ S[i]
            D[i] = S[i] @ U[i]
            least = links.least(whole[i], S[i])
            if (weak[i] and D[i] <= least) or D[i] <= 0:
                (alone if S[i] @ whole[i] @ S[i] <= least else together).append(i)
            else:
                open_[i] = True
                free[i] -= np.outer(U[i], U[i]) / D[i]
        if links.parents[i] >= 0:
            for inertia in (free, whole):
                inertia[links.parents[i]] += X[i].T @ inertia[i] @ X[i]
    found = np.zeros((count, len(alone) + len(together)))
    found[alone, np.arange(len(alone))] = 1.0
    if together:
        k, a = len(together), np.zeros((count, 6, len(together)))
        first = {i: place for place, i in enumerate(together)}
        for i in range(min(together), count):
            rates = np.zeros(k)
            if links.parents[i] >= 0:
                a[i] = X[i] @ a[links.parents[i]]
            if open_[i]:
                rates = -(U[i] @ a[i]) / D[i]
            elif i in first:
                rates[first[i]] = 1.0
            a[i] += np.outer(S[i], rates)
            found[i, len(alone) :] = rates
    return found / np.abs(found).max(axis=0, initial=1.0)


def _agreeing(links: _Links, motions: np.ndarray) -> np.ndarray:
    """(coordinates, k): those combinations in which all links of a coordinate have its velocity."""
    first: dict[int, int] = {}
    rows = []
    for i, c in enumerate(links.coordinates):
        if first.setdefault(c, i) != i:
            rows.append(motions[i] - motions[first[c]])
    if rows and motions.size:
        _, s, Vt = np.linalg.svd(np.array(rows), full_matrices=True)
        motions = motions @ Vt[np.count_nonzero(s > TAKES_PART) :].T
    return motions[[first[c] for c in sorted(first)]]


def _with_rotors_at_rest(tree: KinematicTree, motions: np.ndarray, first: int) -> np.ndarray:
    """(coordinates, k): those combinations in which no drive with a rotor moves."""
    C = tree.drive_coupling
    if C is None or not known(C) or not motions.size:
        return motions
    u = np.asarray(C, float)[_has_rotor(tree)] @ motions[first:]
    _, s, Vt = np.linalg.svd(u, full_matrices=True)
    return motions @ Vt[np.count_nonzero(s > TAKES_PART) :].T


def _has_rotor(tree: KinematicTree) -> np.ndarray:
    """(N,) which drives have a rotor; one that is traced counts."""
    return _is_there(tree, tree.gear_ratio) & _is_there(tree, tree.rotor_inertia)


def _is_there(tree: KinematicTree, x: Any) -> np.ndarray:
    none = np.zeros(tree.num_joints)
    return np.asarray(none if x is None else x) != 0 if known(x) else none == 0


def _is_empty(mass: Any, inertia: Any) -> bool:
    return known(mass, inertia) and float(mass) == 0.0 and not np.any(np.asarray(inertia))


def _rest(tree: KinematicTree, joint: str) -> float:
    """0, or the limit of a joint that is nearest to it."""
    if not known(tree.joint_limits):
        return 0.0
    lower, upper = np.asarray(tree.joint_limits)[tree.joint_names.index(joint)]
    return float(np.clip(0.0, lower, upper))


def _empty_links(tree: KinematicTree, names: Sequence[str]) -> list[str]:
    """The links without mass that these coordinates move; the root where its base is among them."""
    base = any(name in (*MOVING, *TURNING) for name in names)
    moved = np.full(tree.num_links, base)
    for mask in ancestor_mask(tree.parent_idxs).T[
        [i for i, c in enumerate(tree.coordinate_idxs) if tree.joint_names[c] in names]
    ]:
        moved |= mask
    found = [
        tree.link_names[i]
        for i in np.flatnonzero(moved)
        if _is_empty(tree.masses[i], tree.inertias[i])
    ]
    if base and _is_empty(tree.root_body.mass, tree.root_body.inertia):
        found.insert(0, tree.root_link_name)
    return found
