"""Two postures of an arm, for judgements before a run: at rest, and in the middle of its limits."""

from inspect import unwrap

import numpy as np

from mime.control.kinematics import KinematicTree, mass_matrix


def mass_matrices(tree: KinematicTree) -> list[np.ndarray]:
    """M (N, N) at rest (each joint at 0 or at the limit nearest to it) and in the middle."""
    lower, upper = np.asarray(tree.joint_limits).T
    rest = np.clip(np.zeros(tree.num_joints), lower, upper)
    bounded = np.isfinite(lower) & np.isfinite(upper)
    middle = rest.copy()
    middle[bounded] = (lower[bounded] + upper[bounded]) / 2
    # Evaluated by Python: a judgement is not worth a compilation.
    return [np.asarray(unwrap(mass_matrix)(tree, q)) for q in (rest, middle)]
