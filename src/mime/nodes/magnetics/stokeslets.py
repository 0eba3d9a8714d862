r"""Resistance of a helix with a head, by regularised Stokeslets: every part feels the flow of all.

    u(x) = Σ_j S(x - x_j) f_j,   S(r) = ((r² + 2 e²) 1 + r rᵀ) / (8 pi mu (r² + e²)^(3/2))
    u(x_i) = U + Omega x x_i     R = Bᵀ M⁻¹ B,   M_ij = S(x_i - x_j),   B_i = [1, -[x_i]x]

Forces f_j at points of the filament's centre line and of the head's surface; e is the size of their
blobs (Cortez, Fauci and Medovikov, 2005). M and R are symmetric and positive. Of numbers they are
NumPy's; where geometry is traced they are JAX', and R has gradients by pitch, radii and turns.

On a line of such forces e = a sqrt(e) is exact: the flow at the line is then that of slender-body
theory for a filament of radius a, along it and across it.
"""

import math
from functools import lru_cache, partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float

from mime.core.parameters import known
from mime.core.pose import Scalar
from mime.core.problem import InputError
from mime.nodes.magnetics.resistive_force import Helix
from mime.nodes.magnetics.tube_wall import WIDEST, wall_mobility

AnyArray: TypeAlias = Array | np.ndarray
MOST_POINTS = 2000
"""Of filament and head: R takes some gigabytes and a minute there."""
_BLOB_OF_FILAMENT = math.exp(0.5)
"""e / a."""
_SPACING = 1.5
"""Points of the filament are e / 1.5 apart: sums are then integrals to exp(-3 pi) = 8e-5."""
_BLOB_OF_SURFACE, _DEPTH = 0.52376, 0.11408
"""e, and how deep below a surface its points lie, over the side of the square of each.

By these two a sphere of 15 rings has 6 pi mu b and 8 pi mu b³ to 4e-4 along all axes; of 8 to 21
rings to 0.8 %.
"""
WIDEST_HEAD = 0.5
"""Of the tube's radius: its drag is 1.3 % below Haberman and Sayre's table there, 0.1 % at 0.3. In
narrower gaps fluid leaks between its points."""


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
    helix' axis every force feels the wall as well; then R has gradients by viscosity alone.
    """
    count = points_of(helix) if filament_points is None else filament_points
    if known(*helix[:4], head_radius_m, tube_radius_m):
        unit = _unit_resistance(*_numbers(helix, head_radius_m, tube_radius_m), count, head_rings)
        return jnp.asarray(viscosity_pa_s) * unit
    if tube_radius_m is not None:
        words = "the wall of a tube has no gradients here"
        raise InputError(f"{words}. Give numbers for helix, head and tube, or leave the tube out")
    return _resistance(helix, viscosity_pa_s, head_radius_m, count, head_rings)


def unit_resistance(
    helix: Helix, head_radius_m: Scalar | None = None, tube_radius_m: Scalar | None = None
) -> Float[np.ndarray, "6 6"]:
    """R / mu of numbers, in double precision; m, m² and m³. The last ones are kept."""
    return _unit_resistance(*_numbers(helix, head_radius_m, tube_radius_m), points_of(helix), 15)


def _numbers(helix: Helix, *radii: Scalar | None) -> tuple[Any, ...]:
    as_float = [None if value is None else np.asarray(value, float).item() for value in radii]
    return Helix(*(np.asarray(value, float).item() for value in helix)), *as_float


@lru_cache(maxsize=64)
def _unit_resistance(
    helix: Helix, head_radius_m: float | None, tube_radius_m: float | None, count: int, rings: int
) -> Float[np.ndarray, "6 6"]:
    points_m, blobs_m = _points(helix, head_radius_m, count, rings, np)
    if tube_radius_m is None:
        return resistance_of_points(points_m, blobs_m, 1.0)
    least = least_tube_radius(helix, head_radius_m)
    if tube_radius_m < least:
        words = f"`tube_radius_m` must be >= {least:.3g} m for Stokeslets, got {tube_radius_m:g} m"
        raise InputError(f"{words}. Give a wider tube, or take resistive-force theory in it")
    return resistance_of_points(points_m, blobs_m, 1.0, wall_mobility(points_m, tube_radius_m))


def least_tube_radius(helix: Helix, head_radius_m: Scalar | None) -> float:
    """Of a tube that Stokeslets can tell the drag in, m."""
    radius, head = (0.0 if x is None else np.asarray(x).item() for x in (helix[1], head_radius_m))
    return max(radius / WIDEST, head / WIDEST_HEAD)


@partial(jax.jit, static_argnums=(3, 4))
def _resistance(
    helix: Helix, viscosity_pa_s: Scalar, head_radius_m: Scalar | None, count: int, head_rings: int
) -> Float[Array, "6 6"]:
    points_m, blobs_m = _points(helix, head_radius_m, count, head_rings, jnp)
    return resistance_of_points(points_m, blobs_m, viscosity_pa_s)


def _points(
    helix: Helix, head_radius_m: Scalar | None, count: int, head_rings: int, xp: Any
) -> tuple[Any, Any]:
    """Where forces act (n, 3), and the size of their blobs (n), m; in NumPy's or JAX's arrays."""
    phi = math.pi * helix.turns * ((2.0 * np.arange(count) + 1.0) / count - 1.0)
    rho, rise = helix.radius_m, helix.pitch_m / (2.0 * math.pi)
    x, y = rho * xp.cos(phi), helix.handedness * rho * xp.sin(phi)
    points = xp.stack([x, y, rise * phi], axis=1)
    sizes = xp.full(count, 1.0) * _BLOB_OF_FILAMENT * helix.filament_radius_m
    if head_radius_m is not None:
        z = 0.5 * helix.turns * helix.pitch_m + head_radius_m
        sphere = sphere_points(head_rings)
        side = head_radius_m * math.sqrt(4.0 * math.pi / len(sphere))
        ball = (head_radius_m - _DEPTH * side) * xp.asarray(sphere)
        points = xp.concatenate([points, ball + z * xp.array([[0.0, 0.0, 1.0]])])
        sizes = xp.concatenate([sizes, xp.full(len(sphere), 1.0) * _BLOB_OF_SURFACE * side])
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
    points_m: Float[AnyArray, "n 3"],
    blobs_m: Float[AnyArray, " n"],
    viscosity_pa_s: Scalar | float,
    wall_per_m: Float[np.ndarray, "3*n 3*n"] | None = None,
) -> Any:
    """R (6, 6) about the origin of a rigid body: forces at points, with a blob's size each.

    `wall_per_m` is what a wall adds to mu M (`wall_mobility`). Points in NumPy are computed in it,
    in double precision; others in JAX, with gradients.
    """
    numbers = isinstance(points_m, np.ndarray)
    xp: Any = np if numbers else jnp
    n = points_m.shape[0]
    apart = points_m[:, None, :] - points_m[None, :, :]
    # Where blobs differ, the mean of squares keeps M symmetric.
    e2 = 0.5 * (blobs_m[:, None] ** 2 + blobs_m[None, :] ** 2)
    r2 = xp.sum(apart**2, axis=2)
    weight = 1.0 / (8.0 * math.pi * viscosity_pa_s * (r2 + e2) ** 1.5)
    eye = xp.eye(3)
    M = (weight * (r2 + 2.0 * e2))[:, :, None, None] * eye[None, None]
    M = M + weight[:, :, None, None] * apart[:, :, :, None] * apart[:, :, None, :]
    M = M.transpose(0, 2, 1, 3).reshape(3 * n, 3 * n)
    if wall_per_m is not None:
        M = M + wall_per_m / viscosity_pa_s
    turn = xp.cross(points_m[:, None, :], eye[None])  # (Omega x x)_i = Omega . (x x e_i)
    B = xp.concatenate([xp.broadcast_to(eye[None], turn.shape), turn], axis=2).reshape(3 * n, 6)
    linalg = scipy.linalg if numbers else jax.scipy.linalg
    R = B.T @ linalg.cho_solve(linalg.cho_factor(M), B)
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
