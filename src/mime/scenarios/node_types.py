"""The node types that a scenario can name: MIME's own, and those of packages that plug in.

A package plugs its nodes in by entry point: `[project.entry-points."mime.nodes"]` with
`SpringNode = "my_package.spring:SpringNode"`. A file beside the scenario is named as it is,
`type = "spring.py:SpringNode"`, and runs only where the user allows code.
"""

import dataclasses
import importlib
import importlib.util
import inspect
import pkgutil
import sys
import zlib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from mime._files import is_file
from mime._text import brief, nearest, quoted, shortened
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


def find_type(name: str, plugged: Mapping[str, EntryPoint] | None = None) -> type[Node]:
    """The node type of that name; a `ValueError` names the nearest, or what a plug-in lacks.

    `plugged`: what `plugged_types` has found, for who asks often.
    """
    if name in own_types():
        return own_types()[name]
    plugged = plugged_types() if plugged is None else plugged
    if name not in plugged:
        known = sorted([*own_types(), *plugged])
        raise ValueError(
            f"no node type {brief(name, 60)}{nearest(name, known)}, expected one of "
            f'{quoted(known)}; for a node of your own write type = "FILE.py:CLASS"'
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


def names_code(name: str) -> bool:
    """True for a type in a file of Python: `propeller.py:PropellerNode`."""
    return ".py:" in name


def type_in_file(name: str, folder: Path) -> type[Node]:
    """The node type that `FILE.py:CLASS` names. The file is executed: ask for leave before."""
    file_name, _, class_name = name.rpartition(":")
    file = (folder / file_name).resolve()
    if not is_file(file):
        raise ValueError(no_such_file(file_name, folder))
    module = _module(file)
    found: Any = getattr(module, class_name, None)
    if not _is_node_type(found):
        known = [key for key, value in vars(module).items() if _is_node_type(value)]
        raise ValueError(
            f"{file_name} has no node type {brief(class_name, 60)}{nearest(class_name, known)} "
            f"(node types there: {quoted(known)})"
        )
    return cast("type[Node]", found)


def _module(file: Path) -> ModuleType:
    """The module of a file, executed once for as long as the file is the same."""
    source = file.read_bytes()
    # A name of its own: no file of a scenario hides a module that others import.
    name = f"mime_file_{file.stem}_{zlib.crc32(bytes(file)):08x}"
    module = sys.modules.get(name)
    if module is not None and getattr(module, "__source__", None) == source:
        return module
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None, "the file ends in .py"
    assert spec.loader is not None, "the file ends in .py"
    module = importlib.util.module_from_spec(spec)
    setattr(module, "__source__", source)  # noqa: B010  of our own, unknown to mypy
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the file raises is the finding
        del sys.modules[name]
        words = f"{file} does not load: {type(error).__name__}: {error}"
        raise ValueError(shortened(words, 500)) from error
    return module


def no_such_file(name: str, folder: Path) -> str:
    """What to say of a file that a scenario or the command line names and that is not there."""
    rule = "names in a scenario are relative to its file, those of --set to where you stand"
    return f"no such file: {shortened(name, 200)} in {folder.resolve()} ({rule})"


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
