"""`mime show NODE`: what a node takes, gives and computes, from its own declarations."""

import ast
import inspect
import itertools
import re
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from mime.commands.errors import OK, UserMistakeError

if TYPE_CHECKING:
    from mime.core.node import Node
    from mime.scenarios.node_types import Argument


def show(
    node: Annotated[
        str, tyro.conf.Positional, tyro.conf.arg(metavar="NODE", help="see `mime list nodes`")
    ],
) -> int:
    """Show a node type: parameters with units and ranges, inputs, fluxes, state, equations."""
    from mime.reporting.summary import wide_console
    from mime.scenarios.node_types import arguments_of, find_type

    try:
        cls = find_type(node)
    except ValueError as error:
        raise UserMistakeError(str(error)) from error
    console = wide_console()
    meta = cls.meta
    console.print(f"[bold]{cls.__name__}[/bold]  {meta.summary if meta else ''}", soft_wrap=True)
    if meta:
        console.print(f"{meta.id}, version {meta.version}, {meta.stability}")
    arguments = arguments_of(cls)
    docs = _documentation(cls)
    parameters = [_row(argument, docs) for argument in arguments.values()]
    _print(console, "parameters", ("name", "unit", "default", "range", "meaning"), parameters)
    example, where = _example(cls)
    if example is None:
        console.print("\ninputs, fluxes and state depend on the parameters")
    else:
        inputs = [
            (name, _shape(i.shape), i.unit or "1", i.coupling, i.description)
            for name, i in example.boundary_input_spec().items()
        ]
        _print(console, f"inputs{where}", ("name", "shape", "unit", "coupling", "meaning"), inputs)
        for title, spec in (
            ("fluxes", example.boundary_flux_spec()),
            ("state", example.state_spec()),
        ):
            rows = [(n, _shape(o.shape), o.unit or "1", o.description) for n, o in spec.items()]
            _print(console, f"{title}{where}", ("name", "shape", "unit", "meaning"), rows)
    if meta:
        for title in ("equations", "discretisation", "assumptions", "limitations", "references"):
            console.print(f"\n[bold]{title}[/bold]")
            for line in getattr(meta, title):
                console.print(f"  {line}", soft_wrap=True, markup=False)
    return OK


def _print(console: Any, title: str, headings: tuple[str, ...], rows: list[Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, title_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold", no_wrap=heading in ("name", "unit"))
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print()
    console.print(table)


def _row(argument: "Argument", docs: dict[str, str]) -> tuple[str, ...]:
    from mime.reporting.numbers import number

    spec = argument.spec
    default = "required" if argument.required else _default(argument.default, number)
    meaning = (spec.doc if spec else "") or docs.get(argument.name, "")
    if spec is None:
        return argument.name, "", default, "", meaning
    allowed = spec.expected().removesuffix(spec.unit).strip()
    return argument.name, spec.unit or "1", default, allowed, meaning


def _default(value: Any, number: Any) -> str:
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
    for line in (inspect.getdoc(cls.__init__) or "").splitlines():
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


def _example(cls: "type[Node]") -> "tuple[Node | None, str]":
    """A node of that type, and where it comes from: a bundled scenario, else made of ones."""
    from mime.scenarios.bundled import bundled_scenarios
    from mime.scenarios.loader import load_scenario
    from mime.scenarios.node_types import arguments_of

    required = [argument for argument in arguments_of(cls).values() if argument.required]
    values = {a.name: 1.0 for a in required if a.spec is not None and a.spec.shape == ()}
    if len(values) == len(required):
        try:
            return cls("example", 1e-5, **values), ""
        except ValueError:
            pass
    for name, file in bundled_scenarios().items():
        if f'type = "{cls.__name__}"' in file.read_text(encoding="utf-8"):
            nodes = load_scenario(file).simulation.nodes.values()
            return next(node for node in nodes if type(node) is cls), f" (as in {name})"
    return None, ""
