"""Arms, one and many.

Arms that fall from rest in different poses, with viscous friction in their joints; semi-implicit
Euler at 1 ms, each step the forward dynamics and the integration. One robot is `simulation.run`,
many are `simulation.run_batch`. MuJoCo's contacts and limits are switched off. Pinocchio has no
simulation loop: its `aba` is integrated in NumPy. The panda's fingers are held still; the humanoid
is Unitree's G1 with its pelvis fixed.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import peers
import robots
from harness import Case, Peer, Place
from robots import Robot

STEPS = 20_000
"""Of every robot that runs alone: what a call of `run` costs is then spread over as many."""
BATCHES = (1, 16, 256, 1024, 4096, 16_384)
TOLERANCE = 1e-8
"""Of the angles at the end: rounding and its growth over thousands of steps leave 1e-13."""


class Targets(NamedTuple):
    """The largest ours / theirs of one robot, and of many."""

    one: float | None = None
    aba: float | None = None
    rollout: float | None = None


TARGETS = {
    "UR5": Targets(0.1, 0.03, 0.022),
    "panda": Targets(aba=0.06),
    "desktop arm": Targets(aba=0.06),
    "humanoid of 29 joints": Targets(0.3, 0.08, 0.1),
}
"""Of one robot beside MuJoCo's C step, and of `WIDE` of them."""
WIDE = 4096
STOPS, WATCHED = 1.05, 1.1
"""The most that hard stops cost an arm away from them, and that a watched limit does."""


def cases(threads: int) -> Iterator[Case]:
    """Every robot alone, and in batches."""
    for build in (robots.ur5, robots.panda, robots.desktop_arm, robots.humanoid):
        robot = build()
        yield one(robot, TARGETS[robot.name].one)
        for count in BATCHES:
            yield many(robot, count, threads, TARGETS[robot.name] if count == WIDE else Targets())
    yield with_stops(robots.ur5(), threads)
    yield watched(robots.ur5())
    yield watched(robots.humanoid())
    yield beside_mjx(robots.ur5(), threads)


def one(robot: Robot, target: float | None = None) -> Case:
    pinocchio, mujoco = peers.pinocchio_step_alone, peers.mujoco_step_alone
    others = (
        Peer("MuJoCo mj_step, in C", lambda: mujoco(robot, STEPS), TOLERANCE, target),
        Peer("Pinocchio aba, from Python", lambda: pinocchio(robot, STEPS), TOLERANCE),
    )
    ours = lambda: alone(robot, STEPS)  # noqa: E731
    name, quick = f"one {robot.name}, a step", target is not None
    return Case(name, ours, others, STEPS, "step", repeats=15, quick=quick)


def many(robot: Robot, count: int, threads: int, targets: Targets) -> Case:
    steps = max(16, min(1000, 2**18 // count))
    if robot.joints > 10:
        steps = max(16, steps // 4)
    pinocchio, mujoco = peers.pinocchio_steps, peers.mujoco_steps
    others = (
        Peer(
            "Pinocchio abaInParallel",
            lambda: pinocchio(robot, count, steps, threads),
            TOLERANCE,
            targets.aba,
        ),
        Peer(
            "MuJoCo rollout",
            lambda: mujoco(robot, count, steps, threads),
            TOLERANCE,
            targets.rollout,
        ),
    )
    return Case(
        f"{count:,} {robot.name}, a step",
        lambda: batch(robot, count, steps, threads),
        others,
        units=count * steps,
        unit="robot-step",
        repeats=5,
        quick=targets.rollout is not None,
        place=Place("batch", robot.name, count, "robots in the batch"),
    )


def with_stops(robot: Robot, threads: int) -> Case:
    """What hard stops cost that no joint reaches."""
    steps = 64
    peer = Peer("without stops", lambda: batch(robot, WIDE, steps, threads), 0.0, STOPS)
    ours = lambda: batch(robot, WIDE, steps, threads, stop_at_rad=20 * np.pi)  # noqa: E731
    name = f"{WIDE:,} {robot.name} away from their stops, a step"
    return Case(name, ours, (peer,), WIDE * steps, "robot-step", repeats=15, quick=True)


def watched(robot: Robot) -> Case:
    """What it costs to watch the limits of a robot that keeps them."""
    peer = Peer("watch=False", lambda: alone(robot, STEPS, watch=False), 0.0, WATCHED)
    name = f"one {robot.name}, its limits watched, a step"
    return Case(name, lambda: alone(robot, STEPS), (peer,), STEPS, "step", repeats=15, quick=True)


def alone(robot: Robot, steps: int, **options: Any) -> Any:
    simulation = robot.simulation()
    start = {"arm": {"joint_angles": robot.angles(1)[0]}}
    options |= {"initial_state": start, "record": (), "progress": False}
    return lambda: simulation.run(steps=steps, **options).final_state.of("arm")["joint_angles"]


def beside_mjx(robot: Robot, threads: int) -> Case:
    """Few robots and steps: it needs a millisecond for one of each, and a minute to compile."""
    count, steps = 256, 8
    peer = Peer("MJX", lambda: peers.mjx_steps(robot, count, steps), TOLERANCE)
    ours = lambda: batch(robot, count, steps, threads)  # noqa: E731
    return Case(f"{count} {robot.name}, {steps} steps", ours, (peer,), count * steps, "robot-step")


def batch(
    robot: Robot, count: int, steps: int, threads: int, stop_at_rad: float | None = None
) -> Any:
    simulation = robot.simulation(stop_at_rad)
    start = {"arm": {"joint_angles": robot.angles(count)}}
    options = {"initial_state": start, "record": (), "progress": False, "threads": threads}
    run = simulation.run_batch
    return lambda: run(steps=steps, **options).final_state.of("arm")["joint_angles"]
