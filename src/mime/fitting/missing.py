"""What a model lacks: the torque on one joint that takes most of a residual away.

    r = J dz + c dr/dtau[phi]
    gain = (r · p)² / (p · p)      p = dr/dtau[phi] without its part in J

r is what is left over its noise, J its Jacobian by all unknowns. phi(t) is a torque of the fitted
motion, such as -|load| sign(w), and dr/dtau[phi] the difference of two simulations. The gain over
r · r is the part that one more parameter c would explain beyond what the unknowns do.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mime.core.recorder import field_specs
from mime.fitting.channel import Channel, place
from mime.fitting.experiment import Experiment, Sensor
from mime.fitting.explanation import Check
from mime.fitting.model import Model
from mime.nodes.actuation.robot_arm.parameters import RobotArmParameters

MUCH = 0.15
"""The part of a residual that a torque must take away to be named."""
_ALMOST = 0.8
"""Of the best gain: another torque that takes as much away is named as well."""
_SIGN, _SLOW, _TRAVEL = 0.02, 0.1, 0.05
"""Of the largest speed, where a sign is 0.76 and where speed is low; of the range of angles, how
far after a reversal."""
_MOST_JOINTS = 12
_SMALL = 1e-3
"""Of the largest torque, the size of what is tried: small enough for a slope."""


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A torque over time, largest 1 in size, and what it would be."""

    words: str
    columns: tuple[np.ndarray, ...]
    """(rows,) each; several where the phase is free."""
    is_friction: bool
    """Its coefficient must be positive."""
    unit: str = "N·m"
    scale: float = 1.0
    """What c of a column of size 1 is to be multiplied by."""
    remedy: str = ""
    """The value of `friction` that has it."""


def candidates(
    angle: np.ndarray | None,
    speed: np.ndarray,
    loads: Mapping[str, np.ndarray],
    is_sharp: bool = False,
) -> list[Candidate]:
    """Torques that act on a joint with this motion: angle (rad), speed (rad/s), loads (N·m).

    is_sharp   signs of speeds are those of friction in inverse dynamics; a simulation would
               rattle with them
    """
    fastest = float(np.max(np.abs(speed), initial=0.0))
    if not fastest > 0:
        return []
    w = speed / fastest
    sign = np.sign(w) if is_sharp else np.tanh(w / _SIGN)
    found = [
        Candidate("dry friction", (-sign,), True, remedy="Coulomb"),
        Candidate("friction that grows with speed", (-w,), True, "N·m·s/rad", 1.0 / fastest),
        Candidate(
            "friction that grows with the square of speed",
            (-w * np.abs(w),),
            True,
            "N·m·s²/rad²",
            fastest**-2.0,
        ),
        Candidate(
            "friction that is larger at low speed (stick, Stribeck)",
            (-sign * np.exp(-((w / _SLOW) ** 2)),),
            True,
            remedy="Stribeck",
        ),
    ]
    for name, load in loads.items():
        size = float(np.max(np.abs(load), initial=0.0))
        if size > 0:
            words = f"friction that grows with the load {name}"
            column = -np.abs(load) / size * sign
            found.append(Candidate(words, (column,), True, "", 1.0 / size, "LoadFriction"))
    if angle is not None and np.ptp(angle) > 0:
        turn = (np.sin(angle), np.cos(angle))
        found.append(Candidate("a torque that repeats with the position, each turn", turn, False))
        found.append(
            Candidate(
                "a torque after each reversal (backlash, hysteresis)",
                (-sign * np.exp(-_since_reversal(angle, speed) / (_TRAVEL * np.ptp(angle))),),
                True,
            )
        )
    return found


def _since_reversal(angle: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """The way since the speed has changed its sign."""
    turned = np.flatnonzero(np.diff(np.sign(speed)) != 0) + 1
    last = np.zeros(len(angle), int)
    last[turned] = turned
    way: np.ndarray = np.abs(angle - angle[np.maximum.accumulate(last)])
    return way


@dataclasses.dataclass(frozen=True)
class Named:
    """A candidate that would explain a part of what is left."""

    where: str
    candidate: Candidate
    size: float
    """c, in the candidate's unit; the amplitude where the phase is free."""
    part: float
    """Of all that is left."""
    by_sensor: Mapping[str, float]
    """The same, sensor by sensor."""

    def words(self, field: str) -> str:
        """A line about one sensor."""
        size = f"{self.size:.2g} {self.candidate.unit}".rstrip()
        if not self.candidate.unit:
            size = f"{self.size:.2g} of it"
        words = (
            f"{self.candidate.words} is missing at {self.where}: {size} would take away "
            f"{100 * self.by_sensor[field]:.0f} % of what is left"
        )
        return f"{words}; {self.candidate.remedy} has it" if self.candidate.remedy else words


def named(
    r: np.ndarray,
    J: np.ndarray,
    tried: Sequence[tuple[str, Candidate, np.ndarray]],
    rows: Mapping[str, slice],
) -> list[Named]:
    """The candidates that explain most, the best first: at most two.

    r       (rows,) what is left, over its noise
    J       (rows, n) its Jacobian by all unknowns
    tried   where, candidate and dr/dc of its columns, (rows, columns), over the noise
    rows    those of each sensor
    """
    Q, _ = np.linalg.qr(J)
    left = r - Q @ (Q.T @ r)
    found = []
    for where, candidate, slopes in tried:
        p = slopes - Q @ (Q.T @ slopes)
        if not np.all(np.linalg.norm(p, axis=0) > 1e-6 * np.linalg.norm(slopes, axis=0)):
            continue  # the model has it
        c, *_ = np.linalg.lstsq(p, -left, rcond=1e-9)
        if candidate.is_friction and not c[0] > 0:
            continue
        then = left + p @ c
        parts = {
            field: 1.0 - float(then[at] @ then[at]) / float(left[at] @ left[at])
            for field, at in rows.items()
            if left[at] @ left[at] > 0
        }
        part = 1.0 - float(then @ then) / float(left @ left)
        size = float(np.linalg.norm(c)) * candidate.scale
        found.append(Named(where, candidate, size, part, parts))
    found.sort(key=lambda one: -one.part)
    best = found[0].part if found else 0.0
    return [one for one in found if one.part >= max(_ALMOST * best, MUCH)][:2]


@dataclasses.dataclass(frozen=True)
class _Joint:
    """An input that takes a torque, and what moves with it."""

    node: str
    field: str
    index: tuple[int, ...]
    angle: str | None
    speed: str
    loads: tuple[str, ...]

    name: str
    """As an address: `motor`, `arm.joint[shoulder]`."""


def _at(index: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, index))}]" if index else ""


def _joints(model: Model) -> list[_Joint]:
    """Every number of the inputs that add a torque to a joint with a speed among the states."""
    found = []
    for name, node in model.simulation.nodes.items():
        specs, states = field_specs(node), node.state_fields()
        inputs = node.boundary_input_spec()
        joints = node.tree.joint_names if isinstance(node, RobotArmParameters) else ()
        for field, spec in inputs.items():
            if spec.unit != "N·m" or spec.coupling != "additive":
                continue
            like = {f: s for f, s in specs.items() if s.shape == spec.shape and f not in inputs}
            speed = [f for f in states if f in like and like[f].unit == "rad/s"]
            angle = [f for f in states if f in like and like[f].unit == "rad"]
            loads = [f for f in like if like[f].unit == "N·m"]
            for index in np.ndindex(spec.shape):
                end = _at(index)
                if speed:
                    found.append(
                        _Joint(
                            name,
                            field,
                            index,
                            f"{name}.{angle[0]}{end}" if angle else None,
                            f"{name}.{speed[0]}{end}",
                            tuple(f"{name}.{f}{end}" for f in loads),
                            f"{name}.joint[{joints[index[0]]}]"
                            if spec.shape == (len(joints),)
                            else f"{name}{end}",
                        )
                    )
    return found[:_MOST_JOINTS]


def missing(
    model: Model,
    z: np.ndarray,
    r: np.ndarray,
    J: np.ndarray,
    noise: Mapping[str, float],
    reduced: Callable[[np.ndarray], np.ndarray] = lambda columns: columns,
) -> list[Named]:
    """What the model lacks, by simulation: r and J over the noise, as `whitened` has them.

    reduced   columns of all rows without what initial states of windows would make of them
    """
    joints = _joints(model)
    if not joints:
        return []
    bench = _Bench(model, z, joints)
    still, seen = bench.run(None, None)
    ends = np.cumsum([e.intervals for e in model.experiments])[:-1]
    tried = []
    for joint in joints:
        loads = {name: seen[name] for name in joint.loads} | bench.driven(joint)
        angle = None if joint.angle is None else seen[joint.angle]
        step = _SMALL * (max([float(np.abs(x).max()) for x in loads.values()], default=0.0) or 1.0)
        for candidate in candidates(angle, seen[joint.speed], loads):
            slopes = []
            for column in candidate.columns:
                moved, _ = bench.run(joint, np.split(step * column, ends))
                each = [(moved[f] - still[f]) / step / noise[f] for f in model.fields]
                slopes.append(np.concatenate(each))
            found = np.stack(slopes, axis=1)
            if not np.isfinite(found).all() or not np.linalg.norm(found) > 0:
                break  # the input moves nothing here
            tried.append((joint.name, candidate, reduced(found)))
    rows, first = {}, 0
    for f in model.fields:
        rows[f] = slice(first, first + len(still[f]))
        first = rows[f].stop
    return named(r, J, tried, rows)


class _Bench:
    """The fitted model with torques on its joints, and their motion recorded at every row."""

    def __init__(self, model: Model, z: np.ndarray, joints: Sequence[_Joint]):
        simulation = model.simulation
        inputs = dict.fromkeys((joint.node, joint.field) for joint in joints)
        external = tuple(dict.fromkeys((*simulation.wiring.external, *inputs)))
        wiring = dataclasses.replace(simulation.wiring, external=external)
        self.shapes = {
            (node, field): simulation.nodes[node].boundary_input_spec()[field].shape
            for node, field in inputs
        }
        self.recorded = list(
            dict.fromkeys(
                name
                for joint in joints
                for name in (joint.angle, joint.speed, *joint.loads)
                if name is not None
            )
        )
        self.z, self.model = z, model
        self.more = dataclasses.replace(
            model,
            simulation=dataclasses.replace(simulation, wiring=wiring),
            experiments=tuple(self._extended(e) for e in model.experiments),
        )

    def _extended(self, e: Experiment) -> Experiment:
        positions = np.arange(1.0, e.intervals + 1)
        sensors = [
            Sensor(
                name,
                place(self.model.simulation, name, Channel(name, delay=0)),
                positions,
                np.zeros(e.intervals),
                np.arange(e.intervals),
            )
            for name in self.recorded
        ]
        return dataclasses.replace(e, sensors=(*e.sensors, *sensors))

    def driven(self, joint: _Joint) -> dict[str, np.ndarray]:
        """The torque that the logs themselves put on a joint, in every interval."""
        key = joint.node, joint.field
        if not all(key in e.driven for e in self.model.experiments):
            return {}
        at: Any = (slice(None), *joint.index)
        steps = self.model.fineness
        each = [
            e.inputs(steps)[joint.node][joint.field][at].reshape(-1, steps).mean(axis=1)
            for e in self.model.experiments
        ]
        return {f"{joint.node}.{joint.field}{_at(joint.index)}": np.concatenate(each)}

    def run(
        self, joint: _Joint | None, torques: Sequence[np.ndarray] | None
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Residuals of the sensors by field; what is recorded, all logs in a row, by name."""
        steps, data = self.model.fineness, dict(self.more.data)
        inputs = []
        for number, e in enumerate(self.model.experiments):
            own = {node: dict(fields) for node, fields in e.inputs(steps).items()}
            for (node, field), shape in self.shapes.items():
                whole = np.zeros((e.intervals * steps, *shape))
                if joint is not None and torques is not None and (node, field) == _key(joint):
                    at: Any = (slice(None), *joint.index)
                    whole[at] = np.repeat(torques[number], steps)
                fields = own.setdefault(node, {})
                fields[field] = fields[field] + whole if field in fields else whole
            inputs.append(own)
        found = self.more.programs.residuals(self.z, {**data, "inputs": self.more.inputs(inputs)})
        residuals: dict[str, list[np.ndarray]] = {f: [] for f in self.model.fields}
        recorded: dict[str, list[np.ndarray]] = {name: [] for name in self.recorded}
        for e, rest in zip(self.model.experiments, self.more.split(found), strict=True):
            count = len(e.sensors)
            for sensor, left in zip(e.sensors, rest[:count], strict=True):
                residuals[sensor.field].append(left)
            for name, values in zip(self.recorded, rest[count:], strict=True):
                recorded[name].append(values)
        return (
            {f: np.concatenate(parts) for f, parts in residuals.items()},
            {name: np.concatenate(parts) for name, parts in recorded.items()},
        )


def _key(joint: _Joint) -> tuple[str, str]:
    return joint.node, joint.field


def with_missing(found: Sequence[Check], look: Callable[[], Sequence[Named]]) -> tuple[Check, ...]:
    """Sensors that are not explained, with the torques that would take much of what is left."""
    if all(check.is_explained for check in found):
        return tuple(found)
    torques = look()

    def words(field: str) -> tuple[str, ...]:
        return tuple(t.words(field) for t in torques if t.by_sensor.get(field, 0.0) >= MUCH)

    return tuple(
        check
        if check.is_explained
        else dataclasses.replace(check, seen=words(check.field) + check.seen)
        for check in found
    )
