"""Estimates the mouse's pose: odometry and gyro, corrected by the walls that it knows.

    mu = (x, y, theta, k),   ds = k (dl + dr)/2,   dtheta = (gyro - bias) dt
    x += ds cos(theta + dtheta/2),   y += ds sin(theta + dtheta/2)

k is the true distance over the one that the encoders tell, which a wheel that is 2 % too large
makes 1.02. A reading of d on a wall face with normal along x gives the innovation

    nu = d - (X - x_s)/cos(phi),   H = (-1/cos phi, 0, (y_s - y)/cos phi + d tan phi, 0)

(x_s, y_s, phi: the ray), and likewise along y: an extended Kalman filter, one ray at a time.
Along a corridor the walls at its sides say nothing; there a post does, when the ray of a side
sensor leaves its far corner. All corners lie on the grid, whatever is known of the maze.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.maze.belief import UNKNOWN, WALL, Belief
from mime.nodes.sensing.ray_casting import crossings


class Estimate(NamedTuple):
    """The filter's state."""

    mean: Float[Array, "4"]
    """x [m], y [m], heading [rad], k."""
    covariance: Float[Array, "4 4"]


class Trust(NamedTuple):
    """How far the filter trusts each source: standard deviations."""

    distance_m_per_sqrt_m: float = 0.004
    """Odometry's random error after 1 m, along the way."""
    sideways_m_per_sqrt_m: float = 0.003
    """The same, across the way."""
    heading_rad_per_sqrt_s: float = 0.02
    """The gyro's drift after 1 s."""
    scale: float = 0.02
    """The error of k at the start."""
    start_m: float = 0.003
    start_rad: float = 0.02
    reading_m: float = 0.004
    """The error of a range reading, the unevenness of real walls included."""
    corner_m: float = 0.004
    """The error of the place where a ray leaves a corner."""
    gate: float = 4.0
    """A reading that is more than this number of deviations off is not of this wall."""


def start(pose: Float[Array, "3"], trust: Trust) -> Estimate:
    """The estimate of a mouse that was set down by hand at a known place."""
    dtype = pose.dtype
    mean = jnp.concatenate([pose, jnp.ones(1, dtype)])
    sigma = np.array([trust.start_m, trust.start_m, trust.start_rad, trust.scale])
    return Estimate(mean, jnp.asarray(np.diag(sigma**2), dtype))


def predict(e: Estimate, travelled: Any, turned: Any, dt: Any, trust: Trust) -> Estimate:
    """The estimate after the encoders have counted `travelled` [m] and the gyro `turned` [rad]."""
    x, y, heading, k = jnp.unstack(e.mean)
    ds, middle = k * travelled, heading + 0.5 * turned
    cos, sin = jnp.cos(middle), jnp.sin(middle)
    dx, dy = ds * cos, ds * sin
    mean = jnp.stack([x + dx, y + dy, heading + turned, k])
    # F = 1 + [0 0 -dy dx/k; 0 0 dx dy/k; 0; 0]: only the first two rows of P change.
    P = e.covariance
    across = jnp.stack([-dy, dx, jnp.zeros_like(dx), jnp.zeros_like(dx)])
    along = jnp.stack([travelled * cos, travelled * sin, jnp.zeros_like(dx), jnp.zeros_like(dx)])
    FP = P + across[:, None] * P[2][None] + along[:, None] * P[3][None]
    P = FP + FP[:, 2][:, None] * across[None] + FP[:, 3][:, None] * along[None]
    q_along = trust.distance_m_per_sqrt_m**2 * jnp.abs(ds)
    q_across = trust.sideways_m_per_sqrt_m**2 * jnp.abs(ds)
    Q = jnp.stack(
        [
            jnp.stack([q_along * cos**2 + q_across * sin**2, (q_along - q_across) * cos * sin]),
            jnp.stack([(q_along - q_across) * cos * sin, q_along * sin**2 + q_across * cos**2]),
        ]
    )
    P = P + jnp.pad(Q, ((0, 2), (0, 2)))
    drift = np.zeros((4, 4))
    drift[2, 2] = trust.heading_rad_per_sqrt_s**2
    return Estimate(mean, P + jnp.asarray(drift * dt, P.dtype))


def correct(
    e: Estimate,
    reading: Any,
    sensor: Float[Array, "3"],
    belief: Belief,
    cell_size_m: float,
    thickness_m: float,
    ranges_m: tuple[float, float],
    trust: Trust,
) -> Estimate:
    """The estimate after one range `reading` [m] of the `sensor` at [forward, right, angle].

    It counts when the believed map says which wall the ray meets, not a post and nothing unknown
    before it, and when the reading is near what that wall would give.
    """
    x, y, heading, _ = jnp.unstack(e.mean)
    cos, sin = jnp.cos(heading), jnp.sin(heading)
    x_s = x + sensor[0] * cos - sensor[1] * sin
    y_s = y + sensor[0] * sin + sensor[1] * cos
    phi = heading + sensor[2]
    rows, cols = belief.vertical.shape[0], belief.horizontal.shape[1]
    meets = crossings(jnp.stack([x_s, y_s]), phi, rows, cols, cell_size_m, thickness_m, ranges_m[1])
    in_vertical = belief.vertical.at[meets.row, meets.col].get(mode="clip")
    in_horizontal = belief.horizontal.at[meets.row, meets.col].get(mode="clip")
    known = jnp.where(meets.vertical, in_vertical, in_horizontal)
    far = jnp.full_like(meets.distance, jnp.inf)
    wall = jnp.where(meets.reached & ~meets.post & (known == WALL), meets.distance, far)
    doubt = jnp.where(meets.reached & (meets.post | (known == UNKNOWN)), meets.distance, far)
    nearest = jnp.argmin(wall)
    d = wall[nearest]
    certain = d < jnp.min(doubt)
    along_x = jnp.asarray(meets.vertical)[nearest]
    ray_x, ray_y = jnp.cos(phi), jnp.sin(phi)
    steep = jnp.where(along_x, ray_x, ray_y)
    usable = certain & (jnp.abs(steep) > 0.3) & (reading > ranges_m[0]) & (reading < ranges_m[1])
    steep = jnp.where(usable, steep, 1.0)
    d = jnp.where(usable, d, 0.0)
    by_heading = jnp.where(along_x, (y_s - y) + d * ray_y, -(x_s - x) - d * ray_x) / steep
    zero = jnp.zeros_like(d)
    by_x = jnp.where(along_x, -1.0 / steep, zero)
    by_y = jnp.where(along_x, zero, -1.0 / steep)
    H = jnp.stack([by_x, by_y, by_heading, zero])
    return _update(e, H, reading - d, trust.reading_m, usable, trust)


def pass_corner(
    e: Estimate,
    lost: Any,
    sensor: tuple[float, float, float],
    along_rad: Any,
    cell_size_m: float,
    thickness_m: float,
    trust: Trust,
) -> Estimate:
    """The estimate after a side `sensor` has `lost` its wall, on a straight along `along_rad`.

        h = a_s + D cot(psi + alpha),   nu = (nearest corner k cell + t/2) - h

    h is where the ray crosses the plane of the wall's face, D to the side of the sensor; a_s is the
    sensor's place along the way, psi the mouse's angle to it.
    """
    forward, right, alpha = sensor
    c, s = jnp.cos(along_rad), jnp.sin(along_rad)
    x, y, heading, _ = jnp.unstack(e.mean)
    psi = heading - along_rad
    psi = psi - 2.0 * jnp.pi * jnp.round(psi / (2.0 * jnp.pi))
    along, across = c * x + s * y, c * y - s * x
    sin_psi, cos_psi = jnp.sin(psi), jnp.cos(psi)
    side = 1.0 if right > 0 else -1.0
    plane = (jnp.floor(across / cell_size_m) + 0.5) * cell_size_m + side * 0.5 * (
        cell_size_m - thickness_m
    )
    D = plane - (across + forward * sin_psi + right * cos_psi)
    sin_ray = jnp.sin(psi + alpha)
    sin_ray = side * jnp.maximum(side * sin_ray, 0.5)
    cot = jnp.cos(psi + alpha) / sin_ray
    h = along + forward * cos_psi - right * sin_psi + D * cot
    corner = jnp.round((h - 0.5 * thickness_m) / cell_size_m) * cell_size_m + 0.5 * thickness_m
    by_psi = -forward * sin_psi - right * cos_psi - D / sin_ray**2
    by_psi = by_psi - (forward * cos_psi - right * sin_psi) * cot
    # D shrinks as the mouse goes to the side: dh/d(across) = -cot.
    H = jnp.stack([c + s * cot, s - c * cot, by_psi, jnp.zeros_like(by_psi)])
    return _update(e, H, corner - h, trust.corner_m, lost & (jnp.abs(psi) < 0.15), trust)


def _update(
    e: Estimate, H: Float[Array, "4"], nu: Any, sigma: float, usable: Any, trust: Trust
) -> Estimate:
    """K = P H/(H P H + sigma²),   mu += K nu,   P -= K H P;   unless nu is beyond the gate."""
    PH = jnp.sum(e.covariance * H[None], axis=1)
    S = jnp.sum(H * PH) + sigma**2
    usable = usable & (nu**2 < trust.gate**2 * S)
    gain = jnp.where(usable, PH / S, jnp.zeros_like(PH))
    return Estimate(e.mean + gain * nu, e.covariance - gain[:, None] * PH[None])
