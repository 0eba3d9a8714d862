"""The page of claims names tests, benchmarks, files and functions that exist, and counts right."""

import re
from collections import Counter
from pathlib import Path
from pkgutil import resolve_name

from mime.verification.catalogue import all_benchmarks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "validation" / "source_documents.md").read_text(encoding="utf-8")
VERDICTS = ("works", "differs", "partly", "not here")


def rows(text):
    """The cells of each row of a table, headings left out."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [cells for cells in lines if cells[0] not in ("document", "claim", "---")]


def test_every_test_file_and_folder_that_is_named_exists():
    named = set(re.findall(r"`(?:tests/)?([\w/]+\.py)(?:::(\w+))?`", PAGE))
    assert len(named) > 50
    for file, test in named:
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert not test or f"def {test}(" in text, (file, test)
    for file in re.findall(r"`(docs/[^`]+)`", PAGE):
        assert (ROOT / file).is_file(), file


def test_every_benchmark_that_is_named_exists():
    known = {benchmark.id for benchmark in all_benchmarks()}
    assert set(re.findall(r"MIME-VER-\d+", PAGE)) <= known


def test_every_function_that_is_named_is_found_under_its_name():
    names = re.findall(r"`(mime(?:\.\w+)+)`", PAGE)
    assert names
    for name in names:
        resolve_name(name)


def test_what_differs_or_is_missing_links_to_the_reason_and_the_counts_are_those_of_the_rows():
    summary, *sections = re.split(r"^## .*$", PAGE, flags=re.MULTILINE)
    counted = [Counter(verdict for _, verdict, _ in rows(section)) for section in sections]
    counted.append(sum(counted, Counter()))
    for (_, claims, *found), counts in zip(rows(summary), counted, strict=True):
        assert [int(number) for number in found] == [counts[verdict] for verdict in VERDICTS]
        assert int(claims) == counts.total()
    for section in sections:
        for claim, verdict, shown in rows(section):
            assert shown, claim
            assert verdict == "works" or "](../differences.md#" in shown, claim
