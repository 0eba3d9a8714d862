"""Writes the table of docs/mjcf.md: every MJCF inside the packages that the tests install.

python tools/mjcf_table.py
"""

import sys
import warnings
from pathlib import Path

import mujoco

from mime.control.kinematics import MjcfError, parse_mjcf

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from mjcf_files import of_package  # noqa: E402

PACKAGES = ("gymnasium", "dm_control")
PAGE = ROOT / "docs" / "mjcf.md"
START = "<!-- the table below is written by tools/mjcf_table.py -->"


def ours(file):
    """Whether the file loads, and what is said of it."""
    try:
        tree = parse_mjcf(file)
        return "exactly", _joints(tree)
    except MjcfError:
        pass
    try:
        tree = parse_mjcf(file, on_problem="report")
    except MjcfError as error:
        words = [finding.what for finding in error.findings]
        return "refused", _brief(dict.fromkeys(words))
    words = sorted(tree.ignored, key=lambda note: "is not simulated" in note)  # sensors last
    return "with a report", f"{_joints(tree)}; {_brief(dict.fromkeys(words))}"


def _joints(tree):
    floats = " on a floating base" if tree.base == "floating" else ""
    return f"{tree.num_joints} joints{floats}"


def _brief(words):
    first, *others = [
        " ".join(word.split())[:110].replace("|", "/").replace("<", "&lt;") for word in words
    ]
    return first + (f"; and {len(others)} more" if others else "")


def theirs(file):
    """Whether MuJoCo itself loads it."""
    try:
        mujoco.MjModel.from_xml_path(str(file))
    except ValueError:
        return "refused"
    return "loads"


def main():
    """Write the table into the page."""
    warnings.simplefilter("ignore")
    rows, counts = [], {}
    for package in PACKAGES:
        files = of_package(package)
        root = Path(*files[0].parts[: files[0].parts.index(package) + 1]) if files else None
        for file in files:
            status, words = ours(file)
            words = words.replace(str(root.parent) + "/", "")
            counts[status] = counts.get(status, 0) + 1
            name = f"{package}/{file.relative_to(root)}"
            rows.append(f"| `{name}` | {status} | {theirs(file)} | {words} |")
    summary = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    table = ["", f"{len(rows)} files: {summary}.", "", "| file | MIME | MuJoCo | |"]
    table += ["| --- | --- | --- | --- |", *rows, ""]
    text = PAGE.read_text(encoding="utf-8").partition(START)[0] + START + "\n"
    PAGE.write_text(text + "\n".join(table), encoding="utf-8")


if __name__ == "__main__":
    main()
