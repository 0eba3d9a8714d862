"""The folder of reports: one page per benchmark, `index.md` and `results.json`, kept in step.

A benchmark's entry in `results.json` is what its page and the index are written from. Where a new
run finds what the last one found, the entry keeps its date and no file changes.
"""

import json
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import mime
from mime._files import write_atomically
from mime.reporting.html import png_bytes
from mime.verification.benchmark import Benchmark, Convergence, Measurement, Subject, Verdict
from mime.verification.convergence import draw_convergence
from mime.verification.report import index_page, report_page

INDEX, RESULTS = "index.md", "results.json"
DIGITS = 6
"""How many of a number are kept; more would differ between machines."""

Entry = dict[str, Any]


class UnreadableResultsError(ValueError):
    """A `results.json` does not hold results."""


def read_results(folder: Path) -> dict[str, Entry]:
    """The entries of a folder by id; none where nothing was written yet."""
    path = folder / RESULTS
    if not path.exists():
        return {}
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(entries, dict) or not all("number" in e for e in entries.values()):
            raise ValueError("it has no entries by id")
    except (ValueError, TypeError, AttributeError) as error:
        raise UnreadableResultsError(
            f"{path} is no file of results ({error}): remove it, or name another folder"
        ) from error
    return entries


def write_verdict(verdict: Verdict, folder: Path) -> Entry:
    """Write one benchmark's page and pictures, and its part of `results.json` and the index."""
    benchmark = verdict.sound.benchmark
    entries = read_results(folder)
    entry, before = entry_of(verdict), entries.get(benchmark.id, {})
    if _without_stamp(entry) == _without_stamp(before):
        entry = before
    stem = Path(entry["report"]).stem
    plots = [
        (f"{stem}{'' if index == 1 else f'_{index}'}.png", convergence)
        for index, convergence in enumerate(verdict.sound.convergences, 1)
    ]
    for name, convergence in plots:
        _write(folder / name, png_bytes(draw_convergence(convergence)))
    page = report_page(benchmark, entry, [name for name, _ in plots])
    _write(folder / entry["report"], page.encode())
    written = {entry["report"], *(name for name, _ in plots)}
    for old in folder.glob(f"mime_ver_{benchmark.number}_*"):  # left by an earlier title
        if old.name not in written:
            old.unlink()
    _write_summary(entries | {benchmark.id: entry}, folder)
    return entry


def forget_others(known: Iterable[Benchmark], folder: Path) -> None:
    """Take benchmarks that no longer exist out of `results.json` and the index."""
    ids = {benchmark.id for benchmark in known}
    entries = read_results(folder)
    _write_summary({id: entry for id, entry in entries.items() if id in ids}, folder)


def entry_of(verdict: Verdict) -> Entry:
    """What `results.json` keeps of a benchmark."""
    sound, benchmark = verdict.sound, verdict.sound.benchmark
    return {
        "number": benchmark.number,
        "title": benchmark.title,
        "subject": import_path(benchmark.subject),
        "algorithm": benchmark.node_id,
        "report": benchmark.report,
        "passed": verdict.passed,
        "measurements": [_measured(m) | {"why": m.why} for m in sound.measurements],
        "convergences": [_converged(c) for c in sound.convergences],
        "fault": {
            "description": benchmark.fault.description,
            "caught": verdict.caught,
            "measurements": [_measured(m) for m in verdict.faulty.measurements],
        },
        "date": datetime.now(UTC).date().isoformat(),
        "environment": _environment(),
    }


def import_path(subject: Subject) -> str:
    """Where the subject is imported from: the shortest package that has it."""
    name = getattr(subject, "__qualname__", type(subject).__qualname__)
    parts = subject.__module__.split(".")
    for count in range(1, len(parts)):
        package = ".".join(parts[:count])
        if getattr(sys.modules.get(package), name, None) is subject:
            return f"{package}.{name}"
    return f"{subject.__module__}.{name}"


def _measured(measurement: Measurement) -> Entry:
    return {
        "name": measurement.name,
        "value": _kept(measurement.value),
        "limit": _kept(measurement.limit),
        "at_least": measurement.at_least,
        "unit": measurement.unit,
        "passed": measurement.passed,
    }


def _converged(convergence: Convergence) -> Entry:
    return {
        "parameter": convergence.parameter,
        "values": [_kept(value) for value in convergence.values],
        "error": convergence.error,
        "errors": {k: [_kept(value) for value in v] for k, v in convergence.errors.items()},
        "order": convergence.order,
    }


def _kept(value: float) -> float | str:
    """Rounded; "nan" and "inf" in words, for which JSON has no numbers."""
    return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else str(float(value))


def _environment() -> dict[str, str]:
    """All that could move a number in its last digits."""
    packages = {name: version(name) for name in ("jax", "jaxlib", "numpy", "scipy")}
    return {
        "mime": mime.__version__,
        "Python": platform.python_version(),
        **packages,
        "platform": f"{platform.system()} {platform.machine()}",
        "precision": "float64",
    }


def _without_stamp(entry: Mapping[str, Any]) -> Entry:
    return {name: value for name, value in entry.items() if name not in ("date", "environment")}


def _write_summary(entries: Mapping[str, Entry], folder: Path) -> None:
    ordered: Sequence[tuple[str, Entry]] = sorted(entries.items(), key=lambda e: e[1]["number"])
    text = json.dumps(dict(ordered), indent=1, ensure_ascii=False, allow_nan=False)
    _write(folder / RESULTS, f"{text}\n".encode())
    _write(folder / INDEX, index_page(dict(ordered)).encode())


def _write(path: Path, content: bytes) -> None:
    """Write the whole file or nothing, and nothing where it would not change."""
    if not path.exists() or path.read_bytes() != content:
        write_atomically(path, lambda part: _fill(part, content))


def _fill(part: Path, content: bytes) -> None:
    part.write_bytes(content)
