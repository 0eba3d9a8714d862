"""`[[figures_of_merit]]`: one number from a run, with its unit and the limits it must keep."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from mime.running.trajectory import Trajectory
from mime.scenarios.fields import FieldName, Words, split_field, unit_factor

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Merit(BaseModel):
    """What all figures have: a name, a field, limits, and the time from which on they count."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: Words
    kind: str
    field: FieldName
    after: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Seconds; samples before it do not count, and times are measured from it."""
    at_least: Finite | None = None
    at_most: Finite | None = None
    unit: str | None = None
    """Unit of the figure and its limits, where it is not the field's."""
    limits_of: Words | None = None
    """A node, an assembly or a key of it, `mouse.maze`, that the limits were found for: where that
    is another, by `--set`, they are not judged.
    """

    @property
    def needs_one_component(self) -> bool:
        """True when the figure of a vector would be none."""
        return True

    def own_unit(self, field_unit: str) -> str:
        """The figure's unit, unless another is asked for."""
        return field_unit


class Statistic(Merit):
    """The last, largest, smallest, mean or root mean square value; of a vector: over all of it."""

    kind: Literal["final", "max", "min", "rms", "mean"]
    never: Finite | None = None
    """The value that says that the event has not happened: the figure is then not reached."""

    @property
    def needs_one_component(self) -> bool:
        return self.kind == "final"


class TimeOfMax(Merit):
    """The time at which the field is largest, by magnitude."""

    kind: Literal["time_of_max"]

    def own_unit(self, field_unit: str) -> str:
        return "s"


class Count(Merit):
    """How often the field leaves zero."""

    kind: Literal["count"]

    def own_unit(self, field_unit: str) -> str:
        return ""


class Response(Merit):
    """Figures of a step from y0 (the sample at `after`) to y1 (`target`, else the last sample)

    settling_time  after it |y - y1| <= band |y1 - y0|
    rise_time      from 10 % to 90 % of the way
    overshoot      by how much y goes beyond y1, in percent of y1 - y0
    """

    kind: Literal["settling_time", "rise_time", "overshoot"]
    target: Finite | None = None
    band: Annotated[float, Field(gt=0, lt=1)] = 0.02

    def own_unit(self, field_unit: str) -> str:
        return "%" if self.kind == "overshoot" else "s"


class Comparison(Merit):
    """Figures of e(t) = field(t) - reference(t - lag), both recorded

    rms_error      root mean square over time and components
    rms_distance   root mean square over time of |e|, the length of the vector
    max_distance   the largest |e|
    """

    kind: Literal["rms_error", "rms_distance", "max_distance"]
    reference: FieldName
    lag: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Seconds by which the field tells of an earlier time than the reference."""

    @property
    def needs_one_component(self) -> bool:
        return False


class UnknownMerit(Merit):
    """A figure whose kind is wrong: what all figures have can be checked all the same."""

    model_config = ConfigDict(extra="ignore")

    kind: Any = None


MERITS: dict[str, type[Merit]] = {
    **dict.fromkeys(("final", "max", "min", "rms", "mean"), Statistic),
    "time_of_max": TimeOfMax,
    **dict.fromkeys(("settling_time", "rise_time", "overshoot"), Response),
    "count": Count,
    **dict.fromkeys(("rms_error", "rms_distance", "max_distance"), Comparison),
}


@dataclasses.dataclass(frozen=True)
class FigureOfMerit:
    """A figure of merit as it came out."""

    name: str
    value: float
    unit: str
    limits: str
    ok: bool
    window: str = ""
    """In words, which part of the run counts; nothing when that is all of it."""
    aside: str = ""
    """In words, why its limits are not judged; nothing when they are."""

    @property
    def verdict(self) -> str:
        """`ok`, `outside`, `unfinished`; why it is not judged; nothing without limits."""
        if not self.limits or self.aside:
            return self.aside
        return "ok" if self.ok else "outside" if self.reached else "unfinished"

    @property
    def reached(self) -> bool:
        """False when the run ended before there was such a figure; it is then NaN."""
        return not np.isnan(self.value)


def evaluate(merit: Any, trajectory: Trajectory, overridden: Sequence[str] = ()) -> FigureOfMerit:
    """The figure's value, and whether it keeps its limits. One that does not exist is NaN.

    `overridden` are the keys that have another value than in the file: limits may not be for them.
    """
    with np.errstate(all="ignore"):  # squares of large numbers are infinite, and shown as that
        figure = _evaluate(merit, trajectory)
    if figure.limits and any(_within(key, merit.limits_of) for key in overridden):
        words = f"not judged: its limits are of another {merit.limits_of}"
        return dataclasses.replace(figure, ok=True, aside=words)
    return figure


def _within(key: str, limits_of: str | None) -> bool:
    """Whether a change of `mouse.maze.seed` is one of `mouse.maze`, or the other way round."""
    if limits_of is None:
        return False
    return f"{key}.".startswith(f"{limits_of}.") or f"{limits_of}.".startswith(f"{key}.")


def _evaluate(merit: Any, trajectory: Trajectory) -> FigureOfMerit:
    time = trajectory.time
    values = pick(trajectory, merit.field)
    kept = time >= merit.after
    own = merit.own_unit(unit_of(trajectory, merit.field))
    unit = own if merit.unit is None else merit.unit
    if isinstance(merit, Comparison):
        earlier = _earlier(time, pick(trajectory, merit.reference), merit.lag)
        value = _compared(merit.kind, (values - earlier)[kept & (time - merit.lag >= time[0])])
    elif merit.kind in ("settling_time", "rise_time", "time_of_max"):
        value = _time(merit, time, values)
    elif merit.kind == "overshoot":
        value = _overshoot(merit, time, values)
    elif merit.kind == "count":
        away = values[kept] != 0
        value = float(np.count_nonzero(away & ~np.append(False, away[:-1])))
    else:
        value = _statistic(merit.kind, values[kept])
        value = float("nan") if value == merit.never else value
    value *= unit_factor(own, merit.unit)
    bounds = [("≥", merit.at_least), ("≤", merit.at_most)]
    limits = " and ".join(f"{sign} {bound:g} {unit}" for sign, bound in bounds if bound is not None)
    ok = (merit.at_least is None or value >= merit.at_least) and (
        merit.at_most is None or value <= merit.at_most
    )
    window = f" (from {merit.after:g} s on)" if merit.after else ""
    return FigureOfMerit(merit.name, float(value), unit, limits, bool(ok), window)


def pick(trajectory: Trajectory, name: str) -> np.ndarray:
    """A recorded field, or one component of it, over time."""
    node, field, index = split_field(name)
    values: Any = trajectory[node][field]
    return values if index is None else values[(slice(None), *index)]


def unit_of(trajectory: Trajectory, name: str) -> str:
    """The unit of a recorded field."""
    node, field, _ = split_field(name)
    if field not in trajectory[node]:
        pick(trajectory, name)  # says what was recorded
    return trajectory.units[node][field]


def _statistic(kind: str, values: np.ndarray) -> float:
    if not values.size:
        return float("nan")
    if kind == "rms":
        return _root_mean_square(values)
    if kind == "final":
        return float(values[-1])
    return float(getattr(values, kind)())


def _compared(kind: str, error: np.ndarray) -> float:
    if kind == "rms_error" or not error.size:
        return _root_mean_square(error)
    distances = np.linalg.norm(error.reshape(len(error), -1), axis=1)
    return _root_mean_square(distances) if kind == "rms_distance" else float(distances.max())


def _earlier(time: np.ndarray, values: np.ndarray, lag: float) -> np.ndarray:
    """values(t - lag), on straight lines between samples."""
    if not lag or not len(time):
        return values
    columns = values.reshape(len(values), -1).T
    return np.stack([np.interp(time - lag, time, y) for y in columns], 1).reshape(values.shape)


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
        if not np.any(y[kept]):
            return float("nan")  # it never was anything but zero
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
    """The time at which `way` first reaches the level, straight between samples."""
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
