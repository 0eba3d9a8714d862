"""What a log does tell of unknowns that it does not tell one by one.

First the constants that nodes say decide their motion, such as kt/(J L) of a motor: exact wherever
they hold. Then products and quotients of two or three, with exponents up to 2: true near the
solution only. What is known besides has no simple name, and is told by its number (`untold`).
"""

import dataclasses
import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from mime.fitting.parameters import assembled
from mime.fitting.rank import Rank
from mime.fitting.unknown import WIDEST_LOG, Coordinate
from mime.running.simulation import Simulation

_HIGHEST = 2
"""The largest exponent in a product."""
_MANY = 12
"""With more parameters than this, products of two only are looked for."""


@dataclasses.dataclass(frozen=True)
class Combination:
    """A function of several unknowns that is known, with its 95 % interval."""

    name: str
    unit: str
    value: float
    low: float
    high: float
    unknowns: tuple[str, ...]
    """Those in it that are not known by themselves."""
    is_local: bool
    """A product of powers: true near this solution only."""


def combinations(
    simulation: Simulation,
    coordinates: Sequence[Coordinate],
    z: np.ndarray,
    rank: Rank,
    summed: Sequence[int] = (),
) -> list[Combination]:
    """As many independent ones as the log determines, simple ones first.

    `summed` are parts of sums, `base_parameters`, and so of no product.
    """
    kinds = rank.kinds()
    loose = [
        j
        for j, kind in enumerate(kinds)
        if kind in ("combination", "unknown") and coordinates[j].kind == "parameter"
    ]
    if not loose:
        return []
    found: list[Combination] = []
    taken: np.ndarray = np.zeros((0, len(loose)))
    for name, unit, value, gradient in _lumped(simulation, coordinates, z):
        half, part = rank.half_width(gradient), gradient[loose]
        grown = np.vstack([taken, part])
        is_known = rank.plain.half_width(gradient) <= WIDEST_LOG
        if is_known and np.linalg.matrix_rank(grown, tol=1e-6) > len(taken):
            taken = grown
            names = tuple(coordinates[j].name for j in loose if abs(gradient[j]) > 1e-9)
            ends = value * np.exp(-half), value * np.exp(half)
            found.append(Combination(name, unit, value, *ends, names, False))
    powers = [j for j in loose if coordinates[j].is_log and j not in summed]
    for full in _products(rank, powers, len(z)):
        grown = np.vstack([taken, full[loose]])
        if np.linalg.matrix_rank(grown, tol=1e-3) > len(taken):
            taken = grown
            found.append(_product(coordinates, z, full, rank.half_width(full)))
    return found


def untold(
    coordinates: Sequence[Coordinate], rank: Rank, found: Sequence[Combination]
) -> tuple[int, tuple[str, ...]]:
    """How many more combinations of which parameters are known than are named."""
    elsewhere = {c.name for c in coordinates if c.kind != "parameter"}
    summed = {name for c in found if elsewhere & set(c.unknowns) for name in c.unknowns}
    loose = [
        j
        for j, kind in enumerate(rank.kinds())
        if kind == "combination"
        and coordinates[j].kind == "parameter"
        and coordinates[j].name not in summed
    ]
    names = tuple(coordinates[j].name for j in loose)
    known = rank.count_of([j in loose for j in range(len(coordinates))])
    named = len([c for c in found if set(c.unknowns) <= set(names)])
    return (known - named, names) if known > named else (0, ())


def _lumped(
    simulation: Simulation, coordinates: Sequence[Coordinate], z: np.ndarray
) -> list[tuple[str, str, float, np.ndarray]]:
    """Name, unit, value and gradient of the logarithm of what nodes call their constants."""

    def constants(z: jax.Array) -> dict[tuple[str, str], jax.Array]:
        values = [c.value(z[j]) for j, c in enumerate(coordinates)]
        nodes = simulation.with_parameters(assembled(simulation, coordinates, values)).nodes
        alone = len([node for node in nodes.values() if node.lumped_constants()]) == 1
        return {
            (name if alone else f"{node.name}: {name}", unit): jnp.log(value)
            for node in nodes.values()
            for name, (value, unit) in node.lumped_constants().items()
        }

    logs, slopes = constants(jnp.asarray(z)), jax.jacfwd(constants)(jnp.asarray(z))
    return [
        (name, unit, float(jnp.exp(logs[name, unit])), np.asarray(slopes[name, unit]))
        for name, unit in logs
        if np.isfinite(logs[name, unit]) and np.isfinite(slopes[name, unit]).all()
    ]


def _products(rank: Rank, members: list[int], count: int) -> list[np.ndarray]:
    """Exponents of products of two or three that are known, the simplest first."""
    powers = range(-_HIGHEST, _HIGHEST + 1)
    shapes = {
        size: [
            shape
            for shape in itertools.product(powers, repeat=size)
            if shape[0] > 0 and 0 not in shape and np.gcd.reduce(shape) == 1
        ]
        for size in (2, 3)
    }
    plain, found = rank.plain, []
    for size in (2, 3) if len(members) <= _MANY else (2,):
        for chosen in itertools.combinations(members, size):
            for shape in shapes[size]:
                full = np.zeros(count)
                full[list(chosen)] = shape
                half = plain.half_width(full)
                if half <= WIDEST_LOG:
                    found.append((size, sum(map(abs, shape)), half, full))
    found.sort(key=lambda entry: entry[:3])
    return [entry[3] for entry in found]


def reduced(rows: np.ndarray) -> np.ndarray:
    """The reduced row echelon form: each row has a 1 where the others have 0."""
    rows = rows.copy()
    at = 0
    for column in range(rows.shape[1]):
        if at == len(rows):
            break
        best = at + int(np.argmax(np.abs(rows[at:, column])))
        if abs(rows[best, column]) < 1e-6:
            continue
        rows[[at, best]] = rows[[best, at]]
        rows[at] /= rows[at, column]
        for other in range(len(rows)):
            if other != at:
                rows[other] -= rows[other, column] * rows[at]
        at += 1
    return rows


def _product(
    coordinates: Sequence[Coordinate], z: np.ndarray, exponents: np.ndarray, half: float
) -> Combination:
    rounded = np.where(
        np.abs(exponents - np.round(exponents)) < 1e-3, np.round(exponents), exponents
    )
    used = [j for j in range(len(z)) if abs(rounded[j]) > 1e-3]
    name = " · ".join(_power(coordinates[j].name, rounded[j]) for j in used)
    unit = "·".join(
        _power(f"({coordinates[j].unit})", rounded[j]) for j in used if coordinates[j].unit
    )
    logarithm = float(exponents @ np.where([c.is_log for c in coordinates], z, 0.0))
    ends = np.exp(logarithm - half), np.exp(logarithm + half)
    names = tuple(coordinates[j].name for j in used)
    return Combination(
        name, unit, float(np.exp(logarithm)), float(ends[0]), float(ends[1]), names, True
    )


def _power(name: str, exponent: float) -> str:
    return name if exponent == 1 else f"{name}^{exponent:.3g}"
