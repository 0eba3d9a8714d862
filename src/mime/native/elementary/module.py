"""What a module of LLVM is told: how numbers are stored, and functions that it alone sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir


@dataclass(frozen=True)
class Format:
    """How a floating-point number of `bits` is stored."""

    bits: int
    mantissa: int
    """Stored digits: 52 or 23."""
    bias: int
    """The exponent that stands for 2^0: 1023 or 127."""

    @property
    def float_type(self) -> ir.Type:
        return ir.DoubleType() if self.bits == 64 else ir.FloatType()

    @property
    def int_type(self) -> ir.Type:
        return ir.IntType(self.bits)

    @property
    def largest(self) -> float:
        return (2.0 - 2.0**-self.mantissa) * 2.0**self.bias

    @property
    def least_normal(self) -> float:
        return 2.0 ** (1 - self.bias)


FORMATS = {64: Format(64, 52, 1023), 32: Format(32, 23, 127)}


def once(module: ir.Module, name: str, build: Callable[[], ir.Function]) -> ir.Function:
    """The function of this name in the module, built when it is first asked for."""
    return module.globals.get(name) or build()


def internal(module: ir.Module, name: str, kind: ir.FunctionType, *attributes: str) -> ir.Function:
    """An empty function that only its module sees."""
    function = ir.Function(module, kind, name)
    function.linkage = "internal"
    for attribute in ("nounwind", *attributes):
        function.attributes.add(attribute)
    function.append_basic_block("entry")
    return function
