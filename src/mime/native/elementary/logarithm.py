"""log and log1p.

u = 2^n (1 + f),  sqrt(1/2) <= 1 + f < sqrt(2);   s = f / (2 + f),  w = s²,  h = f² / 2
log u = n ln 2 + f - h + s (h + w Q(w))
"""

from __future__ import annotations

from math import inf, nan

from mime.native.elementary.coefficients import LN2, LOG
from mime.native.elementary.vector import Lanes, Pair, Vector


def log_pair(k: Lanes, n: Vector, f: Vector, f_lo: Vector | None = None) -> Pair:
    """log(2^n (1 + f + f_lo)) in two parts, which are still to be added."""
    ln2, ln2_lo = LN2[k.bits]
    h = 0.5 * f * f
    s = f / (2.0 + f)
    w = s * s
    series = k.fma(s, k.fma(w, k.polynomial(w, LOG[k.bits]), h), n * ln2_lo)
    if f_lo is not None:  # d log(1 + f) = df / (1 + f) = df (1 - s) / (1 + s)
        series = k.fma(f_lo, k.fma(2.0 * s, s - 1.0, 1.0), series)
    high, lost = k.fast_two_sum(n * ln2, f)
    return k.fast_two_sum(high, lost + (series - h))


def log(k: Lanes, x: Vector) -> Vector:
    """-inf at 0, NaN below"""
    n, m = k.split_exponent(x)
    high, low = log_pair(k, n, m - 1.0)
    result = k.select(x > k.format.largest, x, high + low)
    result = k.select(x.equals(0.0), -inf, result)
    return k.select((x < 0.0) | x.is_nan(), nan, result)


def parts_of_log1p(
    k: Lanes, x: Vector, x_lo: Vector | None = None
) -> tuple[Vector, Vector, Vector]:
    """(n, f, f_lo): 1 + x + x_lo = 2^n (1 + f + f_lo); x > -1 and finite."""
    u, u_lo = k.two_sum(k.constant(1.0), x)
    if x_lo is not None:
        u, u_lo = k.fast_two_sum(u, u_lo + x_lo)
    n, m = k.split_normal(u)
    near = n.equals(0.0)  # here x itself has more digits than 1 + x
    f = k.select(near, x, m - 1.0)
    f_lo = k.select(
        near, 0.0 if x_lo is None else x_lo, u_lo * k.power_of_two(-k.clamp(n, -100.0, 100.0))
    )
    return n, f, f_lo


def log1p_pair(k: Lanes, x: Vector, x_lo: Vector | None = None) -> Pair:
    """log(1 + x + x_lo) in two parts, which are still to be added."""
    return log_pair(k, *parts_of_log1p(k, x, x_lo))


def log1p(k: Lanes, x: Vector) -> Vector:
    """log(1 + x); -inf at -1, NaN below"""
    high, low = log1p_pair(k, x)
    result = k.select(abs(x) < k.negligible, x, high + low)
    result = k.select(x > k.format.largest, x, result)
    result = k.select(x.equals(-1.0), -inf, result)
    return k.select((x < -1.0) | x.is_nan(), nan, result)
