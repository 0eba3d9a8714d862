"""Arrays in memory: a vector of lanes for each element that differs between members."""

from typing import Any

import numpy as np

from mime.native.lowering.arithmetic import Arithmetic
from mime.native.lowering.values import Memory, Value, type_of

_SIZES = {"double": 8, "float": 4, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "i1": 1}
ALIGNED = 64
"""Bytes of which the workspace's address is a multiple."""


class Emitter(Arithmetic):
    """A function under way: its lines so far, and the values that are known in this block."""

    def load(self, memory: Memory, index: Any) -> Any:
        """The element at an index, an i64 known now, shared, or one for each lane."""
        type_ = type_of(memory.dtype)
        stored = "i8" if type_ == "i1" else type_
        varying_index = isinstance(index, Value) and index.varying
        if memory.kind in ("shared", "plain") and not varying_index:
            value = self._load_one(memory.pointers[0], index, stored)
        elif memory.kind == "lanes" and not varying_index:
            address = self.address(memory.pointers[0], index, stored, scale=self.lanes)
            align = min(_SIZES[stored] * self.lanes, ALIGNED)
            vector = self.type(stored, True)
            value = self.emit(f"load {vector}, ptr {address}, align {align}", stored, True)
        else:
            vector = self.type(stored, True)
            name = "poison"
            for lane in range(self.lanes):
                at = index
                if varying_index:
                    at = Value(self.lane(index, lane, "i64"), "i64", False)
                pointer, scale, shift = memory.pointers[0], 1, 0
                if memory.kind == "members":
                    pointer = memory.pointers[lane]
                elif memory.kind == "lanes":
                    scale, shift = self.lanes, lane
                one = self._load_one(pointer, at, stored, scale, shift)
                text = f"insertelement {vector} {name}, {stored} {one.name}, i64 {lane}"
                value = self.emit(text, stored, True)
                name = value.name
        if type_ != "i1":
            return value
        return self.compare("icmp ne", value, 0, "i8")

    def _load_one(
        self, pointer: str, index: Any, type_: str, scale: int = 1, shift: int = 0
    ) -> Value:
        address = self.address(pointer, index, type_, scale, shift)
        return self.emit(f"load {type_}, ptr {address}, align {_SIZES[type_]}", type_, False)

    def address(self, pointer: str, index: Any, type_: str, scale: int = 1, shift: int = 0) -> str:
        """The address of an element; `scale` elements lie between two, the first `shift` away."""
        if not isinstance(index, Value):
            flat = int(index) * scale + shift
            if pointer in self.offsets:
                return self._in_workspace(self.offsets[pointer] + flat * _SIZES[type_])
            pointer = self.pointer(pointer)
            if flat == 0:
                return pointer
            text = f"i64 {flat}"
        else:
            flat_index = self.op("mul", "i64", index, scale) if scale != 1 else index
            if shift:
                flat_index = self.op("add", "i64", flat_index, shift)
            text = f"i64 {flat_index.name}"
            pointer = self.pointer(pointer)
        key = ("address", pointer, type_, text)
        if (found := self._known(key)) is None:
            found = self._keep(
                key, self.emit(f"getelementptr {type_}, ptr {pointer}, {text}", "ptr", False)
            )
        return found.name

    def pointer(self, name: str) -> str:
        """A pointer as an operand: formed here if that is how it is to be had."""
        if name in self.offsets:
            return self._in_workspace(self.offsets[name])
        if name not in self.recipes:
            return name
        key = ("pointer", name)
        if (found := self._known(key)) is None:
            found = self._keep(key, self.recipes[name]())
        return found

    def _in_workspace(self, offset: int) -> str:
        if offset == 0:
            return "%workspace"
        key = ("workspace", offset)
        if (found := self._known(key)) is None:
            text = f"getelementptr i8, ptr %workspace, i64 {offset}"
            found = self._keep(key, self.emit(text, "ptr", False))
        return found.name

    def store(self, memory: Memory, index: Any, x: Any) -> None:
        """Write an element; the index as in `load`."""
        type_ = type_of(memory.dtype)
        stored = type_
        if type_ == "i1":
            stored = "i8"
            x = self.convert("zext", x, "i1", "i8") if isinstance(x, Value) else int(x)
        varying_index = isinstance(index, Value) and index.varying
        self.operations += 1
        if memory.kind == "lanes" and not varying_index:
            address = self.address(memory.pointers[0], index, stored, scale=self.lanes)
            vector = self.type(stored, True)
            align = min(_SIZES[stored] * self.lanes, ALIGNED)
            value = self.operand(x, stored, True)
            self.lines.append(f"store {vector} {value}, ptr {address}, align {align}")
            return
        if memory.kind == "plain":
            address = self.address(memory.pointers[0], index, stored)
            value = self.operand(x, stored, False)
            self.lines.append(f"store {stored} {value}, ptr {address}, align {_SIZES[stored]}")
            return
        if memory.kind == "shared":
            raise AssertionError("a shared array is read only")
        for lane in range(self.lanes):
            at = index
            if varying_index:
                at = Value(self.lane(index, lane, "i64"), "i64", False)
            pointer, scale, shift = memory.pointers[0], 1, 0
            if memory.kind == "members":
                pointer = memory.pointers[lane]
            elif memory.kind == "lanes":
                scale, shift = self.lanes, lane
            address = self.address(pointer, at, stored, scale, shift)
            value = self.lane(x, lane, stored)
            self.lines.append(f"store {stored} {value}, ptr {address}, align {_SIZES[stored]}")

    def allocate(self, shape: tuple[int, ...], dtype: Any, varying: bool = True) -> Memory:
        """A new array in the workspace, with the lanes of an element side by side."""
        offset = self.module.allocate(shape, dtype, self.lanes if varying else 1)
        return self.at(offset, shape, dtype, varying)

    def offset(self, memory: Memory) -> int:
        """Where in the workspace an array begins, in bytes."""
        return self.offsets[memory.pointers[0]]

    def at(self, offset: int, shape: tuple[int, ...], dtype: Any, varying: bool) -> Memory:
        """The array that lies at an offset of the workspace."""
        name = f"%workspace.{offset}"
        self.offsets[name] = offset
        kind = "lanes" if varying else "plain"
        return Memory((name,), kind, tuple(shape), np.dtype(dtype), True)
