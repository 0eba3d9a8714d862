"""Write docs/robot_survey.md and the table of rules in docs/robot_files.md.

python tools/robot_table.py [SITE_PACKAGES ...]

The survey has every URDF and MJCF in packages that others publish. Besides the packages of this
environment, those of others (of `.venv-bench`) are looked through. Each reader is asked in a
process that may die of a file.
"""

import contextlib
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from mime.control.kinematics.rules import RULES  # noqa: E402
from robot_files import SITE, Verdict, robots, verdict, without_folders  # noqa: E402

RULES_PAGE = ROOT / "docs" / "robot_files.md"
START = "<!-- the table of rules is written by tools/robot_table.py -->"
END = "<!-- end of the table of rules -->"
SURVEY_PAGE = ROOT / "docs" / "robot_survey.md"
SURVEY = """# Robots of others

`python tools/robot_table.py` writes this page. It reads every URDF and MJCF in packages that the
tests and the benchmarks install: example-robot-data, frax, gymnasium, dm_control, mujoco and
mujoco-mjx.

*loads*: nothing in the file changes the motion beyond what MIME simulates. *loads with a warning*:
parts of the file are [reported](robot_files.md#what-becomes-of-a-file). *kinematics*: the file has
no masses.

Pinocchio's dynamics are the oracle of the URDFs (`tests/oracles/test_kinematics_vs_pinocchio.py`),
MuJoCo's of the MJCFs (`test_mjcf_vs_mujoco.py`). MuJoCo gets the URDFs without shapes, since it
looks for meshes beside the file.
"""


def mujoco_verdict(file):
    """MuJoCo's word on it; it would refuse most URDFs for meshes that it does not find."""
    import mujoco

    if file.suffix == ".urdf":
        file = _without_shapes(file)
    try:
        model = mujoco.MjModel.from_xml_path(str(file))
    except ValueError as error:
        return Verdict("refused", _reason(error))
    return Verdict("loads", f"{model.nv}")


def _without_shapes(file):
    robot = ElementTree.parse(file)
    for link in robot.iter("link"):
        for shape in [part for part in link if part.tag in ("visual", "collision")]:
            link.remove(shape)
    robot.write("robot.urdf")
    return Path("robot.urdf")


def pinocchio_verdict(file):
    """Pinocchio's word on it; its parser talks to standard error."""
    import pinocchio

    build = pinocchio.buildModelFromUrdf
    if file.suffix == ".xml":
        build = pinocchio.buildModelFromMJCF
    try:
        with silence():
            model = build(str(file))
    except Exception as error:
        return Verdict("refused", _reason(error))
    return Verdict("loads", f"{model.nv}")


@contextlib.contextmanager
def silence():
    """Pinocchio's parser talks to standard error by itself."""
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _reason(error):
    words = " ".join(str(error).rpartition("message:")[2].split())
    return without_folders(words).removeprefix("Error: ").removeprefix("XML Error: ")[:70]


def answers(ask, files):
    """One reader's words on all files; where it dies, that is the word."""
    found, left = [], list(files)
    while left:
        with ProcessPoolExecutor(1) as process:
            try:
                for file in list(left):
                    found.append(process.submit(ask, file).result())
                    left.pop(0)
            except BrokenProcessPool:
                found.append(Verdict("crashes", ""))
                left.pop(0)
    return found


def main():
    """Write both pages."""
    write_rules()
    files = {}
    for site in [*map(Path, sys.argv[1:]), SITE]:  # this environment's own last: they hold
        files |= robots(site.resolve())
    os.chdir(tempfile.mkdtemp())  # MuJoCo writes its warnings into the current folder
    paths = list(files.values())
    ours = [answers(ask, paths) for ask in (verdict, pinocchio_verdict, mujoco_verdict)]
    tables = [
        _table(kind, [row for row in zip(files, *ours) if row[0].endswith(suffix)])
        for kind, suffix in (("URDF", ".urdf"), ("MJCF", ".xml"))
    ]
    SURVEY_PAGE.write_text(SURVEY + "\n".join(tables), encoding="utf-8")


def rules_table():
    """The table of rules, as the page has it."""
    titles = {"noted": "Noted", "reported": "Reported", "refused": "Refused"}
    parts = []
    for kind, title in titles.items():
        does = "what to do" if kind == "refused" else "what MIME does"
        parts += ["", f"| {title} | {does} |", "| --- | --- |"]
        for rule in RULES.values():
            if rule.kind == kind:
                mend = f'; `"mend"`: {rule.mend}' if rule.mend else ""
                cells = (rule.what, rule.effect + mend)
                parts.append(f"| {' | '.join(cells)} |")
    return "\n".join([*parts, ""])


def write_rules():
    """Write the table of rules into its page."""
    before, _, rest = RULES_PAGE.read_text(encoding="utf-8").partition(START)
    after = rest.partition(END)[2]
    text = f"{before}{START}\n{rules_table()}\n{END}{after}"
    RULES_PAGE.write_text(text, encoding="utf-8")


def _table(kind, rows):
    lines = ["", f"## {kind}", "", _counts(rows), ""]
    lines += [f"| {kind} | MIME | Pinocchio | MuJoCo | |", "| --- | --- | --- | --- | --- |"]
    for name, mime, *peers in rows:
        cells = [f"`{name}`", mime.status, *map(_cell, peers), mime.words]
        lines.append(f"| {' | '.join(_escaped(cell) for cell in cells)} |")
    return "\n".join([*lines, ""])


def _cell(peer):
    return peer.status if peer.status != "refused" else f"refused: {peer.words}"


def _counts(rows):
    words = []
    for reader, name in enumerate(("MIME", "Pinocchio", "MuJoCo"), 1):
        counts = {}
        for row in rows:
            counts[row[reader].status] = counts.get(row[reader].status, 0) + 1
        said = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        words.append(f"{name} {said}")
    return f"{len(rows)} files: {'; '.join(words)}."


def _escaped(cell):
    return cell.replace("|", "/").replace("<", "&lt;")


if __name__ == "__main__":
    main()
