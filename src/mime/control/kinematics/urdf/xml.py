"""Reads XML that others wrote: entities are not expanded, errors have line numbers, and no tag is
dropped in silence.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np

from mime._text import shortened
from mime.control.kinematics.report import Finding, RobotFileError

LARGEST = 1e30
"""No length, mass, inertia or ratio of a machine is beyond it; its cube is a number still."""
MOST_BYTES = 2**26
"""Of an XML file; the largest robots that people publish take a thirtieth."""
_LONGEST_TEXT = 60


class UrdfError(RobotFileError):
    """A URDF cannot be simulated."""


class Element(ElementTree.Element):
    """An XML element that remembers its file and line."""

    path: Path
    line: int
    refusal: type[RobotFileError] = UrdfError
    root = "robot"
    advice = "MIME reads plain URDF: expand xacro first, and close every tag."

    if TYPE_CHECKING:  # `read_xml` makes all of them of this class

        def find(self, path: str) -> "Element | None": ...  # type: ignore[override]
        def findall(self, path: str) -> "list[Element]": ...  # type: ignore[override]
        def iter(self, tag: str | None = None) -> "Iterator[Element]": ...  # type: ignore[override]
        def __iter__(self) -> "Iterator[Element]": ...

    def error(self, message: str) -> RobotFileError:
        return self.refusal(self.path, message, self.line)

    def finding(self, words: str, mended: str = "") -> Finding:
        """What is said of this element, with its file and line."""
        return Finding(str(self.path), self.line, f"{self.label} {words}", mended)

    @property
    def label(self) -> str:
        """The element in words: joint 'wrist', or <axis>."""
        name = self.get("name")
        words = f"<{self.tag}>" if name is None else f"{self.tag} {name!r}"
        return shortened(words, 2 * _LONGEST_TEXT)


def read_xml(path: Path, kind: type[Element] = Element) -> Element:
    """The root element. Entity declarations are refused: they can blow up or read files."""
    refusal = kind.refusal
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise refusal(path, f"cannot be read ({error.strerror}). Check the path.") from error
    except ValueError as error:  # a name with a null character
        raise refusal(path, f"cannot be read ({error}). Check the path.") from error
    if not text.strip():
        message = f"the file is empty; expected a <{kind.root}>. Export it again."
        raise refusal(path, message)
    if len(text) > MOST_BYTES:
        raise refusal(path, f"is longer than {MOST_BYTES} bytes; expected a robot in XML.")

    def refuse(*_: object) -> None:
        message = "a DOCTYPE or ENTITY declaration; MIME expands no entities. "
        message += "Delete it and write the values out."
        raise refusal(path, message, parser.CurrentLineNumber)

    def element(tag: str, attributes: dict[str, str]) -> Element:
        made = kind(tag, attributes)
        made.path, made.line = path, parser.CurrentLineNumber
        return made

    # The parser knows no namespaces, so `drake:gear_ratio` needs no xmlns to be a plain tag.
    parser = expat.ParserCreate()
    builder = ElementTree.TreeBuilder(element_factory=element)
    parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        message = f"not well-formed XML ({expat.ErrorString(error.code)}). {kind.advice}"
        raise refusal(path, message, error.lineno) from error
    except RobotFileError:
        raise
    except (LookupError, ValueError) as error:  # an encoding that Python or expat does not read
        message = f"its encoding cannot be read ({error}). Save it as UTF-8."
        raise refusal(path, message, parser.CurrentLineNumber) from error
    return cast(Element, builder.close())


def attribute(element: Element, name: str, default: str | None = None) -> str:
    """Text of an attribute; without a default it must be there."""
    value = element.get(name, default)
    if value is None:
        raise element.error(f'{element.label} has no {name!r} attribute. Add {name}="...".')
    return value


def child(element: Element, tag: str) -> Element:
    """The first <tag> inside, which must be there."""
    found = element.find(tag)
    if found is None:
        raise element.error(f"{element.label} has no <{tag}>. Add one.")
    return found


def numbers(
    element: Element, name: str, count: int, default: str | None = None, largest: float = LARGEST
) -> np.ndarray:
    """`count` numbers from an attribute, none of them beyond what can be meant."""
    text = attribute(element, name, default)
    return parsed_numbers(element, f"{element.label}: {name}=", text, count, largest)


def number(
    element: Element, name: str, default: str | None = None, largest: float = LARGEST
) -> float:
    """One number from an attribute."""
    return float(numbers(element, name, 1, default, largest)[0])


def parsed_numbers(
    element: Element, what: str, text: str, count: int, largest: float = LARGEST
) -> np.ndarray:
    """The numbers in a text, all finite; `what` says where they stand."""
    try:
        values = [_as_float(word) for word in text.split()]
    except ValueError:
        values = []
    shown = shortened(repr(text), _LONGEST_TEXT)
    if len(values) != count or not all(map(math.isfinite, values)):
        spaces = " separated by spaces" if count > 1 else ""
        raise element.error(
            f"{what}{shown}; expected {count} finite number{'s' * (count > 1)}{spaces}."
        )
    if max(map(abs, values)) > largest:
        raise element.error(
            f"{what}{shown}; expected at most {largest:g} in magnitude. Check the unit: URDF is "
            "in m, kg, s and rad."
        )
    return np.array(values)


def _as_float(word: str) -> float:
    """The number that a word is; `1_000`, which Python reads as well, is none."""
    if "_" in word or not word.isascii():
        raise ValueError(word)
    return float(word)


Content = tuple[set[str], dict[str, Any]]

_ORIGIN: dict[str, Content] = {"origin": ({"xyz", "rpy"}, {})}
_MATERIAL: Content = ({"name"}, {"color": ({"rgba"}, {})})
REDUCTION: dict[str, Content] = {
    "mechanicalReduction": (set(), {}),
    "rotorInertia": ({"value"}, {}),
    "drake:gear_ratio": ({"value"}, {}),
    "drake:rotor_inertia": ({"value"}, {}),
}
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
        REDUCTION | {"joint": ({"name"}, REDUCTION), "actuator": ({"name"}, REDUCTION)},
    ),
}
"""What MIME reads below <robot>: tag -> (attributes, children). `tree.ignored` lists the rest."""


_MANY = {
    "": {"material", "link", "joint", "transmission"},
    "<link>": {"visual"},
    "<transmission>": {"joint", "actuator"},
}
"""Tags that may stand more than once in one place; every other tag that MIME reads may not."""
_TEXT = {"mechanicalReduction", "rotorInertia"}
"""Tags whose text is read."""


def ignored_tags(robot: Element) -> Iterator[str]:
    """One line for each kind of tag or attribute that MIME does not read, with where it stands.

    A tag that can be there once and is there twice is refused: which of them holds?
    """
    places: dict[str, list[str]] = {}

    def walk(
        element: Element,
        attributes: set[str],
        children: dict[str, Content],
        inside: str,
        owner: str,
    ) -> None:
        for name in element.attrib:
            if name not in attributes and not name.startswith("xmlns"):
                places.setdefault(f"{inside} {name}=", []).append(owner)
        texts = [part.tail for part in element]
        texts += [] if element.tag in _TEXT else [element.text]
        if any(text is not None and text.strip() for text in texts):
            places.setdefault(f"text in {inside or '<robot>'}", []).append(owner)
        seen: dict[str, Element] = {}
        for part in element:
            first = seen.setdefault(part.tag, part)
            gear = element.tag in ("transmission", "joint", "actuator") and part.tag in REDUCTION
            once = part.tag in children and part.tag not in _MANY.get(inside, set()) and not gear
            if first is not part and once:
                raise part.error(
                    f"{element.label} has a second <{part.tag}>, the first on line {first.line}; "
                    "expected one. Delete one of them."
                )
            below = owner or part.get("name", "")
            if part.tag in children:
                walk(part, *children[part.tag], f"{inside}<{part.tag}>", below)
            else:
                places.setdefault(f"{inside}<{part.tag}>", []).append(below)

    walk(robot, {"name", "version"}, READ, "", "")
    for what, owners in places.items():
        names = [shortened(repr(name), _LONGEST_TEXT) for name in dict.fromkeys(owners) if name]
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        what = shortened(what, 4 * _LONGEST_TEXT)
        yield f"{what}, {len(owners)} times" + (f": {shown}" if shown else "")
