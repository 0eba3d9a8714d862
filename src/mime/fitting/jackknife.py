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

_LEFT = 1e-6
"""Of a direction's information, the least that is taken to be left without a window."""


def jackknife(
    information: Sequence[np.ndarray], slopes: Sequence[np.ndarray], prior: np.ndarray
) -> np.ndarray:
    """C of G windows; `prior` is the information beforehand. All (n, n), slopes (n,).

    The sum of all must be positive definite: give coordinates along which something is known.
    """
    A: np.ndarray = prior + sum(information)
    # In coordinates y = Lᵀ z the information of all windows is the identity.
    L = np.linalg.cholesky(A)
    steps = []
    for own, slope in zip(information, slopes, strict=True):
        g = np.linalg.solve(L, slope)
        share = np.linalg.solve(L, np.linalg.solve(L, own).T)
        parts, V = np.linalg.eigh(0.5 * (share + share.T))
        steps.append(V @ ((V.T @ g) / np.maximum(1.0 - parts, _LEFT)))
    count = len(steps)
    apart = np.linalg.solve(L.T, (np.array(steps) - np.mean(steps, axis=0)).T)
    return (count - 1) / count * apart @ apart.T
