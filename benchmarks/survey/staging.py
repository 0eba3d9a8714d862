"""A copy of an MJCF with all that it names, and a box or a pixel for each file that is missing."""

import shutil
import struct
import zlib
from collections.abc import Iterator
from itertools import product
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from xml.etree import ElementTree

_CORNERS = [tuple(0.05 * x for x in corner) for corner in product((-1, 1), repeat=3)]
_FACES = [
    *((0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)),
    *((2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)),
]
"""A cube of 0.1 m, the corners of each triangle counterclockwise from outside."""
_LFS = b"version https://git-lfs"
_FOLDERS = {"texture": ("texturedir", "assetdir"), "hfield": ("meshdir", "assetdir")}


class Staged(NamedTuple):
    """The copy, and how many files were replaced in it."""

    file: Path
    replaced: int


def staged(file: Path, repository: Path, folder: Path) -> Staged:
    """Copy the file with includes, meshes and textures into `folder`, at their own places.

    The copy has a `.git` at its top, as a clone has. A mesh that is not in the checkout, or only as
    a pointer of git-lfs, is a box of 0.1 m there, a texture a grey pixel.
    """
    (folder / ".git").mkdir(parents=True)
    replaced = 0
    for source, kind in _named(file):
        place = _within(source, repository)
        if place is None:
            continue
        target = folder / place
        if target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if _is_there(source):
            shutil.copyfile(source, target)
        elif kind != "include":
            target.write_bytes(_substitute(target.suffix.lower()))
            replaced += 1
    return Staged(folder / file.relative_to(repository), replaced)


def expanded(file: Path) -> ElementTree.Element | None:
    """The root with each <include> replaced by what it includes; None where it is no XML."""
    try:
        root = ElementTree.fromstring(file.read_bytes())
    except (ElementTree.ParseError, OSError, ValueError):
        return None
    seen = {file.resolve()}
    _expand(root, file.parent, file.parent, seen)
    return root


def _expand(element: ElementTree.Element, main: Path, own: Path, seen: set[Path]) -> None:
    parts: list[ElementTree.Element] = []
    for part in element:
        if part.tag != "include":
            _expand(part, main, own, seen)
            parts.append(part)
            continue
        part.set("found", "")
        for folder in (main, own):
            inner = (folder / part.get("file", "")).resolve()
            if inner in seen or not inner.is_file():
                continue
            seen.add(inner)
            try:
                root = ElementTree.fromstring(inner.read_bytes())
            except ElementTree.ParseError:
                break
            _expand(root, main, inner.parent, seen)
            part.set("found", str(inner))
            parts += [part, *root]
            break
    element[:] = parts


def _named(file: Path) -> Iterator[tuple[Path, str]]:
    """Every file that the model is made of, with the tag that names it."""
    yield file, "include"
    root = expanded(file)
    if root is None:
        return
    settings: dict[str, str] = {}
    for compiler in root.iter("compiler"):
        settings |= compiler.attrib
    for element in root.iter():
        if element.tag == "include":
            if place := element.get("found"):
                yield Path(place), "include"
            continue
        for attribute, name in element.attrib.items():
            if attribute.startswith("file") and name and element.tag != "model":
                yield _place(file.parent, element.tag, name, settings), element.tag


def _place(folder: Path, tag: str, name: str, settings: dict[str, str]) -> Path:
    """Where MuJoCo looks for an asset."""
    pure = PurePosixPath(name.replace("\\", "/"))
    if settings.get("strippath") == "true":
        pure = PurePosixPath(pure.name)
    for key in _FOLDERS.get(tag, ("meshdir", "assetdir")):
        if key in settings:
            return folder / settings[key] / pure
    return folder / pure


def _within(source: Path, repository: Path) -> Path | None:
    """The place in the repository, by the name alone: a link is not followed."""
    parts: list[str] = []
    for part in source.parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    plain = Path(*parts)
    return plain.relative_to(repository) if plain.is_relative_to(repository) else None


def _is_there(source: Path) -> bool:
    if not source.is_file():
        return False
    with source.open("rb") as stream:
        return not stream.read(len(_LFS)).startswith(_LFS)


def _substitute(suffix: str) -> bytes:
    if suffix == ".stl":
        triangles = [struct.pack("<12fH", 0, 0, 0, *_corners(face), 0) for face in _FACES]
        return bytes(80) + struct.pack("<I", len(triangles)) + b"".join(triangles)
    if suffix == ".msh":
        head = struct.pack("<4i", len(_CORNERS), 0, 0, len(_FACES))
        points = struct.pack("<24f", *(x for corner in _CORNERS for x in corner))
        return head + points + struct.pack("<36i", *(i for face in _FACES for i in face))
    if suffix == ".png":
        return _pixel()
    lines = [f"v {x} {y} {z}" for x, y, z in _CORNERS]
    lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in _FACES]
    return "\n".join(lines).encode()


def _corners(face: tuple[int, int, int]) -> list[float]:
    return [x for corner in face for x in _CORNERS[corner]]


def _pixel() -> bytes:
    def chunk(name: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + content))
        return struct.pack(">I", len(content)) + name + content + check

    head = struct.pack(">2I5B", 1, 1, 8, 2, 0, 0, 0)
    body = zlib.compress(b"\0\x80\x80\x80")
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", body), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
