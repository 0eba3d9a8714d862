"""`mime show NODE`: what a node takes, gives and computes, from its own declarations."""

from typing import TYPE_CHECKING, Annotated

import tyro

from mime.commands.errors import OK, UserMistakeError

if TYPE_CHECKING:
    from rich.table import Table as RichTable

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
        from mime.commands.show_assembly import show_assembly

        return show_assembly(node)
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
    console.print(f"[bold]{sheet.name}[/bold]  {meta.summary if meta else ''}", soft_wrap=True)
    if meta:
        console.print(f"{meta.id}, version {meta.version}, {meta.stability}")
    for table in sheet.tables:
        console.print()
        console.print(_drawn(table))
    if sheet.note:
        console.print(f"\n{sheet.note}")
    for title in node_sheet.LISTS if meta else ():
        console.print(f"\n[bold]{title}[/bold]")
        for line in getattr(meta, title):
            console.print(f"  {line}", soft_wrap=True, markup=False)
    return OK


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
