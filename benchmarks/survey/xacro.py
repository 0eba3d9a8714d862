"""The row of a xacro call: expanded, then read as a URDF is by MIME and by Pinocchio."""

import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from mime.control.kinematics import KinematicTree, RobotFileError, expand_xacro, parse_xacro
from survey.checkouts import Repository
from survey.readers import LOADS, REFUSED, brief, pinocchio_takes, taken
from survey.urdf import beside_pinocchio
from survey.workers import Row


def workspace(repositories: list[Repository], folder: Path) -> Path:
    """A folder with a link to each ROS package, called as its package.xml says.

    A checkout OWNER+NAME is not called as its package is; a workspace of ROS knows it by its
    package.xml.
    """
    folder.mkdir(parents=True)
    for repository in repositories:
        for file in repository.files("package.xml"):
            try:
                name = (ElementTree.fromstring(file.read_bytes()).findtext("name") or "").strip()
            except ElementTree.ParseError:
                continue
            link = folder / name
            if name and "/" not in name and not link.is_symlink():
                link.symlink_to(file.parent, target_is_directory=True)
    return folder


def xacro_row(question: Row) -> Iterator[tuple[str, Any]]:
    """What becomes of one call; see `survey.workers.rows`."""
    file, folder = Path(question["path"]), Path(question["folder"])
    own, others = Path(question["own"]), Path(question["others"])
    hidden, search_path = [folder, own, others], [own]
    text, verdict = _expanded(file, question["arguments"], search_path, hidden)
    if text is None and "not found in search_path" in verdict["message"]:
        yield "needs", verdict["message"].partition("'")[2].partition("'")[0]
        search_path = [own, others]
        text, verdict = _expanded(file, question["arguments"], search_path, hidden)
    yield "expands", verdict
    if text is None:
        return
    yield "links", text.count("<link ")
    yield "hash", hashlib.sha256(text.encode()).hexdigest()[:16]
    if "<link " not in text:
        return
    expanded = Path(tempfile.mkdtemp(dir=".")).resolve() / "expanded.urdf"
    expanded.write_text(text, encoding="utf-8")

    def read(**options: Any) -> KinematicTree:
        given = question["arguments"]
        return parse_xacro(file, arguments=given, search_path=search_path, **options)

    tree, verdict = taken(read, hidden)
    yield "default", verdict
    if tree is None:
        tree, verdict = taken(read, hidden, on_problem="mend")
    yield "mend", verdict
    model, verdict, said = pinocchio_takes(expanded)
    yield "peer", verdict
    if tree is not None and model is not None:
        yield "agreement", beside_pinocchio(tree, expanded, said)


def _expanded(
    file: Path, arguments: dict[str, str], search_path: list[Path], hidden: list[Path]
) -> tuple[str | None, dict[str, str]]:
    try:
        text = expand_xacro(file, arguments=arguments, search_path=search_path)
    except RobotFileError as error:
        return None, {"status": REFUSED, "message": brief(str(error), hidden)}
    return text, {"status": LOADS}
