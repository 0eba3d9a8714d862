"""Units that people prefer to a field's own: y = factor x."""

import math

from mime._text import nearest, quoted

_OTHERS: dict[str, dict[str, float]] = {
    "m": {"mm": 1e3, "µm": 1e6},
    "m/s": {"mm/s": 1e3},
    "rad": {"deg": 180.0 / math.pi, "mrad": 1e3},
    "rad/s": {"deg/s": 180.0 / math.pi, "rpm": 30.0 / math.pi},
    "s": {"ms": 1e3},
    "A": {"mA": 1e3},
    "N·m": {"mN·m": 1e3},
}


def is_known(unit: str, wanted: str | None) -> bool:
    """Whether a value in `unit` can be shown in the wanted one; in its own it always can."""
    return wanted is None or wanted == unit or wanted in _OTHERS.get(unit, {})


def factor(unit: str, wanted: str | None) -> float:
    """By what to multiply a value in `unit` to have it in the wanted one."""
    known = {unit: 1.0, **_OTHERS.get(unit, {})}
    if wanted is None:
        return 1.0
    if wanted not in known:
        raise ValueError(
            f"{unit or '1'!r} cannot be shown in {wanted!r}{nearest(wanted, known)}, "
            f"expected one of {quoted(known)}"
        )
    return known[wanted]
