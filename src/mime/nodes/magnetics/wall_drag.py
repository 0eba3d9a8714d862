"""How much more a body in the middle of a tube resists than in open fluid.

sphere, along the axis   K = (1 - 0.75857 l⁵) / (1 - 2.1050 l + 2.0865 l³ - 1.7068 l⁵
                                                + 0.72603 l⁶)             l = b / R_tube
sphere, about the axis   K = 1 / (1 - 0.79682 l³)
filament                 its flow ends at the wall: (R² - rho²) / R bounds its logarithm
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mime.core.pose import Scalar

WIDEST_SPHERE = 0.6
"""Of the tube's radius: beyond, Haberman and Sayre's formula is more than 5 % below their table."""


def sphere_along(ratio: Scalar) -> Float[Array, ""]:
    """Drag of a sphere along the axis over Stokes', in fluid that is still far away.

    By Haberman and Sayre (1958). Their exact table is 0.1 % away at b / R_tube = 0.3, 0.4 % at 0.4,
    1.7 % at 0.5 and 4.9 % at 0.6.
    """
    ratio = jnp.asarray(ratio)
    numerator = 1.0 - 0.75857 * ratio**5
    return numerator / (
        1.0 - 2.1050 * ratio + 2.0865 * ratio**3 - 1.7068 * ratio**5 + 0.72603 * ratio**6
    )


def sphere_about(ratio: Scalar) -> Float[Array, ""]:
    """Torque of a sphere that turns about the axis over 8 pi mu b³ (Happel and Brenner)."""
    return 1.0 / (1.0 - 0.79682 * jnp.asarray(ratio) ** 3)


def filament_reach(tube_radius_m: Scalar, distance_m: Scalar) -> Float[Array, ""]:
    """How far the flow of a thin filament reaches that lies along the tube, off its axis, m.

    Along it the drag of each metre is 2 pi mu / ln(reach / a), by the filament's image in the wall,
    and across it and along the wall, where that is near, 4 pi mu / ln(reach / a).
    """
    R = jnp.asarray(tube_radius_m)
    return (R**2 - distance_m**2) / R
