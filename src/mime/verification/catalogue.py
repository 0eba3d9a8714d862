"""All benchmarks: MIME's own, and those of packages that plug in.

A package plugs its benchmarks in by entry point: `[project.entry-points."mime.benchmarks"]` with
`springs = "my_package.verification"`, a module that registers them when it is imported.
"""

import importlib
import pkgutil
import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points

from mime._text import warn_user
from mime.verification import benchmarks
from mime.verification.benchmark import REGISTRY, Benchmark

GROUP = "mime.benchmarks"
_ID = r"(?:(?:MIME-)?VER-?)?(\d+)"


class UnknownBenchmarkError(ValueError):
    """No such benchmark; the message names the nearest."""


@cache
def all_benchmarks() -> tuple[Benchmark, ...]:
    """Every benchmark, by number. A package whose benchmarks do not load is warned of."""
    for module in pkgutil.iter_modules(benchmarks.__path__, f"{benchmarks.__name__}."):
        importlib.import_module(module.name)
    for entry in entry_points(group=GROUP):
        try:
            entry.load()
        except Exception as error:  # whatever another package raises is the finding
            reason = f"{type(error).__name__}: {error}"
            warn_user(UserWarning(f"benchmarks of {entry.value!r} do not load: {reason}"))
    return tuple(REGISTRY[number] for number in sorted(REGISTRY))


def select(words: Sequence[str]) -> tuple[Benchmark, ...]:
    """The benchmarks that `100`, `VER-100`, `MIME-VER-100` or a range `100-118` name, by number."""
    known = {benchmark.number: benchmark for benchmark in all_benchmarks()}
    chosen: set[int] = set()
    for word in words:
        match = re.fullmatch(f"{_ID}(?:-{_ID})?", word, re.IGNORECASE)
        if not match:
            raise UnknownBenchmarkError(
                f"{word!r} is no benchmark: expected a number (100), an id (MIME-VER-100) or a "
                "range (100-118)"
            )
        first, last = int(match[1]), int(match[2] or match[1])
        found = {number for number in known if first <= number <= last}
        if not found:
            raise UnknownBenchmarkError(_unknown(word, first, last, sorted(known)))
        chosen |= found
    return tuple(known[number] for number in sorted(chosen))


def _unknown(word: str, first: int, last: int, known: list[int]) -> str:
    if last < first:
        return f"the range {word} is empty: its first number is the larger, try {last}-{first}"
    below = [number for number in known if number < first][-1:]
    above = [number for number in known if number > last][:1]
    near = " and ".join(f"MIME-VER-{number}" for number in (*below, *above))
    what = f"benchmark MIME-VER-{first}" if first == last else f"benchmark from {first} to {last}"
    return f"there is no {what}; the nearest: {near}. `mime list benchmarks` shows all"
