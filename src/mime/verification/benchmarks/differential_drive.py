"""MIME-VER-140 to 143: a rolling differential drive against closed forms and SciPy.

Slipping tyres and walls are in `differential_drive_limits`.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy

from mime.nodes.locomotion.differential_drive import DifferentialDriveNode
from mime.verification.benchmark import Convergence, Measurement, benchmark, largest, scaled
from mime.verification.convergence import order_error
from mime.verification.programs import final_state, rollout

ROLLING = {"wheel_radius_m": 0.0145, "track_width_m": 0.053}
CHASSIS = {"mass_kg": 0.1, "yaw_inertia_kg_m2": 1.3e-4, "wheel_inertia_kg_m2": 2e-6}
R, W = ROLLING.values()
M, IZ, JW = CHASSIS.values()


def kinematic(Drive):
    """Driven by wheel speeds."""
    return Drive("mouse", 1e-3, **ROLLING)


def dynamic(Drive, **changes):
    """Driven by wheel torques."""
    return Drive("mouse", 1e-3, **(ROLLING | CHASSIS | changes), model="dynamic")


def wheel_speeds(v: Any, w: Any) -> dict[str, Any]:
    """The inputs of a kinematic drive that give it a speed and a turn rate."""
    left, right = (v + 0.5 * W * w) / R, (v - 0.5 * W * w) / R
    return {"left_wheel_velocity": left, "right_wheel_velocity": right}


def wheel_torques(left: Any, right: Any) -> dict[str, Any]:
    """The inputs of a dynamic drive."""
    return {"left_wheel_torque": left, "right_wheel_torque": right}


class _SwappedWheels(DifferentialDriveNode):
    """left and right wheel exchanged"""

    def update(self, state: Any, boundary_inputs: Any, dt: Any) -> Any:
        left, right = boundary_inputs.values()
        return super().update(state, dict(zip(boundary_inputs, (right, left))), dt)


@benchmark(140, "Arc, spin and straight line", DifferentialDriveNode, _SwappedWheels)
def arcs(
    Drive,
    *,
    rolling=ROLLING,
    motions=("arc", "arc backwards", "spin", "line"),
    speed_m_per_s=(0.7, -0.4, 0.0, 1.2),
    turn_rate_rad_per_s=(3.0, 11.0, -6.0, 0.0),
    heading_rad=0.3,
    timestep_s=5e-3,
    steps=400,
):
    """x = v/w (sin(theta + w t) - sin theta),   y = v/w (cos theta - cos(theta + w t))

    Reference: Constant v and w: a circle of radius v/w about a point beside the axle, or a line.
    Procedure:
    1. Drive at constant wheel speeds, (v ± W w/2)/r.
    2. Compare position and heading after each step with the closed form.
    Covers: wheel speeds to motion, left and right, forwards and backwards; exact arcs
    Excludes: speeds that vary (MIME-VER-142); torques (MIME-VER-143)
    """
    dt, theta = timestep_s, heading_rad
    t = dt * np.arange(1, steps + 1)
    for name, v, w in zip(motions, speed_m_per_s, turn_rate_rad_per_s):
        start = {"heading": theta}
        ours = rollout(kinematic(Drive), wheel_speeds(v, w), steps, dt=dt, start=start)
        if w == 0:
            x, y = v * t * np.cos(theta), v * t * np.sin(theta)
        else:
            x = v / w * (np.sin(theta + w * t) - np.sin(theta))
            y = v / w * (np.cos(theta) - np.cos(theta + w * t))
        yield Measurement(
            f"error of the position, {name}",
            largest([ours["x"] - x, ours["y"] - y]),
            limit=1e-12,
            unit="m",
            why="400 roundings of 1 m",
        )
        yield Measurement(
            f"error of the heading, {name}",
            largest(ours["heading"] - theta - w * t),
            limit=1e-12,
            unit="rad",
            why="400 roundings of 20 rad",
        )


@benchmark(141, "The circle closes", DifferentialDriveNode, scaled("track_width_m", 1.01))
def circle(
    Drive, *, rolling=ROLLING, speed_m_per_s=0.8, turn_rate_rad_per_s=-7.0, steps=(1, 3, 1000)
):
    """(x, y)(2 π / |w|) = (x, y)(0)

    Reference: After 2 π / |w| the body is back where it began, turned once.
    Procedure: Drive once round in one step, in a few and in many; look at the gap.
    Covers: exact arcs at any step, a full turn in one step included
    Excludes: speeds that vary (MIME-VER-142)
    """
    v, w, start = speed_m_per_s, turn_rate_rad_per_s, {"x": 0.1, "y": 0.2}
    for count in steps:
        dt = 2 * np.pi / abs(w) / count
        end = final_state(kinematic(Drive), wheel_speeds(v, w), count, dt=dt, start=start)
        yield Measurement(
            f"gap, steps: {count}",
            float(np.hypot(end["x"] - start["x"], end["y"] - start["y"])),
            limit=1e-13,
            unit="m",
            why="a rounding of 0.1 m per step",
        )
        yield Measurement(
            f"error of the heading, steps: {count}",
            abs(float(end["heading"]) + 2 * np.pi),
            limit=1e-12,
            unit="rad",
            why="a rounding of 6 rad per step",
        )


class _AlongTheOldHeading(DifferentialDriveNode):
    """each step straight along the heading at its start"""

    def update(self, state: Any, boundary_inputs: Any, dt: Any) -> Any:
        v = 0.5 * R * sum(boundary_inputs.values())
        x = state["x"] + v * dt * jnp.cos(state["heading"])
        y = state["y"] + v * dt * jnp.sin(state["heading"])
        return super().update(state, boundary_inputs, dt) | {"x": x, "y": y}


@benchmark(142, "A clothoid", DifferentialDriveNode, _AlongTheOldHeading)
def clothoid(
    Drive,
    *,
    rolling=ROLLING,
    speed_m_per_s=0.5,
    turn_rate_growth_rad_per_s2=12.0,
    duration_s=1.5,
    steps=(50, 100, 200, 400),
):
    """x + i y = v ∫ e^{i g t²/2} dt

    Reference: SciPy's Fresnel integrals: x + i y = v ∫ e^{i g t²/2} dt.
    Procedure:
    1. Drive at constant speed with the turn rate of each step's middle.
    2. Fit the order of the error of the end point.
    Covers: the order in the step where the turn rate varies
    Excludes: the turn rate's own sampling, which is up to the driver
    """
    v, growth, T = speed_m_per_s, turn_rate_growth_rad_per_s2, duration_s
    scale = np.sqrt(np.pi / growth)
    S, C = scipy.special.fresnel(T / scale)
    errors = []
    for n in steps:
        middle = T / n * (np.arange(n) + 0.5)
        ours = rollout(kinematic(Drive), wheel_speeds(v, growth * middle), n, dt=T / n)
        gap = np.array([ours["x"][-1], ours["y"][-1]]) - v * scale * np.array([C, S])
        errors.append(float(np.hypot(*gap)))
    timesteps = tuple(T / n for n in steps)
    what = "error of the end point (m)"
    yield Convergence("timestep (s)", timesteps, what, {"arcs": tuple(errors)}, 2.0)
    for i in range(3):
        why = "the fourth-order term at the coarser step"
        yield order_error(
            f"order from {steps[i]} to {steps[i + 1]} steps",
            timesteps[i : i + 2],
            errors[i : i + 2],
            2,
            limit=0.02,
            why=why,
        )


@benchmark(
    143, "Chassis under wheel torques", DifferentialDriveNode, scaled("wheel_inertia_kg_m2", 0.5)
)
def chassis(
    Drive,
    *,
    rolling=ROLLING,
    chassis=CHASSIS,
    wheel_torques_n_m=(2e-3, 1.2e-3),
    wheel_radius_ratio=(1.05, 0.97),
    timestep_s=1e-3,
    steps_per_second=(500, 1000, 2000),
):
    """(m + 2 J_w/r²) v' = (tau_l + tau_r)/r,   (Iz + J_w W²/(2 r²)) w' = W (tau_l - tau_r)/(2 r)

    Reference: Constant torques: (m + J_l + J_r) v' + W/2 (J_l - J_r) w' = tau_l/r_l + tau_r/r_r,
    W/2 (J_l - J_r) v' + (Iz + W²/4 (J_l + J_r)) w' = W/2 (tau_l/r_l - tau_r/r_r) with
    J_i = J_w/r_i². Varying torques: SciPy's `solve_ivp`, tolerance 1e-11.
    Procedure:
    1. Drive 300 steps at constant torques; compare velocities with v' t and w' t.
    2. Drive 1 s at sinusoidal torques; compare the end point with SciPy's.
    3. Halve the step twice and fit the order of the error.
    Covers: masses and inertias, wheels of equal and unequal size; the order of a step
    Excludes: slip (MIME-VER-144); rolling resistance (in the tests)
    """
    dt, tau, counts, curves = timestep_s, wheel_torques_n_m, steps_per_second, {}
    timesteps, t = tuple(1.0 / n for n in counts), dt * np.arange(1, 301)
    for name, ratio in (("equal wheels", (1.0, 1.0)), ("unequal wheels", wheel_radius_ratio)):
        node = dynamic(Drive, wheel_radius_ratio=ratio)
        rl, rr = R * np.array(ratio)
        Jl, Jr = JW / rl**2, JW / rr**2
        mass = np.array(
            [[M + Jl + Jr, W / 2 * (Jl - Jr)], [W / 2 * (Jl - Jr), IZ + W**2 / 4 * (Jl + Jr)]]
        )
        by_torque = np.linalg.solve(mass, [[1 / rl, 1 / rr], [W / 2 / rl, -W / 2 / rr]])
        ours = rollout(node, wheel_torques(*tau), len(t), dt=dt)
        v, w = by_torque @ tau
        yield Measurement(
            f"relative error of the velocities, {name}",
            largest([ours["forward_velocity"] / (v * t) - 1, ours["turn_rate"] / (w * t) - 1]),
            limit=1e-12,
            why="300 roundings",
        )
        curves[name] = _path_errors(node, by_torque, counts)
        why = "the second-order term"
        yield order_error(
            f"order of the end point, {name}", timesteps, curves[name], 1, limit=0.1, why=why
        )
    what = "error of the end point (m)"
    yield Convergence("timestep (s)", timesteps, what, curves, 1.0)


def _path_errors(node: Any, by_torque: np.ndarray, counts: tuple[int, ...]) -> tuple[float, ...]:
    def torque(t: Any) -> np.ndarray:
        return np.array([2e-3 * np.sin(9 * t), 1.5e-3 * np.sin(7 * t)])

    def slope(t: float, s: np.ndarray) -> list[float]:
        return [s[3] * np.cos(s[2]), s[3] * np.sin(s[2]), s[4], *(by_torque @ torque(t))]

    solved = scipy.integrate.solve_ivp(slope, (0, 1.0), np.zeros(5), rtol=1e-11, atol=1e-13)
    truth = solved.y[:2, -1]
    errors = []
    for n in counts:
        path = rollout(node, wheel_torques(*torque((np.arange(n) + 0.5) / n)), n, dt=1.0 / n)
        errors.append(float(np.hypot(path["x"][-1] - truth[0], path["y"][-1] - truth[1])))
    return tuple(errors)
