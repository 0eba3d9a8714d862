"""Progress for a person: a bar with steps per second and time left; chunks of a good length."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mime.core.arguments import wrong

_SECONDS_PER_CHUNK = 0.2
_SECONDS_BEFORE_THE_BAR = 0.5

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
def progress_bar(total: int, done: int, wanted: Progress) -> Iterator[Callable[[int], None]]:
    """A function that shows how many steps are done. Quiet off a terminal and in short runs."""
    if callable(wanted):
        tell = wanted
        yield lambda done: tell(done, total)
        return
    began, before = time.monotonic(), done
    shown: list[Any] = []

    def show(done: int) -> None:
        if wanted and not shown and time.monotonic() - began > _SECONDS_BEFORE_THE_BAR:
            shown.append(_start(total))
        if shown and shown[0] is not None:
            bar, task = shown[0]
            rate = (done - before) / (time.monotonic() - began)
            bar.update(task, completed=done, rate=f"{rate:,.0f} steps/s")

    try:
        yield show
    finally:
        if shown and shown[0] is not None:
            shown[0][0].stop()


def _start(total: int) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        return None
    bar = Progress(
        TextColumn("{task.percentage:3.0f} %"),
        BarColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=console,
    )
    task = bar.add_task("run", total=total, rate="")
    bar.start()
    return bar, task
