"""Base parameters: the sums of moments of bodies that a log can tell where it tells none of them.

    a · theta with a · w = 0 for every direction w of theta that changes no reading

Torques are linear in the moments of bodies, in rotor inertias and in friction, so these sums are
exact, whatever the values: as many as the rank, each led by the body nearest to the root.
"""

import re
from collections.abc import Sequence

import numpy as np

from mime.fitting.combinations import Combination, combinations, reduced
from mime.fitting.parameters import KINDS, Told
from mime.fitting.rank import Rank
from mime.fitting.unknown import Coordinate
from mime.running.simulation import Simulation

_NO_PART = 1e-6
"""A part of a sum below this share of the largest is rounding."""
_LINEAR = ("friction_n_m", "rotor_inertia_kg_m2", "spring_stiffness_n_m_per_rad", "compensated_m")
_SYMBOLS = {"mass_kg": "m", "moment_kg_m": "m", "origin_inertia_kg_m2": "I", "inertia_kg_m2": "I"}
_MOMENT = re.compile(r".*\[([^\]]+)\]\.(\w+?)(?:\[(\w+)\])?")


def all_combinations(simulation: Simulation, shown: Told, rank: Rank) -> list[Combination]:
    """Sums of moments of bodies, and of other parameters what `combinations` finds."""
    summed = members(shown.coordinates, rank)
    return [
        *base_parameters(shown.coordinates, shown.z, rank),
        *combinations(simulation, shown.coordinates, shown.z, rank, summed),
    ]


def members(coordinates: Sequence[Coordinate], rank: Rank) -> list[int]:
    """Bodies' moments that are not known, and other parameters that trade with them."""
    loose = [
        j
        for j, kind in enumerate(rank.kinds())
        if kind in ("combination", "unknown") and coordinates[j].kind in KINDS
    ]
    moments = [j for j in loose if coordinates[j].kind == "body"]
    silent = (rank.widest[:, None] * rank.directions)[:, rank.is_zero]
    shared = np.abs(silent @ silent[moments].T).max(axis=1, initial=0.0)
    return [j for j in loose if coordinates[j].kind == "body" or shared[j] > _NO_PART]


def base_parameters(
    coordinates: Sequence[Coordinate], z: np.ndarray, rank: Rank
) -> list[Combination]:
    """Sums of two or more that the log tells; each is independent of the others."""
    of = members(coordinates, rank)
    if not any(coordinates[j].kind == "body" for j in of):
        return []
    silent = (rank.widest[:, None] * rank.directions)[of][:, rank.is_zero]
    _, s, Vt = np.linalg.svd(silent.T, full_matrices=True)
    rows = reduced(Vt[np.count_nonzero(s > 1e-7) :])
    values = np.array([float(coordinates[j].value(z[j])) for j in of])
    slopes = np.array([values[i] if coordinates[j].is_log else 1.0 for i, j in enumerate(of)])
    slopes *= [1.0 if coordinates[j].is_log else coordinates[j].scale for j in of]
    found = []
    for row in rows:
        row = np.where(np.abs(row) > _NO_PART * np.abs(row).max(), row, 0.0)
        used = np.flatnonzero(row)
        lead = row[used[0]] / slopes[used[0]]
        factors = np.where(row != 0, row / slopes / lead, 0.0)
        gradient = np.zeros(len(z))
        gradient[of] = row / lead
        half = rank.half_width(gradient)
        if len(used) < 2 or not rank.plain.half_width(gradient) <= np.linalg.norm(gradient):
            continue
        parts = [(float(factors[i]), coordinates[of[i]]) for i in used]
        value = float(factors @ values)
        found.append(
            Combination(
                _sum([(factor, _symbol(c.name)) for factor, c in parts]),
                parts[0][1].unit,
                value,
                value - half,
                value + half,
                tuple(c.name for _, c in parts),
                not all(c.kind == "body" or any(n in c.name for n in _LINEAR) for _, c in parts),
            )
        )
    return found


def _symbol(name: str) -> str:
    """`arm.link[forearm].origin_inertia_kg_m2[zz]` is Izz[forearm], a first moment mx[forearm]."""
    match = _MOMENT.fullmatch(name)
    if match is None or match[2] not in _SYMBOLS:
        return name
    return f"{_SYMBOLS[match[2]]}{match[3] or ''}[{match[1]}]"


def _sum(parts: Sequence[tuple[float, str]]) -> str:
    words = ""
    for factor, name in parts:
        size = f"{abs(factor):.4g}"
        sign = (" - " if words else "-") if factor < 0 else (" + " if words else "")
        words += sign + (name if size == "1" else f"{size} {name}")
    return words
