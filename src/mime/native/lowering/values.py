"""What a variable of a jaxpr is while it is lowered.

A **constant** is a NumPy array of numbers. An array **in registers** is a NumPy array of objects,
each a number or a `Value`: slicing, stacking and reshaping it costs nothing when the program runs.
An array **in memory** is a `Memory`: it is large, or its index is known only when the program runs.
"""

import dataclasses
import math
from functools import cache
from typing import Any, TypeGuard

import numpy as np

MOST_IN_REGISTERS = 256
"""Elements of an array in registers: an operation on them is an instruction for each. A larger one
is kept in memory, and an operation is a loop.
"""

MOST_LOADED = 4096
"""Elements of an array in memory that an operation without a loop of its own may load."""

MOST_CARRIED = 96
"""Elements of an array that a loop carries in registers; a larger one is carried in memory."""

TYPES = {
    "float64": "double",
    "float32": "float",
    "int64": "i64",
    "uint64": "i64",
    "int32": "i32",
    "uint32": "i32",
    "int16": "i16",
    "uint16": "i16",
    "int8": "i8",
    "uint8": "i8",
    "bool": "i1",
}
"""The LLVM type of one element."""

FLOATS = ("double", "float")
"""The types of LLVM that have fractions."""


UNBOUNDED = 2**31 - 1
"""The length of a result whose rows are written one by one, as many as the caller has room for:
one program then serves runs of any length. The caller says how far apart the members' lie.
"""


class Unsupported(Exception):  # noqa: N818
    """The compiler does not know a primitive, or not in this form: XLA takes the whole function."""


class Value:
    """One scalar of the physics in a register: a vector with a lane for each member of a block, or
    a single number where all members share it.
    """

    __slots__ = ("counts", "factors", "name", "type", "varying")

    def __init__(self, name: str, type_: str, varying: bool):
        self.name, self.type, self.varying = name, type_, varying
        self.factors: tuple[Any, Any] | None = None
        """(a, b) when this is the product a b, which a sum may then fuse with."""
        self.counts = False
        """An integer as a float: n dt is rounded, so that what begins at 1000 dt begins then."""


@dataclasses.dataclass(frozen=True)
class Memory:
    """An array whose elements lie in memory, in row-major order.

    lanes      one pointer: the lanes of an element lie side by side (the workspace)
    members    one pointer for each lane: the arrays of the members lie one after another
    shared     one pointer: all members share the array
    plain      one pointer: a place in the workspace for what all members share
    nothing    no pointer: an array that was never written to
    """

    pointers: tuple[str, ...]
    kind: str
    shape: tuple[int, ...]
    dtype: np.dtype
    owned: bool = False
    """The lowering made it, and may change it once nobody reads the old content any more."""

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def reshaped(self, shape: tuple[int, ...]) -> "Memory":
        """The same elements in another shape."""
        return dataclasses.replace(self, shape=tuple(shape))


Lowered = np.ndarray | Memory


@cache
def type_of(dtype: Any) -> str:
    """The LLVM type of an element of this dtype."""
    name = np.dtype(dtype).name if not hasattr(dtype, "_rules") else str(dtype)
    if name not in TYPES:
        raise Unsupported(f"arrays of {name}")
    return TYPES[name]


def stored_type(dtype: Any) -> str:
    """The LLVM type of an element in memory, where a truth takes a byte."""
    type_ = type_of(dtype)
    return "i8" if type_ == "i1" else type_


def bytes_of(dtype: Any) -> int:
    """The size of an element in memory."""
    return np.dtype(dtype).itemsize


def is_constant(x: Any) -> TypeGuard[np.ndarray]:
    """True for an array of numbers."""
    return isinstance(x, np.ndarray) and x.dtype != object


def registers(elements: Any, shape: tuple[int, ...]) -> np.ndarray:
    """A list of elements as an array in registers."""
    array = np.empty(len(elements), object)
    array[:] = elements
    return array.reshape(shape)


def as_objects(x: np.ndarray) -> np.ndarray:
    """The array with an object for each element; numbers become Python's own."""
    return x if x.dtype == object else x.astype(object)
