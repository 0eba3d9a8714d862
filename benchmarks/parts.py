"""Where the time goes.

A profile of what loses above, by leaving parts out: a humanoid's step up to each of its passes, the
gradient of a rollout, and what a call of `run` does besides computing. An operation is one on
scalars in the traced program (`jax.make_jaxpr`), before XLA.
"""

from collections.abc import Callable, Iterator
from typing import Any

import graph_overhead
import jax
import jax.numpy as jnp
import numpy as np
import robots
from harness import Figure
from harness.measure import best_of
from jax.extend.core import jaxprs_in_params
from robots import DT, GRAVITY, Robot

from mime.control.kinematics.crba import joint_momenta, lower_triangle
from mime.control.kinematics.joints import felt_moments, joint_frames, joint_motions
from mime.control.kinematics.ltdl import solve_ltdl
from mime.control.kinematics.recursion import walk
from mime.control.kinematics.rnea import joint_torques, needed_wrenches
from mime.control.kinematics.scalar import sub

STEPS = 200
PASSES = ("the joints' frames", "the bias (RNEA)", "the mass matrix (CRBA)", "solving (LᵀDL)")


def cases(threads: int) -> Iterator[Figure]:
    """Each profile, from its first part to the whole."""
    ur5, humanoid = robots.ur5(), robots.humanoid()
    for count, name in enumerate(PASSES, 1):
        yield Figure(f"humanoid, a step up to {name}", lambda n=count: us_a_step(humanoid, n), "µs")
    yield Figure("humanoid, operations of a step", lambda: operations(humanoid), "")
    yield Figure("UR5, a step", lambda: us_a_step(ur5, len(PASSES)), "µs")
    yield Figure("UR5, operations of a step", lambda: operations(ur5), "")
    for name, measure in (("the rollout", forward_us), ("its gradient", gradient_us)):
        yield Figure(f"UR5, {STEPS} steps: {name}", measure, "µs per step")
    yield Figure("run of a one-node graph, one step", graph_overhead.one_step_ms, "ms")
    for name, records in (("10,000 steps recorded", 10_000), ("1,000,000", 1_000_000)):
        yield Figure(
            f"run of a one-node graph, {name}: beyond its compiled loop",
            lambda n=records: run_overhead_ms(n),
            "ms",
        )


def passes(robot: Robot, count: int) -> Callable[[Any, Any], Any]:
    """The first passes of the forward dynamics, and a number that needs all of their results."""

    def run(q: Any, qd: Any) -> Any:
        links = walk(robot.tree, q, qd)
        X, S, masses = joint_frames(links, q), joint_motions(links), felt_moments(links)
        rates, still = links.joint_table(qd), links.joint_table(None)
        found: Any = X
        if count > 1:
            p = needed_wrenches(links, X, S, masses, rates, still, GRAVITY, None)
            found = b = joint_torques(links, X, S, p)
        if count > 2:
            M = lower_triangle(links, X, S, joint_momenta(links, X, S, masses))
            found = b, M
        if count > 3:
            found = solve_ltdl(M, [sub(-robot.friction * v, x) for v, x in zip(rates, b)])
            return jnp.stack(found)
        return sum(x for x in jax.tree.leaves(found) if isinstance(x, jax.Array)) * 1e-9

    return run


def us_a_step(robot: Robot, count: int) -> float:
    """In a loop of its own, as in a run."""
    part = passes(robot, count)

    def step(state: Any, _: None) -> Any:
        q, qd = state
        qd = qd + DT * part(q, qd)
        return (q + DT * qd, qd), None

    @jax.jit
    def loop(q: Any) -> Any:
        return jax.lax.scan(step, (q, jnp.zeros_like(q)), length=STEPS)[0]

    q = jnp.asarray(robot.angles(1)[0])
    jax.block_until_ready(loop(q))
    return 1e6 * best_of(50, [lambda: loop(q)])[0] / STEPS


def operations(robot: Robot) -> float:
    """Additions, products, quotients, sines and cosines."""
    q = jnp.zeros(robot.joints)
    arithmetic = {"add", "sub", "mul", "div", "neg", "sin", "cos"}

    def count(jaxpr: Any) -> int:
        inside = (count(x) for e in jaxpr.eqns for x in jaxprs_in_params(e.params))
        return sum(e.primitive.name in arithmetic for e in jaxpr.eqns) + sum(inside)

    return count(jax.make_jaxpr(passes(robot, len(PASSES)))(q, q).jaxpr)


def final_angles(tau: Any) -> Any:
    robot = robots.ur5()
    simulation = robot.simulation()
    start = simulation.init_state({"arm": {"joint_angles": robot.angles(1)[0]}})
    inputs = {"arm": {"commanded_joint_torques": tau}}
    end, _ = simulation.rollout(start, inputs, STEPS, record=())
    return jnp.sum(end.of("arm")["joint_angles"] ** 2)


def forward_us() -> float:
    return rollout_us(jax.jit(final_angles))


def gradient_us() -> float:
    return rollout_us(jax.jit(jax.grad(final_angles)))


def rollout_us(program: Any) -> float:
    """A step of it, without what calling a compiled program takes."""
    tau, nothing = jnp.zeros(6), jax.jit(lambda x: x + 1.0)
    jax.block_until_ready((program(tau), nothing(tau)))
    whole, call = best_of(50, [lambda: program(tau), lambda: nothing(tau)])
    return 1e6 * (whole - call) / STEPS


def run_overhead_ms(steps: int) -> float:
    """`run` less the same number of steps of `rollout`, which stays in JAX."""
    compiled = graph_overhead.simulation()
    state, inputs, record = compiled.init_state(), graph_overhead.INPUTS, graph_overhead.RECORD
    run = lambda: compiled.run(steps=steps, inputs=inputs, record=record, progress=False)  # noqa: E731
    rollout = lambda: compiled.rollout(state, inputs, steps, record=record)  # noqa: E731
    np.testing.assert_array_equal(run()["rotor"]["speed"], rollout()[1]["rotor"]["speed"])
    a, b = best_of(15, [lambda: run().final_state, rollout])
    return 1e3 * (a - b)
