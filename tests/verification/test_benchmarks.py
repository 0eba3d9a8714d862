"""Every benchmark passes, notices its fault, and is what its committed report says."""

import inspect
from itertools import islice
from pathlib import Path

import jax
import pytest

from mime.verification.benchmark import SECTIONS, Measurement
from mime.verification.catalogue import all_benchmarks
from mime.verification.results import DIGITS, INDEX, RESULTS, read_results
from sizes import sized

REPORTS = Path(__file__).parents[2] / "docs" / "validation" / "benchmark_reports"
ROUND_OFF = 1e-7
"""A limit below it bounds round-off, which differs between processors: any value it lets pass."""


FIRST = {125: 1, 153: 3, 162: 5, 163: 3, 165: 2, 180: 1, 181: 3}
"""Of these long ones `make test` measures so many numbers, `make soak` all: one of four elastic
arms, rays of the shortest of three ranges, the rigid arm at its stops, the orders of the rigid arm
(those of the elastic one and the energies are in tests/nodes/actuation/test_arm_integrators.py), a
hull and its wheel without the arm, the magnet along its axis (others: test_permanent_magnet.py)."""
OWN_FAULT = {101, 118, 121, 128, 129, 145, 151, 153, 164, 165, *range(180, 190)}
"""Their fault is one more large program to compile: `make soak` measures it, and `make test` reads
in the committed report that it was caught."""
MICE = "MIME-VER-170"
"""Five mice in five mazes: `make test` has the bundled one alone (tests/scenarios)."""


# One test, since it is one run: the parts of a benchmark share what they compile.
@pytest.mark.small(*(benchmark.id for benchmark in all_benchmarks() if benchmark.id != MICE))
@pytest.mark.parametrize("benchmark", all_benchmarks(), ids=lambda benchmark: benchmark.id)
def test_passes_fails_with_its_fault_and_agrees_with_its_report(benchmark):
    found = measured(benchmark, benchmark.subject)
    committed = read_results(REPORTS).get(benchmark.id)
    assert committed is not None, f"no committed report: run `mime verify {benchmark.number}`"
    assert committed["report"] == benchmark.report
    reports = committed["measurements"]
    count = sized(len(reports), small=FIRST.get(benchmark.number, len(reports)))
    for number, reported in zip(islice(found, count), reports[:count], strict=True):
        assert number.passed, number
        words = {name: getattr(number, name) for name in ("name", "unit", "at_least", "why")}
        assert words == {name: reported[name] for name in words}
        value, limit = float(reported["value"]), abs(float(reported["limit"]))
        assert kept(number.limit) == float(reported["limit"])
        allowed = limit if limit < ROUND_OFF else 1e-3 * (abs(value) + limit)
        assert abs(kept(number.value) - value) <= allowed, (
            f"{number.name}: {number.value}, but the report says {value}; "
            f"run `mime verify {benchmark.number}`"
        )
    assert count < len(reports) or next(found, None) is None
    assert not all(map(kept_its_limit, committed["fault"]["measurements"]))
    if sized(False, small=benchmark.number in OWN_FAULT):
        return
    # With the fault a number leaves its limit; those after it are not measured.
    faulty = measured(benchmark, benchmark.fault.apply(benchmark.subject))
    assert not all(number.passed for number in faulty), benchmark.fault.description


def kept_its_limit(reported):
    value, limit = float(reported["value"]), float(reported["limit"])
    return value >= limit if reported["at_least"] else value <= limit


def kept(value):
    """As the results keep a number."""
    return float(f"{value:.{DIGITS}g}")


def measured(benchmark, subject):
    """The numbers of a benchmark, each computed when it is asked for."""
    with jax.enable_x64(True):
        findings = benchmark.measure(subject)
    while True:
        with jax.enable_x64(True):
            finding = next(findings, None)
        if finding is None:
            return
        if isinstance(finding, Measurement):
            yield finding


def test_the_folder_holds_the_reports_of_all_benchmarks_and_nothing_else():
    entries = read_results(REPORTS)
    assert list(entries) == [benchmark.id for benchmark in all_benchmarks()]
    reports = {entry["report"] for entry in entries.values()}
    pictures = {name for entry in entries.values() for name in pictures_of(entry)}
    assert {path.name for path in REPORTS.iterdir()} == {*reports, *pictures, INDEX, RESULTS}
    for name in reports:
        text = (REPORTS / name).read_text(encoding="utf-8")
        assert all(picture in text for picture in pictures_of(entry_named(entries, name)))
    index = (REPORTS / INDEX).read_text(encoding="utf-8")
    assert all(f"]({name})" in index for name in reports)


def entry_named(entries, report):
    return next(entry for entry in entries.values() if entry["report"] == report)


def pictures_of(entry):
    stem = Path(entry["report"]).stem
    count = len(entry["convergences"])
    return [f"{stem}{'' if index == 0 else f'_{index + 1}'}.png" for index in range(count)]


@pytest.mark.parametrize("benchmark", all_benchmarks(), ids=lambda benchmark: benchmark.id)
def test_every_part_of_the_description_is_there(benchmark):
    texts = (benchmark.title, benchmark.node_id, benchmark.kind, benchmark.fault.description)
    assert all(isinstance(text, str) and text.strip() for text in texts)
    assert list(benchmark.text) == ["Goal", *SECTIONS]
    assert all(benchmark.text.values())
    assert benchmark.configuration
    assert all(value is not inspect.Parameter.empty for value in benchmark.configuration.values())
