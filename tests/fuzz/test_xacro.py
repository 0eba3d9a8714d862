"""Spoilt xacro files, with attacks among them: each loads whole, or is refused in words.

`MIME_FUZZ` is how many, up to 1,000: each takes a process or three.
"""

import os
import pickle
import random
import re
from pathlib import Path

import numpy as np

from mime.control.kinematics import UrdfError, expand_xacro, parse_urdf, parse_xacro
from xacro_files import ARM, ESCAPE, SEGMENT, write_arm

HOW_MANY = min(int(os.environ.get("MIME_FUZZ", "4")), 1000)
SECRET = "sesame_4711"
ATTACKS = [
    ESCAPE.format(f"system('{command}')") for command in ("touch made", "cat ../secret.yaml")
]
ATTACKS += [ESCAPE.format("open('../secret.yaml', 0)"), ESCAPE.format("mkdir('made')")]
ATTACKS += ["${xacro.load_yaml('../secret.yaml')}", "$(find ../../secret)/x", "../secret.yaml"]
ATTACKS += [
    "/etc/passwd",
    "$(dirname)/../secret.yaml",
    "&a;",
    "$(eval open('../secret.yaml').read()",
]
VALUES = ["nan", "1e308", "-1", "", "0", "x" * 500, "1 2", "ä", "${", "$(", "${1/0}", "$(arg gone)"]
VALUES += ["${k", "${'a' * 10**11}", "${k + }", "$(find gone)/x", "*", "gone*.xacro", "l0", "base"]
GENTLE = ["0.5", "1", "3", "-0.2", "${2 * pi}", "${0.1 + 1}"]
"""In the place of a number: most of these files load."""
NAMES = ["link", "joint", "xacro:if", "xacro:unless", "xacro:include", "xacro:gone", "xacro:chain"]
NAMES += ["xacro:property", "xacro:insert_block", "xacro:call", "origin", "foo"]
TAG = re.compile(r"<(/?)([\w:]+)([^<>]*)>")
ENTITY = '<!DOCTYPE robot [<!ENTITY a SYSTEM "../secret.yaml">]>'


def spoilt(draw: random.Random, text: str) -> str:
    """The text with one thing wrong: a value, a tag, a missing piece, letters."""
    kind = draw.choice(
        ("value", "gentle", "gentle", "gentle", "attack", "tag", "cut", "letters", "entity")
    )
    values = {"value": VALUES, "gentle": GENTLE, "attack": ATTACKS}
    if kind in values:
        place = r'="(-?[\d.]+|\$\{[^}]*\})"' if kind == "gentle" else r'="([^"]*)"'
        places = list(re.finditer(place, text))
        value = draw.choice(values[kind]).replace('"', "'")
        place = draw.choice(places)
        return f"{text[: place.start(1)]}{value}{text[place.end(1) :]}"
    if kind == "tag":
        old = draw.choice([match[2] for match in TAG.finditer(text)])
        return text.replace(f"<{old}", f"<{draw.choice(NAMES)}", draw.choice((1, 99)))
    if kind == "cut":
        start, end = sorted(draw.randrange(len(text)) for _ in range(2))
        return text[:start] + text[end:] if draw.random() < 0.5 else text[:end]
    if kind == "letters":
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(text))
            text = text[:at] + chr(draw.randrange(32, 127)) + text[at + 1 :]
        return text
    return text.replace("<robot", f"{ENTITY}<robot", 1)


def checked_words(error: UrdfError, file: Path) -> str:
    words = str(error)
    assert re.match(rf"{re.escape(str(file))}( \(expanded\))?(:\d+)?: ", words)
    assert len(words) <= 2000
    assert str(pickle.loads(pickle.dumps(error))) == words
    return words


def check_arm(file: Path, workspace: Path) -> str:
    """loads, mended or refused: in the last case with words that name the file."""
    words, kind = "", "loads"
    trees = []
    for on_problem in ("warn", "mend"):
        try:
            trees.append(parse_xacro(file, on_problem=on_problem, search_path=[workspace]))
        except UrdfError as error:
            words += checked_words(error, file)
            kind = "refused" if on_problem == "mend" else "mended"
            if "cannot be expanded" in words:
                kind = "refused"
                break
    assert SECRET not in words + repr(trees), "a file outside of the search path was read"
    made = {path.name for folder in (file.parent, workspace) for path in folder.rglob("*")}
    assert made == {"arm.urdf.xacro", "deep", "parts", "package.xml", "segment.xacro", "a.stl"}
    if len(trees) == 2:
        plain = file.parent.parent / "plain.urdf"
        plain.write_text(expand_xacro(file, search_path=[workspace]), encoding="utf-8")
        again = parse_urdf(plain)
        assert (again.joint_names, again.frame_names) == (
            trees[0].joint_names,
            trees[0].frame_names,
        )
        np.testing.assert_array_equal(again.masses, trees[0].masses)
    return kind


def test_a_spoilt_xacro_file_loads_or_is_refused_and_does_nothing_else(tmp_path):
    file = write_arm(tmp_path)
    (tmp_path / "secret.yaml").write_text(f"{SECRET}: 1")
    workspace = tmp_path / "ros"
    part = workspace / "deep" / "parts" / "segment.xacro"
    assert check_arm(file, workspace) == "loads"
    draw = random.Random(18)
    counts = {"loads": 0, "mended": 0, "refused": 0}
    for number in range(HOW_MANY):
        inner = draw.random() < 0.3
        file.write_text(ARM if inner else spoilt(draw, ARM), encoding="utf-8")
        part.write_text(spoilt(draw, SEGMENT) if inner else SEGMENT, encoding="utf-8")
        try:
            counts[check_arm(file, workspace)] += 1
        except Exception as error:
            error.add_note(f"{number} of seed 18:\n{file.read_text()}\n{part.read_text()}")
            raise
    print(HOW_MANY, counts)
    assert counts["refused"] > 0
