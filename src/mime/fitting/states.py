"""Initial states of windows, eliminated: what is left is a fit of the other unknowns alone.

    minimise over z    min over s   sum_w rho(r_w(z, s_w) / sigma) + |(s_w - c_w) / width_w|²

    ds/dz = -(Js' W Js + width⁻²)⁻¹ Js' W Jz          J = Jz + Js ds/dz

Each window has states of its own, so both the inner minimum and its slope are found window by
window, and the cost grows as their number. JᵀWJ is the Schur complement of the states, Jᵀ r the
slope of the whole cost: least squares on r and J converge as on all unknowns together (variable
projection: Golub and Pereyra 1973; with the states' prior as rows).
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from mime.fitting.loss import Loss
from mime.fitting.model import Model

_ROUNDS = 20
_ARRIVED = 1e-11
"""Of the cost, what the last step of the states may still gain."""
ROUGH, _MOST_DAMPED = 1e-6, 10.0
"""Where a cost is rough, as of dry friction or rounded angles, slopes promise what no step holds:
states stay where a step gains less than this part of the cost, or where damping is as large."""
_SAME_NOISE = 1e-3
"""Noise that differs by less has the same best states."""


@dataclasses.dataclass(frozen=True)
class Reduced:
    """Windows at their best initial states."""

    z: np.ndarray
    starts: np.ndarray
    residual: dict[str, np.ndarray]
    """By field, all rows."""
    r: np.ndarray
    """Whitened, all fields one after the other; then the prior's rows of free states."""
    J: np.ndarray
    """By z, the states following."""
    by_z: np.ndarray
    """ds/dz, (windows, slots, len(z))."""
    taken: np.ndarray
    """The part of each row that the states fit; of rows of sensors alone."""
    slopes: np.ndarray
    """Of rows of sensors by the states of their window."""
    inverse: np.ndarray
    """(Js' W Js + width⁻²)⁻¹, (windows, slots, slots); 0 of states that are not free."""
    weights: np.ndarray
    window: np.ndarray
    """Of each row."""
    noise: Mapping[str, float]
    at: "At"

    def without_states(self, columns: np.ndarray) -> np.ndarray:
        """Rows of sensors, any columns, without what the states would make of them."""
        windows, slots = self.starts.shape
        sums = np.zeros((windows, slots, columns.shape[1]))
        data = len(self.slopes)
        each = self.weights[:, None, None] * self.slopes[:, :, None] * columns[:, None, :]
        np.add.at(sums, self.window[:data], each)
        by = self.inverse @ sums
        return columns - np.einsum("ks,ksc->kc", self.slopes, by[self.window[:data]])


def window_of_rows(model: Model) -> np.ndarray:
    """The window of every row of every field, one field after the other."""
    return np.concatenate(
        [
            np.full(len(s.measured), k)
            for field in model.fields
            for k, e in enumerate(model.experiments)
            for s in e.sensors
            if s.field == field
        ]
    )


class Cost:
    """The cost of every window from given initial states, with residuals and slopes."""

    def __init__(self, model: Model, noise: Mapping[str, float], loss: Loss):
        windows = model.windows
        assert windows is not None, "it is a model of windows"
        self.model, self.noise, self.loss = model, dict(noise), loss
        self.free, self.centre = windows.is_free, windows.centre
        self.width = np.where(self.free, windows.width, 0.0)
        self.precision = np.where(self.free, 1.0 / np.where(self.free, windows.width, 1.0), 0.0)
        self.window = window_of_rows(model)
        rows = [len(model.data["measured"][f]) for f in model.fields]
        self.sigma = np.repeat([noise[f] for f in model.fields], rows)

    @property
    def key(self) -> Any:
        """What costs differ in, for one model."""
        return tuple(sorted(self.noise.items())), self.loss

    def at(self, z: np.ndarray, starts: np.ndarray) -> "At":
        """One simulation of all windows."""
        residual, jacobian = self.model.programs.by_states(z, starts, self.model.data)
        residual = {f: np.asarray(residual[f]) for f in self.model.fields}
        J = np.concatenate([np.asarray(jacobian[f]) for f in self.model.fields])
        return self.of(z, starts, residual, J)

    def of(
        self, z: np.ndarray, starts: np.ndarray, residual: dict[str, np.ndarray], J: np.ndarray
    ) -> "At":
        """The same of a simulation that has been made."""
        r, costs = self._whitened(starts, residual)
        return At(z, starts, residual, J, r, J / self.sigma[:, None], costs)

    def alone(self, z: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """The costs without slopes: an eighth of the work."""
        data = {**self.model.data, "starts": starts}
        return self._whitened(starts, self.model.programs.residuals(z, data))[1]

    def _whitened(
        self, starts: np.ndarray, residual: Mapping[str, Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        r = np.concatenate([np.asarray(residual[f]) for f in self.model.fields]) / self.sigma
        with np.errstate(invalid="ignore", over="ignore"):
            costs = np.sum(((starts - self.centre) * self.precision) ** 2, axis=1)
            costs += np.bincount(self.window, self.loss.costs(r), len(costs))
        return r, np.where(np.isfinite(costs), costs, np.inf)

    def joined(self, better: np.ndarray, new: "At", old: "At") -> "At":
        """The new one in these windows, the old one in all others."""
        rows = better[self.window]
        return At(
            old.z,
            np.where(better[:, None], new.starts, old.starts),
            _by_field(self.model, old.residual, new.residual, rows),
            np.where(rows[:, None], new.slopes, old.slopes),
            np.where(rows, new.r, old.r),
            np.where(rows[:, None], new.J, old.J),
            np.where(better, new.costs, old.costs),
        )


@dataclasses.dataclass(frozen=True)
class At:
    """Windows simulated once."""

    z: np.ndarray
    starts: np.ndarray
    residual: dict[str, np.ndarray]
    slopes: np.ndarray
    """By z and each row's own start."""
    r: np.ndarray
    J: np.ndarray
    """Both whitened."""
    costs: np.ndarray
    """Of every window; infinite where its simulation failed."""


def reduced(model: Model, z: np.ndarray, noise: Mapping[str, float], loss: Loss) -> Reduced:
    """The minimum over the initial states at z, by Gauss and Newton in each window by itself."""
    cost = Cost(model, noise, loss)
    kept: dict[Any, Reduced] = model.reduced
    key = z.tobytes(), *cost.key
    if key in kept:
        return kept[key]
    assert model.windows is not None, "it is a model of windows"
    starts, last = model.windows.starts, None
    if kept:
        last = next(reversed(kept.values()))
        starts = last.starts + np.where(cost.free, last.by_z @ (z - last.z), 0.0)
    if last is not None and np.array_equal(z, last.z):
        now = cost.of(z, last.starts, last.at.residual, last.at.slopes)
    else:
        now = cost.at(z, starts)
    if last is not None and not np.all(np.isfinite(now.costs)):
        now = cost.at(z, model.windows.starts)
    damping: np.ndarray = np.zeros(len(starts))
    done: np.ndarray = np.zeros(len(starts), bool)
    if last is not None and np.array_equal(z, last.z) and _is_near(noise, last.noise):
        done[:] = True
    for _ in range(_ROUNDS):
        if done.all():
            break
        A, g = state_sums(cost, now, loss.weights(now.r))
        diagonal = np.einsum("wii->wi", A)
        damped = A + np.eye(A.shape[1]) * (damping[:, None] * diagonal)[:, None, :]
        sound = np.isfinite(damped).all(axis=(1, 2)) & np.isfinite(g).all(axis=1)
        damped[~sound], g[~sound] = np.eye(A.shape[1]), 0.0
        step = -np.linalg.solve(damped, g[..., None])[..., 0]
        gain = -np.einsum("ws,ws->w", g, step)
        done |= ~(gain > _ARRIVED * (now.costs + 1.0))
        if done.all():
            break
        new = cost.at(z, np.where(done[:, None], now.starts, now.starts + cost.width * step))
        better = (new.costs < now.costs) & ~done
        gained = np.where(better, now.costs - np.where(better, new.costs, 0.0), 0.0)
        done |= better & (gained < ROUGH * now.costs) & (gained < 0.1 * gain)
        damping = np.where(better, 0.1 * damping * (damping > 1e-6), np.maximum(30 * damping, 1e-3))
        done |= damping > _MOST_DAMPED
        now = cost.joined(better, new, now)
    return keep(cost, now)


def _is_near(noise: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """So near that a minimum for the one is one for the other."""
    return all(abs(noise[f] / other[f] - 1.0) < _SAME_NOISE for f in noise)


def keep(cost: Cost, now: At) -> Reduced:
    """Eliminate the states there, for `reduced` to find."""
    kept: dict[Any, Reduced] = cost.model.reduced
    key = now.z.tobytes(), *cost.key
    kept.pop(key, None)
    found = kept[key] = _eliminated(cost, now)
    while len(kept) > 4:
        kept.pop(next(iter(kept)))
    return found


def state_sums(cost: Cost, now: At, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Js' W Js + width⁻² and Js' psi + (s - c) / width² of every window, in widths."""
    windows = len(now.costs)
    own = now.J[:, len(now.z) :] * cost.width[cost.window]
    A, _ = _sums(own, weights, now.r, cost.window, windows)
    _, g = _sums(own, cost.loss.weights(now.r), now.r, cost.window, windows)
    return A + np.eye(A.shape[1]), g + (now.starts - cost.centre) * cost.precision


def _by_field(model: Model, old: Any, new: Any, chosen: np.ndarray) -> dict[str, np.ndarray]:
    """The new rows where they are chosen."""
    found, first = {}, 0
    for f in model.fields:
        last = first + len(old[f])
        found[f] = np.where(chosen[first:last], new[f], old[f])
        first = last
    return found


def _sums(
    Js: np.ndarray, weights: np.ndarray, r: np.ndarray, window: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Js' W Js and Js' W r of every window."""
    slots = Js.shape[1]
    A, g = np.zeros((count, slots, slots)), np.zeros((count, slots))
    for i in range(slots):
        g[:, i] = np.bincount(window, weights * Js[:, i] * r, count)
        for j in range(i + 1):
            A[:, i, j] = A[:, j, i] = np.bincount(window, weights * Js[:, i] * Js[:, j], count)
    return A, g


def _eliminated(cost: Cost, now: At) -> Reduced:
    z, starts, window, width = now.z, now.starts, cost.window, cost.width
    free, precision, centre = cost.free, cost.precision, cost.centre
    count, (windows, slots) = len(z), starts.shape
    Jz, Js = now.J[:, :count], now.J[:, count:]
    weights = cost.loss.weights(now.r)
    own = Js * width[window]
    A, _ = _sums(own, weights, now.r, window, windows)
    cross = crossed(own, weights, Jz, window, windows)
    sound = np.isfinite(A).all(axis=(1, 2))
    A[~sound] = 0.0
    inverse = np.linalg.inv(A + np.eye(slots))
    by_z = -width[:, :, None] * (inverse @ cross)
    inverse = width[:, :, None] * inverse * width[:, None, :]
    projected = Jz + np.einsum("ks,ksz->kz", Js, by_z[window])
    taken = weights * np.einsum("ks,kst,kt->k", Js, inverse[window], Js)
    own_r = ((starts - centre) * precision)[free]
    own_J = (precision[:, :, None] * by_z)[free]
    own_window = np.nonzero(free)[0]
    return Reduced(
        z,
        starts,
        now.residual,
        np.concatenate([now.r, own_r]),
        np.concatenate([projected, own_J]),
        by_z,
        taken,
        Js,
        inverse,
        weights,
        np.concatenate([window, own_window]),
        cost.noise,
        now,
    )


def crossed(
    own: np.ndarray, weights: np.ndarray, Jz: np.ndarray, window: np.ndarray, count: int
) -> np.ndarray:
    """Js' W Jz of every window."""
    found = np.zeros((count, own.shape[1], Jz.shape[1]))
    for i, j in np.ndindex(own.shape[1], Jz.shape[1]):
        found[:, i, j] = np.bincount(window, weights * own[:, i] * Jz[:, j], count)
    return found


def estimated_noise(
    model: Model, found: Reduced, noise: Mapping[str, float], prior: np.ndarray, loss: Loss
) -> dict[str, float]:
    """sigma_s² = |r_s|² / (n_s - p_s), p_s the share of unknowns and states that s has fitted.

    prior   the information on z beforehand
    """
    data = len(found.slopes)
    total = found.J.T @ found.J + prior
    shares = np.einsum("ki,ij,kj->k", found.J[:data], np.linalg.inv(total), found.J[:data])
    shares = shares + found.taken
    result, first = {}, 0
    for f in model.fields:
        rows = found.residual[f]
        share = float(np.sum(shares[first : first + len(rows)]))
        squares = loss.squares(rows, noise[f])
        result[f] = float(np.sqrt(squares / max(len(rows) - share, 1.0)))
        first += len(rows)
    return result
