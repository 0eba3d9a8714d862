"""Robot files of public repositories: what MIME reads of them, and how its equations compare.

    python benchmarks/public_robots.py FOLDER ... [--format urdf] [--only REGEX] [--json FILE]

FOLDER holds checkouts, each called OWNER+NAME, or bare git snapshots OWNER+NAME/repo, which are
unpacked first (some blobs may be missing). Nothing is written into the checkouts. The tables go to
standard output as Markdown, progress to standard error:

- URDF: each distinct file by default, with on_problem="mend", and in Pinocchio.
- MJCF: each robot (`survey/mjcf.py` says which files are) likewise, and in MuJoCo. The file is
  copied with its assets first; a mesh that is missing is a box there, for both programs.
- xacro: the calls of `survey/xacro_calls.py`, expanded by MIME, then as a URDF.
- Agreement: M, bias, accelerations and frames at three random states of each file that loads.

Each file is read in a process that it may crash or keep busy. About ten minutes on two cores for
30 repositories.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from survey import mjcf, tables, urdf, xacro, xacro_calls  # noqa: E402
from survey.checkouts import Repository, distinct, repositories, sampled  # noqa: E402
from survey.workers import Row, rows  # noqa: E402

from robot_files import FOLDERS, SITE  # noqa: E402 - tests/

# Of the workers. Python computes there: to compile for each robot takes minutes.
ENVIRONMENT = {"MIME_NATIVE": "off", "OPENBLAS_NUM_THREADS": "1"}
FORMATS = {"urdf": urdf.urdf_row, "mjcf": mjcf.mjcf_row, "xacro": xacro.xacro_row}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="*", help="of checkouts OWNER+NAME")
    parser.add_argument("--installed", action="store_true", help="the files of installed packages")
    parser.add_argument("--format", choices=FORMATS, action="append", help="all, if not given")
    parser.add_argument("--only", type=re.compile, help="files whose OWNER/NAME/path has this")
    parser.add_argument("--json", type=Path, help="where to write the rows")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=60.0, help="s, for one program's answer")
    parser.add_argument("--most", type=int, default=50, help="URDFs whose paths differ in digits")
    parser.add_argument("--unpack", type=Path, help="where snapshots are unpacked and kept")
    options = parser.parse_args(arguments)
    if not options.folder and not options.installed:
        parser.error("give a folder of checkouts, or --installed")
    scratch = Path(tempfile.mkdtemp(prefix="mime_robots_")).resolve()
    try:
        found = survey(options, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print("\n".join([*heading(), *tables.page(found)]))
    return 0


def survey(options: argparse.Namespace, scratch: Path) -> list[Row]:
    """The rows of all formats."""
    checkouts: list[Repository] = []
    for folder in options.folder:
        checkouts += repositories(folder.resolve(), options.unpack or scratch / "unpacked")
    if options.installed:
        inside = [Repository(f"installed/{name}", SITE / place) for name, place in FOLDERS.items()]
        checkouts += [repository for repository in inside if repository.folder.is_dir()]
    asked = {
        "urdf": lambda: urdf_questions(checkouts, options.most),
        "mjcf": lambda: mjcf_questions(checkouts),
        "xacro": lambda: xacro_questions(checkouts, scratch),
    }
    found = []
    for kind in options.format or FORMATS:
        questions = [row | {"format": kind} for row in asked[kind]() if wanted(row, options.only)]
        with environment(ENVIRONMENT):
            found += rows(FORMATS[kind], questions, options.jobs, options.timeout, kind)
    return found


@contextlib.contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """What processes started inside inherit."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def wanted(row: Row, only: re.Pattern[str] | None) -> bool:
    return only is None or only.search(f"{row['repository']}/{row['file']}") is not None


def question(repository: Repository, file: Path) -> Row:
    """What a worker is asked, and what tables call it by."""
    return {
        "repository": repository.name,
        "file": repository.relative(file),
        "path": str(file),
        "folder": str(repository.folder),
    }


def urdf_questions(checkouts: Iterable[Repository], most: int) -> list[Row]:
    found: list[Row] = []
    for repository in checkouts:
        files = repository.files(".urdf")
        single = list(distinct(files))
        kept = sampled(repository, single, most)
        for file, digest, copies in kept:
            found.append(question(repository, file) | {"hash": digest, "copies": copies})
        if kept:
            found[-1]["left_out"] = len(single) - len(kept)
    return found


def mjcf_questions(checkouts: Iterable[Repository]) -> list[Row]:
    return [question(r, file) for r in checkouts for file in mjcf.robot_files(r)]


def xacro_questions(checkouts: list[Repository], scratch: Path) -> list[Row]:
    """A workspace of each repository's own packages, and one of all."""
    others = xacro.workspace(checkouts, scratch / "all packages")
    found = []
    for number, repository in enumerate(checkouts):
        calls = xacro_calls.calls(repository)
        if not calls:
            continue
        own = xacro.workspace([repository], scratch / f"packages {number}")
        for call in calls:
            row = question(repository, repository.folder / call.file)
            given = {"arguments": call.arguments, "own": str(own), "others": str(others)}
            found.append(row | given)
    return found


def heading() -> list[str]:
    asked = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    )
    versions = [f"{name} {metadata.version(name)}" for name in ("pin", "mujoco", "xacrodoc")]
    commit = asked.stdout.strip() or "of no commit"
    return ["# Public robot files", "", f"MIME {commit}, {', '.join(versions)}."]


if __name__ == "__main__":
    sys.exit(main())
