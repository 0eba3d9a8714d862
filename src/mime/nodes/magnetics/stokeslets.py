r"""Resistance of a helix with a head, by regularised Stokeslets: every part feels the flow of all.

    u(x) = Σ_j S(x - x_j) f_j,   S(r) = ((r² + 2 e²) 1 + r rᵀ) / (8 pi mu (r² + e²)^(3/2))
    u(x_i) = U + Omega x x_i     R = Bᵀ M⁻¹ B,   M_ij = S(x_i - x_j),   B_i = [1, -[x_i]x]

Forces f_j at points of the filament's centre line and of the head's surface; e is the size of their
blobs (Cortez, Fauci and Medovikov, 2005). M and R are symmetric and positive. All of it is JAX: R
has gradients by pitch, radii, number of turns and viscosity.

On a line of such forces e = a sqrt(e) is exact: the flow at the line is then that of slender-body
theory for a filament of radius a, along it and across it.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.core.parameters import known
from mime.core.pose import Scalar
from mime.core.problem import InputError
from mime.nodes.magnetics.resistive_force import Helix
from mime.nodes.magnetics.tube_wall import WIDEST, wall_mobility

MOST_POINTS = 2000
"""Of filament and head: R takes some gigabytes and a minute there."""
_BLOB_OF_FILAMENT = math.exp(0.5)
"""e / a."""
_SPACING = 1.5
"""Points of the filament are e / 1.5 apart: sums are then integrals to exp(-3 pi) = 8e-5."""
_BLOB_OF_SURFACE = 0.345
"""e over the side of the square that a point of a surface stands for.

A sphere of 15 rings has then 6 pi mu b and 8 pi mu b³ to 0.8 %, one with an error below, the
other above.
"""
WIDEST_HEAD = 0.3
"""Of the tube's radius: its drag is 1.7 % below Haberman and Sayre's there. In narrower gaps fluid
leaks between its points."""


def stokeslet_resistance(
    helix: Helix,
    viscosity_pa_s: Scalar,
    head_radius_m: Scalar | None = None,
    *,
    filament_points: int | None = None,
    head_rings: int = 15,
    tube_radius_m: Scalar | None = None,
) -> Float[Array, "6 6"]:
    """R about the helix' centre, in its frame; N·s/m, N·s and N·m·s.

    `filament_points` follows from the helix' length unless it is given; it has to be where the
    helix is traced (`points_of`). The head has about `head_rings`² points. In a tube about the
    helix' axis every force feels the wall as well; its part has no gradients.
    """
    count = points_of(helix) if filament_points is None else filament_points
    if tube_radius_m is None:
        return _resistance(helix, viscosity_pa_s, head_radius_m, count, head_rings)
    radius = _known_radius(helix, head_radius_m, tube_radius_m)
    points_m, blobs_m = _points(helix, head_radius_m, count, head_rings)
    wall = wall_mobility(np.asarray(points_m), radius)
    return resistance_of_points(points_m, blobs_m, viscosity_pa_s, wall)


def _known_radius(helix: Helix, head_radius_m: Scalar | None, tube_radius_m: Scalar) -> float:
    """Of a tube that is wide enough, m."""
    if not known(*helix[:4], head_radius_m, tube_radius_m):
        words = "the wall of a tube has no gradients here"
        raise InputError(f"{words}. Give numbers for helix, head and tube, or leave the tube out")
    radius = np.asarray(tube_radius_m, float).item()
    least = np.asarray(helix.radius_m, float).item() / WIDEST
    if head_radius_m is not None:
        least = max(least, np.asarray(head_radius_m, float).item() / WIDEST_HEAD)
    if radius < least:
        words = f"`tube_radius_m` must be >= {least:.3g} m for Stokeslets, got {radius:g} m"
        raise InputError(f"{words}. Give a wider tube, or take resistive-force theory in it")
    return radius


@partial(jax.jit, static_argnums=(3, 4))
def _resistance(
    helix: Helix, viscosity_pa_s: Scalar, head_radius_m: Scalar | None, count: int, head_rings: int
) -> Float[Array, "6 6"]:
    points_m, blobs_m = _points(helix, head_radius_m, count, head_rings)
    return resistance_of_points(points_m, blobs_m, viscosity_pa_s)


def _points(
    helix: Helix, head_radius_m: Scalar | None, count: int, head_rings: int
) -> tuple[Float[Array, "n 3"], Float[Array, " n"]]:
    """Where forces act, and the size of their blobs, m."""
    phi = math.pi * helix.turns * ((2.0 * np.arange(count) + 1.0) / count - 1.0)
    rho, rise = helix.radius_m, helix.pitch_m / (2.0 * math.pi)
    x, y = rho * jnp.cos(phi), helix.handedness * rho * jnp.sin(phi)
    points = jnp.stack([x, y, rise * phi], axis=1)
    sizes = jnp.full(count, 1.0) * _BLOB_OF_FILAMENT * helix.filament_radius_m
    if head_radius_m is not None:
        z = 0.5 * helix.turns * helix.pitch_m + head_radius_m
        sphere = sphere_points(head_rings)
        ball = head_radius_m * jnp.asarray(sphere)
        points = jnp.concatenate([points, ball + z * jnp.array([[0.0, 0.0, 1.0]])])
        side = head_radius_m * math.sqrt(4.0 * math.pi / len(sphere))
        sizes = jnp.concatenate([sizes, jnp.full(len(sphere), 1.0) * _BLOB_OF_SURFACE * side])
    return points, sizes


def points_of(helix: Helix) -> int:
    """How many points of the filament its length needs."""
    if not known(*helix[:4]):
        words = "a traced helix has no known number of points. Give `filament_points`"
        raise InputError(words)
    pitch, radius, turns, a = np.array(helix[:4], float)
    length = turns * math.hypot(pitch, 2.0 * math.pi * radius)
    count = math.ceil(_SPACING * length / (_BLOB_OF_FILAMENT * a))
    if count > MOST_POINTS:
        words = f"a filament {length / a:.0f} of its radii long"
        hint = "Take resistive-force theory, which is at its best there"
        raise InputError(f"{words} needs {count} points, at most {MOST_POINTS}. {hint}")
    return count


def resistance_of_points(
    points_m: Float[Array, "n 3"],
    blobs_m: Float[Array, " n"],
    viscosity_pa_s: Scalar,
    wall_per_m: Float[np.ndarray, "3n 3n"] | None = None,
) -> Float[Array, "6 6"]:
    """R about the origin of a rigid body whose forces act at points, with a blob's size each.

    `wall_per_m` is what a wall adds to mu M (`wall_mobility`).
    """
    n = points_m.shape[0]
    apart = points_m[:, None, :] - points_m[None, :, :]
    # Where blobs differ, the mean of squares keeps M symmetric.
    e2 = 0.5 * (blobs_m[:, None] ** 2 + blobs_m[None, :] ** 2)
    r2 = jnp.sum(apart**2, axis=2)
    weight = 1.0 / (8.0 * math.pi * viscosity_pa_s * (r2 + e2) ** 1.5)
    eye = jnp.eye(3)
    M = (weight * (r2 + 2.0 * e2))[:, :, None, None] * eye[None, None]
    M = M + weight[:, :, None, None] * apart[:, :, :, None] * apart[:, :, None, :]
    M = M.transpose(0, 2, 1, 3).reshape(3 * n, 3 * n)
    if wall_per_m is not None:
        M = M + wall_per_m / viscosity_pa_s
    turn = jnp.cross(points_m[:, None, :], eye[None])  # (Omega x x)_i = Omega . (x x e_i)
    B = jnp.concatenate([jnp.broadcast_to(eye[None], turn.shape), turn], axis=2).reshape(3 * n, 6)
    R = B.T @ jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(M), B)
    return 0.5 * (R + R.T)


def sphere_points(rings: int) -> np.ndarray:
    """Points on the unit sphere in rings, each with as much area; the mirror image of itself.

    (A spiral is not: it would make a sphere that turns swim.)
    """
    latitudes = math.pi * (np.arange(rings) + 0.5) / rings
    counts = np.maximum(np.round(2.0 * rings * np.sin(latitudes)).astype(int), 1)
    edges = 1.0 - 2.0 * np.concatenate([[0], np.cumsum(counts)]) / np.sum(counts)
    levels = np.repeat(0.5 * (edges[1:] + edges[:-1]), counts)
    angles = np.concatenate([2.0 * math.pi * np.arange(count) / count for count in counts])
    across = np.sqrt(1.0 - levels**2)
    return np.stack([across * np.cos(angles), across * np.sin(angles), levels], axis=1)
