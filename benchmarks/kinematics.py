"""Kinematics and dynamics as functions.

`jax.jit` of a function of `mime.control.kinematics`; for a batch of 4,096 `jax.jit(jax.vmap(...))`
and `mime.batched`. One call from Python each; a single call of ours is mostly what JAX needs to
call any compiled program. Of Pinocchio only `aba` and `rnea` have versions for batches, on threads;
of its other functions a batch is a loop in Python, on one thread, with the cost of a call for each
robot; its kinematics stay in its own memory, where ours are all returned.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import numpy as np
import peers
import robots
from harness import Case, Peer, relative_difference
from robots import GRAVITY, Robot

import mime.control.kinematics as kin
from mime import batched

COUNT = 4096
CALLS = 200
TOLERANCE = 1e-10
"""One evaluation: only rounding differs."""
ARGUMENTS = {"kinematics": 1, "Jacobian": 1, "mass matrix": 1, "bias": 2, "forward dynamics": 3}
FRAX = ("mass matrix", "bias", "forward dynamics")
"""For the serial arm; the joints of a tree stand in an order of its own."""
TITLES = {
    "kinematics": "forward kinematics, all links",
    "Jacobian": "Jacobian of the tip",
    "mass matrix": "mass matrix",
    "bias": "bias (RNEA)",
    "forward dynamics": "forward dynamics",
}


def cases(threads: int) -> Iterator[Case]:
    """Each function of each robot, one call and a batch."""
    for build in (robots.ur5, robots.humanoid):
        robot = build()
        for what in ARGUMENTS:
            yield single(robot, what)
            yield batch(robot, what, threads, "vmap")
            yield batch(robot, what, threads, "mime.batched")


def samples(robot: Robot, what: str, count: int) -> list[np.ndarray]:
    """q, or q and q̇, or q, q̇ and tau."""
    rng = np.random.default_rng(1)
    return [rng.uniform(-1, 1, (count, robot.joints)) for _ in range(ARGUMENTS[what])]


def function(robot: Robot, what: str) -> Callable[..., Any]:
    tree = robot.tree
    return {
        "kinematics": lambda q: kin.joint_to_world_transforms(tree, q),
        "Jacobian": lambda q: kin.frame_jacobian_at(tree, q, robot.tip),
        "mass matrix": lambda q: kin.mass_matrix(tree, q),
        "bias": lambda q, qd: kin.nonlinear_bias(tree, q, qd, GRAVITY),
        "forward dynamics": lambda q, qd, tau: kin.forward_dynamics(tree, q, qd, tau, GRAVITY),
    }[what]


def single(robot: Robot, what: str) -> Case:
    def ours() -> Any:
        f = jax.jit(function(robot, what))
        arguments = [x[0] for x in samples(robot, what, 1)]
        return lambda: [f(*arguments) for _ in range(CALLS)][-1][None]

    def theirs() -> Any:
        f, order = pinocchio(robot, what)
        arguments = [x[0, order] for x in samples(robot, what, 1)]
        return lambda: [f(*arguments) for _ in range(CALLS)][-1:]

    others = (Peer("Pinocchio", theirs, TOLERANCE, agree=partial(difference, robot, what)),)
    return Case(f"{robot.name}, {TITLES[what]}, one call", ours, others, CALLS, "call")


def batch(robot: Robot, what: str, threads: int, way: str) -> Case:
    def ours() -> Any:
        one = function(robot, what)
        f = jax.jit(jax.vmap(one)) if way == "vmap" else batched(one, threads)
        arguments = [jax.numpy.asarray(x) for x in samples(robot, what, COUNT)]
        return lambda: f(*arguments)

    targets = {"kinematics": 0.5, "bias": 0.5, "forward dynamics": 0.25}
    parallel = what in {"bias", "forward dynamics"}
    others = [
        Peer(
            "Pinocchio, in parallel" if parallel else "Pinocchio, a loop in Python",
            lambda: in_parallel(robot, what, threads) if parallel else in_a_loop(robot, what),
            TOLERANCE,
            targets.get(what),
            partial(difference, robot, what),
        )
    ]
    if robot.name == "UR5" and what in FRAX:
        others.append(Peer("frax", lambda: frax(robot, what), 1e-8))
    quick = robot.name == "UR5" and what in targets
    name = f"{robot.name}, {TITLES[what]}, {COUNT:,}, {way}"
    return Case(name, ours, tuple(others), COUNT, "robot", repeats=15, quick=quick)


def pinocchio(robot: Robot, what: str) -> tuple[Callable[..., Any], list[int]]:
    """The same function, in Pinocchio's order of joints: for each the place among ours."""
    pin, model, order = peers.pinocchio_model(robot)
    data, tip, axes = model.createData(), model.getFrameId(robot.tip), pin.LOCAL_WORLD_ALIGNED
    return {
        "kinematics": lambda q: pin.forwardKinematics(model, data, q),
        "Jacobian": lambda q: pin.computeFrameJacobian(model, data, q, tip, axes),
        "mass matrix": lambda q: pin.crba(model, data, q),
        "bias": lambda q, qd: pin.nonLinearEffects(model, data, q, qd),
        "forward dynamics": lambda q, qd, tau: pin.aba(model, data, q, qd, tau),
    }[what], order


def difference(robot: Robot, what: str, ours: Any, theirs: Any) -> float:
    """After putting Pinocchio's joints into our order, which is not part of the work."""
    pin, model, order = peers.pinocchio_model(robot)
    back = np.argsort(order)
    if what == "kinematics":  # its result stays in its `data`: here it is fetched
        data, ids = model.createData(), [model.getJointId(x) for x in robot.tree.joint_names]
        theirs = []
        for q in samples(robot, what, len(ours))[0]:
            pin.forwardKinematics(model, data, q[order])
            theirs.append([data.oMi[i].homogeneous for i in ids])
        return relative_difference(ours, theirs)
    theirs = np.asarray(theirs)[..., back]
    return relative_difference(ours, theirs[:, back] if what == "mass matrix" else theirs)


def in_a_loop(robot: Robot, what: str) -> Any:
    f, order = pinocchio(robot, what)
    (q,) = samples(robot, what, COUNT)
    q = q[:, order]
    return lambda: [f(row) for row in q]


def in_parallel(robot: Robot, what: str, threads: int) -> Any:
    pin, model, order = peers.pinocchio_model(robot)
    pool = pin.ModelPool(model, threads)
    columns = [np.asfortranarray(x[:, order].T) for x in samples(robot, what, COUNT)]
    out = np.zeros_like(columns[0])
    if what == "bias":
        columns.append(np.zeros_like(out))  # RNEA without acceleration
    run = pin.rneaInParallel if what == "bias" else pin.abaInParallel

    def work() -> Any:
        run(threads, pool, *columns, out)
        return out.T

    return work


def frax(robot: Robot, what: str) -> Any:
    other = peers.frax_robot(robot)
    f = {
        "mass matrix": other.mass_matrix,
        "bias": lambda q, qd: other.nonlinear_bias(q, qd),
        "forward dynamics": lambda q, qd, tau: other.forward_dynamics(q, qd, tau, None),
    }[what]
    mapped = jax.jit(jax.vmap(f))
    arguments = [jax.numpy.asarray(x) for x in samples(robot, what, COUNT)]
    return lambda: mapped(*arguments)
