"""`[[figures_of_merit]]`: one number from a run, with its unit and the limits it must keep."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from mime.running.trajectory import Trajectory
from mime.scenarios import reductions
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


class Quantile(Merit):
    """The value that a share `q` of all samples do not exceed; of a vector: over all of it."""

    kind: Literal["quantile"]
    q: Annotated[float, Field(ge=0, le=1)]

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
    "quantile": Quantile,
}


@dataclasses.dataclass(frozen=True)
class FigureOfMerit:
    """A figure of merit as it came out."""

    name: str
    value: Any
    """A number; of a batch, an array over members."""
    unit: str
    limits: str
    ok: Any
    """Whether it keeps its limits; of a batch, an array over members."""
    window: str = ""
    """In words, which part of the run counts; nothing when that is all of it."""
    aside: str = ""
    """In words, why its limits are not judged; nothing when they are."""

    @property
    def verdict(self) -> str:
        """`ok`, `outside`, `unfinished` (of a batch, of how many); why it is not judged; nothing
        without limits.
        """
        if not self.limits or self.aside:
            return self.aside
        if np.ndim(self.ok):
            return f"{np.count_nonzero(self.ok)} of {len(self.ok)} ok"
        return "ok" if self.ok else "outside" if self.reached else "unfinished"

    @property
    def reached(self) -> Any:
        """False when the run ended before there was such a figure; it is then NaN."""
        return ~np.isnan(self.value)


def evaluate(merit: Any, trajectory: Trajectory, overridden: Sequence[str] = ()) -> FigureOfMerit:
    """The figure's value, and whether it keeps its limits. One that does not exist is NaN, and so
    is that of a member that left the finite numbers.

    `overridden` are the keys that have another value than in the file: limits may not be for them.
    """
    figure = _evaluate(merit, trajectory)
    if figure.limits and any(_within(key, merit.limits_of) for key in overridden):
        words = f"not judged: its limits are of another {merit.limits_of}"
        return dataclasses.replace(figure, ok=figure.ok | True, aside=words)
    return figure


def _within(key: str, limits_of: str | None) -> bool:
    """Whether a change of `mouse.maze.seed` is one of `mouse.maze`, or the other way round."""
    if limits_of is None:
        return False
    return f"{key}.".startswith(f"{limits_of}.") or f"{limits_of}.".startswith(f"{key}.")


def _evaluate(merit: Any, trajectory: Trajectory) -> FigureOfMerit:
    field_unit = unit_of(trajectory, merit.field)
    unit = merit.own_unit(field_unit) if merit.unit is None else merit.unit
    value = of_members(merit, trajectory.time, _by_member(merit, trajectory), field_unit)
    value[list(trajectory.diverged)] = np.nan
    bounds = [("≥", merit.at_least), ("≤", merit.at_most)]
    limits = " and ".join(f"{sign} {bound:g} {unit}" for sign, bound in bounds if bound is not None)
    ok = np.ones(len(value), bool)
    if merit.at_least is not None:
        ok &= value >= merit.at_least
    if merit.at_most is not None:
        ok &= value <= merit.at_most
    window = f" (from {merit.after:g} s on)" if merit.after else ""
    if trajectory.batch_size is None:
        return FigureOfMerit(merit.name, float(value[0]), unit, limits, bool(ok[0]), window)
    return FigureOfMerit(merit.name, value, unit, limits, ok, window)


Fields = Mapping[str, Mapping[str, np.ndarray]]
"""`{node: {field: (member, time, ...)}}`"""


def of_members(merit: Any, time: np.ndarray, fields: Fields, field_unit: str) -> np.ndarray:
    """(member,): the figure of each member in its unit, in double precision.

    time          (time,) seconds
    field_unit    of the figure's field
    """
    factor = unit_factor(merit.own_unit(field_unit), merit.unit)
    with np.errstate(all="ignore"):  # squares of large numbers are infinite, and shown as that
        value = _per_member(merit, time, fields).astype(float)
        value *= factor
    return value


def _per_member(merit: Any, time: np.ndarray, fields: Fields) -> np.ndarray:
    """The figure of each member in the field's unit."""
    values = _picked(fields, merit.field)
    first = int(np.searchsorted(time, merit.after, side="left"))
    if isinstance(merit, Comparison):
        reference = _picked(fields, merit.reference)
        error = values - reductions.delayed(time, reference, merit.lag)
        both = (time >= merit.after) & (time - merit.lag >= time[:1])
        return _compared(merit.kind, error[:, both])
    if isinstance(merit, Response):
        return _response(merit, time, values)
    if isinstance(merit, TimeOfMax):
        return reductions.time_of_max(time[first:] - merit.after, values[:, first:])
    if isinstance(merit, Count):
        return reductions.count(values[:, first:])
    if isinstance(merit, Quantile):
        return reductions.quantile(values[:, first:], merit.q)
    value = reductions.statistic(merit.kind, values[:, first:])
    return np.where(value == merit.never, np.nan, value)


def _by_member(merit: Any, trajectory: Trajectory) -> Fields:
    """The fields that a figure needs, member axis first: a single run is a batch of one."""
    names = [merit.field, *([merit.reference] if isinstance(merit, Comparison) else [])]
    found: dict[str, dict[str, np.ndarray]] = {}
    for node, field, _ in map(split_field, names):
        values = trajectory[node][field]
        own = values[None] if trajectory.batch_size is None else values
        found.setdefault(node, {})[field] = own
    return found


def _picked(fields: Fields, name: str) -> np.ndarray:
    """A field, or a part of it, as (member, time, ...)."""
    node, field, index = split_field(name)
    values = fields[node][field]
    return values if index is None else values[(slice(None), slice(None), *index)]


def unit_of(trajectory: Trajectory, name: str) -> str:
    """The unit of a recorded field."""
    node, field, _ = split_field(name)
    if field not in trajectory[node]:
        trajectory[node][field]  # says what was recorded
    return trajectory.units[node][field]


def _compared(kind: str, error: np.ndarray) -> np.ndarray:
    if kind == "rms_error" or not error.shape[1]:
        return reductions.root_mean_square(error)
    distances = reductions.distances(error)
    if kind == "rms_distance":
        return reductions.root_mean_square(distances)
    return distances.max(axis=1)


def _response(merit: Response, time: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A figure of the response from `after` on, y0 where it starts and y1 where it goes."""
    if not len(time) or merit.after > time[-1]:
        return np.full(len(y), np.nan)
    first = max(int(np.searchsorted(time, merit.after, side="right")) - 1, 0)
    t, values = time[first:] - merit.after, y[:, first:]
    y0 = values[:, :1].astype(float)
    y1 = values[:, -1:].astype(float) if merit.target is None else np.full_like(y0, merit.target)
    span = np.where(y1 == y0, np.nan, y1 - y0)
    if merit.kind == "settling_time":
        return reductions.settling_time(t, values, y1, merit.band * np.abs(span))
    way = values - (y1 if merit.kind == "overshoot" else y0)
    way /= span
    if merit.kind == "overshoot":
        return 100.0 * np.maximum(0.0, np.max(way, axis=1))
    return reductions.rise_time(t, way)
