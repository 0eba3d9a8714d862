"""The covariance of a fit whose residuals are not white: leave out one window of the log at a time.

    d_i = (A - A_i)⁻¹ g_i                       one Gauss-Newton step, no new fit
    C = (G - 1)/G sum_i (d_i - d̄)(d_i - d̄)ᵀ

A_i = J_iᵀ J_i and g_i = J_iᵀ r_i are those of window i at the minimum, A is the sum of all, and of
what is known beforehand. It holds where residuals are correlated within a window, and where their
structure differs from motion to motion (Efron and Tibshirani 1993, chapter 11).

What one window alone tells has no slope in it at the minimum, and C is zero there: take the larger
of C and of the covariance under white noise.
"""

from collections.abc import Sequence

import numpy as np

from mime.fitting.rank import upper_triangle

_LEFT = 1e-6
"""Of a direction's information, the least that is taken to be left without a window."""


def jackknife(
    jacobians: Sequence[np.ndarray], slopes: Sequence[np.ndarray], prior: np.ndarray
) -> np.ndarray:
    """C of G windows: J_i or any with the same J_iᵀ J_i, (rows, n), and g_i (n,).

    `prior` are the rows of the information beforehand. All rows together must have full rank: give
    coordinates along which something is known.
    """
    from scipy.linalg import solve_triangular

    triangles = [upper_triangle(J) for J in jacobians]
    # In coordinates y = R z the information of all windows is the identity.
    R = upper_triangle(np.concatenate([*triangles, prior]))
    steps = []
    for own, slope in zip(triangles, slopes, strict=True):
        g = solve_triangular(R, slope, trans="T")
        _, s, Vt = np.linalg.svd(solve_triangular(R, own.T, trans="T").T)
        parts = np.zeros(len(R))
        parts[: len(s)] = s**2
        steps.append(Vt.T @ ((Vt @ g) / np.maximum(1.0 - parts, _LEFT)))
    count = len(steps)
    apart = solve_triangular(R, (np.array(steps) - np.mean(steps, axis=0)).T)
    C: np.ndarray = (count - 1) / count * apart @ apart.T
    return C
