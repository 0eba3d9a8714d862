"""A log of a moving arm, read for its inverse dynamics: angles are its motion, torques its sensors.

reading_j(t_k) = gain tau_j(q, q̇, q̈ at t_k - delay) + offset
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from mime._text import nearest, quoted
from mime.core.problem import InputError
from mime.fitting.channel import Channel, Place, Scale, fields_of, scaled
from mime.fitting.experiment import Experiment, sensor_rows
from mime.fitting.log import Log, LogError, read_rows
from mime.fitting.motion import FEWEST, Motion, smooth, splined
from mime.nodes.actuation.robot_arm.parameters import RobotArmParameters
from mime.running.simulation import Simulation
from mime.scenarios.fields import split_field

TORQUES, ANGLES = "commanded_joint_torques", "joint_angles"
_LONGEST_GAP = 10.0
"""Periods over which a spline can tell how an arm moved."""


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """One log: the motion that its encoders give, and the torques that were measured."""

    experiment: Experiment
    """Its sensors are the torques."""
    motion: Motion
    time_s: np.ndarray
    angles: np.ndarray
    """(rows, joints), as measured."""

    def moved(self, step: np.ndarray) -> "Run":
        """The same with another motion: its coefficients and `step`, which may be flat."""
        coefficients = self.motion.coefficients
        coefficients = coefficients + step.reshape(coefficients.shape)
        motion = dataclasses.replace(self.motion, coefficients=coefficients)
        return dataclasses.replace(self, motion=motion)

    def coarser(self, factor: int) -> "Run":
        """The same, with a motion of so many times fewer pieces."""
        pieces = max(self.motion.pieces // factor, FEWEST)
        return dataclasses.replace(self, motion=splined(self.time_s, self.angles, pieces))


def joint_of(place: Place) -> int:
    """The joint that a column belongs to."""
    return int(place.index[0])  # type: ignore[arg-type]


def arm_of(simulation: Simulation, columns: Mapping[str, str | Channel]) -> RobotArmParameters:
    """The arm whose angles and torques the columns are."""
    names = {channel.field for channel in fields_of(columns).values()}
    arms = {n for n, node in simulation.nodes.items() if isinstance(node, RobotArmParameters)}
    used = {name.partition(".")[0] for name in names}
    if len(used) != 1 or not used <= arms:
        raise InputError(
            f"by='inverse_dynamics' takes the columns of one arm ({quoted(sorted(arms))}),"
            f" its {ANGLES} and {TORQUES}; got fields of {quoted(sorted(used))}",
            place=("columns",),
            label="columns:",
        )
    arm: Any = simulation.nodes[used.pop()]
    for refused, why in (
        (bool(arm.elastic_joints), "has elastic joints, whose rotors are not where the links are"),
        (arm.base == "floating", "has a floating base, whose motion no encoder measures"),
        (arm.servo is not None, "has a servo, whose torques are not commanded ones"),
    ):
        if refused:
            raise InputError(f"{arm.name!r} {why}: fit it by='simulation'", place=("columns",))
    return arm


def read_run(simulation: Simulation, log: Log, columns: Mapping[str, str | Channel]) -> Run:
    """Read a log; a `LogError` or an `InputError` says what is wrong with it."""
    columns = log.columns or columns
    arm = arm_of(simulation, columns)
    places = {name: _place(arm, name, c, columns) for name, c in fields_of(columns).items()}
    angles = {joint_of(p): name for name, p in places.items() if p.name == ANGLES}
    torques = [name for name, p in places.items() if p.name == TORQUES]
    if len({(p.name, p.index) for p in places.values()}) < len(places):
        raise InputError("two columns name the same field", place=("columns",), label="columns:")
    missing = [arm.tree.joint_names[j] for j in range(arm.num_joints) if j not in angles]
    if missing or not torques:
        what = f"the angles of {quoted(missing)}" if missing else f"any of {arm.name}.{TORQUES}"
        raise InputError(
            f"{what} are not there: the inverse dynamics takes the angle of every joint "
            "and the torque of one or more",
            place=("columns",),
            label="columns:",
        )
    ordered = [angles[j] for j in range(arm.num_joints)]
    if log.set:
        words = "set is of logs that are simulated; here each arm has the parameters of the graph"
        raise LogError(log.file, words)
    rows = read_rows(
        log, {name: places[name] for name in ordered}, {name: places[name] for name in torques}
    )
    period = float(np.median(np.diff(rows.time_s)))
    positions = (rows.time_s - rows.time_s[0]) / period
    gap = int(np.argmax(np.diff(positions)))
    if (length := positions[gap + 1] - positions[gap]) > _LONGEST_GAP:
        words = (
            f"nothing is logged for {length * period:.3g} s before this row, {length:.0f} periods: "
            "how the arm moved in between is not known. Make two logs of it"
        )
        raise LogError(rows.file, words, int(rows.lines[gap + 1]), log.time)
    at_once = dataclasses.replace(rows, until=False)  # torques belong to their row's time
    sensors = tuple(
        sensor_rows(at_once, name, places[name], positions, rows.columns[name]) for name in torques
    )
    time = positions * period
    measured = np.stack([places[name].values(rows.columns[name]) for name in ordered], axis=1)
    if len(time) < 40:
        raise LogError(rows.file, f"has {len(time)} rows; accelerations take 40 or more")
    last = int(np.ceil(positions[-1]))
    experiment = Experiment(rows.label, rows.file, period, last, True, positions, {}, sensors, ())
    return Run(experiment, smooth(time, measured), time, measured)


def _place(
    arm: RobotArmParameters, column: str, channel: Channel, columns: Mapping[str, str | Channel]
) -> Place:
    at = ("columns", column)
    try:
        node, name, index = split_field(channel.field)
        fields: dict[str, Any] = {ANGLES: arm.state_spec(), TORQUES: arm.boundary_input_spec()}
        if name not in fields:
            raise ValueError(f"no field {name!r}{nearest(name, fields)} ({quoted(fields)})")
        spec = fields[name][name]
        if index is None or not isinstance(index[0], int) or not index[0] < arm.num_joints:
            form = f"{node}.{name}[0] to [{arm.num_joints - 1}]"
            raise ValueError(f"must be one joint's, {form}, got {channel.field!r}")
    except ValueError as error:
        raise InputError(f"{error}", place=at, label=f"columns[{column!r}]:") from None
    found = Place(channel, node, name, index, spec, name == ANGLES, Scale(column, 1, 0, None, True))
    return scaled(found, column, columns)
