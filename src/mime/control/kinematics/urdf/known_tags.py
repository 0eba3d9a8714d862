"""The tags of a URDF that MIME reads; no other is dropped in silence."""

from typing import Any
from xml.etree import ElementTree

from mime._text import shortened
from mime.control.kinematics.report import Finding, Findings
from mime.control.kinematics.urdf.xml import LONGEST_TEXT, Element

Content = tuple[set[str], dict[str, Any]]

_ORIGIN: dict[str, Content] = {"origin": ({"xyz", "rpy"}, {})}
_MATERIAL: Content = ({"name"}, {"color": ({"rgba"}, {})})
REDUCTION: dict[str, Content] = {
    "mechanicalReduction": (set(), {}),
    "rotorInertia": ({"value"}, {}),
    "drake:gear_ratio": ({"value"}, {}),
    "drake:rotor_inertia": ({"value"}, {}),
}
_ROLE: dict[str, Content] = {"role": (set(), {})}
_GEOMETRY: dict[str, Content] = {
    "box": ({"size"}, {}),
    "cylinder": ({"radius", "length"}, {}),
    "capsule": ({"radius", "length"}, {}),
    "sphere": ({"radius"}, {}),
    "mesh": ({"filename", "scale"}, {}),
}
READ: dict[str, Content] = {
    "material": _MATERIAL,
    "link": (
        {"name"},
        {
            "inertial": (
                set(),
                _ORIGIN
                | {
                    "mass": ({"value"}, {}),
                    "inertia": ({"ixx", "ixy", "ixz", "iyy", "iyz", "izz"}, {}),
                },
            ),
            "visual": ({"name"}, _ORIGIN | {"geometry": (set(), _GEOMETRY), "material": _MATERIAL}),
        },
    ),
    "joint": (
        {"name", "type"},
        _ORIGIN
        | {
            "parent": ({"link"}, {}),
            "child": ({"link"}, {}),
            "axis": ({"xyz"}, {}),
            "limit": ({"lower", "upper", "effort", "velocity"}, {}),
            "dynamics": ({"damping", "friction"}, {}),
            "mimic": ({"joint", "multiplier", "offset"}, {}),
        },
    ),
    "transmission": (
        {"name"},
        REDUCTION
        | {
            "type": (set(), {}),
            "joint": ({"name"}, REDUCTION | _ROLE),
            "actuator": ({"name"}, REDUCTION | _ROLE),
        },
    ),
}
"""What MIME reads below <robot>: tag -> (attributes, children). `tree.ignored` lists the rest."""


_MANY = {
    "": {"material", "link", "joint", "transmission"},
    "<link>": {"visual"},
    "<transmission>": {"joint", "actuator"},
}
"""Tags that may stand more than once in one place; every other tag that MIME reads may not."""
_TEXT = {"mechanicalReduction", "rotorInertia", "role", "type"}
"""Tags whose text is read."""


def find_ignored(robot: Element, found: Findings) -> None:
    """One line for each kind of tag or attribute that MIME does not read, with where it stands.

    A second tag where one is expected is refused, unless both say the same or they are in a
    <visual>: then the first holds.
    """
    places: dict[str, list[tuple[Element, str]]] = {}

    def walk(
        element: Element,
        attributes: set[str],
        children: dict[str, Content],
        inside: str,
        owner: str,
    ) -> None:
        here = element, owner
        for name in element.attrib:
            if name not in attributes and not name.startswith("xmlns"):
                places.setdefault(f"{inside} {name}=", []).append(here)
        texts = [part.tail for part in element]
        texts += [] if element.tag in _TEXT else [element.text]
        if any(text is not None and text.strip() for text in texts):
            places.setdefault(f"text in {inside or '<robot>'}", []).append(here)
        seen: dict[str, Element] = {}
        for part in element:
            first = seen.setdefault(part.tag, part)
            gear = element.tag in ("transmission", "joint", "actuator") and part.tag in REDUCTION
            once = part.tag in children and part.tag not in _MANY.get(inside, set()) and not gear
            if first is not part and once:
                _judge_second(element, first, part, inside, found)
            below = owner or part.get("name", "")
            if part.tag in children:
                walk(part, *children[part.tag], f"{inside}<{part.tag}>", below)
            else:
                places.setdefault(f"{inside}<{part.tag}>", []).append((part, below))

    walk(robot, {"name", "version"}, READ, "", "")
    for what, parts in places.items():
        owners = [owner for _, owner in parts]
        names = [shortened(repr(name), LONGEST_TEXT) for name in dict.fromkeys(owners) if name]
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        what = shortened(what, 4 * LONGEST_TEXT)
        words = (f"{what}, {len(owners)} times" if len(owners) > 1 else what) + (
            f": {shown}" if shown else ""
        )
        found.add("tag", Finding(str(robot.path), parts[0][0].line, words))


def _judge_second(
    element: Element, first: Element, second: Element, inside: str, found: Findings
) -> None:
    words = f"{element.label} has a second <{second.tag}>, the first on line {first.line}"
    if inside.startswith("<link><visual>"):
        rule, how = "visual", "the first is drawn"
    elif _says_the_same(first, second):
        rule, how = "twice", "they say the same, and the first is read"
    else:
        raise second.error(f"{words}; expected one. Delete one of them.", "contradiction")
    found.add(rule, Finding(str(second.path), second.line, words, how))


def _says_the_same(one: ElementTree.Element, other: ElementTree.Element) -> bool:
    mine, yours = ((e.tag, e.attrib, (e.text or "").split(), len(e)) for e in (one, other))
    return mine == yours and all(map(_says_the_same, one, other))
