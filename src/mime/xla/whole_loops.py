"""Have XLA compile the loop of a simulation as one function.

XLA's CPU runtime calls a kernel for each of the hundred small operations of a step, and most of
the time goes into these calls. Only a loop that touches less than 1 kB in a turn is compiled as a
whole. A higher limit gives the same numbers sooner (benchmarks/mouse.py).

XLA reads the limit once per process, from the environment variable XLA_FLAGS, when JAX computes for
the first time. So `import mime` writes to that variable. `MIME_KEEP_XLA_FLAGS=1` forbids it.
"""

import os
import sys
import warnings

LIMIT_BYTES = 2**24
"""A step of the mouse counts as 2 to 10 MB, with all that its route planner might read."""

_OPTION = "xla_cpu_small_while_loop_byte_threshold"
_FLAG = "--xla_backend_extra_options="


class SlowLoopsWarning(UserWarning):
    """JAX had already started when MIME was imported."""


def compile_whole_loops() -> None:
    """Raise the limit in XLA_FLAGS, unless the user has chosen one or forbidden it."""
    flags = os.environ.get("XLA_FLAGS", "")
    if _OPTION in flags or os.environ.get("MIME_KEEP_XLA_FLAGS", "0") not in ("", "0"):
        return
    if _jax_has_started():
        warnings.warn(
            "JAX has computed something before MIME was imported, so XLA can no longer be told to "
            "compile a simulation's loop as a whole: single runs will be slow. Import mime first, "
            "or set MIME_KEEP_XLA_FLAGS=1 if that is meant",
            SlowLoopsWarning,
            stacklevel=3,
        )
        return
    setting = f"{_OPTION}={LIMIT_BYTES}"
    if _FLAG in flags:
        os.environ["XLA_FLAGS"] = flags.replace(_FLAG, f"{_FLAG}{setting},", 1)
    else:
        os.environ["XLA_FLAGS"] = f"{flags} {_FLAG}{setting}".strip()


def _jax_has_started() -> bool:
    """Whether a backend exists, without importing JAX to ask."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bridge is not None and bool(bridge.backends_are_initialized())
