"""Torques of arms by Pinocchio's regressor and least squares: the peer of by="inverse_dynamics".

    tau = Y(q, q', q'') pi + Tᵀ [f (T q') + c sign(T q') + J (T q'') + mu |tau_m| sign(T q')] + d

with T the transmission (q_motor = T q), the identity where every motor has a joint of its own.
Angles are filtered (zero phase), differentiated, and decimated; so are torques.
"""

import dataclasses
from pathlib import Path

import numpy as np

from real_logs.measures import error_percent, low_passed


@dataclasses.dataclass(frozen=True)
class ArmLog:
    """Angles and torques of one log in rows of one rate."""

    urdf: Path
    rate_hz: float
    angle: np.ndarray
    torque: np.ndarray
    transmission: np.ndarray

    def part(self, first: float, last: float) -> "ArmLog":
        """From one part of the log to another, 0 to 1."""
        rows = slice(int(first * len(self.angle)), int(last * len(self.angle)))
        return dataclasses.replace(self, angle=self.angle[rows], torque=self.torque[rows])


def tx40(folder: Path, rows: int = 22_500) -> ArmLog:
    """A Stäubli TX40: motor 6 turns with joints 5 and 6 (figaroh-examples, Apache-2.0)."""
    motor = np.loadtxt(folder / "pos_read_data.csv", delimiter=",", skiprows=1, max_rows=rows)
    current = np.loadtxt(folder / "curr_data.csv", delimiter=",", skiprows=1, max_rows=rows)
    T = np.diag([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
    T[5, 4] = 32.0
    q = motor @ np.linalg.inv(T).T + [0, -np.pi / 2, np.pi / 2, 0, 0, 0]
    return ArmLog(folder / "tx40_mdh_modified.urdf", 5000.0, q, current @ T, T)


def panda(folder: Path) -> ArmLog:
    """A Franka Emika Panda (FrankaEmikaPandaDynModel), at 1 kHz; its urdf beside the log."""
    t, q, tau = (np.loadtxt(folder / f"{name}.txt") for name in ("time", "positions", "torques"))
    even = np.arange(0.0, t[-1], 1e-3)
    q, tau = (
        np.stack([np.interp(even, t, column) for column in values.reshape(-1, 7).T], axis=1)
        for values in (q, tau)
    )
    return ArmLog(folder / "fer.urdf", 1000.0, q, tau, np.eye(7))


def pendulum(file: Path, urdf: Path, angles: list[str], torques: list[str]) -> ArmLog:
    """DFKI's pendulums: one table a run."""
    table = np.genfromtxt(file, delimiter=",", names=True)
    rate = 1.0 / np.median(np.diff(table["time"]))
    q, tau = (np.stack([table[name] for name in names], axis=1) for names in (angles, torques))
    return ArmLog(urdf, rate, q, tau, np.eye(len(angles)))


def rows_of(log: ArmLog, cut_hz: float, row_hz: float) -> tuple[np.ndarray, ...]:
    """q, q', q'' and torques in rows, filtered and decimated; the ends of the filter are cut."""
    q = low_passed(log.angle, log.rate_hz, cut_hz)
    qd = np.gradient(q, 1.0 / log.rate_hz, axis=0)
    qdd = np.gradient(qd, 1.0 / log.rate_hz, axis=0)
    tau = low_passed(log.torque, log.rate_hz, cut_hz)
    edge, every = int(0.1 * log.rate_hz), max(round(log.rate_hz / row_hz), 1)
    return tuple(values[edge:-edge:every] for values in (q, qd, qdd, tau))


def regressor(log: ArmLog, motion: tuple[np.ndarray, ...], coupled: bool) -> np.ndarray:
    """(rows, joints, unknowns), without friction by load."""
    import pinocchio as pin

    model = pin.buildModelFromUrdf(str(log.urdf))
    data = model.createData()
    T = log.transmission if coupled else np.diag(np.diag(log.transmission))
    n, found = model.nv, []
    for q, qd, qdd in zip(*motion[:3], strict=True):
        Y = pin.computeJointTorqueRegressor(model, data, q, qd, qdd)
        of_motors = [T.T @ np.diag(v) for v in (T @ qd, np.sign(T @ qd), T @ qdd)]
        found.append(np.hstack([Y, *of_motors, np.eye(n)]))
    return np.array(found)


def least_squares(
    fitted: ArmLog, tested: ArmLog, coupled: bool, by_load: bool, cut_hz: float, row_hz: float
) -> np.ndarray:
    """Fit to one log, and what is left of the other (rows, joints) beside its torques."""
    (X, y), (Xt, yt) = (_problem(log, coupled, cut_hz, row_hz) for log in (fitted, tested))
    weight = 1.0 / _left(X, y, X, y).std(axis=0)
    if by_load:
        X, Xt = (_with_load(part, log, coupled, cut_hz, row_hz)
                 for part, log in ((X, fitted), (Xt, tested)))  # fmt: skip
    left = _left(X * weight[:, None], y * weight, Xt * weight[:, None], yt * weight) / weight
    return np.stack([left, yt])


def _problem(
    log: ArmLog, coupled: bool, cut_hz: float, row_hz: float
) -> tuple[np.ndarray, np.ndarray]:
    motion = rows_of(log, cut_hz, row_hz)
    return regressor(log, motion, coupled), motion[3]


def _with_load(
    X: np.ndarray, log: ArmLog, coupled: bool, cut_hz: float, row_hz: float
) -> np.ndarray:
    """With columns of |tau_m| sign(q_m'), from the measured torques at the motors."""
    _, qd, _, tau = rows_of(log, cut_hz, row_hz)
    T = log.transmission if coupled else np.diag(np.diag(log.transmission))
    motor = np.linalg.solve(T.T, tau.T).T
    columns = np.einsum("mj,tm->tjm", T, np.abs(motor) * np.sign(qd @ T.T))
    return np.concatenate([X, columns], axis=2)


def _left(X: np.ndarray, y: np.ndarray, Xt: np.ndarray, yt: np.ndarray) -> np.ndarray:
    flat = X.reshape(-1, X.shape[2])
    scale = np.linalg.norm(flat, axis=0)
    scale = np.where(scale > 1e-9 * scale.max(), scale, np.inf)
    found, *_ = np.linalg.lstsq(flat / scale, y.ravel(), rcond=1e-7)
    return np.asarray(Xt @ (found / scale) - yt)


def percent(left_and_torque: np.ndarray) -> float:
    """As `error_percent`, of what `least_squares` gives."""
    return error_percent(*left_and_torque)
