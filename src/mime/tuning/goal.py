"""What gains are chosen for: figures of a run as differentiable functions of its samples.

    minimise  sum of weight · figure,  mean over the plants      with at_least <= figure <= at_most

The figures are those of scenario files (`scenarios/merits.py`), and `largest`, max |y|. A time is
found on straight lines between samples, so that it has a slope; a run that never settles counts as
longer than it is, by how far from the band it ends.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from pydantic import ValidationError

from mime._text import nearest, quoted
from mime.core.arguments import real, text
from mime.core.problem import InputError
from mime.core.program import Program
from mime.core.recorder import field_specs
from mime.scenarios.fields import picked_shape, split_field, unit_factor
from mime.scenarios.merits import MERITS, Comparison, Merit

LARGEST = "largest"
KINDS = (LARGEST, *(kind for kind in MERITS if kind not in ("count", "time_of_max")))
"""Those with a slope."""
_MERIT_KEYS = ("reference", "after", "target", "band", "lag", "unit")


@dataclasses.dataclass(frozen=True)
class Goal:
    """A figure of a run: to be small, by its weight, or to keep limits, or both."""

    kind: str
    """`rms_error`, `overshoot`, `settling_time`, `largest` (max |y|), ...: as in scenario files."""
    field: str
    reference: str | None = None
    """The field to compare with, for `rms_error`, `rms_distance` and `max_distance`."""
    weight: float | None = None
    """What a unit of the figure costs; by default 1, and 0 for a figure with limits."""
    at_least: float | None = None
    at_most: float | None = None
    after: float | None = None
    """Seconds; samples before it do not count."""
    target: float | None = None
    band: float | None = None
    lag: float | None = None
    unit: str | None = None
    """Unit of the figure and its limits, where it is not the field's."""
    name: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(
                f"goals: no kind {self.kind!r}{nearest(str(self.kind), KINDS)} ({quoted(KINDS)})",
                place=("goals", "kind"),
            )
        text("field", self.field)
        for key in ("weight", "at_least", "at_most"):
            if (value := getattr(self, key)) is not None:
                object.__setattr__(self, key, real(key, value))
        if self.weight is None:
            object.__setattr__(self, "weight", 0.0 if self.is_limited else 1.0)
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise InputError(
                f"{self.label}: at_least {self.at_least:g} is above at_most {self.at_most:g}",
                place=("goals", "at_least"),
            )
        object.__setattr__(self, "merit", self._merit())

    merit: Merit = dataclasses.field(init=False, repr=False, compare=False, default=None)  # type: ignore[assignment]
    """The same as a scenario file has it."""

    @property
    def is_limited(self) -> bool:
        """True when the figure has limits."""
        return self.at_least is not None or self.at_most is not None

    @property
    def label(self) -> str:
        """Its name, else what it is."""
        return self.name or f"{self.kind.replace('_', ' ')} of {self.field}"

    @staticmethod
    def of(merit: Merit, weight: float | None = None) -> "Goal":
        """A scenario's figure of merit as a goal; its limits hold unless it has a weight."""
        given = {k: v for k, v in merit.model_dump().items() if v is not None}
        given.pop("limits_of", None), given.pop("never", None)
        if weight is not None:
            given.pop("at_least", None), given.pop("at_most", None)
        return Goal(**given, weight=weight)

    def _merit(self) -> Merit:
        given: dict[str, Any] = {"name": self.label, "kind": self.kind, "field": self.field}
        given |= {key: v for key in _MERIT_KEYS if (v := getattr(self, key)) is not None}
        model = Merit if self.kind == LARGEST else MERITS[self.kind]
        try:
            return model.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = str(first["loc"][-1]) if first["loc"] else self.kind
            words = f"does not go with {self.kind!r}"
            words = words if first["type"] == "extra_forbidden" else first["msg"].lower()
            raise InputError(f"{self.label}: {key}: {words}", place=("goals", key)) from None


class Figures:
    """Goals in a graph: what to record for them, and their values from what was recorded."""

    def __init__(self, program: Program, goals: Sequence[Goal], time_s: np.ndarray):
        self.goals, self.time_s = tuple(goals), time_s
        checked = [self._check(program, goal) for goal in goals]
        self.units = [unit for unit, _ in checked]
        self._factors = [factor for _, factor in checked]
        fields = [f for g in goals for f in (g.field, g.reference) if f is not None]
        self.record = list(dict.fromkeys(f.partition("[")[0] for f in fields))

    def _check(self, program: Program, goal: Goal) -> tuple[str, float]:
        """The unit of a goal, whose fields are there, and the factor to it from the field's own."""
        unit, shape = _field(program, goal, goal.field, "field")
        if goal.reference is not None:
            _, other = _field(program, goal, goal.reference, "reference")
            if shape != other:
                words = f"{goal.field} has shape {shape}, and {goal.reference} has {other}"
                raise InputError(f"{goal.label}: {words}", place=("goals", "reference"))
        if goal.merit.needs_one_component and goal.kind != LARGEST and shape:
            words = f"{goal.field} has shape {shape}; name one component, as {goal.field}[0]"
            raise InputError(f"{goal.label}: {words}", place=("goals", "field"))
        if goal.merit.after >= self.time_s[-1]:
            words = f"after {goal.merit.after:g} s there is no sample: the run ends at "
            words += f"{self.time_s[-1]:g} s"
            raise InputError(f"{goal.label}: {words}", place=("goals", "after"))
        own = goal.merit.own_unit(unit)
        try:
            return own if goal.unit is None else goal.unit, unit_factor(own, goal.unit)
        except ValueError as error:
            raise InputError(f"{goal.label}: {error}", place=("goals", "unit")) from None

    def values(self, recorded: Any, start: Any = None) -> Any:
        """The figures (goals,), each in its unit; `start`: the same fields before the first step.

        What must not be exceeded is looked at there too, other figures are those of the samples.
        """
        pairs = zip(self.goals, self._factors, strict=True)
        return jnp.stack([factor * self._value(goal, recorded, start) for goal, factor in pairs])

    def cost(self, values: Any) -> Any:
        """The weighted sum."""
        return values @ np.array([goal.weight for goal in self.goals])

    def excess(self, values: Any) -> Any:
        """By which part figures are beyond their limits (limits,)."""
        found = []
        for goal, value in zip(self.goals, values, strict=True):
            for bound, sign in ((goal.at_most, 1.0), (goal.at_least, -1.0)):
                if bound is not None:
                    found.append(sign * (value - bound) / (abs(bound) or 1.0))
        return jnp.stack(found) if found else jnp.zeros(0)

    @property
    def limited(self) -> list[int]:
        """Which goal each entry of `excess` is of."""
        return [
            place
            for place, goal in enumerate(self.goals)
            for bound in (goal.at_most, goal.at_least)
            if bound is not None
        ]

    def _value(self, goal: Goal, recorded: Any, start: Any) -> Any:
        merit, y, t = goal.merit, _picked(goal.field, recorded), self.time_s
        first = int(np.searchsorted(t, merit.after))
        if isinstance(merit, Comparison):
            earlier = _earlier(t, _picked(merit.reference, recorded), merit.lag)
            counts = (t >= merit.after) & (t - merit.lag >= t[0])
            value = _compared(goal.kind, (y - earlier)[np.flatnonzero(counts)])
        elif goal.kind in ("settling_time", "rise_time", "overshoot"):
            value = _response(merit, t, y)
        elif goal.kind == LARGEST:
            seen = [y[first:]] if start is None else [_picked(goal.field, start), y[first:]]
            value = _largest(jnp.abs(jnp.concatenate(seen)))
        elif goal.kind == "rms":
            value = _root(jnp.mean(y[first:] ** 2))
        elif goal.kind == "final":
            value = y[-1]
        else:
            kept = y[first:]
            sign = -1.0 if goal.kind == "min" else 1.0
            value = jnp.mean(kept) if goal.kind == "mean" else sign * _largest(sign * kept)
        return value


def _field(program: Program, goal: Goal, name: str, key: str) -> tuple[str, tuple[int, ...]]:
    """Unit and shape of a field of a goal."""
    at = ("goals", key)
    try:
        node, field, index = split_field(name)
    except ValueError as error:
        raise InputError(f"{goal.label}: {error}", place=at) from None
    if node not in program.nodes:
        words = f"no node {node!r}{nearest(node, program.nodes)} ({quoted(program.nodes)})"
        raise InputError(f"{goal.label}: {words}", place=at)
    specs: dict[str, Any] = field_specs(program.nodes[node])
    if field not in specs:
        words = f"{node!r} has no field {field!r}{nearest(field, specs)} ({quoted(specs)})"
        raise InputError(f"{goal.label}: {words}", place=at)
    shape = specs[field].shape
    if index is not None and (picked := picked_shape(shape, index)) is None:
        raise InputError(f"{goal.label}: {node}.{field} has shape {shape}, not so", place=at)
    return specs[field].unit, shape if index is None else picked or ()


def _picked(name: str, recorded: Any) -> Any:
    node, field, index = split_field(name)
    values = recorded[node][field]
    return values if index is None else values[(slice(None), *index)]


def _largest(x: Any) -> Any:
    """max x. The slope of `jnp.max` looks for entries equal to the largest; where a compiler rounds
    the two differently there are none, and the slope is 0 / 0.
    """
    flat = x.ravel()
    return flat[jnp.argmax(flat)]


def _root(x: Any) -> Any:
    """sqrt, with a slope of 0 at 0."""
    return jnp.where(x == 0, 0.0, jnp.sqrt(jnp.where(x == 0, 1.0, x)))


def _earlier(t: np.ndarray, y: Any, lag: float) -> Any:
    """y(t - lag), on straight lines between samples."""
    if not lag:
        return y
    flat = y.reshape(len(t), -1)
    moved = [jnp.interp(t - lag, t, flat[:, j]) for j in range(flat.shape[1])]
    return jnp.stack(moved, axis=1).reshape(y.shape)


def _compared(kind: str, error: Any) -> Any:
    if kind == "rms_error":
        return _root(jnp.mean(error**2))
    squares = jnp.sum(error.reshape(len(error), -1) ** 2, axis=1)
    return _root(jnp.mean(squares)) if kind == "rms_distance" else _root(_largest(squares))


def _response(merit: Any, time: np.ndarray, y: Any) -> Any:
    """Settling time, rise time and overshoot of the way from y0 to y1."""
    first = max(int(np.searchsorted(time, merit.after, side="right")) - 1, 0)
    t, values = time[first:] - merit.after, y[first:]
    y0, y1 = values[0], values[-1] if merit.target is None else merit.target
    way = (values - y0) / (y1 - y0)
    if merit.kind == "overshoot":
        return 100.0 * jnp.maximum(0.0, _largest(way - 1.0))
    if merit.kind == "rise_time":
        return _crossing(t, way, 0.9) - _crossing(t, way, 0.1)
    off = jnp.abs(way - 1.0)
    last = jnp.max(jnp.where(~(off <= merit.band), jnp.arange(len(t)), -1))
    k = jnp.clip(last, 0, len(t) - 2)
    settles = _between(t, off, k, merit.band)
    never = t[-1] * off[-1] / merit.band
    inside = jnp.where(last < 0, jnp.maximum(t[0], 0.0), settles)
    return jnp.where(last == len(t) - 1, never, inside)


def _crossing(t: np.ndarray, way: Any, level: float) -> Any:
    """When `way` first reaches the level; beyond the end where it does not."""
    k = jnp.clip(jnp.argmax(way >= level), 1, len(t) - 1) - 1
    never = t[-1] * (2.0 - way[-1] / level)
    return jnp.where(jnp.max(way) >= level, _between(t, way, k, level), never)


def _between(t: np.ndarray, y: Any, k: Any, level: float) -> Any:
    """The time between samples k and k + 1 at which y passes the level."""
    times = jnp.asarray(t)
    rise = y[k + 1] - y[k]
    part = (level - y[k]) / jnp.where(rise == 0, 1.0, rise)
    return times[k] + jnp.clip(part, 0.0, 1.0) * (times[k + 1] - times[k])
