"""What the pages of the documentation show is what happens."""

import re
from pathlib import Path

import pytest

from documentation.pages import agree, run_page
from mime.native import elementary

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "quickstart.md",
    ROOT / "docs" / "replay.md",
    ROOT / "docs" / "concepts.md",
    ROOT / "docs" / "native.md",
    *sorted((ROOT / "docs" / "howto").glob("*.md")),
]


LONG = {"own_robot", "differentiate", "identify", "identify_arm", "fit_a_servo", "tune", "optimise",
        "microrobot"}  # fmt: skip
"""Arms that are compiled several times, their derivatives, fits and searches, which tests/fitting,
tests/tuning and tests/studies have smaller: `make soak` runs these pages."""


@pytest.mark.small(*(path.stem for path in PAGES if path.stem not in LONG))
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_block_of_a_page_runs_and_prints_what_the_page_shows(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # a page's own modules
    monkeypatch.setattr("mime.cli.enable_compilation_cache", lambda: None)
    for shown, printed in run_page(path):
        assert agree(shown, printed), f"shown:\n{shown}\nprinted:\n{printed}"


def test_the_page_of_machine_code_tells_the_errors_that_were_measured():
    row = r"(\w+) +(\d\.\d\d) +(\d\.\d\d) +(\d\.\d\d) +(\d\.\d\d)\b"
    measured = {found[0]: found[1:] for found in re.findall(row, elementary.__doc__)}
    page = (ROOT / "docs" / "native.md").read_text(encoding="utf-8")
    told = {found[0]: found[1:] for found in re.findall(row.replace(" +", r" \| "), page)}
    assert {"sin", "exp", "pow", "atan2"} <= set(told)
    assert told == {name: measured[name] for name in told}


def test_outputs_are_compared_word_by_word():
    assert agree("speed 83.3333 rad/s", "speed  83.33333331\nrad/s")
    assert agree("a ... z", "a b c z")
    assert agree("... z", "y z")
    assert agree("a\n...", "a b")
    assert not agree("a", "a b")
    assert not agree("a ... z", "a z b")
    assert not agree("speed 83 rad/s", "speed 84 rad/s")
