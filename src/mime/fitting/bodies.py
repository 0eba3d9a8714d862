"""A rigid body as ten numbers that are free, and as the ten that torques are linear in.

    z = (log m, c, V)        S_c = m V Vᵀ,  V upper triangular with a positive diagonal
    pi = (m, m c, I_o)       I = tr(S) 1 - S,  I_o = I_c + m (c·c 1 - c cᵀ)

V, c and m are the Cholesky factor of the pseudo-inertia [[S_o, m c], [m cᵀ, m]], its logarithm on
the diagonal (Rucker and Wensing, 2022): every z is a body that exists, and every body with some
extent in all directions is a z. Lengths in z are in units of the body's own size. A model's body
that does not exist (a planar inertia, a broken triangle) starts at the nearest inertia that does;
one that is no unknown stays as it is.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from mime.control.kinematics.physical_inertia import is_physical, nearest_physical_inertia

ENTRIES = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
"""Of a symmetric matrix, in the order that URDF has too."""
NAMES = ("xx", "xy", "xz", "yy", "yz", "zz")
MOMENTS = (
    "mass_kg",
    *(f"moment_kg_m[{axis}]" for axis in "xyz"),
    *(f"origin_inertia_kg_m2[{name}]" for name in NAMES),
)
"""pi by name: mass, first moment, and inertia about the origin of the body's frame."""
UNITS = ("kg", *("kg·m",) * 3, *("kg·m²",) * 6)
_THINNEST = 1e-4
"""A rod or a plate starts with so much of its size across: a logarithm has no zero."""


class Body(NamedTuple):
    """Mass, centre of mass in the link's frame, inertia (3, 3) about the centre."""

    mass: Any
    com: Any
    inertia: Any


def size_of(body: Body) -> float:
    """Its radius of gyration, in m; of a mere point a tenth of its distance, or a centimetre."""
    second = 0.5 * float(np.trace(np.asarray(body.inertia)))
    if second > 0:
        return float(np.sqrt(second / float(body.mass)))
    return 0.1 * float(np.linalg.norm(np.asarray(body.com))) or 0.01


def factors(body: Body) -> np.ndarray:
    """m, c, the diagonal of V and what is above it (10,), V in units of the body's size."""
    size, m = size_of(body), float(body.mass)
    I = start_inertia(body)
    S = (0.5 * np.trace(I) * np.eye(3) - I) / (m * size**2)
    values, axes = np.linalg.eigh(0.5 * (S + S.T))
    S = (axes * np.maximum(values, _THINNEST)) @ axes.T
    # V Vᵀ with V upper triangular: the lower factor of the matrix read backwards.
    V = np.linalg.cholesky(S[::-1, ::-1])[::-1, ::-1]
    above = V[0, 1], V[0, 2], V[1, 2]
    return np.array([m, *np.asarray(body.com, float), *np.diag(V), *above])


def start_inertia(body: Body) -> np.ndarray:
    """Its inertia (3, 3), or the nearest that a body can have."""
    I = np.asarray(body.inertia, float)
    return I if is_physical(I, float(body.mass)) else nearest_physical_inertia(I)


def of_factors(values: Any, size: float) -> Body:
    """The body of `factors`; they may be traced."""
    m = values[0]
    return Body(m, jnp.array(values[1:4]), inertia_of(values[4:], m, size))


def inertia_of(six: Any, mass: Any, size: float) -> Any:
    """I_c = tr(S) 1 - S,  S = m V Vᵀ, of the last six."""
    a, b, c, ab, ac, bc = six
    V = size * jnp.array([[a, ab, ac], [0.0, b, bc], [0.0, 0.0, c]])
    S = mass * V @ V.T
    return jnp.trace(S) * jnp.eye(3) - S


def moments(body: Body) -> Any:
    """pi (10,): what torques are linear in."""
    m, c = body.mass, jnp.asarray(body.com)
    I = jnp.asarray(body.inertia) + m * (c @ c * jnp.eye(3) - jnp.outer(c, c))
    return jnp.concatenate([jnp.stack([jnp.asarray(m, float)]), m * c, entries(I)])


def of_moments(pi: Any) -> Body:
    """The body with these moments, be it one that exists or not."""
    m = jnp.where(jnp.abs(pi[0]) > 1e-9, pi[0], 1e-9)
    c = pi[1:4] / m
    return Body(pi[0], c, symmetric(pi[4:]) - m * (c @ c * jnp.eye(3) - jnp.outer(c, c)))


def entries(matrix: Any) -> Any:
    """The six of a symmetric matrix."""
    return jnp.stack([matrix[i, j] for i, j in ENTRIES])


def symmetric(six: Any) -> Any:
    """The matrix of six entries."""
    xx, xy, xz, yy, yz, zz = six
    return jnp.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def pseudo_inertia(body: Body) -> np.ndarray:
    """[[S_o, m c], [m cᵀ, m]] (4, 4): positive definite for a body that exists."""
    m, c, I = float(body.mass), np.asarray(body.com, float), np.asarray(body.inertia, float)
    S = 0.5 * np.trace(I) * np.eye(3) - I + m * np.outer(c, c)
    return np.block([[S, m * c[:, None]], [m * c[None], np.array([[m]])]])


def scales(body: Body) -> np.ndarray:
    """Sizes (10,) of pi: how large its entries are in a body of this mass and extent."""
    m = float(body.mass)
    length = float(np.sqrt(size_of(body) ** 2 + np.sum(np.square(np.asarray(body.com)))))
    return m * np.array([1.0, *(length,) * 3, *(length**2,) * 6])
