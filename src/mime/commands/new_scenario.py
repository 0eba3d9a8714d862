"""`mime new-scenario --from NAME FILE`: a bundled scenario as a file of your own."""

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from mime.commands import OK, UserMistakeError
from mime.scenarios.bundled import bundled_scenarios

if TYPE_CHECKING:
    Bundled = str
else:  # a shell completes these
    Bundled = Literal[tuple(bundled_scenarios())]

_MODEL = re.compile(r'"model:([^"]*)"')


def new_scenario(
    file: Annotated[
        Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE", help="such as my.toml")
    ],
    origin: Annotated[Bundled, tyro.conf.arg(name="from", help="the bundled scenario")],
    robots: Annotated[
        bool, tyro.conf.arg(help="also copy the robots (URDF) that it names, and use the copies")
    ] = False,
) -> int:
    """Copy a bundled scenario out, to be changed. It runs from wherever it is."""
    from mime.commands.output import prepare, write_bytes
    from mime.models import model_path

    text = bundled_scenarios()[origin].read_text(encoding="utf-8")
    files = {}
    if robots:
        for model in map(model_path, dict.fromkeys(_MODEL.findall(text))):
            files[file.parent / model.name] = model.read_text(encoding="utf-8")
        text = _MODEL.sub(r'"\1.urdf"', text)
    files = {file: text} | files
    if taken := [str(path) for path in files if path.exists() or path.is_symlink()]:
        raise UserMistakeError(f"{', '.join(taken)}: already there, and not overwritten")
    prepare(file.parent)
    for path, content in files.items():
        write_bytes(path, content.encode())
        print(f"wrote {path}")
    print(f"try it:  mime run {shlex.quote(str(file))}")
    return OK
