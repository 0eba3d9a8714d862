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

import mime
from mime.core.node import Node
from mime.core.parameters import Parameterised
from mime.core.spec import NodeMeta, Output
from mime.reporting.numbers import number
from mime.running.precision import in_own_precision
from mime.scenarios.node_types import Argument, arguments_of

LISTS = ("equations", "discretisation", "assumptions", "limitations", "references")
"""The fields of a node's metadata that are lines of text."""


@dataclasses.dataclass(frozen=True)
class SheetTable:
    """Rows of one kind."""

    title: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclasses.dataclass(frozen=True)
class NodeSheet:
    """What can be known of a node type before it is built."""

    name: str
    module: str
    meta: NodeMeta | None
    tables: list[SheetTable]
    """The tables that have rows."""
    note: str = ""


@in_own_precision
def _state(example: Node) -> Mapping[str, Output]:
    """Examples are of scenarios, and some of these are in double precision."""
    return example.state_spec()


def node_sheet(cls: type[Node]) -> NodeSheet:
    """Parameters with units and ranges; what an example takes and gives; what computes what."""
    tables = [_parameters("parameters", cls)]
    tables += [
        _parameters(f"{name}: {kind.__name__}", kind)
        for name, kinds in cls.effect_types().items()
        for kind in kinds
    ]
    example, where = example_node(cls)
    if example is not None:
        inputs = [
            (name, _shape(i.shape), i.unit or "1", i.coupling, i.description)
            for name, i in example.boundary_input_spec().items()
        ]
        headings = ("name", "shape", "unit", "coupling", "meaning")
        tables.append(SheetTable(f"inputs{where}", headings, inputs))
        tables.append(_outputs(f"fluxes{where}", example.boundary_flux_spec()))
        tables.append(_outputs(f"state{where}", _state(example)))
    if cls.meta:
        ranges = [
            (r.quantity, r.unit or "1", number(r.low), number(r.high), r.note)
            for r in cls.meta.validated_ranges
        ]
        tables.append(SheetTable("validated for", ("name", "unit", "from", "to", "note"), ranges))
        mapped = [(entry.term, entry.function, entry.note) for entry in cls.meta.implementation]
        tables.append(SheetTable("implementation", ("term", "function", "note"), mapped))
        changes = cls.meta.changelog
        tables.append(SheetTable("changelog", ("version", "date", "change"), changes))
    note = "" if example else "Inputs, fluxes and state depend on the parameters."
    shown = [table for table in tables if table.rows]
    return NodeSheet(cls.__name__, cls.__module__, cls.meta, shown, note)


def markdown(sheet: NodeSheet) -> str:
    """The sheet as a page; equations between dollars."""
    meta = sheet.meta
    lines = [f"# {sheet.name}", ""]
    if meta:
        lines += [meta.summary, "", f"{meta.id}, version {meta.version}, {meta.stability}.", ""]
        lines += _standing(meta)
    lines += [f"`from {_public(sheet)} import {sheet.name}`", "", sheet.note, ""]
    for table in sheet.tables:
        lines += [f"## {table.title.capitalize()}", "", *_rows(table)]
    for title in LISTS if meta else ():
        lines += [f"## {title.capitalize()}", ""]
        for text in getattr(meta, title):
            lines += [f"$$ {text} $$" if _is_formula(title, text) else f"- {_escaped(text)}", ""]
    return "\n".join(lines)


def guide_end(classes: Sequence[type[Node]]) -> str:
    """The last sections of a guide: what its nodes declare, so that it is typed once."""
    lines: list[str] = []
    for cls in classes:
        sheet, meta = node_sheet(cls), cls.meta
        assert meta is not None, "a node that has a guide has metadata"
        of = f" of {cls.__name__}" if len(classes) > 1 else ""
        tables = {table.title: table for table in sheet.tables}
        lines += [f"## Implementation{of}", "", *_rows(tables["implementation"])]
        lines += [f"## Verification mode and operating context{of}", "", *_standing(meta)]
        lines += [f"## References{of}", ""]
        lines += [*(f"- {_escaped(text)}" for text in meta.references), ""]
        lines += [f"## Changelog{of}", "", *_rows(tables["changelog"])]
    lines += ["Keys in brackets are those of [bibliography.bib](../../bibliography.bib)."]
    return "\n".join(lines) + "\n"


def _standing(meta: NodeMeta) -> list[str]:
    """How a node was verified and where it works, as paragraphs."""
    lines = (
        f"Verification: {meta.verification_mode}",
        f"Operating context: {meta.operating_context}",
    )
    return [text for line in lines for text in (_escaped(line), "")]


def _rows(table: SheetTable) -> list[str]:
    """A table as lines of Markdown."""
    lines = [_line(table.headings), _line(["---"] * len(table.headings))]
    return [*lines, *(_line(map(_cell, table.headings, row)) for row in table.rows), ""]


def _public(sheet: NodeSheet) -> str:
    """Where to import it from: `mime` rather than `mime.nodes.actuation.motor.node`."""
    own = sheet.module.startswith("mime.") and sheet.name in dir(mime)
    return "mime" if own else sheet.module


def _is_formula(title: str, text: str) -> bool:
    """An equation; of the discretisation, lines that are LaTeX and not words."""
    return title == "equations" or (title == "discretisation" and "\\" in text)


def _line(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(heading: str, text: str) -> str:
    return f"`{text}`" if heading in ("name", "term", "function") else _escaped(text)


def _escaped(text: str) -> str:
    """Words of a declaration as Markdown; what it has between backticks is code already."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([|*_<>\[\]])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def _parameters(title: str, cls: type[Parameterised]) -> SheetTable:
    docs, choices = documentation(cls), cls.option_choices()
    rows = [_row(argument, docs, choices) for argument in arguments_of(cls).values()]
    return SheetTable(title, ("name", "unit", "default", "range", "meaning"), rows)


def _outputs(title: str, spec: Mapping[str, Output]) -> SheetTable:
    rows = [(name, _shape(o.shape), o.unit or "1", o.description) for name, o in spec.items()]
    return SheetTable(title, ("name", "shape", "unit", "meaning"), rows)


def _row(
    argument: Argument, docs: dict[str, str], choices: Mapping[str, tuple[Any, ...]]
) -> tuple[str, ...]:
    spec = argument.spec
    default = "required" if argument.required else _default(argument.default)
    meaning = (spec.doc if spec else "") or docs.get(argument.name, "")
    if spec is None:
        return argument.name, "", default, ", ".join(choices.get(argument.name, ())), meaning
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


def documentation(cls: type) -> dict[str, str]:
    """What the constructor says of its arguments, what `effect` says, and strings under fields."""
    found = {field.name: field.metadata.get("doc", "") for field in dataclasses.fields(cls)}
    found = {name: words for name, words in found.items() if words}
    words = re.sub(r"\n {8,}", " ", inspect.getdoc(cls.__init__) or "")  # lines that go on
    for line in words.splitlines():
        if match := re.match(r"(\w+(?:, \w+)*) {2,}(.+)", line):
            found |= dict.fromkeys(match[1].split(", "), match[2])
    for owner in cls.__mro__:
        found = {**_below_fields(owner), **found}
    return found


@cache
def _below_fields(owner: type) -> dict[str, str]:
    """Strings under the fields that a class declares itself."""
    found: dict[str, str] = {}
    if not inspect.get_annotations(owner):
        return found
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    except (OSError, TypeError, SyntaxError):
        return found
    for field, below in itertools.pairwise(getattr(body, "body", [])):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            text = below.value if isinstance(below, ast.Expr) else None
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                found[field.target.id] = " ".join(text.value.replace("`", "").split())
    return found


def example_node(cls: type[Node]) -> tuple[Node | None, str]:
    """A node of that type, and where it comes from: made of ones and what the type says of its
    example, else a bundled scenario.
    """
    from mime.scenarios.bundled import bundled_scenarios

    required = [argument for argument in arguments_of(cls).values() if argument.required]
    values = {a.name: 1.0 for a in required if a.spec is not None and a.spec.shape == ()}
    values |= cls.example
    if all(argument.name in values for argument in required):
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
