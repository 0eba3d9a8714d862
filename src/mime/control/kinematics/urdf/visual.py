"""The shapes of a URDF, kept as plain data for whoever draws the robot."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mime._files import is_file
from mime._text import shortened
from mime.control.kinematics.tree import Visual
from mime.control.kinematics.urdf.xml import Element, attribute, child, number, numbers


def read_visuals(robot: Element, package_dirs: list[Path]) -> tuple[Visual, ...]:
    """Every <visual> of every link."""
    colours = {
        material.get("name"): _colour(material)
        for material in robot.iter("material")
        if material.find("color") is not None
    }
    return tuple(
        _read_visual(link, visual, colours, package_dirs)
        for link in robot.findall("link")
        for visual in link.findall("visual")
    )


def material_notes(robot: Element) -> list[str]:
    """One line for each name of a material that has two colours; the last of them is used."""
    colours: dict[str, set[Any]] = {}
    for material in robot.iter("material"):
        if "name" in material.attrib and material.find("color") is not None:
            colours.setdefault(attribute(material, "name"), set()).add(_colour(material))
    return [
        f"material {shortened(repr(name), 60)} has {len(found)} colours: the last is used by name"
        for name, found in colours.items()
        if len(found) > 1
    ]


def resolve_mesh(filename: str, urdf_path: Path, package_dirs: list[Path]) -> str:
    """The path of a mesh on this machine; the name as written when it cannot be found.

    `package://name/rest` is looked for in `package_dirs`, then in every folder above the file, as
    `name/rest` and, in the package's own folder, as `rest`.
    """
    above = list(urdf_path.resolve().parents)
    if filename.startswith("package://"):
        package, _, rest = filename.removeprefix("package://").partition("/")
        candidates = [folder / package / rest for folder in (*package_dirs, *above)]
        candidates += [
            folder / rest for folder in (*package_dirs, *above) if folder.name == package
        ]
    else:
        candidates = [above[0] / filename.removeprefix("file://")]
    return str(next((path for path in candidates if is_file(path)), filename))


def _read_visual(link: Element, visual: Element, colours: dict, package_dirs: list[Path]) -> Visual:
    origin, material = visual.find("origin"), visual.find("material")
    shapes = list(child(visual, "geometry"))
    if len(shapes) != 1:
        raise visual.error(
            f"a <visual> of {link.label} has {len(shapes)} shapes in its <geometry>; expected one. "
            "Give each shape a <visual> of its own."
        )
    shape = shapes[0]
    mesh_path = None
    if shape.tag == "mesh":
        size: Sequence[float] | np.ndarray = numbers(shape, "scale", 3, "1 1 1")
        mesh_path = resolve_mesh(attribute(shape, "filename"), link.path, package_dirs)
    elif shape.tag == "box":
        size = numbers(shape, "size", 3)
    elif shape.tag == "sphere":
        size = [number(shape, "radius")]
    elif shape.tag in ("cylinder", "capsule"):
        size = [number(shape, "radius"), number(shape, "length")]
    else:
        raise shape.error(
            f"a <visual> of {link.label} is a <{shape.tag}>; MIME draws box, cylinder, "
            "capsule, sphere and mesh."
        )
    rgba = None
    if material is not None:
        named = colours.get(material.get("name"))
        rgba = named if material.find("color") is None else _colour(material)
    return Visual(
        attribute(link, "name"),
        shape.tag,
        _floats(size),
        (0.0, 0.0, 0.0) if origin is None else _floats(numbers(origin, "xyz", 3, "0 0 0")),
        (0.0, 0.0, 0.0) if origin is None else _floats(numbers(origin, "rpy", 3, "0 0 0")),
        rgba,
        mesh_path,
    )


def _colour(material: Element) -> Any:
    return _floats(numbers(child(material, "color"), "rgba", 4))


def _floats(values: Iterable[float]) -> Any:
    return tuple(float(x) for x in values)
