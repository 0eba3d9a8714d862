"""Which part of a robot's file is wanted: arguments that every reader of files takes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mime.control.kinematics.tree import KinematicTree
from mime.core.arguments import mapping, wrong
from mime.core.problem import InputError

Part = str | Mapping[str, str] | None
"""The root of a part, or `{"root": ..., "tip": ...}`; None is the whole robot."""


def ends(subtree: Part) -> tuple[str, str | None] | None:
    """Root and tip of the part that is wanted; None is the whole robot."""
    if subtree is None:
        return None
    if isinstance(subtree, str):
        return subtree, None
    form = '{"root": "torso", "tip": "hand"}'
    given = mapping("subtree", subtree, form)
    if "root" not in given or not {*given} <= {"root", "tip"}:
        raise wrong("subtree", f"a link's name or a table like {form}", subtree)
    return given["root"], given.get("tip")


def part_of(tree: KinematicTree, subtree: Part, lock: Mapping[str, Any] | None) -> KinematicTree:
    """The part that is wanted, with the joints held that are to be."""
    if (wanted := ends(subtree)) is not None:
        with _inside("subtree"):
            tree = tree.subtree(*wanted)
    if held := mapping("lock", lock, '{"finger": 0.02}'):
        with _inside("lock"):
            tree = tree.lock(held)
    return tree


@contextmanager
def _inside(argument: str) -> Iterator[None]:
    """Errors of a change say the argument that asked for it."""
    try:
        yield
    except InputError as error:
        found = [problem.inside(argument) for problem in error.problems]
        raise InputError(error.where, found) from None
