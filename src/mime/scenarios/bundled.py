"""The scenarios that come with MIME, wherever it is installed."""

from importlib import resources
from pathlib import Path

from mime._text import nearest, quoted
from mime.scenarios.source import Source

_FOLDER = Path(str(resources.files("mime.scenarios"))) / "bundled"


def bundled_scenarios() -> dict[str, Path]:
    """Name and file of each."""
    return {file.stem: file for file in sorted(_FOLDER.glob("*.toml"))}


def find_scenario(name: str) -> Path:
    """A path as it is, or the file of a bundled scenario; else an error with the nearest name."""
    known = bundled_scenarios()
    if name in known:
        return known[name]
    file = Path(name)
    if file.is_file():
        return file
    if file.is_dir():
        raise FileNotFoundError(f"{name}: is a folder, expected a scenario file")
    raise FileNotFoundError(
        f"{name}: no such file, and no bundled scenario of that name{nearest(name, known)} "
        f"(bundled: {quoted(known)})"
    )


def scenario_of(source: Source, name: str) -> Path:
    """What the key `scenario` of another file names: a bundled one, or a file beside that file.

    Stops with all that is wrong with `source` where there is none.
    """
    known = bundled_scenarios()
    file = known.get(name) or source.file.parent / name
    if not file.is_file():
        words = f"no such file: {file}, and no bundled scenario of that name{nearest(name, known)}"
        source.add(("scenario",), f"{words} (bundled: {quoted(known)})")
    source.stop_if_any()
    return file
