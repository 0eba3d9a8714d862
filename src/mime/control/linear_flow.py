"""x(t + dt) = x_ss + e^(A dt) (x - x_ss): linear systems of one and two states, solved exactly.

Every function here is exact for a step of any length, keeps single precision, and has finite
gradients everywhere, equal poles included.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp


class Matrix2(NamedTuple):
    """[[a, b], [c, d]], its entries scalars."""

    a: Any
    b: Any
    c: Any
    d: Any


class Flow(NamedTuple):
    """What one step of dx/dt = A (x - x_ss) adds, from x - x_ss = (x_0, x_1) on."""

    change_0: Any
    change_1: Any
    integral_0: Any
    """The integral of x_0's deviation over the step."""


def flow(A: Matrix2, x_0: Any, x_1: Any, dt: Any) -> Flow:
    """(e^M - 1) x and dt phi_1(M) x, with M = A dt and phi_1(M) = (e^M - 1) / M = alpha + beta M.

    Both are polynomials in M, since M^2 = tr M - det:  e^M - 1 = p + q M.
    """
    a, b, c, d = (entry * dt for entry in A)
    tr, det, z = a + d, a * d - b * c, 0.25 * (a - d) ** 2 + b * c
    p, q, alpha, beta = _coefficients(tr, det, z)
    Mx_0, Mx_1 = a * x_0 + b * x_1, c * x_0 + d * x_1
    return Flow(p * x_0 + q * Mx_0, p * x_1 + q * Mx_1, dt * (alpha * x_0 + beta * Mx_0))


def responses(A: Matrix2, v_0: Any, v_1: Any, dt: Any) -> tuple[Any, Any, Any]:
    """What dt adds to x_0, to x_1 and to dx_0/dt, from the rates dx/dt = (v_0, v_1) on.

    Unlike `flow` it needs no steady state, and so loses no digits where that is far.
    """
    a, b, c, d = (entry * dt for entry in A)
    tr, det, z = a + d, a * d - b * c, 0.25 * (a - d) ** 2 + b * c
    p, q, alpha, beta = _coefficients(tr, det, z)
    Mv_0, Mv_1 = a * v_0 + b * v_1, c * v_0 + d * v_1
    return dt * (alpha * v_0 + beta * Mv_0), dt * (alpha * v_1 + beta * Mv_1), p * v_0 + q * Mv_0


def response_integral(A: Matrix2, v_0: Any, v_1: Any, dt: Any) -> Any:
    """The integral over dt of what is added to x_0, from the rates dx/dt = (v_0, v_1) on.

    It is (dt^2 phi_2(M) v)_0 with phi_2(M) = (phi_1(M) - 1) / M = gamma + delta M.
    """
    a, b, c, d = (entry * dt for entry in A)
    tr, det, z = a + d, a * d - b * c, 0.25 * (a - d) ** 2 + b * c
    near_zero, apart, close = _cases(tr, det, z)
    taylor = _series(jnp.where(near_zero, tr, 0.0), jnp.where(near_zero, det, 0.0), 2)
    slow, fast = _eigenvalues(*_where(apart, (tr, det, z), _APART))
    phi_slow, phi_fast = phi_2(slow), phi_2(fast)
    slope = (phi_slow - phi_fast) / (slow - fast)
    newton = phi_slow - slow * slope, slope
    tr, det, z = _where(close, (tr, det, z), _CLOSE)
    _, _, alpha, beta = _inverse(tr, det, z)
    inverse = beta + (alpha - 1.0) * tr / det, (1.0 - alpha) / det
    gamma, delta = (
        jnp.where(near_zero, t, jnp.where(apart, n, i))
        for t, n, i in zip(taylor, newton, inverse, strict=True)
    )
    return dt * dt * (gamma * v_0 + delta * (a * v_0 + b * v_1))


def phi_1(z: Any) -> Any:
    """(e^z - 1) / z, and 1 at z = 0."""
    small = jnp.abs(z) < 1e-3  # the series' first dropped term, z^4 / 120, is then below 1e-14
    safe = jnp.where(small, 1.0, z)
    series = 1.0 + z * (1 / 2 + z * (1 / 6 + z * (1 / 24 + z * (1 / 120))))
    return jnp.where(small, series, jnp.expm1(safe) / safe)


def phi_2(z: Any) -> Any:
    """(e^z - 1 - z) / z^2, and 1/2 at z = 0."""
    small = jnp.abs(z) < 0.5
    safe = jnp.where(small, 1.0, z)
    z_small = jnp.where(small, z, 0.0)
    series: Any = 0.0
    for k in range(_TERMS, -1, -1):
        series = series * z_small + 1 / math.factorial(k + 2)
    return jnp.where(small, series, (jnp.expm1(safe) / safe - 1.0) / safe)


_TERMS = 14
"""0.5^15 / 16! < 1e-17: what the series drop at a spectral radius below 1/2."""


def _coefficients(tr: Any, det: Any, z: Any) -> tuple[Any, ...]:
    """p, q, alpha, beta of e^M - 1 = p + q M and phi_1(M) = alpha + beta M; z = tr^2/4 - det.

    Three formulas, each where it loses no digits: the Taylor series near zero; Newton's form for
    real eigenvalues far apart; M^-1 (e^M - 1) for equal, close and complex eigenvalues.
    """
    near_zero, apart, close = _cases(tr, det, z)
    taylor = _taylor(jnp.where(near_zero, tr, 0.0), jnp.where(near_zero, det, 0.0))
    newton = _newton(*_where(apart, (tr, det, z), _APART))
    inverse = _inverse(*_where(close, (tr, det, z), _CLOSE))
    return tuple(
        jnp.where(near_zero, t, jnp.where(apart, n, i))
        for t, n, i in zip(taylor, newton, inverse, strict=True)
    )


_APART, _CLOSE = (-4.0, 1.0, 3.0), (-2.0, 1.0, 0.0)
"""tr, det and z that a formula computes with where another one is taken."""


def _cases(tr: Any, det: Any, z: Any) -> tuple[Any, Any, Any]:
    """Near zero; real eigenvalues far apart; equal, close and complex eigenvalues."""
    near_zero = (jnp.abs(tr) < 0.25) & (jnp.abs(det) < 0.0625)
    apart = ~near_zero & (z > 0.0625 * tr * tr)
    return near_zero, apart, ~near_zero & ~apart


def _where(case: Any, values: tuple[Any, ...], otherwise: tuple[float, ...]) -> tuple[Any, ...]:
    return tuple(jnp.where(case, x, y) for x, y in zip(values, otherwise, strict=True))


def _taylor(tr: Any, det: Any) -> tuple[Any, Any, Any, Any]:
    alpha, beta = _series(tr, det, 1)
    return -beta * det, alpha + beta * tr, alpha, beta


def _series(tr: Any, det: Any, n: int) -> tuple[Any, Any]:
    """phi_n(M) = sum M^k / (k + n)!, by Horner's rule on the coefficients of 1 and M."""
    alpha, beta = 0.0, 0.0
    for k in range(_TERMS, -1, -1):
        alpha, beta = 1 / math.factorial(k + n) - beta * det, alpha + beta * tr
    return alpha, beta


def _newton(tr: Any, det: Any, z: Any) -> tuple[Any, Any, Any, Any]:
    """f(M) = f(s_1) + f[s_1, s_2] (M - s_1), with s_1 the slow and s_2 the fast eigenvalue."""
    slow, fast = _eigenvalues(tr, det, z)
    e_slow, e_fast, phi_slow, phi_fast = jnp.expm1(slow), jnp.expm1(fast), phi_1(slow), phi_1(fast)
    slope_e, slope_phi = (e_slow - e_fast) / (slow - fast), (phi_slow - phi_fast) / (slow - fast)
    return e_slow - slow * slope_e, slope_e, phi_slow - slow * slope_phi, slope_phi


def _eigenvalues(tr: Any, det: Any, z: Any) -> tuple[Any, Any]:
    """The slow and the fast one, both real."""
    q = jnp.sqrt(z)
    fast = 0.5 * tr + jnp.where(tr > 0, q, -q)
    return det / fast, fast  # not tr/2 + q, which cancels


def _inverse(tr: Any, det: Any, z: Any) -> tuple[Any, Any, Any, Any]:
    """e^M = e^m (cosh w + (M - m) sinh(w) / w) with m = tr/2, w^2 = z; phi_1 = M^-1 (e^M - 1)."""
    cosh, q = _damped_cosh_sinhc(0.5 * tr, z)
    p = cosh - 0.5 * tr * q - 1.0
    return p, q, q + tr * p / det, -p / det


def _damped_cosh_sinhc(m: Any, z: Any) -> tuple[Any, Any]:
    """e^m cosh(sqrt z) and e^m sinh(sqrt z) / sqrt z, both entire in z: cos and sin for z < 0."""
    small = jnp.abs(z) < 0.01  # 0.01^5 / 10! < 1e-16: the series are exact
    real = z > 0
    root = jnp.sqrt(jnp.where(small, 1.0, jnp.abs(z)))
    w, q = jnp.where(real, 1.0, root), jnp.where(real, root, 0.0)
    e_m, e_plus, e_minus = jnp.exp(m), jnp.exp(m + q), jnp.exp(m - q)  # e^m cosh q overflows
    cosh = jnp.where(real, 0.5 * (e_plus + e_minus), e_m * jnp.cos(w))
    sinhc = jnp.where(real, 0.5 * (e_plus - e_minus), e_m * jnp.sin(w)) / root
    z_small = jnp.where(small, z, 0.0)
    cosh_series: Any = 0.0
    sinhc_series: Any = 0.0
    for k in range(4, -1, -1):
        cosh_series = cosh_series * z_small + 1 / math.factorial(2 * k)
        sinhc_series = sinhc_series * z_small + 1 / math.factorial(2 * k + 1)
    return jnp.where(small, e_m * cosh_series, cosh), jnp.where(small, e_m * sinhc_series, sinhc)
