"""How MIME takes the robots of others, docs/robot_survey.md, and by what rules."""

import re
from pathlib import Path

from robot_files import robots, verdict
from robot_table import END, START, rules_table

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "robot_survey.md"
ROW = re.compile(r"^\| `(\S+)` \| ([a-z ]+) \|", re.MULTILINE)
HEAVY = ("fruitfly", "drosophila", "dog")
"""Files that MIME refuses and whose meshes take seconds to read."""


def test_the_table_says_how_each_robot_of_the_installed_packages_is_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its warnings into the current folder
    table = dict(ROW.findall(PAGE.read_text(encoding="utf-8")))
    installed = robots()
    assert len(installed) >= 70 + 14, "example-robot-data or gymnasium is not installed"
    assert set(installed) <= set(table), "run tools/robot_table.py"
    light = {name: file for name, file in installed.items() if not any(w in name for w in HEAVY)}
    found = {name: verdict(file).status for name, file in light.items()}
    assert found == {name: table[name] for name in light}


def test_the_page_on_robot_files_has_the_table_that_readers_go_by():
    page = (DOCS / "robot_files.md").read_text(encoding="utf-8")
    table = page.partition(START)[2].partition(END)[0]
    assert table.strip() == rules_table().strip(), "run tools/robot_table.py"
    assert len(page.split()) < 1500, "shorten the sentences of the table, or the page"
