"""The row of an MJCF: MIME by default and mending, MuJoCo, and how far they agree.

An MJCF is a robot's if its root is <mujoco>, it has a <joint> or <freejoint> in a <worldbody> once
its includes are in place, its name is not scene* or *keyframes*, no folder of its path is called
objects or arenas, and MuJoCo compiles it by itself with nv > 0. So a file that others include
counts where it is a model of its own, and a fragment does not.
"""

import fnmatch
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from mime.control.kinematics import KinematicTree, parse_mjcf
from survey.agreement import QUANTITIES, compared, rounding
from survey.checkouts import Repository
from survey.readers import LOADS, REFUSED, brief, taken
from survey.staging import expanded, staged
from survey.urdf import LIMIT
from survey.workers import Row

NOT_ROBOTS = ("scene*", "*keyframes*")
"""Names of files beside a robot's."""
NOT_ROBOTS_FOLDERS = {"objects", "arenas"}
"""What robots meet, in robosuite."""


def robot_files(repository: Repository) -> list[Path]:
    """All MJCFs of robots; whether they compile is not known yet."""
    files = repository.files(".xml")
    inside = [
        f for f in files if NOT_ROBOTS_FOLDERS.isdisjoint(f.relative_to(repository.folder).parts)
    ]
    return [file for file in inside if _is_robot(file)]


def _is_robot(file: Path) -> bool:
    if any(fnmatch.fnmatch(file.stem.lower(), pattern) for pattern in NOT_ROBOTS):
        return False
    if b"<mujoco" not in file.read_bytes():
        return False
    root = expanded(file)
    return root is not None and root.tag == "mujoco" and _moves(root)


def _moves(root: ElementTree.Element) -> bool:
    worlds = root.iter("worldbody")
    return any(part.tag in ("joint", "freejoint") for world in worlds for part in world.iter())


def mjcf_row(question: Row) -> Iterator[tuple[str, Any]]:
    """What becomes of one file; see `survey.workers.rows`."""
    import mujoco

    repository = Path(question["folder"])
    with tempfile.TemporaryDirectory(prefix="mime_staged_") as scratch:
        folder = Path(scratch).resolve() / "checkout"
        copy = staged(Path(question["path"]), repository, folder)
        yield "replaced", copy.replaced
        try:
            model = mujoco.MjModel.from_xml_path(str(copy.file))
        except ValueError as error:
            yield "peer", {"status": REFUSED, "message": brief(str(error), [folder])}
            return
        yield "peer", {"status": LOADS, "nv": model.nv}
        if not model.nv:
            return

        def read(**options: Any) -> KinematicTree:
            return parse_mjcf(copy.file, **options)

        tree, verdict = taken(read, [folder])
        yield "default", verdict
        if tree is None:
            tree, verdict = taken(read, [folder], on_problem="mend")
        yield "mend", verdict
        if tree is not None:
            yield "agreement", _beside_mujoco(tree, model)


def _beside_mujoco(tree: KinematicTree, model: Any) -> dict[str, Any]:
    from survey.mujoco_peer import InMujoco

    try:
        found = compared(tree, InMujoco(tree, model))
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"[:300]}
    above = [name for name in QUANTITIES if found["errors"].get(name, 0.0) > LIMIT]
    return found | {"reasons": {name: rounding(found, name) or "unknown" for name in above}}
