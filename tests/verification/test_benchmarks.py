"""Every benchmark passes, notices its fault, and is what its committed report says."""

import inspect
from pathlib import Path

import jax
import pytest

from mime.verification.benchmark import SECTIONS, Measurement, Verdict, run_benchmark
from mime.verification.catalogue import all_benchmarks
from mime.verification.results import INDEX, RESULTS, entry_of, read_results

REPORTS = Path(__file__).parents[2] / "docs" / "validation" / "benchmark_reports"
ROUND_OFF = 1e-7
"""A limit below it bounds round-off, which differs between processors: any value it lets pass."""


# One test, since it is one run: the parts of a benchmark share what they compile.
@pytest.mark.parametrize("benchmark", all_benchmarks(), ids=lambda benchmark: benchmark.id)
def test_passes_fails_with_its_fault_and_agrees_with_its_report(benchmark):
    sound = run_benchmark(benchmark)
    entry = entry_of(Verdict(sound, sound))
    failed = [number for number in entry["measurements"] if not number["passed"]]
    assert not failed, failed
    assert caught(benchmark), f"with {benchmark.fault.description} all limits are kept: {entry}"
    committed = read_results(REPORTS).get(benchmark.id)
    assert committed is not None, f"no committed report: run `mime verify {benchmark.number}`"
    assert committed["report"] == entry["report"]
    assert [names(m) for m in entry["measurements"]] == [
        names(m) for m in committed["measurements"]
    ]
    for found, reported in zip(entry["measurements"], committed["measurements"], strict=True):
        value, limit = float(reported["value"]), abs(float(reported["limit"]))
        allowed = limit if limit < ROUND_OFF else 1e-3 * (abs(value) + limit)
        assert abs(float(found["value"]) - value) <= allowed, (
            f"{found['name']}: {found['value']}, but the report says {value}; "
            f"run `mime verify {benchmark.number}`"
        )


def caught(benchmark):
    """True when the fault makes a number leave its limit: those after it are not measured."""
    with jax.enable_x64(True):
        findings = benchmark.measure(benchmark.fault.apply(benchmark.subject))
        return any(isinstance(found, Measurement) and not found.passed for found in findings)


def names(measurement):
    return {key: value for key, value in measurement.items() if key != "value"}


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
