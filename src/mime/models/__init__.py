"""Robots that come with MIME, as URDF files."""

from importlib import resources
from pathlib import Path

_FOLDER = Path(str(resources.files(__name__)))


def model_names() -> list[str]:
    """Names of the bundled robots."""
    return sorted(file.stem for file in _FOLDER.glob("*.urdf"))


def model_path(name: str) -> Path:
    """Path of a bundled URDF, `model_path("desktop_arm_6axis")`, wherever MIME is installed."""
    from mime.core.arguments import text

    text("name", name)
    known = model_names()
    if name not in known:
        raise FileNotFoundError(
            f"no bundled robot is named {name!r}; there are {', '.join(known)}."
        )
    return _FOLDER / f"{name}.urdf"
