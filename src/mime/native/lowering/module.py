"""The module of a kernel: what its functions share."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mime.native.lowering.constants import constant_text
from mime.native.lowering.elementary_text import elementary_text, function_name
from mime.native.lowering.values import Memory, bytes_of, stored_type


class Module:
    """Declarations, tables, elementary functions, and the plan of the workspace."""

    def __init__(self, lanes: int, fma: bool):
        self.lanes, self.fma = lanes, fma
        self._declared: dict[str, str] = {}
        self._tables: dict[Any, tuple[str, str]] = {}
        self._elementary: dict[tuple[str, int], None] = {}
        self.functions: list[str] = []
        self.workspace = 0
        self.offsets: dict[str, int] = {}
        """Where in the workspace each of its arrays begins, in bytes."""

    def declare(self, name: str, result: str, arguments: Sequence[str]) -> None:
        if name not in self._declared:
            self._declared[name] = f"declare {result} @{name}({', '.join(arguments)})"

    def elementary(self, name: str, type_: str) -> str:
        """The name of an elementary function, which the module then defines."""
        bits = 64 if type_ == "double" else 32
        function = function_name(name, bits, self.lanes, self.fma)
        self._elementary[name, bits] = None
        return function

    def table(self, array: np.ndarray) -> Memory:
        """A constant array in memory."""
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._tables:
            name, stored = f"@table{len(self._tables)}", stored_type(array.dtype)
            entries = ", ".join(
                f"{stored} {constant_text(x, stored)}" for x in array.ravel().tolist()
            )
            text = f"{name} = private constant [{array.size} x {stored}] [{entries}], align 64"
            self._tables[key] = name, text
        return Memory((self._tables[key][0],), "shared", array.shape, array.dtype)

    def allocate(self, shape: tuple[int, ...], dtype: Any, lanes: int) -> int:
        """Room in the workspace for an array with its lanes: the offset in bytes."""
        element = bytes_of(dtype) * lanes
        offset = -(-self.workspace // element) * element
        self.workspace = offset + math.prod(shape) * element
        return offset

    def text(self) -> str:
        """The IR of the whole module."""
        wanted = tuple(sorted(self._elementary))
        tables = [text for _, text in self._tables.values()]
        elementary, declared = elementary_text(wanted, self.lanes, self.fma)
        mine = [text for name, text in self._declared.items() if name not in declared]
        return "\n".join([*tables, *mine, elementary, *self.functions])
