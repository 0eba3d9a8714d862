"""`[[figures_of_merit]]`: one number from a run, with its unit and the limits it must keep."""

import dataclasses
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from mime.core.trajectory import Trajectory
from mime.scenarios.fields import FieldName, split_field

Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Merit(BaseModel):
    """What all figures have: a name, a field, limits, and the time from which on they count."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: str
    field: FieldName
    after: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Seconds; samples before it do not count, and times are measured from it."""
    at_least: Finite | None = None
    at_most: Finite | None = None

    @property
    def needs_one_component(self) -> bool:
        """True when the figure of a vector would be none."""
        return True


class Statistic(_Merit):
    """The last, largest, smallest, mean or root mean square value; of a vector: over all of it."""

    kind: Literal["final", "max", "min", "rms", "mean"]

    @property
    def needs_one_component(self) -> bool:
        return self.kind == "final"


class TimeOfMax(_Merit):
    """When the field is largest, by magnitude."""

    kind: Literal["time_of_max"]


class Response(_Merit):
    """Of a step from y0 (the sample at `after`) to y1 (`target`, else the last sample)

    settling_time  after it |y - y1| <= band |y1 - y0|
    rise_time      from 10 % to 90 % of the way
    overshoot      by how much y goes beyond y1, in percent of y1 - y0
    """

    kind: Literal["settling_time", "rise_time", "overshoot"]
    target: Finite | None = None
    band: Annotated[float, Field(gt=0, lt=1)] = 0.02


class RmsError(_Merit):
    """Root mean square of field - reference, both recorded; of vectors: over all components."""

    kind: Literal["rms_error"]
    reference: FieldName

    @property
    def needs_one_component(self) -> bool:
        return False


FigureOfMerit = Annotated[Statistic | TimeOfMax | Response | RmsError, Field(discriminator="kind")]
MERITS: dict[str, type[_Merit]] = {
    **dict.fromkeys(("final", "max", "min", "rms", "mean"), Statistic),
    "time_of_max": TimeOfMax,
    **dict.fromkeys(("settling_time", "rise_time", "overshoot"), Response),
    "rms_error": RmsError,
}


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure of merit as it came out."""

    name: str
    value: float
    unit: str
    limits: str
    ok: bool


def evaluate(merit: Any, trajectory: Trajectory) -> Figure:
    """The figure's value, and whether it keeps its limits. One that does not exist is NaN."""
    time = trajectory.time
    values = pick(trajectory, merit.field)
    kept = time >= merit.after
    unit = unit_of(trajectory, merit.field)
    if merit.kind == "rms_error":
        error = (values - pick(trajectory, merit.reference))[kept]
        value = _root_mean_square(error)
    elif merit.kind in ("settling_time", "rise_time", "time_of_max"):
        value, unit = _time(merit, time, values), "s"
    elif merit.kind == "overshoot":
        value, unit = _overshoot(merit, time, values), "%"
    else:
        value = _statistic(merit.kind, values[kept])
    bounds = [("≥", merit.at_least), ("≤", merit.at_most)]
    limits = " and ".join(f"{sign} {bound:g} {unit}" for sign, bound in bounds if bound is not None)
    ok = (merit.at_least is None or value >= merit.at_least) and (
        merit.at_most is None or value <= merit.at_most
    )
    return Figure(merit.name, float(value), unit, limits, bool(ok))


def pick(trajectory: Trajectory, name: str) -> np.ndarray:
    """A recorded field, or one component of it, over time."""
    node, field, index = split_field(name)
    values: Any = trajectory[node][field]
    return values if index is None else values[(slice(None), *index)]


def unit_of(trajectory: Trajectory, name: str) -> str:
    """The unit of a recorded field."""
    node, field, _ = split_field(name)
    return trajectory.units[node][field]


def _statistic(kind: str, values: np.ndarray) -> float:
    if not values.size:
        return float("nan")
    if kind == "rms":
        return _root_mean_square(values)
    if kind == "final":
        return float(values[-1])
    return float(getattr(values, kind)())


def _root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else float("nan")


def _span(merit: Response, time: np.ndarray, y: np.ndarray) -> tuple[Any, Any, float, float]:
    """The response from `after` on: its times and values, where it starts, where it goes."""
    first = max(int(np.searchsorted(time, merit.after, side="right")) - 1, 0)
    t, values = time[first:] - merit.after, y[first:]
    return t, values, float(values[0]), float(values[-1] if merit.target is None else merit.target)


def _time(merit: Any, time: np.ndarray, y: np.ndarray) -> float:
    if not len(y) or merit.after > time[-1]:
        return float("nan")
    if merit.kind == "time_of_max":
        kept = time >= merit.after
        return float(time[kept][np.argmax(np.abs(y[kept]))] - merit.after)
    t, values, y0, y1 = _span(merit, time, y)
    if y1 == y0:
        return float("nan")
    way = (values - y0) / (y1 - y0)
    if merit.kind == "settling_time":
        outside = np.flatnonzero(np.abs(way - 1.0) > merit.band)
        if not len(outside):
            return float(max(t[0], 0.0))
        return float(t[outside[-1] + 1]) if outside[-1] + 1 < len(t) else float("nan")
    return _crossing(t, way, 0.9) - _crossing(t, way, 0.1)


def _crossing(t: np.ndarray, way: np.ndarray, level: float) -> float:
    """When `way` first reaches the level, on a straight line between samples."""
    beyond = np.flatnonzero(way >= level)
    if not len(beyond):
        return float("nan")
    k = int(beyond[0])
    if k == 0:
        return float(t[0])
    return float(np.interp(level, way[k - 1 : k + 1], t[k - 1 : k + 1]))


def _overshoot(merit: Response, time: np.ndarray, y: np.ndarray) -> float:
    if not len(y) or merit.after > time[-1]:
        return float("nan")
    _, values, y0, y1 = _span(merit, time, y)
    return float("nan") if y1 == y0 else 100.0 * max(0.0, float(np.max((values - y1) / (y1 - y0))))
