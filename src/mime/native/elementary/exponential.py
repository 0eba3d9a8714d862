"""exp, exp2, expm1.

x = n ln 2 + r,  |r| <= ln(2) / 2;   e^x = 2^n (1 + r + r²/2 + r³ P(r))
"""

from __future__ import annotations

from mime.native.elementary.coefficients import EXP, INVERSE_LN2, LN2, LN2_FULL
from mime.native.elementary.vector import Lanes, Pair, Vector


def parts_of_exp(k: Lanes, x: Vector, x_lo: Vector | None = None) -> tuple[Vector, Vector, Vector]:
    """(n, r, q): e^(x + x_lo) = 2^n (1 + r + q), |q| < |r|; x within what n may be."""
    ln2, ln2_lo = LN2[k.bits]
    n = k.nearest(x * INVERSE_LN2[k.bits])
    t = k.fma(n, -ln2, x)  # exact: this ln2 ends in as many zeros as n has digits
    r, r_lo = k.two_sum(t, n * -ln2_lo)
    if x_lo is not None:
        r, r_lo = k.two_sum(r, r_lo + x_lo)
    return n, r, _rest_of_exp(k, r, r_lo)


def _rest_of_exp(k: Lanes, r: Vector, r_lo: Vector) -> Vector:
    """e^(r + r_lo) - 1 - r"""
    square = r * r
    cubic = k.fma(square * r, k.polynomial(r, EXP[k.bits]), k.fma(r_lo, r, r_lo))
    return k.fma(square, 0.5, cubic)


def within(k: Lanes, x: Vector) -> Vector:
    """x, or where e^x is 0 or infinite for sure the nearest x where it still is."""
    low, high = (-746.0, 710.8) if k.bits == 64 else (-104.0, 89.6)
    return k.clamp(x, low, high)


def exp(k: Lanes, x: Vector) -> Vector:
    """e^x"""
    return exp_of_parts(k, *parts_of_exp(k, within(k, x)))


def exp_of_parts(k: Lanes, n: Vector, r: Vector, q: Vector) -> Vector:
    """2^n (1 + r + q)"""
    one_and_r, lost = k.fast_two_sum(k.constant(1.0), r)
    return k.scale(one_and_r + (lost + q), n)


def exp2(k: Lanes, x: Vector) -> Vector:
    """2^x = 2^n e^(f ln 2),  f = x - n"""
    low, high = (-1076.0, 1025.0) if k.bits == 64 else (-151.0, 129.0)
    x = k.clamp(x, low, high)
    n = k.nearest(x)
    ln2, ln2_lo = (k.constant(part) for part in LN2_FULL[k.bits])
    f = x - n
    r, r_lo = k.two_product(f, ln2)
    r_lo = k.fma(f, ln2_lo, r_lo)
    return exp_of_parts(k, n, r, _rest_of_exp(k, r, r_lo))


def quarter_expm1(k: Lanes, x: Vector) -> Pair:
    """(e^x - 1) / 4 in two parts; a quarter, since sinh needs more than the largest number."""
    n, r, q = parts_of_exp(k, x)
    s = k.power_of_two(n - 2.0)
    whole, whole_lo = k.two_sum(s, k.constant(-0.25))
    high, low = k.two_sum(whole, s * r)
    return k.fast_two_sum(high, low + k.fma(s, q, whole_lo))


def expm1(k: Lanes, x: Vector) -> Vector:
    """e^x - 1"""
    value, rest = quarter_expm1(k, within(k, k.select(x < -60.0, -60.0, x)))  # there it is -1
    return k.select(abs(x) < k.negligible, x, 4.0 * (value + rest))
