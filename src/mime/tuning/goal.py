"""What gains are chosen for: figures of a run as differentiable functions of its samples.

    minimise  sum of weight · figure,  mean over the plants      with at_least <= figure <= at_most

The figures are those of scenario files, with slopes (`optimise/figures.py`), and
`largest`, max |y|.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from pydantic import ValidationError

from mime._text import nearest, quoted
from mime.core.arguments import real, text
from mime.core.problem import InputError
from mime.core.program import Program
from mime.core.recorder import field_specs
from mime.optimise.figures import figure, largest, picked
from mime.scenarios.fields import picked_shape, split_field, unit_factor
from mime.scenarios.merits import MERITS, Merit

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
                f"no kind {self.kind!r}{nearest(str(self.kind), KINDS)} ({quoted(KINDS)})",
                place=("goals", "kind"),
                label="goals:",
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

    def __init__(
        self,
        program: Program,
        goals: Sequence[Goal],
        time_s: np.ndarray,
        limits: Mapping[str, float] = {},
    ):
        """`limits` are largest magnitudes, by field."""
        most = [Goal(LARGEST, field, at_most=largest) for field, largest in limits.items()]
        self.goals, self.time_s = (*goals, *most), time_s
        places: list[Any] = [("goals", k) for k in range(len(goals))]
        places += [("limits", field) for field in limits]
        checked = []
        for place, goal in zip(places, self.goals, strict=True):
            try:
                checked.append(self._check(program, goal))
            except InputError as error:
                key = error.problems[0].place[1:] if place[0] == "goals" else ()
                raise InputError(error.problems[0].message, place=(*place, *key)) from None
        self.units = [unit for unit, _ in checked]
        self._factors = [factor for _, factor in checked]
        fields = [f for g in self.goals for f in (g.field, g.reference) if f is not None]
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
        if goal.kind != LARGEST:
            return figure(goal.merit, self.time_s, recorded)
        first = int(np.searchsorted(self.time_s, goal.merit.after))
        y = picked(goal.field, recorded)[first:]
        seen = [y] if start is None else [picked(goal.field, start), y]
        return largest(jnp.abs(jnp.concatenate(seen)))


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
