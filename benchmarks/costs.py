"""What a first call, an import, a division and writing to memory take here: see count.py."""

import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

COUNT = Path(__file__).parent / "count.py"


def first() -> None:
    """Each first call of `startup.py` in a process of its own, and the processor time of phases."""
    if len(sys.argv) == 2:
        import startup

        for kind, what, _ in startup.FIRST_RUNS.values():
            if what != "1000":
                command = [sys.executable, str(COUNT), "first", kind, what]
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


def imports() -> None:
    """Milliseconds that the modules of each package take, without those of `import jax`."""
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


def division() -> None:
    """ns of a division of vectors that waits for the last one, and of one that waits for none."""
    import ctypes

    from mime.native.machine import compile_ir, host

    lanes, count = host().lanes(64), 10_000_000
    vector = f"<{lanes} x double>"
    for name, chains in (("one after another", 1), ("apart", 12)):
        kept = [f"  %x{k} = phi {vector} [ {_splat(lanes, k)}, %entry ], [ %y{k}, %loop ]"
                for k in range(chains)]  # fmt: skip
        divided = [f"  %y{k} = fdiv {vector} %x{k}, %d" for k in range(chains)]
        stored = [f"  %p{k} = getelementptr {vector}, ptr %p, i64 {k}\n"
                  f"  store {vector} %y{k}, ptr %p{k}, align 8" for k in range(chains)]  # fmt: skip
        lines = [
            "define void @divide(ptr %p, i64 %n) {", "entry:",
            f"  %d = load {vector}, ptr %p, align 8", "  br label %loop", "loop:",
            "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]", *kept, *divided,
            "  %next = add i64 %i, 1", "  %more = icmp ult i64 %next, %n",
            "  br i1 %more, label %loop, label %end", "end:", *stored, "  ret void", "}",
        ]  # fmt: skip
        code = compile_ir("\n".join(lines), ["divide"])
        divide = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address("divide"))
        room = (ctypes.c_double * (chains * lanes))(*[1.0000001] * chains * lanes)
        times = []
        for _ in range(20):
            began = time.thread_time_ns()
            divide(ctypes.addressof(room), count // chains // 20)
            times.append(time.thread_time_ns() - began)
            room[:] = [1.0000001] * chains * lanes
        print(f"{name}: {min(times) * 20 / count:.2f} ns")


def _splat(lanes: int, k: int) -> str:
    return "<" + ", ".join([f"double {3.0 + k}"] * lanes) + ">"


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
