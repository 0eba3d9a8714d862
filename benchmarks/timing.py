"""How times are taken here: interleaved, so that all see the same machine; the best of several."""

import time
from collections.abc import Callable
from typing import Any

import jax


def best_of(repeats: int, *functions: Callable[[], Any]) -> list[float]:
    """Seconds of each function, called once before the clock runs."""
    for function in functions:
        jax.block_until_ready(function())
    best = [float("inf")] * len(functions)
    for _ in range(repeats):
        for index, function in enumerate(functions):
            began = time.perf_counter()
            jax.block_until_ready(function())
            best[index] = min(best[index], time.perf_counter() - began)
    return best
