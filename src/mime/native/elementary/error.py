"""erf, erfc and erf_inv.

erf x = x + x E(x²)                      for |x| <= 0.65,  else 1 - erfc |x|
erfc x = e^(-x²) F(t) / (1 + 2 x)        for x > 0.65,  t = (x - 3) / (x + 3),  else 1 - erf x
erf_inv x = x V(w)                       w = -log(1 - x²)
"""

from __future__ import annotations

from math import inf, nan, pi, sqrt

from mime.native.elementary.coefficients import ERF, ERF_INV, ERF_INV_FAR, ERFC, ERFC_0
from mime.native.elementary.exponential import exp_of_parts, parts_of_exp
from mime.native.elementary.logarithm import log1p_pair
from mime.native.elementary.vector import Lanes, Pair, Vector

ROOT_PI = sqrt(pi)
NEAR = 0.65
"""Up to here by erf, beyond by erfc: each where its result is the larger part."""


def _near(k: Lanes, x: Vector) -> Pair:
    """erf x for |x| <= NEAR, as a large part and a small one that are still to be added."""
    return x, x * k.polynomial(x * x, ERF[k.bits])


def _lift(k: Lanes, a: Vector) -> Pair:
    """(a, 1), and for tiny a, where erf is linear, (a u, 1 / u): no part of a u is denormal."""
    tiny = a < 2.0 ** -(k.format.bias // 2)
    u = 2.0 ** (k.format.bias // 4)
    return k.select(tiny, a * u, a), k.select(tiny, 1.0 / u, k.constant(1.0))


def _far(k: Lanes, x: Vector) -> tuple[Pair, Vector]:
    """(pair, n): erfc x = 2^n pair, for NEAR <= x <= 28."""
    t = (x - 3.0) / (x + 3.0)
    first, first_lo = ERFC_0[k.bits]
    high, lost = k.fast_two_sum(k.constant(first), t * k.polynomial(t, ERFC[k.bits][1:]))
    below = k.two_sum(k.constant(1.0), 2.0 * x)
    factor = k.quotient((high, lost + first_lo), below)
    square, square_lo = k.two_product(x, x)
    n, r, q = parts_of_exp(k, -square, -square_lo)
    e, lost = k.fast_two_sum(k.constant(1.0), r)
    return k.product(factor, k.fast_two_sum(e, lost + q)), n


def erf(k: Lanes, x: Vector) -> Vector:
    """The integral of 2 e^(-t²) / sqrt(pi) from 0 to x"""
    a = abs(x)
    lifted, unit = _lift(k, a)
    near, small = _near(k, k.select(a < NEAR, lifted, NEAR))
    (high, low), n = _far(k, k.clamp(a, NEAR, 6.0))  # there it is 1
    scale = k.power_of_two(n)
    far, lost = k.fast_two_sum(k.constant(1.0), -scale * high)
    value = k.select(a < NEAR, (near + small) * unit, far + (lost - scale * low))
    return k.copysign(k.select(x.is_nan(), nan, value), x)


def erfc(k: Lanes, x: Vector) -> Vector:
    """1 - erf x"""
    a = abs(x)
    (high, low), n = _far(k, k.clamp(a, NEAR, 28.0 if k.bits == 64 else 10.2))  # there it is 0
    far = k.scale(high + low, n)
    far = k.select(x < 0.0, 2.0 - far, far)  # erfc -x = 2 - erfc x
    large, small = _near(k, k.select(a < NEAR, x, 0.0))
    total, lost = k.fast_two_sum(k.constant(1.0), -large)
    value = k.select(a < NEAR, total + (lost - small), far)
    return k.select(x.is_nan(), nan, value)


def erf_inv(k: Lanes, x: Vector) -> Vector:
    """The y with erf y = x, infinite at 1 and -1: half the digits by V, and Newton's step"""
    a = abs(x)
    b, unit = _lift(k, k.select(a < 1.0, a, 0.5))
    high, low = log1p_pair(k, *(-part for part in k.two_product(b, b)))
    w = -(high + low)
    steep = w > 6.25
    v = k.select(steep, 6.25, w) - 3.125
    u = k.sqrt(k.select(steep, w, 6.25)) - 4.3
    ratio = k.select(steep, k.polynomial(u, ERF_INV_FAR[k.bits]), k.polynomial(v, ERF_INV[k.bits]))
    y = b * ratio
    near, small = _near(k, k.select(y < NEAR, y, NEAR))
    (high, low), n = _far(k, k.clamp(y, NEAR, 6.5))
    scale = k.power_of_two(n)
    far = ((1.0 - b) - scale * high) - scale * low
    excess = k.select(y < NEAR, (near - b) + small, far)
    step = excess * exp_of_parts(k, *parts_of_exp(k, y * y)) * (ROOT_PI / 2.0)
    value = (
        y - k.fma(step * step, y, step)
    ) * unit  # the second derivative of erf is -2 y its first
    value = k.select(a.equals(1.0), inf, value)
    return k.copysign(k.select(a <= 1.0, value, nan), x)
