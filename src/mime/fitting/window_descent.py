"""Unknowns and initial states of windows, minimised together: one simulation a step.

    [Jz' W Jz + P   Jz' W Js      ] [dz]     [Jz' psi + P (z - c)  ]
    [Js' W Jz       Js' W Js + D⁻²] [ds] = - [Js' psi + D⁻² (s - c)]      W = psi'(r)

States are eliminated window by window, so a step costs as much as one of z alone; dz is damped as
by Levenberg and Marquardt, ds in those windows alone that went up.
"""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from mime.fitting.loss import Loss
from mime.fitting.model import Model
from mime.fitting.states import ROUGH, At, Cost, crossed, keep, state_sums

if TYPE_CHECKING:
    from mime.fitting.solve import Prior

_LONGEST_STEP = 2.0
_LEAST_DAMPED = 1e-3
"""Of the largest curvature, as in `solve.py`."""
_LEAST_WEIGHT = 0.1
"""Of psi(r) / r: what psi'(r) is taken for where outliers make it smaller or negative. psi(r) / r
itself, with which no step is too long, at first and after a step that went up."""
_MISSED, _NOT_DAMPED = 0.5, 1e-2
"""States of a window that misses its parabola by this part of its change are damped; by less than
the second they are free."""
_REFUSED = 3
"""So many steps in a row that promise less than `_LITTLE` of the cost and do not hold it: the cost
is rough, as that of dry friction or rounded angles is, and ends here."""
_LITTLE = 1e-3


@dataclasses.dataclass(frozen=True)
class _Step:
    z: np.ndarray
    starts: np.ndarray
    changes: np.ndarray
    """Of the cost of each window, if it is a parabola."""
    promised: float
    """What the whole cost then gains."""
    left: float
    """What a step without damping would gain."""


def descended(
    model: Model,
    z: np.ndarray,
    noise: Mapping[str, float],
    prior: "Prior",
    loss: Loss,
    held: int | None,
    tolerance: float,
    most: int,
) -> tuple[np.ndarray, float, int]:
    """The nearest minimum, its cost, and how often it simulated; z[held] stays where it is."""
    cost = Cost(model, noise, loss)
    fixed = np.arange(len(z)) == held
    z = np.where(fixed, z, np.clip(z, prior.low, prior.high))
    first = first_start(cost, z)
    now, count = first, 1
    value = _value(z, now.costs, prior)
    if not np.isfinite(value):
        return z, np.inf, count
    damping, sure, refused = 1e-3, 1.0, 0
    states: np.ndarray = np.zeros(len(now.costs))
    while count < most:
        step = _step(cost, now, prior, fixed, damping, states, sure)
        if not step.left > tolerance * (value + 1e-300):
            break
        costs = cost.alone(step.z, step.starts)
        count += 1
        there = _value(step.z, costs, prior)
        with np.errstate(invalid="ignore"):
            missed = ~(costs - now.costs - step.changes < _MISSED * np.abs(step.changes))
            missed &= ~(np.abs(costs - now.costs) < ROUGH * value)
        states = np.where(missed, np.clip(100.0 * states, 1.0, 100.0), 0.1 * states)
        states *= states > _NOT_DAMPED
        if there < value:
            gained = value - there
            little = gained < tolerance * value
            little |= gained < ROUGH * value and gained < 0.1 * step.promised
            now, value = cost.at(step.z, step.starts), there
            damping, sure = max(0.2 * damping, 1e-12), max(0.1 * sure, _LEAST_WEIGHT)
            refused = refused + 1 if little else 0
        else:
            damping, sure = 8.0 * damping, 1.0
            refused += step.promised < _LITTLE * value
        if refused >= _REFUSED or damping > 1e10:
            break
    keep(cost, now)
    return now.z, value, count


def first_start(cost: Cost, z: np.ndarray) -> At:
    """Where the states of the last minimum would follow z to, without a simulation where it can."""
    model = cost.model
    assert model.windows is not None, "it is a model of windows"
    if not model.reduced:
        return cost.at(z, model.windows.starts)
    last = next(reversed(model.reduced.values()))
    if np.array_equal(last.z, z):
        return cost.of(z, last.starts, last.at.residual, last.at.slopes)
    found = cost.at(z, last.starts + np.where(cost.free, last.by_z @ (z - last.z), 0.0))
    if np.all(np.isfinite(found.costs)):
        return found
    return cost.at(z, model.windows.starts)


def _value(z: np.ndarray, costs: np.ndarray, prior: "Prior") -> float:
    return float(np.sum(costs) + np.sum(((z - prior.centre) / prior.width) ** 2))


def _step(
    cost: Cost,
    now: At,
    prior: "Prior",
    fixed: np.ndarray,
    damping: float,
    states: np.ndarray,
    sure: float,
) -> _Step:
    z, count, windows = now.z, len(now.z), len(now.costs)
    weights = np.maximum(cost.loss.psi_slope(now.r), sure * cost.loss.weights(now.r))
    A, g = state_sums(cost, now, weights)
    diagonal = np.einsum("wii->wi", A)
    A = A + np.eye(A.shape[1]) * (states[:, None] * diagonal)[:, None, :]
    Jz = now.J[:, :count]
    own = now.J[:, count:] * cost.width[cost.window]
    B = crossed(own, weights, Jz, cost.window, windows)
    solved = np.linalg.solve(A, np.concatenate([B, g[..., None]], axis=2))
    by_z, alone = solved[..., :-1], solved[..., -1]
    off = (z - prior.centre) / prior.width
    slope = Jz.T @ cost.loss.psi(now.r) + off / prior.width - np.einsum("wsz,ws->z", B, alone)
    curvature = Jz.T @ (weights[:, None] * Jz) + np.diag(prior.width**-2.0)
    curvature -= np.einsum("wsi,wsj->ij", B, by_z)
    stays = fixed | ((z <= prior.low) & (slope > 0)) | ((z >= prior.high) & (slope < 0))
    free = ~stays
    slope = slope * free
    curvature = curvature * np.outer(free, free) + np.diag(stays.astype(float))
    inside = float(np.einsum("ws,ws->", g, alone))
    left = inside + float(slope @ np.linalg.solve(curvature, slope))
    scale = np.maximum(np.diag(curvature), _LEAST_DAMPED * np.max(np.diag(curvature)))
    dz = -np.linalg.solve(curvature + damping * np.diag(scale * free), slope)
    dz = np.clip(dz, -_LONGEST_STEP, _LONGEST_STEP)
    ahead = np.where(stays, z, np.clip(z + dz, prior.low, prior.high))
    dz = ahead - z
    ds = -cost.width * (alone + np.einsum("wsz,z->ws", by_z, dz))
    moved = Jz @ dz + np.einsum("ks,ks->k", now.J[:, count:], ds[cost.window])
    each = (2.0 * cost.loss.psi(now.r) + weights * moved) * moved
    changes = np.bincount(cost.window, each, windows)
    was = (now.starts - cost.centre) * cost.precision
    changes += np.sum((2.0 * was + ds * cost.precision) * ds * cost.precision, axis=1)
    promised = -float(np.sum(changes) + (2.0 * off + dz / prior.width) @ (dz / prior.width))
    return _Step(ahead, now.starts + ds, changes, promised, left)
