"""rem: what is left of x after taking away y as often as it goes, with the sign of x; exact.

x - n y with n the nearest integer to x / y, if that has few digits. Beyond, as long division in
integers, one lane after the other.
"""

from __future__ import annotations

from math import nan

from llvmlite import ir

from mime.native.elementary.module import internal, once
from mime.native.elementary.vector import Lanes, Vector


def rem(k: Lanes, x: Vector, y: Vector) -> Vector:
    """C's fmod"""
    a, b = abs(x), abs(y)
    bias, largest = k.format.bias, k.format.largest
    ratio = a / b
    r = k.exact_fma(-k.nearest(ratio), b, a)
    r = k.select(r < 0.0, r + b, r)
    usual = (ratio < 2.0 ** (k.format.mantissa - 2)) & (b > 2.0 ** -(bias // 2))
    usual = usual & (a < 2.0 ** (3 * bias // 4)) & (b < 2.0 ** (3 * bias // 4))
    defined = (a <= largest) & (b > 0.0)
    long = defined & (b <= largest) & ~usual
    (r,) = k.rarely(long, [r], lambda: k.lane_by_lane(long, _long_division(k), a, b))
    r = k.select(defined & (a < b), a, r)
    return k.select(defined, k.copysign(r, x), nan)


def _long_division(k: Lanes) -> ir.Function:
    """Function of two finite scalars a >= 0, b > 0: a modulo b. (Of others: anything.)

    a = i 2^p,  b = j 2^q:   i 2^(p - q) modulo j, a few digits of 2^(p - q) at a time.
    """
    module, kind, whole, f = k.builder.module, k.format.float_type, k.format.int_type, k.format
    name = f"mime.long_division.{k.bits}"
    signature = ir.FunctionType(ir.LiteralStructType([kind]), [kind, kind])

    def build() -> ir.Function:
        function = internal(module, name, signature, "noinline", "cold")
        b = ir.IRBuilder(function.entry_basic_block)

        def parts(x: ir.Value) -> tuple[ir.Value, ir.Value]:
            """(integer, exponent) of x; the exponent 1 stands for that of the least number."""
            bits = b.bitcast(x, whole)
            exponent = b.lshr(bits, whole(f.mantissa))
            digits = b.and_(bits, whole((1 << f.mantissa) - 1))
            normal = b.icmp_unsigned(">", exponent, whole(0))
            digits = b.select(normal, b.or_(digits, whole(1 << f.mantissa)), digits)
            return digits, b.select(normal, exponent, whole(1))

        (i, p), (j, q) = (parts(x) for x in function.args)
        # Lanes that need no long division come along; a division by 0 would end the process.
        j = b.select(b.icmp_unsigned("==", j, whole(0)), whole(1), j)
        start, difference = b.urem(i, j), b.sub(p, q)
        entry = b.block
        head, body, end = (b.append_basic_block(n) for n in ("head", "body", "end"))
        b.branch(head)
        b.position_at_end(head)
        r, left = b.phi(whole), b.phi(whole)
        r.add_incoming(start, entry)
        left.add_incoming(difference, entry)
        b.cbranch(b.icmp_signed(">", left, whole(0)), body, end)
        b.position_at_end(body)
        room = whole(f.bits - f.mantissa - 1)
        step = b.select(b.icmp_signed("<", left, room), left, room)
        r.add_incoming(b.urem(b.shl(r, step), j), body)
        left.add_incoming(b.sub(left, step), body)
        b.branch(head)
        b.position_at_end(end)
        # r 2^(q - bias - mantissa) in two steps, none of which is denormal before the last.
        power = b.sub(q, whole(f.bias + f.mantissa))
        half = b.ashr(power, whole(1))
        value = b.uitofp(r, kind)
        for exponent in (half, b.sub(power, half)):
            bits = b.shl(b.add(exponent, whole(f.bias)), whole(f.mantissa))
            value = b.fmul(value, b.bitcast(bits, kind))
        b.ret(b.insert_value(ir.Constant(signature.return_type, ir.Undefined), value, 0))
        return function

    return once(module, name, build)
