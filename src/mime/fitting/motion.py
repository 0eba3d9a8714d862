"""A measured motion as splines: positions between encoder rows, and their derivatives.

    q_j(t) = sum_k B_k(t) c_kj,    B of degree 5, its pieces equally long

How many pieces is asked of the log by generalised cross-validation, n RSS / (n - K)², and then half
as many more are taken: what is left of too few pieces is an error that nothing accounts for, and
what is left of too many is noise, which the fit weighs as noise.

Cross-validation takes noise that is not white for motion. Where it is (a gear's play, rows that are
read late), `mime.fitting.arm` takes fewer pieces, as long as torques are explained better by that.

Pieces of less than four rows are tried only where longer ones are all too long. An encoder that is
read faster than it changes repeats its values, and such noise, which is not white, looks like
motion to pieces of two or three rows.
"""

import dataclasses

import numpy as np

DEGREE = 5
_MORE = 1.5
FEWEST = 4
_ROWS_PER_PIECE, _ROWS_AT_FIRST = 2.0, 4.0
_RESOLUTION = 1e-9


@dataclasses.dataclass(frozen=True)
class Motion:
    """All joints of an arm over one log."""

    knots: np.ndarray
    coefficients: np.ndarray
    """(K, joints)"""
    noise: np.ndarray
    """Standard deviation of each joint's encoder: what the spline leaves of its rows."""

    @property
    def count(self) -> int:
        """K."""
        return len(self.coefficients)

    @property
    def pieces(self) -> int:
        """How many."""
        return self.count - DEGREE

    def basis(self, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First nonzero function and values (rows, 4, 6): B, B', B'' and B''' of all six there."""
        first = np.clip(
            np.searchsorted(self.knots, time, side="right") - 1 - DEGREE, 0, self.count - DEGREE - 1
        )
        return first, np.stack([_local(self.knots, first, time, d) for d in range(4)], axis=1)

    def at(self, time: np.ndarray) -> np.ndarray:
        """q, q̇, q̈ and the third derivative (rows, 4, joints)."""
        first, values = self.basis(time)
        near = self.coefficients[first[:, None] + np.arange(DEGREE + 1)]
        return np.einsum("tdk,tkj->tdj", values, near)


def _local(knots: np.ndarray, first: np.ndarray, time: np.ndarray, derivative: int) -> np.ndarray:
    """Values (rows, 6) of the six functions that are nonzero in a row's piece (de Boor)."""
    degree = DEGREE - derivative
    span = first + DEGREE
    B = np.ones((len(time), 1))
    for p in range(1, degree + 1):
        B = _raised(knots, span, time, B, p)
    for p in range(degree + 1, DEGREE + 1):
        B = _differentiated(knots, span, B, p)
    return B


def _raised(
    knots: np.ndarray, span: np.ndarray, time: np.ndarray, B: np.ndarray, p: int
) -> np.ndarray:
    """Degree p from p - 1:  B_i = (t - t_i)/(t_{i+p} - t_i) B_i + (t_{i+p+1} - t)/(...) B_{i+1}"""
    new = np.zeros((len(time), p + 1))
    for r in range(p):
        i = span - p + 1 + r
        low, high = knots[i], knots[i + p]
        part = B[:, r] / (high - low)
        new[:, r] += (high - time) * part
        new[:, r + 1] += (time - low) * part
    return new


def _differentiated(knots: np.ndarray, span: np.ndarray, B: np.ndarray, p: int) -> np.ndarray:
    """B_i' of degree p:  p (B_i / (t_{i+p} - t_i) - B_{i+1} / (t_{i+p+1} - t_{i+1}))"""
    new = np.zeros((len(B), p + 1))
    for r in range(p):
        i = span - p + 1 + r
        part = p * B[:, r] / (knots[i + p] - knots[i])
        new[:, r] -= part
        new[:, r + 1] += part
    return new


def smooth(time: np.ndarray, angles: np.ndarray) -> Motion:
    """The motion of the rows `angles` (rows, joints) at `time`, all joints with the same pieces."""
    most, first = (
        max(int((len(time) - DEGREE) / rows), FEWEST) for rows in (_ROWS_PER_PIECE, _ROWS_AT_FIRST)
    )
    tried = np.unique(np.geomspace(FEWEST, most, 24).astype(int))
    scores: list[float] = []
    for count in tried:
        best = int(np.argmin(scores)) if scores else 0
        if count > first and best < len(scores) - 1:
            break
        scores.append(_score(time, angles, int(count)))
    return splined(time, angles, min(int(np.ceil(_MORE * tried[int(np.argmin(scores))])), most))


def splined(time: np.ndarray, angles: np.ndarray, pieces: int) -> Motion:
    """The motion in so many pieces, and the noise that they leave."""
    knots, c, left = _fitted(time, angles, pieces)
    spread = np.maximum(np.std(angles, axis=0), 1e-3)
    sigma = np.sqrt(left / max(len(time) - len(c), 1))
    return Motion(knots, c, np.maximum(sigma, _RESOLUTION * spread))


def _score(time: np.ndarray, angles: np.ndarray, pieces: int) -> float:
    """Log of the cross-validated error, over the joints; those that stand still do not count."""
    _, c, left = _fitted(time, angles, pieces)
    n, spread = len(time), np.maximum(np.std(angles, axis=0), 1e-3)
    least = n * (_RESOLUTION * spread) ** 2
    return float(np.sum(np.log(np.maximum(left, least)))) - 2 * angles.shape[1] * float(
        np.log(n - len(c))
    )


def _fitted(
    time: np.ndarray, angles: np.ndarray, pieces: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Knots, coefficients and the sum of squares that is left of each joint."""
    from scipy.interpolate import make_lsq_spline

    inner = np.linspace(time[0], time[-1], pieces + 1)
    knots = np.concatenate([[inner[0]] * DEGREE, inner, [inner[-1]] * DEGREE])
    spline = make_lsq_spline(time, angles, knots, DEGREE)
    return knots, spline.c, np.sum((spline(time) - angles) ** 2, axis=0)
