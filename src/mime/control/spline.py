"""Cubic splines through evenly spaced points."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.core.node import Scalar


class SplinePoint(NamedTuple):
    """A spline's value at u and its derivatives by u."""

    y: Float[Array, " columns"]
    slope: Float[Array, " columns"]
    curvature: Float[Array, " columns"]


def second_derivatives(
    points: Float[np.ndarray, "knots columns"],
) -> Float[np.ndarray, "knots columns"]:
    """M with  M[i-1] + 4 M[i] + M[i+1] = 6/h² (y[i-1] - 2 y[i] + y[i+1]),   h = 1/(knots - 1)

    Not-a-knot at both ends: the first two pieces are one cubic, and so are the last two.
    """
    n = len(points)
    A = np.zeros((n, n))
    rows = np.arange(1, n - 1)
    A[rows, rows - 1] = A[rows, rows + 1] = 1.0
    A[rows, rows] = 4.0
    A[0, :3] = A[-1, -3:] = 1.0, -2.0, 1.0
    b = np.zeros_like(points)
    b[1:-1] = 6.0 * (n - 1) ** 2 * (points[:-2] - 2.0 * points[1:-1] + points[2:])
    return np.linalg.solve(A, b)


def spline_at(
    points: Float[Array, "knots columns"], M: Float[Array, "knots columns"], u: Scalar
) -> SplinePoint:
    """y(u) on [0, 1], the knots at i h; M from `second_derivatives`."""
    pieces = len(points) - 1
    h = 1.0 / pieces
    i = jnp.clip(jnp.floor(u * pieces).astype(int), 0, pieces - 1)
    b = u * pieces - i
    a = 1.0 - b
    y0, y1, M0, M1 = points[i], points[i + 1], M[i], M[i + 1]
    return SplinePoint(
        a * y0 + b * y1 + h * h / 6.0 * ((a**3 - a) * M0 + (b**3 - b) * M1),
        (y1 - y0) / h + h / 6.0 * ((3.0 * b**2 - 1.0) * M1 - (3.0 * a**2 - 1.0) * M0),
        a * M0 + b * M1,
    )
