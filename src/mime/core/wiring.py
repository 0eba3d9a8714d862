"""The wiring of a graph: which value reaches which input, in which order, at which rate."""

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, TypeVar

from mime._text import quoted
from mime.core.node import Node
from mime.core.problem import ParameterError, Problem

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Edge:
    """`source.source_field` -> `target.target_field`, of this step or (delay) the one before."""

    source: str
    target: str
    source_field: str
    target_field: str
    transform: Callable[[Any], Any] | None = None
    delay: bool = False

    def __str__(self) -> str:
        return f"{self.source}.{self.source_field} -> {self.target}.{self.target_field}"

    @property
    def without_transform(self) -> "Edge":
        """The same edge as plain data."""
        return dataclasses.replace(self, transform=None)

    def sort_key(self) -> tuple[Any, ...]:
        """An order that does not depend on the order of `add_edge`: float sums must not either."""
        text = re.sub(r" at 0x[0-9a-f]+", "", repr(self.transform))  # another one in each process
        name = getattr(self.transform, "__qualname__", text)
        return (self.target, self.target_field, self.source, self.source_field, self.delay, name)

    def value(self, flux: Any) -> Any:
        """The source's flux as the target receives it."""
        return flux if self.transform is None else self.transform(flux)


@dataclasses.dataclass(frozen=True)
class CouplingGroup:
    """Nodes whose same-step edges form a cycle, iterated in every step until they agree."""

    name: str
    members: tuple[str, ...]
    tolerance: float | None
    max_iterations: int
    acceleration: str
    """`none` or `aitken`."""
    method: str
    """`gauss_seidel` or `jacobi`."""


Stage = str | CouplingGroup


@dataclasses.dataclass(frozen=True)
class Derived:
    """A parameter that follows others: `node.parameter = function(*sources)`.

    A model that is one thing is varied as one thing: the rotor inertia of a joint follows the gear
    of the motor behind it. `function` takes the source nodes and must be pure.
    """

    node: str
    parameter: str
    function: Callable[..., Any]
    sources: tuple[str, ...]
    reads: tuple[str, ...]
    """Parameters (or effects) of the sources that the value depends on."""

    def follows(self, changed: Mapping[str, Iterable[str]]) -> bool:
        """True when one of these parameters, by node, moves this one."""
        return any(
            address == read or address.startswith(f"{read}.")
            for source in self.sources
            for address in changed.get(source, ())
            for read in self.reads
        )


@dataclasses.dataclass(frozen=True)
class Wiring:
    """A graph's structure: hashable, compared by value, fixed when a program compiles."""

    timestep: float
    edges: tuple[Edge, ...]
    external: tuple[tuple[str, str], ...]
    schedule: tuple[Stage, ...]
    periods: tuple[tuple[str, int], ...]
    derived: tuple[Derived, ...] = ()
    seen: tuple[tuple[str, str], ...] = ()
    """Those of `external` that a node's drawing follows: a wrench is seen as an arrow."""

    def refuse_derived(self, changed: Mapping[str, Mapping[str, Any]]) -> None:
        """A derived parameter is not set: what it follows is."""
        if problems := [
            Problem(
                (entry.parameter,),
                f"follows {', '.join(entry.reads)} of {quoted(entry.sources)}",
                "Vary those instead",
            )
            for entry in self.derived
            if entry.parameter in changed.get(entry.node, {})
        ]:
            raise ParameterError("parameters", problems)

    def derive(
        self, nodes: Mapping[str, Node], changed: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Node]:
        """The nodes, with the parameters that follow from `changed` ones computed again."""
        nodes = dict(nodes)
        for entry in self.derived:
            if entry.follows(changed):
                value = entry.function(*(nodes[source] for source in entry.sources))
                nodes[entry.node] = nodes[entry.node].with_params(**{entry.parameter: value})
        return nodes

    @property
    def order(self) -> tuple[str, ...]:
        """The nodes as a step visits them."""
        return tuple(
            name
            for stage in self.schedule
            for name in ((stage,) if isinstance(stage, str) else stage.members)
        )

    @property
    def groups(self) -> tuple[CouplingGroup, ...]:
        """The coupling groups in the order in which they run."""
        return tuple(stage for stage in self.schedule if isinstance(stage, CouplingGroup))

    def period(self, node: str) -> int:
        """Steps from one firing of the node to the next."""
        return self._period_of[node]

    @cached_property
    def _period_of(self) -> dict[str, int]:
        return dict(self.periods)

    @cached_property
    def _edges_by_target(self) -> dict[str, tuple[Edge, ...]]:
        return _grouped((edge.target, edge) for edge in self.edges)

    @cached_property
    def _held_by_source(self) -> dict[str, tuple[str, ...]]:
        """Fluxes of delayed and of coupled edges."""
        coupled = {edge for group in self.groups for edge in self.inner_edges(group)}
        kept = [edge for edge in self.edges if edge.delay or edge in coupled]
        return _grouped((edge.source, edge.source_field) for edge in kept)

    def firings(self) -> list[CouplingGroup | tuple[str, ...]]:
        """The schedule, with neighbours of one rate joined: what fires together."""
        found: list[CouplingGroup | tuple[str, ...]] = []
        for period, stages in itertools.groupby(self.schedule, self._rate):
            if period is None:
                found.extend(stage for stage in stages if isinstance(stage, CouplingGroup))
            else:
                found.append(tuple(stage for stage in stages if isinstance(stage, str)))
        return found

    def _rate(self, stage: Stage) -> int | None:
        """The period of a node; None for a group."""
        return self.period(stage) if isinstance(stage, str) else None

    def edges_into(self, node: str) -> tuple[Edge, ...]:
        """The edges that end at a node."""
        return self._edges_by_target.get(node, ())

    def inner_edges(self, group: CouplingGroup) -> tuple[Edge, ...]:
        """The same-step edges that a group iterates on."""
        return tuple(
            edge
            for edge in self.edges
            if not edge.delay and {edge.source, edge.target} <= set(group.members)
        )

    def held_fields(self, node: Node) -> tuple[str, ...]:
        """Fluxes that outlive a step: of a slow node, of a delayed edge, of a coupled edge."""
        if self.period(node.name) > 1:
            return tuple(sorted(node.boundary_flux_spec()))
        return tuple(sorted(set(self._held_by_source.get(node.name, ()))))


def _grouped(pairs: Iterable[tuple[str, T]]) -> dict[str, tuple[T, ...]]:
    found: dict[str, list[T]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: tuple(values) for name, values in found.items()}
