"""pow and cbrt.

pow:   x^y = e^(y log x),   x = 2^n (1 + f),  s = f / (2 + f),  w = s²
       log x = n ln 2 + 2 s (1 + w/3 + w²/5 + w³ T(w))
cbrt:  t = B(m) 2^(j/3),  then Newton's step for t³ = m 2^j
"""

from __future__ import annotations

from math import inf, nan

from mime.native.elementary.coefficients import CBRT, LN2, LOG_TAIL, ONE_FIFTH, ONE_THIRD
from mime.native.elementary.exponential import exp_of_parts, parts_of_exp, within
from mime.native.elementary.vector import Lanes, Pair, Vector


def _exact_log(k: Lanes, x: Vector) -> Pair:
    """log x with 14 digits more than a number has: as many as e^(y log x) loses."""
    n, m = k.split_exponent(x)
    below = k.two_sum(k.constant(1.0), m)
    s = k.quotient((m - 1.0, k.constant(0.0)), below)
    w = k.product(s, s)
    tail = w[0] * k.polynomial(w[0], LOG_TAIL[k.bits])
    fifth, fifth_lo = ONE_FIFTH[k.bits]
    third, third_lo = ONE_THIRD[k.bits]
    high, low = k.fast_two_sum(k.constant(fifth), tail)
    high, low = k.product(w, (high, low + fifth_lo))
    high, lost = k.fast_two_sum(k.constant(third), high)
    high, low = k.product(w, (high, lost + (low + third_lo)))
    high, low = k.product(s, (high, low))
    high, lost = k.fast_two_sum(s[0], high)
    low = lost + (low + s[1])
    ln2, ln2_lo = LN2[k.bits]
    total, lost = k.fast_two_sum(n * ln2, 2.0 * high)
    return k.fast_two_sum(total, lost + k.fma(n, ln2_lo, 2.0 * low))


def pow(k: Lanes, x: Vector, y: Vector) -> Vector:
    """x^y with the exceptions of C's pow: x^0 = 1^y = 1, (-1)^inf = 1, (-x)^y is NaN or signed"""
    a = abs(x)
    enough = 2.0 ** (k.format.mantissa + 12)  # e^(enough log(1 + epsilon)) is infinite
    log_a = _exact_log(k, a)
    exponent = k.clamp(y, -enough, enough)
    high, low = k.product(log_a, (exponent, k.constant(0.0)))
    inside = within(k, high)
    low = k.select(inside.equals(high), low, 0.0)
    value = exp_of_parts(k, *parts_of_exp(k, inside, low))
    zero, infinite = a.equals(0.0), a > k.format.largest
    limit = k.select((y < 0.0) ^ infinite, inf, k.constant(0.0))
    value = k.select(zero | infinite, limit, value)
    whole, odd = _parity(k, abs(y))
    value = k.select((x < 0.0) & ~infinite & ~whole, nan, value)
    value = k.select(odd, k.copysign(value, x), value)
    value = k.select(x.is_nan() | y.is_nan(), nan, value)
    return k.select(y.equals(0.0) | x.equals(1.0), 1.0, value)


def _parity(k: Lanes, a: Vector) -> tuple[Vector, Vector]:
    """(a is an integer, a is an odd one)"""
    first_whole = 2.0**k.format.mantissa  # from here on every number is an integer
    small = a < first_whole
    shifted = k.select(small, a + first_whole, a)
    whole = ~small | (shifted - first_whole).equals(a)
    return whole, whole & (shifted.as_bits & 1).equals(1) & (a < 2.0 * first_whole)


def cbrt(k: Lanes, x: Vector) -> Vector:
    """x = 2^(3 i + j) m,  j in -1, 0, 1"""
    n, m = k.split_exponent(abs(x))
    i = k.nearest(n * (1.0 / 3.0))
    j = n - 3.0 * i
    down, up = j < 0.0, j > 0.0
    target = k.select(down, 0.5 * m, k.select(up, 2.0 * m, m))
    factor = k.select(down, 2.0 ** (-1 / 3), k.select(up, 2.0 ** (1 / 3), k.constant(1.0)))
    t = k.polynomial(m, CBRT[k.bits]) * factor
    square, square_lo = k.two_product(t, t)
    cube, cube_lo = k.two_product(square, t)
    excess = (cube - target) + k.fma(square_lo, t, cube_lo)
    value = (t - excess / (3.0 * square)) * k.power_of_two(i)
    finite = (abs(x) > 0.0) & (abs(x) <= k.format.largest)
    return k.select(finite, k.copysign(value, x), x)
