"""LLVM IR, line by line: instructions on vectors of lanes, blocks, nothing written twice."""

from collections.abc import Callable, Sequence
from typing import Any

from mime.native.lowering.constants import constant_key, constant_text
from mime.native.lowering.module import Module
from mime.native.lowering.values import Value


class Writer:
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

    def lane(self, x: Any, lane: int, type_: str) -> str:
        """The operand of one lane, as a single number."""
        if not isinstance(x, Value) or not x.varying:
            return self.operand(x, type_, False)
        key = ("lane", x.name, lane)
        if (found := self._known(key)) is None:
            text = f"extractelement {self.type(x.type, True)} {x.name}, i64 {lane}"
            found = self._keep(key, self.emit(text, x.type, False))
        return found.name

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
