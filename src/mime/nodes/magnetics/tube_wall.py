r"""What a tube's wall takes from the flow of forces inside of it, exactly.

    u = (S(x - x') + W(x, x')) f,    u = 0 on the wall, fluid at rest far away
    W = -1/(8 pi² mu) Re Σ_m ∫_0^∞ 2 V_m(k, r) V_m(k, R)⁻¹ U_m(k, R, r') e^(i(m Δphi + k Δz)) dk

U_m is the Stokeslet's flow at the wall and V_m the three flows that are regular inside, by
Papkovich and Neuber's harmonic functions, both in waves along the tube and about it (Liron and
Shahar, 1978, solve the same equations by residues). No wall is discretised, so nothing leaks.
Computed in NumPy, once for a body: the integral has no gradients here.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy

WIDEST = 0.85
"""Distance of a force from the axis over the tube's radius: beyond, the sum over m grows long."""
_WAVES = 6.0
"""k times the gap to the wall, at most: what is left out is exp(-12) of the wall's part."""
_TURNS = 1e-5
"""(r / R)^(2 m) that is left out."""
_NODES = 8
"""Of Gauss and Legendre in a panel of k, over which k Δz turns by at most 8 rad."""
_HALVES = 8
"""Panels that halve towards k = 0, where the integrand is a logarithm."""


def wall_mobility(points_m: np.ndarray, tube_radius_m: float) -> np.ndarray:
    """mu W of forces at points (n, 3) of a tube about z, as a (3n, 3n) matrix; 1/m.

    It is symmetric to 1e-11, by the reciprocal theorem and not by construction. W follows from the
    two radii, the way along the tube and the angle about it, so pairs of points that share the
    first three (of a helix, of rings on a head) share their integral.
    """
    R = tube_radius_m
    x, y, z = np.asarray(points_m, float).T
    r, phi = np.hypot(x, y), np.arctan2(y, x)
    radii, ring = np.unique(np.round(r / R, 9), return_inverse=True)
    widest = max(float(radii[-1]), 0.05)
    k, weights = _panels(_WAVES / (R * (1.0 - widest)), min(8.0 / np.ptp([*z, 0.0, R]), 2.0 / R))
    ways = _Ways.of(ring, z / R, k * R)
    apart = phi[:, None] - phi
    total = np.zeros((3, 3, len(r), len(r)))
    for m in range(math.ceil(math.log(_TURNS) / (2.0 * math.log(widest))) + 2):
        inside, at_wall = _regular(m, k, radii * R, R), _regular(m, k, np.array([R]), R)
        scale = np.abs(at_wall).max(axis=-2, keepdims=True)
        driven = np.linalg.solve(at_wall / scale, _stokeslet_at_wall(m, k, radii * R, R))
        waves = ways.summed(inside / scale * weights[:, None, None, None], driven)
        # The wave with -m is the mirror image of the one with m: of their sum, what couples e_phi
        # with e_r and e_z is odd in the angle between the points, and all else is even.
        twice = 2.0 if m else 1.0
        even, odd = twice * np.cos(m * apart), -twice * np.sin(m * apart)
        for i, j in np.ndindex(3, 3):
            if (i == 1) == (j == 1):
                total[i, j] += even * waves[i, j].real[ways.pair]
            else:
                total[i, j] += odd * waves[i, j].imag[ways.pair]
    axes = _cylindrical_axes(phi)
    world = np.einsum("pai,ijpq,qbj->paqb", axes, total, axes)
    return -world.reshape(3 * len(r), -1) / (4.0 * math.pi**2)


class _Ways(NamedTuple):
    """Ways along the tube between points of two radii; each is looked at once."""

    waves: dict[tuple[int, int], tuple[slice, np.ndarray]]
    """By both radii: which of the ways, and e^(i k Δz) of them (k, way)."""
    pair: np.ndarray
    """Which way there is between two points, (n, n)."""

    @staticmethod
    def of(ring: np.ndarray, z: np.ndarray, k: np.ndarray) -> "_Ways":
        count = int(ring.max()) + 1
        # Complex numbers are sorted by their real parts first: all ways of two radii are together.
        keys = (ring[:, None] * count + ring) + 1j * np.round(z[:, None] - z, 9)
        ways, pair = np.unique(keys, return_inverse=True)
        kinds, starts = np.unique(ways.real.astype(int), return_index=True)
        found = {}
        for kind, start, end in zip(kinds, starts, [*starts[1:], len(ways)], strict=True):
            part = slice(start, end)
            found[divmod(int(kind), count)] = part, np.exp(1j * np.outer(k, ways[part].imag))
        return _Ways(found, pair.reshape(len(z), -1))

    def summed(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Sum over k of left (k, r, 3, 3) times right (k, r', 3, 3) times the wave; (3, 3, way)."""
        total = np.empty((3, 3, int(self.pair.max()) + 1), complex)
        for (here, there), (part, wave) in self.waves.items():
            # No BLAS, whose threads wait for each other longer than such a product takes.
            product = left[:, here] @ right[:, there]
            total[..., part] = np.einsum("kij,kw->ijw", product, wave)
        return total


def _panels(end: float, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of an integral over k from 0 to `end`."""
    graded = width * 0.5 ** np.arange(_HALVES, 0, -1.0)
    edges = np.concatenate([[0.0], graded, width * np.arange(1, math.ceil(end / width) + 1)])
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    half = 0.5 * np.diff(edges)[:, None]
    return (edges[:-1, None] + half * (nodes + 1.0)).ravel(), (half * weights).ravel()


def _cylindrical_axes(phi: np.ndarray) -> np.ndarray:
    """e_r, e_phi and e_z as columns, at each point."""
    axes = np.zeros((len(phi), 3, 3))
    axes[:, 0, 0] = axes[:, 1, 1] = np.cos(phi)
    axes[:, 1, 0], axes[:, 0, 1], axes[:, 2, 2] = np.sin(phi), -np.sin(phi), 1.0
    return axes


def _regular(m: int, k: np.ndarray, r: np.ndarray, R: float) -> np.ndarray:
    """V (k, r, 3, 3): u_r, u_phi, u_z of the three regular flows, times exp(-k R).

    u = grad I_m,   and   u = grad(x . B) - 2 B   for   B_x ± i B_y = I_(m±1) e^(±i phi)
    """
    k = k[:, None]

    def bessel(n: int) -> np.ndarray:
        return np.asarray(scipy.special.ive(abs(n), k * r) * np.exp(k * (r - R)))

    I = {n: bessel(n) for n in range(m - 2, m + 3)}
    V = np.empty((*np.broadcast_shapes(k.shape, r.shape), 3, 3), complex)
    V[..., 0, 0] = 0.5 * k * (I[m - 1] + I[m + 1])
    V[..., 1, 0] = 0.5j * k * (I[m - 1] - I[m + 1])
    V[..., 2, 0] = 1j * k * I[m]
    for column, sign in ((1, 1), (2, -1)):
        n = m + sign
        V[..., 0, column] = 0.25 * k * r * (I[n - 1] + I[n + 1]) - 0.5 * I[n]
        V[..., 1, column] = 1j * (0.5 * m + sign) * I[n]
        V[..., 2, column] = 0.5j * k * r * I[n]
    return V


def _stokeslet_at_wall(m: int, k: np.ndarray, r: np.ndarray, R: float) -> np.ndarray:
    """U (k, r, 3, 3): flow at the wall (rows) of forces along e_r, e_phi, e_z at r (columns).

    u = 2 f g - grad(x . f g),   g = 1/|x| = 1/pi Σ ∫ I_m(k r) K_m(k R) e^(i(m phi + k z)) dk

    x from the force to the wall. A factor z is i d/dk of the wave's amplitude.
    """
    k = k[:, None]
    shrink = np.exp(k * (r - R))
    I = {n: scipy.special.ive(abs(n), k * r) for n in range(m - 2, m + 3)}
    K = {n: scipy.special.kve(abs(n), k * R) * shrink for n in range(m - 2, m + 3)}
    dI, dK = 0.5 * (I[m - 1] + I[m + 1]), -0.5 * (K[m - 1] + K[m + 1])
    ddK = (1.0 + (m / (k * R)) ** 2) * K[m] - dK / (k * R)
    g = {n: I[n] * K[n] for n in (m - 1, m, m + 1)}
    g_R = {n: -0.5 * k * I[n] * (K[n - 1] + K[n + 1]) for n in g}  # by the wall's radius
    cos, sin = 0.5 * (g[m - 1] + g[m + 1]), -0.5j * (g[m - 1] - g[m + 1])
    cos_R, sin_R = 0.5 * (g_R[m - 1] + g_R[m + 1]), -0.5j * (g_R[m - 1] - g_R[m + 1])
    U = np.empty((*g[m].shape, 3, 3), complex)
    far_z = 1j * (r * dI * K[m] + R * I[m] * dK)
    far_z_R = 1j * (r * k * dI * dK + I[m] * dK + R * k * I[m] * ddK)
    columns = (  # 2 f g in cylindrical axes; x . f g, and its derivative by the wall's radius
        ((2.0 * cos, -2.0 * sin, 0.0), R * cos - r * g[m], cos + R * cos_R - r * g_R[m]),
        ((2.0 * sin, 2.0 * cos, 0.0), R * sin, sin + R * sin_R),
        ((0.0, 0.0, 2.0 * g[m]), far_z, far_z_R),
    )
    for j, (along, way, way_R) in enumerate(columns):
        U[..., 0, j] = along[0] - way_R
        U[..., 1, j] = along[1] - 1j * m / R * way
        U[..., 2, j] = along[2] - 1j * k * way
    return U
