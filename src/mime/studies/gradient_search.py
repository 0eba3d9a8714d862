"""A search by gradients: many starts go down at once, a batch of members a round."""

import numpy as np

from mime.optimise.descent import KEPT_BY, minimise_by
from mime.studies.dimensions import Space
from mime.studies.evaluations import BudgetSpentError, Evaluations
from mime.studies.expression import evaluate
from mime.studies.objectives import Aim, OptimiseTable
from mime.studies.slopes import Slopes
from mime.studies.space import Drawing, cube

_ROUNDS, _PASSES, _WEIGHT = 20, 20, 30.0
"""With limits; without, one pass has all rounds."""


class NoSlopeError(Exception):
    """The objective does not change with any parameter at any start, or its slope is no number."""


def search_by_gradient(
    space: Space, aim: Aim, table: OptimiseTable, evaluations: Evaluations, slopes: Slopes
) -> str:
    """Descend from points of Sobol's sequence until all have arrived; in words, what was done.

    Coordinates are 0 to 1 along each dimension, by the logarithm where it is one. A limit is aimed
    at from inside by as much as the optimiser may miss it, so that what it finds keeps it.
    """
    free = space.free
    starts = min(table.starts, evaluations.left)
    u = cube(Drawing(starts, "sobol", table.seed), len(free))
    problem = _Problem(space, aim, evaluations, slopes)
    count = len(aim.limits) + len(slopes.differences)
    rounds = _ROUNDS if count else _ROUNDS * _PASSES
    try:
        ends = minimise_by(
            problem,
            count,
            u,
            0.0,
            1.0,
            rounds=rounds,
            passes=_PASSES,
            weight=_WEIGHT,
            is_exact=True,
        )
    except BudgetSpentError:
        return f"{starts} starts by gradients, until the budget was spent"
    if not ends.is_complete:
        raise KeyboardInterrupt
    return f"{starts} starts by gradients, all arrived"


class _Problem:
    """The Lagrangian at a point for each start, with its slope: figures are those of members."""

    def __init__(self, space: Space, aim: Aim, evaluations: Evaluations, slopes: Slopes):
        self._space, self._aim = space, aim
        self._evaluations, self._slopes = evaluations, slopes
        self._scale = 0.0
        self._spans: np.ndarray = np.empty(0)

    def __call__(
        self, u: np.ndarray, multipliers: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        space, aim = self._space, self._aim
        points = np.tile(space.middle(), (len(u), 1))
        by_u = np.empty_like(u)
        for column, place in enumerate(space.free):
            dimension = space.dimensions[place]
            points[:, place] = dimension.at(u[:, column])
            by_u[:, column] = dimension.slope(points[:, place])
        columns = space.columns(points)
        members = self._evaluations.of(columns)
        figures = {n: values[members] for n, values in self._evaluations.figures.items()}
        addresses = self._evaluations.addresses(members)
        by_value = self._slopes.at(points, addresses)[:, :, space.free] * by_u[:, None, :]
        slope_of = {name: by_value[:, row] for row, name in enumerate(aim.figures)}

        apart = [evaluate(text, columns) for text in self._slopes.differences]
        differences = np.stack(apart, axis=1) if apart else np.zeros((len(u), 0))
        objective = aim.objectives[0]
        if not self._scale:
            self._begin(aim.costs(figures)[:, 0], slope_of[objective.figure], differences)
        cost = aim.costs(figures)[:, 0] / self._scale
        by_cost = objective.sign * slope_of[objective.figure] / self._scale

        excess = np.hstack([aim.excess(figures), differences / self._spans]) + KEPT_BY
        by_excess = np.empty((*excess.shape, len(space.free)))
        for k, limit in enumerate(aim.limits):
            sign = limit.excess(1.0) - limit.excess(0.0)
            by_excess[:, k] = sign * slope_of[limit.figure]
        rest = by_value[:, len(aim.figures) :]
        by_excess[:, len(aim.limits) :] = rest / self._spans[:, None]

        pressed = np.maximum(excess + multipliers / weight[:, None], 0.0)
        value = cost + 0.5 * weight * np.sum(pressed**2, axis=1)
        pull = weight[:, None] * pressed
        slope = by_cost + np.einsum("sk,skn->sn", pull, np.where(pull[..., None] > 0, by_excess, 0))
        return value, slope, cost, excess

    def _begin(self, costs: np.ndarray, slopes: np.ndarray, differences: np.ndarray) -> None:
        """What the objective and differences are measured by: their size at the starts."""
        if not (np.isfinite(slopes).all(axis=1) & (slopes != 0).any(axis=1)).any():
            raise NoSlopeError
        sizes = np.abs(costs[np.isfinite(costs)])
        self._scale = float(np.median(sizes)) if sizes.any() else 1.0
        self._scale = self._scale or 1.0
        usual = np.median(np.abs(differences), axis=0)
        self._spans = np.where(usual > 0, usual, 1.0)
