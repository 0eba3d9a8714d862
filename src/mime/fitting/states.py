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
_ROUGH, _MOST_DAMPED = 1e-6, 10.0
"""Where a cost is rough, as of dry friction or rounded angles, slopes promise what no step holds:
states stay where a step gains less than this part of the cost, or where damping is as large."""


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


def reduced(model: Model, z: np.ndarray, noise: Mapping[str, float], loss: Loss) -> Reduced:
    """The minimum over the initial states at z, by Gauss and Newton in each window by itself."""
    windows = model.windows
    assert windows is not None, "it is a model of windows"
    kept: dict[Any, Reduced] = model.reduced
    key = z.tobytes(), tuple(sorted(noise.items())), loss
    if key in kept:
        return kept[key]
    free = windows.is_free
    precision = np.where(free, 1.0 / np.where(free, windows.width, 1.0), 0.0)
    starts = windows.starts
    if kept:
        last = next(reversed(kept.values()))
        starts = last.starts + np.where(free, last.by_z @ (z - last.z), 0.0)
    window = window_of_rows(model)
    sigma = np.concatenate(
        [np.full(len(model.data["measured"][f]), noise[f]) for f in model.fields]
    )

    def at(s: np.ndarray) -> Any:
        residual, jacobian = model.programs.by_states(z, s, model.data)
        residual = {f: np.asarray(residual[f]) for f in model.fields}
        r = np.concatenate([residual[f] for f in model.fields]) / sigma
        J = np.concatenate([np.asarray(jacobian[f]) for f in model.fields]) / sigma[:, None]
        off = (s - windows.centre) * precision
        costs = np.sum(off**2, axis=1)
        costs += np.bincount(window, loss.costs(r), len(costs))
        return residual, r, J, np.where(np.isfinite(costs), costs, np.inf)

    residual, r, J, costs = at(starts)
    if kept and not np.all(np.isfinite(costs)):
        starts = windows.starts
        residual, r, J, costs = at(starts)
    damping: np.ndarray = np.zeros(len(starts))
    width, count = np.where(free, windows.width, 0.0), len(z)
    done: np.ndarray = np.zeros(len(starts), bool)
    for _ in range(_ROUNDS):
        A, g = _sums(J[:, count:] * width[window], loss.weights(r), r, window, len(starts))
        A += np.eye(A.shape[1])  # of the prior: states are in units of their width
        g += (starts - windows.centre) * precision
        diagonal = np.einsum("wii->wi", A)
        damped = A + np.eye(A.shape[1]) * (damping[:, None] * diagonal)[:, None, :]
        sound = np.isfinite(damped).all(axis=(1, 2)) & np.isfinite(g).all(axis=1)
        damped[~sound], g[~sound] = np.eye(A.shape[1]), 0.0
        step = -np.linalg.solve(damped, g[..., None])[..., 0]
        gain = -np.einsum("ws,ws->w", g, step)
        done |= ~(gain > _ARRIVED * (costs + 1.0))
        if done.all():
            break
        ahead = np.where(done[:, None], starts, starts + width * step)
        new = at(ahead)
        better = (new[3] < costs) & ~done
        gained = np.where(better, costs - new[3], 0.0)
        done |= better & (gained < _ROUGH * costs) & (gained < 0.1 * gain)
        starts = np.where(better[:, None], ahead, starts)
        damping = np.where(better, 0.1 * damping * (damping > 1e-6), np.maximum(30 * damping, 1e-3))
        done |= damping > _MOST_DAMPED
        at_row = better[window]
        residual = _by_field(model, residual, new[0], at_row)
        r = np.where(at_row, new[1], r)
        J = np.where(at_row[:, None], new[2], J)
        costs = np.where(better, new[3], costs)
    found = _eliminated(
        z, starts, residual, r, J, loss, window, free, precision, width, windows.centre
    )
    kept[key] = found
    while len(kept) > 4:
        kept.pop(next(iter(kept)))
    return found


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


def _eliminated(
    z: np.ndarray,
    starts: np.ndarray,
    residual: dict[str, np.ndarray],
    r: np.ndarray,
    J: np.ndarray,
    loss: Loss,
    window: np.ndarray,
    free: np.ndarray,
    precision: np.ndarray,
    width: np.ndarray,
    centre: np.ndarray,
) -> Reduced:
    count, (windows, slots) = len(z), starts.shape
    Jz, Js = J[:, :count], J[:, count:]
    weights = loss.weights(r)
    own = Js * width[window]
    A, _ = _sums(own, weights, r, window, windows)
    cross = np.zeros((windows, slots, count))
    for i, j in np.ndindex(slots, count):
        cross[:, i, j] = np.bincount(window, weights * own[:, i] * Jz[:, j], windows)
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
        residual,
        np.concatenate([r, own_r]),
        np.concatenate([projected, own_J]),
        by_z,
        taken,
        Js,
        inverse,
        weights,
        np.concatenate([window, own_window]),
    )


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
