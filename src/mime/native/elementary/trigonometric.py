"""sin, cos and tan of any angle.

sin r = r + r³ S(r²),  cos r = 1 - r²/2 + r⁴ C(r²)  on |r| <= pi/4, then the quadrant.
"""

from __future__ import annotations

from mime.native.elementary.coefficients import COS, SIN
from mime.native.elementary.reduction import reduced
from mime.native.elementary.vector import Lanes, Pair, Vector


def _sine_and_cosine(k: Lanes, r: Vector, r_lo: Vector) -> tuple[Pair, Pair]:
    """Of r + r_lo, each as a large part and a small one that are still to be added."""
    z, z_lo = k.two_product(r, r)
    w = k.fma(z, -0.5, 1.0)
    cubic = k.fma(z * k.polynomial(z, SIN[k.bits]), r, r_lo * w)
    lost = k.fma(z_lo, -0.5, k.fma(z, -0.5, 1.0 - w))
    quartic = k.fma(z * z, k.polynomial(z, COS[k.bits]), k.fma(-r, r_lo, lost))
    return (r, cubic), (w, quartic)


def sincos(k: Lanes, x: Vector) -> tuple[Vector, Vector]:
    """(sin x, cos x)"""
    r, r_lo, q = reduced(k, x)
    sine, cosine = (large + small for large, small in _sine_and_cosine(k, r, r_lo))
    odd = (q & 1).equals(1)
    to_sign = k.bits - 2
    s = k.select(odd, cosine, sine).as_bits ^ ((q & 2) << to_sign)
    c = k.select(odd, sine, cosine).as_bits ^ (((q + 1) & 2) << to_sign)
    return k.select(x.equals(0.0), x, s.as_float), c.as_float  # sin -0 = -0


def sin(k: Lanes, x: Vector) -> Vector:
    """r + r³ S(r²), or the other in odd quadrants"""
    return sincos(k, x)[0]


def cos(k: Lanes, x: Vector) -> Vector:
    """1 - r²/2 + r⁴ C(r²), or the other in odd quadrants"""
    return sincos(k, x)[1]


def tan(k: Lanes, x: Vector) -> Vector:
    """tan r = sin r / cos r, and -cos r / sin r in odd quadrants"""
    r, r_lo, q = reduced(k, x)
    (s, s_lo), (c, c_lo) = (k.fast_two_sum(*parts) for parts in _sine_and_cosine(k, r, r_lo))
    odd = (q & 1).equals(1)
    above = k.select(odd, -c, s), k.select(odd, -c_lo, s_lo)
    below = k.select(odd, s, c), k.select(odd, s_lo, c_lo)
    high, low = k.quotient(above, below)
    return k.select(x.equals(0.0), x, high + low)
