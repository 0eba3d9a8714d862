"""The drawings of a graph's nodes as one: fields by node, and everything at its place.

An input is what feeds it: where a sensor's pose comes from the body by one edge, its rays follow
the body's own field, which is recorded. A node without a place of its own, such as a motor, sits
where the input that it drives has its mount, and else beside the others.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from mime._text import shortened, warn_user
from mime.core.drawing import (
    WORLD,
    ColourScale,
    Drawing,
    Frame,
    Mount,
    Numbers,
    Trail,
    Value,
    changed,
    parts,
)
from mime.core.node import Node
from mime.core.pose import IDENTITY_POSE
from mime.core.recorder import field_specs
from mime.core.wiring import Edge, Wiring
from mime.running.precision import in_own_precision

_WANTED_RGBA = (0.15, 0.35, 0.85, 1.0)
_GAP = 1.5
"""From one node to its neighbour, in sizes."""


@in_own_precision
def scene(nodes: Mapping[str, Node], wiring: Wiring) -> Drawing:
    """What there is to see of a graph."""
    drawings = {name: _sound_drawing(node) for name, node in nodes.items()}
    drawn = {name: drawing for name, drawing in drawings.items() if drawing}
    frames: list[Frame] = []
    shapes: list[Any] = []
    names = {
        f"{node}.{field}": words
        for node, drawing in drawings.items()
        for field, words in drawing.names.items()
    }
    beside = 0.0
    homes = _homes(drawn, nodes, wiring)
    for name in sorted(drawn, key=lambda name: _depth(name, homes)):
        sources = _Sources(name, nodes, wiring)
        drawing: Drawing = changed(_without_dead(drawn[name], sources), sources.resolved)
        home = homes.get(name)
        if home is not None:
            owner, mount = home
            drawing = _sized(drawing, mount.size_m / drawing.size_m)
            start = Frame(f"{name}/", f"{owner}/{mount.frame}", mount.pose)
        else:
            own = any(_placed_by(frame) is not None for frame in drawing.frames)
            placed = own or not beside
            shift = 0.0 if placed or drawing.mounts else beside
            start = Frame(f"{name}/", WORLD, (shift, *IDENTITY_POSE[1:]))
            if not drawing.mounts and not own:
                beside = max(beside, shift) + _GAP * drawing.size_m
        frames.append(start)
        frames += [
            dataclasses.replace(f, name=f"{name}/{f.name}", parent=f"{name}/{f.parent}")
            for f in drawing.frames
        ]
        shapes += [_on_frame_of(shape, name) for shape in drawing.shapes]
    wanted = [shape for shape in shapes if getattr(shape, "dashed", False)]
    if not wanted:
        _add_goals(frames, shapes, goal_fields(nodes, wiring))
    size = max((drawing.size_m for drawing in drawn.values()), default=0.1)
    return Drawing(tuple(frames), tuple(shapes), (), _spread(names, nodes, wiring), size)


def _spread(
    names: Mapping[str, tuple[str, ...]], nodes: Mapping[str, Node], wiring: Wiring
) -> dict[str, tuple[str, ...]]:
    """Names of components go along plain edges: what drives an arm's joints is named after them.

    In a node, all fields of joints are of the same ones, and a goal is of what it is the goal of.
    """
    fields = {
        name: [*node.boundary_flux_spec(), *node.state_spec(), *node.boundary_input_spec()]
        for name, node in nodes.items()
    }
    alike = [
        {f"{edge.source}.{edge.source_field}", f"{edge.target}.{edge.target_field}"}
        for edge in wiring.edges
        if edge.transform is None
    ]
    alike += [{f"{name}.{f}" for f in found if "joint" in f} for name, found in fields.items()]
    alike += [
        {f"{name}.{goal}", f"{name}.{measured}"}
        for name, node in nodes.items()
        for goal, measured in node.goal_inputs().items()
    ]
    found, before = dict(names), -1
    while len(found) > before:  # as far as the names can go
        before = len(found)
        for group in alike:
            known = {found[field] for field in group if field in found}
            if len(known) == 1:
                found |= dict.fromkeys(sorted(group - found.keys()), next(iter(known)))
    return found


class DrawingWarning(UserWarning):
    """A node cannot be drawn; the run is not harmed."""


def _sound_drawing(node: Node) -> Drawing:
    """A node's drawing; nothing, and a warning, where it is wrong: a run is worth more."""
    try:
        drawing = node.drawing()
        known = field_specs(node) if drawing.fields() else {}
        found = list(drawing.problems(lambda field: field in known))
    except Exception as error:  # of whoever wrote the node
        drawing, found = Drawing(), [f"{type(error).__name__}: {error}"]
    if not found:
        return drawing
    words = "; ".join(found[:3])
    warn_user(DrawingWarning(f"{node.label} is not drawn: {shortened(words, 300)}"))
    return Drawing()


def goal_fields(nodes: Mapping[str, Node], wiring: Wiring) -> dict[str, str]:
    """Where a field should go: `{"arm.joint_angles": "path.desired_joint_angles"}`.

    A node names its goals by `goal_inputs`; edges say where goal and measured value come from.
    """
    found = {}
    for name, node in nodes.items():
        sources = _Sources(name, nodes, wiring)
        for goal, measured in node.goal_inputs().items():
            ends = sources.resolved(Value(goal)), sources.resolved(Value(measured))
            if None not in ends and all((v.index, v.scale) == (0, 1.0) for v in ends):
                found[ends[1].field] = ends[0].field
    return found


def _add_goals(frames: list[Frame], shapes: list[Any], goals: Mapping[str, str]) -> None:
    """For each trail whose frame follows fields with goals, the trail that is wanted."""
    chains: dict[str, tuple[Frame, ...]] = {WORLD: ()}
    for frame in frames:  # parents come first
        chains.setdefault(frame.name, (*chains[frame.parent], frame))
    for trail in [shape for shape in shapes if isinstance(shape, Trail)]:
        chain = chains[trail.frame]
        fields = {part.field for frame in chain for part in parts(frame) if isinstance(part, Value)}
        if not fields or not fields <= goals.keys():
            continue

        def towards(part: Any) -> Any:
            if isinstance(part, Value):
                return dataclasses.replace(part, field=goals[part.field])
            if isinstance(part, Frame):
                parent = part.parent and f"{part.parent} (wanted)"
                name = f"{part.name} (wanted)"
                return dataclasses.replace(part, name=name, parent=parent, shown=False)
            return part

        frames += [changed(frame, towards) for frame in chain]
        style: dict[str, Any] = {
            "frame": f"{trail.frame} (wanted)",
            "rgba": _WANTED_RGBA,
            "dashed": True,
        }
        words = trail.what.replace("reached", "wanted")
        shapes.append(dataclasses.replace(trail, what=words, **style))


def _on_frame_of(shape: Any, node: str) -> Any:
    inner = getattr(shape, "substitute", None)
    more = {} if inner is None else {"substitute": _on_frame_of(inner, node)}
    return dataclasses.replace(shape, frame=f"{node}/{shape.frame}", **more)


def _homes(
    drawn: Mapping[str, Drawing], nodes: Mapping[str, Node], wiring: Wiring
) -> dict[str, tuple[str, Mount]]:
    """The node and the mount on which each node sits that has no place of its own."""
    homes: dict[str, tuple[str, Mount]] = {}
    for edge in wiring.edges:
        free = edge.source in drawn and edge.source not in homes and edge.source != edge.target
        if not free or edge.target not in drawn or drawn[edge.source].mounts:
            continue
        sources = _Sources(edge.source, nodes, wiring)
        if any(sources.resolved(v) for f in drawn[edge.source].frames if (v := _placed_by(f))):
            continue  # it says itself where it is
        index = _driven_index(edge, nodes)
        for mount in drawn[edge.target].mounts:
            if (mount.field, mount.index) == (edge.target_field, index):
                homes[edge.source] = edge.target, mount
    return homes


def _placed_by(frame: Frame) -> Value | None:
    """What says where a frame is."""
    return frame.follow or frame.place


def _depth(name: str, homes: Mapping[str, tuple[str, Mount]]) -> int:
    """How many nodes carry this one: carriers come first."""
    depth = 0
    while name in homes and depth <= len(homes):
        name, depth = homes[name][0], depth + 1
    return depth


def _driven_index(edge: Edge, nodes: Mapping[str, Node]) -> int | None:
    """The component of the input that an edge drives; None where it is not one."""
    response = _response(edge, nodes)
    if response is None:
        return None
    driven = np.flatnonzero(np.any(response != 0, axis=1))
    return int(driven[0]) if len(driven) == 1 else None


def _response(edge: Edge, nodes: Mapping[str, Node]) -> np.ndarray | None:
    """What the target gets of each component of the flux, (target, source), where that is linear.

    A transform may be any function: it is asked.
    """
    source = nodes[edge.source].boundary_flux_spec()[edge.source_field].shape
    size = int(np.prod(source))
    if edge.transform is None:
        return np.eye(size)
    if size > 64:
        return None  # a picture is not worth so many calls
    try:
        asked = [np.zeros(source), *(unit.reshape(source) for unit in np.eye(size))]
        columns = [np.ravel(np.asarray(edge.value(flux))) for flux in asked]
    except Exception:  # a function of the user's own, made for other values
        return None
    found = np.stack(columns, axis=1)
    return found[:, 1:] if not np.any(found[:, 0]) else None


def _sized(drawing: Drawing, factor: float) -> Drawing:
    """The drawing with all its lengths times a factor."""

    def pose(p: Numbers) -> Numbers:
        return (*(factor * x for x in p[:3]), *p[3:])

    def change(part: Any) -> Any:
        lengths = {"size", "radius", "height", "reach"} & {f.name for f in dataclasses.fields(part)}
        new: dict[str, Any] = {"pose": pose(part.pose)} if hasattr(part, "pose") else {}
        for name in lengths:
            old = getattr(part, name)
            new[name] = tuple(factor * x for x in old) if isinstance(old, tuple) else factor * old
        if hasattr(part, "outline"):
            new["outline"] = tuple(tuple(factor * x for x in point) for point in part.outline)
        return dataclasses.replace(part, **new)

    return changed(drawing, change)


def _without_dead(drawing: Drawing, sources: "_Sources") -> Drawing:
    """Without fields that are inputs that nobody gives: they are what they are by default."""
    fields = [getattr(shape, "field", "") for shape in drawing.shapes]
    alive = [s for s, field in zip(drawing.shapes, fields) if not field or sources.known(field)]
    return dataclasses.replace(drawing, shapes=tuple(alive))


class _Sources:
    """Where the values of a node's fields are found."""

    def __init__(self, name: str, nodes: Mapping[str, Node], wiring: Wiring):
        self.name, self.nodes, self.wiring = name, nodes, wiring
        self._inputs = nodes[name].boundary_input_spec().keys()

    def _is_input(self, field: str) -> bool:
        """Whether a name is that of an input only: fluxes and states come first."""
        node = self.nodes[self.name]
        if field not in self._inputs or field in node.boundary_flux_spec():
            return False
        return field not in node.state_spec()

    def known(self, field: str) -> bool:
        """Whether a field changes at all."""
        return not self._is_input(field) or bool(self._fed(field))

    def _fed(self, field: str) -> list[Edge] | bool:
        edges = [e for e in self.wiring.edges_into(self.name) if e.target_field == field]
        return edges or (self.name, field) in self.wiring.external

    def resolved(self, part: Any) -> Any:
        """The part, with `node.field` for its fields; None for a value that nobody gives."""
        if isinstance(part, Value):
            return self._value(part)
        if isinstance(part, ColourScale) or not getattr(part, "field", ""):
            return part
        return dataclasses.replace(part, field=f"{self.name}.{part.field}")

    def _value(self, value: Value) -> Value | None:
        own = dataclasses.replace(value, field=f"{self.name}.{value.field}")
        if not self._is_input(value.field):
            return own
        fed = self._fed(value.field)
        if not fed:
            return None
        if fed is True or len(fed) != 1:  # from outside, or a sum
            return own
        response = _response(fed[0], self.nodes)
        if response is None:
            return own
        from_ = np.flatnonzero(response[value.index])
        if len(from_) != 1:
            return own
        scale = value.scale * float(response[value.index, from_[0]])
        field = f"{fed[0].source}.{fed[0].source_field}"
        return dataclasses.replace(value, field=field, index=int(from_[0]), scale=scale)
