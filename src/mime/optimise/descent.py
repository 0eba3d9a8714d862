"""Many starts down a differentiable cost at once, within bounds and limits.

    minimise  f(x)    subject to  c(x) <= 0,  low <= x <= high

    augmented Lagrangian   f + rho/2 |max(0, c + m / rho)|²,   then m <- max(0, m + rho c)

Each start has its own multipliers m and its own memory of slopes (L-BFGS); all of them are
evaluated in one batch a round. Where f or a slope is not finite, f is infinite: a step there is
taken back, and a start there goes nowhere.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Problem = Callable[[Any], tuple[Any, Any]]
"""x (n,) to f and c (m,): a pure function of JAX. c are parts: 0.01 is one percent too much."""
Slopes = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[Any, Any, Any, Any]]
"""x (starts, n), m (starts, m) and rho (starts,) to the Lagrangian, its slope, f and c."""
KEPT_BY = 1e-4
"""A limit is kept when c is at most this."""
_MEMORY = 10
_ARMIJO = 1e-4
_SETTLED = 1e-9
"""A start has arrived when three steps in a row gain less than this part of f, or a whole one
promises less."""
_FIRST_WEIGHT, _LARGEST_WEIGHT = 10.0, 1e7
_LONGEST = 2.0
"""Of a step, in any coordinate: a factor of e² where that is a logarithm."""


@dataclasses.dataclass(frozen=True)
class Ends:
    """Where each start has ended."""

    x: np.ndarray
    """(starts, n)"""
    cost: np.ndarray
    """f, (starts,); infinite where it never was finite."""
    excess: np.ndarray
    """The largest c, (starts,); below 0 where all limits are kept with room."""
    last: np.ndarray
    """Where each descent stood in the end, (starts, n): further down, perhaps beyond a limit."""
    rounds: int
    """Batches that were evaluated."""
    is_complete: bool
    """False when it was interrupted, and these are the best so far."""

    @property
    def best(self) -> int:
        """The start that keeps its limits at the least cost; else the one that comes nearest."""
        keeps = self.excess <= KEPT_BY
        if keeps.any():
            return int(np.argmin(np.where(keeps, self.cost, np.inf)))
        return int(np.argmin(np.where(np.isfinite(self.cost), self.excess, np.inf)))


def minimise(
    problem: Problem,
    starts: np.ndarray,
    low: Any = -np.inf,
    high: Any = np.inf,
    *,
    rounds: int = 100,
    passes: int = 8,
    tell: Callable[[int], None] = lambda done: None,
) -> Ends:
    """Go down from every row of `starts`.

    rounds     at most, in each of at most `passes` passes; without limits one pass is all
    tell       is called with the rounds done, of rounds times passes

    Ctrl-C ends it with the best so far.
    """
    x = np.asarray(starts, float)
    count = len(jax.eval_shape(problem, jax.ShapeDtypeStruct(x.shape[1:], x.dtype))[1])
    return minimise_by(
        slopes_of(problem), count, x, low, high, rounds=rounds, passes=passes, tell=tell
    )


def minimise_by(
    slopes: Slopes,
    count: int,
    starts: np.ndarray,
    low: Any = -np.inf,
    high: Any = np.inf,
    *,
    rounds: int = 100,
    passes: int = 8,
    weight: float = _FIRST_WEIGHT,
    is_exact: bool = False,
    tell: Callable[[int], None] = lambda done: None,
) -> Ends:
    """The same for whoever evaluates f, c and their slopes elsewhere.

    count       of c
    weight      the first rho
    is_exact    go on until limits that press are met, not only kept with room to spare
    """
    x = np.clip(np.asarray(starts, float), low, high)
    weights: np.ndarray = np.full(len(x), weight)
    multipliers: np.ndarray = np.zeros((len(x), count))
    worst: np.ndarray = np.full(len(x), np.inf)
    found = _Found(x)
    done, is_complete = 0, True
    try:
        for number in range(passes if count else 1):
            at = partial(found.at, slopes, multipliers, weights)
            with np.errstate(invalid="ignore", over="ignore"):  # starts that are nowhere
                x, excess, done = _descend(at, x, low, high, done, rounds, tell)
            if not count:
                break
            room = np.minimum(-excess, multipliers / weights[:, None])
            multipliers = np.maximum(0.0, multipliers + weights[:, None] * excess)
            over = np.max(excess, axis=1, initial=-np.inf)
            heavier = (over > KEPT_BY) & (over > 0.25 * worst)
            weights = np.where(heavier, np.minimum(10 * weights, _LARGEST_WEIGHT), weights)
            met = np.max(room, axis=1, initial=0.0) <= KEPT_BY if is_exact else True
            settled = (over <= KEPT_BY) & met | ~np.isfinite(over) | (weights >= _LARGEST_WEIGHT)
            worst = over
            if settled.all() and number:
                break
    except KeyboardInterrupt:
        is_complete = False
    return Ends(found.x, found.cost, found.excess, x, done, is_complete)


ByHand = Callable[[np.ndarray], tuple[float, np.ndarray, Callable[[np.ndarray], np.ndarray]]]
"""x (n,) to f, c (m,) and a function of c̄ (m,), which gives the slope of f + c̄ · c."""


def slopes_by_hand(problem: ByHand) -> Slopes:
    """Of a problem of NumPy that has its own slopes; one start after another."""

    def slopes(x: np.ndarray, multipliers: np.ndarray, weight: np.ndarray) -> Any:
        found = []
        for x_s, m, rho in zip(x, multipliers, weight, strict=True):
            cost, excess, back = problem(x_s)
            pressed = np.maximum(excess + m / rho, 0.0)
            value = cost + 0.5 * rho * np.sum(pressed**2)
            slope = back(rho * pressed) if np.isfinite(value) else np.full_like(x_s, np.nan)
            found.append((value, slope, cost, excess))
        return tuple(map(np.array, zip(*found, strict=True)))

    return slopes


class _Found:
    """The best point of each start so far: limits first, then cost."""

    def __init__(self, x: np.ndarray):
        self.x = x.copy()
        self.cost = np.full(len(x), np.inf)
        self.excess = np.full(len(x), np.inf)

    def at(
        self, slopes: Slopes, multipliers: np.ndarray, weight: np.ndarray, x: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Value and slope of the Lagrangian, and c; f and c are noted."""
        value, slope, cost, excess = map(np.asarray, slopes(x, multipliers, weight))
        self._note(x, cost, excess)
        sound = np.isfinite(value) & np.isfinite(slope).all(axis=1)
        return np.where(sound, value, np.inf), np.where(sound[:, None], slope, 0.0), excess

    def _note(self, x: np.ndarray, cost: np.ndarray, excess: np.ndarray) -> None:
        over = np.max(excess, axis=1, initial=-np.inf)
        sound = np.isfinite(cost) & ~np.isnan(over)
        keeps, kept = over <= KEPT_BY, self.excess <= KEPT_BY
        better = np.where(keeps & kept, cost < self.cost, over < self.excess) | (keeps & ~kept)
        better &= sound & ~(kept & ~keeps)
        self.x[better], self.cost[better] = x[better], cost[better]
        self.excess[better] = over[better]


def slopes_of(problem: Problem) -> Slopes:
    """Value and slope of the Lagrangian, f and c; of all starts at once."""

    def lagrangian(x: Any, multipliers: Any, weight: Any) -> tuple[Any, tuple[Any, Any]]:
        cost, excess = problem(x)
        pressed = jnp.maximum(excess + multipliers / weight, 0.0)
        return cost + 0.5 * weight * jnp.sum(pressed**2), (cost, excess)

    def one(x: Any, multipliers: Any, weight: Any) -> Any:
        both = jax.value_and_grad(lagrangian, has_aux=True)(x, multipliers, weight)
        (value, (cost, excess)), slope = both
        return value, slope, cost, excess

    return jax.jit(jax.vmap(one))


def _descend(
    at: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]],
    x: np.ndarray,
    low: Any,
    high: Any,
    done: int,
    rounds: int,
    tell: Callable[[int], None],
) -> tuple[np.ndarray, np.ndarray, int]:
    """L-BFGS on the free coordinates of every start: where it ends, c there, all rounds done."""
    value, slope, excess = at(x)
    low, high = np.broadcast_to(low, x.shape), np.broadcast_to(high, x.shape)
    memory = _Memory(x)
    length: np.ndarray = np.ones(len(x))
    calm: np.ndarray = np.zeros(len(x), int)
    settled = ~np.isfinite(value)
    used = 1
    while used < rounds and not settled.all():
        free = ~(((x <= low) & (slope > 0)) | ((x >= high) & (slope < 0)))
        down = free * slope
        direction = np.where(free, -memory.scaled(down), 0.0)
        uphill = np.sum(direction * slope, axis=1) >= 0
        direction = np.where(uphill[:, None], -_short(down), direction)
        step = np.clip(length[:, None] * direction, -_LONGEST, _LONGEST)
        ahead = np.where(settled[:, None], x, np.clip(x + step, low, high))
        there, slope_there, excess_there = at(ahead)
        used += 1
        tell(done + used)
        gain, whole = value - there, length == 1.0
        hoped = -np.sum((ahead - x) * slope, axis=1)
        better = ~settled & np.isfinite(there) & (gain >= _ARMIJO * hoped) & (hoped > 0)
        memory.add(ahead - x, slope_there - slope, better)
        calm = np.where(better & (gain <= _SETTLED * (1.0 + np.abs(value))), calm + 1, 0)
        x = np.where(better[:, None], ahead, x)
        slope = np.where(better[:, None], slope_there, slope)
        excess = np.where(better[:, None], excess_there, excess)
        value = np.where(better, there, value)
        length = np.where(better, 1.0, 0.3 * length)
        stuck = ~settled & ~better & (length < 1e-3) & memory.forget(length < 1e-3)
        length = np.where(stuck, 1.0, length)
        small = whole & (hoped <= _SETTLED * (1.0 + np.abs(value)))
        settled |= (calm >= 3) | (length < 1e-8) | ((hoped <= 0) & ~better) | small
    return x, excess, done + used


def _short(slope: np.ndarray) -> np.ndarray:
    """The slope's direction, nowhere longer than 1."""
    return slope / (1.0 + np.abs(slope).max(axis=1, initial=0.0, keepdims=True))


class _Memory:
    """The last steps and changes of slope of every start, and the direction that follows."""

    def __init__(self, x: np.ndarray):
        self.s = np.zeros((_MEMORY, *x.shape))
        self.y = np.zeros((_MEMORY, *x.shape))
        self.inverse = np.zeros((_MEMORY, len(x)))
        """1 / (s · y), and 0 where there is no such step."""
        self.scale: np.ndarray = np.zeros(len(x))
        """s · y / y · y of the last step; 0 before the first."""

    def add(self, s: np.ndarray, y: np.ndarray, taken: np.ndarray) -> None:
        """Keep a step where it was taken and the slope grew along it."""
        product, square = np.sum(s * y, axis=1), np.sum(y * y, axis=1)
        taken = taken & (product > 1e-10 * np.sqrt(square * np.sum(s * s, axis=1)))
        for kept, new in ((self.s, s), (self.y, y)):
            kept[:, taken] = np.concatenate([kept[1:, taken], new[None, taken]])
        last = 1.0 / np.where(taken, product, 1.0)
        self.inverse[:, taken] = np.concatenate([self.inverse[1:, taken], last[None, taken]])
        self.scale = np.where(taken, product / np.where(taken, square, 1.0), self.scale)

    def forget(self, which: np.ndarray) -> np.ndarray:
        """Begin anew there; True where there was anything to forget."""
        had = which & (self.scale > 0)
        self.inverse[:, had], self.scale[had] = 0.0, 0.0
        return had

    def scaled(self, slope: np.ndarray) -> np.ndarray:
        """H slope, H the inverse of the curvature that the steps have seen (two loops)."""
        q, parts = slope.copy(), np.zeros_like(self.inverse)
        for k in reversed(range(_MEMORY)):
            parts[k] = self.inverse[k] * np.sum(self.s[k] * q, axis=1)
            q -= parts[k][:, None] * self.y[k]
        known = (self.scale > 0)[:, None]
        q = np.where(known, self.scale[:, None] * q, _short(q))
        for k in range(_MEMORY):
            back = self.inverse[k] * np.sum(self.y[k] * q, axis=1)
            q += (parts[k] - back)[:, None] * self.s[k]
        return q
