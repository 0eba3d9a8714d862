"""Lines of keys in TOML texts, against texts whose lines are known by construction."""

from pathlib import Path

import pytest

from mime.scenarios.bundled import bundled_scenarios
from mime.scenarios.positions import key_lines

TEXT = '''# a comment with [brackets] and = signs
title = "a # that is no comment"

[simulation]
duration = 1.0   # seconds
record = [
    "a.b",       # first
    "c.d",
]
text = """
[not.a.table]
key = 1
"""

[nodes.rotor]
type = 'it''s not'
"quoted key" = 3
limits.low = 1
limits.high = { a = 1, b = [2, {c = 3}] }

[[edges]]
from = "x"
[[edges]]
from = "y"
[edges.inner]
z = 1
[inputs."rotor.voltage"]
kind = "step"
'''.replace("'it''s not'", "'its [not]'")


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("simulation",), 4),
        (("simulation", "duration"), 5),
        (("simulation", "record"), 6),
        (("simulation", "record", 0), 7),
        (("simulation", "record", 1), 8),
        (("simulation", "text"), 10),
        (("nodes", "rotor"), 15),
        (("nodes", "rotor", "quoted key"), 17),
        (("nodes", "rotor", "limits", "low"), 18),
        (("nodes", "rotor", "limits", "high", "b", 1, "c"), 19),
        (("edges", 0), 21),
        (("edges", 0, "from"), 22),
        (("edges", 1, "from"), 24),
        (("edges", 1, "inner", "z"), 26),
        (("inputs", "rotor.voltage", "kind"), 28),
    ],
)
def test_every_key_is_found_on_its_line(path, line):
    assert key_lines(TEXT)[path] == line


def test_what_stands_inside_a_string_is_no_key():
    assert ("not", "a", "table") not in key_lines(TEXT)
    assert ("key",) not in key_lines(TEXT)


@pytest.mark.parametrize("file", bundled_scenarios().values(), ids=lambda file: file.stem)
def test_the_lines_of_the_bundled_files_hold_their_keys(file: Path):
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    for path, line in key_lines(text).items():
        last = next(part for part in reversed(path) if isinstance(part, str))
        if isinstance(path[-1], str):
            assert last in lines[line - 1], (path, line)
