"""Scalars of the physics as vectors of lanes:

a b + c   is one rounding where the processor has it (fma), and the same one in every lane and
for every number of lanes, since it is written out here and not left to LLVM
0 x       is 0: a zero of a joint's frame removes what it would multiply. (A NaN in x is not
seen here then; it is seen where it arose.)
"""

from typing import Any

from mime.native.lowering.constants import constant_key, rounded, same, wrapped
from mime.native.lowering.values import FLOATS, Value
from mime.native.lowering.writer import Writer


class Arithmetic(Writer):
    """A function under way, with the operations of numbers."""

    def add(self, x: Any, y: Any, type_: str) -> Any:
        if type_ not in FLOATS:
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
        if type_ not in FLOATS:
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
        if type_ not in FLOATS:
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
        return self.op("fneg", type_, x) if type_ in FLOATS else self.op("sub", type_, 0, x)

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
