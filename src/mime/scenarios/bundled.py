"""The scenarios that come with MIME, wherever it is installed."""

from importlib import resources
from pathlib import Path

from mime._text import nearest, quoted

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
