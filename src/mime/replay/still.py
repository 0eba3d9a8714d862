"""A run as a still picture, and as a GIF or an MP4, by matplotlib: for where there is no browser.

Solids and meshes are drawn as their faces, far ones first, in the colours of their scales; a mesh
is thinned to what a picture can show.
"""

import io
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mime._files import write_atomically
from mime.core.drawing import Boxes, Drawing, Line, Mesh, Prism, Ray, Shape, Solid, Trail, Value
from mime.core.problem import InputError
from mime.replay.content import Recorded, scale_end
from mime.replay.meshes import MeshError, read_mesh, thinned
from mime.replay.motion import matrix_of, world_matrices
from mime.running.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MESH_BITS = 5
_PLAIN = (0.72, 0.74, 0.78, 1.0)
_RAMP = np.array([[68, 119, 170], [102, 178, 162], [232, 210, 74], [238, 136, 51], [204, 34, 34]])
_LIGHT = np.array([0.4, -0.6, 0.7])
_MOST_FRAMES = 600


class Stage:
    """A run, ready to be drawn at any of its samples."""

    def __init__(self, run: Trajectory, samples: int):
        self.drawing: Drawing = run.drawing
        self.recorded = Recorded(run, samples, None)
        self.time = run.time[self.recorded.chosen]
        self._faces = [_faces(shape) for shape in self.drawing.shapes]
        self._trails = self._all_trails()
        self._span = self._limits()

    def draw(self, sample: int, size_inches: float = 4.0) -> "Figure":
        """The picture at a sample."""
        from matplotlib.figure import Figure
        from mpl_toolkits.mplot3d.art3d import Poly3DCollection

        figure = Figure(figsize=(1.25 * size_inches, size_inches))
        axes: Any = figure.add_axes((0.0, 0.0, 1.0, 1.0), projection="3d")
        axes.autoscale(False)  # Matplotlib fills up short polygons with anything
        frames = self._frames(sample)
        polygons: list[np.ndarray] = []
        colours: list[Any] = []
        for shape, faces in zip(self.drawing.shapes, self._faces):
            if shape.hidden:
                continue
            T = frames[shape.frame] @ matrix_of(shape.pose)
            standing, colour = self._standing(shape, sample), self._colour(shape, sample)
            for k, face in enumerate(faces):
                if standing is None or standing[k // 6]:
                    polygons.append(face @ T[:3, :3].T + T[:3, 3])
                    colours.append(_shaded(colour, polygons[-1]))
            self._lines(axes, shape, T, sample)
        axes.add_collection3d(Poly3DCollection(polygons, facecolors=colours, edgecolors="none"))
        for shape, way in self._trails:
            style = {
                "color": shape.rgba,
                "linewidth": 1.4,
                "linestyle": "--" if shape.dashed else "-",
            }
            axes.plot(*way.T, **style)
        centre, radius = self._span
        flat = radius[2] < 0.2 * max(radius[:2])
        for name, c, r in zip("xyz", centre, radius):
            getattr(axes, f"set_{name}lim")(c - r, c + r)
        axes.set_box_aspect(radius, zoom=0.95 if radius[2] >= max(radius[:2]) else 1.25)
        axes.view_init(elev=60 if flat else 22, azim=-90 if flat else -52)
        axes.set_axis_off()
        axes.text2D(0.03, 0.03, f"t = {self.time[sample]:.2f} s", transform=axes.transAxes)
        return figure

    def _lines(self, axes: Any, shape: Shape, T: np.ndarray, sample: int) -> None:
        points = None
        if isinstance(shape, Line):
            points = np.asarray(shape.points)
        elif isinstance(shape, Ray):
            length = self._read(shape.length, 0, sample)
            points = np.array([[0.0, 0.0, 0.0], [length if np.isfinite(length) else 0.0, 0.0, 0.0]])
        if points is not None:
            way = points @ T[:3, :3].T + T[:3, 3]
            dashed = isinstance(shape, Line) and shape.dashed
            style = {"color": shape.rgba or _PLAIN, "linestyle": "--" if dashed else "-"}
            axes.plot(*way.T, **style, linewidth=1.2)

    def _standing(self, shape: Shape, sample: int) -> np.ndarray | None:
        if not isinstance(shape, Boxes) or not shape.field:
            return None
        values = self.recorded[shape.field]
        if values is None:
            return np.zeros(len(shape.boxes), bool)
        return values[0, min(sample, values.shape[1] - 1)] == shape.at

    def _read(self, value: Value, step: int, sample: int) -> float:
        values = self.recorded[value.field]
        if values is None:
            return float("nan")
        x = values[0, min(sample, values.shape[1] - 1), value.index + step]
        return value.scale * float(x) + value.offset

    def _frames(self, sample: int) -> dict[str, np.ndarray]:
        return world_matrices(self.drawing, lambda value, step: self._read(value, step, sample))

    def _colour(self, shape: Shape, sample: int) -> Any:
        colour = np.array(shape.rgba or _PLAIN)
        scale = shape.scale
        if scale is None:
            return colour
        x = self._read(scale.value, 0, sample)
        if not np.isfinite(x):
            return colour
        x = abs(x) if scale.magnitude else x
        span = scale_end(scale, self.recorded) - scale.low
        part = np.clip((x - scale.low) / (span or 1.0), 0.0, 1.0) * (len(_RAMP) - 1)
        k = min(int(part), len(_RAMP) - 2)
        mixed = _RAMP[k] + (part - k) * (_RAMP[k + 1] - _RAMP[k])
        return np.array([*mixed / 255.0, colour[3]])

    def _all_trails(self) -> list[tuple[Trail, np.ndarray]]:
        trails = [shape for shape in self.drawing.shapes if isinstance(shape, Trail)]
        if not trails:
            return []
        every = max(1, len(self.time) // 300)
        ways = [self._frames(k) for k in range(0, len(self.time), every)]
        return [(t, np.array([frames[t.frame][:3, 3] for frames in ways])) for t in trails]

    def _limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Centre and half sides of what is seen over the run."""
        points = [way for _, way in self._trails]
        for sample in np.unique(np.linspace(0, len(self.time) - 1, 5).astype(int)):
            frames = self._frames(sample)
            for shape, faces in zip(self.drawing.shapes, self._faces):
                if faces and not shape.hidden:
                    T = frames[shape.frame] @ matrix_of(shape.pose)
                    points.append(np.concatenate(faces) @ T[:3, :3].T + T[:3, 3])
        found = np.concatenate(points) if points else np.array([[-0.1] * 3, [0.1] * 3])
        low, high = found.min(axis=0), found.max(axis=0)
        least = 0.02 * float(np.max(high - low)) + 1e-6
        return 0.5 * (low + high), np.maximum(0.5 * (high - low), least)


def still(run: Trajectory, at: float = 0.35) -> "Figure":
    """The picture of a run after a part of it."""
    stage = Stage(run, 300)
    return stage.draw(round(at * (len(stage.time) - 1)))


def write_gif(run: Trajectory, file: Path, fps: float, speed: float) -> None:
    """A film of the run, as many pictures a second as asked for."""
    from PIL import Image

    pictures = [
        Image.open(io.BytesIO(png)).convert("RGB").quantize(64) for png in _pngs(run, fps, speed)
    ]
    options: dict[str, Any] = {
        "save_all": True,
        "append_images": pictures[1:],
        "loop": 0,
        "format": "gif",
    }
    write_atomically(file, lambda part: pictures[0].save(part, duration=1000.0 / fps, **options))


def write_mp4(run: Trajectory, file: Path, fps: float, speed: float) -> None:
    """The same film, by the program `ffmpeg`: without a window."""
    program = shutil.which("ffmpeg")
    if program is None:
        raise InputError(
            f"{file.name} needs the program ffmpeg, which is not on the PATH. Install it "
            "(apt install ffmpeg, brew install ffmpeg, winget install ffmpeg), or write a .gif",
            place=("path",),
        )
    read = ["-f", "image2pipe", "-framerate", f"{fps:g}", "-c:v", "png", "-i", "-"]
    wanted = ["-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f", "mp4", "-y"]

    def write(part: Path) -> None:
        words = [program, "-v", "error", *read, *wanted, str(part)]
        told = subprocess.run(words, input=b"".join(_pngs(run, fps, speed)), capture_output=True)
        if told.returncode != 0:
            raise OSError(f"ffmpeg could not write {file}: {told.stderr.decode().strip()}")

    write_atomically(file, write)


def _pngs(run: Trajectory, fps: float, speed: float) -> Iterator[bytes]:
    """The pictures of a film."""
    duration = float(run.time[-1] - run.time[0]) if len(run.time) else 0.0
    count = int(np.clip(round(duration * fps / speed), 2, _MOST_FRAMES))
    stage = Stage(run, count)
    for sample in range(len(stage.time)):
        buffer = io.BytesIO()
        stage.draw(sample).savefig(buffer, format="png", dpi=90)  # 450 x 360: films want even sides
        yield buffer.getvalue()


def _faces(shape: Shape) -> list[np.ndarray]:
    """The polygons of a shape, in its own axes."""
    if isinstance(shape, Mesh):
        try:
            mesh = thinned(read_mesh(shape.path), _MESH_BITS)
        except MeshError:
            return [] if shape.substitute is None else _placed_substitute(shape)
        return list(mesh.vertices[mesh.corners] * np.asarray(shape.stretch))
    if isinstance(shape, Solid):
        return _solid_faces(shape)
    if isinstance(shape, Prism):
        low = np.array([(*point, 0.0) for point in shape.outline])
        return _drawn_out(low, shape.height)
    if isinstance(shape, Boxes):
        boxes = np.asarray(shape.boxes, float).reshape(-1, 6)
        return [face for box in boxes for face in _box(box[:3], box[3:])]
    return []


def _placed_substitute(shape: Mesh) -> list[np.ndarray]:
    """The substitute's faces, in the mesh's own axes: both hang on the same frame."""
    assert shape.substitute is not None
    T = np.linalg.inv(matrix_of(shape.pose)) @ matrix_of(shape.substitute.pose)
    return [face @ T[:3, :3].T + T[:3, 3] for face in _faces(shape.substitute)]


def _solid_faces(shape: Solid) -> list[np.ndarray]:
    if shape.form == "box":
        return _box(np.zeros(3), np.asarray(shape.size))
    around = np.linspace(0.0, 2.0 * np.pi, 17)
    if shape.form in ("cylinder", "capsule"):
        r, length = shape.size
        ring = np.column_stack(
            [r * np.cos(around[:-1]), r * np.sin(around[:-1]), 0.0 * around[:-1]]
        )
        ring[:, 2] = -0.5 * length
        return _drawn_out(ring, length)
    radii = np.asarray(shape.size if len(shape.size) == 3 else shape.size * 3)
    up = np.linspace(0.0, np.pi, 9)
    grid = np.stack(
        [
            np.outer(np.sin(up), np.cos(around)),
            np.outer(np.sin(up), np.sin(around)),
            np.outer(np.cos(up), np.ones_like(around)),
        ],
        axis=-1,
    )
    grid = grid * radii
    return [
        grid[[i, i + 1, i + 1, i], [j, j, j + 1, j + 1]]
        for i in range(len(up) - 1)
        for j in range(len(around) - 1)
    ]


def _drawn_out(low: np.ndarray, height: float) -> list[np.ndarray]:
    high = low + np.array([0.0, 0.0, height])
    sides = [np.array([low[k - 1], low[k], high[k], high[k - 1]]) for k in range(len(low))]
    return [low[::-1], high, *sides]


def _box(centre: np.ndarray, sides: np.ndarray) -> list[np.ndarray]:
    found = []
    for axis in range(3):
        for sign in (-0.5, 0.5):
            u, v = np.eye(3)[(axis + 1) % 3] * 0.5, np.eye(3)[(axis + 2) % 3] * 0.5
            middle = np.eye(3)[axis] * sign
            corners = [middle + u + v, middle - u + v, middle - u - v, middle + u - v]
            found.append(centre + np.array(corners) * sides)
    return found


def _shaded(colour: np.ndarray, polygon: np.ndarray) -> np.ndarray:
    """The colour as light from one side makes it."""
    normal = np.cross(polygon[1] - polygon[0], polygon[2] - polygon[0])
    length = float(np.linalg.norm(normal)) * float(np.linalg.norm(_LIGHT))
    part = abs(float(normal @ _LIGHT)) / length if length > 0 else 1.0
    return np.array([*(colour[:3] * (0.55 + 0.45 * part)), colour[3]])
