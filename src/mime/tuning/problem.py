"""The question to the optimiser: cost, limits and their slopes, of many gains at once.

    f = mean over plants of sum of weight · figure        c of every plant: figures, then margins

Figures have slopes by reverse differentiation of the runs. Margins come of the matrices of a step
(`margin_limits.py`), by NumPy; what they change by these goes back through the runs with the rest.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.optimise.descent import Slopes, slopes_of
from mime.tuning.bench import Bench


def question(bench: Bench, scale: float) -> tuple[Slopes, int]:
    """Value and slope of the Lagrangian, f and c as functions of coordinates; how many c."""
    count = len(bench.figures.limited)
    if not bench.margin_limits.said:
        return slopes_of(lambda z: _figures(bench, scale, z)[:2]), bench.members * count
    count += len(bench.loops) * len(bench.margin_limits.said)
    return _with_margins(bench, scale), bench.members * count


def _figures(bench: Bench, scale: float, z: Any) -> tuple[Any, Any, Any]:
    """f, c of figures, and the final states of all plants."""
    states, _, figures = bench.over_plants(bench.one, bench.gains.values(z))
    cost = jnp.mean(jax.vmap(bench.figures.cost)(figures)) / scale
    return cost, jax.vmap(bench.figures.excess)(figures).ravel(), states


def _with_margins(bench: Bench, scale: float) -> Slopes:
    def of(z: Any) -> Any:
        cost, excess, states = _figures(bench, scale, z)
        values, loops = bench.gains.values(z), bench.loops
        closed = bench.matrices(loops[0], values, 1.0, states)
        opened = [bench.matrices(loop, values, 0.0, states) for loop in loops]
        return cost, excess, closed, jnp.stack(opened, axis=1)

    def pulled(z: Any, pulls: Any) -> Any:
        return sum(jnp.vdot(pull, value) for pull, value in zip(pulls, of(z), strict=True))

    # Twice forward: a run whose slope is asked for at once keeps nothing for later.
    forward, backward = jax.jit(jax.vmap(of)), jax.jit(jax.vmap(jax.grad(pulled)))

    def slopes(x: np.ndarray, multipliers: np.ndarray, weight: np.ndarray) -> Any:
        cost, own, closed, opened = map(np.asarray, forward(x))
        closed = np.broadcast_to(closed[:, :, None], opened.shape)  # (starts, plants, loops, n, n)
        margins, by_closed, by_opened = bench.margin_limits.excess_of_all(closed, opened)
        excess = np.concatenate([own, margins.reshape(len(x), -1)], axis=1)
        pressed = np.maximum(excess + multipliers / weight[:, None], 0.0)
        value = cost + 0.5 * weight * np.sum(pressed**2, axis=1)
        of_figures, rest = np.split(weight[:, None] * pressed, [own.shape[1]], axis=1)
        of_margins = rest.reshape(margins.shape)
        through_closed = np.einsum("splk,splkij->spij", of_margins, by_closed)
        through_opened = np.einsum("splk,splkij->splij", of_margins, by_opened)
        slope = backward(x, (np.ones_like(cost), of_figures, through_closed, through_opened))
        return value, np.asarray(slope), cost, excess

    return slopes
