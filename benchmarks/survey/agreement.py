"""MIME's equations of motion beside a peer's, at a few random states.

M(q) u̇ + c(q, u) = tau: M, the bias c with gravity, u̇, and the frames of all links. u is [q̇], or
[v; w; q̇] of a base that floats, in the base's axes; u̇ holds the acceleration of the base's origin.
An error is ‖ours - theirs‖ / ‖theirs‖ (Frobenius), of a bias that cancels at least rounding.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

import mime.control.kinematics as kin
from mime.control.kinematics import KinematicTree

STATES = 3
QUANTITIES = ("M", "bias", "compensation", "acceleration", "frames")
_EPS = float(np.finfo(float).eps)
SINGULAR = 1e15
"""The condition of M from which nothing is solved: a joint has no inertia, or rounding has it."""
REGULAR = 1e10
"""The condition of M below which each joint has inertia."""


@dataclass(frozen=True)
class State:
    """Angles, rates and forces, and the pose of a base that floats."""

    q: np.ndarray
    u: np.ndarray
    tau: np.ndarray
    base: np.ndarray
    """4x4 in the world; the identity where the base is fixed."""


@dataclass(frozen=True)
class Motion:
    """What is compared."""

    M: np.ndarray
    bias: np.ndarray
    acceleration: np.ndarray | None
    """None where M is singular."""
    frames: dict[str, np.ndarray]
    """4x4 in the world."""
    compensation: np.ndarray | None = None
    """Torques that bear weight (`gravcomp`), which are not in the bias."""


class Peer(Protocol):
    """Another program with the same robot, in MIME's coordinates."""

    gravity_world: np.ndarray

    def motion(self, state: State) -> Motion:
        """All of it; the acceleration where M is regular."""
        ...


def states(tree: KinematicTree) -> list[State]:
    """Within the limits and half a turn, or a metre and more."""
    rng = np.random.default_rng(20)
    lower, upper = np.sort(np.clip(tree.joint_limits, -np.pi, np.pi).reshape(-1, 2).T, axis=0)
    size = tree.num_joints + 6 * (tree.base == "floating")
    found = []
    for _ in range(STATES):
        base = np.eye(4)
        if tree.base == "floating":
            base[:3, :3], base[:3, 3] = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.normal(size=3)
            base[:3, 0] *= np.linalg.det(base[:3, :3])
        u, tau = rng.normal(size=(2, size))
        found.append(State(rng.uniform(lower, upper), u, tau, base))
    return found


def ours(tree: KinematicTree, state: State, gravity_world: np.ndarray, solves: bool) -> Motion:
    """MIME's; its functions take NumPy arrays, so that Python computes and nothing compiles."""
    q, u, still, down = state.q, state.u, 0 * state.u, state.base[:3, :3].T @ gravity_world
    qdd = None
    if tree.base == "floating":
        M = kin.floating_mass_matrix(tree, q)
        bias = kin.floating_rnea(tree, q, u, still, down)
        if solves:
            qdd = kin.floating_forward_dynamics(tree, q, u, state.tau, down)
    else:
        M = kin.mass_matrix(tree, q)
        bias = kin.nonlinear_bias(tree, q, u, down)
        if solves:
            qdd = kin.forward_dynamics(tree, q, u, state.tau, down)
    links = kin.joint_to_world_transforms(tree, q) if tree.num_links else ()
    T = [*(state.base @ T for T in links), state.base]  # -1 is the root
    placed = zip(tree.frame_names, tree.frame_link_idxs, tree.frame_offsets, strict=True)
    frames = {name: T[link] @ offset for name, link, offset in placed}
    relief = None
    if tree.compensated_masses is not None:
        relief = kin.compensating_torques(tree, q, down)
    return Motion(M, bias, qdd, frames, relief)


def compared(tree: KinematicTree, peer: Peer) -> dict[str, Any]:
    """The worst error of each quantity over all states, as plain numbers; why some is not there."""
    found: dict[str, Any] = {"errors": {}, "notes": []}
    if len(states(tree)[0].u) == 0:
        found["notes"].append("no joints")
        return found
    weak = kin.joints_without_inertia(tree)
    moving = bool(np.any(tree.masses) or np.any(tree.inertias) or tree.base == "floating")
    worst: dict[str, float] = {}
    for state in states(tree):
        theirs = peer.motion(state)
        condition = float(np.linalg.cond(theirs.M)) if moving else np.inf
        solves = not weak and theirs.acceleration is not None
        mine = ours(tree, state, peer.gravity_world, solves)
        names = [name for name in mine.frames if name in theirs.frames]
        pairs = {"frames": tuple(np.array([of.frames[n] for n in names]) for of in (mine, theirs))}
        if moving:
            pairs |= {"M": (mine.M, theirs.M), "bias": (mine.bias, theirs.bias)}
        if mine.compensation is not None or theirs.compensation is not None:
            zero = np.zeros_like(state.u)
            both = (mine.compensation, theirs.compensation)
            pairs["compensation"] = tuple(zero if of is None else of for of in both)
        if solves:
            pairs["acceleration"] = (mine.acceleration, theirs.acceleration)
            found["condition"] = max(found.get("condition", 1.0), condition)
        for name, (a, b) in pairs.items():
            summed = _summed(theirs.M, state, peer.gravity_world) if name == "bias" else 0.0
            scale = max(float(np.linalg.norm(b)), _EPS * summed, 1e-300)
            error = float(np.linalg.norm(a - b)) / scale
            error = error if np.isfinite(error) else 1e300
            if error >= worst.get(name, 0.0):
                worst[name] = error
                if name == "bias":
                    found["cancels"] = error * scale <= 1e3 * _EPS * summed
        if moving and weak and condition < REGULAR:
            found["notes"].append("MIME names joints without inertia where M is regular")
        if moving and not weak and not solves:
            found["notes"].append("MIME names no joint without inertia where M is singular")
    if not moving:
        found["notes"].append("no masses: frames only")
    elif weak:
        found["notes"].append("joints without inertia: no forward dynamics")
    found["errors"] = worst
    found["notes"] = sorted(set(found["notes"]))
    return found


def _summed(M: np.ndarray, state: State, gravity: np.ndarray) -> float:
    """The size of what a bias is the sum of: where it cancels, rounding of this is left."""
    return float(np.linalg.norm(M) * (state.u @ state.u + np.linalg.norm(gravity)))


def rounding(found: dict[str, Any], quantity: str) -> str:
    """Why an error above the limit is rounding, in words; empty where it is none."""
    if quantity == "acceleration" and found["errors"][quantity] < 100 * _EPS * found["condition"]:
        return f"rounding: M has condition {found['condition']:.0e}"
    if quantity == "bias" and found.get("cancels"):
        return "rounding: the bias is near 0 beside what it is the sum of"
    return ""
