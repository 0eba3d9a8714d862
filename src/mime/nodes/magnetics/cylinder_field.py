r"""The field of a uniformly magnetised cylinder, exact inside and outside but for its rim.

    psi(s, zeta) = a/(2 pi) ∫₀^π cos φ / (ρ D) dφ      D² = a² + s + zeta² - 2 a ρ cos φ,  s = ρ²
    Psi(s, z)    = ∫ psi(s, z - z') dz'  over the length    (one function for both magnetisations)

    along the axis:   A = mu0 M Psi (-y, x, 0),   B = curl A
    across it, M x̂:   H = -grad(M x Psi),         B = mu0 (H + M inside)

A sheet of current around the cylinder makes the first, charges M cos φ on its mantle the second:
their integrals over the angle are the same. Lengths are in units of the radius (a = 1).

The integrals over φ are complete elliptic integrals. They are computed by the arithmetic-geometric
mean, after its first step: that step makes P = √((ρ+1)² + zeta²) and Q = √((ρ-1)² + zeta²) into
functions of s alone, so nothing is singular on the axis. All sums have positive terms: no digits
cancel. As in Bulirsch's `cel`, what is left of the third kind when the mean has converged is
added in closed form, so that the mantle's level (ρ = 1) is no special case either.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

_MEANS = 7
"""Steps of the mean: exact to 1e-12 radii from the rim, where the field itself is infinite."""
_FAR_MEANS = 4
_FAR = 4.0
"""So many half diagonals away, a sum over the length is exact to rounding (ten nodes of Gauss and
Legendre: 5.8^-20), where a difference of the two ends would lose (r/a)³ roundings.
"""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


def cylinder_field(
    point: Float[Array, "3"], half_length: Float[Array, ""], direction: Float[Array, "3"]
) -> Float[Array, "3"]:
    """B / (mu0 M) at `point`, in radii from the centre; the cylinder's axis is z.

    half_length    in radii
    direction      of the magnetisation, a unit vector: the field is linear in it
    """
    x, y, z = point
    m_x, m_y, m_z = direction
    s, m_r = x * x + y * y, m_x * x + m_y * y
    psi, psi_s, psi_z = _over_length(s, z, half_length)
    across = inside_cylinder(point, half_length) - psi
    axial = jnp.stack([-x * psi_z, -y * psi_z, 2.0 * (psi + s * psi_s)])
    diametral = jnp.stack(
        [m_x * across - 2.0 * x * m_r * psi_s, m_y * across - 2.0 * y * m_r * psi_s, -m_r * psi_z]
    )
    return m_z * axial + diametral


def inside_cylinder(point: Float[Array, "3"], half_length: Float[Array, ""]) -> Float[Array, ""]:
    """1 inside, 0 outside; all in radii."""
    x, y, z = point
    return jnp.where((x * x + y * y < 1.0) & (jnp.abs(z) < half_length), 1.0, 0.0).astype(z.dtype)


def _over_length(s: Array, z: Array, half_length: Array) -> tuple[Array, Array, Array]:
    """Psi and its slopes over s and z."""
    is_far = s + z * z > _FAR**2 * (1.0 + half_length**2)

    def near(s: Array) -> tuple[Array, Array]:
        (upper, upper_z), (lower, lower_z) = _end(s, z + half_length), _end(s, z - half_length)
        return upper - lower, upper_z - lower_z

    def far(s: Array, z: Array) -> tuple[Array, Array]:
        def add(total: Array, node: tuple[Array, Array]) -> tuple[Array, None]:
            t, weight = node
            mean, sum_c, _ = _means(s, z - half_length * t, _FAR_MEANS)
            return total + weight * sum_c / mean, None

        nodes = jnp.asarray(_NODES, s.dtype), jnp.asarray(_WEIGHTS, s.dtype)
        total = half_length * jax.lax.scan(add, jnp.zeros_like(s), nodes)[0]
        return total, total  # once to differentiate, once as it is

    (closed, closed_z), (closed_s, _) = jax.jvp(near, (s,), (jnp.ones_like(s),))
    away = jnp.where(is_far, s, 99.0), z  # where no node of the sum is near
    (summed_s, summed_z), summed = jax.jacfwd(far, (0, 1), has_aux=True)(*away)
    return (
        jnp.where(is_far, summed, closed),
        jnp.where(is_far, summed_s, closed_s),
        jnp.where(is_far, summed_z, closed_z),
    )


def _end(s: Array, zeta: Array) -> tuple[Array, Array]:
    """∫ psi dzeta' from 0 to zeta, which is zeta/(2 pi) ∫₀^π sin²φ/(w D) dφ, w = D² - zeta²; psi.

    psi = (1/M) sum 2^(n-1) c_n²/v²
    """
    mean, sum_c, sum_q = _means(s, zeta, _MEANS)
    return 0.5 * zeta * (sum_c + sum_q) / mean, sum_c / mean


def _means(s: Array, zeta: Array, steps: int) -> tuple[Array, Array, Array]:
    """M = AGM(P, Q); sum 2^(n-1) c_n²/v²; sum |Q_n|/v: all from n = 1 on, v² = 4 s.

    c_(n+1) = c_n² / (4 a_(n+1)) is half the difference of a_n and g_n. Q_n and p_n = 1/q_n belong
    to the third kind (DLMF 19.8.7): Q_(n+1) = Q_n/2 (1-x)/(1+x), q_(n+1) = 2 q_n/(1+x),
    x = a_n g_n q_n². Where a = g, the sum of all later Q is Q_n (1-y)/(1+y), y = a q_n.
    """
    u, delta, zeta2 = 1.0 + s, 1.0 - s, zeta * zeta
    pq = jnp.sqrt(delta**2 + zeta2 * (2.0 * u + zeta2))
    a, g = jnp.sqrt(0.5 * (u + zeta2 + pq)), jnp.sqrt(pq)
    c = 0.5 / (u + zeta2 + pq)
    h2 = 2.0 * delta**2 * (u + pq) + 2.0 * zeta2 * (u * u + 4.0 * s)
    q = 2.0 * jnp.abs(delta) / jnp.sqrt(h2)
    big_q = (delta**2 + 2.0 * u * zeta2) / h2

    def step(n: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        a, g, c, q, big_q, weight, sum_c, sum_q = carry
        x = a * g * q * q
        big_q, q = 0.5 * big_q * (1.0 - x) / (1.0 + x), 2.0 * q / (1.0 + x)
        a, g = 0.5 * (a + g), jnp.sqrt(a * g)
        c, weight = 0.25 * s * (c / a) ** 2, 2.0 * weight
        return a, g, c, q, big_q, weight, sum_c + weight * c, sum_q + big_q

    start = (a, g, c, q, big_q, jnp.ones_like(a), c, big_q)
    a, _, _, q, big_q, _, sum_c, sum_q = jax.lax.fori_loop(0, steps, step, start)
    return a, sum_c, sum_q + big_q * (1.0 - a * q) / (1.0 + a * q)
