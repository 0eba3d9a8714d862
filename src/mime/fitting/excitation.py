"""`mime.design_motion`: the motion of an arm that tells most of its base parameters.

    tau = Y(q, q̇, q̈) theta        theta: mass, first moments and inertia of every link (10 each)
    q(t) = q_0 + sum a_k sin(2π k t / T) + b_k (cos(2π k t / T) - 1)

    maximise  log det Vᵀ F V,   F = sum Yᵀ Y / sigma²,   V spans what any motion can tell

The series begin and end at rest, q̇ = q̈ = 0, by a linear condition on a and b. Ranges of joints,
speeds and torques are limits of the optimiser; at the end the motion shrinks until it keeps them.
"""

import dataclasses
import os
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np

from mime._files import write_atomically
from mime.control.kinematics import KinematicTree, rnea
from mime.core.arguments import instance, real, whole
from mime.core.arguments import path as path_of
from mime.core.problem import InputError
from mime.fitting.regressor import moments_of, regressor
from mime.optimise.descent import minimise
from mime.running.progress import Progress, check_progress, progress_bar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STANDARD_GRAVITY = (0.0, 0.0, -9.80665)
_ROUNDS, _PASSES = 40, 4
_ROWS_A_PERIOD = 30
"""Of the highest harmonic, in the search: between two of them a sine passes its largest row by at
most 0.6 %, which the motion shrinks by at the end."""
_ZERO = 1e-9


@dataclasses.dataclass(frozen=True)
class MotionOutlook:
    """What a motion would tell of the base parameters."""

    log_det: float
    """Of the information; minus infinite where it leaves one open."""
    condition: float
    """Of the regressor over the noise."""
    q: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    """The angles themselves, (rows, N)."""


@dataclasses.dataclass(frozen=True)
class MotionDesign:
    """A motion to run: angles, velocities, accelerations and the torques it needs, (rows, N)."""

    joint_names: tuple[str, ...]
    time_s: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    torques: np.ndarray
    """By the robot's own file: what inverse dynamics says, friction apart."""
    rank: int
    """How many base parameters the arm has."""
    outlook: MotionOutlook
    others: Mapping[str, MotionOutlook]
    """A `step` there and back, and a `chirp`, within the same limits."""
    reached: Mapping[str, float]
    """The largest part of each limit that is used: range, speed, torque."""
    is_complete: bool = True

    def narrower(self, other: str) -> float:
        """By which factor intervals are narrower than with `step` or `chirp`, in their mean."""
        gain = self.outlook.log_det - self.others[other].log_det
        return float(np.exp(gain / (2 * self.rank)))

    def __str__(self) -> str:
        lines = [f"{self.rank} base parameters of {len(self.joint_names)} joints"]
        for name, found in {"design": self.outlook, **self.others}.items():
            wider = (
                f", intervals {self.narrower(name):.3g} times as wide"
                if name in self.others
                else ""
            )
            open_ = not np.isfinite(found.log_det)
            words = (
                "leaves some open"
                if open_
                else f"log det {found.log_det:.2f}, condition {found.condition:.3g}{wider}"
            )
            lines.append(f"{name:>8}: {words}")
        used = ", ".join(f"{100 * part:.0f} % of the {name}" for name, part in self.reached.items())
        lines.append(f"uses at most {used}" if used else "no limits")
        if not self.is_complete:
            lines.append("interrupted: the best motion until then")
        return "\n".join(lines)

    def plot(self) -> "Figure":
        """Angles, velocities and torques over time."""
        from mime.fitting.design_page import motion_picture

        return motion_picture(self)

    def report(self) -> str:
        """One HTML page with all of it."""
        from mime.fitting.design_page import motion_page

        return motion_page(self)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write time, angles, velocities, accelerations and torques for the rig."""
        parts = {"q": self.q, "qd": self.qd, "qdd": self.qdd, "tau": self.torques}
        heading = ["time", *(f"{part}_{name}" for part in parts for name in self.joint_names)]
        table = np.column_stack([self.time_s, *parts.values()])

        def write(part: Path) -> None:
            np.savetxt(part, table, "%.9g", ",", header=",".join(heading), comments="")

        write_atomically(path_of("path", path), write)


def design_motion(
    tree: KinematicTree,
    *,
    duration: SupportsFloat,
    period: SupportsFloat,
    noise: Any,
    position_limits: Any = None,
    velocity_limits: Any = None,
    torque_limits: Any = None,
    harmonics: SupportsIndex = 5,
    starts: SupportsIndex = 3,
    seed: SupportsIndex = 0,
    progress: Progress = False,
) -> MotionDesign:
    """The motion within limits that tells most of an arm's base parameters from its torques.

    duration, period    seconds of the motion, and from row to row of its log
    noise               of the torque sensors, N·m (N of a slider): one for all, or one a joint
    position_limits     (N, 2), velocity_limits, torque_limits (N,): by default the robot's own.
                        A joint without a range keeps within half a turn of 0
    harmonics           of 1 / duration
    starts, seed        how many motions it starts from, and what draws them
    progress            as in `Simulation.run`; Ctrl-C ends it with the best so far
    """
    instance("tree", tree, KinematicTree)
    if tree.base != "fixed":
        raise InputError("tree: its root floats; a motion is designed for an arm that stands")
    check_progress(progress)
    period_s = real("period", period, "s", above=0)
    rows = whole("rows", round(real("duration", duration, "s", above=0) / period_s), 20, 1_000_000)
    most = whole("harmonics", harmonics, 2, rows // 4)
    count, random = whole("starts", starts, 1, 1000), np.random.default_rng(whole("seed", seed))
    n = tree.num_joints
    sigma = _per_joint("noise", noise, n)
    ranges = np.asarray(tree.joint_limits if position_limits is None else position_limits, float)
    if ranges.shape != (n, 2) or np.any(ranges[:, 0] >= ranges[:, 1]):
        raise InputError(
            f"position_limits must be (lower, upper) of {n} joints, the first below the second; "
            f"got {ranges.tolist()}",
            place=("position_limits",),
        )
    speeds = tree.velocity_limits if velocity_limits is None else velocity_limits
    efforts = tree.effort_limits if torque_limits is None else torque_limits
    with jax.enable_x64(True):
        plan = Excitation(
            tree,
            period_s,
            rows,
            most,
            sigma,
            np.clip(ranges, -np.pi, np.pi),
            _per_joint("velocity_limits", speeds, n),
            _per_joint("torque_limits", efforts, n),
        )
        best, is_complete = plan.best(count, random, progress)
        others = {name: plan.outlook(*plan.kept(*path)) for name, path in plan.others().items()}
        q, qd, qdd = plan.kept(*plan.path(best))
        return MotionDesign(
            tree.joint_names,
            plan.time_s,
            q,
            qd,
            qdd,
            np.asarray(plan.torques(q, qd, qdd)),
            plan.space.shape[1],
            plan.outlook(q, qd, qdd),
            others,
            plan.reached(q, qd, qdd),
            is_complete,
        )


def _per_joint(name: str, given: Any, count: int) -> np.ndarray:
    values = np.asarray(given, float)
    if values.shape not in ((), (count,)) or np.any(np.isnan(values)) or np.any(values <= 0):
        raise InputError(
            f"{name} must be a number > 0, or {count} of them, one a joint; got {values.tolist()}",
            place=(name,),
        )
    return np.broadcast_to(values, (count,))


class Excitation:
    """Motions of an arm as functions of coefficients, and what their torques tell."""

    def __init__(
        self,
        tree: KinematicTree,
        period_s: float,
        rows: int,
        harmonics: int,
        sigma: np.ndarray,
        ranges: np.ndarray,
        speeds: np.ndarray,
        efforts: np.ndarray,
    ):
        self.tree, self.sigma = tree, sigma
        self.gravity = np.asarray(tree.gravity_m_per_s2 or STANDARD_GRAVITY)
        self.time_s = period_s * np.arange(rows + 1)  # at rest in the last row too
        self.middle, self.half = ranges.mean(axis=1), 0.5 * np.diff(ranges, axis=1)[:, 0]
        self.ranges, self.speeds, self.efforts = ranges, speeds, efforts
        self.waves = rest_to_rest(self.time_s, rows * period_s, harmonics)
        self.every = max(1, rows // (_ROWS_A_PERIOD * harmonics))
        self.theta = moments_of(tree)
        self.space = self._space()

    def path(self, x: Any, every: int = 1) -> tuple[Any, Any, Any]:
        """q, q̇, q̈ (rows, N) of coefficients: the middle, then a, b of the series, a joint a row."""
        xp: Any = np if isinstance(x, np.ndarray) else jnp
        x = x.reshape(len(self.half), -1)
        middle = self.middle + 0.5 * self.half * xp.tanh(x[:, 0])
        q, qd, qdd = (wave[:, ::every].T @ (self.half[:, None] * x[:, 1:]).T for wave in self.waves)
        return middle[None] + q, qd, qdd

    @cached_property
    def torques(self) -> Callable[..., Any]:
        """tau of every row."""
        return jax.jit(self._torques)

    def _torques(self, q: Any, qd: Any, qdd: Any) -> Any:
        def one(q: Any, qd: Any, qdd: Any) -> Any:
            return rnea(self.tree, q, qd, qdd, self.gravity)

        return jax.vmap(one)(q, qd, qdd)

    def rows(self, q: Any, qd: Any, qdd: Any) -> Any:
        """Y over the noise, all rows and joints below each other."""
        Y = regressor(self.tree, q, qd, qdd, self.gravity) / self.sigma[None, :, None]
        return Y.reshape(-1, Y.shape[-1])

    @cached_property
    def _rows(self) -> Callable[..., Any]:
        return jax.jit(self.rows)

    def _space(self) -> np.ndarray:
        """V: what any motion can tell, from random postures, speeds and accelerations."""
        random = np.random.default_rng(0)
        size = len(self.time_s), len(self.half)
        q = self.middle + self.half * random.uniform(-1.0, 1.0, size)
        Y = np.asarray(self._rows(q, random.normal(0, 3.0, size), random.normal(0, 10.0, size)))
        triangle: Any = np.linalg.qr(Y, mode="r")
        _, s, Vt = np.linalg.svd(triangle)
        return np.asarray(Vt[: int(np.count_nonzero(s > _ZERO * s.max()))].T)

    def used(self, q: Any, qd: Any, torques: Any) -> Any:
        """Parts of the limits that each joint uses in every row: range, speed, torque."""
        parts = [
            jnp.abs(q - self.middle[None]) / self.half[None],
            jnp.abs(qd) / self.speeds[None],
            jnp.abs(torques) / self.efforts[None],
        ]
        return jnp.concatenate(parts, axis=1)

    def problem(self, x: Any) -> tuple[Any, Any]:
        """-log det, and by which part limits are passed, of every few rows."""
        q, qd, qdd = self.path(x, self.every)
        Y = self.rows(q, qd, qdd)
        tau = self.sigma[None] * (Y @ self.theta).reshape(q.shape)
        tau = tau + np.asarray(self.tree.armature)[None] * qdd
        Y = Y @ self.space
        return -jnp.linalg.slogdet(Y.T @ Y)[1], self.used(q, qd, tau).ravel() - 1.0

    def best(
        self, count: int, random: np.random.Generator, progress: Progress
    ) -> tuple[np.ndarray, bool]:
        """Coefficients of the best of several descents."""
        terms = 1 + len(self.waves[0])
        x = random.normal(0.0, 0.3 / np.sqrt(terms), (count, len(self.half) * terms))
        with progress_bar(_ROUNDS * _PASSES, 0, progress) as tell:
            ends = minimise(self.problem, x, rounds=_ROUNDS, passes=_PASSES, tell=tell)
        found = [(self.outlook(*self.kept(*self.path(x))).log_det, x) for x in ends.x]
        return max(found, key=lambda pair: pair[0])[1], ends.is_complete

    def outlook(self, q: Any, qd: Any, qdd: Any) -> MotionOutlook:
        """log det and condition number of a motion."""
        s = np.linalg.svd(np.asarray(self._rows(q, qd, qdd)) @ self.space, compute_uv=False)
        if s[-1] <= _ZERO * s[0]:
            return MotionOutlook(-np.inf, np.inf, q)
        return MotionOutlook(float(2 * np.sum(np.log(s))), float(s[0] / s[-1]), q)

    def reached(self, q: Any, qd: Any, qdd: Any) -> dict[str, float]:
        """The largest part of each kind of limit."""
        parts = self._most(q, qd, qdd).reshape(3, -1)
        names = ("range", "speed", "torque")
        return {
            name: float(part.max()) for name, part in zip(names, parts, strict=True) if part.any()
        }

    def _most(self, q: Any, qd: Any, qdd: Any) -> np.ndarray:
        return np.asarray(self.used(q, qd, self.torques(q, qd, qdd))).max(axis=0)

    def kept(self, q: Any, qd: Any, qdd: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same motion, smaller about its middle and slower where it passes a limit."""
        start = q.mean(axis=0)
        centre = np.clip(start, *self.ranges.T)
        for _ in range(200):
            parts = self._most(q, qd, qdd)
            if parts.max() <= 1.0:
                return np.asarray(q), np.asarray(qd), np.asarray(qdd)
            n, factor = len(self.half), max(0.8, 0.999 / float(parts.max()))
            # A range is left by one joint; a torque by all that move.
            own = np.where(parts[: 2 * n].reshape(2, n).max(axis=0) > 1.0, factor, 1.0)
            own = own if parts[2 * n :].max() <= 1.0 else np.full(n, factor)
            q, qd, qdd = centre + own * (q - centre), own * qd, own * qdd
        worst = int(np.argmax(parts)) % len(self.half)
        raise InputError(
            f"limits: joint {self.tree.joint_names[worst]!r} passes its limits even when it hardly "
            "moves: its torque does not hold the arm up there",
            place=("torque_limits",),
        )

    def others(self) -> dict[str, tuple[Any, Any, Any]]:
        """A step there and back, and a chirp, of all joints alike; both begin and end at rest."""
        last = self.time_s[-1]
        part = self.time_s / last
        there = np.where(part < 0.5, 2 * part, 2 - 2 * part)
        there = there**3 * (10 + there * (6 * there - 15)) - 0.5
        window = np.minimum(1.0, np.minimum(part, 1 - part) * 10)
        window = window**3 * (10 + window * (6 * window - 15))
        chirp = window * np.sin(2 * np.pi * (part + 0.5 * (len(self.waves[0]) / 2) * part**2))
        found = {}
        for name, wave in (("step", 1.8 * there), ("chirp", 0.9 * chirp)):
            q = self.middle + np.outer(wave, self.half)
            qd = np.gradient(q, self.time_s, axis=0, edge_order=2)
            found[name] = (q, qd, np.gradient(qd, self.time_s, axis=0, edge_order=2))
        return found


def rest_to_rest(time: np.ndarray, duration: float, harmonics: int) -> Any:
    """Waves, their first and second derivatives (functions, rows), with q̇ = q̈ = 0 at both ends."""
    from scipy.linalg import null_space

    w = 2 * np.pi * np.arange(1, harmonics + 1) / duration
    angles = np.outer(w, time)
    sin, cos = np.sin(angles), np.cos(angles)
    q = np.concatenate([sin, cos])
    qd = np.concatenate([w[:, None] * cos, -w[:, None] * sin])
    qdd = np.concatenate([-(w**2)[:, None] * sin, -(w**2)[:, None] * cos])
    at_rest = np.array([np.append(w, 0 * w), np.append(0 * w, w**2)])
    free = null_space(at_rest / np.abs(at_rest).max(axis=1, keepdims=True))
    return [free.T @ part for part in (q, qd, qdd)]
