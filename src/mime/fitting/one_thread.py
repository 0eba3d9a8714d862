"""Linear algebra in one thread: its matrices are small here.

OpenBLAS, which NumPy and SciPy bring, splits a matrix of 260 by 84 among all cores and waits for
them in a loop. On a machine that does other work besides, that takes hundreds of times as long.
"""

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

_NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads")
_lock = threading.Lock()
_within = 0
_before: list[int] = []


@cache
def libraries() -> tuple[tuple[Callable[[], int], Callable[[int], None]], ...]:
    """How many threads, and how to set that, of each OpenBLAS that NumPy and SciPy bring.

    None where they use another library.
    """
    import numpy
    import scipy

    found = []
    for package in (numpy, scipy):
        at = Path(str(package.__file__)).parent
        for folder in (at.with_name(f"{at.name}.libs"), at / ".dylibs"):
            for file in sorted(folder.glob("*openblas*")):
                library = ctypes.CDLL(str(file))
                for name in _NAMES:
                    if hasattr(library, name.format("set")):
                        found.append(
                            (
                                getattr(library, name.format("get")),
                                getattr(library, name.format("set")),
                            )
                        )
                        break
    return tuple(found)


@contextmanager
def one_thread() -> Iterator[None]:
    """Within it, NumPy's and SciPy's linear algebra takes one thread; as before afterwards."""
    global _within
    with _lock:
        if _within == 0:
            _before[:] = [get() for get, _ in libraries()]
            for _, put in libraries():
                put(1)
        _within += 1
    try:
        yield
    finally:
        with _lock:
            _within -= 1
            if _within == 0:
                for (_, put), count in zip(libraries(), _before, strict=True):
                    put(count)
