"""Files of triangles for a page: read by trimesh, quantised, thinned when they are too many.

trimesh is the extra `meshes`. Without it, or without the file, a shape is drawn as its substitute,
its link's inertia box, and the page says so.
"""

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mime._files import MOST_MESH_BYTES, is_file, read_plain
from mime.replay.codec import COARSE, Block

MOST_TRIANGLES = 150_000
"""Of all meshes of a page together; with more, each is thinned on a grid until they fit."""
_INSTALL = "install the extra: pip install 'mime-sim[meshes]'"


class Triangles(NamedTuple):
    """A mesh: what is in a file."""

    vertices: np.ndarray
    """(V, 3), m"""
    corners: np.ndarray
    """(T, 3), vertices of each triangle"""
    bodies: np.ndarray
    """(T,), which of the file's bodies each belongs to, in rising order"""
    colours: tuple[Any, ...]
    """Of each body, as RGB from 0 to 1; None where the file says none."""
    flat: bool
    """Whether faces are drawn flat: the file has no normals."""


class MeshError(ValueError):
    """A mesh that cannot be had; its words say why."""


def read_mesh(path: str) -> Triangles:
    """The triangles of a file in STL, OBJ, DAE or GLB, in metres and its own axes.

    A name that is no absolute path is one that the reader of the robot did not find.
    """
    file = Path(path)
    if not file.is_absolute() or not is_file(file):
        raise MeshError("there is no such file")
    try:
        import trimesh
    except ImportError as error:
        raise MeshError(f"trimesh is not installed; {_INSTALL}") from error
    try:
        content = read_plain(file, MOST_MESH_BYTES + 1)
    except OSError as error:
        raise MeshError(f"it cannot be read ({error.strerror})") from error
    if len(content) > MOST_MESH_BYTES:
        raise MeshError(f"it is longer than {MOST_MESH_BYTES} bytes")
    try:
        loaded: Any = trimesh.load(
            io.BytesIO(content),
            file_type=file.suffix.lower().removeprefix("."),
            resolver=_Beside(file.parent),
            force="scene",
            process=False,
        )
        bodies = loaded.dump() if hasattr(loaded, "dump") else [loaded]
        bodies = [body for body in bodies if hasattr(body, "faces") and len(body.faces)]
    except Exception as error:  # of any of the readers behind trimesh, whatever is in the file
        raise MeshError(f"trimesh cannot read it: {error or type(error).__name__}") from error
    if not bodies:
        raise MeshError("it has no triangles")
    flat = Path(path).suffix.lower() == ".stl"
    vertices, corners, numbers, count = [], [], [], 0
    for number, body in enumerate(bodies):
        body.merge_vertices(merge_tex=True, merge_norm=flat)
        vertices.append(np.asarray(body.vertices, float))
        corners.append(np.asarray(body.faces, np.int64) + count)
        numbers.append(np.full(len(body.faces), number))
        count += len(body.vertices)
    found = np.concatenate(vertices)
    if not np.isfinite(found).all():
        raise MeshError("it has a vertex that is not finite")
    colours = tuple(_colour(body) for body in bodies)
    return Triangles(found, np.concatenate(corners), np.concatenate(numbers), colours, flat)


def _colour(body: Any) -> Any:
    """The colour that a file gives to a body; None where it gives none."""
    visual = body.visual
    if not getattr(visual, "defined", False):
        return None
    found = getattr(getattr(visual, "material", visual), "main_color", None)
    return None if found is None else tuple(round(float(x) / 255.0, 3) for x in found[:3])


def thinned(mesh: Triangles, bits: int) -> Triangles:
    """Vertices of one cell of a grid of 2^bits along the longest side made one."""
    low = mesh.vertices.min(axis=0)
    cell = max(float(np.ptp(mesh.vertices, axis=0).max()), 1e-12) / (2**bits - 1)
    cells = np.round((mesh.vertices - low) / cell).astype(np.int64)
    _, first, where = np.unique(cells, axis=0, return_index=True, return_inverse=True)
    corners = where.reshape(-1)[mesh.corners]
    a, b, c = corners.T
    whole = np.flatnonzero((a != b) & (b != c) & (c != a))
    _, once = np.unique(np.sort(corners[whole], axis=1), axis=0, return_index=True)
    kept = whole[np.sort(once)]
    return Triangles(mesh.vertices[first], corners[kept], mesh.bodies[kept], mesh.colours, True)


class _Beside(Mapping[str, bytes]):
    """The files that a mesh names, its materials and buffers: plain ones in its own folder."""

    def __init__(self, folder: Path):
        self._folder = folder.resolve()

    def get(self, name: str, default: Any = None) -> bytes:
        return self[name]

    def __getitem__(self, name: str) -> bytes:
        file = (self._folder / name.strip()).resolve()
        if not file.is_relative_to(self._folder):
            raise FileNotFoundError(name)
        return read_plain(file, MOST_MESH_BYTES)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def namespaced(self, namespace: str) -> "_Beside":
        """The same, from a folder below."""
        return _Beside(self._folder / namespace)


class Meshes:
    """The meshes of a page, each file once."""

    def __init__(self, block: Block, most: int = MOST_TRIANGLES):
        self._block, self._most = block, most
        self._found: dict[str, Triangles | MeshError] = {}

    def read(self, path: str) -> Triangles | MeshError:
        """The triangles, or why there are none."""
        if path not in self._found:
            try:
                self._found[path] = read_mesh(path)
            except MeshError as error:
                self._found[path] = error
        return self._found[path]

    def packed(self) -> tuple[list[dict[str, Any]], dict[str, int], list[str]]:
        """The tables of all that were found, the number of each file, and notes in words."""
        sound = {p: found for p, found in self._found.items() if not isinstance(found, MeshError)}
        notes = []
        bits, before = 10, sum(len(mesh.corners) for mesh in sound.values())
        total = before
        while total > self._most and bits > 3:
            sound = {path: thinned(found, bits) for path, found in sound.items()}
            total, bits = sum(len(mesh.corners) for mesh in sound.values()), bits - 1
        if total < before:
            notes.append(f"meshes are drawn with {total:,} of their {before:,} triangles")
        tables = [self._table(found) for found in sound.values()]
        return tables, {path: k for k, path in enumerate(sound)}, notes

    def _table(self, mesh: Triangles) -> dict[str, Any]:
        vertices, corners = mesh.vertices, mesh.corners
        # In the order in which triangles meet them, neighbours stand beside each other.
        order, first = np.unique(corners, return_index=True)
        order = order[np.argsort(first)]
        number = np.empty(len(vertices), np.int64)
        number[order] = np.arange(len(order))
        return {
            "vertices": self._block.add(vertices[order], COARSE),
            "triangles": self._block.add_whole(number[corners]),
            "flat": mesh.flat,
            "groups": [
                {"count": int(np.sum(mesh.bodies == number)), "rgb": colour}
                for number, colour in enumerate(mesh.colours)
            ],
        }
