"""The way from a start to its minimum: the first part of the log, then more and more of it.

    sigma_s = max(noise_s, rms of r_s)        rows up to 1/8, 1/4, 1/2 and all of the log

What is a little wrong with a model adds up over time, and where a simulation is far from its log
the cost has minima that mean nothing. Over a short while it is near: what that tells brings the
next part near. As long as residuals are larger than the noise they are the noise, so that no
unknown leaves its start (by more than `_WIDTH`) for what is wrong in another one.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mime.fitting.model import Model
from mime.fitting.solve import Prior, levenberg_marquardt

_PARTS = (0.125, 0.25, 0.5, 1.0)
_WIDTH = 0.5
"""Of what is unknown about a start, in its coordinate: mostly within a factor of e."""
_ROUNDS = 20
_NEAR = 1e-2
"""A part has been fitted when a step gains less than this of its cost: the next one goes on."""
ROUNDS = len(_PARTS) * _ROUNDS


def approached(
    model: Model,
    z: np.ndarray,
    noise: Mapping[str, float],
    prior: Prior,
    tell: Callable[[int], None],
) -> tuple[np.ndarray, int]:
    """Every row of z near its minimum, and how often it simulated."""
    is_real = prior.is_real
    own = dataclasses.replace(
        prior,
        centre=np.where(is_real, prior.centre, z),
        width=np.where(is_real, prior.width, _WIDTH),
    )
    simulations = 0
    for number, part in enumerate(_PARTS):
        counted = model.counted(part)
        rows = {field: max(np.count_nonzero(used), 1) for field, used in counted.items()}

        def left(sums: Any, rows: Mapping[str, int] = rows) -> dict[str, np.ndarray]:
            return {f: np.maximum(noise[f], np.sqrt(sums[f][0] / rows[f])) for f in noise}

        z, _, more = levenberg_marquardt(
            lambda z, counted=counted: model.normal(z, counted),
            z,
            left,
            own,
            _ROUNDS,
            lambda done, first=number * _ROUNDS: tell(first + done),
            _NEAR,
            model.is_wide,
        )
        simulations += more
    return z, simulations
