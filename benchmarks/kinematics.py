"""Kinematics and dynamics as functions.

Functions of `mime.control.kinematics`. One call is one with NumPy arrays from Python, straight to
the machine code; beside Pinocchio's from Python, and beside the kernel's own time, which is that of
the same code in a loop over 256 robots. A batch of 4,096 is `jax.jit(jax.vmap(...))`. Of Pinocchio
only `aba` and `rnea` have versions for batches, on threads; of its other functions a batch is a
loop in Python, on one thread, with the cost of a call for each robot; its kinematics stay in its
own memory, where ours are all returned.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import numpy as np
import peers
import robots
from harness import Case, Figure, Peer, relative_difference
from harness.measure import best_of
from robots import GRAVITY, Robot

import mime.control.kinematics as kin
from mime.native.compiled import Traced
from mime.native.ffi import call_direct

COUNT = 4096
CALLS, IN_A_ROW = 50, 256
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
BATCH, BEYOND_US = 0.1, 4.0
ONE_CALL = {
    ("humanoid of 29 joints", "mass matrix"): 2.0,
    ("humanoid of 29 joints", "forward dynamics"): 2.0,
}
"""Targets: of a batch, of what a call takes beyond its kernel, and of single calls."""


def cases(threads: int) -> Iterator[Case | Figure]:
    """Each function of each robot, one call and a batch."""
    for build in (robots.ur5, robots.humanoid):
        robot = build()
        for what in ARGUMENTS:
            yield single(robot, what)
            yield beyond_the_kernel(robot, what)
            yield batch(robot, what, threads)


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
    def theirs() -> Any:
        f, order = pinocchio(robot, what)
        arguments = [x[0, order] for x in samples(robot, what, 1)]
        return lambda: [f(*arguments) for _ in range(CALLS)][-1:]

    target, agree = ONE_CALL.get((robot.name, what)), partial(difference, robot, what)
    others = (Peer("Pinocchio, from Python", theirs, TOLERANCE, target, agree),)
    name = f"{robot.name}, {TITLES[what]}, one call"
    return Case(name, lambda: calls(robot, what), others, CALLS, "call", quick=target is not None)


def calls(robot: Robot, what: str) -> Any:
    """One call after the other from Python, as a control loop makes them."""
    f = function(robot, what)
    arguments = [x[0] for x in samples(robot, what, 1)]
    return lambda: [f(*arguments) for _ in range(CALLS)][-1][None]


def beyond_the_kernel(robot: Robot, what: str) -> Figure:
    def measure() -> float:
        work, kernel = calls(robot, what), in_a_row(robot, what)
        np.testing.assert_allclose(work()[0], kernel()[0], rtol=1e-12)  # another order of arguments
        a, b = best_of(60, [work, kernel])
        return 1e6 * (a / CALLS - b / IN_A_ROW)

    name = f"{robot.name}, {TITLES[what]}, one call: beyond the kernel's own time"
    return Figure(name, measure, "µs", BEYOND_US, quick=robot.name == "UR5")


def in_a_row(robot: Robot, what: str) -> Any:
    """The machine code of one robot in a loop over many, on one thread."""
    arguments = samples(robot, what, 1)
    traced = Traced(function(robot, what), tuple(x[0] for x in arguments))
    kernel = traced.kernel
    entry = kernel.entry((False,) * len(arguments), members=None)
    (out,) = kernel.out_avals
    arguments = [np.repeat(x, IN_A_ROW, 0) for x in arguments]
    result = np.empty((IN_A_ROW, *out.shape))

    def work() -> Any:
        call_direct(entry, arguments, (result,), IN_A_ROW, 1)
        return result

    return work


def batch(robot: Robot, what: str, threads: int) -> Case:
    def ours() -> Any:
        f = jax.jit(jax.vmap(function(robot, what)))
        arguments = [jax.numpy.asarray(x) for x in samples(robot, what, COUNT)]
        return lambda: f(*arguments)

    parallel = what in {"bias", "forward dynamics"}
    others = [
        Peer(
            "Pinocchio, in parallel" if parallel else "Pinocchio, a loop in Python",
            lambda: in_parallel(robot, what, threads) if parallel else in_a_loop(robot, what),
            TOLERANCE,
            BATCH,
            partial(difference, robot, what),
        )
    ]
    if robot.name == "UR5" and what in FRAX:
        others.append(Peer("frax", lambda: frax(robot, what), 1e-8))
    quick = robot.name == "UR5" or parallel
    name = f"{robot.name}, {TITLES[what]}, {COUNT:,}"
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
