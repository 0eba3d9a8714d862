"""Names of fields, `node.field`, `node.field[2]`, `node.field[0:3]`, `[0,2]`; and their units."""

import math
import re
from typing import Annotated

from pydantic import Field

from mime._text import nearest, quoted

_PART = r"(?:\d{1,6}|\d{0,6}:\d{0,6})"
_INDEX = rf"{_PART}(?:,{_PART})*"
_FIELD = re.compile(rf"([^\[\]]+)\.([^.\[\]]+)(?:\[({_INDEX})\])?")

FIELD_PATTERN = rf"^[^\[\]]+\.[^.\[\]]+(\[{_INDEX}\])?$"
FieldName = Annotated[str, Field(pattern=FIELD_PATTERN)]
Index = tuple[int | slice, ...]
TEXT_PATTERN = r"^(?:\P{Cc}|[\n\t])*$"
Words = Annotated[str, Field(pattern=TEXT_PATTERN, max_length=1000)]
"""Text to show: no control characters, which a terminal would obey."""

_OTHER_UNITS: dict[str, dict[str, float]] = {
    "m": {"mm": 1e3, "µm": 1e6},
    "m/s": {"mm/s": 1e3},
    "rad": {"deg": 180.0 / math.pi, "mrad": 1e3, "rev": 0.5 / math.pi},
    "rad/s": {"deg/s": 180.0 / math.pi, "rpm": 30.0 / math.pi, "rev/s": 0.5 / math.pi},
    "s": {"ms": 1e3},
    "V": {"mV": 1e3},
    "A": {"mA": 1e3},
    "N·m": {"mN·m": 1e3},
}
"""Units that people prefer to a field's own: y = factor x."""


def split_field(name: str) -> tuple[str, str, Index | None]:
    """Node, field, and the index of a component or of several, if there is one."""
    match = _FIELD.fullmatch(name)
    if match is None:
        raise ValueError(f"must be 'node.field' or 'node.field[component]', got {name!r}")
    node, field, index = match.groups()
    return node, field, None if index is None else tuple(_part(part) for part in index.split(","))


def picked_shape(shape: tuple[int, ...], index: Index) -> tuple[int, ...] | None:
    """The shape of what an index picks; None when it is not there."""
    if len(index) != len(shape):
        return None
    picked = []
    for part, length in zip(index, shape, strict=True):
        if isinstance(part, int):
            if part >= length:
                return None
        elif (count := len(range(length)[part])) and (part.stop or 0) <= length:
            picked.append(count)
        else:
            return None
    return tuple(picked)


def _part(words: str) -> int | slice:
    first, colon, last = words.partition(":")
    if not colon:
        return int(first)
    return slice(int(first) if first else None, int(last) if last else None)


def is_unit_known(unit: str, wanted: str | None) -> bool:
    """Whether a value in `unit` can be shown in the wanted one; in its own it always can."""
    return wanted is None or wanted == unit or wanted in _OTHER_UNITS.get(unit, {})


def unit_factor(unit: str, wanted: str | None) -> float:
    """The factor that takes a value in `unit` to the wanted one."""
    known = {unit: 1.0, **_OTHER_UNITS.get(unit, {})}
    if wanted is None:
        return 1.0
    if wanted not in known:
        raise ValueError(
            f"{unit or '1'!r} cannot be shown in {wanted!r}{nearest(wanted, known)}, "
            f"expected one of {quoted(known)}"
        )
    return known[wanted]


def own_unit(unit: str) -> str | None:
    """The unit that a field has which is shown in this one: "rad" of "deg"; None of none."""
    if unit in _OTHER_UNITS:
        return unit
    return next((own for own, others in _OTHER_UNITS.items() if unit in others), None)
