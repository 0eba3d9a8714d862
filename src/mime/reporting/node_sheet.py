"""A node type's data sheet, from its own declarations: what `mime show` prints and the site has."""

import ast
import dataclasses
import inspect
import itertools
import re
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mime.core.node import Node
from mime.core.spec import NodeMeta, Output
from mime.reporting.numbers import number
from mime.scenarios.node_types import Argument, arguments_of

LISTS = ("equations", "discretisation", "assumptions", "limitations", "references")
"""The fields of a node's metadata that are lines of text."""


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of one kind."""

    title: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclasses.dataclass(frozen=True)
class NodeSheet:
    """All that there is to know of a node type before it is built."""

    name: str
    module: str
    meta: NodeMeta | None
    tables: list[Table]
    """Those that have rows."""
    note: str = ""


def node_sheet(cls: type[Node]) -> NodeSheet:
    """Parameters with units and ranges; inputs, fluxes and state of an example of that type."""
    docs = _documentation(cls)
    parameters = [_row(argument, docs) for argument in arguments_of(cls).values()]
    tables = [Table("parameters", ("name", "unit", "default", "range", "meaning"), parameters)]
    example, where = _example(cls)
    if example is not None:
        inputs = [
            (name, _shape(i.shape), i.unit or "1", i.coupling, i.description)
            for name, i in example.boundary_input_spec().items()
        ]
        headings = ("name", "shape", "unit", "coupling", "meaning")
        tables.append(Table(f"inputs{where}", headings, inputs))
        tables.append(_outputs(f"fluxes{where}", example.boundary_flux_spec()))
        tables.append(_outputs(f"state{where}", example.state_spec()))
    if cls.meta:
        ranges = [
            (r.quantity, r.unit or "1", number(r.low), number(r.high), r.note)
            for r in cls.meta.validated_ranges
        ]
        tables.append(Table("validated for", ("name", "unit", "from", "to", "note"), ranges))
    note = "" if example else "Inputs, fluxes and state depend on the parameters."
    shown = [table for table in tables if table.rows]
    return NodeSheet(cls.__name__, cls.__module__, cls.meta, shown, note)


def markdown(sheet: NodeSheet) -> str:
    """The sheet as a page; equations between dollars."""
    meta = sheet.meta
    lines = [f"# {sheet.name}", ""]
    if meta:
        lines += [meta.summary, "", f"{meta.id}, version {meta.version}, {meta.stability}.", ""]
    lines += [f"`from {_public(sheet)} import {sheet.name}`", "", sheet.note, ""]
    for table in sheet.tables:
        lines += [f"## {table.title.capitalize()}", "", _line(table.headings)]
        lines.append(_line(["---"] * len(table.headings)))
        lines += [_line([f"`{row[0]}`", *map(_escaped, row[1:])]) for row in table.rows]
        lines.append("")
    for title in LISTS if meta else ():
        lines += [f"## {title.capitalize()}", ""]
        for text in getattr(meta, title):
            lines += [f"$$ {text} $$" if _is_formula(title, text) else f"- {_escaped(text)}", ""]
    return "\n".join(lines)


def _public(sheet: NodeSheet) -> str:
    """`mime.nodes.actuation.motor` rather than `mime.nodes.actuation.motor.node`."""
    import importlib

    package = sheet.module.rpartition(".")[0]
    exported = hasattr(importlib.import_module(package), sheet.name)
    return package if exported else sheet.module


def _is_formula(title: str, text: str) -> bool:
    """An equation; of the discretisation, lines that are LaTeX and not words."""
    return title == "equations" or (title == "discretisation" and "\\" in text)


def _line(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Words of a declaration as Markdown; what it has between backticks is code already."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([|*_<>\[\]])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def _outputs(title: str, spec: Mapping[str, Output]) -> Table:
    rows = [(name, _shape(o.shape), o.unit or "1", o.description) for name, o in spec.items()]
    return Table(title, ("name", "shape", "unit", "meaning"), rows)


def _row(argument: Argument, docs: dict[str, str]) -> tuple[str, ...]:
    spec = argument.spec
    default = "required" if argument.required else _default(argument.default)
    meaning = (spec.doc if spec else "") or docs.get(argument.name, "")
    if spec is None:
        return argument.name, "", default, "", meaning
    allowed = spec.expected().removesuffix(spec.unit).strip()
    return argument.name, spec.unit or "1", default, allowed, meaning


def _default(value: Any) -> str:
    if value is None:
        return "none"
    try:
        return number(value)
    except (TypeError, ValueError):
        return type(value).__name__


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "scalar"


def _documentation(cls: type) -> dict[str, str]:
    """What the constructor says of its arguments, and the strings under a class's fields."""
    found: dict[str, str] = {}
    words = re.sub(r"\n {8,}", " ", inspect.getdoc(cls.__init__) or "")  # lines that go on
    for line in words.splitlines():
        if match := re.match(r"(\w+(?:, \w+)*) {2,}(.+)", line):
            found |= dict.fromkeys(match[1].split(", "), match[2])
    for owner in cls.__mro__:
        try:
            body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
        except (OSError, TypeError, SyntaxError):
            continue
        lines = getattr(body, "body", [])
        for field, below in itertools.pairwise(lines):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                text = below.value if isinstance(below, ast.Expr) else None
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    words = " ".join(text.value.replace("`", "").split())
                    found.setdefault(field.target.id, words)
    return found


def _example(cls: type[Node]) -> tuple[Node | None, str]:
    """A node of that type, and where it comes from: a bundled scenario, else made of ones."""
    from mime.scenarios.bundled import bundled_scenarios

    required = [argument for argument in arguments_of(cls).values() if argument.required]
    values = {a.name: 1.0 for a in required if a.spec is not None and a.spec.shape == ()}
    if len(values) == len(required):
        try:
            return cls("example", 1e-5, **values), ""
        except ValueError:
            pass
    for name, file in bundled_scenarios().items():
        text = file.read_text(encoding="utf-8")
        # An assembly's nodes are not named in the file.
        if f'type = "{cls.__name__}"' in text or "[assemblies." in text:
            for node in _nodes(file):
                if type(node) is cls:
                    return node, f" (as in {name})"
    return None, ""


@cache
def _nodes(file: Path) -> list[Node]:
    from mime.scenarios.scenario import load_scenario

    return list(load_scenario(file).simulation.nodes.values())
