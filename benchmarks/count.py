"""What the processor does in a kernel: `python count.py` counts it, for notes.toml.

    python count.py                   instructions of a step, by kind, and how fast they go
    python count.py first             the phases of a first call, in processor time
    python count.py imports           what an import of the nodes takes, package by package
    python count.py memory            how fast memory takes what is written, one thread and all

A kernel is taken out of the program with the arguments of a run (`count_kernel.c`), counted by
Valgrind, instruction by instruction, and timed alone, on one thread. Two runs, one of twice as many
steps, give what a step takes. Needs valgrind, objdump and a C compiler.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

DRIVER = Path(__file__).parent / "count_kernel.c"
REPEATS = 300
MEMBERS = 64
ARITHMETIC = r"v?(add|sub|mul|fn?m(add|sub)(132|213|231)|max|min)[sp][sd]"
SLOW = r"v?(div|sqrt)[sp][sd]"


class Call(NamedTuple):
    """A call of a kernel from Python, as it was made."""

    text: str
    args: list[bytes]
    results: list[int]
    members: int
    workspace_bytes: int


class Counted(NamedTuple):
    """Of a step of one robot: what is executed, and how long it takes on one thread."""

    instructions: float
    arithmetic: float
    slow: float
    """Divisions and square roots."""
    stack: float
    """Instructions that read or write the stack: values that found no register."""
    other_memory: float
    ns: float

    def __sub__(self, other: tuple[float, ...]) -> "Counted":  # type: ignore[override]
        return Counted(*(a - b for a, b in zip(self, other, strict=True)))

    def per(self, units: int) -> "Counted":
        return Counted(*(x / units for x in self))


def main() -> None:
    what = sys.argv[1] if len(sys.argv) > 1 else "kernels"
    {"kernels": kernels, "first": first, "imports": imports, "memory": memory}[what]()


# --- kernels ------------------------------------------------------------------------------------


def kernels() -> None:
    """A table of all robots and parts whose targets are missed, alone and in a batch."""
    import arm
    import composed
    import jax
    import kinematics
    import motor
    import parts
    import robots

    jax.config.update("jax_enable_x64", True)
    calls = spy()
    print("per step, or call, of one robot: instructions, of them arithmetic, division and root,")
    print("with the stack, with other memory; ns on one thread; instructions per ns")

    def table(name: str, work: Callable[[int], Any], steps: int, members: int) -> None:
        short, long = (counted(of_steps(calls, work(n))) for n in (steps, 2 * steps))
        show(name, (long - short).per(steps * members))

    table("one motor", motor.alone, 1000, 1)
    many = motor.simulation_of().run_batch
    options = {"record": (), "progress": False, "inputs": motor.INPUTS, "threads": 1}
    parameters = {"motor": {name: x[:MEMBERS] for name, x in motor.varied().items()}}
    motors = partial(many, parameters=parameters, **options)
    table(f"{MEMBERS} motors", lambda n: partial(motors, steps=n), 200, MEMBERS)
    for robot in (robots.ur5(), *map(robots.chain, (8, 10, 12, 16)), robots.humanoid()):
        table(f"one {robot.name}", lambda n, r=robot: arm.alone(r, n), 100, 1)
        name = f"{MEMBERS} {robot.name}"
        table(name, lambda n, r=robot: arm.batch(r, MEMBERS, n, 1), 20, MEMBERS)
    wired = composed.graph_of(robots.ur5(), "motor", "joint", "arm").run_batch
    whole = partial(wired, batch_size=MEMBERS, **options | {"inputs": composed.VOLTAGE})
    name = f"{MEMBERS} of motor, elastic joint and UR5"
    table(name, lambda n: partial(whole, steps=n), 20, MEMBERS)
    for robot in (robots.ur5(), robots.humanoid()):
        for what in kinematics.ARGUMENTS:
            kernel = parts.kernel_of(robot, what)
            given = kinematics.samples(robot, what, MEMBERS)
            work = partial(kernel.call, given, (False,) * len(given), MEMBERS, None, 1)
            found = counted(of_steps(calls, work)).per(MEMBERS)
            show(f"{MEMBERS} {robot.name}, {kinematics.TITLES[what]}", found)


def show(name: str, found: Counted) -> None:
    figures = " ".join(f"{x:9.1f}" for x in found)
    print(f"{name:42s}{figures}{found.instructions / found.ns:7.2f}", flush=True)


_texts: dict[int, str] = {}
"""Of the kernels that were compiled, by the identity of their code."""


def spy() -> list[Call]:
    """From now on, all calls of kernels that are made from Python."""
    from mime.native import kernel

    calls: list[Call] = []
    compile_ir, call_direct = kernel.compile_ir, kernel.call_direct

    def compiling(text: str, functions: Sequence[str]) -> Any:
        code = compile_ir(text, functions)
        _texts[id(code)] = text
        return code

    def calling(entry: Any, args: Any, results: Any, members: int, threads: Any = None) -> None:
        sizes = [x.nbytes for x in results]
        data, text = [x.tobytes() for x in args], _texts[id(entry.keepalive)]
        calls.append(Call(text, data, sizes, members, entry.workspace_bytes))
        call_direct(entry, args, results, members, threads)

    kernel.compile_ir, kernel.call_direct = compiling, calling
    return calls


def of_steps(calls: list[Call], work: Callable[[], Any]) -> list[Call]:
    """The calls of the longest kernel that the work makes: that of its steps."""
    calls.clear()
    work()
    longest = max((call.text for call in calls), key=len)
    return [call for call in calls if call.text == longest]


def counted(calls: list[Call]) -> Counted:
    """What all these calls of one kernel execute, and their time."""
    from mime.native.machine import _object_code, host

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernel.o").write_bytes(_object_code(calls[0].text, host()))
        (folder / "calls.bin").write_bytes(b"".join(_packed(calls)))
        program = str(folder / "counted")
        ours = ["cc", "-O1", "-no-pie", "-o", program, str(DRIVER), str(folder / "kernel.o"), "-lm"]
        subprocess.run(ours, check=True)
        run = [program, str(folder / "calls.bin")]
        times = [subprocess.run([*run, str(REPEATS)], capture_output=True) for _ in range(3)]
        ns = min(float(done.stdout) for done in times)
        out = folder / "out"
        options = ["--tool=callgrind", "--dump-instr=yes", "--toggle-collect=kernel"]
        valgrind = ["valgrind", *options, f"--callgrind-out-file={out}", *run, "1"]
        subprocess.run(valgrind, check=True, capture_output=True)
        executed = _executed(out.read_text())
        lines = subprocess.run(["objdump", "-d", program], capture_output=True, text=True).stdout
    kinds: Counter[str] = Counter()
    for line in lines.splitlines():
        if not (found := re.match(r" *([0-9a-f]+):\t[0-9a-f ]+\t(\S+) *(.*)", line)):
            continue
        times_executed = executed.get(int(found[1], 16), 0)
        kinds["all"] += times_executed
        if re.fullmatch(ARITHMETIC, found[2]):
            kinds["arithmetic"] += times_executed
        if re.fullmatch(SLOW, found[2]):
            kinds["slow"] += times_executed
        if re.search(r"\(%r[sb]p", found[3]):
            kinds["stack"] += times_executed
        elif "(%" in found[3] and not found[2].startswith("lea"):
            kinds["memory"] += times_executed
    return Counted(*(kinds[k] for k in ("all", "arithmetic", "slow", "stack", "memory")), ns)


def _packed(calls: list[Call]) -> Iterator[bytes]:
    def words(*values: int) -> bytes:
        return b"".join(x.to_bytes(8, "little", signed=True) for x in values)

    yield words(len(calls))
    for call in calls:
        yield words(call.members, call.workspace_bytes, len(call.args), len(call.results))
        yield words(*map(len, call.args), *call.results)
        yield from call.args


def _executed(profile: str) -> dict[int, int]:
    """How often each address was executed, from callgrind's file."""
    executed: dict[int, int] = {}
    address, of_call = 0, False
    for line in profile.splitlines():
        if line.startswith("calls="):
            of_call = True
        elif found := re.match(r"(0x[0-9a-f]+|\+\d+|-\d+|\*) \S+ (\d+)$", line):
            place = found[1]
            if place.startswith("0x"):
                address = int(place, 16)
            elif place != "*":
                address += int(place)
            if not of_call:
                executed[address] = executed.get(address, 0) + int(found[2])
            of_call = False
    return executed


# --- first calls --------------------------------------------------------------------------------


def first() -> None:
    """Each first call of `startup.py` in a process of its own, and the processor time of phases."""
    if len(sys.argv) == 2:
        import startup

        for kind, what, _ in startup.FIRST_RUNS.values():
            if what != "1000":
                command = [sys.executable, __file__, "first", kind, what]
                variables = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false"}
                done = subprocess.run(command, env=variables, capture_output=True, text=True)
                print(f"{kind} {what}: {done.stdout.strip() or done.stderr[-300:]}", flush=True)
        return
    import first_run
    import jax

    from mime.native import kernel, machine

    jax.config.update("jax_enable_x64", True)
    jax.block_until_ready(jax.numpy.zeros(3) + 1.0)
    clock = Phases()
    make_jaxpr = jax.make_jaxpr
    jax.make_jaxpr = lambda *a, **k: clock.timed("tracing", make_jaxpr(*a, **k))
    kernel.kernel_text = clock.timed("lowering", kernel.kernel_text)
    machine._object_code = clock.timed("LLVM's passes", machine._object_code)
    emit = machine.llvm.TargetMachine.emit_object
    machine.llvm.TargetMachine.emit_object = clock.timed("code generation", emit)
    machine._load = clock.timed("loading", machine._load)
    work = getattr(first_run, sys.argv[2])(sys.argv[3])
    clock.timed("the rest", lambda: jax.block_until_ready(work()))()
    total = sum(clock.seconds.values())
    print(f"{total:.2f} s:", ", ".join(f"{name} {s:.2f}" for name, s in clock.seconds.items()))


class Phases:
    """Processor time of this thread by phase, each without the phases inside it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.inside: list[float] = []

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            began = time.thread_time()
            self.inside.append(0.0)
            try:
                return function(*args, **kwargs)
            finally:
                took = time.thread_time() - began
                self.seconds[name] = self.seconds.get(name, 0.0) + took - self.inside.pop()
                if self.inside:
                    self.inside[-1] += took

        return call


# --- imports and memory -------------------------------------------------------------------------


def imports() -> None:
    """Milliseconds that the modules of each package take themselves, those of `import jax` apart."""
    import startup

    def modules(code: str) -> dict[str, int]:
        least: dict[str, int] = {}
        for _ in range(7):
            command = [sys.executable, "-X", "importtime", "-c", code]
            told = subprocess.run(command, capture_output=True, text=True).stderr
            for own, name in re.findall(r"import time: +(\d+) \| +\d+ \| +(\S+)", told):
                least[name] = min(int(own), least.get(name, int(own)))
        return least

    alone, both = modules("import jax"), modules(startup.PARTS)
    by_package: Counter[str] = Counter()
    for name in both.keys() - alone.keys():
        by_package[name.split(".")[0]] += both[name]
    print(f"import jax: {sum(alone.values()) / 1e3:.0f} ms; beyond it:")
    for package, us in by_package.most_common(12):
        print(f"  {package:24s}{us / 1e3:8.1f} ms")
    print(f"  {'in all':24s}{by_package.total() / 1e3:8.1f} ms")


def memory() -> None:
    """GB/s that a thread, and as many as there are cores, write to fresh and to known pages."""
    import numpy as np

    size, cores = 2**28, os.cpu_count() or 1

    def rate(threads: int, fill: Callable[[], Any]) -> float:
        best = 0.0
        for _ in range(7):
            began = time.perf_counter()
            workers = [threading.Thread(target=fill) for _ in range(threads)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            best = max(best, threads * size / (time.perf_counter() - began) / 1e9)
        return best

    known = np.zeros(size // 8)
    for threads in (1, cores):
        fresh = rate(threads, lambda: np.empty(size // 8).fill(1.0))
        again = rate(threads, lambda: known.fill(1.0))
        print(f"{threads} threads: {fresh:.1f} GB/s to fresh pages, {again:.1f} to known ones")


if __name__ == "__main__":
    main()
