"""What an arm lacks, by its inverse dynamics: the torque on a joint that explains most of what is
left of that joint's sensor.

    r_j = Y_j dtheta + c g phi_j(t)       g: the sensor's gain

phi_j is a torque of the measured motion, such as |load| sign(w): linear, and without a simulation.
"""

from collections.abc import Sequence

import numpy as np

from mime.fitting.experiment import Sensor
from mime.fitting.inverse_dynamics import Found, Rows
from mime.fitting.missing import MUCH, Candidate, Named, candidates
from mime.fitting.rank import Rank
from mime.fitting.torques import Run, joint_of
from mime.nodes.actuation.robot_arm.parameters import RobotArmParameters

_ALMOST, _NEW = 0.8, 0.05
"""Of the best part: another torque that takes as much away is named as well. Of a torque's own
size, what must be left of it beside the unknowns."""


def missing_torques(found: Found, rank: Rank, arm: RobotArmParameters) -> list[Named]:
    """What would explain most of what is left, for each sensor one or two torques, or none."""
    parts = [(run, part) for run, rows in zip(found.runs, found.rows, strict=True) for part in rows]
    J = np.concatenate([part.Y / found.noise[part.field] for _, part in parts]) @ rank.basis
    Q, _ = np.linalg.qr(J)
    r = np.concatenate([part.left / found.noise[part.field] for _, part in parts])
    left = r - Q @ (Q.T @ r)
    ends = np.cumsum([0, *(len(part.left) for _, part in parts)])
    torques: list[Named] = []
    for field in found.noise:
        own = [i for i, (_, part) in enumerate(parts) if part.field == field]
        at = np.concatenate([np.arange(ends[i], ends[i + 1]) for i in own])
        each = [_candidates(*parts[i]) for i in own]
        joint = joint_of(_sensor(*parts[own[0]]).place)
        where = f"{arm.name}.joint[{arm.tree.joint_names[joint]}]"
        torques += _named(field, where, left, Q, at, each, found.noise[field])
    return torques


def _candidates(run: Run, part: Rows) -> list[Candidate]:
    """Torques that act on the joint of a sensor, at its rows."""
    sensor = _sensor(run, part)
    joint, motion = joint_of(sensor.place), run.motion.at(part.time_s)
    load = sensor.measured + part.left
    return candidates(motion[:, 0, joint], motion[:, 1, joint], {part.field: load}, is_sharp=True)


def _sensor(run: Run, part: Rows) -> Sensor:
    return next(s for s in run.experiment.sensors if s.field == part.field)


def _named(
    field: str,
    where: str,
    left: np.ndarray,
    Q: np.ndarray,
    at: np.ndarray,
    each: Sequence[Sequence[Candidate]],
    noise: float,
) -> list[Named]:
    """The candidates that explain most of a sensor's rows `at`, in all logs together."""
    size = float(left[at] @ left[at])
    if not size > 0 or len({len(c) for c in each}) != 1:
        return []
    found = []
    for same in zip(*each, strict=True):
        phi = np.concatenate([np.stack(c.columns, axis=1) / c.scale for c in same])
        phi /= -noise  # what the joint's drive must add
        p = -Q @ (Q[at].T @ phi)
        p[at] += phi
        if not np.all(np.linalg.norm(p, axis=0) > _NEW * np.linalg.norm(phi, axis=0)):
            continue  # the model has it
        c, *_ = np.linalg.lstsq(p, -left, rcond=1e-9)
        if same[0].is_friction and not c[0] > 0:
            continue
        then = left[at] + p[at] @ c
        part = 1.0 - float(then @ then) / size
        amount = float(np.linalg.norm(c))
        found.append(Named(where, same[0], amount, part, {field: part}))
    found.sort(key=lambda one: -one.part)
    best = found[0].part if found else 0.0
    return [one for one in found if one.part >= max(_ALMOST * best, MUCH)][:2]
