"""What a run returns: recorded fields over time, with units; to xarray, a file, a plot."""

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mime._files import write_atomically
from mime._text import nearest, quoted
from mime.core.drawing import Drawing
from mime.core.monitor import LimitExceeded
from mime.core.printing import cut
from mime.core.program import Program
from mime.core.step import SimulationState
from mime.core.upward import drawer
from mime.running import result_file
from mime.running.contents import Contents, Variable
from mime.running.drawing import Page
from mime.running.result_file import ResultError
from mime.running.scene import scene

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray


@dataclasses.dataclass(frozen=True)
class Divergence:
    """Where a value stopped being finite."""

    node: str
    field: str
    time_s: float

    def __str__(self) -> str:
        return f"{self.node}.{self.field} is not finite at t = {self.time_s:g} s"


@dataclasses.dataclass(frozen=True)
class Trajectory(Mapping[str, Mapping[str, np.ndarray]]):
    """`trajectory["rotor"]["current"]`: an array over time, or (member, time) for a batch."""

    time: np.ndarray
    """Seconds of each sample: a sample is the state *after* a step, so the first is not at 0."""
    fields: Mapping[str, Mapping[str, np.ndarray]]
    units: Mapping[str, Mapping[str, str]]
    descriptions: Mapping[str, Mapping[str, str]]
    parameters: Mapping[str, Mapping[str, np.ndarray]]
    """Parameters by node; those that vary over a batch have a leading member axis."""
    varied: tuple[tuple[str, str], ...] = ()
    """`(node, parameter)` of the parameters that vary over the batch."""
    batch_size: int | None = None
    final_state: SimulationState | None = None
    """The whole state after the last step (not saved to files); a batch's is stacked by member."""
    diverged: Mapping[int, Divergence] = dataclasses.field(default_factory=dict)
    """Members of a batch that left the finite numbers, by index."""
    warnings: tuple[LimitExceeded, ...] = ()
    """Limits of joints and motors that the run passed: which, by how much, when first."""
    program: Program | None = None
    """The graph that was run, as a value; files keep what there is to see of it, `drawing`."""
    drawn: Drawing | None = None
    """What there is to see, of a result that was read from a file."""

    @cached_property
    def drawing(self) -> Drawing:
        """What there is to see of the graph: frames that follow recorded fields, and shapes."""
        if self.drawn is not None:
            return self.drawn
        return Drawing() if self.program is None else scene(self.program.nodes, self.program.wiring)

    def __getstate__(self) -> dict[str, Any]:
        """Without the graph, whose edges may hold functions that do not travel."""
        own = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        seen = self.drawn if self.program is None else self.drawing
        return own | {"program": None, "drawn": seen}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def __getitem__(self, node: str) -> Mapping[str, np.ndarray]:
        if node not in self.fields:
            raise KeyError(
                f"no node {node!r} was recorded{nearest(node, self)} ({quoted(self.fields)})"
            )
        return _Fields(node, self.fields[node])

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __repr__(self) -> str:
        size = "" if self.batch_size is None else f"{self.batch_size} members, "
        span = f"{self.time[0]:g} to {self.time[-1]:g} s" if len(self.time) else "no samples"
        lines = []
        for node, fields in self.fields.items():
            for field, values in fields.items():
                shape = "x".join(map(str, values.shape))
                lines.append(f"  {node}.{field} [{self.units[node][field] or '1'}] {shape}")
        heading = f"Trajectory({size}{len(self.time)} samples, {span})"
        return "\n".join([heading, *cut(lines, more=": .fields")])

    def to_xarray(self) -> "xarray.Dataset":
        """A dataset: variables `node.field` with units and descriptions, parameters as attributes.

        In a batch, parameters that vary are coordinates along `member`.
        """
        return self._contents().to_xarray()

    def _contents(self) -> Contents:
        lead = ("time",) if self.batch_size is None else ("member", "time")
        variables = {}
        for node, fields in self.fields.items():
            for field, values in fields.items():
                name = f"{node}.{field}"
                inner = tuple(f"{name}.axis{i}" for i in range(values.ndim - len(lead)))
                about = {
                    "units": self.units[node][field] or "1",
                    "long_name": self.descriptions[node][field] or name,
                }
                variables[name] = Variable((*lead, *inner), values, about)
        about_time = {"units": "s", "long_name": "time"}
        coordinates = {"time": Variable(("time",), self.time, about_time)}
        attributes: dict[str, Any] = {"format": result_file.FORMAT}
        for node, given in self.parameters.items():
            for name, value in given.items():
                key = f"{node}.{name}"
                if (node, name) in self.varied:
                    inner = tuple(f"{key}.axis{i}" for i in range(value.ndim - 1))
                    coordinates[key] = Variable(("member", *inner), value, {})
                else:
                    attributes[key] = _attribute(value)
        if self.diverged:
            attributes["diverged"] = json.dumps(
                {index: dataclasses.astuple(where) for index, where in self.diverged.items()}
            )
        if self.warnings:
            attributes["warnings"] = json.dumps([dataclasses.astuple(w) for w in self.warnings])
        if drawing := self.drawing:
            attributes["drawing"] = json.dumps(drawing.to_data(), separators=(",", ":"))
        return Contents(variables, coordinates, attributes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a NetCDF file with checksums, whole or not at all."""
        content = result_file.to_bytes(self._contents())

        def write(part: Path) -> None:
            part.write_bytes(content)

        write_atomically(path, write)

    @staticmethod
    def load(path: str | os.PathLike[str], *, salvage: bool = False) -> "Trajectory":
        """Read what `save` wrote.

        A file that was changed since is refused with a `ResultError` that names the damaged fields;
        with `salvage`, all that is sound is read, and a `SalvageWarning` names what is lost.
        """
        contents = result_file.read(path, salvage)
        try:
            return _from_contents(contents)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            words = f"{path}: not a trajectory of MIME: {result_file.METADATA} make no sense"
            raise ResultError(words, [result_file.METADATA]) from error

    def replay(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str = "",
        fields: Sequence[str] | None = None,
        members: Sequence[int] | None = None,
        samples: int = 3000,
    ) -> Page:
        """A page to watch the run on: the robot in 3D beside its curves, in one file.

        path      write it there; a notebook shows what is returned, and its `open()` a browser
        fields    curves to show, as `plot` takes them (default: all that are few enough)
        members   of a batch; the first in full, the others as ghosts (default: eight of them)
        samples   at most how many instants it holds
        """
        return drawer("Trajectory.replay")(self, path, title, fields, members, samples)

    def animate(
        self, path: str | os.PathLike[str], *, fps: float = 20.0, speed: float = 1.0
    ) -> None:
        """Write a film of the run, drawn by matplotlib, for slides; `speed` 2 is twice as fast.

        The path ends in `.gif`, or in `.mp4` where the program ffmpeg is installed.
        """
        drawer("Trajectory.animate")(self, path, fps, speed)

    def plot(
        self,
        *fields: str | Sequence[str],
        title: str = "",
        against: str | Sequence[str] = (),
        unit: str | None = None,
    ) -> "matplotlib.figure.Figure":
        """Draw fields over time: `plot("arm.joint_angles")`, one or several, by default all.

        Neighbours of one unit share axes. Components have their names: joints, x y z; those of
        another unit (the quaternion of a pose) have axes of their own. A notebook shows the figure.

        fields     `node.field`, `node.field[0]`, `node.field[0:3]`
        against    what to draw them over in place of time: one field, or one for each
        unit       in place of the fields' own, where they can be shown in it: `deg`, `mm`, `rpm`
        """
        return drawer("Trajectory.plot")(self, fields, title, against, unit)

    def _repr_html_(self) -> str:
        return drawer("Trajectory.html")(self)


class _Fields(dict[str, np.ndarray]):
    """The recorded fields of one node; a wrong name is answered with the right ones."""

    def __init__(self, node: str, fields: Mapping[str, np.ndarray]):
        super().__init__(fields)
        self._node = node

    def __missing__(self, field: str) -> np.ndarray:
        raise KeyError(
            f"{field!r} of {self._node!r} was not recorded{nearest(field, self)} ({quoted(self)})"
        )


def _attribute(value: np.ndarray) -> Any:
    """A parameter in a form that NetCDF can keep as an attribute."""
    value = np.asarray(value)
    if value.dtype.kind in "iuf" and (value.ndim == 0 or (value.ndim == 1 and value.size > 1)):
        return value if value.ndim else value.item()
    return json.dumps(value.tolist())


def _from_contents(contents: Contents) -> Trajectory:
    fields: dict[str, dict[str, np.ndarray]] = {}
    units: dict[str, dict[str, str]] = {}
    descriptions: dict[str, dict[str, str]] = {}
    for name, variable in contents.fields.items():
        node, _, field = name.rpartition(".")
        fields.setdefault(node, {})[field] = variable.values
        unit = variable.about["units"]
        units.setdefault(node, {})[field] = "" if unit == "1" else unit
        descriptions.setdefault(node, {})[field] = variable.about["long_name"]
    parameters: dict[str, dict[str, np.ndarray]] = {}
    varied = []
    for name, coordinate in contents.coordinates.items():
        if name != "time":
            node, parameter = _split_parameter(name, fields)
            parameters.setdefault(node, {})[parameter] = coordinate.values
            varied.append((node, parameter))
    for name, value in contents.attributes.items():
        if name not in ("format", "diverged", "warnings", "drawing"):
            node, parameter = _split_parameter(name, fields)
            decoded = json.loads(value) if isinstance(value, str) else value
            parameters.setdefault(node, {})[parameter] = np.asarray(decoded)
    where = json.loads(contents.attributes.get("diverged", "{}"))
    return Trajectory(
        contents.coordinates["time"].values,
        fields,
        units,
        descriptions,
        parameters,
        tuple(varied),
        contents.sizes.get("member"),
        drawn=Drawing.from_data(
            json.loads(contents.attributes.get("drawing", '{"kind": "drawing"}'))
        ),
        diverged={int(index): Divergence(*entry) for index, entry in where.items()},
        warnings=tuple(
            LimitExceeded(*entry) for entry in json.loads(contents.attributes.get("warnings", "[]"))
        ),
    )


def _split_parameter(name: str, nodes: Mapping[str, Any]) -> tuple[str, str]:
    """`rotor.r_ohm`, `arm.tree.masses` -> (node, parameter)."""
    for node in sorted(nodes, key=len, reverse=True):
        if name.startswith(node + "."):
            return node, name.removeprefix(node + ".")
    node, _, parameter = name.partition(".")
    return node, parameter
