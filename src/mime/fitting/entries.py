"""What a result is made of, whichever way it was fitted: estimates, outliers, traces."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mime.fitting.loss import outliers
from mime.fitting.model import Model
from mime.fitting.profile import Interval
from mime.fitting.rank import Kind, Rank
from mime.fitting.result import Estimate, Outliers, Trace
from mime.fitting.unknown import Coordinate


def estimate_of(c: Coordinate, z: float, found: Interval | None, kind: Kind) -> Estimate:
    """An unknown with its interval, or without a value where it is not known."""
    value = float(c.value(z))
    told = value if kind in ("known", "bound") else None
    if kind != "known" or found is None:
        return Estimate(c.name, c.unit, c.kind, kind, told, None, None, c.start, c.prior)
    low, high = float(c.value(found.low)), float(c.value(found.high))
    return Estimate(
        c.name, c.unit, c.kind, kind, told, low, high, c.start, c.prior, found.how,
        found.nonlinearity,
    )  # fmt: skip


def outliers_by_row(
    model: Model, residuals: Mapping[str, Any], noise: Mapping[str, float]
) -> tuple[Outliers, ...]:
    """Values that lie far beyond the noise, by log and sensor."""
    found = []
    for e, rest in zip(model.experiments, model.split(residuals), strict=True):
        for s, left in zip(e.sensors, rest, strict=True):
            beyond = outliers(left / noise[s.field])
            if beyond.any():
                rows = tuple(int(line) for line in s.lines[beyond])
                found.append(Outliers(e.file, s.column, s.field, len(left), rows))
    return tuple(found)


def covariance_of(
    found: Sequence[Coordinate], z: np.ndarray, rank: Rank, kinds: Sequence[Kind]
) -> np.ndarray:
    """Of what is known, in values rather than logarithms."""
    known = [j for j, kind in enumerate(kinds) if kind == "known"]
    slope = np.array(
        [float(found[j].value(z[j])) if found[j].is_log else found[j].scale for j in known]
    )
    return rank.covariance[np.ix_(known, known)] * np.outer(slope, slope)


def traces_of(model: Model, residuals: Mapping[str, Any], held_out: bool) -> tuple[Trace, ...]:
    """Every sensor of every log, measured and fitted."""
    return tuple(
        Trace(
            e.name,
            s.field,
            s.place.spec.unit,
            s.positions * e.period_s,
            s.measured,
            s.measured + left,
            held_out,
        )
        for e, rest in zip(model.experiments, model.split(residuals), strict=True)
        for s, left in zip(e.sensors, rest, strict=True)
    )
