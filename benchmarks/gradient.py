"""Gradients of a rollout.

Of the sum of squared final angles of a falling UR5 after 1,000 steps (100 for many of them), with
respect to the constant torques of its motors: `jax.grad` through `simulation.rollout`. Beside the
rollout alone, and beside Pinocchio's `computeABADerivatives` in each step with the adjoint
equations in NumPy.
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import peers
import robots
from harness import Case, Figure, Peer, relative_difference
from robots import DT, Robot

from mime import batched

STEPS, COUNT = {1: 1000, 1024: 100}, 1024
TOLERANCE = 1e-8
"""Of the gradient, relative: both are exact but for rounding."""


def cases(threads: int) -> Iterator[Case | Figure]:
    """One robot and a batch; what compiling the gradient takes."""
    robot = robots.ur5()
    work, batch = STEPS[1], STEPS[COUNT] * COUNT
    # First, while nothing of it has been traced.
    for count, name in ((1, "one UR5"), (COUNT, f"{COUNT:,} UR5, vmap")):
        yield Figure(
            f"compile the gradient, {name}", lambda n=count: compile_seconds(robot, n), "s", 10.0
        )
    yield Case(
        "gradient, one UR5",
        lambda: gradients(robot, 1),
        (
            forward(robot, 1),
            Peer("Pinocchio computeABADerivatives", lambda: pinocchio(robot), TOLERANCE),
        ),
        work,
        "step",
        quick=True,
        repeats=15,
    )
    for name, way in (("vmap", vmapped), ("mime.batched", partial(batched, threads=threads))):
        yield Case(
            f"gradient, {COUNT:,} UR5, {name}",
            lambda way=way: gradients(robot, COUNT, way),
            (forward(robot, COUNT, way),),
            batch,
            "robot-step",
            repeats=5,
        )


def vmapped(function: Any) -> Any:
    return jax.jit(jax.vmap(function))


def forward(robot: Robot, count: int, way: Any = vmapped) -> Peer:
    """The rollout alone, whose central differences the gradient has to be."""

    def agree(gradient: Any, _: Any) -> float:
        program, (tau, q) = prepared(robot, loss_of(robot, count), count, way)
        step = 1e-3 * np.random.default_rng(3).normal(size=tau.shape)
        differences = (program(tau + step, q) - program(tau - step, q)) / 2
        return relative_difference(np.sum(gradient * step, -1), differences)

    return Peer("its forward rollout", lambda: losses(robot, count, way), 1e-6, 4.0, agree)


def loss_of(robot: Robot, count: int) -> Any:
    simulation = robot.simulation()

    def loss(tau: Any, q: Any) -> Any:
        start = simulation.init_state({"arm": {"joint_angles": q}})
        inputs = {"arm": {"commanded_joint_torques": tau}}
        end, _ = simulation.rollout(start, inputs, STEPS[count], record=())
        return jnp.sum(end.of("arm")["joint_angles"] ** 2)

    return loss


def prepared(
    robot: Robot, function: Any, count: int, way: Any = vmapped
) -> tuple[Any, tuple[Any, Any]]:
    """The program and its arguments: torques and start."""
    q = jnp.asarray(robot.angles(count))
    tau = jnp.asarray(np.random.default_rng(2).uniform(-5, 5, q.shape))
    if count == 1:
        return jax.jit(function), (tau[0], q[0])
    return way(function), (tau, q)


def gradients(robot: Robot, count: int, way: Any = vmapped) -> Any:
    program, arguments = prepared(robot, jax.grad(loss_of(robot, count)), count, way)
    return lambda: program(*arguments)


def losses(robot: Robot, count: int, way: Any = vmapped) -> Any:
    program, arguments = prepared(robot, loss_of(robot, count), count, way)
    return lambda: program(*arguments)


def compile_seconds(robot: Robot, count: int) -> float:
    """Tracing included, without the cache."""
    program, arguments = prepared(robot, jax.grad(loss_of(robot, count)), count)
    enabled = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    began = time.perf_counter()
    program.lower(*arguments).compile()
    seconds = time.perf_counter() - began
    jax.config.update("jax_enable_compilation_cache", enabled)
    return seconds


def pinocchio(robot: Robot) -> Any:
    """Forward with the derivatives of every step kept, then backward through them."""
    pin, model, order = peers.pinocchio_model(robot)
    assert order == sorted(order)
    f = robot.friction
    model.armature[:] = DT * f
    _, (tau, start) = prepared(robot, lambda *x: x, 1)
    tau, start = np.asarray(tau), np.asarray(start)

    def work() -> Any:
        data, q, v, kept = model.createData(), start.copy(), np.zeros(model.nv), []
        for _ in range(STEPS[1]):
            of_q, of_v, of_tau = pin.computeABADerivatives(model, data, q, v, tau - f * v)
            kept.append((of_q.copy(), of_v - f * of_tau, of_tau.copy()))
            v = v + DT * data.ddq
            q = q + DT * v
        to_q, to_v, gradient = 2 * q, np.zeros(model.nv), np.zeros(model.nv)
        for of_q, of_v, of_tau in reversed(kept):
            to_v = to_v + DT * to_q
            gradient += DT * of_tau.T @ to_v
            to_q, to_v = to_q + DT * of_q.T @ to_v, to_v + DT * of_v.T @ to_v
        return gradient

    return work
