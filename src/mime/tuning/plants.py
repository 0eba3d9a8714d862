"""The plants that gains must serve: the graph's own first, then as it may be instead.

value = nominal exp(s n)          a spread of s, n normal: 0.2 is about 20 percent
value from low to high            a pair, uniform
log values = log found + L n      a fit: L Lᵀ its covariance, so that errors go together
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mime._text import nearest, quoted
from mime.core.address import find
from mime.core.arguments import mapping, real, several, wrong
from mime.core.problem import InputError, ParameterError
from mime.fitting.result import Fit
from mime.running.simulation import Simulation

Spread = float | tuple[float, float]


def plants(
    simulation: Simulation,
    given: Fit | Mapping[str, Spread] | None,
    members: int,
    random: np.random.Generator,
) -> tuple[Simulation, dict[str, np.ndarray]]:
    """The nominal graph, and what varies by address, (members,); the first member is nominal."""
    if isinstance(given, Fit):
        return _fitted(simulation, given, members, random)
    found = {}
    for address, spread in mapping("plants", given, "{'node.parameter': 0.2}").items():
        nominal = _nominal(simulation, address)
        found[address] = _drawn(address, nominal, spread, members, random)
    return simulation, found


def _fitted(
    simulation: Simulation, fit: Fit, members: int, random: np.random.Generator
) -> tuple[Simulation, dict[str, np.ndarray]]:
    parameters = fit.parameters
    names = list(parameters)
    for address in names:
        _nominal(simulation, address)
    chosen = [fit.known.index(name) for name in names]
    values = np.array([parameters[name] for name in names])
    covariance = np.asarray(fit.covariance)[np.ix_(chosen, chosen)]
    is_log = values > 0
    slope = np.where(is_log, 1.0 / np.where(is_log, values, 1.0), 1.0)
    size, axes = np.linalg.eigh(covariance * np.outer(slope, slope))
    root = axes * np.sqrt(np.clip(size, 0.0, None))
    off = random.normal(size=(members, len(names))) @ root.T
    off[0] = 0.0
    drawn = np.where(is_log, values * np.exp(np.where(is_log, off, 0.0)), values + off)
    return simulation.with_parameters(dict(fit.kept)), dict(zip(names, drawn.T, strict=True))


def _nominal(simulation: Simulation, address: str) -> float:
    at = ("plants", address)
    node, _, rest = address.partition(".")
    if node not in simulation.nodes:
        words = f"no node {node!r}{nearest(node, simulation.nodes)} ({quoted(simulation.nodes)})"
        raise InputError(f"{words}; write 'node.parameter'", place=at, label="plants:")
    try:
        simulation.wiring.refuse_derived({node: {rest: None}})
        value = find(simulation.nodes[node], rest).of(simulation.nodes[node])
    except ParameterError as error:
        raise InputError(f"{address}: {error}", place=at, label="plants:") from None
    if value is None or np.shape(value) != ():
        what = "absent" if value is None else f"of shape {np.shape(value)}"
        raise InputError(
            f"{address} is {what}; what varies is one number", place=at, label="plants:"
        )
    return float(value)


def _drawn(
    address: str, nominal: float, spread: Any, members: int, random: np.random.Generator
) -> np.ndarray:
    name = f"plants[{address!r}]"
    if isinstance(spread, int | float) and not isinstance(spread, bool):
        if nominal == 0:
            raise InputError(
                f"{address} is 0, and so is any part of it; give (low, high)",
                place=("plants", address),
                label="plants:",
            )
        values = nominal * np.exp(real(name, spread, above=0) * random.normal(size=members))
    else:
        ends = several(name, spread)
        if len(ends) != 2:
            raise wrong(name, "a relative spread or (low, high)", spread)
        low, high = real(name, ends[0]), real(name, ends[1])
        if not low < high:
            raise InputError(
                f"{address} must be (low, high), the first below the second, got {low:g}, {high:g}",
                place=("plants", address),
                label="plants:",
            )
        values = low + (high - low) * random.random(members)
    values[0] = nominal
    return values
