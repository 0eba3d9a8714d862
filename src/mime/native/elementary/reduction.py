"""Angles: x = q pi/2 + r with |r| <= pi/4, r in two parts and correct to all their digits.

Up to `USUAL` by Cody and Waite: pi/2 in three parts, n times each taken away from x. Beyond by
Payne and Hanek, one lane after the other: of x 2/pi = m 2^e 2/pi only what is below 4 matters,
so m is multiplied by just those 256 binary digits of 2/pi that 2^e moves there.
"""

from __future__ import annotations

from llvmlite import ir

from mime.native.elementary.coefficients import HALF_PI, TWO_OVER_PI, TWO_OVER_PI_BITS
from mime.native.elementary.module import internal, once
from mime.native.elementary.vector import Lanes, Vector

USUAL = 2.0**17
"""Largest |x| for Cody and Waite: n 2^-160, what three parts of pi/2 leave out, stays small."""
I64, WIDE, DOUBLE = ir.IntType(64), ir.IntType(256), ir.DoubleType()


def reduced(k: Lanes, x: Vector) -> tuple[Vector, Vector, Vector]:
    """(r, r_lo, q): x = q pi/2 + r + r_lo; of q the two lowest digits count."""
    shifted = x * (2.0 / 3.141592653589793) + k.magic
    n = shifted - k.magic
    first, second, third = (k.constant(part) for part in HALF_PI[k.bits])
    t = k.exact_fma(-n, first, x)
    product, rest = k.two_product(n, second)
    r, lost = k.two_sum(t, -product)
    r_lo = k.fma(-n, third, lost - rest)
    far = (abs(x) > USUAL) & (abs(x) <= k.format.largest)
    r, r_lo, q = k.rarely(far, [r, r_lo, shifted.as_bits], lambda: _far(k, x, far))
    return r, r_lo, q


def _far(k: Lanes, x: Vector, far: Vector) -> list[Vector]:
    """Payne and Hanek: r = pi/2 times the part of |x| 2/pi behind the point, with the sign of x."""
    fraction, fraction_lo, quadrant = k.lane_by_lane(far, _fraction(k), abs(x))
    first, second, _ = (k.constant(part) for part in HALF_PI[k.bits])
    r, rest = k.two_product(fraction, first)
    r_lo = k.fma(fraction, second, k.fma(fraction_lo, first, rest))
    negative = x < 0.0
    return [
        k.select(negative, -r, r),
        k.select(negative, -r_lo, r_lo),
        k.select(negative, k.integer(0) - quadrant, quadrant),
    ]


def _fraction(k: Lanes) -> ir.Function:
    """Function of one x >= 1: (hi, lo, q) with x 2/pi = q + hi + lo (mod 4), |hi| <= 1/2."""
    module, kind, count = k.builder.module, k.format.float_type, k.format.int_type
    name = f"mime.angle_fraction.{k.bits}"
    signature = ir.FunctionType(ir.LiteralStructType([kind, kind, count]), [kind])

    def build() -> ir.Function:
        function = internal(module, name, signature, "noinline", "cold")
        b = ir.IRBuilder(function.entry_basic_block)
        x = function.args[0]
        bits = b.bitcast(x if k.bits == 64 else b.fpext(x, DOUBLE), I64)
        # x = m 2^e.  m N 2^(e - T + 254) (mod 2^256) has 4 x 2/pi's two digits before the point
        # on top; N >> shift is read from the next whole byte, and the product moved by the rest.
        m = b.or_(b.and_(bits, I64((1 << 52) - 1)), I64(1 << 52))
        shift = b.sub(I64(TWO_OVER_PI_BITS - 254 + 1075), b.lshr(bits, I64(52)))
        byte = b.lshr(b.add(shift, I64(7)), I64(3))
        address = b.gep(_digits(module), [I64(0), byte], inbounds=True)
        window = b.load(b.bitcast(address, WIDE.as_pointer()), align=1)
        moved = b.sub(b.shl(byte, I64(3)), shift)
        product = b.shl(b.mul(b.zext(m, WIDE), window), b.zext(moved, WIDE))
        signed = b.shl(product, WIDE(2))
        negative = b.icmp_signed("<", signed, WIDE(0))
        whole = b.trunc(b.lshr(product, WIDE(254)), count)
        size = b.select(negative, b.sub(WIDE(0), signed), signed)
        zeros = b.ctlz(size, ir.IntType(1)(1))
        size = b.shl(size, zeros)
        unit = b.shl(b.sub(I64(1023 - 53), b.trunc(zeros, I64)), I64(52))
        unit = b.bitcast(unit, DOUBLE)
        unit = b.select(negative, b.fneg(unit), unit)
        hi = b.fmul(b.uitofp(b.trunc(b.lshr(size, WIDE(203)), I64), DOUBLE), unit)
        rest = b.and_(b.trunc(b.lshr(size, WIDE(150)), I64), I64((1 << 53) - 1))
        lo = b.fmul(b.fmul(b.uitofp(rest, DOUBLE), unit), DOUBLE(2.0**-53))
        if k.bits == 32:
            short = b.fptrunc(hi, kind)
            hi, lo = short, b.fptrunc(b.fsub(hi, b.fpext(short, DOUBLE)), kind)
        result = ir.Constant(signature.return_type, ir.Undefined)
        for i, part in enumerate((hi, lo, b.add(whole, b.zext(negative, count)))):
            result = b.insert_value(result, part, i)
        b.ret(result)
        return function

    return once(module, name, build)


def _digits(module: ir.Module) -> ir.GlobalVariable:
    """2/pi times 2^`TWO_OVER_PI_BITS` as bytes, the lowest first."""
    name = "mime.two_over_pi"
    if name not in module.globals:
        data = TWO_OVER_PI.to_bytes(TWO_OVER_PI_BITS // 8 + 32, "little")
        kind = ir.ArrayType(ir.IntType(8), len(data))
        digits = ir.GlobalVariable(module, kind, name)
        digits.linkage, digits.global_constant = "internal", True
        digits.initializer = ir.Constant(kind, bytearray(data))
    return module.globals[name]
