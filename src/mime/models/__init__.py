"""Robots that come with MIME, as URDF files."""

from importlib import resources
from pathlib import Path

from mime.core.arguments import text


def model_path(name: str) -> Path:
    """Path of a bundled URDF, `model_path("desktop_arm_6axis")`, wherever MIME is installed."""
    text("name", name)
    folder = Path(str(resources.files(__name__)))
    path = folder / f"{name}.urdf"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in folder.glob("*.urdf")))
        raise FileNotFoundError(f"no bundled robot is named {name!r}; there are {known}.")
    return path
