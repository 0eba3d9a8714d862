"""`mime show NODE`: what a node or an assembly takes and gives; `mime show MODEL`: a robot."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from mime.commands import OK, UserMistakeError

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.table import Table as RichTable
    from rich.text import Text

    from mime.reporting.node_sheet import SheetTable


def show(
    node: Annotated[
        str,
        tyro.conf.Positional,
        tyro.conf.arg(metavar="NAME", help="see `mime list`; or a robot's file"),
    ],
    markdown: Annotated[bool, tyro.conf.arg(help="as a page of the documentation")] = False,
    on_problem: Annotated[
        Literal["refuse", "report"], tyro.conf.arg(help="mistakes in a robot's file")
    ] = "refuse",
    search_path: Annotated[
        tuple[str, ...], tyro.conf.arg(metavar="DIR", help="folders of a robot's packages")
    ] = (),
) -> int:
    """Show a node type (parameters, inputs, fluxes, state, equations), or a robot and its joints.

    A robot is a bundled one, or a file: URDF, MJCF, or xacro, which is code and is run.
    """
    if _show_model(node, on_problem, search_path):
        return OK
    from mime.reporting import node_sheet
    from mime.reporting.summary import wide_console
    from mime.scenarios.assemblies import assembly_names
    from mime.scenarios.node_types import find_type

    if node in assembly_names():
        _show_assembly(node)
        return OK
    try:
        cls = find_type(node)
    except ValueError as error:
        raise UserMistakeError(str(error)) from error
    sheet = node_sheet.node_sheet(cls)
    if markdown:
        print(node_sheet.markdown(sheet))
        return OK
    console = wide_console()
    meta = sheet.meta
    console.print(_heading(sheet.name, meta.summary if meta else ""), soft_wrap=True)
    if meta:
        console.print(f"{meta.id}, version {meta.version}, {meta.stability}")
        context = f"operating context: {meta.operating_context}"
        for line in (f"verification: {meta.verification_mode}", context):
            console.print(line, soft_wrap=True, markup=False)
    for table in sheet.tables:
        console.print()
        console.print(_drawn(table))
    if sheet.note:
        console.print(f"\n{sheet.note}")
    for title in node_sheet.LISTS if meta else ():
        console.print(f"\n{title}", style="bold")
        for line in getattr(meta, title):
            console.print(f"  {line}", soft_wrap=True)
    return OK


def _show_model(name: str, on_problem: str, search_path: tuple[str, ...]) -> bool:
    """True when the name is that of a robot, which is shown."""
    from mime.commands import show_model

    file = show_model.bundled_models().get(name)
    if file is None and name.lower().endswith(show_model.SUFFIXES):
        file = Path(name)
    if file is not None:
        show_model.show_file(file, on_problem, search_path)
        return True
    robot = show_model.described_models().get(name)
    if robot is not None:
        show_model.show_described(name, robot)
    return robot is not None


def _heading(name: str, summary: str) -> "Text":
    from rich.text import Text

    return Text.assemble((name, "bold"), f"  {summary}")


def _drawn(table: "SheetTable") -> "RichTable":
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(
        title=table.title, title_justify="left", box=None, pad_edge=False, title_style="bold"
    )
    for heading in table.headings:
        drawn.add_column(heading, overflow="fold", no_wrap=heading in ("name", "unit"))
    for row in table.rows:
        drawn.add_row(*(Text(cell) for cell in row))
    return drawn


def _show_assembly(name: str) -> None:
    """Print what `[assemblies.NAME]` of that type takes."""
    from rich.table import Table
    from rich.text import Text

    from mime.reporting.summary import wide_console
    from mime.scenarios.assemblies import find_assembly

    cls = find_assembly(name)
    console = wide_console()
    summary, _, more = (cls.__doc__ or "").partition("\n")
    console.print(_heading(name, summary), soft_wrap=True)
    console.print(f"{' '.join(more.split())}\n", soft_wrap=True)
    table = Table("key", "default", "meaning", title="keys", title_justify="left", box=None)
    for row in _keys(cls):
        table.add_row(*map(Text, row))
    console.print(table)


def _keys(model: "type[BaseModel]", prefix: str = "") -> list[tuple[str, str, str]]:
    """Key, default and meaning of all keys; those of a table within as `table.key`."""
    from mime.reporting.numbers import number
    from mime.scenarios.validation import inner_model

    found = []
    for key, field in model.model_fields.items():
        if key == "type":
            continue
        inner, value = inner_model(field.annotation), field.default
        plain = value is not None and not hasattr(value, "model_fields")
        default = "required" if field.is_required() else number(value) if plain else ""
        found.append((prefix + key, default, field.description or ""))
        if inner is not None:
            found += _keys(inner, f"{prefix}{key}.")
    return found
