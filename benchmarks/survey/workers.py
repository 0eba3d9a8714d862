"""Processes that answer one question at a time; a file may crash them or stop them."""

import contextlib
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

Row = dict[str, Any]
Answer = Callable[[Row], Iterator[tuple[str, Any]]]
"""Yields the entries of a row one by one: those before a crash are kept."""
_END = ""


def rows(
    answer: Answer, questions: list[Row], workers: int, seconds: float, title: str
) -> list[Row]:
    """Each question with its answer, in the order of the questions.

    A process that dies, or takes more than `seconds` for one entry, is replaced; `lost` says so
    in the row. Progress goes to standard error.
    """
    local, lock, all_workers, done = threading.local(), threading.Lock(), [], 0
    start = time.monotonic()

    def ask(question: Row) -> Row:
        nonlocal done
        if not hasattr(local, "worker"):
            local.worker = _Worker(answer)
            all_workers.append(local.worker)
        row = local.worker.ask(question, seconds)
        with lock:
            done += 1
            name = f"{row['repository']}/{row['file']}"
            words = f"{title} {done}/{len(questions)} {time.monotonic() - start:4.0f} s  {name}"
            if "lost" in row:
                print(f"{words}: {row['lost']}", file=sys.stderr, flush=True)
            elif done % 20 == 0 or done == len(questions):
                print(words, file=sys.stderr, flush=True)
        return row

    with ThreadPoolExecutor(workers) as threads:
        found = list(threads.map(ask, questions))
    for worker in all_workers:
        worker.end()
    return found


class _Worker:
    """A process that is started anew after each crash."""

    def __init__(self, answer: Answer):
        self.answer = answer
        self.process: Any = None
        self.pipe: Any = None

    def ask(self, question: Row, seconds: float) -> Row:
        if self.process is None:
            self._begin()
        row = dict(question)
        try:
            self.pipe.send(question)
            while True:
                if not self.pipe.poll(seconds):
                    row["lost"] = f"no answer in {seconds:g} s"
                    break
                name, value = self.pipe.recv()
                if name == _END:
                    return row
                row[name] = value
        except (EOFError, OSError):
            self.process.join(5.0)
            row["lost"] = f"the process died with {self.process.exitcode}"
        self.end()
        return row

    def _begin(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, self.answer), daemon=True)
        self.process.start()
        theirs.close()

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
        self.process = None


def _serve(pipe: Connection, answer: Answer) -> None:
    """Answer until the parent ends; parsers talk to standard error, which is kept in a file."""
    with tempfile.TemporaryDirectory(prefix="mime_survey_") as folder:
        os.chdir(folder)  # MuJoCo writes its warnings into the current folder
        global _said
        _said = os.open("said", os.O_RDWR | os.O_CREAT)
        os.dup2(_said, 2)
        while True:
            try:
                question = pipe.recv()
            except EOFError:
                return
            for name, value in answer(question):
                pipe.send((name, value))
            pipe.send((_END, None))


_said = -1


class Heard:
    """What was said on standard error meanwhile."""

    words = ""


@contextlib.contextmanager
def listening() -> Iterator[Heard]:
    """Keep what a parser in C++ says to standard error; in a worker only."""
    heard = Heard()
    if _said < 0:
        yield heard
        return
    os.ftruncate(_said, 0)
    os.lseek(_said, 0, os.SEEK_SET)
    try:
        yield heard
    finally:
        heard.words = os.pread(_said, 100_000, 0).decode(errors="replace").strip("\0\n")
