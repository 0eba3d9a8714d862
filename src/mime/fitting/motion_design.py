"""`mime.design_motion`: the motion of an arm that tells most of its base parameters."""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

import numpy as np

from mime._files import write_atomically
from mime.control.kinematics import KinematicTree
from mime.core.arguments import instance, real, whole
from mime.core.arguments import path as path_of
from mime.core.problem import InputError
from mime.fitting.excitation import Excitation, Limits, MotionOutlook
from mime.fitting.log import count_rows
from mime.running.progress import Progress, check_progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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

    def report(self, title: str = "Motion") -> str:
        """One HTML page with all of it."""
        from mime.fitting.design_page import motion_page

        return motion_page(self, title)

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
    rows = count_rows(real("duration", duration, "s", above=0), period_s)
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
    limits = Limits(
        np.clip(ranges, -np.pi, np.pi),
        _per_joint("velocity_limits", speeds, n),
        _per_joint("torque_limits", efforts, n),
    )
    plan = Excitation(tree, period_s, rows, most, sigma, limits)
    best, is_complete = plan.best(count, random, progress)
    others = {name: plan.outlook(*plan.kept(path)) for name, path in plan.others().items()}
    motion = plan.kept(plan.path(best, plan.waves))
    q, qd, qdd = (part.T for part in motion)
    return MotionDesign(
        tree.joint_names,
        plan.time_s,
        q,
        qd,
        qdd,
        plan.torques(*motion).T,
        plan.rank,
        plan.outlook(*motion),
        others,
        plan.reached(*motion),
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
