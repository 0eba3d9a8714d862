"""What it was measured on, and how many threads everyone may use."""

import json
import os
import platform
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "jax",
    "jaxlib",
    "numpy",
    "scipy",
    "mujoco",
    "mujoco-mjx",
    "pin",
    "example-robot-data",
    "frax",
    "jiminy_py",
    "gym-electric-motor",
)


def thread_environment(threads: int) -> dict[str, str]:
    """Variables that libraries read when they are loaded."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return dict.fromkeys(names, str(threads))


def pin_to_cores(threads: int) -> None:
    """Keep this process, with all threads it will start, on so many cores (where Linux lets us).

    XLA sizes its pool by them; MuJoCo, Pinocchio and `run_batch` are told the number besides.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def describe(threads: int) -> dict[str, Any]:
    """The machine and the versions; nothing that says whose it is."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": threads,
        "load": machine_load(),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": versions(),
    }


def machine_load() -> float:
    """Of the last minute; 0 where the system does not tell."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else 0.0


def processor() -> str:
    """The processor's own name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(x.split(":", 1)[1].strip() for x in lines if x.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def versions() -> Mapping[str, str]:
    """Of all that takes part; a peer that is not installed says so."""
    failed = Path(sys.prefix) / "peers_failed.json"  # written by install.py
    reasons = json.loads(failed.read_text()) if failed.exists() else {}
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = f"not installed{f' ({reasons[name]})' if name in reasons else ''}"
    return found
