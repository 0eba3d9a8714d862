"""Pages of Markdown: the report of a benchmark, and the index of all of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from mime.reporting.numbers import number
from mime.verification.benchmark import Benchmark

Entry = Mapping[str, Any]
MODE_2 = ", Mode 2 (independent)"
WITHIN = ("symmetry", "self-consistency")
"""Kinds of truth that the subject gives itself; every other is independent of it."""


def report_page(benchmark: Benchmark, entry: Entry, plots: Sequence[str]) -> str:
    """All that there is to know about a benchmark and its last run."""
    text = benchmark.text
    equation, _, meaning = text["Goal"].partition("\n\n")
    code = f"{benchmark.measure.__module__}.{benchmark.measure.__qualname__}"
    fault = entry["fault"]
    sections = [
        f"# {benchmark.id}: {benchmark.title}",
        f"**{verdict_words(entry)}**",
        _table(
            ("", ""),
            [
                ("date", entry["date"]),
                ("under test", f"`{entry['subject']}`"),
                ("algorithm", entry["algorithm"]),
                ("type", benchmark.kind + ("" if benchmark.kind in WITHIN else MODE_2)),
                ("measured by", f"`{code}`"),
                *([("tested by", f"`{benchmark.test}`")] if benchmark.test else []),
            ],
        ),
        "## Goal",
        _code(equation) if "=" in equation or "<" in equation else equation,
        meaning,
        "## Configuration",
        _table(
            ("parameter", "value"),
            [(f"`{name}`", number(value, 6)) for name, value in benchmark.configuration.items()],
        ),
        "## Reference",
        text["Reference"],
        "## Procedure",
        text["Procedure"],
        "## Result",
        measurements_table(entry["measurements"], why=True),
        *_convergence(entry["convergences"], plots),
        "## Acceptance",
        "Every number above keeps its limit, and the fault below makes one leave its limit.",
        "## Deliberate fault",
        f"The same lines with {fault['description']}: {_fault_words(fault)}.",
        measurements_table(fault["measurements"]),
        "## Scope and limitations",
        f"Covered: {text['Covers']}.",
        f"Not covered: {text['Excludes']}.",
        "## Reproduce",
        f"```\nmime verify {benchmark.number}\n```",
        "Nothing is random that has no fixed seed. Numbers near round-off differ between machines.",
        _table(("", ""), list(entry["environment"].items())),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def index_page(entries: Mapping[str, Entry]) -> str:
    """One line per benchmark, with the number that is closest to its limit."""
    rows = []
    for id, entry in entries.items():
        closest = tightest(entry["measurements"])
        rows.append(
            (
                f"[{id}]({entry['report']})",
                entry["title"],
                f"`{entry['subject'].rpartition('.')[2]}`",
                "pass" if entry["passed"] else "**fail**",
                closest["name"],
                value_words(closest),
                limit_words(closest),
            )
        )
    passed = sum(entry["passed"] for entry in entries.values())
    headings = ("id", "benchmark", "under test", "result", "closest to its limit", "value", "limit")
    return "\n\n".join(
        (
            "# Benchmark reports",
            f"**{passed} of {len(entries)} pass.** `mime verify` measures all of them and writes "
            "these pages; `mime verify 100` measures one.",
            "A benchmark passes when each of its numbers keeps its limit, and when a deliberate "
            "fault in the thing under test makes one leave its limit. All numbers are in "
            "[results.json](results.json).",
            _table(headings, rows) + "\n",
        )
    )


def verdict_words(entry: Entry) -> str:
    """`PASS: 5 of 5 numbers keep their limits; the deliberate fault is caught`"""
    measurements, fault = entry["measurements"], entry["fault"]
    kept = sum(measurement["passed"] for measurement in measurements)
    caught = "is caught" if fault["caught"] else "is NOT caught"
    words = f"{kept} of {len(measurements)} numbers keep their limits"
    return f"{'PASS' if entry['passed'] else 'FAIL'}: {words}; the deliberate fault {caught}"


def measurements_table(measurements: Sequence[Entry], why: bool = False) -> str:
    """Each number with its limit; with `why`, the reason of the limit."""
    headings = ("number", "value", "limit", "result") + (("why this limit",) if why else ())
    rows = [
        (m["name"], value_words(m), limit_words(m), "pass" if m["passed"] else "**fail**")
        + ((m["why"],) if why else ())
        for m in measurements
    ]
    return _table(headings, rows)


def value_words(measurement: Entry) -> str:
    """`1.23e-05 rad/s`"""
    return _quantity(float(measurement["value"]), measurement["unit"])


def limit_words(measurement: Entry) -> str:
    """`≤ 6e-05`"""
    sign = "≥" if measurement["at_least"] else "≤"
    return f"{sign} {_quantity(float(measurement['limit']), measurement['unit'])}"


def tightest(measurements: Sequence[Entry]) -> Entry:
    """The number that is closest to its limit, or farthest beyond."""
    return max(measurements, key=_share)


def _share(measurement: Entry) -> float:
    """1 at the limit, more beyond it; a NaN is beyond all."""
    value, limit = float(measurement["value"]), float(measurement["limit"])
    if not measurement["passed"] and value != value:
        return float("inf")
    used, allowed = (limit, value) if measurement["at_least"] else (value, limit)
    if allowed == 0:
        return 0.0 if used == 0 else float("inf")
    return used / allowed


def _quantity(value: float, unit: str) -> str:
    return number(value, 4) if unit in ("1", "") else f"{number(value, 4)} {unit}"


def _fault_words(fault: Entry) -> str:
    failed = sum(not measurement["passed"] for measurement in fault["measurements"])
    count = len(fault["measurements"])
    if not fault["caught"]:
        return "all numbers keep their limits, so the benchmark would not notice"
    return f"{failed} of {count} number{'s' if count > 1 else ''} fail{'s' if count == 1 else ''}"


def _convergence(convergences: Sequence[Entry], plots: Sequence[str]) -> list[str]:
    parts = []
    for convergence, plot in zip(convergences, plots, strict=True):
        curves = convergence["errors"]
        rows = [
            (number(float(value), 4), *(number(float(e[i]), 4) for e in curves.values()))
            for i, value in enumerate(convergence["values"])
        ]
        caption = f"{convergence['error']} against {convergence['parameter']}"
        parts += [
            f"![{caption}; the dashed slope is {convergence['order']:g}]({plot})",
            f"{_capitalised(convergence['error'])}:",
            _table((convergence["parameter"], *curves), rows),
        ]
    return parts


def _capitalised(words: str) -> str:
    return words[:1].upper() + words[1:]


def _code(text: str) -> str:
    return f"```text\n{text}\n```"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
