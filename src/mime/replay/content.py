"""What the page of a run holds: samples, fields, shapes, curves, and what could not be drawn."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mime.core.drawing import ColourScale, Drawing, Mesh, Twist, Value, parts, to_data
from mime.replay.codec import DRAWN, EXACT, Block
from mime.replay.meshes import MeshError, Meshes
from mime.running.trajectory import Trajectory

MOST_SAMPLES = 3000
MOST_MEMBERS = 8
MOST_PLOTS = 24
OPEN_PLOTS = 4
_MOST_CURVES = 12
_TWIST_RAD = 0.6
"""How far the largest deflection of a run shall be shown."""
_FACTORS = np.array([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000])
_PLACES = {3: ("x", "y", "z"), 7: ("x", "y", "z", "qw", "qx", "qy", "qz")}


@dataclasses.dataclass(frozen=True)
class Curve:
    """A number of a field over time."""

    field: str
    index: int
    label: str
    unit: str
    scale: float = 1.0
    minus: tuple[str, int] | None = None
    dashed: bool = False
    colour: int | None = None


@dataclasses.dataclass(frozen=True)
class Plot:
    """Curves of one unit on one pair of axes."""

    title: str
    curves: tuple[Curve, ...]


class Recorded:
    """The chosen samples and members of a run's fields."""

    def __init__(self, run: Trajectory, samples: int, members: Sequence[int] | None):
        count = len(run.time)
        self.run = run
        self.chosen = np.unique(np.linspace(0, count - 1, min(count, samples)).round().astype(int))
        batch = run.batch_size
        self.members: list[int] | None = None
        if batch is not None:
            spread = np.linspace(0, batch - 1, min(batch, MOST_MEMBERS)).round().astype(int)
            self.members = [int(m) for m in (spread if members is None else members)]
        self.notes: list[str] = []
        if len(self.chosen) < count:
            self.notes.append(f"{len(self.chosen):,} of {count:,} recorded instants are shown")
        self._values: dict[str, np.ndarray | None] = {}

    def __getitem__(self, name: str) -> np.ndarray | None:
        """(members, samples, components) of `node.field`; None when there is nothing of it."""
        if name not in self._values:
            self._values[name] = self._find(name)
        return self._values[name]

    def _find(self, name: str) -> np.ndarray | None:
        node, _, field = name.rpartition(".")
        found = self.run.fields.get(node, {}).get(field)
        if found is not None:
            found = found[:, self.chosen] if self.members is not None else found[None, self.chosen]
            found = found[self.members] if self.members is not None else found
            return np.asarray(found).reshape(*found.shape[:2], -1)
        last = self._last(node, field)
        if last is None:
            self.notes.append(f"{name} was not recorded: what follows it stands still")
            return None
        self.notes.append(f"{name} was not recorded: it is shown as it was at the end")
        return last

    def _last(self, node: str, field: str) -> np.ndarray | None:
        """(members, 1, components) of the state at the end."""
        state = self.run.final_state
        if state is None or field not in state.nodes.get(node, {}):
            return None
        last = np.asarray(state.nodes[node][field])
        last = last[self.members] if self.members is not None else last[None]
        return last.reshape(len(last), 1, -1)


def page_content(
    run: Trajectory,
    title: str,
    about: str = "",
    plots: Sequence[Plot] | None = None,
    samples: int = MOST_SAMPLES,
    members: Sequence[int] | None = None,
) -> tuple[dict[str, Any], Block]:
    """The scene as JSON has it, and the block of its numbers."""
    block = Block()
    recorded = Recorded(run, samples, members)
    drawing = run.drawing
    moving = [part for frame in drawing.frames for part in parts(frame)]
    exact = {part.field for part in moving if isinstance(part, Value)}
    needed = drawing.fields()
    shown = list(plots) if plots is not None else default_plots(run, drawing)
    curves = [curve for plot in shown for curve in plot.curves]
    names = [*needed, *(curve.field for curve in curves), *(c.minus[0] for c in curves if c.minus)]
    fields = []
    for name in dict.fromkeys(names):
        values = recorded[name]
        if values is not None:
            count, length, size = values.shape
            table = values.reshape(count * length, size)
            kind = {"name": name, "members": count, "samples": length, "size": size}
            bits = EXACT if name in exact else DRAWN
            fields.append(kind | {"table": block.add(table, bits)})
    meshes = Meshes(block)
    shapes = shapes_data(drawing, meshes, recorded.notes)
    factor = twist_factor(recorded, [s for s in drawing.shapes if isinstance(s, Twist)])
    for data, shape in zip(shapes, drawing.shapes):
        _measure(data, shape, recorded, factor)
    shapes = [data for data in shapes if data["kind"] != "none"]
    _share_scales([data for data in shapes if data["kind"] == "arrow"])
    tables, numbers, notes = meshes.packed()
    for data in shapes:
        if data["kind"] == "mesh":
            data["mesh"] = numbers[data.pop("path")]
    scene: dict[str, Any] = {
        "title": title,
        "about": about,
        "size": drawing.size_m,
        "time": block.add(run.time[recorded.chosen][:, None], EXACT),
        "members": len(recorded.members) if recorded.members is not None else 1,
        "memberNames": _member_names(run, recorded.members),
        "fields": fields,
        "frames": [to_data(frame) for frame in drawing.frames],
        "shapes": shapes,
        "meshes": tables,
        "plots": [_plot_data(plot, k) for k, plot in enumerate(shown)],
        "notes": list(dict.fromkeys([*recorded.notes, *notes, *_warnings(run)])),
    }
    return scene, block


def shapes_data(drawing: Drawing, meshes: Meshes, notes: list[str]) -> list[dict[str, Any]]:
    """All shapes as JSON has them; a mesh that cannot be had is its substitute, and noted."""
    found = []
    for shape in drawing.shapes:
        if isinstance(shape, Mesh):
            mesh = meshes.read(shape.path)
            if isinstance(mesh, MeshError):
                what = "a box is drawn" if shape.substitute else "nothing is drawn of it"
                notes.append(
                    f"mesh {shape.path or '(without a file)'} of {shape.of}: {mesh}; {what}"
                )
                found.append(to_data(shape.substitute) if shape.substitute else {"kind": "none"})
                continue
            data = to_data(dataclasses.replace(shape, substitute=None))
            found.append(data)
        else:
            found.append(to_data(shape))
    return found


def default_plots(run: Trajectory, drawing: Drawing) -> list[Plot]:
    """A plot for each recorded field that has few components, those that the drawing uses first."""
    used = {name: k for k, name in enumerate(drawing.fields())}
    fields = [
        (f"{node}.{field}", values.shape[1 if run.batch_size is None else 2 :])
        for node, fields in run.fields.items()
        for field, values in fields.items()
        if values.dtype.kind in "fiub"
    ]
    fields.sort(key=lambda entry: used.get(entry[0], len(used)))
    found = []
    for name, shape in fields:
        node, _, field = name.rpartition(".")
        unit = run.units[node][field]
        size = int(np.prod(shape))
        if size > _MOST_CURVES:
            continue
        labels = component_labels(drawing.names, name, shape, unit)
        count = 3 if labels == _PLACES[7] else size  # metres and no quaternions
        curves = [Curve(name, i, labels[i] or field, unit) for i in range(count)]
        found.append(Plot(f"{name} [{unit or '1'}]", tuple(curves)))
    return found[:MOST_PLOTS]


def component_labels(
    names: Mapping[str, tuple[str, ...]], name: str, shape: tuple[int, ...], unit: str
) -> tuple[str, ...]:
    """What the components of a field are called: joints, x y z, or their numbers; "" for one."""
    size = int(np.prod(shape))
    if len(names.get(name, ())) == size:
        return names[name]
    if size == 1 and not shape:
        return ("",)
    if unit == "m" and size in _PLACES and len(shape) == 1:
        return _PLACES[size]
    return tuple(f"[{', '.join(map(str, at))}]" for at in np.ndindex(*shape))


def _plot_data(plot: Plot, k: int) -> dict[str, Any]:
    curves = []
    for curve in plot.curves:
        data: dict[str, Any] = {"field": curve.field, "index": curve.index}
        data |= {"label": curve.label, "scale": curve.scale}
        if curve.minus is not None:
            data["minus"] = {"field": curve.minus[0], "index": curve.minus[1]}
        if curve.dashed:
            data["dashed"] = True
        if curve.colour is not None:
            data["colour"] = curve.colour
        curves.append(data)
    return {"title": plot.title, "curves": curves, "open": k < OPEN_PLOTS}


def _share_scales(arrows: list[dict[str, Any]]) -> None:
    """Arrows of one name, as a field at many points, have one scale and one line in the legend."""
    first: dict[str, dict[str, Any]] = {}
    for arrow in arrows:
        leader = first.setdefault(arrow.get("what", ""), arrow)
        leader["largest"] = max(leader["largest"], arrow["largest"])
    for arrow in arrows:
        leader = first[arrow.get("what", "")]
        arrow["largest"] = leader["largest"]
        if arrow is not leader:
            arrow["what"] = ""


def _measure(data: dict[str, Any], shape: Any, recorded: Recorded, factor: int) -> None:
    """The measures of a shape that the run tells: ends of scales, lengths, factors."""
    scale: ColourScale | None = shape.scale
    if scale is not None and "scale" in data:
        data["scale"]["limited"] = scale.high is not None
        data["scale"]["high"] = scale_end(scale, recorded)
    if data["kind"] == "arrow":
        pushed, first = recorded[shape.vector.field], shape.vector.index
        vectors = np.zeros((1, 3)) if pushed is None else pushed[..., first : first + 3]
        data["largest"] = float(np.linalg.norm(np.nan_to_num(vectors), axis=-1).max(initial=0.0))
        data["kind"] = "arrow" if data["largest"] > 0 else "none"  # nobody pushes
    if isinstance(shape, Twist):
        data["factor"] = factor


def scale_end(scale: ColourScale, recorded: Recorded) -> float:
    """The upper end of a scale: its limit, else the largest number of the run."""
    if scale.high is not None:
        return scale.high
    values = _values_of(scale.value, recorded)
    values = np.abs(values) if scale.magnitude else values
    return float(values.max(initial=0.0)) or 1.0


def twist_factor(recorded: Recorded, twists: Sequence[Twist]) -> int:
    """The round number that shows the largest deflection of these by about a sixth of a turn."""
    all_of = [np.abs(_values_of(twist.angle, recorded)).max(initial=0.0) for twist in twists]
    largest = max([float(x) for x in all_of if np.isfinite(x)], default=0.0)
    wanted = _TWIST_RAD / largest if largest > 0 else 1.0
    return int(_FACTORS[np.searchsorted(_FACTORS, max(wanted, 1.0), side="right") - 1])


def _values_of(value: Value, recorded: Recorded) -> np.ndarray:
    found = recorded[value.field]
    if found is None:
        return np.zeros(1)
    return np.nan_to_num(value.scale * found[..., value.index] + value.offset)


def _member_names(run: Trajectory, members: Sequence[int] | None) -> list[str]:
    """`member 3: motor.r_ohm = 2.5`, of the parameters that vary and are numbers."""
    names = []
    for member in members or ():
        words = [
            f"{node}.{name} = {float(values[member]):.4g}"
            for node, name in run.varied
            if (values := np.asarray(run.parameters[node][name])).ndim == 1
        ]
        end = f" ({run.diverged[member]})" if member in run.diverged else ""
        names.append(f"member {member}{': ' if words else ''}{', '.join(words[:3])}{end}")
    return names


def _warnings(run: Trajectory) -> list[str]:
    return [str(warning) for warning in run.warnings[:8]]
