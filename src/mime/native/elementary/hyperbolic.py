"""sinh, cosh, tanh, logistic, from e^|x| - 1; and their inverses, from log1p."""

from __future__ import annotations

from math import inf, nan

from mime.native.elementary.exponential import parts_of_exp, quarter_expm1, within
from mime.native.elementary.logarithm import log1p_pair, log_pair, parts_of_log1p
from mime.native.elementary.vector import Lanes, Pair, Vector


def tanh(k: Lanes, x: Vector) -> Vector:
    """tanh a = h / (1 + h) with h = (e^2a - 1) / 2"""
    a = k.clamp(abs(x), 0.0, 24.0 if k.bits == 64 else 11.0)  # there it is 1
    h, h_lo = (2.0 * part for part in quarter_expm1(k, 2.0 * a))
    below, lost = k.two_sum(k.constant(1.0), h)
    high, low = k.quotient((h, h_lo), (below, lost + h_lo))
    return k.copysign(k.select(abs(x) < k.negligible, abs(x), high + low), x)


def _quarters(k: Lanes, a: Vector) -> tuple[Pair, Pair]:
    """(e^a - 1) / 4 = h and (1 - e^-a) / 4 = h / (1 + 4 h)"""
    h, h_lo = quarter_expm1(k, within(k, a))
    huge = h > 2.0**100  # here the second is 1/4, and what it is made of would overflow
    g, g_lo = k.select(huge, 2.0**100, h), k.select(huge, 0.0, h_lo)
    below, lost = k.two_sum(k.constant(1.0), 4.0 * g)
    return (h, h_lo), k.quotient((g, g_lo), (below, lost + 4.0 * g_lo))


def sinh(k: Lanes, x: Vector) -> Vector:
    """sinh a = (e^a - 1) / 2 + (1 - e^-a) / 2"""
    (h, h_lo), (j, j_lo) = _quarters(k, abs(x))
    high, lost = k.fast_two_sum(h, j)
    value = 2.0 * (high + (lost + (h_lo + j_lo)))
    return k.copysign(k.select(abs(x) < k.negligible, abs(x), value), x)


def cosh(k: Lanes, x: Vector) -> Vector:
    """cosh a = 1 + (e^a - 1) / 2 - (1 - e^-a) / 2"""
    (h, h_lo), (j, j_lo) = _quarters(k, abs(x))
    half_and_h, lost = k.two_sum(k.constant(0.5), h)
    high, lost2 = k.fast_two_sum(half_and_h, -j)
    return 2.0 * (high + ((lost + lost2) + (h_lo - j_lo)))


def logistic(k: Lanes, x: Vector) -> Vector:
    """1 / (1 + e^-x) = e^x / (1 + e^x), with e^-|x| = 2^n (1 + r + q) that cannot overflow"""
    n, r, q = parts_of_exp(k, within(k, -abs(x)))
    e, lost = k.fast_two_sum(k.constant(1.0), r)
    e, e_lo = k.fast_two_sum(e, lost + q)
    scale = k.power_of_two(k.clamp(n, -64.0, 0.0))  # below that, 1 + e is 1
    below, lost = k.two_sum(k.constant(1.0), e * scale)
    below_lo = k.fma(e_lo, scale, lost)
    negative = x < 0.0
    above = k.select(negative, e, 1.0), k.select(negative, e_lo, 0.0)
    high, low = k.quotient(above, (below, below_lo))
    return k.scale(high + low, k.select(negative, n, 0.0))


def _far(k: Lanes, a: Vector) -> Vector:
    """Where asinh a and acosh a are log(2 a), to all digits."""
    return a > 2.0 ** (k.format.mantissa // 2 + 4)


def asinh(k: Lanes, x: Vector) -> Vector:
    """asinh a = log1p(a + a² / (1 + sqrt(1 + a²)))"""
    a = abs(x)
    far = _far(k, a)
    b = k.select(far, 1.0, a)
    square, square_lo = k.two_product(b, b)
    total, lost = k.two_sum(k.constant(1.0), square)
    root, root_lo = k.root(total, lost + square_lo)
    below, lost = k.fast_two_sum(root, k.constant(1.0))
    t, t_lo = k.quotient((square, square_lo), (below, lost + root_lo))
    y, y_lo = k.fast_two_sum(b, t)
    value = _log1p_or_log_2a(k, y, y_lo + t_lo, a, far)
    return k.copysign(k.select(a < k.negligible, a, value), x)


def acosh(k: Lanes, x: Vector) -> Vector:
    """acosh x = log1p(t + sqrt(t (t + 2))),  t = x - 1"""
    far = _far(k, x)
    t, t_lo = k.fast_two_sum(k.select(far, 2.0, x), k.constant(-1.0))
    more, lost = k.two_sum(t, k.constant(2.0))
    square, square_lo = k.two_product(t, more)
    root, root_lo = k.root(square, k.fma(t, lost, k.fma(t_lo, 2.0 * t + 2.0, square_lo)))
    y, y_lo = k.two_sum(root, t)
    value = _log1p_or_log_2a(k, y, y_lo + (root_lo + t_lo), x, far)
    return k.select(x >= 1.0, value, nan)


def atanh(k: Lanes, x: Vector) -> Vector:
    """atanh a = log1p(2 a / (1 - a)) / 2"""
    a = abs(x)
    b = k.select(a < 1.0, a, 0.5)
    below, lost = k.fast_two_sum(k.constant(1.0), -b)
    y, y_lo = k.quotient((2.0 * b, k.constant(0.0)), (below, lost))
    high, low = log1p_pair(k, y, y_lo)
    value = k.select(a < k.negligible, a, 0.5 * (high + low))
    value = k.select(a.equals(1.0), inf, value)
    return k.copysign(k.select(a <= 1.0, value, nan), x)


def _log1p_or_log_2a(k: Lanes, y: Vector, y_lo: Vector, a: Vector, far: Vector) -> Vector:
    """log(1 + y + y_lo), and where `far`, log(2 a)."""
    n, f, f_lo = parts_of_log1p(k, y, y_lo)
    far_n, m = k.split_normal(a)
    high, low = log_pair(
        k, k.select(far, far_n + 1.0, n), k.select(far, m - 1.0, f), k.select(far, 0.0, f_lo)
    )
    return k.select(a > k.format.largest, a, high + low)
