"""What `print` shows of a node, a graph or a result: a screen of it, with units."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mime._text import shortened
from mime.core.parameters import Effect, Parameterised

MOST_LINES = 30
"""Of a list: what fits on a screen."""
_WIDEST = 100
_MOST_ENTRIES = 12


def number(value: Any, digits: int = 5) -> str:
    """`83.333`, `1.2e-05`, `true`; a long array is cut short."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, str):
        return value
    try:
        array = np.asarray(value)
    except Exception:  # it is traced: there is no number yet
        return f"traced {getattr(value, 'aval', '')}".strip()
    if array.ndim == 0:
        return f"{array.item() + 0.0:.{digits}g}"  # no minus zero
    if array.size > _MOST_ENTRIES:
        return f"array of {' x '.join(map(str, array.shape))}"
    return f"[{', '.join(number(entry, digits) for entry in array)}]"


def cut(
    lines: Sequence[str], most: int = MOST_LINES, more: str = "", widest: int = _WIDEST
) -> list[str]:
    """The first of many lines, each no wider than a screen; `more` says where the others are."""
    shown = [shortened(line, widest) for line in lines[:most]]
    left = len(lines) - len(shown)
    return [*shown, f"  ... and {left} more{more}"] if left else shown


def node_text(node: Any) -> str:
    """A node's class, name and timestep; its parameters with units."""
    lines = cut(list(_parameter_lines(node)), more=": .params")
    return "\n".join([f"{node.label}, every {number(node.timestep)} s", *lines])


def graph_text(kind: str, nodes: Iterable[Any], counts: Iterable[str]) -> str:
    """How many of what, and the nodes in order."""
    found = list(nodes)
    words = ", ".join([_count(len(found), "node"), *counts])
    lines = [f"  {node.name}: {type(node).__name__}, every {node.timestep:g} s" for node in found]
    return "\n".join([f"{kind}: {words}", *cut(lines, more=": .nodes")])


def counted(**counts: Sequence[Any]) -> list[str]:
    """`counted(edge=edges, external_input=inputs)` -> ["3 edges", "1 external input"]."""
    return [_count(len(of), name.replace("_", " ")) for name, of in counts.items() if of]


def _count(count: int, name: str) -> str:
    return f"{count} {name}{'' if count == 1 else 's'}"


def _parameter_lines(owner: Parameterised, indent: str = "  ") -> Iterator[str]:
    specs = owner.parameter_specs()
    for name, value in owner.params.items():
        if dataclasses.is_dataclass(value):  # it has parts: the line that its own text begins with
            yield f"{indent}{name}: {repr(value).partition(chr(10))[0]}"
        elif value is not None:
            unit = specs[name].unit if name in specs else ""
            yield f"{indent}{name} = {number(value)} {unit}".rstrip()
    for name in owner.effect_types():
        effect = getattr(owner, name)
        if isinstance(effect, Effect):
            yield f"{indent}{name}: {type(effect).__name__}"
            yield from _parameter_lines(effect, indent + "  ")
