"""Which inertias a body can have, and which of them its equations of motion take.

I = tr(S) 1 - S,   S = ∫ r rᵀ dm ⪰ 0     its principal moments: none is above the other two's sum

The energy ½ m v² + ½ wᵀ I w needs no more than m >= 0 and I ⪰ 0. So a moment below 0 is refused
wherever it is met; an inertia that breaks the triangle inequality, or a planar one (izz alone), is
computed with as it is written.
"""

from typing import Any

import numpy as np
import scipy

# Decimal figures of a CAD export are rounded: the triangle inequality may fail by this part of the
# largest inertia.
INERTIA_ROUNDING = 1e-6
# And a body thinner than a micrometre in its radius of gyration (m²) counts as a rod or a point.
THIN_BODY = 1e-12


def has_negative_moment(inertia: np.ndarray, mass: Any) -> Any:
    """Whether a principal moment of I (..., 3, 3) is below 0 by more than figures are rounded."""
    return _lacking(inertia, mass, [1, 0, 0])


def breaks_triangle(inertia: np.ndarray, mass: Any) -> Any:
    """Whether a principal moment of I (..., 3, 3) is above the other two's sum, likewise."""
    return _lacking(inertia, mass, [1, 1, -1])


def is_physical(inertia: np.ndarray, mass: float) -> bool:
    """True when some distribution of mass has this inertia, (3, 3) about its centre of mass."""
    return not (has_negative_moment(inertia, mass) or breaks_triangle(inertia, mass))


def nearest_physical_inertia(inertia: np.ndarray) -> np.ndarray:
    """The physical I' with the smallest |I' - I| (Frobenius).

    It has the same principal axes. Its moments i follow from those of S, s >= 0, by i = B s with
    B = 1 1ᵀ - 1: a least squares problem in three unknowns.
    """
    moments, axes = np.linalg.eigh(inertia)
    B = np.ones((3, 3)) - np.eye(3)
    second_moments, _ = scipy.optimize.nnls(B, moments)
    nearest = (axes * (B @ second_moments)) @ axes.T
    return (nearest + nearest.T) / 2


def _lacking(inertia: np.ndarray, mass: Any, factors: list[int]) -> Any:
    """Whether factors · (moments in rising order) is below 0 by more than rounding."""
    moments = np.linalg.eigvalsh(np.asarray(inertia, float))
    tolerance = INERTIA_ROUNDING * np.abs(moments[..., 2]) + THIN_BODY * np.asarray(mass)
    return moments @ factors < -tolerance
