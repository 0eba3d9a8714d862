"""The node types that a scenario can name: MIME's own, and those of packages that plug in.

A package plugs its nodes in by entry point: `[project.entry-points."mime.nodes"]` with
`SpringNode = "my_package.spring:SpringNode"`.
"""

import dataclasses
import importlib
import inspect
import pkgutil
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from mime._text import nearest, quoted
from mime.core.node import Node
from mime.core.parameters import Parameterised
from mime.core.spec import ParameterSpec

GROUP = "mime.nodes"
_PACKAGES = ("mime.nodes", "mime.mouse")
"""Where MIME's own nodes live; a test finds one that lives elsewhere."""


@cache
def own_types() -> dict[str, type[Node]]:
    """MIME's nodes by class name."""
    found: dict[str, type[Node]] = {}
    for package in map(importlib.import_module, _PACKAGES):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            found |= {
                name: value
                for name, value in vars(importlib.import_module(module.name)).items()
                if _is_node_type(value) and value.__module__.startswith(package.__name__)
            }
    return dict(sorted(found.items()))


def plugged_types() -> dict[str, EntryPoint]:
    """Entry points of other packages' nodes, still to be loaded. MIME's own names win."""
    return {
        entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in own_types()
    }


def find_type(name: str) -> type[Node]:
    """The node type of that name; a `ValueError` names the nearest, or what a plug-in lacks."""
    if name in own_types():
        return own_types()[name]
    plugged = plugged_types()
    if name not in plugged:
        known = sorted([*own_types(), *plugged])
        raise ValueError(
            f"no node type {name!r}{nearest(name, known)}, expected one of {quoted(known)}"
        )
    entry = plugged[name]
    try:
        found = entry.load()
    except Exception as error:  # whatever another package raises is the finding
        raise ValueError(
            f"node type {name!r} of {entry.value!r} does not load: {type(error).__name__}: {error}"
        ) from error
    if not _is_node_type(found):
        raise ValueError(f"entry point {name!r}: {entry.value!r} is not a subclass of mime.Node")
    return found


def _is_node_type(value: Any) -> bool:
    return (
        isinstance(value, type)
        and issubclass(value, Node)
        and not inspect.isabstract(value)
        and not value.__name__.startswith("_")
    )


@dataclasses.dataclass(frozen=True)
class Argument:
    """What a node's constructor takes under one name."""

    name: str
    required: bool
    default: Any
    annotation: Any
    spec: ParameterSpec | None
    """Unit and range, where it is a physical parameter."""

    @property
    def is_file(self) -> bool:
        """True for a path of a file, such as a URDF."""
        return "PathLike" in str(self.annotation)


def arguments_of(cls: type[Parameterised]) -> dict[str, Argument]:
    """The arguments of the constructor of a node or effect but `name` and `timestep`, in order."""
    specs = cls.parameter_specs()
    found: dict[str, Argument] = {}
    for parameter in _signature(cls):
        if parameter.name not in ("self", "name", "timestep"):
            required = parameter.default is inspect.Parameter.empty
            found[parameter.name] = Argument(
                parameter.name,
                required,
                None if required else parameter.default,
                parameter.annotation,
                specs.get(parameter.name),
            )
    return found


def _signature(cls: type) -> list[inspect.Parameter]:
    """The constructor's parameters; where it passes on `**kwargs`, those of its parent's too."""
    found: dict[str, inspect.Parameter] = {}
    for owner in cls.__mro__:
        if "__init__" not in owner.__dict__:
            continue
        parameters = inspect.signature(owner.__dict__["__init__"]).parameters.values()
        variable = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        for parameter in parameters:
            if parameter.kind not in variable:
                found.setdefault(parameter.name, parameter)
        if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
            break
    return list(found.values())
