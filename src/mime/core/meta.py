"""A node's metadata: the one source of its equations, assumptions, limits and validated ranges."""

import dataclasses
import importlib
from typing import Any, Literal


@dataclasses.dataclass(frozen=True)
class ValidatedRange:
    """A range over which a quantity (parameter, input or state) was checked."""

    quantity: str
    low: float | int
    high: float | int
    unit: str
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Mapped:
    """An equation's term and the function (dotted path) that computes it."""

    term: str
    function: str
    note: str = ""


@dataclasses.dataclass(frozen=True)
class NodeMeta:
    """What an element computes, how, under which assumptions, and where that was checked."""

    id: str
    version: str
    stability: Literal["experimental", "stable", "deprecated"]
    summary: str
    equations: tuple[str, ...]
    discretisation: tuple[str, ...]
    assumptions: tuple[str, ...]
    limitations: tuple[str, ...]
    validated_ranges: tuple[ValidatedRange, ...]
    references: tuple[str, ...]
    implementation: tuple[Mapped, ...]

    def problems(self) -> list[str]:
        """Fields left empty."""
        return [
            f"meta.{field.name} is empty"
            for field in dataclasses.fields(self)
            if getattr(self, field.name) in ("", (), None)
        ]


def missing_functions(meta: NodeMeta) -> list[str]:
    """Functions named in `meta.implementation` that do not exist."""
    return [
        f"{entry.term!r} is mapped to {entry.function}, which does not exist"
        for entry in meta.implementation
        if not _exists(entry.function)
    ]


def _exists(dotted: str) -> bool:
    parts = dotted.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            target: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            target = getattr(target, part, None)
        return callable(target)
    return False
