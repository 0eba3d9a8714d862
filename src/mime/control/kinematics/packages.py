"""Where the meshes, includes and ROS packages of a robot's file are on this machine.

One rule for URDF, xacro and MJCF. Each name is tried in these places, in this order:

    package://NAME/rest    NAME in `search_path`, in ROS_PACKAGE_PATH, as PREFIX/share/NAME of
    $(find NAME)/rest      AMENT_PREFIX_PATH, in the file's bounds, beside the file's own package
    a/b.stl                in each folder of the file's bounds, then in `search_path`
    ../a/b.stl             from the file's folder
    /a/b.stl               there; `file://` before any of these says the same

The *bounds* of a file are its folder and those above it, up to the first one that holds a
`package.xml` or a `.git`, at most four above it, and none that is the home folder or above it. A
link to a file has the bounds of the link and of the file. *Beside* is what lies in the same folder
as the top of the bounds, if both hold a `package.xml`: the packages of one workspace.

A file is opened where it lies, with every link followed, in the bounds, in a package beside them,
or in a folder of the search paths, and if it is a plain file with one of the expected suffixes.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mime._files import is_file, read_plain
from mime._text import brief, quoted, shortened
from mime.core.arguments import path as path_of
from mime.core.arguments import several

MESHES = (".stl", ".obj", ".dae", ".msh", ".ply", ".glb", ".gltf", ".off")
"""Suffixes of files of triangles."""
NO_MESH = "a box is drawn for the mesh"
"""How a line of a report begins that tells of a mesh that was not read."""
DEPTH = 4
"""Folders below a workspace in which a package is looked for."""
LEVELS = 4
"""Folders above a file that can be in its bounds."""
_MANIFEST = "package.xml"
_SCHEME = "file://"
_IN_PACKAGE = re.compile(
    r"(?:file://)?(?:package://([^/]*)|\$\(find\s+([^)\s]+)\s*\))/*(.*)", re.DOTALL
)
_MOST_BYTES = 2**16


class NotFoundError(ValueError):
    """A name leads to no file that may be read; its words say why."""


class NoPackageError(NotFoundError):
    """The package of the name is not there: so are all files in it."""


@dataclass(frozen=True)
class Packages:
    """Where packages and files are looked for.

    A folder NAME inside of one of these is the package NAME, and so is one of these that is called
    NAME itself, or whose package.xml says that name. Below the first two, workspaces of ROS, a
    folder NAME with a package.xml counts at any depth up to `DEPTH`.
    """

    search_path: tuple[Path, ...] = ()
    """What the caller gave."""
    ros_package_path: tuple[Path, ...] = ()
    """The folders of the variable ROS_PACKAGE_PATH."""
    ament_shares: tuple[Path, ...] = ()
    """PREFIX/share of the variable AMENT_PREFIX_PATH."""
    bounds: tuple[tuple[Path, ...], ...] = ()
    """Of the file, the nearest folder first; of a link, those of the file behind it too."""

    @classmethod
    def of(
        cls,
        file: Path,
        search_path: Sequence[str | os.PathLike],
        environment: Mapping[str, str] = os.environ,
    ) -> "Packages":
        names = several("search_path", search_path)
        given = [path_of("search_path", name).absolute() for name in names]
        ros, ament = (
            [
                Path(folder).absolute()
                for folder in environment.get(name, "").split(os.pathsep)
                if folder
            ]
            for name in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH")
        )
        own = dict.fromkeys((_real(file.absolute().parent), _real(file).parent))
        bounds = tuple(map(bounds_of, own))
        return cls(tuple(given), tuple(ros), tuple(prefix / "share" for prefix in ament), bounds)

    @property
    def tops(self) -> tuple[Path, ...]:
        """The highest folder of each of the bounds."""
        return tuple(folders[-1] for folders in self.bounds)

    @property
    def readable(self) -> tuple[Path, ...]:
        """The folders in which a file may be read, but for the packages beside the file's own."""
        return (*self.tops, *self.search_path, *self.ros_package_path, *self.ament_shares)

    @property
    def readable_by_code(self) -> tuple[Path, ...]:
        """The folders in which a xacro file may read: of its bounds, its package or repository."""
        own = [
            top if _is_marked(top) else folders[0] for top, folders in zip(self.tops, self.bounds)
        ]
        return (*own, *self.search_path, *self.ros_package_path, *self.ament_shares)

    def found(self, package: str) -> list[Path]:
        """Every folder that is the package of this name; a path is no name."""
        if not package or package in (".", "..") or "/" in package or "\0" in package:
            return []
        given = (*self.search_path, *self.ros_package_path, *self.ament_shares)
        direct = [folder for place in given for folder in _packages_in(place, package)]
        for folders in self.bounds:
            inside = (folder for place in folders for folder in _packages_in(place, package))
            direct += [found for found in inside if _real(found).is_relative_to(folders[-1])]
        if direct:
            return direct
        workspaces = (*self.search_path, *self.ros_package_path)
        below = [folder for top in workspaces for folder in _below(top, package)]
        beside = [parent / package for parent in self._workspaces()]
        beside = [folder for folder in beside if _is_package(folder)]
        return below or [folder for folder in beside if _real(folder) == folder]

    def sources(self, package: Path) -> list[Path]:
        """The folder of an installed package's sources: its package.xml can be a link to there."""
        manifest = package / _MANIFEST
        installed = package.parent in self.ament_shares and is_file(manifest)
        return [_real(manifest).parent] if installed else []

    def file(self, name: str, suffixes: Sequence[str] = MESHES, beside: Path | None = None) -> Path:
        """The plain file that a name in the robot's file means, with all links followed.

        Raises `NotFoundError` when there is none that may be read. `beside`: a folder, that of an
        include, from which the name can be meant too.
        """
        candidates = self._candidates(name, beside)
        outside = False
        for candidate in candidates:
            try:
                real = candidate.resolve()
            except (OSError, RuntimeError, ValueError):  # a loop of links, or an impossible name
                continue
            if not self._may_be_read(candidate, real):
                outside = True
            elif real.suffix.lower() not in suffixes:
                if is_file(real):
                    shown = f"{brief(name, 80)} is not one of {', '.join(suffixes)}"
                    raise NotFoundError(f"{shown}, and MIME opens no other")
            elif is_file(real):
                return real
        if outside:
            allowed = quoted(map(str, dict.fromkeys(self.readable)))
            raise NotFoundError(
                f"{brief(name, 80)} lies outside of {allowed}, and MIME reads nothing there. "
                "Move it, or give its folder as search_path"
            )
        first, *more = dict.fromkeys(str(candidate.parent) for candidate in candidates)
        places = f"{first!r}" + (f", nor from {len(more)} other folders" if more else "")
        raise NotFoundError(f"no file {brief(Path(name).name, 80)} in {places}")

    def places(self) -> str:
        """In words: where packages are looked for."""
        named = {
            "search_path": self.search_path,
            "ROS_PACKAGE_PATH": self.ros_package_path,
            "AMENT_PREFIX_PATH": tuple(share.parent for share in self.ament_shares),
        }
        lists = {
            name: shortened(", ".join(repr(str(folder)) for folder in folders), 400) or "(none)"
            for name, folders in named.items()
        }
        words = ", ".join(f"{name} {folders}" for name, folders in lists.items())
        near = [folders for folders in self.bounds if folders]
        ways = [
            f"{folders[0]} and up to {folders[-1]}" if len(folders) > 1 else str(folders[0])
            for folders in near
        ]
        return f"{words}, or in {' or '.join(ways) or '(no folder)'}"

    def _candidates(self, name: str, beside: Path | None) -> list[Path]:
        """The paths that a name can mean, the first the likeliest."""
        match = _IN_PACKAGE.fullmatch(name)
        if match:
            package = match[1] or match[2] or ""
            folders = self.found(package)
            if not folders:
                raise NoPackageError(f"package {brief(package, 60)} not found in {self.places()}")
            return [folder / match[3] for folder in folders]
        rest = re.sub("^/+", "/", name.removeprefix(_SCHEME))
        if not rest:
            raise NotFoundError("its file has no name")
        if Path(rest).is_absolute():
            return [Path(rest)]
        own = [folders[0] for folders in self.bounds]
        above = [folder for folders in self.bounds for folder in folders[1:]]
        if ".." in Path(rest).parts:
            above = []  # it says itself from where
        near = [*own, *([beside] if beside else []), *above]
        return [folder / rest for folder in dict.fromkeys([*near, *self.search_path])]

    def _may_be_read(self, candidate: Path, real: Path) -> bool:
        """Whether the file `real`, to which the path `candidate` leads, lies where it may."""
        tops = [_real(top) for top in self.readable]
        if any(real.is_relative_to(top) for top in tops):
            return True
        for parent in self._workspaces():
            if (package := _child(parent, real)) and _is_package(package):
                return True
        plain = Path(os.path.normpath(candidate))
        installed = [_child(share, plain) for share in self.ament_shares]
        sources = [folder for package in installed if package for folder in self.sources(package)]
        return any(real.is_relative_to(folder) for folder in sources)

    def _workspaces(self) -> Iterator[Path]:
        """The folders that hold the file's own package, and maybe others beside it."""
        for top in self.tops:
            if _is_package(top) and not _is_home_or_above(top.parent):
                yield top.parent


def bounds_of(folder: Path) -> tuple[Path, ...]:
    """The folder and those above it in which files are looked for and may be read."""
    found = [folder]
    for above in folder.parents[:LEVELS]:
        if _is_marked(found[-1]) or _is_home_or_above(above):
            break
        found.append(above)
    return tuple(found)


def as_written(name: str) -> str:
    """A mesh's name that was not found, written so that it is no absolute path.

    What draws a robot opens absolute paths alone.
    """
    return _SCHEME + name if Path(name).is_absolute() else name


def _below(top: Path, package: str) -> Iterator[Path]:
    """Folders of this name that hold a package.xml; what is inside of a package is none."""
    for name, folders, files in os.walk(top):
        folder = Path(name)
        if _MANIFEST in files and folder.name == package:
            yield folder
        if _MANIFEST in files or len(folder.relative_to(top).parts) >= DEPTH:
            folders.clear()


def _child(folder: Path, path: Path) -> Path | None:
    """The folder directly inside of `folder` that holds the path."""
    parts = path.relative_to(folder).parts if path.is_relative_to(folder) else ()
    return folder / parts[0] if len(parts) > 1 else None


def _packages_in(place: Path, package: str) -> Iterator[Path]:
    """The folders of this name inside of a folder; the folder itself where it is the package."""
    if _is_folder(place / package):
        yield place / package
    if _is_folder(place) and _is_named(place, package):
        yield place


def _is_named(folder: Path, package: str) -> bool:
    """Whether the folder is this package: by its own name, or by that in its package.xml."""
    if folder.name == package:
        return True
    manifest = folder / _MANIFEST
    if not is_file(manifest):
        return False
    try:
        words = read_plain(manifest, _MOST_BYTES)
    except OSError:
        return False
    return (
        re.search(rb"<name>\s*" + re.escape(package.encode()) + rb"\s*</name>", words) is not None
    )


def _is_package(folder: Path) -> bool:
    return is_file(folder / _MANIFEST)


def _is_marked(folder: Path) -> bool:
    """Whether bounds end here: at a package or a repository."""
    return _is_package(folder) or _exists(folder / ".git")


def _is_folder(folder: Path) -> bool:
    try:
        return folder.is_dir()
    except (OSError, ValueError):  # a name that none can have
        return False


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _real(path: Path) -> Path:
    """The path with its links followed, as far as that can be done."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path.absolute()


def _is_home_or_above(folder: Path) -> bool:
    """True for the user's home folder, for those above it, and for the root of the disk."""
    if folder == folder.parent:
        return True
    try:
        return _real(Path.home()).is_relative_to(folder)
    except RuntimeError:  # a user without a home
        return False
