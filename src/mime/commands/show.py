"""`mime show NODE`: what a node or an assembly takes and gives, from its own declarations."""

from typing import TYPE_CHECKING, Annotated

import tyro

from mime.commands import OK, UserMistakeError

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.table import Table as RichTable
    from rich.text import Text

    from mime.reporting.node_sheet import SheetTable


def show(
    node: Annotated[
        str, tyro.conf.Positional, tyro.conf.arg(metavar="NODE", help="see `mime list`")
    ],
    markdown: Annotated[bool, tyro.conf.arg(help="as a page of the documentation")] = False,
) -> int:
    """Show a node type: parameters with units and ranges, inputs, fluxes, state, equations."""
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
