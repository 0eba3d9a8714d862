"""One chunk as a task: run its members, write its region. The same here and on a cluster."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from mime._text import Travels
from mime.studies.experiment import Experiment
from mime.studies.region import Region
from mime.studies.store import StudyError
from mime.studies.study import Chunk, Study
from mime.studies.versions import comparable


class VersionError(Travels, RuntimeError):
    """A worker that would compute other bits: other packages, or another processor."""

    def __init__(self, worker: str, expected: dict[str, str], found: dict[str, str]):
        self.worker, self.expected, self.found = worker, expected, found
        other = [f"{k} {v}, expected {expected[k]}" for k, v in found.items() if v != expected[k]]
        super().__init__(f"worker {worker} has {'; '.join(other)}")


class Task(NamedTuple):
    """What a worker needs for one chunk, but the experiment."""

    region: Region
    columns: dict[str, np.ndarray]
    lanes: dict[str, np.ndarray]
    addresses: np.ndarray

    @property
    def done(self) -> "Done":
        """What there is to tell of it once it is kept."""
        return Done(self.region.chunk, len(self.addresses))


class Done(NamedTuple):
    """A chunk that is kept, and how many members it has."""

    chunk: int
    members: int


Work = tuple[Chunk, Task]
Runner = Callable[[Study, Sequence[Work]], Iterator[Done]]
"""Runs tasks in any order, and tells of each when it is done."""


def run_task(experiment: Experiment, task: Task, threads: int | None = None) -> Done:
    """Run a chunk and keep it."""
    kept = experiment.run(task.lanes, threads)
    task.region.write(task.columns, task.addresses, kept)
    return task.done


_experiments: dict[str, Experiment] = {}
"""Of this process, by print: its graph stays, and so does what was compiled for it."""
_MOST = 8


def run_shipped(
    content: bytes, print_: str, task: Task, expected: dict[str, str], threads: int | None = None
) -> None:
    """The same with an experiment that came as bytes; unpacked once in a process."""
    if (found := comparable(expected)) != expected:
        raise VersionError(_worker_name(), expected, found)
    if print_ not in _experiments:
        while len(_experiments) >= _MOST:
            _experiments.pop(next(iter(_experiments)))
        _experiments[print_] = _unpacked(content, print_)
    run_task(_experiments[print_], task, threads)


def _unpacked(content: bytes, print_: str) -> Experiment:
    """An experiment as it was sent, or an error: what computes otherwise has another address."""
    with jax.enable_x64(True):  # or arrays in double precision arrive in single
        experiment = pickle.loads(content)
    if experiment.print() != print_:
        raise StudyError("an experiment arrived that computes something else than the one sent")
    return experiment


def _worker_name() -> str:
    try:
        from distributed import get_worker

        return str(get_worker().address)
    except (ImportError, ValueError):
        import os

        return f"of process {os.getpid()}"


def pickled(experiment: Any) -> bytes:
    """As bytes; edges with a lambda need cloudpickle, which Dask brings."""
    try:
        return pickle.dumps(experiment)
    except (pickle.PicklingError, AttributeError, TypeError):
        import cloudpickle

        return cloudpickle.dumps(experiment)
