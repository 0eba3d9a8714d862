"""Motions of an arm as functions of coefficients, and what their torques tell.

    tau = Y(q, q̇, q̈) theta        theta: mass, first moments and inertia of every link (10 each)
    q(t) = q_0 + sum a_k sin(2π k t / T) + b_k (cos(2π k t / T) - 1)

    maximise  log det Vᵀ F V,   F = sum Yᵀ Y / sigma²,   V spans what any motion can tell

The series begin and end at rest, q̇ = q̈ = 0, by a linear condition on a and b. Ranges of joints,
speeds and torques are limits of the optimiser; at the end the motion shrinks until it keeps them.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mime.control.kinematics import KinematicTree
from mime.core.problem import InputError
from mime.fitting.regressor import Chain, moments_of
from mime.optimise.descent import minimise_by, slopes_by_hand
from mime.running.progress import Progress, progress_bar

STANDARD_GRAVITY = (0.0, 0.0, -9.80665)
_ROUNDS, _PASSES = 40, 4
_ROWS_A_PERIOD = 30
"""Of the highest harmonic, in the search, for angles and speeds: between two of them a sine passes
its largest row by at most 0.6 %, which the motion shrinks by at the end."""
_ROWS_OF_TORQUES = 10
"""The same for torques and their information, which costs the time of the search. The sum over the
rows of a periodic function is its integral as soon as rows are closer than its fastest wave."""
_ZERO = 1e-9

Motion = tuple[np.ndarray, np.ndarray, np.ndarray]
"""q, q̇ and q̈, (N, rows) each."""


class Limits(NamedTuple):
    """Of joints (N, 2), and of drives after their gears (N,) each; infinite where there is none."""

    ranges: np.ndarray
    speeds: np.ndarray
    efforts: np.ndarray


@dataclasses.dataclass(frozen=True)
class MotionOutlook:
    """What a motion would tell of the base parameters."""

    log_det: float
    """Of the information; minus infinite where it leaves one open."""
    condition: float
    """Of the regressor over the noise."""
    q: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    """The angles themselves, (rows, N)."""


class Excitation:
    """A motion's coefficients, and what its torques tell."""

    def __init__(
        self,
        tree: KinematicTree,
        period_s: float,
        rows: int,
        harmonics: int,
        sigma: np.ndarray,
        limits: Limits,
    ):
        self.tree, self.sigma, self.limits = tree, sigma, limits
        self.chain = Chain.of(tree, tree.gravity_m_per_s2 or STANDARD_GRAVITY)
        self.theta, self.armature = moments_of(tree), np.asarray(tree.reflected_inertia, float)
        C = tree.drive_coupling
        self.coupling = np.eye(tree.num_joints) if C is None else np.asarray(C, float)
        self.uncoupling = np.linalg.inv(self.coupling)
        self.time_s = period_s * np.arange(rows + 1)  # at rest in the last row too
        self.middle = limits.ranges.mean(axis=1)
        self.half = 0.5 * np.diff(limits.ranges, axis=1)[:, 0]
        self.harmonics, self.waves = harmonics, rest_to_rest(self.time_s, harmonics)
        self.some_waves = self._thinned(_ROWS_A_PERIOD)
        self.few_waves = self._thinned(_ROWS_OF_TORQUES)
        self.space, self.base = self._space()
        self.rank = len(self.base)

    def path(self, x: np.ndarray, waves: Motion) -> Motion:
        """q, q̇, q̈ of coefficients: the middle, then a, b of the series, a joint a row."""
        x = x.reshape(len(self.half), -1)
        middle = self.middle + 0.5 * self.half * np.tanh(x[:, 0])
        q, qd, qdd = (self.half[:, None] * x[:, 1:] @ wave for wave in waves)
        return middle[:, None] + q, qd, qdd

    def _by_coefficients(self, x: np.ndarray, waves: Motion, slopes: Motion) -> np.ndarray:
        """Slopes by the coefficients, from those by q, q̇ and q̈."""
        x = x.reshape(len(self.half), -1)
        series: Any = sum(by @ wave.T for by, wave in zip(slopes, waves, strict=True))
        middle = 0.5 * (1.0 - np.tanh(x[:, 0]) ** 2) * slopes[0].sum(axis=1)
        return (self.half[:, None] * np.column_stack([middle, series])).ravel()

    def torques(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """tau (N, rows)"""
        return self._torques(self.chain.at(q, qd, qdd).Y, qdd)

    def _torques(self, Y: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        return np.tensordot(self.theta, Y, 1) + self.armature @ qdd

    def rows(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Y over the noise, all joints and rows below each other."""
        Y = self.chain.at(q, qd, qdd).Y / self.sigma[:, None]
        return Y.reshape(len(Y), -1).T

    def _space(self) -> tuple[np.ndarray, np.ndarray]:
        """V: what any motion can tell; and as many of the moments that tell all of it.

        From random postures, speeds and accelerations.
        """
        from scipy.linalg import qr

        random = np.random.default_rng(0)
        size = len(self.half), 20 * len(self.half)
        q = self.middle[:, None] + self.half[:, None] * random.uniform(-1.0, 1.0, size)
        Y = self.rows(q, random.normal(0, 3.0, size), random.normal(0, 10.0, size))
        _, s, Vt = np.linalg.svd(Y, full_matrices=False)
        rank = int(np.count_nonzero(s > _ZERO * s.max()))
        _, order = qr(Y, mode="r", pivoting=True)
        return Vt[:rank].T, np.sort(order[:rank])

    def problem(self, x: np.ndarray) -> tuple[float, np.ndarray, Callable[[np.ndarray], Any]]:
        """-log det but for a constant, by which part limits are passed, and the way back.

        With the moments' own columns in the place of V, log det is another by a constant only.
        """
        waves, few = self.some_waves, self.few_waves
        q, qd, _ = self.path(x, waves)
        motion = self.path(x, few)
        seen = self.chain.at(*motion)
        Y = (seen.Y[self.base] / self.sigma[:, None]).transpose(1, 0, 2)
        # A product a joint: of sizes that BLAS does not spread over threads, which would only wait.
        F = np.matmul(Y, Y.transpose(0, 2, 1)).sum(axis=0)
        sign, log_det = np.linalg.slogdet(F)
        parts = (
            (q - self.middle[:, None]) / self.half[:, None],
            self.coupling @ qd / self.limits.speeds[:, None],
            self.uncoupling.T @ self._torques(seen.Y, motion[2]) / self.limits.efforts[:, None],
        )

        def back(by_excess: np.ndarray) -> np.ndarray:
            splits = np.split(by_excess, [parts[0].size, 2 * parts[0].size])
            by_q, by_qd, by_tau = (
                by.reshape(part.shape) * np.sign(part)
                for by, part in zip(splits, parts, strict=True)
            )
            by_tau = self.uncoupling @ (by_tau / self.limits.efforts[:, None])
            by_qd = self.coupling.T @ (by_qd / self.limits.speeds[:, None])
            by_Y = np.multiply.outer(self.theta, by_tau)
            cost = np.matmul(-2.0 * np.linalg.inv(F), Y) / self.sigma[:, None, None]
            by_Y[self.base] += cost.transpose(1, 0, 2)
            slopes = seen.slopes(by_Y)
            slopes = slopes[0], slopes[1], slopes[2] + self.armature @ by_tau
            direct = by_q / self.half[:, None], by_qd, 0.0 * qd
            return self._by_coefficients(x, few, slopes) + self._by_coefficients(x, waves, direct)

        excess = np.concatenate([np.abs(part).ravel() for part in parts]) - 1.0
        return (-log_det if sign > 0 else np.inf), excess, back

    def _thinned(self, rows_a_period: int) -> Motion:
        """The waves in every few rows, at least so many in a period of the fastest."""
        every = max(1, len(self.time_s) // (rows_a_period * self.harmonics))
        q, qd, qdd = (wave[:, ::every] for wave in self.waves)
        return q, qd, qdd

    def best(
        self, count: int, random: np.random.Generator, progress: Progress
    ) -> tuple[np.ndarray, bool]:
        """Coefficients of the best of several descents."""
        terms = 1 + len(self.waves[0])
        x = random.normal(0.0, 0.3 / np.sqrt(terms), (count, len(self.half) * terms))
        slopes, limits = slopes_by_hand(self.problem), len(self.problem(x[0])[1])
        with progress_bar(_ROUNDS * _PASSES, 0, progress) as tell:
            ends = minimise_by(slopes, limits, x, rounds=_ROUNDS, passes=_PASSES, tell=tell)
        found = [*ends.x, *ends.last]  # the last ones are a little beyond, and shrink by that
        dets = [self.outlook(*self.kept(self.path(x, self.waves))).log_det for x in found]
        return found[int(np.argmax(dets))], ends.is_complete

    def outlook(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> MotionOutlook:
        """log det and condition number of a motion."""
        s = np.linalg.svd(self.rows(q, qd, qdd) @ self.space, compute_uv=False)
        if s[-1] <= _ZERO * s[0]:
            return MotionOutlook(-np.inf, np.inf, q.T)
        return MotionOutlook(float(2 * np.sum(np.log(s))), float(s[0] / s[-1]), q.T)

    def reached(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> dict[str, float]:
        """The largest part of each kind of limit."""
        parts = self._used(q, qd, qdd).max(axis=1)
        return {
            name: float(part)
            for name, part in zip(("range", "speed", "torque"), parts, strict=True)
            if part
        }

    def _used(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """The largest parts of range, speed and torque that each joint uses, (3, N)."""
        speeds, tau = self.coupling @ qd, self.uncoupling.T @ self.torques(q, qd, qdd)
        largest = [np.abs(x).max(axis=1) for x in (q - self.middle[:, None], speeds, tau)]
        return np.array(largest) / np.array([self.half, self.limits.speeds, self.limits.efforts])

    def kept(self, motion: Motion) -> Motion:
        """The same motion, smaller about its middle and slower where it passes a limit."""
        q, qd, qdd = motion
        centre = np.clip(q.mean(axis=1), *self.limits.ranges.T)[:, None]
        for _ in range(200):
            used = self._used(q, qd, qdd)
            if used.max() <= 1.0:
                return q, qd, qdd
            factor = max(0.8, 0.999 / float(used.max()))
            # A range is left by one joint; a torque by all that move.
            own = np.where((used[:2].max(axis=0) > 1.0) | (used[2].max() > 1.0), factor, 1.0)
            own = own[:, None]
            q, qd, qdd = centre + own * (q - centre), own * qd, own * qdd
        worst = int(np.argmax(used)) % len(self.half)
        raise InputError(
            f"joint {self.tree.joint_names[worst]!r} passes its limits even when it hardly "
            "moves: its torque does not hold the arm up there",
            place=("torque_limits",),
            label="limits:",
        )

    def others(self) -> dict[str, Motion]:
        """A step there and back, and a chirp, of all joints alike; both begin and end at rest."""
        part = self.time_s / self.time_s[-1]
        there = np.where(part < 0.5, 2 * part, 2 - 2 * part)
        there = there**3 * (10 + there * (6 * there - 15)) - 0.5
        window = np.minimum(1.0, np.minimum(part, 1 - part) * 10)
        window = window**3 * (10 + window * (6 * window - 15))
        chirp = window * np.sin(2 * np.pi * (part + 0.5 * (self.harmonics - 1) * part**2))
        found = {}
        for name, wave in (("step", 1.8 * there), ("chirp", 0.9 * chirp)):
            q = self.middle[:, None] + np.outer(self.half, wave)
            qd = np.gradient(q, self.time_s, axis=1, edge_order=2)
            found[name] = (q, qd, np.gradient(qd, self.time_s, axis=1, edge_order=2))
        return found


def rest_to_rest(time: np.ndarray, harmonics: int) -> Motion:
    """Waves, their first and second derivatives (functions, rows), with q̇ = q̈ = 0 at both ends."""
    from scipy.linalg import null_space

    w = 2 * np.pi * np.arange(1, harmonics + 1) / time[-1]
    angles = np.outer(w, time)
    sin, cos = np.sin(angles), np.cos(angles)
    q = np.concatenate([sin, cos])
    qd = np.concatenate([w[:, None] * cos, -w[:, None] * sin])
    qdd = np.concatenate([-(w**2)[:, None] * sin, -(w**2)[:, None] * cos])
    at_rest = np.array([np.append(w, 0 * w), np.append(0 * w, w**2)])
    free = null_space(at_rest / np.abs(at_rest).max(axis=1, keepdims=True))
    return free.T @ q, free.T @ qd, free.T @ qdd
