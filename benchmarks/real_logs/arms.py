"""Torques of arms: by="inverse_dynamics" beside Pinocchio's regressor and least squares.

    tau = Y(q, q', q'') pi + Tᵀ [f (T q') + c sign(T q') + J (T q'') + mu |tau_m| sign(T q')] + d

with T the transmission (q_motor = T q), the identity where every motor has a joint of its own.
Least squares take angles that are filtered (zero phase), differentiated and decimated, MIME takes
means of rows. Both are judged on another part of the log, or on another log: torques of the motion
with filtered angles, beside filtered torques. Friction by load has the measured torque on the right
in least squares, of the judged log too; MIME's is of the torque that it predicts.

FOLDER has a folder for each machine, and those that are not there are left out:

    tx40             curr_data.csv, pos_read_data.csv, tx40_mdh_modified.urdf
                     (thanhndv212/figaroh-examples, examples/staubli_TX40; Apache-2.0)
    panda            time.txt, positions.txt, torques.txt: exciting_traj_*.txt of
                     marcocognetti/FrankaEmikaPandaDynModel (GPL-3); fer.urdf:
                     `mime.expand_xacro` of frankaemika/franka_description (Apache-2.0),
                     robots/fer/fer.urdf.xacro, hand false
    tiago            tiago_position.csv, tiago_effort.csv, tiago_48_schunk.urdf
                     (figaroh-examples, examples/tiago; Apache-2.0)
    go2              traj_0.pt, go2.xml: datasets/go2 and robot_model/go2 of
                     iit-DLSLab/sim2real-robot-identification (BSD-3-Clause)
    pendulum         system_identification.csv, ddp.csv, direct_collocation.csv: data_measured.csv
                     of dfki-ric-underactuated-lab/torque_limited_simple_pendulum (BSD-3-Clause);
                     pendulum.urdf: a link of 0.6 kg 0.45 m below a continuous joint about y
    double_pendulum  trajectory_00.csv, trajectory_03.csv: design_A.0/20220815/sys_id of
                     dfki-ric-underactuated-lab/double_pendulum; its double_pendulum.urdf, with
                     a `<link name="world"/>` (BSD-3-Clause)
"""

import dataclasses
import time
import warnings
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import jax
import numpy as np

import mime
from mime.nodes.actuation.robot_arm.inverse import commanded_torques
from real_logs.measures import error_percent, low_passed

JUDGED_HZ = 40.0
"""Where torques are filtered."""
ROWS_HZ = 200.0
GO2_LEGS, GO2_KP = ("FL", "FR", "RL", "RR"), 20.0
"""N·m/rad; kp, kd and the order of legs are of config.py and run_collection_quadruped_ros2.py."""


@dataclasses.dataclass(frozen=True)
class ArmLog:
    """Angles and torques of one log in rows of one rate."""

    urdf: Path
    rate_hz: float
    angle: np.ndarray
    torque: np.ndarray
    transmission: np.ndarray
    measured: tuple[int, ...] = ()
    """The joints whose torque is known; () is all."""

    @property
    def joints(self) -> list[int]:
        """The joints whose torque is known."""
        return list(self.measured or range(self.angle.shape[1]))

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


def tiago(folder: Path) -> ArmLog:
    """The arm of a TIAGo on its torso, which moves and whose force is in no known unit.

    Torques are currents times ratios and motor constants of figaroh-examples' identification.py,
    whose rows these are.
    """
    rows = slice(921, 6791)
    table, current = (
        np.loadtxt(folder / f"tiago_{name}.csv", delimiter=",", skiprows=1)[rows]
        for name in ("position", "effort")
    )
    even = np.arange(table[0, 0], table[-1, 0], 0.01)
    q, i = (
        np.stack([np.interp(even, t[:, 0], column) for column in t[:, 1:].T], axis=1)
        for t in (table, current)
    )
    n_m_per_a = np.array([0.0, 13.6, 13.6, -8.7, -8.7, -20.5968, -20.5968, -20.5968])
    ends = {"root": "torso_fixed_link", "tip": "arm_tool_link"}
    tree = mime.parse_robot(folder / "tiago_48_schunk.urdf", subtree=ends, on_problem="mend")
    tree.to_urdf(alone := folder / "arm_on_torso.urdf")
    return ArmLog(alone, 100.0, q, i * n_m_per_a, np.eye(8), (1, 2, 3, 4, 5, 6, 7))


def go2(folder: Path, leg: str) -> ArmLog:
    """One leg of a Go2 that hangs, its trunk held: kp (commanded - measured angle) is its torque.

    The firmware subtracts kd q' of 1.5 N·m·s/rad besides, which is viscous friction here. The file
    is PyTorch's: an archive of the arrays time, dof_pos and des_dof_pos, in this order.
    """
    with zipfile.ZipFile(folder / "traj_0.pt") as file:
        time, q, commanded = (
            np.frombuffer(file.read(f"traj_0/data/{k}"), "<f4").astype(float) for k in range(3)
        )
    own = slice(3 * GO2_LEGS.index(leg), 3 * GO2_LEGS.index(leg) + 3)
    q, commanded = q.reshape(-1, 12)[:, own], commanded.reshape(-1, 12)[:, own]
    tree = mime.parse_robot(
        folder / "go2.xml", base="fixed", subtree={"root": "base", "tip": f"{leg}_calf"}
    )
    tree.to_urdf(alone := folder / f"{leg}.urdf")
    rate = (len(time) - 1) / (time[-1] - time[0])
    return ArmLog(alone, rate, q, GO2_KP * (commanded - q), np.eye(3))


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
    tau = low_passed(log.torque, log.rate_hz, JUDGED_HZ)
    edge, every = int(0.1 * log.rate_hz), max(round(log.rate_hz / row_hz), 1)
    return tuple(values[edge:-edge:every] for values in (q, qd, qdd, tau))


def regressor(log: ArmLog, motion: tuple[np.ndarray, ...], coupled: bool) -> np.ndarray:
    """(rows, joints, unknowns), without friction by load."""
    import pinocchio as pin

    model = pin.buildModelFromUrdf(str(log.urdf))
    data = model.createData()
    T = log.transmission if coupled else np.diag(np.diag(log.transmission))
    n, found, zero = model.nv, [], pin.neutral(model)
    for q, qd, qdd in zip(*motion[:3], strict=True):
        at = pin.integrate(model, zero, q)  # a joint without limits is (cos q, sin q) there
        Y = pin.computeJointTorqueRegressor(model, data, at, qd, qdd)
        of_motors = [T.T @ np.diag(v) for v in (T @ qd, np.sign(T @ qd), T @ qdd)]
        found.append(np.hstack([Y.reshape(n, -1), *of_motors, np.eye(n)]))
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
    return regressor(log, motion, coupled)[:, log.joints], motion[3][:, log.joints]


def _with_load(
    X: np.ndarray, log: ArmLog, coupled: bool, cut_hz: float, row_hz: float
) -> np.ndarray:
    """With columns of |tau_m| sign(q_m'), from the measured torques at the motors."""
    _, qd, _, tau = rows_of(log, cut_hz, row_hz)
    T = log.transmission if coupled else np.diag(np.diag(log.transmission))
    motor = np.linalg.solve(T.T, tau.T).T
    columns = np.einsum("mj,tm->tjm", T, np.abs(motor) * np.sign(qd @ T.T))
    return np.concatenate([X, columns[:, log.joints]], axis=2)


def _left(X: np.ndarray, y: np.ndarray, Xt: np.ndarray, yt: np.ndarray) -> np.ndarray:
    flat = X.reshape(-1, X.shape[2])
    scale = np.linalg.norm(flat, axis=0)
    scale = np.where(scale > 1e-9 * scale.max(), scale, np.inf)
    found, *_ = np.linalg.lstsq(flat / scale, y.ravel(), rcond=1e-7)
    return np.asarray(Xt @ (found / scale) - yt)


def percent(left_and_torque: np.ndarray) -> float:
    """As `error_percent`, of what `least_squares` gives."""
    return error_percent(*left_and_torque)


def fitted(log: ArmLog, row_hz: float, by_load: bool = False, coupled: bool = True) -> mime.Fit:
    """MIME's: every body, rotor, friction and offset.

    By load, a motor whose torque is nearly all friction would explain it by friction of itself:
    shares are known beforehand to be 0.05 ± 0.1.
    """
    tree = mime.parse_robot(log.urdf)
    n, T = tree.num_joints, log.transmission if coupled else np.diag(np.diag(log.transmission))
    tree = tree.with_drives(np.full(n, 1e-4), T)
    dry = 0.2 * np.linalg.solve(T.T, log.torque.T).std(axis=1)
    dry = np.where(dry > 0, dry, 1.0)
    graph = mime.GraphManager()
    graph.add_node(
        mime.RobotArmNode(
            "arm",
            1e-3,
            tree,
            tree.link_names[-1],
            joint_friction_n_m_s=dry,
            friction=mime.LoadFriction(dry, 0.05) if by_load else mime.Coulomb(dry),
            gravity_world=(0.0, 0.0, -9.81),
        )
    )
    graph.add_external_input("arm", "commanded_joint_torques")
    angles = {f"q{j}": f"arm.joint_angles[{j}]" for j in range(n)}
    torques = {
        f"tau{j}": mime.Channel(f"arm.commanded_joint_torques[{j}]", offset=True, delay=0)
        for j in log.joints
    }
    unknowns = [f"arm.link[{name}]" for name in tree.link_names]
    unknowns += ["arm.tree.rotor_inertia", "arm.joint_friction_n_m_s"]
    unknowns += [f"arm.friction.{'coulomb_' if by_load else ''}torque_n_m"]
    looked_for = dict.fromkeys(unknowns, mime.Unknown())
    if by_load:
        looked_for["arm.friction.motor_load"] = mime.Unknown(std=0.1)
    return mime.fit(
        graph.compile(),
        mime.Log(_means(log, row_hz), name="log"),
        angles | torques,
        looked_for,
        by="inverse_dynamics",
        progress=False,
    )


def _means(log: ArmLog, row_hz: float) -> dict[str, np.ndarray]:
    """Columns of a log whose rows are means of rows."""
    every = max(round(log.rate_hz / row_hz), 1)
    rows = len(log.angle) // every
    q, tau = (
        values[: rows * every].reshape(rows, every, -1).mean(axis=1)
        for values in (log.angle, log.torque)
    )
    columns = {"time": every * np.arange(rows) / log.rate_hz}
    columns |= {f"q{j}": q[:, j] for j in range(q.shape[1])}
    return columns | {f"tau{j}": tau[:, j] for j in range(q.shape[1])}


def left_by(found: mime.Fit, own: ArmLog, tested: ArmLog, cut_hz: float) -> np.ndarray:
    """As `least_squares`, of MIME's fit; `own` is the log that it was fitted to.

    Where gravity and an offset are known only together, the simulation has some of both: offsets
    are those that the fitted log has beside it, in the mean.
    """
    left = []
    with jax.enable_x64(True):
        arm = found.simulation.nodes["arm"]
        torques = jax.vmap(partial(commanded_torques, arm))  # a second; to compile it takes longer
        for log in (own, tested):
            q, qd, qdd, tau = rows_of(log, cut_hz, ROWS_HZ)
            left.append((np.asarray(torques(q, qd, qdd)) - tau)[:, log.joints])
    return np.stack([left[1] - left[0].mean(axis=0), tau[:, tested.joints]])


def overlap(a: mime.Fit, b: mime.Fit) -> tuple[int, int, int]:
    """Pairs of 95 % intervals, how many overlap, and how many differ beyond 1.96 deviations."""
    values = [
        ({e.name: (e.value, e.low, e.high) for e in f.values() if e.is_known})
        | {c.name: (c.value, c.low, c.high) for c in f.combinations}
        for f in (a, b)
    ]
    both = [name for name in values[0] if name in values[1]]
    one, other = (np.array([v[name] for name in both]).T for v in values)
    apart = np.abs(one[0] - other[0])
    halves = [0.5 * (v[2] - v[1]) for v in (one, other)]
    return len(both), int(np.sum(apart < sum(halves))), int(np.sum(apart > np.hypot(*halves)))


@dataclasses.dataclass(frozen=True)
class Case:
    """Two logs, each fitted and judged on the other."""

    name: str
    logs: tuple[ArmLog, ArmLog]
    fitted_hz: float
    cut_hz: float
    """Where angles are filtered: near where least squares foretell the other log best."""
    by_load: bool = False
    is_one_log: bool = True
    """The two are halves of one log."""


def cases(folder: Path) -> Iterator[Case]:
    """Those whose logs are there."""
    if (at := folder / "tx40").exists():
        log = tx40(at)
        halves = log.part(0, 0.5), log.part(0.5, 1)
        yield Case("TX40, coupled wrist", halves, 200.0, 40.0)
        yield Case("TX40, and friction by load", halves, 200.0, 40.0, by_load=True)
    if (at := folder / "panda").exists():
        log = panda(at)
        yield Case("Panda", (log.part(0, 0.5), log.part(0.5, 1)), 100.0, 8.0)
    if (at := folder / "tiago").exists():
        log = tiago(at)
        yield Case("TIAGo", (log.part(0, 0.5), log.part(0.5, 1)), 25.0, 5.0)
    if (at := folder / "go2").exists():
        for leg in GO2_LEGS:
            log = go2(at, leg)
            yield Case(f"Go2, leg {leg}", (log.part(0, 0.5), log.part(0.5, 1)), 100.0, 10.0)
    if (at := folder / "pendulum").exists():
        one, *others = (
            pendulum(at / f"{name}.csv", at / "pendulum.urdf", ["position"], ["torque"])
            for name in ("system_identification", "ddp", "direct_collocation")
        )
        for other in others:
            yield Case("DFKI pendulum", (one, other), 1e9, 8.0, is_one_log=False)
    if (at := folder / "double_pendulum").exists():
        logs = [
            pendulum(
                at / f"trajectory_{number}.csv",
                at / "double_pendulum.urdf",
                ["pos_meas1", "pos_meas2"],
                ["tau_meas1", "tau_meas2"],
            )
            for number in ("00", "03")
        ]
        yield Case("DFKI double pendulum", (logs[0], logs[1]), 100.0, 6.0, is_one_log=False)


def main(folder: Path) -> None:
    """Print a table of all machines."""
    warnings.simplefilter("ignore", mime.FitWarning)
    print("| machine | fit | held out: MIME | least squares | MIME | least squares |")
    print("| --- | --- | --- | --- | --- | --- |")
    for case in cases(folder):
        fits = []
        for log in case.logs:
            since = time.perf_counter()
            fits.append((fitted(log, case.fitted_hz, case.by_load), time.perf_counter() - since))
        for (found, seconds), own, other in zip(fits, case.logs, case.logs[::-1], strict=True):
            left = left_by(found, own, other, case.cut_hz)
            peer = least_squares(own, other, True, case.by_load, case.cut_hz, ROWS_HZ)
            part = [f"{percent(x):.2f} %" for x in (left, peer)]
            rms = [f"{np.sqrt(np.mean(x[0] ** 2)):.3f} N·m" for x in (left, peer)]
            print("|", " | ".join([case.name, f"{seconds:.0f} s", *part, *rms]), "|", flush=True)
        of = {case.name: [found for found, _ in fits]}
        if not case.is_one_log:
            of |= {
                f"{case.name}, halves of log {k + 1}": [
                    fitted(log.part(*half), case.fitted_hz, case.by_load)
                    for half in ((0.0, 0.5), (0.5, 1.0))
                ]
                for k, log in enumerate(case.logs)
            }
        for name, (one, another) in of.items():
            pairs, same, beyond = overlap(one, another)
            print(f"| {name}: {same} of {pairs} intervals overlap, {beyond} differ beyond 1.96 |")
