"""Unknown parameters as coordinates, and coordinates as what `with_parameters` takes.

    motor.r_ohm                    one number
    arm.joint_friction_n_m_s       every entry of an array; arm.joint_friction_n_m_s[2] is one
    arm.link[forearm]              a body: mass, centre and inertia, ten numbers
    arm.link[forearm].inertia_kg_m2   its inertia alone, six numbers

A body is looked for by the Cholesky factor of its pseudo-inertia, and told by its moments: those
are what torques are linear in, so what is known of them is known everywhere.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime._text import nearest, quoted
from mime.core.address import find
from mime.core.problem import InputError, ParameterError
from mime.fitting import bodies
from mime.fitting.bodies import Body
from mime.fitting.unknown import Coordinate, Unknown, Which
from mime.running.simulation import Simulation

_OF_BODY = ("mass_kg", "com_m", "inertia_kg_m2")
_FACTORS = ("m", "cx", "cy", "cz", "Vxx", "Vyy", "Vzz", "Vxy", "Vxz", "Vyz")
_ARE_LOG = (True, False, False, False, True, True, True, False, False, False)
KINDS = ("parameter", "body")
"""Kinds of coordinates that are parameters of the graph."""


def parameter_coordinates(
    simulation: Simulation, address: str, unknown: Unknown
) -> Iterator[Coordinate]:
    """The coordinates of one unknown; an `InputError` says that the graph has none such."""
    at = ("unknowns", address)
    node, _, rest = address.partition(".")
    if node not in simulation.nodes:
        raise InputError(
            f"no node {node!r}{nearest(node, simulation.nodes)} "
            f"({quoted(simulation.nodes)}); write 'node.parameter'",
            place=at,
            label="unknowns:",
        )
    if (body := _body(simulation, address)) is not None:
        yield from _body_coordinates(address, body, unknown)
        return
    if rest.endswith(".inertia_kg_m2"):
        whole = _body(simulation, address.removesuffix(".inertia_kg_m2"))
        if whole is not None:
            yield from _body_coordinates(address, whole, unknown)
            return
    try:
        simulation.wiring.refuse_derived({node: {rest: None}})
        leaf = find(simulation.nodes[node], rest)
    except ParameterError as error:
        raise InputError(f"{address}: {error}", place=at, label="unknowns:") from None
    value = leaf.of(simulation.nodes[node])
    if value is None:
        raise InputError(
            f"{address} is absent: the model has no such part", place=at, label="unknowns:"
        )
    spec = leaf.spec
    lows = [bound for bound in (spec.above, spec.at_least) if bound is not None] if spec else []
    low = max(lows, default=-np.inf)
    high = spec.at_most if spec is not None and spec.at_most is not None else np.inf
    is_closed = spec is not None and spec.at_least == 0.0 and spec.above is None
    unit = spec.unit if spec else _entry_unit(simulation.nodes[node], rest)
    for entry in np.ndindex(np.shape(value)):
        name = f"{address}[{','.join(map(str, entry))}]" if entry else address
        own = float(np.asarray(value)[entry])
        found = coordinate(name, unit, "parameter", unknown, own, low, high, (name,))
        yield dataclasses.replace(found, may_be_zero=found.low == 0.0 and is_closed)


def _entry_unit(node: Any, address: str) -> str:
    """The unit of `link[NAME].mass_kg`."""
    group, _, field = address.partition("[")
    name = field.partition("].")[2].partition("[")[0]
    entries = node.named_entries().get(group, {}).get(name)
    return entries.unit if entries is not None else ""


def coordinate(
    name: str,
    unit: str,
    kind: str,
    unknown: Unknown,
    own: float,
    low: float,
    high: float,
    key: tuple[Any, ...],
    scale: float | None = None,
) -> Coordinate:
    """The coordinate of one number, with its start checked."""
    start = own if unknown.start is None else unknown.start
    if unknown.between is not None:
        low, high = max(low, unknown.between[0]), min(high, unknown.between[1])
    is_log = low >= 0 and scale is None
    if not low <= start <= high or (is_log and start <= 0):
        sign = "> 0" if is_log and start <= 0 else f"from {low:g} to {high:g}"
        raise InputError(
            f"{name} starts at {start:g} {unit}, and must be {sign}. Give Unknown(start=...)",
            place=("unknowns", name),
            label="unknowns:",
        )
    size = scale or abs(start) or unknown.std or 1.0
    return Coordinate(
        name, unit, kind, is_log, size, start, low, high, unknown.std, unknown.prior, key
    )


def _body(simulation: Simulation, address: str) -> Body | None:
    """Mass, centre and inertia at an address: of a link or a payload; None if it is none."""
    node, _, rest = address.partition(".")
    try:
        leaves = [find(simulation.nodes[node], f"{rest}.{field}") for field in _OF_BODY]
    except ParameterError:
        return None
    return Body(*(np.asarray(leaf.of(simulation.nodes[node]), float) for leaf in leaves))


def _body_coordinates(address: str, body: Body, unknown: Unknown) -> Iterator[Coordinate]:
    """The factors of a body, or the last six for its inertia alone."""
    if unknown.start is not None or unknown.between is not None:
        raise InputError(
            f"{address} is a body: its start is the model's own, and every body that can "
            "exist is within its bounds. Give std (a part of its size) and prior only",
            place=("unknowns", address),
            label="unknowns:",
        )
    if not float(body.mass) > 0:
        raise InputError(
            f"{address} has no mass to start from; give the model a guess of it",
            place=("unknowns", address),
            label="unknowns:",
        )
    size, values = bodies.size_of(body), bodies.factors(body)
    is_whole = not address.endswith(".inertia_kg_m2")
    for i in range(0 if is_whole else 4, 10):
        scale = size if 1 <= i <= 3 else 1.0
        start = float(values[i])
        std = None if unknown.std is None else unknown.std * (start if _ARE_LOG[i] else scale)
        low = 0.0 if _ARE_LOG[i] else -np.inf
        unit = "kg" if i == 0 else "m" if i <= 3 else ""
        key = (address, "whole" if is_whole else "inertia", i, size)
        yield Coordinate(
            f"{address} {_FACTORS[i]}",
            unit,
            "body",
            _ARE_LOG[i],
            scale,
            start,
            low,
            np.inf,
            std,
            unknown.prior,
            key,
        )


def changed_starts(simulation: Simulation, coordinates: Sequence[Coordinate]) -> tuple[str, ...]:
    """Of each unknown body whose inertia no body can have: where it starts instead, in words."""
    found = []
    for address in dict.fromkeys(c.key[0] for c in coordinates if c.kind == "body"):
        own = _own(simulation, address)
        start = bodies.start_inertia(own)
        if not np.array_equal(start, own.inertia):
            start_moments, moments = (
                ", ".join(f"{x:.5g}" for x in np.linalg.eigvalsh(I)) for I in (start, own.inertia)
            )
            found.append(
                f"{address} starts at the nearest inertia that a body can have, principal moments "
                f"{start_moments} kg·m²: the model's own, {moments}, break the triangle inequality"
            )
    return tuple(found)


def assembled(
    simulation: Simulation, coordinates: Sequence[Coordinate | Which], values: Any
) -> dict[str, Any]:
    """`{address: value}` of all parameters among the coordinates; values may be traced."""
    found: dict[str, Any] = {}
    parts: dict[tuple[Any, ...], list[Any]] = {}
    for c, value in zip(coordinates, values, strict=True):
        if c.kind == "body":
            parts.setdefault((*c.key[:2], c.key[3]), []).append(value)
        elif c.kind == "parameter":
            found[c.key[0]] = value
    for (address, kind, size), entries in parts.items():
        if kind == "inertia":
            found[address] = bodies.inertia_of(entries, _own(simulation, address).mass, size)
        elif kind == "central":
            found[address] = bodies.symmetric(entries)
        else:
            is_told = kind == "moments"
            body = (
                bodies.of_moments(jnp.stack(entries))
                if is_told
                else bodies.of_factors(entries, size)
            )
            for field, value in zip(_OF_BODY, body, strict=True):
                found[f"{address}.{field}"] = value
    return found


def _own(simulation: Simulation, address: str) -> Body:
    """The model's body at an address, or that of the inertia there."""
    own = _body(simulation, address.removesuffix(".inertia_kg_m2"))
    assert own is not None, "it was one when the coordinates were made"
    return own


@dataclasses.dataclass(frozen=True)
class Told:
    """The coordinates that results are told in: bodies by their moments, others as they are."""

    coordinates: tuple[Coordinate, ...]
    z: np.ndarray
    of: Callable[[Any], Any]
    """What is told as a function of the coordinates that are looked for."""
    same: bool = False
    """Whether what is told is what is looked for."""

    def turn(self, z: np.ndarray) -> np.ndarray:
        """∂z/∂(told): a Jacobian by what is looked for times this is one by what is told."""
        if self.same:
            return np.eye(len(z))
        return np.linalg.inv(np.asarray(jax.jacfwd(self.of)(jnp.asarray(z))))


def told(simulation: Simulation, coordinates: Sequence[Coordinate], z: np.ndarray) -> Told:
    """Each body's factors as its moments, in units of half of what such a body has."""
    shown = list(coordinates)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for j, c in enumerate(coordinates):
        if c.kind == "body":
            groups.setdefault((c.key[0], c.key[1], c.key[3]), []).append(j)
    scales: dict[tuple[Any, ...], np.ndarray] = {}

    def amounts(group: tuple[Any, ...], values: Any) -> Any:
        address, kind, size = group
        if kind == "whole":
            return bodies.moments(bodies.of_factors(values, size))
        return bodies.entries(bodies.inertia_of(values, _own(simulation, address).mass, size))

    def of(z: Any) -> Any:
        found = [z[j] for j in range(len(coordinates))]
        for group, members in groups.items():
            values = amounts(group, [coordinates[j].value(z[j]) for j in members])
            for i, j in enumerate(members):
                found[j] = values[i] / scales[group][i]
        return jnp.stack(found)

    for group, members in groups.items():
        address, kind, size = group
        own = _own(simulation, address)
        names: tuple[str, ...]
        units: tuple[str, ...]
        if kind == "whole":
            names, units, scale, now = bodies.MOMENTS, bodies.UNITS, bodies.scales(own), "moments"
            link = address
        else:
            names, units = tuple(f"inertia_kg_m2[{n}]" for n in bodies.NAMES), ("kg·m²",) * 6
            scale, now = np.full(6, float(own.mass) * size**2), "central"
            link = address.removesuffix(".inertia_kg_m2")
        scales[group] = 0.5 * scale
        start = amounts(group, [coordinates[j].start for j in members])
        for i, j in enumerate(members):
            shown[j] = dataclasses.replace(
                coordinates[j],
                name=f"{link}.{names[i]}",
                unit=units[i],
                is_log=False,
                scale=float(scales[group][i]),
                start=float(start[i]),
                low=-np.inf,
                high=np.inf,
                std=None,
                key=(address, now, i, size),
            )
    if not groups:
        return Told(tuple(shown), np.asarray(z), of, same=True)
    return Told(tuple(shown), np.asarray(of(jnp.asarray(z))), of)


def kept(simulation: Simulation, coordinates: Sequence[Coordinate], z: Any) -> dict[str, Any]:
    """All parameters as numbers and lists, for `with_parameters` and for a file."""
    values = [c.value(z[j]) for j, c in enumerate(coordinates)]
    found = assembled(simulation, coordinates, values)
    return {address: np.asarray(value).tolist() for address, value in found.items()}
