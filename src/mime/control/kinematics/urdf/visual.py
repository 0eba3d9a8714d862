"""The shapes of a URDF, kept as plain data for whoever draws the robot.

They take no part in the dynamics: one that is written wrongly is noted, and drawn as far as it has
a meaning.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mime._text import brief, shortened
from mime.control.kinematics.packages import (
    NO_MESH,
    NoPackageError,
    NotFoundError,
    Packages,
    as_written,
)
from mime.control.kinematics.report import Finding, Findings, RobotFileError
from mime.control.kinematics.tree import Visual
from mime.control.kinematics.urdf.xml import Element, attribute, child, number, numbers

Colour = tuple[float, float, float, float]


def read_visuals(robot: Element, packages: Packages, found: Findings) -> tuple[Visual, ...]:
    """Every <visual> of every link."""
    colours = _colours(robot, found)
    visuals = []
    for link in robot.findall("link"):
        for visual in link.findall("visual"):
            try:
                visuals.append(_read_visual(link, visual, colours, packages, found))
            except RobotFileError as error:
                (wrong,) = error.findings
                found.add("visual", wrong._replace(effect="the shape is not drawn"))
    return tuple(visuals)


def _colours(robot: Element, found: Findings) -> dict[Element | str | None, Colour]:
    """The colour of each <material>, and of each name: the last where there are several."""
    own: dict[Element | str | None, Colour] = {}
    several: dict[str | None, dict[Colour, Element]] = {}
    for material in robot.iter("material"):
        if material.find("color") is None:
            continue
        try:
            colour = _colour(material, found)
        except RobotFileError as error:
            (wrong,) = error.findings
            found.add("visual", wrong._replace(effect="the colour is not used"))
            continue
        own[material] = colour
        several.setdefault(material.get("name"), {})[colour] = material
    for name, colours in several.items():
        if name is not None and len(colours) > 1:
            words = f"has {len(colours)} colours: the last is used by name"
            found.add("visual", list(colours.values())[-1].finding(words))
    return own | {name: list(colours)[-1] for name, colours in several.items()}


def _mesh_path(mesh: Element, packages: Packages, found: Findings) -> str:
    """The path of a mesh on this machine; the name as written when it cannot be found."""
    name = attribute(mesh, "filename")
    try:
        return str(packages.file(name))
    except NoPackageError as error:
        words = f"{error}: its meshes are drawn as boxes"  # once for all of them
    except NotFoundError as error:
        words = f"{NO_MESH} {shortened(name, 300)}: {error}"
    if words not in {finding.what for finding in found.all}:
        found.add("mesh", Finding(str(mesh.path), mesh.line, words))
    return as_written(name)


def _scale(mesh: Element, found: Findings) -> np.ndarray:
    """x, y and z; one number serves for all three, and a fourth is not read."""
    words = mesh.get("scale", "1 1 1").split()
    if len(words) in (1, 4):
        three = words * 3 if len(words) == 1 else words[:3]
        how = "it is taken for all three" if len(words) == 1 else "the first three are taken"
        said = f"has a scale of {len(words)} numbers, {brief(mesh.get('scale'), 60)}; expected 3"
        found.add("visual", mesh.finding(said, how))
        mesh.set("scale", " ".join(three))
    return numbers(mesh, "scale", 3, "1 1 1")


def _read_visual(
    link: Element,
    visual: Element,
    colours: dict[Element | str | None, Colour],
    packages: Packages,
    found: Findings,
) -> Visual:
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
        size: Sequence[float] | np.ndarray = _scale(shape, found)
        mesh_path = _mesh_path(shape, packages, found)
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
        rgba = colours.get(material, colours.get(material.get("name")))
    return Visual(
        attribute(link, "name"),
        shape.tag,
        _floats(size),
        (0.0, 0.0, 0.0) if origin is None else _floats(numbers(origin, "xyz", 3, "0 0 0")),
        (0.0, 0.0, 0.0) if origin is None else _floats(numbers(origin, "rpy", 3, "0 0 0")),
        rgba,
        mesh_path,
    )


def _colour(material: Element, found: Findings) -> Colour:
    """Red, green, blue and opacity, which is 1 where it is missing."""
    color = child(material, "color")
    if len(attribute(color, "rgba").split()) == 3:
        said = f"has rgba={brief(color.get('rgba'), 60)} without opacity"
        found.add("visual", color.finding(said, "it is opaque"))
        color.set("rgba", f"{color.get('rgba')} 1")
    return _floats(numbers(color, "rgba", 4))


def _floats(values: Iterable[float]) -> Any:
    return tuple(float(x) for x in values)
