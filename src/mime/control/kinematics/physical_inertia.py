"""Which inertias a body can have.

I = tr(S) 1 - S,   S = ∫ r rᵀ dm ⪰ 0     its principal moments: none is above the other two's sum
"""

import numpy as np
import scipy

# Decimal figures of a CAD export are rounded: the triangle inequality may fail by this part of the
# largest inertia.
INERTIA_ROUNDING = 1e-6
# And a body thinner than a micrometre in its radius of gyration (m²) counts as a rod or a point.
THIN_BODY = 1e-12


def is_physical(inertia: np.ndarray, mass: float) -> bool:
    """True when some distribution of mass has this inertia, (3, 3) about its centre of mass."""
    small, middle, large = np.linalg.eigvalsh(inertia)
    tolerance = INERTIA_ROUNDING * abs(large) + THIN_BODY * mass
    return bool(min(small, small + middle - large) >= -tolerance)


def has_negative_moment(inertia: np.ndarray, mass: float) -> bool:
    """True when a principal moment is below 0 by more than decimal figures are rounded."""
    moments = np.linalg.eigvalsh(inertia)
    return bool(moments[0] < -(INERTIA_ROUNDING * np.max(np.abs(moments)) + THIN_BODY * mass))


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
