"""An arm's robot and its changes as arguments of the node, and so as keys of a scenario file.

subtree = { root = "torso", tip = "hand" }                      only this part
attach = [{ urdf_path = "hand.urdf", link = "flange", pose = [...], prefix = "hand_" }]
                                                    (`on_problem`, `open_loops` too, of its file)
lock = { finger = 0.02 }                                        joints held, rad or m
frames = { grip = { link = "hand", pose = [0, 0, 0.1, 1, 0, 0, 0] } }

They are made in this order, by the methods of `KinematicTree`. What `subtree` and, without
`attach`, `lock` take out of a file is not judged when it is read.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mime._text import brief, nearest, quoted
from mime.control.kinematics import KinematicTree, parse_robot
from mime.core.arguments import instance, text
from mime.core.problem import InputError, Place, Problem, ProblemError

_KEYS = {
    "subtree": {"root": True, "tip": False},
    "attach": {
        "urdf_path": True,
        "link": True,
        "pose": False,
        "prefix": False,
        "on_problem": False,
        "open_loops": False,
    },
    "frames": {"link": True, "pose": False},
}
"""What each table takes, and whether it must be there."""


def read(
    robot: Any,
    base: str | None,
    on_problem: str,
    open_loops: bool,
    subtree: Any,
    attach: Any,
    lock: Any,
    frames: Any,
) -> tuple[KinematicTree, list[Problem]]:
    """The changed tree of a file or a tree, and what could not be done to it."""
    instance("urdf_path", robot, str, os.PathLike, KinematicTree)
    text("on_problem", on_problem)
    if isinstance(robot, KinematicTree):
        return edited(robot, subtree, attach, lock, frames)
    found: list[Problem] = []
    if subtree is not None and not isinstance(subtree, str):
        _is_table("subtree", subtree, ("subtree",), found)
    if lock is not None:
        _is_lock(lock, found)
    options: dict[str, Any] = {"base": base, "on_problem": on_problem, "open_loops": open_loops}
    if found:
        return parse_robot(robot, **options), found
    first = lock if attach is None else None
    try:
        tree = parse_robot(robot, subtree=subtree, lock=first, **options)
    except InputError as error:
        return parse_robot(robot, **options), list(error.problems)
    return edited(tree, None, attach, None if attach is None else lock, frames)


def edited(
    tree: KinematicTree, subtree: Any, attach: Any, lock: Any, frames: Any
) -> tuple[KinematicTree, list[Problem]]:
    """The changed tree, and what could not be done to it."""
    found: list[Problem] = []
    for place, change in _changes(subtree, attach, lock, frames, found):
        try:
            tree = change(tree)
        except ProblemError as error:
            found += [problem.inside(*place) for problem in error.problems]
        except (TypeError, ValueError, OSError) as error:
            found.append(Problem(place, f"is not possible: {error}"))
    return tree, found


Change = Callable[[KinematicTree], KinematicTree]


def _changes(
    subtree: Any, attach: Any, lock: Any, frames: Any, found: list[Problem]
) -> Iterator[tuple[Place, Change]]:
    if isinstance(subtree, str):
        yield ("subtree",), lambda tree: tree.subtree(subtree)
    elif subtree is not None and _is_table("subtree", subtree, ("subtree",), found):
        yield ("subtree",), lambda tree: tree.subtree(**subtree)
    listed = attach if isinstance(attach, list | tuple) else () if attach is None else (attach,)
    for k, table in enumerate(listed):
        place: Place = ("attach", k) if isinstance(attach, list | tuple) else ("attach",)
        if _is_table("attach", table, place, found):
            yield place, lambda tree, table=dict(table): tree.attach(_tree(table), **table)
    if lock is not None and _is_lock(lock, found):
        yield ("lock",), lambda tree: tree.lock(lock)
    if frames is not None and not isinstance(frames, Mapping):
        message = f'must be a table like {{ grip = {{ link = "hand" }} }}, got {brief(frames)}'
        found.append(Problem(("frames",), message))
        return
    for name, table in (frames or {}).items():
        if _is_table("frames", table, ("frames", name), found):
            yield ("frames", name), lambda tree, n=name, table=table: tree.with_frame(n, **table)


def _tree(table: dict[str, Any]) -> KinematicTree:
    """The robot that is attached; what is left in the table says where."""
    robot = table.pop("urdf_path")
    options = {key: table.pop(key) for key in ("on_problem", "open_loops") if key in table}
    if isinstance(robot, KinematicTree):
        return robot
    return parse_robot(os.fspath(robot), **options)


def _is_lock(lock: Any, found: list[Problem]) -> bool:
    if not isinstance(lock, Mapping):
        message = f"must be a table like {{ joint = 0.1 }}, got {brief(lock)}"
        found.append(Problem(("lock",), message))
    return isinstance(lock, Mapping)


def _is_table(key: str, table: Any, place: Place, found: list[Problem]) -> bool:
    """True for a table with the keys that it must have and no others; what is wrong is noted."""
    keys = _KEYS[key]
    if not isinstance(table, Mapping):
        found.append(Problem(place, f"must be a table with {quoted(keys)}, got {brief(table)}"))
        return False
    before = len(found)
    for name in table:
        if name not in keys:
            message = f"is no key of it{nearest(str(name), keys)}"
            found.append(Problem((*place, name), message, f"Its keys are {quoted(keys)}"))
    for name, needed in keys.items():
        if needed and name not in table:
            found.append(Problem((*place, name), "is missing"))
    return len(found) == before
