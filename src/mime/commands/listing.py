"""`mime list [nodes|assemblies|scenarios|models|motors|servos|benchmarks]`"""

from typing import Annotated, Literal

import tyro

from mime.commands import OK

What = Literal[
    "all", "nodes", "assemblies", "scenarios", "models", "motors", "servos", "benchmarks"
]


def list_(
    what: Annotated[What, tyro.conf.Positional, tyro.conf.arg(help="which list")] = "all",
) -> int:
    """List node types, assemblies, bundled scenarios, robots, motors, servos and benchmarks."""
    from rich.table import Table

    from mime.reporting.summary import wide_console

    makers = {
        "nodes": _nodes,
        "assemblies": _assemblies,
        "scenarios": _scenarios,
        "models": lambda: _models(everything=what == "models"),
        "motors": _motors,
        "servos": _servos,
        "benchmarks": _benchmarks,
    }
    console = wide_console()
    for name, make in makers.items():
        if what in ("all", name):
            table = Table("", "", title=name, title_justify="left", box=None, show_header=False)
            for row in make():
                table.add_row(*row)
            console.print(table)
    return OK


def _nodes() -> list[tuple[str, str]]:
    from mime.scenarios.node_types import own_types, plugged_types

    rows = [(name, cls.meta.summary if cls.meta else "") for name, cls in own_types().items()]
    return rows + [(name, f"of {entry.value}") for name, entry in plugged_types().items()]


def _assemblies() -> list[tuple[str, str]]:
    from mime.scenarios.assemblies import assembly_names, find_assembly, plugged_assemblies

    plugged = plugged_assemblies()
    return [
        (name, f"of {plugged[name].value}" if name in plugged else _first_line(find_assembly(name)))
        for name in assembly_names()
    ]


def _first_line(documented: object) -> str:
    return (documented.__doc__ or "").partition("\n")[0]


def _scenarios() -> list[tuple[str, str]]:
    import tomllib

    from mime.scenarios.bundled import bundled_scenarios

    return [
        (name, str(tomllib.loads(file.read_text(encoding="utf-8")).get("title", "")))
        for name, file in bundled_scenarios().items()
    ]


def _models(everything: bool) -> list[tuple[str, str]]:
    """Robots: MIME's own, and those of `robot_descriptions` by number or by name."""
    from mime.commands.show_model import (
        bundled_models,
        described_models,
        described_words,
        joint_count,
    )

    rows = [
        (name, f"{joint_count(file)} joints, 'model:{name}' in scenarios")
        for name, file in bundled_models().items()
    ]
    described = described_models()
    if described and not everything:
        rows.append(("robot_descriptions", f"has {len(described)} more: mime list models"))
    return rows + [
        (name, f"{described_words(robot)}; robot_descriptions")
        for name, robot in described.items()
        if everything
    ]


def _motors() -> list[tuple[str, str]]:
    from mime.nodes.actuation.motor.catalogue import CATALOGUE

    return [(name, f"{m.nominal_voltage_v:g} V, {m.source}") for name, m in CATALOGUE.items()]


def _servos() -> list[tuple[str, str]]:
    from mime.nodes.actuation.servo_datasheet import SERVOS

    return [(name, f"{s.nominal_voltage_v:g} V, {s.source}") for name, s in SERVOS.items()]


def _benchmarks() -> list[tuple[str, str]]:
    from mime.verification.catalogue import all_benchmarks

    return [(benchmark.id, benchmark.title) for benchmark in all_benchmarks()]
