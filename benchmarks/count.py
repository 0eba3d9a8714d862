"""What the processor does in a kernel: `python count.py` counts it, for notes.toml.

    python count.py kernels [NAME]    instructions of a step, by kind, and how fast they go
    python count.py gradients         instructions of the kernels of a gradient, as they are written
    python count.py first             the phases of a first call, in processor time
    python count.py imports           what an import of the nodes takes, package by package
    python count.py division          how long one takes, and how soon the next can begin
    python count.py memory            how fast memory takes what is written, one thread and all
                                      (these four are in costs.py)

A kernel is taken out of the program with the arguments of a run (`count_kernel.c`), counted by
Valgrind, instruction by instruction, and timed alone, on one thread. Two runs, one of twice as many
steps, give what a step takes. Needs valgrind, objdump and a C compiler. Valgrind knows no AVX-512:
what is counted, and timed here, is the code of a processor without it.
"""

import math
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import costs

os.environ.setdefault("MIME_NATIVE_FEATURES", "-avx512f,-gfni,-avxvnni")
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
    parts = (kernels, gradients, costs.first, costs.imports, costs.division, costs.memory)
    {part.__name__: part for part in parts}[what]()


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
    calls, wanted = spy(), "".join(sys.argv[2:3])
    print("per step, or call, of one robot: instructions, of them arithmetic, division and root,")
    print("with the stack, with other memory; ns on one thread; instructions per ns")

    def table(name: str, work: Callable[[int], Any], steps: int, members: int) -> None:
        if wanted not in name:
            return
        short, long = (counted(of_steps(calls, work(n))) for n in (steps, 2 * steps))
        show(name, (long - short).per(steps * members))

    table("one motor", motor.alone, 50_000, 1)
    many = motor.simulation_of().run_batch
    options = {"record": (), "progress": False, "inputs": motor.INPUTS, "threads": 1}
    parameters = {"motor": {name: x[:MEMBERS] for name, x in motor.varied().items()}}
    motors = partial(many, parameters=parameters, **options)
    table(f"{MEMBERS} motors", lambda n: partial(motors, steps=n), 4000, MEMBERS)
    for robot in (robots.ur5(), *map(robots.chain, (8, 10, 12, 16)), robots.humanoid()):
        table(f"one {robot.name}", lambda n, r=robot: arm.alone(r, n), 100, 1)
        name = f"{MEMBERS} {robot.name}"
        table(name, lambda n, r=robot: arm.batch(r, MEMBERS, n, 1), 20, MEMBERS)
    ur5 = robots.ur5()
    table("one UR5, watch=False", lambda n: arm.alone(ur5, n, watch=False), 100, 1)
    name, stop = f"{MEMBERS} UR5 with stops", 20 * math.pi
    table(name, lambda n: arm.batch(ur5, MEMBERS, n, 1, stop_at_rad=stop), 20, MEMBERS)
    for nodes in (("motor",), ("joint",), ("motor", "joint", "arm")):
        wired = composed.graph_of(ur5, *nodes).run_batch
        given = composed.VOLTAGE if "motor" in nodes else None
        whole = partial(wired, batch_size=MEMBERS, **options | {"inputs": given})
        name = f"{MEMBERS} wired: {', '.join(nodes)}"
        table(name, lambda n, w=whole: partial(w, steps=n), 200, MEMBERS)
    for robot in (robots.ur5(), robots.humanoid()):
        for what in kinematics.ARGUMENTS:
            name = f"{MEMBERS} {robot.name}, {kinematics.TITLES[what]}"
            if wanted not in name:
                continue
            kernel = parts.kernel_of(robot, what)
            given = kinematics.samples(robot, what, MEMBERS)
            work = partial(kernel.call, given, (False,) * len(given), MEMBERS, None, 1)
            found = counted(of_steps(calls, work)).per(MEMBERS)
            show(name, found)


def gradients() -> None:
    """Instructions for a vector of robots, each counted once: a step is nearly all of a kernel."""
    import gradient
    import jax
    import robots

    from mime.native.machine import _object_code, host

    jax.config.update("jax_enable_x64", True)
    spy()
    print("instructions, of them arithmetic, division and root, with the stack, with other memory")
    for robot in (robots.ur5(), robots.humanoid()):
        loss = gradient.loss_of(robot, MEMBERS)
        for name, function in (("rollout", loss), ("gradient", jax.grad(loss))):
            _texts.clear()
            program, arguments = gradient.prepared(robot, function, MEMBERS)
            jax.block_until_ready(program(*arguments))
            for text in sorted(set(_texts.values()), key=len)[-2:]:
                with tempfile.NamedTemporaryFile(suffix=".o") as file:
                    file.write(_object_code(text, host()))
                    file.flush()
                    objdump = ["objdump", "-d", file.name]
                    lines = subprocess.run(objdump, capture_output=True, text=True).stdout
                found = " ".join(f"{x:9.0f}" for x in by_kind(lines, lambda _: 1)[:-1])
                print(f"{robot.name}, {name:10s}{found}", flush=True)


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
    return by_kind(lines, lambda address: executed.get(address, 0), ns)


def by_kind(lines: str, times: Callable[[int], int], ns: float = 0.0) -> Counted:
    """The instructions that objdump lists, each as often as it is executed."""
    kinds: Counter[str] = Counter()
    for line in lines.splitlines():
        if not (found := re.match(r" *([0-9a-f]+):\t[0-9a-f ]+\t(\S+) *(.*)", line)):
            continue
        executed = times(int(found[1], 16))
        kinds["all"] += executed
        if re.fullmatch(ARITHMETIC, found[2]):
            kinds["arithmetic"] += executed
        if re.fullmatch(SLOW, found[2]):
            kinds["slow"] += executed
        if re.search(r"\(%r[sb]p", found[3]):
            kinds["stack"] += executed
        elif "(%" in found[3] and not found[2].startswith("lea"):
            kinds["memory"] += executed
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


if __name__ == "__main__":
    main()
