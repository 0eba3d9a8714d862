"""`--set node.parameter=value`: keys of a scenario, set from outside the file."""

import tomllib
from collections.abc import Sequence
from typing import Any

from mime._text import nearest, quoted
from mime.scenarios.problems import Path_, Source


def apply(overrides: Sequence[str], data: dict[str, Any], source: Source) -> dict[Path_, str]:
    """Set the keys in `data`; which keys they are, with the words that set them.

    `rotor.r_ohm=2` is a node's (or an assembly's), `simulation.duration=3` the simulation's, and
    `inputs.rotor.commanded_voltage.value=6` an input's.
    """
    paths: dict[Path_, str] = {}
    for words in overrides:
        name, equals, value = words.partition("=")
        path = _path(name.strip(), data)
        place = f"--set {words}"
        if not equals or path is None:
            known = [*_tables(data, "nodes"), *_tables(data, "assemblies")]
            near = nearest(name.partition(".")[0], [*known, "simulation"])
            source.found.append(
                f"{place}: must be NODE.PARAMETER=VALUE or simulation.KEY=VALUE{near} "
                f"(nodes: {quoted(known)})"
            )
            continue
        table: Any = data
        for part in path[:-1]:
            table = table.setdefault(part, {}) if isinstance(table, dict) else None
        if not isinstance(table, dict):
            source.found.append(f"{place}: {'.'.join(map(str, path[:-1]))} is not a table")
            continue
        table[path[-1]] = _value(value.strip())
        paths[path] = place
    return paths


def _path(name: str, data: dict[str, Any]) -> Path_ | None:
    first, *rest = name.split(".")
    if not rest or not all(rest):
        return None
    for kind in ("nodes", "assemblies"):
        if first in _tables(data, kind):
            return (kind, first, *rest)
    if first == "simulation":
        return ("simulation", *rest)
    if first == "inputs" and len(rest) == 3:
        return ("inputs", ".".join(rest[:2]), rest[2])
    return None


def _tables(data: dict[str, Any], name: str) -> list[str]:
    found = data.get(name)
    return list(found) if isinstance(found, dict) else []


def _value(words: str) -> Any:
    """As TOML reads it; what TOML does not read is a string, so quotes may be left out."""
    try:
        parsed = tomllib.loads(f"value = {words}")
    except (ValueError, RecursionError):
        return words
    return parsed["value"] if list(parsed) == ["value"] else words
