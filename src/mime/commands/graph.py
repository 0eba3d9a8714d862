"""`mime graph SCENARIO` and `mime plot RESULT`"""

from pathlib import Path
from typing import Annotated

import tyro

from mime.commands import OK, RunFailedError, UserMistakeError
from mime.commands.run import AllowCode, Overrides, Scenario
from mime.core.problem import InputError


def graph(
    scenario: Scenario,
    set: Overrides = (),
    out: Annotated[
        Path | None, tyro.conf.arg(metavar="FILE", help="a picture: .svg or .png")
    ] = None,
    mermaid: Annotated[bool, tyro.conf.arg(help="print a Mermaid flow chart instead")] = False,
    allow_code: AllowCode = False,
) -> int:
    """Show how a scenario's nodes are wired, as text or as a picture."""
    from mime.reporting.graph_picture import draw_graph, graph_text
    from mime.scenarios.bundled import find_scenario
    from mime.scenarios.scenario import load_scenario

    loaded = load_scenario(find_scenario(scenario), set, allow_code=allow_code)
    if out is None:
        print(loaded.graph.to_mermaid() if mermaid else graph_text(loaded))
    else:
        _write_picture(draw_graph(loaded), out)
    return OK


def plot(
    result: Annotated[
        Path, tyro.conf.Positional, tyro.conf.arg(metavar="RESULT", help="result.nc of a run")
    ],
    fields: Annotated[
        tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(help="node.field or node.field[0]")
    ] = (),
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help="picture (RESULT.png)")] = None,
    against: Annotated[
        tuple[str, ...], tyro.conf.arg(help="fields to draw them over, in place of time")
    ] = (),
    unit: Annotated[
        str | None, tyro.conf.arg(help="in place of the fields' own: deg, mm, rpm ...")
    ] = None,
    salvage: Annotated[bool, tyro.conf.arg(help="of a damaged result, what is sound")] = False,
) -> int:
    """Plot fields of a result over time, as `trajectory.plot` does; without fields, all of them."""
    from mime.running.trajectory import Trajectory

    try:
        trajectory = Trajectory.load(result, salvage=salvage)
    except ValueError as error:
        raise UserMistakeError(str(error)) from error
    try:
        figure = trajectory.plot(
            *fields, title="" if fields else result.stem, against=against, unit=unit
        )
    except InputError as error:
        raise UserMistakeError(f"{result}: {error}") from error
    _write_picture(figure, out or result.with_suffix(".png"))
    return OK


def _write_picture(figure: object, path: Path) -> None:
    from mime._files import write_atomically

    kind = path.suffix.removeprefix(".").lower()
    if kind not in ("svg", "png"):
        raise UserMistakeError(f"{path}: must end in .svg or .png")
    try:
        write_atomically(path, lambda part: figure.savefig(part, format=kind, dpi=130))  # type: ignore[attr-defined]
    except FileNotFoundError:  # says which folder is not there
        raise
    except OSError as error:
        raise RunFailedError(f"cannot write {path}: {error.strerror or error}") from error
    print(f"wrote {path}")
