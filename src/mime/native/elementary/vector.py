"""Vectors of lanes that are written as numbers: `x * y + 1.0` appends instructions.

`Lanes` knows the width, the precision and where the instructions go; a `Vector` is one value.
Nothing here is a call of a library: on every processor each method becomes plain instructions.
No instruction carries a fast-math flag, so each one rounds as IEEE 754 says, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from mime.native.elementary.module import FORMATS

Number = int | float
Pair = tuple["Vector", "Vector"]
"""A number in two parts, hi + lo, with hi the sum rounded: twice the digits of one."""


@dataclass(frozen=True, eq=False)
class Vector:
    """A value of all lanes: floating-point numbers, integers or truths, as its type says."""

    lanes: Lanes
    value: ir.Value

    def _is_float(self) -> bool:
        return isinstance(self.value.type.element, ir.DoubleType | ir.FloatType)

    def _like(self, other: Vector | Number) -> ir.Value:
        if isinstance(other, Vector):
            return other.value
        return ir.Constant(self.value.type, [other] * self.lanes.count)

    def _emit(self, on_floats: str, on_integers: str, other: Vector | Number) -> Vector:
        name = on_floats if self._is_float() else on_integers
        return Vector(self.lanes, getattr(self.lanes.builder, name)(self.value, self._like(other)))

    def _compare(self, sign: str, other: Vector | Number) -> Vector:
        builder = self.lanes.builder
        compare = builder.fcmp_ordered if self._is_float() else builder.icmp_signed
        return Vector(self.lanes, compare(sign, self.value, self._like(other)))

    def __add__(self, other: Vector | Number) -> Vector:
        return self._emit("fadd", "add", other)

    def __sub__(self, other: Vector | Number) -> Vector:
        return self._emit("fsub", "sub", other)

    def __mul__(self, other: Vector | Number) -> Vector:
        return self._emit("fmul", "mul", other)

    def __truediv__(self, other: Vector) -> Vector:
        return self._emit("fdiv", "", other)

    def __radd__(self, other: Number) -> Vector:
        return self + other

    def __rmul__(self, other: Number) -> Vector:
        return self * other

    def __rsub__(self, other: Number) -> Vector:
        return Vector(self.lanes, self._like(other)) - self

    def __rtruediv__(self, other: Number) -> Vector:
        return Vector(self.lanes, self._like(other)) / self

    def __neg__(self) -> Vector:
        return Vector(self.lanes, self.lanes.builder.fneg(self.value))

    def __abs__(self) -> Vector:
        return self.lanes.intrinsic("llvm.fabs", self)

    def __and__(self, other: Vector | Number) -> Vector:
        return self._emit("", "and_", other)

    def __or__(self, other: Vector | Number) -> Vector:
        return self._emit("", "or_", other)

    def __xor__(self, other: Vector | Number) -> Vector:
        return self._emit("", "xor", other)

    def __invert__(self) -> Vector:
        return Vector(self.lanes, self.lanes.builder.not_(self.value))

    def __lshift__(self, count: int) -> Vector:
        return self._emit("", "shl", count)

    def __rshift__(self, count: int) -> Vector:
        """Zeros come in from the left."""
        return self._emit("", "lshr", count)

    def __lt__(self, other: Vector | Number) -> Vector:
        return self._compare("<", other)

    def __le__(self, other: Vector | Number) -> Vector:
        return self._compare("<=", other)

    def __gt__(self, other: Vector | Number) -> Vector:
        return self._compare(">", other)

    def __ge__(self, other: Vector | Number) -> Vector:
        return self._compare(">=", other)

    def equals(self, other: Vector | Number) -> Vector:
        return self._compare("==", other)

    def is_nan(self) -> Vector:
        return Vector(self.lanes, self.lanes.builder.fcmp_unordered("uno", self.value, self.value))

    @property
    def as_bits(self) -> Vector:
        """The same bits as integers."""
        return Vector(self.lanes, self.lanes.builder.bitcast(self.value, self.lanes.int_type))

    @property
    def as_float(self) -> Vector:
        """The same bits as floating-point numbers."""
        return Vector(self.lanes, self.lanes.builder.bitcast(self.value, self.lanes.float_type))


class Lanes:
    """`count` numbers of `bits`, side by side; `fma`: the processor multiplies and adds at once."""

    def __init__(self, builder: ir.IRBuilder, count: int, bits: int, fma: bool) -> None:
        self.builder, self.count, self.bits, self.has_fma = builder, count, bits, fma
        self.format = FORMATS[bits]
        self.float_type = ir.VectorType(self.format.float_type, count)
        self.int_type = ir.VectorType(self.format.int_type, count)
        self.magic = 1.5 * 2.0**self.format.mantissa
        """Added to a number it pushes the fraction out: what stays is the nearest integer."""

        self.negligible = 2.0 ** -(self.format.mantissa + 3)
        """Beside 1, with something to spare."""

    def constant(self, x: float) -> Vector:
        return Vector(self, ir.Constant(self.float_type, [x] * self.count))

    def integer(self, i: int) -> Vector:
        return Vector(self, ir.Constant(self.int_type, [i] * self.count))

    def intrinsic(self, name: str, *arguments: Vector) -> Vector:
        kind = self.float_type
        function_type = ir.FunctionType(kind, [kind] * len(arguments))
        full_name = f"{name}.v{self.count}f{self.bits}"
        module = self.builder.module
        function = module.globals.get(full_name) or ir.Function(module, function_type, full_name)
        return Vector(self, self.builder.call(function, [a.value for a in arguments]))

    def sqrt(self, x: Vector) -> Vector:
        return self.intrinsic("llvm.sqrt", x)

    def copysign(self, size: Vector, sign: Vector) -> Vector:
        return self.intrinsic("llvm.copysign", size, sign)

    def select(self, where: Vector, yes: Vector | Number, no: Vector | Number) -> Vector:
        model = yes if isinstance(yes, Vector) else no if isinstance(no, Vector) else None
        like = model._like if model is not None else self.constant(0.0)._like
        return Vector(self, self.builder.select(where.value, like(yes), like(no)))

    def clamp(self, x: Vector, low: float, high: float) -> Vector:
        """NaN stays NaN."""
        x = self.select(x < low, low, x)
        return self.select(x > high, high, x)

    # -- sums and products without loss ---------------------------------------------------------

    def fma(self, a: Vector, b: Vector | Number, c: Vector | Number) -> Vector:
        """a b + c, rounded once where the processor can, else twice."""
        b, c = (x if isinstance(x, Vector) else self.constant(x) for x in (b, c))
        return self.intrinsic("llvm.fma", a, b, c) if self.has_fma else a * b + c

    def fast_two_sum(self, a: Vector, b: Vector) -> Pair:
        """a + b exactly, as a pair; |a| >= |b|, or a = 0."""
        total = a + b
        return total, b - (total - a)

    def two_sum(self, a: Vector, b: Vector) -> Pair:
        """a + b exactly, as a pair."""
        total = a + b
        part = total - a
        return total, (a - (total - part)) + (b - part)

    def two_product(self, a: Vector, b: Vector) -> Pair:
        """a b exactly, as a pair (|a|, |b| < 2^996 and no underflow)."""
        product = a * b
        if self.has_fma:
            return product, self.fma(a, b, -product)
        (a1, a2), (b1, b2) = self._halves(a), self._halves(b)
        return product, a2 * b2 - (((product - a1 * b1) - a2 * b1) - a1 * b2)

    def _halves(self, a: Vector) -> Pair:
        """Dekker's split into two numbers of half the digits: products of halves are exact."""
        scaled = a * (2.0 ** ((self.format.mantissa + 2) // 2) + 1.0)
        high = scaled - (scaled - a)
        return high, a - high

    def exact_fma(self, a: Vector, b: Vector, c: Vector) -> Vector:
        """a b + c where a b is near -c, so that the sum can be written without rounding."""
        if self.has_fma:
            return self.fma(a, b, c)
        product, rest = self.two_product(a, b)
        return (c + product) + rest

    def product(self, a: Pair, b: Pair) -> Pair:
        """a b, as a pair."""
        high, low = self.two_product(a[0], b[0])
        return self.fast_two_sum(high, self.fma(a[0], b[1], self.fma(a[1], b[0], low)))

    def quotient(self, above: Pair, below: Pair) -> Pair:
        """above / below, as a pair."""
        inverse = 1.0 / below[0]
        high = above[0] * inverse
        rest = self.exact_fma(-high, below[0], above[0])
        rest = self.fma(-high, below[1], rest + above[1])
        return high, rest * inverse

    def root(self, x: Vector, x_lo: Vector) -> Pair:
        """sqrt(x + x_lo), as a pair."""
        high = self.sqrt(x)
        rest = self.exact_fma(-high, high, x) + x_lo
        return high, rest / self.select(high.equals(0.0), 1.0, 2.0 * high)

    # -- polynomials, powers of two, exponents ---------------------------------------------------

    def polynomial(self, x: Vector, coefficients: Sequence[float]) -> Vector:
        """Sum of c_k x^k by Estrin's scheme: neighbours are joined, x is squared, and again."""
        terms: list[Vector] = [self.constant(c) for c in coefficients]
        while len(terms) > 1:
            pairs = [self.fma(b, x, a) for a, b in zip(terms[::2], terms[1::2], strict=False)]
            terms = pairs + terms[len(terms) - len(terms) % 2 :]
            x = x * x
        return terms[0]

    def nearest(self, x: Vector) -> Vector:
        """The nearest integer; |x| < 2^22 or 2^51."""
        return (x + self.magic) - self.magic

    def power_of_two(self, n: Vector) -> Vector:
        """2^n for an integer n with a normal result."""
        return ((n + (self.magic + self.format.bias)).as_bits << self.format.mantissa).as_float

    def scale(self, x: Vector, n: Vector) -> Vector:
        """x 2^n, rounded once, where 2^n itself may be too large or too small to be written."""
        half = self.nearest(n * 0.5)
        return (x * self.power_of_two(half)) * self.power_of_two(n - half)

    def split_normal(self, x: Vector) -> Pair:
        """(n, m) with x = 2^n m and sqrt(1/2) <= m < sqrt(2); x normal and positive."""
        f = self.format
        lowest = 0x3FE6A09E667F3BCD if self.bits == 64 else 0x3F3504F3
        raised = x.as_bits + ((f.bias << f.mantissa) - lowest)
        exponent = (raised >> f.mantissa) | ((f.bias + f.mantissa) << f.mantissa)
        mantissa = (raised & ((1 << f.mantissa) - 1)) + lowest
        return exponent.as_float - (2.0**f.mantissa + f.bias), mantissa.as_float

    def split_exponent(self, x: Vector) -> Pair:
        """The same of any positive number."""
        digits = 3.0 * (self.format.mantissa // 3 + 1)
        small = x < self.format.least_normal
        n, m = self.split_normal(self.select(small, x * 2.0**digits, x))
        return self.select(small, n - digits, n), m

    # -- what few lanes need ----------------------------------------------------------------------

    def rarely(
        self, where: Vector, usual: Sequence[Vector], rare: Callable[[], Sequence[Vector]]
    ) -> list[Vector]:
        """`usual`, and in the lanes `where` it is true, `rare`: skipped if no lane needs it."""
        builder = self.builder
        truths = builder.bitcast(where.value, ir.IntType(self.count))
        before = builder.block
        slow = builder.append_basic_block("rare")
        after = builder.append_basic_block("usual")
        anywhere = builder.icmp_unsigned("!=", truths, ir.Constant(truths.type, 0))
        builder.cbranch(anywhere, slow, after).set_weights([1, 2000])
        builder.position_at_end(slow)
        chosen = [self.select(where, r, u) for r, u in zip(rare(), usual, strict=True)]
        slow_end = builder.block
        builder.branch(after)
        builder.position_at_end(after)
        return [self._joined(u, before, c, slow_end) for u, c in zip(usual, chosen, strict=True)]

    def _joined(self, a: Vector, from_a: ir.Block, b: Vector, from_b: ir.Block) -> Vector:
        phi = self.builder.phi(a.value.type)
        phi.add_incoming(a.value, from_a)
        phi.add_incoming(b.value, from_b)
        return Vector(self, phi)

    def lane_by_lane(
        self, where: Vector, function: ir.Function, *arguments: Vector
    ) -> list[Vector]:
        """A function of scalars, which returns a struct of scalars, applied to each lane.

        The lanes that do not need it give it ones: their own arguments may be beyond its domain.
        """
        builder = self.builder
        arguments = tuple(self.select(where, a, 1.0) for a in arguments)
        kinds = function.function_type.return_type.elements
        results = [ir.Constant(ir.VectorType(kind, self.count), ir.Undefined) for kind in kinds]
        for lane in range(self.count):
            index = ir.Constant(ir.IntType(32), lane)
            scalars = [builder.extract_element(a.value, index) for a in arguments]
            answer = builder.call(function, scalars)
            results = [
                builder.insert_element(whole, builder.extract_value(answer, i), index)
                for i, whole in enumerate(results)
            ]
        return [Vector(self, result) for result in results]
