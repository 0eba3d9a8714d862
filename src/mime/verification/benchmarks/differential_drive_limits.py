"""MIME-VER-144 and 145: tyres that slip, walls that stop."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.mouse.body import OUTLINE_M
from mime.nodes.locomotion.differential_drive import DifferentialDriveNode
from mime.verification.benchmark import Measurement, benchmark, largest, scaled
from mime.verification.benchmarks.differential_drive import (
    CHASSIS,
    JW,
    ROLLING,
    M,
    R,
    dynamic,
    wheel_torques,
)
from mime.verification.programs import quick_jit, rollout

G = 9.80665


@benchmark(
    144, "Slip limit of the tyres", DifferentialDriveNode, scaled("friction_coefficient", 1e3)
)
def slip(Drive, *, body=ROLLING | CHASSIS, friction_coefficient=(0.1, 1.0, 2.0), timestep_s=1e-3):
    """v' = mu g,   J_w w_i' = tau - mu m g r/2   beyond the limit;   r w_i = v below it

    Reference: Coulomb's law at two tyres that share the weight: they hold while
    tau <= mu m g r/2 (1 + 2 J_w/(m r²)), and give mu m g/2 each beyond.
    Procedure:
    1. Drive at three times the torque of the limit for 100 steps: speeds in closed form.
    2. Drive at 0.999 and 1.001 of it for 10 steps: no slip, and slip.
    Covers: where tyres let go, and what they give then, straight ahead
    Excludes: sideways slip and the friction circle (in the tests)
    """
    t = timestep_s * np.arange(1, 101)
    for mu in friction_coefficient:
        node = dynamic(Drive, friction_coefficient=mu)

        def push(torque, steps, node=node):
            return rollout(node, wheel_torques(torque, torque), steps, dt=timestep_s)

        stuck = mu * M * G / 2 * R * (1 + 2 * JW / R**2 / M)  # the torque at which tyres let go
        states = push(3 * stuck, len(t))
        spin = (3 * stuck - mu * M * G / 2 * R) / JW
        speeds = {"forward_velocity": mu * G * t, "left_wheel_velocity": spin * t}
        yield Measurement(
            f"relative error of body and wheel speed beyond the limit, mu = {mu:g}",
            largest([states[name] / truth - 1 for name, truth in speeds.items()]),
            limit=1e-12,
            why="100 roundings",
        )
        below, above = (push(share * stuck, 10) for share in (0.999, 1.001))
        wrong = [np.sum(states["slipping"] != 1), np.sum(above["slipping"] != 1)]
        yield Measurement(
            f"steps of 120 whose `slipping` is wrong, mu = {mu:g}",
            float(sum(wrong) + np.sum(below["slipping"] != 0)),
            limit=0.0,
            why="none",
        )
        held, slid = (R * s["left_wheel_velocity"] - s["forward_velocity"] for s in (below, above))
        yield Measurement(
            f"slip below the limit, mu = {mu:g}",
            largest(held),
            limit=1e-15,
            unit="m/s",
            why="a rounding of 0.1 m/s",
        )
        yield Measurement(
            f"least slip beyond the limit, mu = {mu:g}",
            float(np.min(slid)),
            limit=1e-9,
            unit="m/s",
            at_least=True,
            why="0.001 of the torque speeds the wheel up by some 1e-6 m/s in a step",
        )


CELL, HALF = 0.18, 0.006
SHRUNK = 3e-3


def solid(horizontal: np.ndarray, vertical: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """True for points in a wall or post: by brute force over all of them."""
    inside = np.zeros(np.shape(x), bool)
    rows, cols = vertical.shape[0], horizontal.shape[1]
    # Of a wall's two sides one is as long as a cell and its posts, the other as thick as a post.
    post_x, post_y = (_strips(p, n + 1, 0) for p, n in ((x, cols), (y, rows)))
    wall_x, wall_y = (_strips(p, n, 1) for p, n in ((x, cols), (y, rows)))
    for j in range(rows + 1):
        for i in range(cols + 1):
            inside |= post_x[i] & post_y[j]
            if i < cols and horizontal[j, i]:
                inside |= wall_x[i] & post_y[j]
            if j < rows and vertical[j, i]:
                inside |= post_x[i] & wall_y[j]
    return inside


def _strips(p: np.ndarray, count: int, cells: int) -> list[np.ndarray]:
    """Which points lie between the lines i and i + cells, half a wall more on both sides."""
    return [(p > i * CELL - HALF) & (p < (i + cells) * CELL + HALF) for i in range(count)]


@partial(quick_jit, static_argnames="steps")
def _crash(node: DifferentialDriveNode, v: Any, dt: Any, each: Any, *, steps: int) -> Any:
    """The states of many mice, each in its own maze, with its own start."""

    def one(
        horizontal: Any, vertical: Any, column: Any, row: Any, heading: Any, course: Any, w: Any
    ) -> Any:
        mouse = node.with_params(horizontal_walls=horizontal, vertical_walls=vertical)
        state = mouse.state_at(column, row, heading) | {
            "forward_velocity": v * jnp.cos(course),
            "lateral_velocity": v * jnp.sin(course),
            "turn_rate": w,
        }

        def step(state: dict, _: None) -> tuple[dict, dict]:
            state = mouse.update(state, wheel_torques(3e-3, 3e-3), dt)
            kept = ("x", "y", "heading", "penetration", "contact_force")
            return state, {name: state[name] for name in kept}

        return jax.lax.scan(step, state, None, length=steps)[1]

    return jax.vmap(one)(*each)


@benchmark(
    145,
    "Nothing tunnels through walls",
    DifferentialDriveNode,
    scaled("wall_stiffness_n_per_m", 1e-3),
    kind="independent code",
)
def tunnelling(
    Drive,
    *,
    body=ROLLING | CHASSIS,
    friction_coefficient=1.0,
    wall_stiffness_n_per_m=5e4,
    mice=512,
    probability_of_an_inner_wall=0.4,
    speed_m_per_s=3.0,
    largest_turn_rate_rad_per_s=20.0,
    timestep_s=1e-3,
    steps=150,
):
    """depth < 3 mm,   at v dt = 3 mm and walls of 12 mm

    Reference: Brute force: the body's outline, sampled every 2 mm, against every wall and post. The
    axle's midpoint moves 3 mm per step at most, and a wall is 12 mm thick.
    Procedure:
    1. Start each mouse in a maze of 3 x 3 cells of its own, anywhere in a cell, in any direction,
       spinning (seed 7).
    2. After each step, look whether the body, shrunk by 3 mm, overlaps a wall.
    Covers: walls and posts hit by sides and corners at any angle
    Excludes: the force of a crash; mice thinner than a step
    """
    rng, w = np.random.default_rng(7), largest_turn_rate_rad_per_s
    share = probability_of_an_inner_wall
    horizontal = (rng.uniform(size=(mice, 4, 3)) < share).astype(float)
    vertical = (rng.uniform(size=(mice, 3, 4)) < share).astype(float)
    horizontal[:, [0, -1]], vertical[:, :, [0, -1]] = 1.0, 1.0
    walls = {"horizontal_walls": horizontal[0], "vertical_walls": vertical[0]}
    walls |= {"wall_stiffness_n_per_m": wall_stiffness_n_per_m, "outline_m": OUTLINE_M}
    node = dynamic(Drive, friction_coefficient=friction_coefficient, **walls)
    place = rng.integers(0, 3, (2, mice)) + 0.5 + rng.uniform(-0.12, 0.12, (2, mice))
    heading, course = rng.uniform(-np.pi, np.pi, (2, mice))
    each = (horizontal, vertical, *place, heading, course, rng.uniform(-w, w, mice))
    states = _crash(node, speed_m_per_s, timestep_s, each, steps=steps)
    states = {name: np.asarray(values) for name, values in states.items()}
    outline = np.asarray(OUTLINE_M)
    edges = np.linspace(outline, np.roll(outline, -1, axis=0), 40).reshape(-1, 2)
    edges *= (1 - SHRUNK / np.max(np.abs(outline), axis=0))[None, :]
    inside = 0
    for k in range(mice):
        c, s = np.cos(states["heading"][k])[:, None], np.sin(states["heading"][k])[:, None]
        x = states["x"][k][:, None] + edges[:, 0] * c - edges[:, 1] * s
        y = states["y"][k][:, None] + edges[:, 0] * s + edges[:, 1] * c
        inside += int(np.sum(solid(horizontal[k], vertical[k], x, y)))
    yield Measurement(
        "points of the shrunk outlines in walls", float(inside), limit=0.0, why="none, at any step"
    )
    yield Measurement(
        "largest depth that the node reports",
        largest(states["penetration"]),
        limit=SHRUNK,
        unit="m",
        why="a quarter of a wall: half the way of a step, and what the spring gives",
    )
    yield Measurement(
        "share of mice that met a wall",
        float(np.mean(np.max(states["contact_force"], axis=1) > 0)),
        limit=0.95,
        at_least=True,
        why="else nothing was tried",
    )
