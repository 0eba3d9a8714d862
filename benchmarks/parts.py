"""Where the time goes.

What a robot's functions take as machine code, in lanes and on one thread, each beside the
instructions for a vector of robots that its kernel has; what a gradient adds to a rollout, and what
a call of `run` does besides computing. (A function's instructions are those of the text that LLVM
is given, a loop's body counted once.)
"""

from collections.abc import Iterator

import gradient
import graph_overhead
import jax
import kinematics
import numpy as np
import robots
from harness import Figure
from harness.measure import best_of
from robots import Robot

from mime.native.compiled import Traced
from mime.native.kernel import Kernel
from mime.native.lowering import kernel_text
from mime.native.machine import host

COUNT = 1024


def cases(threads: int) -> Iterator[Figure]:
    """Each profile, from its first part to the whole."""
    for robot in (robots.ur5(), robots.humanoid()):
        for what, title in kinematics.TITLES.items():
            label, quick = f"{robot.name}, {title}", robot.name == "UR5"
            yield Figure(label, lambda r=robot, w=what: us_alone(r, w), "µs per robot", quick=quick)
            yield Figure(f"{label}: instructions", lambda r=robot, w=what: instructions(r, w), "")
    for robot in (robots.ur5(), robots.humanoid()):
        name = f"one {robot.name}, {gradient.ALONE:,} steps"
        yield Figure(f"{name}: the rollout", lambda r=robot: rollout_us(r, False), "µs per step")
        yield Figure(f"{name}: its gradient", lambda r=robot: rollout_us(r, True), "µs per step")
    yield Figure("run of a one-node graph, one step", graph_overhead.one_step_ms, "ms", quick=True)
    for name, records in (("10,000 steps recorded", 10_000), ("1,000,000", 1_000_000)):
        yield Figure(
            f"run of a one-node graph, {name}: beyond its compiled loop",
            lambda n=records: run_overhead_ms(n),
            "ms",
            quick=records == 10_000,
        )


def kernel_of(robot: Robot, what: str) -> Kernel:
    arguments = tuple(x[0] for x in kinematics.samples(robot, what, 1))
    return Traced(kinematics.function(robot, what), arguments).kernel


def us_alone(robot: Robot, what: str) -> float:
    """In lanes, on one thread, results written to the same memory."""
    kernel, arguments = kernel_of(robot, what), kinematics.samples(robot, what, COUNT)
    (out,) = kernel.out_avals
    shared, results = (False,) * len(arguments), [np.empty((COUNT, *out.shape))]
    work = lambda: kernel.call(arguments, shared, COUNT, results, 1)  # noqa: E731
    work()
    return 1e6 * best_of(30, [work])[0] / COUNT


def instructions(robot: Robot, what: str) -> float:
    kernel, this = kernel_of(robot, what), host()
    shared = (False,) * len(kernel.in_avals)
    return kernel_text(kernel.closed, shared, this.lanes(64), this.has_fma).operations


def rollout_us(robot: Robot, with_gradient: bool) -> float:
    loss = gradient.loss_of(robot, 1)
    program, arguments = gradient.prepared(robot, jax.grad(loss) if with_gradient else loss, 1)
    jax.block_until_ready(program(*arguments))
    return 1e6 * best_of(15, [lambda: program(*arguments)])[0] / gradient.ALONE


def run_overhead_ms(steps: int) -> float:
    """`run` less the same number of steps of `rollout`, which stays in JAX."""
    compiled = graph_overhead.simulation()
    state, inputs, record = compiled.init_state(), graph_overhead.INPUTS, graph_overhead.RECORD
    run = lambda: compiled.run(steps=steps, inputs=inputs, record=record, progress=False)  # noqa: E731
    rollout = lambda: compiled.rollout(state, inputs, steps, record=record)  # noqa: E731
    np.testing.assert_array_equal(run()["rotor"]["speed"], rollout()[1]["rotor"]["speed"])
    a, b = best_of(15, [lambda: run().final_state, rollout])
    return 1e3 * (a - b)
