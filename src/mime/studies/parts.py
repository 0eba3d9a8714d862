"""A batch a few members at a time: figures are taken while their samples are in the cache.

A thread runs some members from their first step to their last, makes numbers of their samples, and
records the next ones into the same memory: what the time axis takes does not grow with a study, and
the system, which fills memory with zeros before it gives it, is asked once. A member's numbers have
the same bits for any part and any number of threads, since they are made of its own samples alone.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np

from mime.native.compiled import double_precision
from mime.running.batch import BatchJob, Fields, warn_of_members
from mime.running.progress import Pace
from mime.running.recording import labels, sample_times
from mime.running.room import Room
from mime.running.trajectory import Divergence
from mime.scenarios.fields import split_field
from mime.scenarios.merits import Merit, of_members

_PART_BYTES = 2**23
"""Of samples: near enough to the core, and Python's share is small (3 MB take 5 % longer)."""
_FEWEST, _MOST = 64, 2048
"""Members of a part: a call of a kernel takes as long as some hundred steps."""


class Reduction:
    """What is kept of each member of a batch, by name: a number for each figure, samples of fields.

    stride    recorded samples from one that is kept to the next
    """

    def __init__(self, merits: Sequence[Merit], fields: Sequence[str], stride: int, job: BatchJob):
        self.merits, self.fields, self.stride, self.size = merits, fields, stride, job.size
        program, count = job.variants.shared, job.steps // job.every
        self.time_s = sample_times(int(job.start), job.every, count, program.timestep)
        units, _ = labels(program.nodes, job.selection)
        names = [split_field(merit.field)[:2] for merit in merits]
        self.units = [units[node][field] for node, field in names]
        self.arrays: dict[str, np.ndarray] = {merit.name: np.empty(job.size) for merit in merits}

    def take(self, rows: slice, samples: Fields) -> None:
        """Keep what is wanted of some members, given their samples."""
        for merit, unit in zip(self.merits, self.units, strict=True):
            self.arrays[merit.name][rows] = of_members(merit, self.time_s, samples, unit)
        for name in self.fields:
            node, field, _ = split_field(name)
            kept = samples[node][field][:, self.stride - 1 :: self.stride]
            if name not in self.arrays:  # whichever thread is first
                self.arrays.setdefault(name, np.empty((self.size, *kept.shape[1:]), kept.dtype))
            self.arrays[name][rows] = kept


class _StoppedError(Exception):
    """Another thread was interrupted."""


def in_parts(job: BatchJob, take: Callable[[slice, Fields], None]) -> dict[int, Divergence]:
    """Run a batch: `take` is given each part's members and samples, which are overwritten then.

    The members that left the finite numbers, by their index in the batch. What XLA computes is one
    part.
    """
    job.choose()
    threads = (job.threads or os.cpu_count() or 1) if job.native else 1
    count = job.steps // job.every
    rows = min(max(_PART_BYTES // max(job.sample_bytes * count, 1), _FEWEST), _MOST)
    rows = min(rows, -(-job.size // threads)) if job.native else job.size
    left = [slice(first, min(first + rows, job.size)) for first in range(0, job.size, rows)][::-1]
    done: list[tuple[slice, BatchJob]] = []
    stopped: list[bool] = []
    double = double_precision()

    def tell(_: int) -> None:
        if stopped:
            raise _StoppedError

    @contextlib.contextmanager
    def all_or_none() -> Iterator[None]:
        """Stop the other threads where one of them, or the one that waits for them, fails."""
        try:
            yield
        except _StoppedError:
            return
        except BaseException:
            left.clear()
            stopped.append(True)
            raise

    def work(_: int) -> None:
        pace, room = Pace(), Room()
        # The caller's precision holds in the caller's thread only.
        with all_or_none(), jax.enable_x64(double):
            while left:
                try:
                    members = left.pop()
                except IndexError:  # another thread has taken the last one
                    return
                part = job.part(members) if job.native else job
                part.threads = 1 if job.native else job.threads
                take(members, part.run(pace, room, tell))
                done.append((members, part))

    if threads == 1 or len(left) == 1:
        work(0)
    else:
        with ThreadPoolExecutor(threads) as pool, all_or_none():
            list(pool.map(work, range(threads)))
    return _joined(job, sorted(done, key=lambda each: each[0].start))


def _joined(job: BatchJob, done: Sequence[tuple[slice, BatchJob]]) -> dict[int, Divergence]:
    """Which members diverged; what there is to tell of all of them is told once."""
    found = {
        members.start + row: where for members, part in done for row, where in part.diverged.items()
    }
    coupling = jax.tree.map(lambda *each: np.concatenate(each), *(p.state[2] for _, p in done))
    diverged = dict(sorted(found.items()))
    warn_of_members(job.variants.shared, diverged, coupling, job.size)
    return diverged
