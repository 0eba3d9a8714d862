"""What a node looks like: frames that follow its fields, and shapes that are fixed to frames.

    T_world_frame(t) = T_world_parent(t) · pose · turn(axis, θ(t)) · slide(axis, d(t))

A node says by `drawing()` what there is to see of it, as plain data: no colours of a renderer, no
file that is read, no function. Whoever draws (a page, a still picture) knows frames and shapes, and
no node. Lengths are metres, angles rad, poses `[x, y, z, qw, qx, qy, qz]`.
"""

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from mime.core.pose import IDENTITY_POSE

Numbers = tuple[float, ...]
WORLD = ""
"""The parent of a frame that hangs on no other."""
T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Value:
    """scale · field[index] + offset: a number over time. The index counts through all axes."""

    field: str
    """A flux, a state or an input of the node; `node.field` in a drawing of many nodes."""
    index: int = 0
    scale: float = 1.0
    offset: float = 0.0


@dataclasses.dataclass(frozen=True)
class Frame:
    """A coordinate system, placed in its parent, which comes before it."""

    name: str
    parent: str = WORLD
    pose: Numbers = IDENTITY_POSE
    axis: Numbers = (0.0, 0.0, 1.0)
    turn: Value | None = None
    """θ about the axis."""
    slide: Value | None = None
    """d along the axis."""
    follow: Value | None = None
    """The first of seven numbers, a pose in the parent in place of `pose`; or of three: `planar`"""
    planar: bool = False
    """`follow` is x, y and a turn about z."""
    place: Value | None = None
    """The first of three numbers, in place of the position in `pose`."""
    orient: Value | None = None
    """The first of four numbers, in place of the quaternion in `pose`."""
    shown: bool = False
    """Whether it is one of those that a reader may want to see as three axes."""


@dataclasses.dataclass(frozen=True)
class ColourScale:
    """The colour of a shape by a number: from `low` to `high`, or to the largest one of the run."""

    value: Value
    low: float
    high: float | None
    unit: str
    what: str
    """In words: "torque of joint 'elbow'"."""
    title: str
    """What all scales of its kind are of: "joint torque / limit"."""
    magnitude: bool = False
    """|value| is what counts."""


@dataclasses.dataclass(frozen=True)
class Shape:
    """Something fixed to a frame. `layer`: readers switch shapes of one layer together."""

    frame: str = WORLD
    pose: Numbers = IDENTITY_POSE
    rgba: Numbers | None = None
    layer: str = "robot"
    hidden: bool = False
    """Until its layer is asked for."""
    scale: ColourScale | None = None


@dataclasses.dataclass(frozen=True)
class Solid(Shape):
    """box: x y z; cylinder, capsule: radius, length along z; sphere: radius; ellipsoid: radii."""

    form: str = "box"
    size: Numbers = (1.0, 1.0, 1.0)


@dataclasses.dataclass(frozen=True)
class Mesh(Shape):
    """A file of triangles; the solid stands for it where the file cannot be had."""

    path: str = ""
    stretch: Numbers = (1.0, 1.0, 1.0)
    substitute: Solid | None = None
    of: str = ""
    """Whose it is: "link 'forearm'"."""


@dataclasses.dataclass(frozen=True)
class Prism(Shape):
    """A polygon in x and y, drawn out from z = 0 by `height`."""

    outline: tuple[Numbers, ...] = ()
    height: float = 0.0


@dataclasses.dataclass(frozen=True)
class Boxes(Shape):
    """Many boxes, each `x y z, length in x y z`. With a field, those whose number is `at` stand."""

    boxes: tuple[Numbers, ...] = ()
    field: str = ""
    at: float = 1.0


@dataclasses.dataclass(frozen=True)
class Line(Shape):
    """Points that are joined."""

    points: tuple[Numbers, ...] = ()
    dashed: bool = False
    what: str = ""


@dataclasses.dataclass(frozen=True)
class Trail(Shape):
    """The way of its frame's origin through the world; what lies ahead is pale."""

    what: str = ""
    dashed: bool = False


@dataclasses.dataclass(frozen=True)
class Walk(Shape):
    """A way of steps: from `start` on, each by the vector whose number a field holds in a row.

    `count`: how many of them. Nothing is drawn while that is 0.
    """

    start: Numbers = (0.0, 0.0, 0.0)
    steps: tuple[Numbers, ...] = ()
    field: str = ""
    most: int = 0
    count: Value | None = None
    what: str = ""


@dataclasses.dataclass(frozen=True)
class Ray(Shape):
    """A beam along the frame's x, as long as a number says."""

    length: Value = Value("")


@dataclasses.dataclass(frozen=True)
class Arrow(Shape):
    """A vector in world axes at the frame's origin: the field's three numbers from an index on.

    `reach`: metres of the longest one of the run.
    """

    vector: Value = Value("")
    reach: float = 0.1
    unit: str = ""
    what: str = ""


@dataclasses.dataclass(frozen=True)
class Twist(Shape):
    """A sector about the frame's z: a small angle, shown `factor` times as large.

    The factor is chosen by whoever draws, so that the largest one of the run can be seen.
    """

    angle: Value = Value("")
    radius: float = 0.1
    what: str = ""


@dataclasses.dataclass(frozen=True)
class Mount:
    """Where a node sits that drives an input: in a frame, and how large it may be there."""

    field: str
    index: int
    frame: str
    size_m: float
    pose: Numbers = IDENTITY_POSE


@dataclasses.dataclass(frozen=True)
class Drawing:
    """All that there is to see of a node, or of a whole graph."""

    frames: tuple[Frame, ...] = ()
    shapes: tuple[Shape, ...] = ()
    mounts: tuple[Mount, ...] = ()
    names: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    """What the components of a field are called: `{"joint_angles": ("shoulder", "elbow")}`"""
    size_m: float = 0.1
    """How large it is, about."""

    def fields(self) -> list[str]:
        """The fields that it follows, each once."""
        found = [x.field for x in parts(self) if isinstance(x, Value | Boxes | Walk) and x.field]
        return list(dict.fromkeys(found))

    def __bool__(self) -> bool:
        return bool(self.shapes)

    def problems(self, known: Callable[[str], bool] = lambda field: True) -> Iterator[str]:
        """In words, what is wrong with it; `known` says whether there is such a field."""
        frames = {WORLD}
        for frame in self.frames:
            if frame.parent not in frames:
                yield f"frame {frame.name!r} hangs on {frame.parent!r}, which is no frame before it"
            if frame.name in frames:
                yield f"there are two frames {frame.name!r}"
            frames.add(frame.name)
        on: tuple[Any, ...] = (*self.shapes, *self.mounts)
        for part in on:
            if part.frame not in frames:
                yield f"a {type(part).__name__.lower()} is on {part.frame!r}, which is no frame"
        yield from (
            f"there is no field {name!r} to follow" for name in self.fields() if not known(name)
        )
        try:
            json.dumps(self.to_data(), allow_nan=False)
        except (TypeError, ValueError) as error:
            yield f"it is no plain data: {error}"

    def to_data(self) -> dict[str, Any]:
        """Lists, numbers and words, as JSON has them; `from_data` reads them."""
        return to_data(self)

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> "Drawing":
        """What `to_data` wrote; a `ValueError` where it is something else."""
        found = from_data(data)
        if not isinstance(found, Drawing):
            raise ValueError("not a drawing")
        return found


def parts(item: Any) -> Iterator[Any]:
    """The item, and all that it is made of."""
    yield item
    if dataclasses.is_dataclass(item):
        for field in dataclasses.fields(item):
            inner = getattr(item, field.name)
            for entry in inner if isinstance(inner, tuple) else (inner,):
                if dataclasses.is_dataclass(entry):
                    yield from parts(entry)


def changed(item: T, change: Callable[[Any], Any]) -> T:
    """The item with `change` made to every part of it, the inner ones first.

    A `Value` that becomes None is gone: so is a shape that needs it.
    """
    if isinstance(item, tuple):
        found = [changed(entry, change) for entry in item]
        return tuple(entry for entry in found if entry is not None)  # type: ignore[return-value]
    if not dataclasses.is_dataclass(item) or isinstance(item, type):
        return item
    values = {}
    for field in dataclasses.fields(item):
        old = getattr(item, field.name)
        values[field.name] = new = changed(old, change)
        if new is None and old is not None and isinstance(item, Ray | Arrow | Twist | ColourScale):
            return None  # type: ignore[return-value]
    return change(dataclasses.replace(item, **values))


_KINDS = {
    kind.__name__.lower(): kind
    for kind in (Value, Frame, ColourScale, Solid, Mesh, Prism, Boxes, Line, Trail, Walk, Ray)
} | {kind.__name__.lower(): kind for kind in (Arrow, Twist, Mount, Drawing)}


def to_data(item: Any) -> Any:
    """A drawing, or a part of it, as JSON has it; what is as it is by default is left out."""
    if isinstance(item, tuple | list):
        return [to_data(entry) for entry in item]
    if isinstance(item, Mapping):
        return {name: to_data(entry) for name, entry in item.items()}
    if hasattr(item, "tolist"):  # a number of NumPy or JAX
        return item.tolist()
    if not dataclasses.is_dataclass(item):
        return item
    data = {"kind": type(item).__name__.lower()}
    for field in dataclasses.fields(item):
        value = getattr(item, field.name)
        if field.default is dataclasses.MISSING or value != field.default:
            data[field.name] = to_data(value)
    return data


def from_data(data: Any) -> Any:
    """What `to_data` wrote."""
    if isinstance(data, list):
        return tuple(from_data(entry) for entry in data)
    if not isinstance(data, Mapping):
        return data
    values = {name: from_data(entry) for name, entry in data.items() if name != "kind"}
    if "kind" not in data:
        return values
    try:
        return _KINDS[data["kind"]](**values)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a part of a drawing: {data['kind']!r}") from error
