"""Studies beside run_batch, and what they cost.

An elastic drive (motor, gear, spring, link) of random stiffness and resistance, 10,000 steps of 0.1
ms: `mime.sweep` keeps three figures of merit (largest current, rms deflection, settling time of the
speed) in a store on disk, opened at its end and removed later; beside it `run_batch` of the same
members, which records the three fields they are taken from, all at once or in batches of the size
that a study takes by itself, and takes no figures. A million motors of 100 steps show the memory
that a study needs, and its rate. Workers of a Dask cluster on this machine have one thread each,
and share its cores with the client and the scheduler, which take 0.1 s and 6 ms a task: so the
study is one of seconds, a sample every tenth step. What a task costs besides its run is the time of
a chunk of one member less that of the same in this process.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
from harness import Case, Figure, Peer

from mime import Gear, GraphManager, MotorNode, Simulation, elastic_drive, sweep

STEP_S, STEPS = 1e-4, 10_000
MEMBERS, QUICK_MEMBERS = 10_000, 1_000
BATCH = {1: 512, 10: 5568}
"""Members of a chunk that a study takes by itself, by the steps from one sample to the next."""
CLUSTER_MEMBERS, CLUSTER_BATCH = 32_768, 2048
INPUTS = {"motor": {"commanded_voltage": 12.0}}
FIELDS = ["motor.current", "link.deflection", "link.rotor_velocity"]
FIGURES = [
    {"name": "largest current", "kind": "max", "field": FIELDS[0]},
    {"name": "rms deflection", "kind": "rms", "field": FIELDS[1]},
    {"name": "settling time", "kind": "settling_time", "field": FIELDS[2]},
]
MILLION = 1_000_000


def cases(threads: int) -> Iterator[Case | Figure]:
    """Beside run_batch; a million; a cluster."""
    for members, quick in ((QUICK_MEMBERS, True), (MEMBERS, False)):
        for every in (1, 10):
            others = [Peer("run_batch, in batches", lambda m=members, e=every: batches(m, e), 0.0)]
            if members * STEPS // every * 8 * len(FIELDS) < 4e9:
                whole = Peer(
                    "run_batch, at once", lambda m=members, e=every: at_once(m, e), 0.0, 1.2
                )
                others.append(whole)
            yield Case(
                f"{members:,} elastic drives, a sample every {every} steps",
                lambda m=members, e=every: swept(m, e),
                tuple(others),
                members,
                "member",
                repeats=3,
                quick=quick and every == 1,
            )
    yield Figure("1,000,000 motors: members a second", lambda: million()[0], "1/s")
    yield Figure("1,000,000 motors: memory beyond that of 1,000", lambda: million()[1], "MB", 600.0)
    for workers in (1, 2):
        name = f"a cluster of {workers} worker{'s' * (workers > 1)}: members a second"
        yield Figure(name, lambda w=workers: cluster(w)[0], "1/s")
    yield Figure(
        "members a second of two workers, in those of one",
        lambda: cluster(2)[0] / cluster(1)[0],
        "",
        1.6,
        at_least=True,
    )
    yield Figure("run_batch on two threads, in that on one", two_threads, "")
    yield Figure("a task besides its run, on a cluster", lambda: 1e3 * cluster(1)[1], "ms")
    yield Figure("a chunk besides its run, here", lambda: 1e3 * chunk_cost(), "ms")


@cache
def drive() -> Simulation:
    motor = MotorNode(
        "motor", STEP_S, inertia_kg_m2=1e-5, kt_n_m_per_a=0.05, r_ohm=1.0, l_henry=1e-3,
        damping_n_m_s=1e-5, gear=Gear(ratio=50.0), shaft="driven", command_mode="voltage",
        integrator="exact",
    )  # fmt: skip
    spring = {"stiffness_n_m_per_rad": 60.0, "damping_n_m_s": 0.03}
    return elastic_drive(motor, joint_name="link", output_inertia_kg_m2=0.2, **spring).compile()


def values(members: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {
        "link.stiffness_n_m_per_rad": random.uniform(30.0, 90.0, members),
        "motor.r_ohm": random.uniform(0.5, 2.0, members),
    }


def swept(members: int, every: int) -> Any:
    simulation, vary = drive(), values(members)

    def work() -> np.ndarray:
        result = sweep(
            simulation, vary, zip=[list(vary)], duration=STEPS * STEP_S, inputs=INPUTS,
            every=every, figures=FIGURES, out=new_folder(), progress=False,
        )  # fmt: skip
        return result.dataset["largest current"].values

    return work


@cache
def stores() -> tempfile.TemporaryDirectory:
    """Where stores are written; removed when the process ends, not while it is timed."""
    return tempfile.TemporaryDirectory()


def new_folder() -> str:
    return tempfile.mkdtemp(dir=stores().name)


def batches(members: int, every: int) -> Any:
    return run_batches(members, every, BATCH[every])


def at_once(members: int, every: int) -> Any:
    return run_batches(members, every, members)


def run_batches(members: int, every: int, size: int) -> Any:
    simulation, vary = drive(), values(members)

    def work() -> np.ndarray:
        largest = []
        for first in range(0, members, size):
            batch = simulation.run_batch(
                STEPS * STEP_S,
                INPUTS,
                parameters={name: column[first : first + size] for name, column in vary.items()},
                record=FIELDS,
                every=every,
                progress=False,
            )
            largest.append(batch["motor"]["current"].max(axis=1))  # to be compared
        return np.concatenate(largest)

    return work


def motors() -> Simulation:
    graph = GraphManager()
    graph.add_node(
        MotorNode(
            "motor",
            1e-3,
            inertia_kg_m2=1e-4,
            kt_n_m_per_a=0.05,
            r_ohm=1.0,
            l_henry=1e-3,
            damping_n_m_s=5e-4,
            command_mode="voltage",
        )
    )
    graph.add_external_input("motor", "commanded_voltage")
    return graph.compile()


def many_motors(members: int, folder: str) -> float:
    """Seconds of a study of so many motors."""
    began = time.perf_counter()
    sweep(
        motors(),
        {"motor.r_ohm": {"uniform": [0.5, 2.0]}, "motor.kt_n_m_per_a": {"uniform": [0.04, 0.06]}},
        draws=members,
        duration=0.1,
        inputs={"motor": {"commanded_voltage": 5.0}},
        figures=[{"name": "largest current", "kind": "max", "field": "motor.current"}],
        out=folder,
        progress=False,
    )
    return time.perf_counter() - began


def million() -> tuple[float, float]:
    """Members a second, and megabytes beyond those of a thousand: in processes of their own."""
    (_, small), (seconds, large) = (_alone(count) for count in (1_000, MILLION))
    return MILLION / seconds, large - small


@cache
def _alone(members: int) -> tuple[float, float]:
    command = [sys.executable, __file__, str(members)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(printed[0]), float(printed[1])


@cache
def cluster(workers: int) -> tuple[float, float]:
    """Members a second, and seconds of a task besides its run."""
    from distributed import Client, LocalCluster

    vary = values(CLUSTER_MEMBERS)
    options = {"duration": STEPS * STEP_S, "inputs": INPUTS, "figures": FIGURES, "every": 10}
    local = LocalCluster(
        n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    )
    with local, Client(local) as client, tempfile.TemporaryDirectory() as folder:

        def seconds(name: str, count: int, chunk: int) -> float:
            given = {key: column[:count] for key, column in vary.items()}
            began = time.perf_counter()
            sweep(
                drive(), given, zip=[list(vary)], out=Path(folder) / name, chunk=chunk,
                client=client, progress=False, **options,
            )  # fmt: skip
            return time.perf_counter() - began

        seconds("first", 2 * workers, 1)  # each worker compiles
        whole = min(seconds(f"whole {again}", CLUSTER_MEMBERS, CLUSTER_BATCH) for again in range(3))
        few, more = (seconds(f"single {count}", count, 1) for count in (8, 136))
        return CLUSTER_MEMBERS / whole, (more - few) / 128 * workers - alone()


def two_threads() -> float:
    """How many members more a second `run_batch` makes on two threads than on one: what the
    machine's second core is good for, with no cluster.
    """
    simulation, vary = drive(), values(CLUSTER_BATCH)

    def seconds(threads: int) -> float:
        began = time.perf_counter()
        simulation.run_batch(
            STEPS * STEP_S, INPUTS, parameters=vary, record=FIELDS, every=10, threads=threads,
            progress=False,
        )  # fmt: skip
        return time.perf_counter() - began

    seconds(1)
    both = [(seconds(1), seconds(2)) for _ in range(7)]
    return min(one for one, _ in both) / min(two for _, two in both)


def chunk_cost() -> float:
    """Seconds of a chunk of one member, less those of its `run_batch`."""
    vary = values(136)

    def seconds(count: int) -> float:
        given = {key: column[:count] for key, column in vary.items()}
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            sweep(
                drive(), given, zip=[list(vary)], duration=STEPS * STEP_S, inputs=INPUTS, every=10,
                figures=FIGURES, out=folder, chunk=1, progress=False,
            )  # fmt: skip
            return time.perf_counter() - began

    seconds(1)
    whole = (min(seconds(136) for _ in range(3)) - min(seconds(8) for _ in range(3))) / 128
    return whole - alone()


@cache
def alone() -> float:
    """Seconds of a `run_batch` of one member."""
    work = run_batches(128, 10, 1)
    work()
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) / 128


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    store = tempfile.mkdtemp()
    try:
        spent = many_motors(int(sys.argv[1]), store)
    finally:
        shutil.rmtree(store)
    # Not ru_maxrss: a child inherits its parent's.
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    print(spent, int(peak[1]) / 1e3 if peak else float("nan"))
