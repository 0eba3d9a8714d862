"""What decides the last bit of a result besides the graph: packages, and the processor."""

import platform

import jax
import jaxlib.version
import llvmlite
import numpy as np

import mime
from mime.native.machine import host


def versions(native: bool = True) -> dict[str, str]:
    """By name. Machine code of our own rounds a·b + c once where the processor does; XLA chooses by
    the processor's model how it adds up.

    native    whether a graph is machine code of our own
    """
    here = host()
    fma = "with" if here.has_fma else "without"
    found = {
        "mime": mime.__version__,
        "jax": jax.__version__,
        "jaxlib": jaxlib.version.__version__,
        "llvmlite": llvmlite.__version__,
        "numpy": np.__version__,
        "processor": f"{platform.machine()} {fma} fused multiply-add",
    }
    return found if native else {**found, "model": here.cpu}


def comparable(expected: dict[str, str]) -> dict[str, str]:
    """Those of this process, to be held against others'."""
    return versions("model" not in expected)
