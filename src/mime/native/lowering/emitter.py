"""LLVM IR, line by line: scalars of the physics as vectors of lanes, nothing computed twice.

a b + c   is one rounding where the processor has it (fma), and the same one in every lane and
for every number of lanes, since it is written out here and not left to LLVM
0 x       is 0: a zero of a joint's frame removes what it would multiply. (A NaN in x is not
seen here then; it is seen where it arose.)
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mime.native.lowering.constants import constant_key, constant_text, rounded, same, wrapped
from mime.native.lowering.module import Module
from mime.native.lowering.values import Memory, Value, type_of

_SIZES = {"double": 8, "float": 4, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "i1": 1}
ALIGNED = 64
"""Bytes of which the workspace's address is a multiple."""
_FLOATS = ("double", "float")


class Emitter:
    """A function under way: its lines so far, and the values that are known in this block."""

    def __init__(self, lanes: int, fma: bool, module: Module):
        self.lanes, self.fma, self.module = lanes, fma, module
        self.lines: list[str] = []
        self.block = "entry"
        self.scopes: list[dict[Any, Any]] = [{}]
        self.prologue: list[str] = []
        self.offsets = module.offsets
        self.recipes: dict[str, Callable[[], str]] = {}
        """Pointers that are formed where they are used: thousands would not fit into registers."""
        self.operations = 0
        self.arithmetic = 0
        self._count = 0

    # --- names, types, operands -----------------------------------------------------------------

    def fresh(self, prefix: str = "v") -> str:
        self._count += 1
        return f"%{prefix}{self._count}"

    def type(self, scalar: str, varying: bool) -> str:
        return f"<{self.lanes} x {scalar}>" if varying else scalar

    def operand(self, x: Any, type_: str, varying: bool) -> str:
        """The text of an operand; a number or a shared value is spread over the lanes."""
        if isinstance(x, Value):
            if x.varying == varying:
                return x.name
            # A lane too many: read from a place with room for all lanes, and known to be shared.
            return self.spread(x).name if varying else self.lane(x, 0, type_)
        text = constant_text(x, type_)
        return f"splat ({type_} {text})" if varying else text

    def spread(self, x: Value) -> Value:
        """A shared value in every lane."""
        if x.varying:
            return x
        key = ("spread", x.name)
        if (found := self._known(key)) is not None:
            return found
        vector = self.type(x.type, True)
        first, result = self.fresh(), self.fresh()
        self.lines.append(f"{first} = insertelement {vector} poison, {x.type} {x.name}, i64 0")
        self.lines.append(
            f"{result} = shufflevector {vector} {first}, {vector} poison, "
            f"<{self.lanes} x i32> zeroinitializer"
        )
        return self._keep(key, Value(result, x.type, True))

    def _known(self, key: Any) -> Any:
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        return None

    def _keep(self, key: Any, value: Any) -> Any:
        self.scopes[-1][key] = value
        return value

    # --- instructions ---------------------------------------------------------------------------

    def emit(self, text: str, type_: str, varying: bool) -> Value:
        """`%new = text`"""
        name = self.fresh()
        self.lines.append(f"{name} = {text}")
        self.operations += 1
        return Value(name, type_, varying)

    def op(self, code: str, type_: str, *operands: Any, result: str | None = None) -> Value:
        """An instruction of operands of one type, written `code type a, b`, unless it is known."""
        key = value_key(code, type_, operands)
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        varying = any(isinstance(x, Value) and x.varying for x in operands)
        texts = ", ".join([self.operand(x, type_, varying) for x in operands])
        made = self.emit(f"{code} {self.type(type_, varying)} {texts}", result or type_, varying)
        self.arithmetic += varying
        self.scopes[-1][key] = made
        return made

    def intrinsic(self, name: str, type_: str, *operands: Any) -> Value:
        """`llvm.name` of operands of one type."""
        key = value_key(name, type_, operands)
        if (found := self._known(key)) is not None:
            return found
        varying = any(isinstance(x, Value) and x.varying for x in operands)
        whole = self.type(type_, varying)
        suffix = {"double": "f64", "float": "f32"}.get(type_, type_)
        function = f"llvm.{name}.v{self.lanes}{suffix}" if varying else f"llvm.{name}.{suffix}"
        self.module.declare(function, whole, [whole] * len(operands))
        texts = ", ".join(f"{whole} {self.operand(x, type_, varying)}" for x in operands)
        self.arithmetic += varying
        return self._keep(key, self.emit(f"call {whole} @{function}({texts})", type_, varying))

    def elementary(self, name: str, type_: str, *operands: Any) -> Value:
        """An elementary function of `mime.native.elementary`; it works on lanes."""
        key = value_key(name, type_, operands)
        if (found := self._known(key)) is not None:
            return found
        varying = any(isinstance(x, Value) and x.varying for x in operands)
        vector = self.type(type_, True)
        texts = ", ".join(f"{vector} {self.operand(x, type_, True)}" for x in operands)
        if name in ("sin", "cos"):
            function = self.module.elementary("sincos", type_)
            pair = f"{{{vector}, {vector}}}"
            both = self.emit(f"call {pair} @{function}({texts})", type_, True)
            results = [
                self.emit(f"extractvalue {pair} {both.name}, {k}", type_, True) for k in range(2)
            ]
            for which, result in zip(("sin", "cos"), results, strict=True):
                self._keep((which, *key[1:]), self._shared(result) if not varying else result)
            self.operations += 30
            self.arithmetic += 30
            return self._known(key)
        function = self.module.elementary(name, type_)
        result = self.emit(f"call {vector} @{function}({texts})", type_, True)
        self.operations += 30
        self.arithmetic += 30
        return self._keep(key, self._shared(result) if not varying else result)

    def _shared(self, x: Value) -> Value:
        """The first lane of a value that all members share."""
        return self.emit(f"extractelement {self.type(x.type, True)} {x.name}, i64 0", x.type, False)

    # --- arithmetic -----------------------------------------------------------------------------

    def add(self, x: Any, y: Any, type_: str) -> Any:
        if type_ not in _FLOATS:
            return self.integer("add", x, y, type_)
        if not isinstance(x, Value):
            if not isinstance(y, Value):
                return rounded(x + y, type_)
            x, y = y, x
        if not isinstance(y, Value) and y == 0:
            return x
        if self.fma:
            if x.factors:
                return self.intrinsic("fma", type_, *x.factors, y)
            if isinstance(y, Value) and y.factors:
                return self.intrinsic("fma", type_, *y.factors, x)
        return self.op("fadd", type_, x, y)

    def sub(self, x: Any, y: Any, type_: str) -> Any:
        if type_ not in _FLOATS:
            return self.integer("sub", x, y, type_)
        if not isinstance(y, Value):
            if not isinstance(x, Value):
                return rounded(x - y, type_)
            if y == 0:
                return x
        elif not isinstance(x, Value) and x == 0:
            return self.neg(y, type_)
        alike = isinstance(x, Value) and isinstance(y, Value) and x.name == y.name
        if self.fma and not alike:  # x - x is 0, and not what rounding took from a product
            if isinstance(y, Value) and y.factors:
                a, b = y.factors
                if not isinstance(b, Value):
                    a, b = b, a
                return self.intrinsic("fma", type_, self.neg(a, type_), b, x)
            if isinstance(x, Value) and x.factors:
                return self.intrinsic("fma", type_, *x.factors, self.neg(y, type_))
        return self.op("fsub", type_, x, y)

    def mul(self, x: Any, y: Any, type_: str) -> Any:
        if type_ not in _FLOATS:
            return self.integer("mul", x, y, type_)
        if not isinstance(x, Value):
            if not isinstance(y, Value):
                return rounded(x * y, type_)
            x, y = y, x
        if not isinstance(y, Value):
            if y == 0:
                return 0.0
            if y == 1:
                return x
            if y == -1:
                return self.neg(x, type_)
        elif y.name < x.name:  # one order, so that x y and y x are one value
            x, y = y, x
        product = self.op("fmul", type_, x, y)
        if not x.counts and not (isinstance(y, Value) and y.counts):
            product.factors = (x, y)
        return product

    def neg(self, x: Any, type_: str) -> Any:
        if not isinstance(x, Value):
            return rounded(-x, type_)
        return self.op("fneg", type_, x) if type_ in _FLOATS else self.op("sub", type_, 0, x)

    def div(self, x: Any, y: Any, type_: str) -> Any:
        if not isinstance(y, Value) and y == 1:
            return x
        return self.op("fdiv", type_, x, y)

    def integer(self, code: str, x: Any, y: Any, type_: str) -> Any:
        if not isinstance(x, Value) and not isinstance(y, Value):
            a, b = int(x), int(y)
            return wrapped(a + b if code == "add" else a - b if code == "sub" else a * b, type_)
        if not isinstance(y, Value) and y == 0 and code != "mul":
            return x
        if not isinstance(x, Value) and x == 0 and code == "add":
            return y
        return self.op(code, type_, x, y)

    def select(self, condition: Any, yes: Any, no: Any, type_: str) -> Any:
        if not isinstance(condition, Value):
            return yes if condition else no
        if yes is no or (
            not isinstance(yes, Value) and not isinstance(no, Value) and same(yes, no)
        ):
            return yes
        key = ("select", condition.name, type_, *(
            x.name if isinstance(x, Value) else constant_key(x) for x in (yes, no)
        ))  # fmt: skip
        if (found := self._known(key)) is not None:
            return found
        varying = any(isinstance(x, Value) and x.varying for x in (condition, yes, no))
        whole = self.type(type_, varying)
        mask = self.type("i1", condition.varying)
        a, b = (self.operand(x, type_, varying) for x in (yes, no))
        text = f"select {mask} {condition.name}, {whole} {a}, {whole} {b}"
        self.arithmetic += varying
        return self._keep(key, self.emit(text, type_, varying))

    def compare(self, code: str, x: Any, y: Any, type_: str) -> Value:
        """`code` is `fcmp olt`, `icmp slt`, ..."""
        return self.op(code, type_, x, y, result="i1")

    def convert(self, code: str, x: Value, source: str, target: str) -> Value:
        """`code` is `sitofp`, `fptrunc`, `zext`, ..."""
        key = (code, x.name, target)
        if (found := self._known(key)) is not None:
            return found
        whole, to = self.type(source, x.varying), self.type(target, x.varying)
        made = self.emit(f"{code} {whole} {x.name} to {to}", target, x.varying)
        made.counts = code in ("sitofp", "uitofp")
        return self._keep(key, made)

    def any(self, mask: Any) -> Any:
        """True when a lane is: shared by all."""
        if not isinstance(mask, Value) or not mask.varying:
            return mask
        whole, bits = self.type("i1", True), f"i{self.lanes}"
        packed = self.emit(f"bitcast {whole} {mask.name} to {bits}", bits, False)
        return self.emit(f"icmp ne {bits} {packed.name}, 0", "i1", False)

    # --- memory ---------------------------------------------------------------------------------

    def lane(self, x: Any, lane: int, type_: str) -> str:
        """The operand of one lane, as a single number."""
        if not isinstance(x, Value) or not x.varying:
            return self.operand(x, type_, False)
        key = ("lane", x.name, lane)
        if (found := self._known(key)) is None:
            text = f"extractelement {self.type(x.type, True)} {x.name}, i64 {lane}"
            found = self._keep(key, self.emit(text, x.type, False))
        return found.name

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

    # --- blocks ---------------------------------------------------------------------------------

    def label(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def begin(self, label: str) -> None:
        """Go on in a new block."""
        self.lines.append(f"{label}:")
        self.block = label

    def branch(self, label: str) -> None:
        self.lines.append(f"br label %{label}")

    def branch_if(self, condition: Any, yes: str, no: str) -> None:
        text = self.operand(condition, "i1", False)
        self.lines.append(f"br i1 {text}, label %{yes}, label %{no}")

    def enter(self) -> None:
        """Values found from here on are known only until `leave`."""
        self.scopes.append({})

    def leave(self) -> None:
        self.scopes.pop()

    def phi(self, type_: str, varying: bool) -> tuple[Value, int]:
        """A value that depends on where the block was entered from, and the line to complete."""
        value = Value(self.fresh("phi"), type_, varying)
        self.lines.append("")
        return value, len(self.lines) - 1

    def complete(self, phi: Value, line: int, incoming: Sequence[tuple[str, str]]) -> None:
        """Say what a phi is: (operand, block) for each way in."""
        ways = ", ".join(f"[{operand}, %{block}]" for operand, block in incoming)
        self.lines[line] = f"{phi.name} = phi {self.type(phi.type, phi.varying)} {ways}"


def value_key(code: str, type_: str, operands: Sequence[Any]) -> tuple[Any, ...]:
    """What tells one operation from another."""
    named = [x.name if isinstance(x, Value) else constant_key(x) for x in operands]
    return (code, type_, *named)
