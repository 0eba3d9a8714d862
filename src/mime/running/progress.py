"""Progress for a person: a bar with steps per second and time left; chunks of a good length."""

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from mime.core.arguments import wrong

_SECONDS_PER_CHUNK = 0.2
_SECONDS_BEFORE_THE_BAR = 0.5
_SECONDS_BETWEEN_LINES = 2.0

Progress = bool | Callable[[int, int], None]
"""Show a bar, or not, or call a function with the steps done and the steps in all."""


def check_progress(progress: Any) -> None:
    """Refuse what neither shows a bar nor can be called."""
    if not isinstance(progress, bool) and not callable(progress):
        raise wrong("progress", "True, False or a function (steps done, steps in all)", progress)


class Pace:
    """How many steps make a chunk of about a fifth of a second: `with pace: run(pace.steps)`."""

    def __init__(self) -> None:
        self.steps = 256
        self._elapsed = _SECONDS_PER_CHUNK

    def __enter__(self) -> "Pace":
        self._began = time.perf_counter()
        return self

    def __exit__(self, *_: Any) -> None:
        self._elapsed = max(time.perf_counter() - self._began, 1e-6)

    def plan(self, done: int, total: int, every: int, capacity: int) -> tuple[int, int, bool]:
        """The next chunk: samples, steps between them, and whether it ends at a sample."""
        into, left = done % every, total - done
        if into == 0 and every <= min(self.steps, left):
            return min(min(self.steps, left) // every, capacity), every, True
        # A part of a long stride, or the steps after the last sample.
        stride = min(self.steps, left, every - into)
        return 1, stride, (into + stride) == every

    def made(self, steps: int) -> None:
        """Aim the next chunk by how long the last one of `steps` steps took."""
        wanted = steps * _SECONDS_PER_CHUNK / self._elapsed
        self.steps = int(min(max(wanted, self.steps / 4, 1), self.steps * 16, 2**30))


@contextmanager
def progress_bar(
    total: int, done: int, wanted: Progress, what: str = "steps"
) -> Iterator[Callable[[int], None]]:
    """A function that shows how many steps (or `what`) are done. Short runs are quiet."""
    if callable(wanted):
        tell = wanted
        yield lambda done: tell(done, total)
        return
    clock = _Clock(total, done, what)
    shown: list[_Bar] = []

    def show(done: int) -> None:
        clock.reached(done)
        if wanted and not shown and clock.elapsed > _SECONDS_BEFORE_THE_BAR:
            shown.append(_bar(clock))
        for bar in shown:
            bar.update()

    try:
        yield show
    finally:
        for bar in shown:
            bar.stop()


class _Clock:
    """How far a run is, how fast, and how long it will take."""

    def __init__(self, total: int, done: int, what: str):
        self.total, self.done, self.what = total, done, what
        self._began = time.monotonic()
        self._first: tuple[int, float] | None = None

    def reached(self, done: int) -> None:
        """So many steps are done. Before the first of them a program was compiled: its time is no
        measure of the others'.
        """
        self.done = done
        if self._first is None:
            self._first = done, time.monotonic()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._began

    @property
    def percent(self) -> float:
        return 100.0 * self.done / max(self.total, 1)

    @property
    def running(self) -> float:
        """Seconds since the first steps were done."""
        return 0.0 if self._first is None else time.monotonic() - self._first[1]

    @property
    def rate(self) -> float:
        """Steps per second; 0 until that is known."""
        if self._first is None or self.done == self._first[0]:
            return 0.0
        return (self.done - self._first[0]) / max(self.running, 1e-9)

    def words(self) -> str:
        """`40 %, 123,000 steps/s, 12 s left`"""
        if not self.rate:
            return f"{self.percent:.0f} %"
        left = _duration((self.total - self.done) / self.rate)
        return f"{self.percent:.0f} %, {self.rate:,.0f} {self.what}/s, {left} left"


def _duration(seconds: float) -> str:
    """`12 s`, `3 min 20 s`, `2 h 5 min`"""
    whole = max(round(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class _Bar(Protocol):
    def update(self) -> None:
        """Show how far the run is now."""

    def stop(self) -> None:
        """Show no more."""


def _bar(clock: _Clock) -> _Bar:
    """A bar in a notebook or on a terminal; in a file or a pipe, lines."""
    if (display := _notebook_display()) is not None:
        return _InNotebook(clock, display)
    # A program without a console has no stderr.
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    return _OnTerminal(clock) if on_terminal else _AsLines(clock)


def _notebook_display() -> Any:
    """IPython's way to show things, where a kernel listens; None elsewhere."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is None:
        return None
    return importlib.import_module("IPython.display")


class _AsLines:
    """A line at each tenth of the run, and not more often than every two seconds.

    Nothing of a run that takes less, however long its program took to compile.
    """

    def __init__(self, clock: _Clock):
        self._clock, self._last, self._tenth = clock, 0.0, -1

    def update(self) -> None:
        clock, tenth = self._clock, int(self._clock.percent // 10)
        if clock.running - self._last < _SECONDS_BETWEEN_LINES or tenth == self._tenth:
            return
        self._last, self._tenth = clock.running, tenth
        if sys.stderr is not None:
            print(clock.words(), file=sys.stderr, flush=True)

    def stop(self) -> None:
        pass


class _InNotebook:
    """A bar under the cell; it goes when the run has ended."""

    def __init__(self, clock: _Clock, display: Any):
        self._clock, self._display = clock, display
        self._handle = display.display(display.HTML(self._html()), display_id=True)

    def _html(self) -> str:
        clock = self._clock
        bar = f'<progress value="{clock.done}" max="{clock.total}"></progress>'
        return f"{bar} {clock.words()}"

    def update(self) -> None:
        self._handle.update(self._display.HTML(self._html()))

    def stop(self) -> None:
        self._handle.update(self._display.HTML(""))


class _OnTerminal:
    def __init__(self, clock: _Clock):
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._clock = clock
        self._bar = Progress(
            TextColumn("{task.percentage:3.0f} %"),
            BarColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task("run", total=clock.total, rate="")
        self._bar.start()

    def update(self) -> None:
        clock = self._clock
        self._bar.update(self._task, completed=clock.done, rate=f"{clock.rate:,.0f} {clock.what}/s")

    def stop(self) -> None:
        self._bar.stop()
