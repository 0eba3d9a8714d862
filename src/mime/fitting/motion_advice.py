"""Which joint to move more: what an arm's torques would tell of its bodies with one log besides.

    F + Y'ᵀ Y' / sigma²      Y': the regressor of the log's own motion, one joint swinging besides

The swing has five periods, and is as wide as the joint's range and speed allow, half a radian (or a
tenth of a metre) at most.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mime.control.kinematics.joint_types import JOINT_TYPE_PRISMATIC
from mime.fitting.rank import Rank, rank_of
from mime.fitting.regressor import Chain
from mime.fitting.torques import Run, joint_of
from mime.fitting.unknown import Coordinate
from mime.nodes.actuation.robot_arm import forces
from mime.nodes.actuation.robot_arm.parameters import RobotArmParameters

_SWINGS, _ROWS = 5, 200
_WIDEST = {"rad": 0.5, "m": 0.1}
_COLUMNS = (0, 1, 2, 3, 4, 5, 7, 6, 8, 9)
"""Of a body's moments (xx, xy, xz, yy, yz, zz) in the regressor (xx, xy, yy, xz, yz, zz)."""


@dataclasses.dataclass(frozen=True)
class OtherMotion:
    """A joint to move more, and what would be known then."""

    joint: str
    amplitude: float
    unit: str
    more: int
    """Combinations of parameters that would become known."""
    known: tuple[tuple[str, float, str], ...]
    """Moments that would become known by themselves, half of their 95 % intervals, their units."""

    def __str__(self) -> str:
        many = f"{self.more} more combination{'s' * (self.more > 1)}"
        told = ", ".join(f"{name} ± {half:.2g} {unit}" for name, half, unit in self.known)
        return (
            f"with another log as long, in which {self.joint!r} swings by {self.amplitude:.2g} "
            f"{self.unit} besides: {many} known" + (f", {told}" if told else "")
        )


def other_motion(
    arm: RobotArmParameters,
    run: Run,
    coordinates: Sequence[Coordinate],
    noise: Mapping[str, float],
    R: np.ndarray,
    rank: Rank,
) -> OtherMotion | None:
    """The joint that makes most known; None where none makes more known. Rᵀ R is F."""
    tree: Any = arm.loaded_tree
    chain = Chain.of(tree, np.asarray(forces.gravity_base(arm)))
    time = np.linspace(run.time_s[0], run.time_s[-1], _ROWS)
    motion = np.moveaxis(run.motion.at(time)[:, :3], 0, 2)  # (3, N, rows)
    sigmas = {joint_of(s.place): noise[s.field] for s in run.experiment.sensors}
    joints, kinds = list(sigmas), rank.kinds()
    weight = np.sqrt(len(run.time_s) / _ROWS) / np.array([sigmas[j] for j in joints])
    best: OtherMotion | None = None
    for j, name in enumerate(tree.joint_names):
        swung, size, unit = _swung(tree, motion, time - time[0], j)
        Y = chain.at(*swung).Y[:, joints] * weight[:, None]
        more = np.concatenate([R, _by_coordinates(Y, tree.link_names, coordinates)])
        then = rank_of(more, rank.widest, rank.at_bound, rank.quantile)
        gained = then.count - rank.count
        if gained > (best.more if best else 0):
            halves = then.half_widths
            told = [
                (c.name, float(halves[k] * c.scale), c.unit)
                for k, (c, kind) in enumerate(zip(coordinates, then.kinds(), strict=True))
                if kind == "known" != kinds[k]
            ]
            best = OtherMotion(name, size, unit, gained, tuple(told))
    return best


def _swung(tree: Any, motion: np.ndarray, time: np.ndarray, j: int) -> tuple[Any, float, str]:
    """The motion with a sine of joint j besides, its amplitude and unit."""
    unit = "m" if tree.joint_kinds[_link_of(tree, j)] == JOINT_TYPE_PRISMATIC else "rad"
    w = 2 * np.pi * _SWINGS / time[-1]
    lower, upper = np.asarray(tree.joint_limits)[j]
    room = min(upper - motion[0, j].max(), motion[0, j].min() - lower)
    speed = np.asarray(tree.velocity_limits)[j] - np.abs(motion[1, j]).max()
    size = float(max(0.0, min(_WIDEST[unit], room, speed / w)))
    wave = np.array([np.sin(w * time), w * np.cos(w * time), -(w**2) * np.sin(w * time)])
    swung = motion.copy()
    swung[:, j] += size * wave
    return swung, size, unit


def _link_of(tree: Any, joint: int) -> int:
    return list(tree.coordinate_idxs).index(joint)


def _by_coordinates(
    Y: np.ndarray, links: Sequence[str], coordinates: Sequence[Coordinate]
) -> np.ndarray:
    """Slopes of the torques by the coordinates that are moments of links; 0 by all others."""
    found = np.zeros((Y[0].size, len(coordinates)))
    for k, c in enumerate(coordinates):
        if c.kind == "body" and c.key[1] == "moments":
            link = c.key[0].partition("[")[2].removesuffix("]")
            if link in links:
                found[:, k] = c.scale * Y[10 * links.index(link) + _COLUMNS[c.key[2]]].ravel()
    return found
