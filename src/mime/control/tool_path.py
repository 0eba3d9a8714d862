"""Paths of a tool in space, and the joint angles that lead it along them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime._text import nearest, quoted
from mime.control.inverse_kinematics import IKResult, solve_ik
from mime.control.joint_limits import limit_problems
from mime.control.kinematics import KinematicTree, frame_pose
from mime.control.s_curve import Number, SCurve, s_curve
from mime.control.spline import second_derivatives, spline_at
from mime.control.trajectories import JointTargets
from mime.core.arguments import mapping, numbers
from mime.core.pose import IDENTITY_POSE, compose, invert
from mime.core.problem import ParameterError, Problem

KNOTS = 49
"""Points per segment at which the inverse kinematics are solved; between them cubic splines are
nearer to the path than a micrometre."""
Solve = Callable[..., IKResult]
_CIRCLE: dict[str, Any] = {
    "centre_m": None,
    "radius_m": None,
    "normal": (0.0, 0.0, 1.0),
    "turns": 1.0,
}


class PathSegment(NamedTuple):
    """A piece of a tool's path, from rest to rest."""

    length_m: float
    at: Callable[[float], np.ndarray]
    """The position [m] after a part of the way, from 0 to 1."""
    name: Callable[[float], str]
    """What stands there, for people: `waypoints_m[2]`."""
    source: str
    """The argument that it comes from."""


class ToolTargets(NamedTuple):
    """Where the tool should be, and with which joint angles."""

    position: Float[Array, "3"]
    joints: JointTargets


class ToolPath(eqx.Module):
    """p(s(t)) and q(s(t)), s an S-curve on each segment; see `tool_path`."""

    points: Float[Array, "segments knots columns"]
    """Position and joint angles at evenly spaced knots."""
    curvatures: Float[Array, "segments knots columns"]
    lengths_m: Float[Array, " segments"]
    orientation: Float[Array, "4"]
    """The tool's, as a quaternion, the same everywhere."""

    def profiles(
        self, speed_m_per_s: Number, acceleration_m_per_s2: Number, jerk_m_per_s3: Number
    ) -> SCurve:
        """The timing of all segments within these limits."""
        limits = speed_m_per_s, acceleration_m_per_s2, jerk_m_per_s3
        return jax.vmap(lambda length: s_curve(length, *limits))(self.lengths_m)

    def __call__(self, profiles: SCurve, t: Number) -> ToolTargets:
        """q̇ = q'(s) ṡ,  q̈ = q''(s) ṡ² + q'(s) s̈; at rest before 0 and after the last segment."""
        durations = jnp.sum(profiles.segment_times, axis=-1)
        starts = jnp.cumsum(durations) - durations
        k = jnp.sum(t >= starts[1:])
        L = self.lengths_m[k]
        s, v, a = jax.tree.map(lambda leaf: leaf[k], profiles)(t - starts[k])
        y, slope, curvature = spline_at(self.points[k], self.curvatures[k], s / L)
        yd, ydd = slope * (v / L), curvature * (v / L) ** 2 + slope * (a / L)
        return ToolTargets(y[:3], JointTargets(y[3:], yd[3:], ydd[3:]))


def straight_segments(waypoints_m: Any) -> list[PathSegment]:
    """Straight lines from each waypoint to the next."""
    points = np.asarray(numbers("waypoints_m", waypoints_m), dtype=float)
    if points.ndim != 2 or points.shape[1] != 3 or len(points) < 2:
        expected = "must be two or more positions [x, y, z]"
        raise _refusal("waypoints_m", message=f"{expected}, got shape {points.shape}")
    return [_straight(k, *points[k : k + 2]) for k in range(len(points) - 1)]


def _straight(k: int, start: np.ndarray, end: np.ndarray) -> PathSegment:
    length = float(np.linalg.norm(end - start))
    if not length > 0:
        both = f"waypoints_m[{k}] and waypoints_m[{k + 1}]"
        raise _refusal(
            "waypoints_m", message=f"must differ from one to the next, got {both} the same"
        )

    def name(part: float) -> str:
        if part in (0.0, 1.0):
            return f"waypoints_m[{k + round(part)}]"
        return f"waypoints_m[{k}] to waypoints_m[{k + 1}], after {1e3 * part * length:.0f} mm"

    return PathSegment(length, lambda part: start + part * (end - start), name, "waypoints_m")


def circular_segment(circle: Mapping[str, Any]) -> PathSegment:
    """p = centre + radius (cos φ e_1 + sin φ e_2), counter-clockwise about `normal`, `turns` times.

    e_1 is the x axis laid into the circle's plane (the y axis, where x is normal to it).
    """
    for key in mapping("circle", circle, "{'centre_m': [0, 0, 0], 'radius_m': 0.1}"):
        if key not in _CIRCLE:
            known = f"{nearest(key, _CIRCLE)} (it has {quoted(_CIRCLE)})"
            raise _refusal("circle", message=f"has no {key!r}{known}")
    values = {**_CIRCLE, **circle}
    for key, shape in (("centre_m", (3,)), ("radius_m", ()), ("normal", (3,)), ("turns", ())):
        try:
            values[key] = np.asarray(values[key], dtype=float)
        except (TypeError, ValueError):
            values[key] = np.array(np.nan)
        if values[key].shape != shape or not np.all(np.isfinite(values[key])):
            got = repr(circle[key]) if key in circle else "nothing"
            raise _refusal("circle", key, message=f"must be numbers of shape {shape}, got {got}")
    centre, radius, normal, turns = values.values()
    if not (radius > 0 and turns > 0 and np.any(normal)):
        got = f"{radius:g}, {turns:g} and {normal.tolist()}"
        raise _refusal(
            "circle", message=f"needs radius_m > 0, turns > 0 and a normal not zero, got {got}"
        )
    normal = normal / np.linalg.norm(normal)
    axis = np.eye(3)[0 if abs(normal[0]) < 0.99 else 1]
    e_1 = axis - (axis @ normal) * normal
    e_1 /= np.linalg.norm(e_1)
    e_2 = np.cross(normal, e_1)

    def at(part: float) -> np.ndarray:
        phi = 2.0 * np.pi * turns * part
        return centre + radius * (np.cos(phi) * e_1 + np.sin(phi) * e_2)

    length = float(2.0 * np.pi * turns * radius)
    return PathSegment(length, at, lambda part: f"{360.0 * turns * part:.0f} degrees", "circle")


def _refusal(*place: str, message: str) -> ParameterError:
    return ParameterError("", [Problem(place, message)])


def tool_path(
    tree: KinematicTree,
    end_effector_link_name: str,
    segments: Sequence[PathSegment],
    posture_rad: Any,
    *,
    end_effector_offset_in_link: Any = IDENTITY_POSE,
    base_pose_world: Any = IDENTITY_POSE,
    position_only: bool = False,
) -> ToolPath:
    """q(s) with FK(q(s)) = p(s): the tool is held as in `posture_rad`, by the nearest angles.

    A `ParameterError` names the waypoint, or the place between two, that is out of reach.
    """
    q = np.asarray(posture_rad, dtype=float)
    if q.shape != (tree.num_joints,):
        expected = f"must be {tree.num_joints} joint angles"
        raise _refusal("posture_rad", message=f"{expected}, got {posture_rad!r}")
    if problems := list(limit_problems(tree, q, ("posture_rad",))):
        raise ParameterError("", problems)
    offset = np.asarray(end_effector_offset_in_link, dtype=float)
    base = np.asarray(base_pose_world, dtype=float)

    def solve(
        position: np.ndarray, guess: np.ndarray, restarts: int = 0, may_turn: bool = position_only
    ) -> IKResult:
        target = np.asarray(compose(invert(base), np.concatenate([position, orientation])))
        options: dict[str, Any] = {"offset": offset, "position_only": may_turn}
        if restarts:
            options |= {"restarts": restarts, "key": jax.random.key(0)}
        return solve_ik(tree, end_effector_link_name, target, guess, **options)

    points = []
    with jax.enable_x64(True):  # the reference is exact, in whatever precision it is followed
        held = compose(base, compose(frame_pose(tree, q, end_effector_link_name), offset))
        orientation = np.asarray(held)[3:]
        for segment in segments:
            points.append(_solve_segment(segment, q, solve))
            q = points[-1][-1, 3:]
    return ToolPath(
        *jax.device_put(
            (
                np.stack(points),
                np.stack([second_derivatives(segment) for segment in points]),
                np.array([segment.length_m for segment in segments]),
                orientation,
            )
        )
    )


def _solve_segment(
    segment: PathSegment, q: np.ndarray, solve: Solve
) -> Float[np.ndarray, "knots columns"]:
    """Positions and joint angles at the knots, each found from the ones before."""
    rows: list[np.ndarray] = []
    for part in np.linspace(0.0, 1.0, KNOTS).tolist():
        guess = q if len(rows) < 2 else 2.0 * q - rows[-2][3:]
        found = solve(segment.at(part), guess)
        if not bool(found.converged):
            raise _out_of_reach(segment, part, found, q, solve)
        q = np.asarray(found.q)
        rows.append(np.concatenate([segment.at(part), q]))
    return np.stack(rows)


def _out_of_reach(
    segment: PathSegment, part: float, found: IKResult, q: np.ndarray, solve: Solve
) -> ParameterError:
    """What cannot be reached: the waypoint ahead, or only what lies between."""
    if 0.0 < part < 1.0:
        ahead = solve(segment.at(1.0), q, 20)
        part, found = (part, found) if bool(ahead.converged) else (1.0, ahead)
    place = np.round(segment.at(part), 4).tolist()
    advice = "Move it, or choose another posture"
    if bool(solve(segment.at(part), np.asarray(found.q), 8, may_turn=True).converged):
        advice += "; or pass position_only=True, if the tool may turn: its position is within reach"
    return _refusal(
        segment.source,
        message=f"is out of reach at {segment.name(part)} = {place} m: with the tool held as in "
        f"posture_rad the arm comes within {1e3 * float(found.position_error_m):.3g} mm and "
        f"{float(found.angle_error_rad):.3g} rad of it. {advice}",
    )
