r"""Resistance of a helix and of a sphere in a viscous fluid, by resistive-force theory.

    [F; T] = -R [U; Omega],     R = ∫ (xi_n Jᵀ J + (xi_t - xi_n) w wᵀ) ds
    x(phi) = (rho cos phi, h rho sin phi, p phi),   J = [1, -[x]x],   w = (t, x × t)

A piece of filament resists motion along its tangent t by xi_t and across it by xi_n, as if it were
alone. w and x are sums of 1, cos, sin, phi cos and phi sin, so R needs nine integrals, and all have
closed forms. R is symmetric and positive by construction.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from mime.core.node import Scalar
from mime.core.pose import Scalar as Number
from mime.nodes.magnetics.wall_drag import filament_reach, sphere_about, sphere_along
from mime.xla.stacking import stack_scalars

THEORIES = ("lighthill", "gray_hancock")


class Helix(NamedTuple):
    """A helix along z about the origin; `pitch_m` and radii are positive."""

    pitch_m: Scalar
    radius_m: Scalar
    turns: Scalar
    filament_radius_m: Scalar
    handedness: float = 1.0
    """1: right-handed, -1: left-handed."""


def flow_reach(
    helix: Helix, theory: str, tube_radius_m: Number | None = None
) -> tuple[Array, Array]:
    """l_t and l_n, how far flows along and across a piece of filament reach, m.

    gray_hancock    2 lambda / sqrt(e),   2 lambda sqrt(e)
    lighthill       0.18 Lambda,          0.18 Lambda sqrt(e)

    lambda is the pitch, Lambda the length of one turn along the filament. In a tube each is
    1 / (1/l + 1/l_wall), l_wall as in `filament_reach`: where the wall is near, it alone counts.
    """
    root = math.exp(0.5)
    if theory == "gray_hancock":
        along = 2.0 / root * jnp.asarray(helix.pitch_m)
        across = root**2 * along
    else:
        along = 0.18 * jnp.sqrt(helix.pitch_m**2 + (2.0 * math.pi * helix.radius_m) ** 2)
        across = root * along
    if tube_radius_m is None:
        return along, across
    wall = filament_reach(tube_radius_m, helix.radius_m)
    return along * wall / (along + wall), across * wall / (across + wall)


def filament_coefficients(
    helix: Helix, viscosity_pa_s: Number, theory: str, tube_radius_m: Number | None = None
) -> tuple[Array, Array]:
    """xi_t, xi_n in N·s/m²: resistance along and across a filament, for each metre of it.

    xi_t = 2 pi mu / ln(l_t/a),     xi_n = 4 pi mu / ln(l_n/a)

    l is `flow_reach`, a the filament's radius.
    """
    along, across = flow_reach(helix, theory, tube_radius_m)
    resistance, a = 2.0 * math.pi * jnp.asarray(viscosity_pa_s), helix.filament_radius_m
    return resistance / jnp.log(along / a), 2.0 * resistance / jnp.log(across / a)


def helix_resistance(helix: Helix, xi_t: Array, xi_n: Array) -> Float[Array, "6 6"]:
    """R about the helix' centre, in its frame."""
    rho, p, h = helix.radius_m, helix.pitch_m / (2.0 * math.pi), helix.handedness
    end = math.pi * helix.turns
    length = jnp.sqrt(rho**2 + p**2)  # ds / dphi
    sin, cos, sin2, cos2 = jnp.sin(end), jnp.cos(end), jnp.sin(2.0 * end), jnp.cos(2.0 * end)
    one, c, c_c, s_s = 2.0 * end, 2.0 * sin, end + 0.5 * sin2, end - 0.5 * sin2
    phi_s, phi_s_c = 2.0 * (sin - end * cos), 0.25 * sin2 - 0.5 * end * cos2
    third, wave = end**3 / 3.0, 0.5 * (end**2 * sin2 + end * cos2 - 0.5 * sin2)
    # Integrals of products of 1, cos, sin, phi cos, phi sin; those of odd ones vanish.
    gram = _matrix(
        [one, c, 0.0, 0.0, phi_s],
        [c, c_c, 0.0, 0.0, phi_s_c],
        [0.0, 0.0, s_s, phi_s_c, 0.0],
        [0.0, 0.0, phi_s_c, third + wave, 0.0],
        [phi_s, phi_s_c, 0.0, 0.0, third - wave],
    )
    w = _matrix(
        [0.0, 0.0, -rho, 0.0, 0.0],
        [0.0, h * rho, 0.0, 0.0, 0.0],
        [p, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, h * rho * p, -h * rho * p, 0.0],
        [0.0, -rho * p, 0.0, 0.0, -rho * p],
        [h * rho**2, 0.0, 0.0, 0.0, 0.0],
    )
    xx, yy, zz, yz = rho**2 * c_c, rho**2 * s_s, 2.0 * p**2 * third, h * rho * p * phi_s
    sum_x = rho * c
    both = _matrix(  # ∫ Jᵀ J dphi
        [one, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, one, 0.0, 0.0, 0.0, sum_x],
        [0.0, 0.0, one, 0.0, -sum_x, 0.0],
        [0.0, 0.0, 0.0, yy + zz, 0.0, 0.0],
        [0.0, 0.0, -sum_x, 0.0, xx + zz, -yz],
        [0.0, sum_x, 0.0, 0.0, -yz, xx + yy],
    )
    return xi_n * length * both + (xi_t - xi_n) / length * (w @ gram @ w.T)


def sphere_resistance(
    viscosity_pa_s: Number, radius_m: Number, z_m: Number, tube_radius_m: Number | None = None
) -> Array:
    """R of a sphere whose centre is z up the axis: 6 pi mu b and, about its centre, 8 pi mu b³.

    In a tube, motion along the axis and turning about it have the factors of `wall_drag`.
    """
    drag = 6.0 * math.pi * viscosity_pa_s * radius_m
    turn = 8.0 * math.pi * viscosity_pa_s * radius_m**3
    arm, tilt = drag * z_m, turn + drag * z_m**2
    drag_along, turn_about = drag, turn
    if tube_radius_m is not None:
        drag_along = drag * sphere_along(radius_m / tube_radius_m)
        turn_about = turn * sphere_about(radius_m / tube_radius_m)
    return _matrix(
        [drag, 0.0, 0.0, 0.0, arm, 0.0],
        [0.0, drag, 0.0, -arm, 0.0, 0.0],
        [0.0, 0.0, drag_along, 0.0, 0.0, 0.0],
        [0.0, -arm, 0.0, tilt, 0.0, 0.0],
        [arm, 0.0, 0.0, 0.0, tilt, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, turn_about],
    )


def _matrix(*rows: list[Any]) -> Array:
    return stack_scalars([x for row in rows for x in row]).reshape(len(rows), -1)
