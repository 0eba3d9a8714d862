"""What is done for XLA's sake names the benchmark that measures it, and no timing by hand."""

import pkgutil
import re
from pathlib import Path

import pytest

import mime.xla

SOURCE = Path(mime.__file__).parent
BENCHMARKS = SOURCE.parents[1] / "benchmarks"
FILES = {path.relative_to(SOURCE).as_posix(): path.read_text() for path in SOURCE.rglob("*.py")}
NAMED = re.compile(r"(?<!verification/)\bbenchmarks/(\w+\.py)")
TIMING = re.compile(r"\d ?(µs|ns)\b|times as (fast|long)")
RESOLUTION = "the clock resolves"  # a fact of single precision, not a speed


def test_every_piece_is_in_the_story_with_a_benchmark():
    story = mime.xla.__doc__.split("\n\n")
    for module in pkgutil.iter_modules(mime.xla.__path__):
        (told,) = [part for part in story if part.startswith(f"`{module.name}`")]
        assert NAMED.search(told), module.name


@pytest.mark.parametrize("name", [name for name in FILES if NAMED.search(FILES[name])])
def test_benchmarks_that_a_file_names_exist(name):
    assert [x for x in NAMED.findall(FILES[name]) if not (BENCHMARKS / x).is_file()] == []


def test_no_file_tells_a_speed_that_would_grow_old():
    told = [
        f"{name}: {line.strip()}"
        for name, text in FILES.items()
        for line in text.splitlines()
        if TIMING.search(line) and RESOLUTION not in line
    ]
    assert told == []
