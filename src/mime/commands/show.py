"""`mime show NAME`: what a node or an assembly takes and gives; a robot, a motor, a scenario."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from mime._text import brief, nearest
from mime.commands import OK, UserMistakeError
from mime.commands.robots import AS_IT_SAYS, SUFFIXES, Robot, RobotOptions

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.table import Table as RichTable
    from rich.text import Text

    from mime.reporting.node_sheet import SheetTable


def show(
    node: Annotated[
        str,
        tyro.conf.Positional,
        tyro.conf.arg(metavar="NAME", help="see `mime list`; or a file: robot, scenario"),
    ],
    markdown: Annotated[bool, tyro.conf.arg(help="as a page of the documentation")] = False,
    robot: Robot = AS_IT_SAYS,
) -> int:
    """Show a node type (parameters, inputs, fluxes, state, equations), robot, motor or scenario.

    A robot is a bundled one, or a file: URDF, MJCF, or xacro, which is code and is run. What its
    file says and MIME takes otherwise is a table. A motor or a servo is one of the catalogue. A
    scenario is a bundled one, or a file that ends in .toml.
    """
    if _show_model(node, robot) or _show_motor(node) or _show_servo(node) or _show_scenario(node):
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
        known = shown_names()
        if node in known["node"]:  # of another package, and it does not load
            raise UserMistakeError(str(error)) from error
        near = nearest(node, [name for names in known.values() for name in names])
        words = f"there is no {', '.join(known)} called {brief(node, 60)}{near}"
        raise UserMistakeError(f"{words}. `mime list` has all names") from error
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


def _show_model(name: str, options: RobotOptions) -> bool:
    """True when the name is that of a robot, which is shown."""
    from mime.commands import show_model

    file = show_model.bundled_models().get(name)
    if file is None and (options.xacro or name.lower().endswith(SUFFIXES)):
        file = Path(name)
    if file is not None:
        show_model.show_file(file, options)
        return True
    robot = show_model.described_models().get(name)
    if robot is not None:
        show_model.show_described(name, robot)
    return robot is not None


def shown_names() -> dict[str, list[str]]:
    """All that can be shown by name; robots of `robot_descriptions` are too many to be listed."""
    from mime.commands.show_model import bundled_models
    from mime.nodes.actuation.motor.catalogue import CATALOGUE
    from mime.nodes.actuation.servo_datasheet import SERVOS
    from mime.scenarios.assemblies import assembly_names
    from mime.scenarios.bundled import bundled_scenarios
    from mime.scenarios.node_types import own_types, plugged_types

    return {
        "node": [*own_types(), *plugged_types()],
        "assembly": assembly_names(),
        "model": list(bundled_models()),
        "motor": list(CATALOGUE),
        "servo": list(SERVOS),
        "scenario": list(bundled_scenarios()),
    }


def _print_figures(console: Any, name: str, sheet: Any) -> None:
    """What the data sheet of a motor or a servo says."""
    from mime.reporting.node_sheet import SheetTable
    from mime.reporting.numbers import number

    console.print(_heading(name, sheet.source), soft_wrap=True)
    rows = [(figure, number(value), unit) for figure, (value, unit) in sheet.figures().items()]
    console.print()
    console.print(_drawn(SheetTable("as its maker prints it", ("name", "value", "unit"), rows)))


def _show_motor(name: str) -> bool:
    """True when the name is that of a motor of the catalogue, which is shown."""
    from mime.nodes.actuation.motor.catalogue import CATALOGUE

    if name not in CATALOGUE:
        return False
    from mime.nodes.actuation.motor.node import MotorNode
    from mime.reporting.node_sheet import SheetTable
    from mime.reporting.summary import wide_console
    from mime.reporting.tables import PARAMETERS, parameter_rows

    sheet = CATALOGUE[name]
    console = wide_console()
    _print_figures(console, name, sheet)
    for words in sheet.contradictions():
        console.print(f"  {words}", soft_wrap=True)
    node = MotorNode.from_datasheet("motor", 1e-4, sheet, on_contradiction="ignore")
    console.print()
    console.print(_drawn(SheetTable("as a MotorNode", PARAMETERS, parameter_rows(node))))
    code = f'MotorNode.from_datasheet("motor", 1e-4, CATALOGUE["{name}"])'
    console.print("\nfrom mime.nodes.actuation.motor.catalogue import CATALOGUE", soft_wrap=True)
    console.print(code, soft_wrap=True)
    return True


def _show_servo(name: str) -> bool:
    """True when the name is that of a servo of the catalogue, which is shown."""
    from mime.nodes.actuation.servo_datasheet import SERVOS

    if name not in SERVOS:
        return False
    from mime.nodes.actuation.servo import ServoNode
    from mime.reporting.node_sheet import SheetTable
    from mime.reporting.numbers import number
    from mime.reporting.summary import wide_console
    from mime.reporting.tables import PARAMETERS, parameter_rows

    sheet = SERVOS[name]
    console = wide_console()
    _print_figures(console, name, sheet)
    console.print(f"  duty_per_kp: {sheet.gain_source}", soft_wrap=True)
    console.print(f"  not published: {sheet.not_published}", soft_wrap=True)
    node = ServoNode.from_datasheet("servo", 1e-3, sheet)
    console.print()
    console.print(_drawn(SheetTable("as a ServoNode", PARAMETERS, parameter_rows(node))))
    motor = (("r_ohm", sheet.r_ohm, "Ω"), ("kt_n_m_per_a", sheet.kt_n_m_per_a, "N·m/A"),
             ("gear.ratio", sheet.gear_ratio, ""))  # fmt: skip
    rows = [(name, number(value), unit) for name, value, unit in motor]
    console.print()
    console.print(_drawn(SheetTable("at its motor, from stall", ("name", "value", "unit"), rows)))
    return True


def _show_scenario(name: str) -> bool:
    """True when the name is that of a scenario, which is shown: its graph, inputs and figures."""
    from mime.scenarios.bundled import bundled_scenarios, find_scenario

    if name not in bundled_scenarios() and not name.lower().endswith(".toml"):
        return False
    from mime.reporting.graph_picture import graph_text
    from mime.reporting.summary import wide_console
    from mime.scenarios.scenario import load_scenario

    scenario = load_scenario(find_scenario(name))
    console = wide_console()
    console.print(_heading(scenario.name, scenario.title), soft_wrap=True)
    console.print(f"{scenario.tables.description}\n", soft_wrap=True)
    console.print(graph_text(scenario), soft_wrap=True)
    plots = [plot.title for plot in scenario.tables.plots.values() if plot.title]
    merits = [
        f"{merit.name}: {merit.kind} of {merit.field}"
        for merit in scenario.tables.figures_of_merit.values()
    ]
    for title, lines in (("plots", plots), ("figures of merit", merits)):
        if lines:
            console.print(f"\n{title}", style="bold")
        for line in lines:
            console.print(f"  {line}", soft_wrap=True)
    console.print(f"\nmime run {name}", soft_wrap=True)
    return True


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
