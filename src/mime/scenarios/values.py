"""From a value in a scenario file to an argument of a node: files, models, types and ranges.

"model:desktop_arm_6axis"   a URDF that comes with MIME
"node:arm"                  what the node `arm` holds under the same name (its `tree`)
"arm.urdf"                  a file, relative to the scenario's
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mime._text import nearest, quoted
from mime.core.node import Node
from mime.core.spec import ParameterSpec
from mime.models import model_path
from mime.scenarios.checking import shown
from mime.scenarios.node_types import Argument

_MODEL, _NODE = "model:", "node:"


def referred_node(value: Any) -> str | None:
    """The node that a value refers to, if it does."""
    return value.removeprefix(_NODE) if isinstance(value, str) and _refers(value) else None


def _refers(value: str) -> bool:
    return value.startswith(_NODE)


def resolve(argument: Argument, value: Any, folder: Path, built: Mapping[str, Node]) -> Any:
    """The argument that a value stands for; a `ValueError` says why it is none."""
    if isinstance(value, str) and _refers(value):
        return _of_node(argument.name, value.removeprefix(_NODE), built)
    if argument.is_file:
        return _file(value, folder)
    if argument.spec is not None:
        if problems := list(_range_problems(argument.spec, value)):
            raise ValueError(problems[0])
    elif not argument.required:
        _check_option(argument.default, value)
    elif "str" in str(argument.annotation) and not isinstance(value, str):
        raise ValueError(f"must be a string, got {shown(value)}")
    return _frozen(value)


def _of_node(name: str, node: str, built: Mapping[str, Node]) -> Any:
    if node not in built:
        raise ValueError(f"no node {node!r}{nearest(node, built)} (nodes: {quoted(built)})")
    if not hasattr(built[node], name):
        raise ValueError(f"node {node!r} ({type(built[node]).__name__}) has no {name!r}")
    return getattr(built[node], name)


def _file(value: Any, folder: Path) -> Path:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError(f"must be a file's name or 'model:NAME', got {shown(value)}")
    if value.startswith(_MODEL):
        name = value.removeprefix(_MODEL)
        known = sorted(file.stem for file in model_path("planar_arm_3link").parent.glob("*.urdf"))
        if name not in known:
            raise ValueError(f"no model {name!r}{nearest(name, known)} (models: {quoted(known)})")
        return model_path(name)
    file = folder / value
    if not is_file(file):
        raise ValueError(
            f"no such file: {file} (names are relative to the scenario; 'model:NAME' for bundled)"
        )
    return file


def is_file(file: Path) -> bool:
    """True for a plain file; a name that no file can have is none."""
    try:
        return file.is_file()
    except (OSError, ValueError):  # too long, or with a null character
        return False


def _range_problems(spec: ParameterSpec, value: Any) -> Iterator[str]:
    """What the spec alone can tell; infinity and shapes that depend on others are the node's."""
    try:
        numbers = np.array(list(_leaves(value)), dtype=float)
    except (TypeError, OverflowError):
        yield f"must be a number [{spec.unit or '1'}], got {shown(value)}"
        return
    if isinstance(value, str | bool) or not numbers.size:
        yield f"must be a number [{spec.unit or '1'}], got {shown(value)}"
    elif np.any(np.isnan(numbers)) or not spec.allows(numbers[np.isfinite(numbers)]):
        yield f"must be {spec.expected()}, got {shown(value)}"
    elif spec.shape is not None and not isinstance(value, Mapping) and spec.shape != _shape(value):
        yield f"must have shape {spec.shape}, got {_shape(value)}: {shown(value)}"


def _shape(value: Any) -> tuple[int, ...] | None:
    try:
        return np.shape(value)
    except ValueError:  # rows of different lengths
        return None


def _leaves(value: Any) -> Iterator[float]:
    if isinstance(value, Mapping | list):
        for entry in value.values() if isinstance(value, Mapping) else value:
            yield from _leaves(entry)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    else:
        yield value


def _check_option(default: Any, value: Any) -> None:
    """An option is of its default's type; a whole number will do for a float."""
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}
    wanted = type(default)
    if wanted not in words:
        return
    fits = type(value) is wanted or (wanted is float and type(value) is int)
    if not fits:
        raise ValueError(f"must be {words[wanted]}, got {shown(value)}")


def _frozen(value: Any) -> Any:
    """Lists as tuples: options of a node are hashed."""
    if isinstance(value, list):
        return tuple(_frozen(entry) for entry in value)
    if isinstance(value, Mapping):
        return {name: _frozen(entry) for name, entry in value.items()}
    return value
