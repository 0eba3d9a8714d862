"""atan, atan2, asin, acos.

atan q = q + q³ A(q²)  for q <= tan(pi/8);   atan q = pi/4 + atan((q - 1) / (q + 1))  up to q = 1
asin s = s + s³ A(s²)  for s <= 1/2;         asin a = pi/2 - 2 asin(sqrt((1 - a) / 2))  beyond
"""

from __future__ import annotations

from math import nan

from mime.native.elementary.coefficients import ASIN, ATAN, HALF_PI, QUARTER_PI
from mime.native.elementary.vector import Lanes, Vector

TAN_PI_8 = 0.41421356237309503


def _angle(k: Lanes, a: Vector, b: Vector, back: Vector | None = None) -> Vector:
    """Angle of the point with the sides a above and b along, and where `back`, b the other way.

    a, b >= 0; the larger is neither 0 nor infinite, nor near either.
    """
    steep = a > b
    above, below = k.select(steep, b, a), k.select(steep, a, b)
    upper = above > TAN_PI_8 * below
    turned, turned_lo = k.two_sum(above, -below)
    total, total_lo = k.two_sum(above, below)
    zero = k.constant(0.0)
    q, q_lo = k.quotient(
        (k.select(upper, turned, above), k.select(upper, turned_lo, zero)),
        (k.select(upper, total, below), k.select(upper, total_lo, zero)),
    )
    z = q * q
    small = k.fma(q * z, k.polynomial(z, ATAN[k.bits]), q_lo)
    # The angle is eighths pi/4 +- (q + small): mirrored at pi/4 if steep, at pi/2 if back.
    eighths = k.select(upper, 1.0, zero)
    eighths = k.select(steep, 2.0 - eighths, eighths)
    minus = steep
    if back is not None:
        eighths = k.select(back, 4.0 - eighths, eighths)
        minus = steep ^ back
    first, second = QUARTER_PI[k.bits]
    q, small = k.select(minus, -q, q), k.select(minus, -small, small)
    high, lost = k.fast_two_sum(eighths * first, q)
    return high + (lost + k.fma(eighths, second, small))


def atan(k: Lanes, x: Vector) -> Vector:
    """Angle of the slope x"""
    a = k.clamp(abs(x), 0.0, 2.0**100)  # there the angle is pi/2
    return k.copysign(_angle(k, a, k.constant(1.0)), x)


def atan2(k: Lanes, y: Vector, x: Vector) -> Vector:
    """Angle of the point (x, y); the signs of zeros count"""
    a, b = abs(y), abs(x)
    largest = k.select(a > b, a, b)
    bias = k.format.bias
    scale = k.select(largest > 2.0 ** (3 * bias // 4), 2.0 ** -(bias // 4), k.constant(1.0))
    scale = k.select(largest < 2.0 ** (bias // 4), 2.0 ** (bias // 2), scale)
    a, b = a * scale, b * scale
    # Of infinite sides only which is infinite counts; no sides at all have the angle of x's sign.
    infinite = largest > k.format.largest
    a = k.select(infinite, k.select(a > k.format.largest, 1.0, k.constant(0.0)), a)
    b = k.select(infinite, k.select(b > k.format.largest, 1.0, k.constant(0.0)), b)
    b = k.select(largest.equals(0.0), 1.0, b)
    back = k.copysign(k.constant(1.0), x) < 0.0
    result = k.copysign(_angle(k, a, b, back), y)
    return k.select(x.is_nan() | y.is_nan(), nan, result)


def _arcsine(k: Lanes, a: Vector) -> tuple[Vector, Vector, Vector]:
    """(large, s, small): asin a = s + small, or where `large`, pi/2 - 2 (s + small)."""
    large = a >= 0.5
    z = k.select(large, (1.0 - a) * 0.5, a * a)
    zero = k.constant(0.0)
    root, root_lo = k.root(z, zero)
    s, s_lo = k.select(large, root, a), k.select(large, root_lo, zero)
    return large, s, k.fma(s * z, k.polynomial(z, ASIN[k.bits]), s_lo)


def asin(k: Lanes, x: Vector) -> Vector:
    """NaN beyond 1"""
    large, s, small = _arcsine(k, abs(x))
    first, second, _ = HALF_PI[k.bits]
    high, lost = k.fast_two_sum(k.constant(first), -2.0 * s)
    beyond = high + (lost + k.fma(small, -2.0, second))
    return k.copysign(k.select(large, beyond, s + small), x)


def acos(k: Lanes, x: Vector) -> Vector:
    """pi/2 - asin x, which is 2 asin(sqrt((1 - x) / 2)) near 1, and pi less that near -1"""
    large, s, small = _arcsine(k, abs(x))
    first, second, _ = HALF_PI[k.bits]
    right = x > 0.0
    factor = k.select(large, k.constant(2.0), 1.0)
    factor = k.select(large ^ right, -factor, factor)
    whole = k.select(large, k.select(right, k.constant(0.0), 2.0), 1.0)
    s, small = factor * s, factor * small
    high, lost = k.fast_two_sum(whole * first, s)
    return high + (lost + k.fma(whole, second, small))
