"""Goals that no state could be: what a controller is sent to, told by the node that it controls.

A controller says by `goal_inputs()` which input says where another one should go: the desired joint
angles, say, where the measured ones should. The node that those come from knows what they can be.
Where a node is its own controller the second one is a field of its state.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mime.core.node import Node
from mime.core.problem import Problem
from mime.core.wiring import Edge


def goal_problems(
    nodes: Mapping[str, Node], edges: Iterable[Edge], target: str, field: str, values: Any
) -> Iterator[Problem]:
    """What is wrong with values (any axes in front) that an input will be given, as a goal."""
    measured = nodes[target].goal_inputs().get(field)
    if measured in nodes[target].state_spec():
        yield from nodes[target].state_problems({measured: values})
    for edge in edges if measured else ():
        if (edge.target, edge.target_field) == (target, measured) and edge.transform is None:
            plant = nodes[edge.source]
            if edge.source_field in plant.state_spec():
                yield from plant.state_problems({edge.source_field: values})


def foreseen_problems(nodes: Mapping[str, Node], edges: Iterable[Edge]) -> Iterator[Problem]:
    """What is wrong with goals that nodes of the graph will give, as their parameters tell."""
    edges = tuple(edges)
    for edge in edges:
        parameter = nodes[edge.source].foreseen_fluxes().get(edge.source_field)
        if parameter is None or edge.transform is not None:
            continue
        values = getattr(nodes[edge.source], parameter)
        for found in goal_problems(nodes, edges, edge.target, edge.target_field, values):
            place, label = ("node", edge.source, parameter), f"{edge.source}.{parameter}"
            yield Problem(place, found.message, found.hint, label)
