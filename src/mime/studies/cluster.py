"""Chunks on the workers of a Dask cluster. A task is a chunk, on one thread of a worker.

A worker writes its region and its mark itself, so what it has done stays done, whatever becomes of
it, of the scheduler or of this process. An experiment travels with each task, some kilobytes; a
worker unpacks and compiles it once.
"""

import contextlib
import math
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mime._text import warn_user
from mime.core.arguments import wrong
from mime.studies.store import StudyError
from mime.studies.study import Study
from mime.studies.task import Done, Runner, VersionError, Work, pickled, run_shipped

if TYPE_CHECKING:
    import distributed

_CONNECT_SECONDS = 30
_LOOK_SECONDS = 1.0
"""From one look at which workers there are to the next: each is a question to the scheduler."""


class ClusterError(StudyError):
    """A cluster that cannot go on; what was done is kept, and a sweep goes on from there."""


class WorkerWarning(UserWarning):
    """A worker was refused, and the others go on; or there is none yet."""


def on_cluster(client: "distributed.Client | str", threads: int | None) -> Runner:
    """A runner that has the workers of a client, or of a scheduler's address, do the tasks.

    threads    of one task; 1 by default, since a worker of n threads has n tasks
    """
    try:
        import distributed
    except ImportError as error:
        words = "a cluster needs Dask: pip install 'mime-sim[cluster]'"
        raise StudyError(words) from error
    if not isinstance(client, str | distributed.Client):
        raise wrong("client", "a distributed.Client or the address of a scheduler", client)

    def run(study: Study, work: Sequence[Work]) -> Iterator[Done]:
        with contextlib.ExitStack() as stack:
            connected = client
            if isinstance(connected, str):
                try:
                    own = distributed.Client(connected, timeout=_CONNECT_SECONDS)
                except (OSError, ValueError) as error:
                    raise ClusterError(f"no scheduler answers at {connected}: {error}") from error
                connected = stack.enter_context(own)
            yield from _Run(connected, study, work, threads or 1).results()

    return run


class _Run:
    """The tasks of one sweep: a few for each thread of the workers are under way."""

    def __init__(
        self, client: "distributed.Client", study: Study, work: Sequence[Work], threads: int
    ):
        self.client, self.threads, self.left = client, threads, list(work)[::-1]
        self.contents = {
            id(experiment): (pickled(experiment), print_)
            for experiment, print_ in zip(study.experiments, study.prints)
        }
        self.versions = study.experiments[0].versions
        self.under_way: dict[Any, Work] = {}
        self.room, self.looked = 0, -math.inf

    def results(self) -> Iterator[Done]:
        """Each chunk as it is done, in any order."""
        import distributed

        if not self.left:
            return
        if not self.client.scheduler_info(n_workers=-1)["workers"]:
            # Tasks are submitted all the same: a cluster that adapts starts workers for tasks only.
            warn_user(WorkerWarning("the cluster has no worker yet; waiting for the first"))
        completed = distributed.as_completed()
        try:
            self._refill(completed)
            while self.under_way:
                future = next(completed)
                work = self.under_way.pop(future)
                done = self._outcome(future, work)
                if done is not None:
                    yield done
                self._refill(completed)
        finally:
            with contextlib.suppress(Exception):  # the scheduler may be gone
                self.client.cancel(list(self.under_way))

    def _refill(self, completed: Any) -> None:
        if time.monotonic() > self.looked + _LOOK_SECONDS:
            known = self.client.scheduler_info(n_workers=-1)["workers"].values()
            self.room = 2 * max(sum(worker["nthreads"] for worker in known), 1)
            self.looked = time.monotonic()
        while self.left and len(self.under_way) < self.room:
            chunk, task = work = self.left.pop()
            content, print_ = self.contents[id(chunk.experiment)]
            future = self.client.submit(
                run_shipped, content, print_, task, self.versions, self.threads, pure=False
            )
            self.under_way[future] = work
            completed.add(future)

    def _outcome(self, future: Any, work: Work) -> Done | None:
        """What a task says; None for one that another worker will do."""
        import distributed

        if future.status == "finished":
            return work[1].done  # the store has the rest, so nothing is asked of the worker
        if future.status in ("cancelled", "lost"):
            raise ClusterError("the scheduler is gone; sweep again to go on from what is kept")
        error = future.exception()
        chunk, task = work
        if isinstance(error, VersionError):
            warn_user(WorkerWarning(f"{error}; it is not used"))
            with contextlib.suppress(Exception):
                self.client.retire_workers([error.worker])
            self.left.append(work)
            if not self.client.scheduler_info(n_workers=-1)["workers"]:
                raise ClusterError(f"no worker can be used: {error}") from error
            return None
        if isinstance(error, distributed.scheduler.KilledWorker):
            first, last = chunk.members[[0, -1]]
            raise ClusterError(
                f"members {first} to {last} ended {error.allowed_failures + 1} workers one after "
                "the other; give workers more memory, or take a smaller chunk"
            ) from error
        if isinstance(error, OSError):
            raise error
        raise ClusterError(f"chunk {task.region.chunk} failed: {error}") from error
