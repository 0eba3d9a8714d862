"""Gradients of a rollout.

Of the sum of squared final angles of a falling robot with respect to the constant torques of its
motors: `jax.grad` through `simulation.rollout`, of many robots under `jax.vmap`. Beside the rollout
alone, and for one UR5 beside Pinocchio's `computeABADerivatives` in each step with the adjoint
equations in NumPy. What the first gradient takes is under *From nothing to the first result*.
"""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import peers
import robots
from harness import Case, Peer, relative_difference
from robots import DT, Robot

ALONE, TOGETHER = 1000, 100
"""Steps of one robot, and of each of many."""
TOLERANCE = 1e-8
"""Of the gradient, relative: both are exact but for rounding."""
TARGET = 3.0
"""Gradient / rollout, of many."""


def cases(threads: int) -> Iterator[Case]:
    """One robot and batches."""
    ur5, humanoid = robots.ur5(), robots.humanoid()
    pinocchio = Peer("Pinocchio computeABADerivatives", lambda: by_pinocchio(ur5), TOLERANCE)
    yield case(ur5, 1, "one UR5", None, (pinocchio,))
    yield case(ur5, 1024, "1,024 UR5", TARGET)
    yield case(humanoid, 1, f"one {humanoid.name}", None)
    yield case(humanoid, 256, f"256 {humanoid.name}", TARGET)


def case(
    robot: Robot, count: int, name: str, target: float | None, others: tuple[Peer, ...] = ()
) -> Case:
    """The gradient beside the rollout alone, whose central differences it has to be."""

    def agree(gradient: Any, _: Any) -> float:
        program, (tau, q) = prepared(robot, loss_of(robot, count), count)
        step = 1e-3 * np.random.default_rng(3).normal(size=tau.shape)
        differences = (program(tau + step, q) - program(tau - step, q)) / 2
        return relative_difference(np.sum(gradient * step, -1), differences)

    def work(function: Any) -> Any:
        program, arguments = prepared(robot, function, count)
        return lambda: program(*arguments)

    rollout = lambda: work(loss_of(robot, count))  # noqa: E731
    return Case(
        f"gradient, {name}",
        lambda: work(jax.grad(loss_of(robot, count))),
        (Peer("its forward rollout", rollout, 1e-6, target, agree), *others),
        ALONE if count == 1 else TOGETHER * count,
        "step" if count == 1 else "robot-step",
        repeats=15 if count == 1 else 5,
        quick=robot.name == "UR5",
    )


def loss_of(robot: Robot, count: int) -> Any:
    simulation = robot.simulation()
    steps = ALONE if count == 1 else TOGETHER

    def loss(tau: Any, q: Any) -> Any:
        start = simulation.init_state({"arm": {"joint_angles": q}})
        inputs = {"arm": {"commanded_joint_torques": tau}}
        end, _ = simulation.rollout(start, inputs, steps, record=())
        return jnp.sum(end.of("arm")["joint_angles"] ** 2)

    return loss


def prepared(robot: Robot, function: Any, count: int) -> tuple[Any, tuple[Any, Any]]:
    """The program and its arguments: torques and start."""
    q = jnp.asarray(robot.angles(count))
    tau = jnp.asarray(np.random.default_rng(2).uniform(-5, 5, q.shape))
    if count == 1:
        return jax.jit(function), (tau[0], q[0])
    return jax.jit(jax.vmap(function)), (tau, q)


def by_pinocchio(robot: Robot) -> Any:
    """Forward with the derivatives of every step kept, then backward through them."""
    pin, model, order = peers.pinocchio_model(robot)
    assert order == sorted(order)
    f = robot.friction
    model.armature[:] = DT * f
    _, (tau, start) = prepared(robot, lambda *x: x, 1)
    tau, start = np.asarray(tau), np.asarray(start)

    def work() -> Any:
        data, q, v, kept = model.createData(), start.copy(), np.zeros(model.nv), []
        for _ in range(ALONE):
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
