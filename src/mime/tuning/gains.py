"""Gains as the optimiser sees them: a number each, by its logarithm where it is positive."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from mime._text import nearest, quoted
from mime.core.address import find
from mime.core.arguments import mapping, real, several, texts, wrong
from mime.core.problem import InputError, ParameterError
from mime.running.simulation import Simulation

_WIDE = 1000.0
"""Bounds of a gain that has none: its start times this, and over this."""
Between = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Gain:
    """One number to tune: a parameter, or one entry of it."""

    address: str
    index: int | None
    name: str
    """`motor.velocity_kp`, or `controller.kp[elbow]`."""
    unit: str
    start: float
    low: float
    high: float
    is_log: bool
    is_bounded: bool
    """The bounds were given: starts are drawn between them."""

    def z(self, value: Any) -> Any:
        """The coordinate of a value."""
        return np.log(value) if self.is_log else value

    def value(self, z: Any) -> Any:
        """The value of a coordinate, which may be traced."""
        return jnp.exp(z) if self.is_log else z


class Gains:
    """All gains of a tuning."""

    def __init__(self, simulation: Simulation, given: Mapping[str, Between | None] | Sequence[str]):
        if not isinstance(given, Mapping):
            given = dict.fromkeys(texts("gains", given))
        given = mapping("gains", given, "{'node.gain': (least, largest)}")
        self.entries = tuple(g for a, b in given.items() for g in _gains(simulation, a, b))
        if not self.entries:
            raise InputError("nothing to tune", place=("gains",), label="gains:")
        self._start = {a: np.asarray(_value(simulation, a), float) for a in given}

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def start(self) -> np.ndarray:
        """Coordinates of the gains that the graph has."""
        return np.array([g.z(g.start) for g in self.entries])

    @property
    def low(self) -> np.ndarray:
        """Bounds from below, as coordinates."""
        return np.array([g.z(g.low) for g in self.entries])

    @property
    def high(self) -> np.ndarray:
        """Bounds from above, as coordinates."""
        return np.array([g.z(g.high) for g in self.entries])

    def starts(self, count: int, random: np.random.Generator) -> np.ndarray:
        """The graph's own gains, and others: between the bounds, or within a factor of ten."""
        low, high, start = self.low, self.high, self.start
        wide = np.array([g.is_bounded for g in self.entries])
        near = np.log(10.0) * np.array(
            [1.0 if g.is_log else abs(g.start) or 1.0 for g in self.entries]
        )
        begin, end = np.where(wide, low, start - near), np.where(wide, high, start + near)
        drawn = begin + (end - begin) * random.random((count - 1, len(start)))
        return np.clip(np.vstack([start, drawn]), low, high)

    def values(self, z: Any) -> Any:
        """The gains themselves, in order."""
        return jnp.stack([g.value(z[i]) for i, g in enumerate(self.entries)])

    def parameters(self, values: Any) -> dict[str, Any]:
        """Values in order as parameters of the graph, by address."""
        found: dict[str, Any] = {}
        for place, gain in enumerate(self.entries):
            if gain.index is None:
                found[gain.address] = values[place]
            else:
                old = found.get(gain.address, self._start[gain.address])
                found[gain.address] = jnp.asarray(old).at[gain.index].set(values[place])
        return found


def _value(simulation: Simulation, address: str) -> Any:
    node, _, rest = address.partition(".")
    return find(simulation.nodes[node], rest).of(simulation.nodes[node])


def _gains(simulation: Simulation, address: str, between: Any) -> list[Gain]:
    at = ("gains", address)
    node, _, rest = address.partition(".")
    if node not in simulation.nodes:
        words = f"no node {node!r}{nearest(node, simulation.nodes)} ({quoted(simulation.nodes)})"
        raise InputError(f"{words}; write 'node.parameter'", place=at, label="gains:")
    try:
        simulation.wiring.refuse_derived({node: {rest: None}})
        leaf = find(simulation.nodes[node], rest)
    except ParameterError as error:
        raise InputError(f"{address}: {error}", place=at, label="gains:") from None
    value = leaf.of(simulation.nodes[node])
    if value is None or np.ndim(value) > 1:
        what = "absent" if value is None else f"of shape {np.shape(value)}"
        raise InputError(
            f"{address} is {what}; a gain is a number or a list", place=at, label="gains:"
        )
    spec = leaf.spec
    lows = [bound for bound in (spec.above, spec.at_least) if bound is not None] if spec else []
    floor = max(lows, default=-np.inf)
    ceiling = spec.at_most if spec is not None and spec.at_most is not None else np.inf
    low, high = _between(address, between)
    names = _names(simulation.nodes[node], np.shape(value))
    found = []
    for place, start in enumerate(np.atleast_1d(np.asarray(value, float))):
        name = f"{address}[{names[place]}]" if np.ndim(value) else address
        is_log = floor >= 0 and (low is None or low > 0)
        if low is None and start == 0:
            raise InputError(
                f"{name} starts at 0; say between which values to look, (least, largest)",
                place=at,
                label="gains:",
            )
        least = max(floor, start - _WIDE * abs(start)) if low is None else low
        if low is None and is_log:
            least = start / _WIDE
        largest = min(ceiling, start + _WIDE * abs(start)) if high is None else high
        if least < floor or largest > ceiling:
            raise InputError(
                f"{address} can be from {floor:g} to {ceiling:g}, got {between}",
                place=at,
                label="gains:",
            )
        start = float(np.clip(start, least, largest))
        index = place if np.ndim(value) else None
        unit = spec.unit if spec else ""
        found.append(
            Gain(address, index, name, unit, start, least, largest, is_log, low is not None)
        )
    return found


def _between(address: str, given: Any) -> tuple[float | None, float | None]:
    if given is None:
        return None, None
    name = f"gains[{address!r}]"
    ends = several(name, given)
    if len(ends) != 2:
        raise wrong(name, "(least, largest)", given)
    low, high = real(name, ends[0]), real(name, ends[1])
    if not low < high:
        raise InputError(
            f"{address}: (least, largest), the first below the second, got {low:g}, {high:g}",
            place=("gains", address),
            label="gains:",
        )
    return low, high


def _names(node: Any, shape: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the entries: of joints, where they are those."""
    tree = getattr(node, "tree", None)
    joints = tree.joint_names if tree is not None else ()
    count = shape[0] if shape else 0
    return joints if len(joints) == count else tuple(map(str, range(count)))
