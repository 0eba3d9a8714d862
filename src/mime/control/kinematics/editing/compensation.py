"""Where masses whose weight is compensated go when a tree is changed: they add up, as bodies do."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mime.control.kinematics.editing.arrays import number, stacked
from mime.control.kinematics.editing.bodies import NO_MOMENTS, ROOT, FirstMoments

Fields = dict[str, Any]
"""The fields of a tree that hold compensated masses; empty where it has none."""


def compensated_of(tree: Any, link_idx: int) -> FirstMoments:
    """What is compensated of a link's mass, in its own frame; of the root, what is fixed to it."""
    if link_idx == ROOT:
        found: FirstMoments = tree.root_compensated
        return found
    if tree.compensated_masses is None:
        return NO_MOMENTS
    return FirstMoments(
        number(tree.compensated_masses[link_idx]), tree.compensated_moments[link_idx]
    )


def compensated_fields(of_links: Sequence[FirstMoments], root: FirstMoments) -> Fields:
    """The fields of a tree with these links and this root."""
    return {
        "compensated_masses": stacked([part.mass for part in of_links], np.zeros(0)),
        "compensated_moments": stacked([part.moment for part in of_links], np.zeros((0, 3))),
        "root_compensated": root,
    }


def of_moving(tree: Any, moving: Sequence[int], fixed: Mapping[int, tuple[int, Any]]) -> Fields:
    """Those of `moving` links and the root, with what is `fixed` to them, as in `restructured`."""
    if tree.compensated_masses is None:
        return {}
    found = {ROOT: NO_MOMENTS} | {link: compensated_of(tree, link) for link in moving}
    for link, (at, T) in fixed.items():
        found[at] = found[at].joined(compensated_of(tree, link).seen_from(T))
    return compensated_fields([found[link] for link in moving], found[ROOT])


def of_two(tree: Any, other: Any, at: int, T: Any) -> Fields:
    """Those of two trees, the root of `other` at T on link `at` of the first."""
    if tree.compensated_masses is None and other.compensated_masses is None:
        return {}
    found = {link: compensated_of(tree, link) for link in (*range(tree.num_links), ROOT)}
    found[at] = found[at].joined(other.root_compensated.seen_from(T))
    root = found.pop(ROOT)
    beyond = [compensated_of(other, link) for link in range(other.num_links)]
    return compensated_fields([*found.values(), *beyond], root)
