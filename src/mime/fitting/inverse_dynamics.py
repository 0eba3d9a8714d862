"""Parameters of an arm from joint angles and torques: `mime.fit(..., by="inverse_dynamics")`.

    minimise over theta and the motion c   sum |tau(c, theta) - tau_measured|² / sigma_tau²
                                         + sum |q(c) - q_measured|² / sigma_q²

An arm that is controlled cannot be simulated from its torques: any error drifts away. Its motion is
measured, though, and torques are linear in the moments of bodies, in friction and in armatures.
Accelerations are the second derivative of a spline through the encoders, and their errors are no
small matter; so the motion is an unknown of the fit as well. Its part of the normal equations is
banded, and is eliminated:

    F = Yᵀ Y - Yᵀ G (Gᵀ G + Bᵀ B)⁻¹ Gᵀ Y       Y = ∂tau/∂theta, G = ∂tau/∂c, B = ∂q/∂c, whitened
"""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np

from mime.fitting.bounded import Region
from mime.fitting.motion import DEGREE
from mime.fitting.parameters import Told, assembled
from mime.fitting.rank import upper_triangle
from mime.fitting.torques import Run, joint_of
from mime.fitting.unknown import Which
from mime.native.folding import jit_folding
from mime.native.members import OverMembers
from mime.nodes.actuation.robot_arm.inverse import commanded_torques
from mime.running.simulation import Simulation

_ROUNDS = 25
_SETTLED, _QUIET = 1e-2, 1e-3
"""A round has arrived when it moves values by less than the first part of their standard deviations
(root mean square), and noises by less than the second of theirs."""
_ZERO = 1e-9
"""Singular values of Y below this part of the largest are rounding: the null space is exact."""
_PROBES = 8
_HALVINGS = 8
"""Of a step that friction by load has led astray: all else that torques depend on is linear, or
nearly, and takes whole steps."""
_WINDOW_S, _FEWEST = 0.5, 6
"""Length of the windows that intervals are made of, and the fewest of all logs."""
_NEAR = DEGREE + 1


@dataclasses.dataclass(frozen=True, eq=False)
class TorqueModel:
    """Torques of an arm as a function of what is told, u, and of its motion."""

    simulation: Simulation
    arm: str
    shown: Told
    """All coordinates are linear: value / scale."""

    @property
    def columns(self) -> dict[tuple[str, str], int]:
        """Where a sensor's delay, offset and gain are among the coordinates."""
        return {(c.kind, c.key[0]): j for j, c in enumerate(self.shown.coordinates)}

    @cached_property
    def _program(self) -> OverMembers:
        return OverMembers(_torques_and_slopes, self.simulation)

    def rows(self, u: np.ndarray, motion: np.ndarray) -> tuple[np.ndarray, ...]:
        """tau (rows, n) of q, q̇, q̈ (rows, 3, n); its slopes (unknowns, rows, n), (3 n, rows, n).

        A program is shared by all models of one structure, whatever the numbers of their unknowns.
        """
        shown = self.shown.coordinates
        values = np.array([c.value(x) for c, x in zip(shown, u, strict=True)])
        tau, (Y, G) = self._program(
            motion,
            values,
            members=len(motion),
            arm=self.arm,
            unknowns=tuple(Which(c.kind, c.key) for c in shown),
        )
        Y = Y * np.array([c.scale for c in shown])
        G = G.reshape(*tau.shape, -1)
        return tau, np.moveaxis(Y, 2, 0), np.moveaxis(G, 2, 0)


def _torques(
    simulation: Simulation, values: Any, row: Any, arm: str, unknowns: Sequence[Which]
) -> Any:
    """tau (n,) of q, q̇, q̈ (3, n)."""
    parameters = assembled(simulation, unknowns, values)
    node: Any = simulation.with_parameters(parameters).nodes[arm]
    return commanded_torques(node, row[0], row[1], row[2])


@partial(jit_folding, static_argnames=("arm", "unknowns"))
def _torques_and_slopes(
    simulation: Simulation, row: Any, values: Any, *, arm: str, unknowns: Sequence[Which]
) -> Any:
    """tau, and its slopes by the values of all unknowns and by the motion."""

    def torques(values: Any, row: Any) -> Any:
        return _torques(simulation, values, row, arm, unknowns)

    return torques(values, row), jax.jacrev(torques, (0, 1))(values, row)


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one torque sensor in one run, linearised."""

    field: str
    time_s: np.ndarray
    left: np.ndarray
    """Reading less what was measured."""
    Y: np.ndarray
    """(rows, unknowns)"""
    first: np.ndarray
    """The first coefficient of the motion that a row depends on."""
    G: np.ndarray
    """(rows, 6 joints): by the six coefficients of every joint from there on."""


def linearised(model: TorqueModel, run: Run, u: Any) -> list[Rows]:
    """All torque sensors of a run, at u and at the run's motion."""
    found, columns = [], model.columns
    evaluated: dict[bytes, tuple[np.ndarray, ...]] = {}
    coordinates = model.shown.coordinates
    for sensor in run.experiment.sensors:
        at = {kind: columns.get((kind, sensor.field)) for kind in ("delay", "offset", "gain")}
        amount = {k: float(coordinates[j].value(u[j])) for k, j in at.items() if j is not None}
        time = sensor.positions * run.experiment.period_s - amount.get("delay", 0.0)
        first, basis = run.motion.basis(time)
        motion = run.motion.at(time)
        if (key := time.tobytes()) not in evaluated:  # sensors that are not late share it
            evaluated[key] = model.rows(u, motion[:, :3])
        tau, Y, slope = (part[..., joint_of(sensor.place)].T for part in evaluated[key])
        slope, Y = slope.reshape(len(time), 3, -1), np.array(Y)
        gain = amount.get("gain", 1.0)
        G = gain * np.einsum("tdj,tdk->tkj", slope, basis[:, :3])
        Y *= gain
        if (j := at["delay"]) is not None:
            Y[:, j] = -gain * np.einsum("tdj,tdj->t", slope, motion[:, 1:]) * coordinates[j].scale
        if (j := at["offset"]) is not None:
            Y[:, j] = coordinates[j].scale
        if (j := at["gain"]) is not None:
            Y[:, j] = tau * coordinates[j].scale
        left = gain * tau + amount.get("offset", 0.0) - sensor.measured
        found.append(Rows(sensor.field, time, left, Y, first, G.reshape(len(time), -1)))
    return found


class Normal:
    """The normal equations of one run in its motion and the unknowns, the motion eliminated."""

    def __init__(self, run: Run, rows: Sequence[Rows], noise: Mapping[str, float], count: int):
        from scipy.linalg import cholesky_banded

        n = run.angles.shape[1]
        size, width = run.motion.count * n, _NEAR * n
        self.band, self.across = np.zeros((width, size)), np.zeros((size, count))
        self.slope_c, self.slope_u, self.direct = np.zeros(size), np.zeros(count), 0.0
        weight = run.motion.noise**-2.0
        first, basis = run.motion.basis(run.time_s)
        off = run.motion.at(run.time_s)[:, 0] - run.angles
        for f, here in _pieces(first):
            B, near = basis[here, 0], slice(f * n, f * n + width)
            self._add(f * n, np.kron(B.T @ B, np.diag(weight)))
            self.slope_c[near] += ((B.T @ off[here]) * weight).ravel()
        for part in rows:
            w = noise[part.field] ** -2.0
            self.direct = self.direct + w * part.Y.T @ part.Y
            self.slope_u += w * part.Y.T @ part.left
            for f, here in _pieces(part.first):
                G, near = part.G[here], slice(f * n, f * n + width)
                self._add(f * n, w * G.T @ G)
                self.across[near] += w * G.T @ part.Y[here]
                self.slope_c[near] += w * G.T @ part.left[here]
        # A coefficient that nothing measures (rows are missing there) stays where it is.
        self.band[0] += 1e-12 * self.band[0].max()
        self.factor = cholesky_banded(self.band, lower=True)
        self.solved = self.solve(self.across)
        self.information = self.direct - self.across.T @ self.solved
        self.slope = self.slope_u - self.solved.T @ self.slope_c
        self._angles = run.time_s, first, basis[:, 0], off, 1.0 / run.motion.noise

    def _add(self, at: int, block: np.ndarray) -> None:
        for d in range(len(block)):
            self.band[d, at : at + len(block) - d] += np.diagonal(block, -d)

    def solve(self, right: np.ndarray) -> Any:
        """(Gᵀ G + Bᵀ B)⁻¹ right"""
        from scipy.linalg import cho_solve_banded

        return cho_solve_banded((self.factor, True), right)

    def motion_step(self, step: np.ndarray) -> np.ndarray:
        """What the motion changes by, when the unknowns change by `step`."""
        return -np.asarray(self.solve(self.slope_c)) - self.solved @ step

    def windows(
        self, parts: Sequence[Rows], noise: Mapping[str, float], ends: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """R_i and slope of each window, the motion eliminated: their sums are those of all.

        M Y with M = 1 - J (Jᵀ J)⁻¹ Jᵀ, J by the motion, row by row: F = (M Y)ᵀ (M Y).
        """
        n, count = self.band.shape[0] // _NEAR, self.across.shape[1]
        found: list[list[np.ndarray]] = [[] for _ in ends]
        slopes = np.zeros((len(ends), count))

        def add(time: np.ndarray, own: np.ndarray, left: np.ndarray) -> None:
            edges = np.searchsorted(time, [-np.inf, *ends[:-1], np.inf])
            for i, (a, b) in enumerate(itertools.pairwise(edges)):
                found[i].append(own[a:b])
                slopes[i] += own[a:b].T @ left[a:b]

        for part in parts:
            own = part.Y.copy()
            for f, here in _pieces(part.first):
                own[here] -= part.G[here] @ self.solved[f * n : f * n + self.band.shape[0]]
            add(part.time_s, own / noise[part.field], part.left / noise[part.field])
        time, first, basis, off, weight = self._angles
        own = np.empty((len(time), n, count))
        for f, here in _pieces(first):
            near = self.solved[f * n : f * n + self.band.shape[0]].reshape(_NEAR, n * count)
            own[here] = -(basis[here] @ near).reshape(-1, n, count)
        for j in range(n):
            add(time, own[:, j] * weight[j], off[:, j] * weight[j])
        triangles = [upper_triangle(np.concatenate(rows)) for rows in found]
        return list(zip(triangles, slopes, strict=True))

    def share(self, part: Rows, weight: float, back: np.ndarray, random: Any) -> float:
        """tr(J_s A⁻¹ J_sᵀ) / sigma_s²: how many unknowns a sensor's rows have fitted, by probes.

        A⁻¹ of motion and unknowns together, from its Schur complement's inverse `back`.
        """
        n = self.band.shape[0] // _NEAR
        near = part.first[:, None] * n + np.arange(self.band.shape[0])
        total = 0.0
        for _ in range(_PROBES):
            v = random.choice([-1.0, 1.0], len(part.left))
            right = np.zeros(self.band.shape[1])
            np.add.at(right, near, part.G * v[:, None])
            x = np.asarray(self.solve(right))
            y = back @ (part.Y.T @ v - self.across.T @ x)
            x = x - self.solved @ y
            total += weight * float(v @ (np.sum(part.G * x[near], axis=1) + part.Y @ y))
        return total / _PROBES


@dataclasses.dataclass(frozen=True, eq=False)
class Found:
    """The minimum: u, the motions, the noise, and the information on u as R with Rᵀ R = F."""

    u: np.ndarray
    runs: list[Run]
    rows: list[list[Rows]]
    noise: dict[str, float]
    R: np.ndarray
    rounds: int
    price: float
    """What it costs in |r|² that bodies must exist."""
    windows: list[np.ndarray]
    """R_i of each window of the logs: the sum of all R_iᵀ R_i, and of what is known beforehand, is
    Rᵀ R."""
    slopes: list[np.ndarray]
    held: np.ndarray
    """Rows of what is known beforehand."""


def solve(
    model: TorqueModel,
    runs: Sequence[Run],
    given: Mapping[str, float],
    stds: np.ndarray,
    region: Region,
    tell: Callable[[int], None] = lambda done: None,
) -> Found:
    """Gauss-Newton on the unknowns and on all motions, with the noise that follows.

    given    sigma of the sensors whose noise is known
    stds     what is known of u beforehand: its standard deviation, infinite where nothing is
    region   where u can be: every round ends there
    """
    u, start, runs = region.start, region.start, list(runs)
    rows = [linearised(model, run, u) for run in runs]
    noise = _first_noise(rows, runs) | dict(given)
    prior = np.where(np.isfinite(stds), 1.0 / stds, 0.0)
    W, aim, count = np.zeros((0, len(u))), u, 0

    def known(u: np.ndarray) -> float:
        return float(np.sum((prior * (u - start)) ** 2)) + region.known(u)

    for count in range(1, _ROUNDS + 1):
        V = _row_space(rows, noise, prior)
        parts = [Normal(r, f, noise, len(u)) for r, f in zip(runs, rows, strict=True)]
        F = sum((p.information for p in parts), np.diag(prior**2))
        slope = sum((p.slope for p in parts), prior**2 * (u - start))
        R, inverse = _root(V.T @ F @ V)
        W, back = R @ V.T, V @ inverse @ inverse.T @ V.T
        aim = u - back @ slope
        step = region.least(W, aim, None if count == 1 else u) - u
        moves = [part.motion_step(step) for part in parts]
        cost = _cost(runs, rows, noise) + known(u)
        for share in 0.5 ** np.arange(_HALVINGS):
            ahead = u + share * step
            moved = [run.moved(share * move) for run, move in zip(runs, moves, strict=True)]
            there = [linearised(model, run, ahead) for run in moved]
            if _cost(moved, there, noise) + known(ahead) <= cost:
                break
        step, u, runs, rows = share * step, ahead, moved, there
        last, noise = noise, _noise(rows, parts, noise, back) | dict(given)
        tell(count)
        quiet = all(abs(noise[f] / last[f] - 1) < _QUIET for f in noise)
        if quiet and np.linalg.norm(W @ step) < _SETTLED * np.sqrt(len(W) + 1):
            break
    free = region.without_cones.least(W, aim)
    costs = [float(np.sum((W @ (there - aim)) ** 2)) for there in (u, free)]
    of_bodies = [cone.information(len(u)) for cone in region.cones if cone.precision > 0]
    held = np.concatenate([np.diag(prior), *of_bodies])
    pieces = _windows(runs)
    parts = [Normal(r, f, noise, len(u)) for r, f in zip(runs, rows, strict=True)]
    each = [
        window
        for part, f, ends in zip(parts, rows, pieces, strict=True)
        for window in part.windows(f, noise, ends)
    ]
    return Found(
        u,
        runs,
        rows,
        noise,
        upper_triangle(np.concatenate([R for R, _ in each] + [held])),
        count,
        costs[0] - costs[1],
        [R for R, _ in each],
        [slope for _, slope in each],
        held,
    )


def _windows(runs: Sequence[Run]) -> list[np.ndarray]:
    """The ends of the windows of each run, in seconds: equally long, half a second or so."""
    lengths = np.array([run.time_s[-1] - run.time_s[0] for run in runs])
    pieces = np.maximum(1, np.round(lengths / _WINDOW_S).astype(int))
    while pieces.sum() < _FEWEST:
        pieces[np.argmax(lengths / pieces)] += 1
    return [
        np.linspace(run.time_s[0], run.time_s[-1], count + 1)[1:]
        for run, count in zip(runs, pieces, strict=True)
    ]


def _cost(runs: Sequence[Run], rows: Sequence[Sequence[Rows]], noise: Mapping[str, float]) -> float:
    """Squares of all residuals: of torques, and of the angles that the motion passes by."""
    of_torques = sum(
        float(part.left @ part.left) / noise[part.field] ** 2 for run in rows for part in run
    )
    off = (run.motion.at(run.time_s)[:, 0] - run.angles for run in runs)
    of_angles = (np.sum((a / r.motion.noise) ** 2) for a, r in zip(off, runs, strict=True))
    return of_torques + float(sum(of_angles))


def _pieces(first: np.ndarray) -> list[tuple[int, slice]]:
    """The first coefficient and the rows of each piece; rows are in the order of time."""
    at = np.flatnonzero(np.diff(first, prepend=-1))
    return [
        (int(first[a]), slice(int(a), int(b))) for a, b in itertools.pairwise([*at, len(first)])
    ]


def _root(F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R with Rᵀ R = F, and its pseudoinverse; what is below rounding in F is zero."""
    values, axes = np.linalg.eigh(0.5 * (F + F.T))
    told = values > len(F) * np.finfo(float).eps * values.max(initial=0.0)
    sizes = np.sqrt(values[told])
    return sizes[:, None] * axes[:, told].T, axes[:, told] / sizes


def _row_space(
    rows: Sequence[Sequence[Rows]], noise: Mapping[str, float], prior: np.ndarray
) -> np.ndarray:
    """V (unknowns, rank): all directions of u that any reading feels, by singular values of Y.

    Not of F, whose rounding is the square root of this one's.
    """
    Y = [part.Y / noise[part.field] for run in rows for part in run]
    triangle: Any = np.linalg.qr(np.concatenate([*Y, np.diag(prior)]), mode="r")
    _, s, Vt = np.linalg.svd(triangle)
    return np.asarray(Vt[: int(np.count_nonzero(s > _ZERO * s.max(initial=0.0)))].T)


def _first_noise(rows: Sequence[Sequence[Rows]], runs: Sequence[Run]) -> dict[str, float]:
    """A tenth of the signal, until something is fitted: all sensors begin with the same say."""
    squares: dict[str, list[float]] = {}
    for run in runs:
        for sensor in run.experiment.sensors:
            squares.setdefault(sensor.field, []).append(float(np.var(sensor.measured)))
    return {field: 0.1 * float(np.sqrt(np.mean(found))) for field, found in squares.items()}


def _noise(
    rows: Sequence[Sequence[Rows]],
    parts: Sequence[Normal],
    noise: Mapping[str, float],
    back: np.ndarray,
) -> dict[str, float]:
    """sigma_s² = |r_s|² / (n_s - p_s), p_s the share of motion and unknowns that s has fitted."""
    random = np.random.default_rng(0)  # the same probes in every round, or no round is the last
    squares: dict[str, float] = {}
    free: dict[str, float] = {}
    for run, part in zip(rows, parts, strict=True):
        for of in run:
            weight = noise[of.field] ** -2.0
            share = part.share(of, weight, back, random)
            squares[of.field] = squares.get(of.field, 0.0) + float(of.left @ of.left)
            free[of.field] = free.get(of.field, 0.0) + max(len(of.left) - share, 1.0)
    return {f: max(float(np.sqrt(squares[f] / free[f])), 1e-9 * noise[f], 1e-12) for f in squares}


def settled_motion(
    model: TorqueModel, runs: Sequence[Run], u: np.ndarray, noise: Mapping[str, float]
) -> list[list[Rows]]:
    """Other runs with u held: only their motions are looked for."""
    found = []
    for run in runs:
        rows = linearised(model, run, u)
        for _ in range(3):
            part = Normal(run, rows, noise, len(u))
            run = run.moved(part.motion_step(np.zeros(len(u))))
            rows = linearised(model, run, u)
        found.append(rows)
    return found
