"""Inverse kinematics: the joint angles that put a tool where it should be."""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Real

from mime._text import unknown_name
from mime.control import positive_definite
from mime.control.kinematics import (
    JOINT_TYPE_PRISMATIC,
    KinematicTree,
    frame_jacobian_at,
    frame_pose,
)
from mime.core.arguments import instance, numbers, text, whole
from mime.core.pose import (
    IDENTITY_POSE,
    compose,
    quat_conjugate,
    quat_multiply,
    quat_to_rotation_vector,
)
from mime.core.problem import InputError
from mime.native.folding import jit_folding

Number = Real[ArrayLike, ""]
Joints = Real[ArrayLike, " joints"] | Sequence[float | int]
PoseLike = Real[ArrayLike, "7"] | Sequence[float | int]

LARGEST_STEP = 1.0
"""The most that a joint moves per iteration, rad or m: farther, the linearised error is useless."""
STALLED_ITERATIONS = 10
SMALLEST_GAIN = 1e-3
"""A search has stalled in a minimum after STALLED_ITERATIONS in a row that each reduce |W e|² by
less than this part of it."""


MOST_ITERATIONS = 2**31 - 1
"""They are counted in an int32."""


class _Question:
    """What `solve_ik` was asked, and what it answered; empty where that was traced.

    All are equal, so that results of different questions are pytrees of one structure.
    """

    def __init__(self, answer: Any = None, position_only: Callable[[Any], Any] | None = None):
        self.answer, self.position_only = answer, position_only

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Question)

    def __hash__(self) -> int:
        return 0

    def __reduce__(self) -> Any:
        return _Question, ()  # a function of the moment is not sent

    def position_is_reachable(self, q: Any) -> bool:
        """Whether the target's position can be reached with another orientation.

        False where this is not the question of the answer `q`, or was of the position alone.
        """
        if self.position_only is None or not np.array_equal(self.answer, q):
            return False
        return bool(self.position_only(q).converged)


class IKResult(eqx.Module):
    """What `solve_ik` found: the target or, when `converged` is false, the nearest to it."""

    q: Float[Array, " joints"]
    """rad or m, within the limits."""
    position_error_m: Float[Array, ""]
    """m, from the tool to the target."""
    angle_error_rad: Float[Array, ""]
    """rad, of the rotation from the tool to the target."""
    iterations: Int[Array, ""]
    """The number of iterations, all attempts together."""
    converged: Bool[Array, ""]
    """Whether both errors are within their tolerances (the position's, if that alone counts)."""
    _question: "_Question" = eqx.field(static=True, repr=False, default_factory=lambda: _Question())
    """What was asked, for the words of `checked`."""

    def checked(self) -> "IKResult":
        """The same; or a `ValueError` when the target was not reached. Not for traced results."""
        if not bool(self.converged):
            advice = "Is it within reach? If so, start nearer or allow more restarts."
            if self._question.position_is_reachable(self.q):
                advice = "Its position alone is within reach: pass position_only=True if any "
                advice += "orientation will do; else start nearer or allow more restarts."
            raise ValueError(
                "no joint angles within the limits were found for the target: the nearest miss "
                f"it by {float(self.position_error_m):.3g} m and "
                f"{float(self.angle_error_rad):.3g} rad after {int(self.iterations)} iterations. "
                f"{advice}"
            )
        return self


def solve_ik(
    tree: KinematicTree,
    frame_name: str,
    target_pose: PoseLike,
    q0: Joints,
    *,
    offset: PoseLike = IDENTITY_POSE,
    position_only: bool = False,
    position_tolerance_m: Number | None = None,
    angle_tolerance_rad: Number | None = None,
    max_iterations: int = 100,
    damping: Number = 1.0,
    weights: Real[ArrayLike, "6"] | Sequence[float | int] = (3, 3, 3, 1, 1, 1),
    restarts: int = 0,
    key: Any = None,
) -> IKResult:
    """q with FK(q) ⊕ offset = target, by damped least squares within the joint limits:

        min |W (e - J Δq)|² + λ |Δq|²,   q_min <= q + Δq <= q_max,   λ = damping · |W e|²
        e = [p_target - p;  2 log(q_target q*)]                  metres and radians, world axes

    `target_pose` is seen from the root link; `offset` is the tool in the named frame. A joint that
    would leave its limits is held there and the others make up for it. The damping falls while the
    error does and rises when a step fails. Joints that do not move the frame stay as given.

    position_tolerance_m                  1e-6 in double, 1e-4 in single precision
    angle_tolerance_rad                   1e-6 in double, 1e-4 in single precision
    position_only                         any orientation will do
    weights                               of x, y, z [1/m] and of rotations about them [1/rad]
    restarts, key                         how many more attempts, from random angles within limits

    Compiled once for a tree, frame and number of restarts; `jax.vmap` for many targets. It can be
    differentiated by target and offset: Δq = J⁺ Δe, with joints at their limits held.
    """
    instance("tree", tree, KinematicTree)
    if text("frame_name", frame_name) not in tree.frame_names:
        words, known = unknown_name(frame_name, tree.frame_names, "link")
        raise InputError(f"frame_name {words}. {known}", place=("frame_name",))
    restarts = whole("restarts", restarts)
    max_iterations = whole("max_iterations", max_iterations, 1, most=MOST_ITERATIONS)
    instance("position_only", position_only, bool, np.bool_)
    link_idx, _ = tree.frame(frame_name)
    if link_idx < 0:
        raise InputError(f"{tree.name}: no joint moves {frame_name!r}, so it cannot be placed")
    if restarts and key is None:
        raise InputError("solve_ik: random restarts need a key; give key=jax.random.key(0)")
    variables = [x for x in (target_pose, q0, offset) if isinstance(x, jax.Array)]
    dtype = jnp.result_type(float, *variables)
    tolerance = 1e-6 if jnp.finfo(dtype).bits == 64 else 1e-4
    given = {
        "target_pose": (target_pose, (7,)),
        "q0": (q0, (tree.num_joints,)),
        "offset": (offset, (7,)),
        "weights": (weights, (6,)),
        "position_tolerance_m": (
            tolerance if position_tolerance_m is None else position_tolerance_m,
            (),
        ),
        "angle_tolerance_rad": (
            tolerance if angle_tolerance_rad is None else angle_tolerance_rad,
            (),
        ),
        "damping": (damping, ()),
        "max_iterations": (max_iterations, ()),
    }
    arrays = {name: _checked(name, *entry, dtype) for name, entry in given.items()}
    chain = _chain(tree, frame_name)
    if restarts:
        arrays["shares"] = _shares(key, restarts, len(chain), dtype)
    options = {"frame_name": frame_name, "position_only": position_only, "restarts": restarts}
    result = _solve(tree, arrays, **options)
    leaves = jax.tree.leaves((tree, arrays, result.q))
    if position_only or any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return result

    def without_orientation(q: Any) -> IKResult:
        with jax.enable_x64(jnp.finfo(dtype).bits == 64):  # as it was asked
            shares = _shares(jax.random.key(0), 8, len(chain), dtype)
            more = {**arrays, "q0": q, "shares": shares}
            return _solve(tree, more, frame_name=frame_name, position_only=True, restarts=8)

    return dataclasses.replace(result, _question=_Question(result.q, without_orientation))


@partial(jax.jit, static_argnums=(1, 2, 3))
def _shares(key: Array, restarts: int, joints: int, dtype: Any) -> Array:
    """Where each restart begins, between the lowest and the highest angles: (restarts, joints)."""
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(restarts))
    return jax.vmap(lambda key: jax.random.uniform(key, (joints,), dtype))(keys)


def _checked(name: str, value: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """The value as an array, or a refusal. Tracers are not looked at."""
    if isinstance(value, jax.core.Tracer):
        array: Any = value.astype(dtype)
    else:
        array = np.asarray(numbers(name, value, where="solve_ik: "), dtype)
    if array.shape != shape:
        raise InputError(f"solve_ik: {name} must have shape {shape}, got {array.shape}")
    if isinstance(array, jax.core.Tracer):
        return array
    if not np.all(np.isfinite(array)):
        raise InputError(f"solve_ik: {name} must be finite, got {array}")
    if name in ("target_pose", "offset") and abs(np.linalg.norm(array[3:]) - 1) > 1e-3:
        raise InputError(
            f"solve_ik: {name} must hold a unit quaternion [x y z qw qx qy qz], got one of length "
            f"{np.linalg.norm(array[3:]):.6g}"
        )
    if name in ("position_tolerance_m", "angle_tolerance_rad", "damping") and array <= 0:
        raise InputError(f"solve_ik: {name} must be > 0, got {array}")
    if name == "weights" and np.any(array < 0):
        raise InputError(f"solve_ik: {name} must be >= 0, got {array}")
    return array


class _Point(NamedTuple):
    """Angles of the chain, where they put the frame, the weighted error and its Jacobian there."""

    q: Array
    pose: Array
    We: Array
    WJ: Array
    reached: Array


class _Search(NamedTuple):
    """Where an attempt is, and the best of all attempts."""

    here: _Point
    best: _Point
    trial: Array
    damping: Array
    stalled: Array
    iterations: Array
    """Iterations of this attempt, and of all."""
    attempt: Array


def _solve_traced(
    tree: KinematicTree,
    given: dict[str, Array],
    *,
    frame_name: str,
    position_only: bool,
    restarts: int,
) -> IKResult:
    """The search is one loop with one evaluation of the kinematics: attempts follow each other."""
    fixed = jax.lax.stop_gradient(given)
    q0, w = fixed["q0"], fixed["weights"][: 3 if position_only else 6]
    chain = _chain(tree, frame_name)
    low, high = (jnp.asarray(tree.joint_limits, q0.dtype)[chain, side] for side in (0, 1))
    lowest, highest = _widest(tree, chain, q0, low, high)

    def evaluate(q: Array) -> _Point:
        q_all = q0.at[chain].set(q)
        pose = frame_pose(tree, q_all, frame_name)
        J = jnp.asarray(frame_jacobian_at(tree, q_all, frame_name, fixed["offset"][:3]))
        # Fused with what follows, XLA would evaluate the kinematics again for each entry.
        pose, J = jax.lax.optimization_barrier((pose, J))
        e = _error(pose, fixed["target_pose"], fixed["offset"])
        reached = jnp.linalg.norm(e[:3]) <= fixed["position_tolerance_m"]
        if not position_only:
            reached &= jnp.linalg.norm(e[3:]) <= fixed["angle_tolerance_rad"]
        return _Point(q, pose, w * e[: len(w)], w[:, None] * J[: len(w), chain], reached)

    def goes_on(s: _Search) -> Array:
        return ~s.best.reached & (s.attempt <= restarts)

    def iterate(s: _Search) -> _Search:
        new = evaluate(s.trial)
        ratio = _cost(new) / _cost(s.here)
        better = ratio < 1.0
        here = _choose(better, new, s.here)
        damping = s.damping * jnp.where(better, 0.25, 4.0)
        stalled = jnp.where(ratio < 1.0 - SMALLEST_GAIN, 0, s.stalled + 1)
        iterations = s.iterations + 1
        over = (stalled >= STALLED_ITERATIONS) | (iterations[0] >= fixed["max_iterations"])
        step = _bounded_step(
            _damped(here, damping * _cost(here) + jnp.finfo(q0.dtype).eps),
            here.WJ.T @ here.We,
            jnp.maximum(low - here.q, -LARGEST_STEP),
            jnp.minimum(high - here.q, LARGEST_STEP),
        )
        trial = jnp.clip(here.q + step, low, high)
        best = _choose(new.reached | (_cost(here) < _cost(s.best)), here, s.best)
        if restarts:
            share = fixed["shares"][jnp.minimum(s.attempt, restarts - 1)]
            trial = jnp.where(over, lowest + share * (highest - lowest), trial)
        return _Search(
            here._replace(We=jnp.where(over, jnp.inf, here.We)),
            best,
            trial,
            jnp.where(over, fixed["damping"], damping),
            jnp.where(over, 0, stalled),
            jnp.where(jnp.stack([over, False]), -1, iterations),
            s.attempt + over,
        )

    found = jax.lax.while_loop(goes_on, iterate, _start(jnp.clip(q0[chain], low, high), w, fixed))
    return _result(given, found, chain, w, low, high)


_solve = jit_folding(_solve_traced, static_argnames=("frame_name", "position_only", "restarts"))


def _error(pose_frame: Array, target: Array, offset: Array) -> Array:
    """e = [p_target - p;  2 log(q_target q*)] of the tool, at `offset` in the frame."""
    pose = compose(pose_frame, offset)
    turn = quat_multiply(target[3:], quat_conjugate(pose[3:]))
    return jnp.concatenate([target[:3] - pose[:3], quat_to_rotation_vector(turn)])


def _cost(point: _Point) -> Array:
    return point.We @ point.We


def _choose(condition: Array, yes: _Point, no: _Point) -> _Point:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def _start(q: Array, w: Array, fixed: dict[str, Array]) -> _Search:
    """Nothing is known yet: the error is infinite, so the first trial is a success."""
    pose = jnp.asarray(IDENTITY_POSE, q.dtype)
    We, WJ = jnp.full_like(w, jnp.inf), jnp.zeros((len(w), len(q)), q.dtype)
    nowhere = _Point(q, pose, We, WJ, jnp.zeros((), bool))
    zero = jnp.zeros((), jnp.int32)
    return _Search(nowhere, nowhere, q, fixed["damping"], zero, jnp.full(2, -1, jnp.int32), zero)


def _result(
    given: dict[str, Array], found: _Search, chain: np.ndarray, w: Array, low: Array, high: Array
) -> IKResult:
    """The result, made differentiable by a last step of length zero: the search itself is not."""
    best = found.best
    e = _error(best.pose, given["target_pose"], given["offset"])
    known = jax.lax.stop_gradient(e)
    step = _solve_free(
        _damped(best, float(jnp.finfo(e.dtype).eps) ** 0.75),
        best.WJ.T @ (w * (e - known)[: len(w)]),
        jnp.zeros_like(best.q),
        (best.q <= low) | (best.q >= high),
    )
    return IKResult(
        given["q0"].at[chain].set(best.q + step),
        jnp.linalg.norm(known[:3]),
        jnp.linalg.norm(known[3:]),
        found.iterations[1],
        best.reached,
    )


def _bounded_step(A: Array, g: Array, low: Array, high: Array) -> Array:
    """Δq with A Δq = g and low <= Δq <= high.

    A step beyond its bound is put on it, and the others are solved for again. This is done twice,
    which leaves little for the last clip to cut.
    """

    def once(_: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        step, held = carry
        step = _solve_free(A, g, jnp.where(held, step, 0.0), held)
        return jnp.clip(step, low, high), held | (step < low) | (step > high)

    return jax.lax.fori_loop(0, 3, once, (jnp.zeros_like(g), jnp.zeros(len(g), bool)))[0]


def _solve_free(A: Array, g: Array, step: Array, held: Array) -> Array:
    """`step` where it is held; elsewhere what solves A Δq = g given that."""
    rest = jnp.where(held, step, g - A @ step)
    both = ~held[:, None] & ~held[None, :]
    A_free = jnp.where(both, A, 0.0) + jnp.diag(held.astype(A.dtype))
    return positive_definite.solve(A_free, rest[:, None])[:, 0]


def _damped(point: _Point, damping: Any) -> Array:
    return point.WJ.T @ point.WJ + damping * jnp.eye(len(point.q), dtype=point.q.dtype)


def _chain(tree: KinematicTree, frame_name: str) -> np.ndarray:
    """The coordinates that move a frame."""
    link_idx = tree.frame(frame_name).link_idx
    found = set()
    while link_idx >= 0:
        found.add(tree.coordinate_idxs[link_idx])
        link_idx = tree.parent_idxs[link_idx]
    return np.array(sorted(found))


def _widest(
    tree: KinematicTree, chain: np.ndarray, q0: Array, low: Array, high: Array
) -> tuple[Array, Array]:
    """The limits; where there are none, half a turn or a metre to both sides of q0."""
    prismatic = {
        c for c, kind in zip(tree.coordinate_idxs, tree.joint_kinds) if kind == JOINT_TYPE_PRISMATIC
    }
    around = jnp.asarray([1.0 if c in prismatic else np.pi for c in chain], q0.dtype)
    lowest = jnp.where(jnp.isfinite(low), low, q0[chain] - around)
    return lowest, jnp.where(jnp.isfinite(high), high, q0[chain] + around)
