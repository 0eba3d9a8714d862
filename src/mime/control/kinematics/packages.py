"""ROS packages: where `package://NAME/rest` and `$(find NAME)` lead on this machine."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mime._files import is_file
from mime._text import shortened
from mime.core.arguments import path as path_of
from mime.core.arguments import several

SCHEME = "package://"
DEPTH = 4


@dataclass(frozen=True)
class Packages:
    """Where packages are looked for, in this order.

    A folder NAME inside of one of these is the package NAME, and so is one of these that is called
    NAME itself. Below the first two, workspaces of ROS, a folder NAME with a package.xml counts at
    any depth up to `DEPTH`.
    """

    search_path: tuple[Path, ...]
    """What the caller gave."""
    ros_package_path: tuple[Path, ...]
    """The folders of the variable ROS_PACKAGE_PATH."""
    above: tuple[Path, ...]
    """The folders above the robot's file, the nearest first."""

    @classmethod
    def of(
        cls,
        file: Path,
        search_path: Sequence[str | os.PathLike],
        environment: Mapping[str, str] = os.environ,
    ) -> "Packages":
        given = [path_of("search_path", folder) for folder in several("search_path", search_path)]
        variable = environment.get("ROS_PACKAGE_PATH", "")
        ros = [Path(folder) for folder in variable.split(os.pathsep) if folder]
        return cls(tuple(given), tuple(ros), tuple(file.resolve().parents))

    @property
    def folders(self) -> tuple[Path, ...]:
        return (*self.search_path, *self.ros_package_path, *self.above)

    def found(self, package: str) -> list[Path]:
        """Every folder that is the package of this name; a path is no name."""
        if not package or package in (".", "..") or "/" in package or "\0" in package:
            return []
        inside = [folder / package for folder in self.folders]
        itself = [folder for folder in self.folders if folder.name == package]
        direct = [folder for folder in (*inside, *itself) if _is_folder(folder)]
        if direct:
            return direct
        workspaces = (*self.search_path, *self.ros_package_path)
        return [folder for top in workspaces for folder in _below(top, package)]

    def file(self, filename: str) -> Path | None:
        """The file that a mesh's name means; None when there is none."""
        if filename.startswith(SCHEME):
            package, _, rest = filename.removeprefix(SCHEME).partition("/")
            candidates = [folder / rest for folder in self.found(package)]
        else:
            candidates = [self.above[0] / filename.removeprefix("file://")]
        return next((file for file in candidates if is_file(file)), None)

    def places(self) -> str:
        """In words: where was looked."""
        given, ros = (
            shortened(", ".join(repr(str(folder)) for folder in folders), 400) or "(none)"
            for folders in (self.search_path, self.ros_package_path)
        )
        return f"search_path {given}, ROS_PACKAGE_PATH {ros}, or a folder above {self.above[0]}"


def _below(top: Path, package: str) -> Iterator[Path]:
    """Folders of this name that hold a package.xml; what is inside of a package is none."""
    for name, folders, files in os.walk(top):
        folder = Path(name)
        if "package.xml" in files and folder.name == package:
            yield folder
        if "package.xml" in files or len(folder.relative_to(top).parts) >= DEPTH:
            folders.clear()


def _is_folder(folder: Path) -> bool:
    try:
        return folder.is_dir()
    except (OSError, ValueError):  # a name that none can have
        return False
