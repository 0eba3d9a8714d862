"""Parameters that a log presses to zero, the end of their range.

Positive parameters are looked for by their logarithms, which have no end there: friction that a
machine has not falls by orders of magnitude, until nothing feels it. Such a one is at its bound if

    cost(0) - cost(z) < 0.1 q²        and        min over the others cost(start) - cost(z) > q²

q² is the rise of the cost at the end of a 95 % interval. Else the log does not tell it.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from mime.core.problem import ParameterError
from mime.fitting.loss import Loss
from mime.fitting.model import Model
from mime.fitting.solve import Prior, cost_of, polish
from mime.running.simulation import Simulation

_SMALL = 1e-2
"""Of the start: what is larger is told by the Jacobian."""
_NOTHING = 0.1
_AS_ZERO = 1e-6
"""Of what is left of it: nothing."""
_REFIT = 20
"""Simulations that a refit may take."""


def at_zero(
    model: Model,
    z: np.ndarray,
    noise: Mapping[str, float],
    prior: Prior,
    loss: Loss,
    quantile: float,
) -> np.ndarray:
    """Which coordinates are at zero."""
    # Mere anchors go with the logarithm, which has no end.
    prior = dataclasses.replace(prior, width=np.where(prior.is_real, prior.width, 1e9))

    def cost(z: np.ndarray) -> float:
        return cost_of(model, z, noise, prior, loss)

    found: np.ndarray = np.zeros(len(z), bool)
    for j, c in enumerate(model.coordinates):
        is_positive = c.is_log and c.kind == "parameter" and c.low == 0.0
        if not is_positive or c.value(z[j]) > _SMALL * c.start:
            continue
        least, off, start = cost(z), z.copy(), z.copy()
        off[j] += np.log(_AS_ZERO)
        start[j] = c.z(c.start)
        if cost(off) - least < _NOTHING * quantile**2:
            _, there, _ = polish(model, start, noise, prior, loss, j, 1e-4, _REFIT)
            found[j] = there - least > quantile**2
    return found


def may_be_zero(simulation: Simulation, address: str) -> bool:
    """Friction may, a mass may not."""
    try:
        simulation.with_parameters({address: 0.0})
    except ParameterError:
        return False
    return True
