"""From nothing to the first result.

New processes, the best of several. The first result of `mime run motor_step` is its first line on
the terminal; cold is with an empty cache of compiled programs, warm with that of the run before.
(The system's own cache of files is warm in both.) Memory is the most that a process held. The first
call of a batch, of a gradient and of a graph of N motors (all fields of all motors recorded) is
timed inside of a new process without any cache, from the nodes to the result, imports left out.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import first_run
from harness import Figure

REPEATS = 5
FIRST_RUNS = {
    "4,096 UR5, run_batch": ("batch", "ur5", 1.0),
    "4,096 humanoids, run_batch": ("batch", "humanoid", 4.0),
    "1,024 UR5, gradient": ("gradient", "ur5", 2.0),
    "a graph of 10 motors, run": ("motors", "10", 0.5),
    "a graph of 100 motors, run": ("motors", "100", 3.0),
    "a graph of 1,000 motors, run": ("motors", "1000", 30.0),
    "one second of a floating G1 with servos, run": ("second", "g1", 10.0),
    "one second of a floating Go1 with servos, run": ("second", "go1", 10.0),
}
"""What is run, and the most seconds that it should take."""
QUICK = ("4,096 UR5, run_batch", "a graph of 10 motors, run")
LAUNCHER = Path(__file__).parent / "harness" / "launch.py"
PARTS = (
    "import jax; from mime import GraphManager; from mime.nodes.actuation.motor import MotorNode"
)
MIME = "import sys; from mime.cli import main; sys.exit(main())"


class Process(NamedTuple):
    """What a process took."""

    first_output_s: float
    total_s: float
    peak_mb: float


def cases(threads: int) -> Iterator[Figure]:
    """Imports, a run, first calls, and memory."""
    jax, mime, parts = (
        lambda code=code: python(code) for code in ("import jax", "import jax, mime", PARTS)
    )
    yield Figure("import jax", lambda: jax().total_s, "s")
    yield Figure("import mime, beyond it", lambda: mime().total_s - jax().total_s, "s", 0.4)
    name = "import GraphManager and MotorNode, beyond it"
    yield Figure(name, lambda: parts().total_s - jax().total_s, "s", 0.4)
    cold, warm = (lambda: mime_run()[0]), (lambda: mime_run()[1])
    for name, run, target in (("cold", cold, 5.0), ("warm", warm, 3.0)):
        label = f"mime run motor_step, {name}"
        yield Figure(f"{label}: first result", lambda run=run: run().first_output_s, "s", target)
        yield Figure(f"{label}: report written", lambda run=run: run().total_s, "s")
    for name, (kind, what, most) in FIRST_RUNS.items():
        repeats = 1 if most > 10 else 3
        yield Figure(
            f"first call, cold: {name}",
            lambda k=kind, w=what, n=repeats: min(first_run.seconds(k, w) for _ in range(n)),
            "s",
            most,
            quick=name in QUICK,
        )
    for name, of in (("import jax", jax), ("import mime", parts), ("mime run, cold", cold)):
        yield Figure(f"peak memory, {name}", lambda of=of: of().peak_mb, "MB")


@cache
def python(code: str) -> Process:
    return least([measured(["-c", code]) for _ in range(REPEATS)])


@cache
def mime_run() -> tuple[Process, Process]:
    """Cold and warm, each with its own empty folder and once more in it.

    The scenario's limits on its figures of merit are the check of the result: outside them, the
    command fails.
    """
    cold, warm = [], []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory(prefix="mime_bench_") as folder:
            out = Path(folder) / "out"
            command = ["-c", MIME, "run", "motor_step", "--out", str(out)]
            keep = {
                "JAX_COMPILATION_CACHE_DIR": str(Path(folder) / "cache"),
                "JAX_ENABLE_COMPILATION_CACHE": "true",
                "PYTHONUNBUFFERED": "1",
            }
            cold.append(measured(command, keep))
            warm.append(measured(command, keep))
            if not (out / "report.html").exists():
                raise RuntimeError("mime run wrote no report")
    return least(cold), least(warm)


def measured(command: list[str], environment: dict[str, str] | None = None) -> Process:
    """Run Python with this command line to its end, from a launcher that is small itself."""
    launcher = [sys.executable, "-S", "-E", str(LAUNCHER), sys.executable, *command]
    variables = os.environ | (environment or {})
    variables.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    done = subprocess.run(launcher, env=variables, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-150:]}")
    return Process(**json.loads(done.stdout))


def least(runs: list[Process]) -> Process:
    """The least disturbed of each."""
    return Process(*(min(column) for column in zip(*runs, strict=True)))
