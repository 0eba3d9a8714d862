"""One pool of threads, and one way to cut a batch for them: XLA releases Python's lock."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

Item = TypeVar("Item")
Result = TypeVar("Result")


class Cut(NamedTuple):
    """Members `start` to `stop` of a batch, of which the first `surplus` belong to another cut."""

    start: int
    stop: int
    surplus: int


def cut_batch(size: int, threads: int | None, smallest: int) -> list[Cut]:
    """Equal cuts of a batch, which share one compiled program, one cut per thread.

    A cut that would reach beyond the end begins earlier instead. `threads=None` takes one per core,
    but none for fewer than `smallest` members.
    """
    count = min(threads, size) if threads else max(1, min(os.cpu_count() or 1, size // smallest))
    length = -(-size // count)
    wanted = [index * length for index in range(count)]
    starts = [min(first, size - length) for first in wanted]
    return [
        Cut(start, start + length, first - start)
        for first, start in zip(wanted, starts, strict=True)
    ]


def on_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """`work` of every item, side by side, in the caller's precision."""
    items = list(items)
    if len(items) == 1:
        return [work(items[0])]
    double = jnp.result_type(float) == jnp.float64

    def in_the_callers_precision(item: Any) -> Result:
        with jax.enable_x64(double):  # the caller's holds in the caller's thread only
            return work(item)

    return list(_pool(len(items)).map(in_the_callers_precision, items))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="mime")
