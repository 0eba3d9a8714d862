"""`mime verify [ID ...]`: run benchmarks and write their reports."""

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from mime.commands import FAILED, MISTAKE, OK, RunFailedError, UserMistakeError
from mime.commands.run import Debug

if TYPE_CHECKING:
    from rich.table import Table

    from mime.verification.benchmark import Benchmark

REPORTS = Path("docs/validation/benchmark_reports")


def verify(
    ids: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="ID", help="100, MIME-VER-100 or 100-118; all when none is given"),
    ] = (),
    out: Annotated[Path, tyro.conf.arg(metavar="DIR", help="folder of the reports")] = REPORTS,
    debug: Debug = False,
) -> int:
    """Run verification benchmarks, with and without a deliberate fault; write their reports."""
    from mime.commands.output import prepare
    from mime.reporting.summary import wide_console
    from mime.verification.catalogue import UnknownBenchmarkError, all_benchmarks, select
    from mime.verification.results import UnreadableResultsError, forget_others, read_results

    try:
        chosen = select(ids) if ids else all_benchmarks()
        prepare(out)
        read_results(out)
    except (UnknownBenchmarkError, UnreadableResultsError) as error:
        raise UserMistakeError(str(error)) from error
    console = wide_console()
    rows: list[_Row] = []
    try:
        with _progress(len(chosen)) as show:
            for benchmark in chosen:
                show(len(rows), f"{benchmark.id}  {benchmark.title}")
                rows.append(_Row.of(benchmark, out, debug))
        if not ids:
            forget_others(chosen, out)
    except KeyboardInterrupt:
        done = f"{len(rows)} of {len(chosen)} benchmarks are done, with reports in {out}"
        raise KeyboardInterrupt(f"stopped: {done}") from None
    finally:
        console.print(_overview(rows))
    console.print(f"reports: {out}", soft_wrap=True)
    failed = [row.id for row in rows if row.failed]
    absent = [f"{row.id} was {row.result}" for row in rows if row.absent]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
        return FAILED
    if absent and ids:
        print("\n".join(absent), file=sys.stderr)
        return MISTAKE
    return OK


@dataclasses.dataclass(frozen=True)
class _Row:
    """A line of the table: how one benchmark went."""

    id: str
    title: str
    number: str
    value: str
    limit: str
    result: str
    failed: bool = False
    absent: bool = False

    @classmethod
    def of(cls, benchmark: "Benchmark", out: Path, debug: bool) -> "_Row":
        """Measure a benchmark and write its report, unless something is missing or breaks."""
        from mime.verification.benchmark import judge
        from mime.verification.report import limit_words, tightest, value_words
        from mime.verification.results import write_verdict

        names = benchmark.id, benchmark.title
        if missing := benchmark.missing:
            return cls(*names, "", "", "", f"not run: needs {', '.join(missing)}", absent=True)
        try:
            verdict = judge(benchmark)
        except Exception as error:  # one benchmark that breaks must not hide the others
            if debug:
                raise
            reason = f"broke: {type(error).__name__}: {error}"
            return cls(*names, "", "", "", reason, failed=True)
        try:
            entry = write_verdict(verdict, out)
        except OSError as error:
            raise RunFailedError(f"cannot write to {out}: {error.strerror or error}") from error
        result = "pass" if verdict.passed else "FAIL" if verdict.caught else "FAULT NOT CAUGHT"
        closest = tightest(entry["measurements"])
        numbers = closest["name"], value_words(closest), limit_words(closest)
        return cls(*names, *numbers, result, failed=not verdict.passed)


def _overview(rows: Sequence[_Row]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("id", "benchmark", "closest to its limit", "value", "limit", "result"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("id", "value", "limit"))
    for row in rows:
        cells = row.id, row.title, row.number, row.value, row.limit, row.result
        table.add_row(*map(Text, cells))
    return table


@contextmanager
def _progress(total: int) -> Iterator[Any]:
    """A function that shows how many benchmarks are done, and which one runs. Terminals only."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (MofNCompleteColumn(), BarColumn(), TextColumn("{task.description}"))
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=total)
        yield lambda done, words: bar.update(task, completed=done, description=words)
