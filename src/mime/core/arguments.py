"""The one checker of what callers give: what it is, where, what was got, what was expected.

steps = whole("steps", steps, least=1)      an int; `numpy.int64(5)` and 0-d arrays are too
duration = real("duration", duration)       a finite float
"""

import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mime._text import brief
from mime.core.problem import InputError


def wrong(name: str, expected: str, value: Any, hint: str = "") -> InputError:
    """The error of an argument that is not as expected."""
    kind = "" if value is None or isinstance(value, str | int | float) else type(value).__name__
    got = f"{kind} {brief(value)}".strip()
    return InputError(
        f"{name} must be {expected}, got {got}{f'. {hint}' if hint else ''}", place=(name,)
    )


def whole(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """A whole number within bounds, as an int."""
    if type(value) is not int:
        try:
            if np.asarray(value).dtype.kind not in "iu":
                raise TypeError
            value = operator.index(value)
        except Exception:  # an object's own `__array__` or `__index__` may raise anything
            raise wrong(name, f"a whole number {_bounds(least, most)}", value) from None
    if value < least or (most is not None and value > most):
        raise wrong(name, f"a whole number {_bounds(least, most)}", value)
    return value


def real(
    name: str,
    value: Any,
    unit: str = "",
    above: float | int | None = None,
    least: float | int | None = None,
    below: float | int | None = None,
) -> float:
    """A finite number within bounds, as a float."""
    bounds = [f"> {above:g}"] if above is not None else []
    bounds += [f">= {least:g}"] if least is not None else []
    bounds += [f"< {below:g}"] if below is not None else []
    words = ["a finite number", " and ".join(bounds), unit]
    expected = " ".join(word for word in words if word)
    try:
        if isinstance(value, bool) or np.asarray(value).dtype.kind not in "iuf":
            raise TypeError
        number = float(value)
    except Exception:  # as in `whole`
        raise wrong(name, expected, value) from None
    low = (above is not None and number <= above) or (least is not None and number < least)
    if not math.isfinite(number) or low or (below is not None and number >= below):
        raise wrong(name, expected, value)
    return number


def text(name: str, value: Any) -> str:
    """A string that is not empty."""
    if not isinstance(value, str) or not value:
        raise wrong(name, "a name, a string", value)
    return value


def texts(name: str, value: Any) -> list[str]:
    """Several strings, in a list or the like; a single string is none of these."""
    found = several(name, value)
    for entry in found:
        if not isinstance(entry, str):
            raise wrong(name, "a list of names", value)
    return found


def mapping(name: str, value: Any, form: str) -> Mapping[str, Any]:
    """A mapping whose keys are strings; `form` shows what it looks like. None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise wrong(name, f"a mapping like {form}", value)
    for key in value:
        if not isinstance(key, str):
            raise wrong(name, f"a mapping like {form}, its keys strings", key)
    return value


def several(name: str, value: Any) -> list[Any]:
    """The entries of a list or the like."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise wrong(name, "a list", value)
    try:
        return list(value)
    except TypeError:  # an array of no dimensions
        raise wrong(name, "a list", value) from None


def instance(name: str, value: Any, *kinds: type, hint: str = "") -> Any:
    """A value of one of these classes."""
    if not isinstance(value, kinds):
        expected = " or ".join(f"a {kind.__name__}" for kind in kinds)
        raise wrong(name, expected.replace("a NoneType", "None"), value, hint)
    return value


def function(name: str, value: Any) -> Callable[..., Any]:
    """Something that can be called."""
    if not callable(value):
        raise wrong(name, "a function", value)
    return value


def numbers(name: str, value: Any, where: str = "") -> Any:
    """A number or a regular array of finite or other real numbers, as it was; traced ones too."""
    try:
        dtype = getattr(value, "dtype", None) or np.asarray(value).dtype
        sound = dtype.kind in "biuf" or "float" in str(dtype)  # bfloat16 is of kind V
    except Exception:  # a ragged list, an object that raises
        sound = False
    if not sound:
        raise wrong(f"{where}{name}", "a number or an array of numbers", value)
    return value


def path(name: str, value: Any) -> Path:
    """The name of a file or a folder."""
    if not isinstance(value, str | os.PathLike) or "\0" in str(value):
        raise wrong(name, "the path of a file", value)
    return Path(value)


def _bounds(least: int, most: int | None) -> str:
    return f">= {least}" if most is None else f"from {least} to {most}"
