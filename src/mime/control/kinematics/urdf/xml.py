"""Reads XML that others wrote: entities are not expanded, and errors have line numbers."""

import codecs
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np

from mime._files import read_plain
from mime._text import shortened
from mime.control.kinematics.report import Finding, Findings, RobotFileError

LARGEST = 1e30
"""No length, mass, inertia or ratio of a machine is beyond it; its cube is a number still."""
MOST_BYTES = 2**26
"""Of an XML file; the largest robots that people publish take a thirtieth."""
LONGEST_TEXT = 60


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

    def error(self, message: str, rule: str = "malformed") -> RobotFileError:
        """The refusal of this element under a line of `RULES`."""
        return self.refusal(self.path, message, self.line, rule)

    def finding(self, words: str, effect: str = "", at: "Element | None" = None) -> Finding:
        """What is said of this element, with its file and line, or the line of a part of it."""
        line = self.line if at is None else at.line
        return Finding(str(self.path), line, shortened(f"{self.label} {words}", 1000), effect)

    @property
    def label(self) -> str:
        """The element in words: joint 'wrist', or <axis>."""
        name = self.get("name")
        words = f"<{self.tag}>" if name is None else f"{self.tag} {name!r}"
        return shortened(words, 2 * LONGEST_TEXT)


def read_xml(path: Path, found: Findings, kind: type[Element] = Element) -> Element:
    """The root element of a file; what is skipped in it is added to `found`."""
    refusal = kind.refusal
    try:
        text = read_plain(path, MOST_BYTES + 1)
    except OSError as error:
        raise refusal(path, f"cannot be read ({error.strerror}). Check the path.") from error
    except ValueError as error:  # a name with a null character
        raise refusal(path, f"cannot be read ({error}). Check the path.") from error
    if len(text) > MOST_BYTES:
        raise refusal(path, f"is longer than {MOST_BYTES} bytes; expected a robot in XML.")
    return parsed_xml(text, path, found, kind)


_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)


def parsed_xml(text: bytes, path: Path, found: Findings, kind: type[Element] = Element) -> Element:
    """The root element of a text that stands in the file `path`.

    Blank space before the XML declaration and comments that are not well-formed are skipped.
    Entity declarations are refused: they can blow up or read files.
    """
    if not text.strip():
        message = f"the file is empty; expected a <{kind.root}>. Export it again."
        raise kind.refusal(path, message)
    bare = text.removeprefix(codecs.BOM_UTF8).lstrip()
    lines = 0
    if bare.startswith(b"<?xml") and bare not in (text, text.removeprefix(codecs.BOM_UTF8)):
        lines = text[: -len(bare)].count(b"\n")
        words = "the XML declaration stands after blank space; expected it at the very beginning"
        found.add("xml", Finding(str(path), lines + 1, words, "the space is skipped"))
        text = bare
    try:
        return _root(text, path, lines, kind)
    except expat.ExpatError as error:
        line = error.lineno + lines
        plain = _COMMENT.sub(lambda comment: b"\n" * comment[0].count(b"\n"), text)
        try:
            root = _root(plain, path, lines, kind)
        except expat.ExpatError:
            message = f"not well-formed XML ({expat.ErrorString(error.code)}). {kind.advice}"
            raise kind.refusal(path, message, line) from error
        words = "a comment is not well-formed (it holds '--', or bytes that are no letters)"
        found.add("xml", Finding(str(path), line, words, "comments are not read"))
        return root


def _root(text: bytes, path: Path, lines_before: int, kind: type[Element]) -> Element:
    """The root element, by expat; what is not well-formed comes out as its own error."""

    def line() -> int:
        return parser.CurrentLineNumber + lines_before

    def refuse(*_: object) -> None:
        message = "a DOCTYPE or ENTITY declaration; MIME expands no entities. "
        message += "Delete it and write the values out."
        raise kind.refusal(path, message, line())

    def element(tag: str, attributes: dict[str, str]) -> Element:
        made = kind(tag, attributes)
        made.path, made.line = path, line()
        return made

    # The parser knows no namespaces, so `drake:gear_ratio` needs no xmlns to be a plain tag.
    parser = expat.ParserCreate()
    builder = ElementTree.TreeBuilder(element_factory=element)
    parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, RobotFileError):
        raise
    except (LookupError, ValueError) as error:  # an encoding that Python or expat does not read
        message = f"its encoding cannot be read ({error}). Save it as UTF-8."
        raise kind.refusal(path, message, line()) from error
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
    shown = shortened(repr(text), LONGEST_TEXT)
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
