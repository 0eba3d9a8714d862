"""Numbers that are known now: what tells them apart, and how LLVM writes them."""

import math
import struct
from typing import Any

import numpy as np


def constant_key(x: Any) -> Any:
    """What tells one constant from another: 0.0 and -0.0 differ, and so do 1 and 1.0."""
    return (x, math.copysign(1.0, x)) if isinstance(x, float) else (type(x).__name__, int(x))


def same(x: Any, y: Any) -> bool:
    """True for one and the same constant."""
    return constant_key(x) == constant_key(y)


def constant_text(x: Any, type_: str) -> str:
    """A number in LLVM's notation: floats by their bits, which is exact."""
    if type_ == "double":
        return f"0x{struct.unpack('<Q', struct.pack('<d', float(x)))[0]:016X}"
    if type_ == "float":
        with np.errstate(over="ignore"):
            wide = float(np.float32(x))
        return f"0x{struct.unpack('<Q', struct.pack('<d', wide))[0]:016X}"
    if type_ == "i1":
        return "true" if x else "false"
    return str(wrapped(int(x), type_))


def rounded(x: Any, type_: str) -> Any:
    """A constant in the precision of its type."""
    return float(np.float32(x)) if type_ == "float" else x


def wrapped(x: int, type_: str) -> int:
    """A constant integer as the machine keeps it."""
    bits = int(type_[1:])
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x
