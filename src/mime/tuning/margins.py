"""Margins of a sampled loop, from the graph's own steps: holds, delays and rates are all in them.

    x(k+1) = A(g) x(k)      one step (or one period of all rates), linear about a working point;
                            g scales the gains of one loop, all others stay closed
    1 + L(z) = det(z - A(1)) / det(z - A(0))

This is exact where the gains of a loop act on one signal, as a PI or the PD of a joint does: then
A(g) = A(0) + g b cᵀ, and the determinant is linear in g. Where A is not linear in g (a servo within
a node that is solved implicitly, a PI in a matrix exponential) there is no L(z): the gain margin is
then the factor at which an eigenvalue of A(g) leaves the unit circle, and there is no phase margin.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from mime.core.program import Program
from mime.core.signals import sample
from mime.core.step import SimulationState

LOOPS = {
    "MotorNode": ("velocity_kp", "velocity_ki"),
    "JointPDNode": ("kp", "kd"),
    "ComputedTorqueNode": ("kp", "kd"),
}
"""Gains that act together, by the type of the node: opening a loop takes all of them away."""
_FREQUENCIES = 4000
_FACTORS = np.logspace(-3.0, 3.0, 121)
_UNSTABLE = 1e-9


@dataclasses.dataclass(frozen=True)
class Margin:
    """How far a loop is from its stability limit."""

    is_stable: bool
    gain_db: float
    """By how much the gain may grow; infinite if by any amount; NaN for a loop that is unstable."""
    gain_down_db: float
    """By how much it may fall (negative); minus infinite if to nothing."""
    phase_deg: float
    """NaN where there is no L(z) or the loop is unstable; infinite where |L| never is 1."""
    crossover_hz: float
    """Where |L| = 1 and the phase margin is least; NaN without such a frequency."""

    @property
    def delay_s(self) -> float:
        """The delay that would use up the phase margin."""
        return self.phase_deg / 360.0 / self.crossover_hz


@dataclasses.dataclass(frozen=True)
class Loop:
    """Gains that act together on one signal: parameters, and which entry where they are lists."""

    name: str
    addresses: tuple[str, ...]
    index: int | None


def loops_of(program: Program, gains: Sequence[Any]) -> list[Loop]:
    """The loops that tuned gains are in: one a node, or one an entry where gains are lists."""
    found: dict[tuple[str, int | None], Loop] = {}
    for gain in gains:
        node, _, rest = gain.address.partition(".")
        parent, dot, _ = rest.rpartition(".")
        own = LOOPS.get(type(program.nodes[node]).__name__, ())
        tuned = [g.address for g in gains if g.address.rpartition(".")[0] == f"{node}{dot}{parent}"]
        others = [f"{node}.{name}" for name in own] if not parent else []
        addresses = tuple(dict.fromkeys([*tuned, *others]))
        tail = gain.name.partition("[")[2]
        name = f"{node}{dot}{parent}" + (f"[{tail}" if gain.index is not None else "")
        found.setdefault((f"{node}{dot}{parent}", gain.index), Loop(name, addresses, gain.index))
    return list(found.values())


def period_of(program: Program) -> int:
    """Steps after which all rates have fired as before."""
    return math.lcm(*(period for _, period in program.wiring.periods), 1)


def step_matrix(program: Program, state: SimulationState, external: Any) -> Any:
    """A = d x(k + period) / d x(k) of all floating numbers of the state, inputs held."""
    parts = state.nodes, state.held
    leaves, structure = jax.tree.flatten(parts)
    moves = [jnp.issubdtype(jnp.result_type(leaf), jnp.floating) for leaf in leaves]
    flat, unravel = ravel_pytree([leaf for leaf, m in zip(leaves, moves, strict=True) if m])

    def ahead(x: Any) -> Any:
        fresh = iter(unravel(x))
        mixed = [next(fresh) if m else leaf for leaf, m in zip(leaves, moves, strict=True)]
        nodes, held = jax.tree.unflatten(structure, mixed)
        now = dataclasses.replace(state, nodes=nodes, held=held)
        for _ in range(period_of(program)):
            now, _ = program.step(now, external)
        after = jax.tree.leaves((now.nodes, now.held))
        return ravel_pytree([leaf for leaf, m in zip(after, moves, strict=True) if m])[0]

    return jax.jacfwd(ahead)(flat)


def external_at(program: Program, inputs: Any, steps: int) -> Callable[[SimulationState], Any]:
    """The external inputs that the run had in its last step."""
    signals = program.signals(inputs, steps)

    def at(state: SimulationState) -> Any:
        before = jnp.maximum(state.step - 1, 0)
        return sample(signals, before, program.time_at(before))

    return at


def scaled(program: Program, loop: Loop, factor: Any, parameters: Mapping[str, Any]) -> Any:
    """Parameters of the loop, times a factor; others as they are."""
    found = dict(parameters)
    for address in loop.addresses:
        node, _, rest = address.partition(".")
        value = parameters.get(address)
        if value is None:
            value = program.nodes[node]
            for part in rest.split("."):
                value = getattr(value, part)
        value = jnp.asarray(value)
        if loop.index is None:
            found[address] = value * factor
        else:
            found[address] = value.at[loop.index].multiply(factor)
    return found


def margin_of(matrix: Callable[[float], np.ndarray], period_s: float) -> Margin:
    """The margins of a loop whose gains, times g, make the matrix A(g)."""
    A1, A0 = matrix(1.0), matrix(0.0)
    none = float("nan")
    if not (np.isfinite(A1).all() and np.isfinite(A0).all()):
        return Margin(False, none, none, none, none)
    if _radius(A1) > 1.0 + _UNSTABLE:
        return Margin(False, none, none, none, none)
    half = matrix(0.5)
    size = max(float(np.abs(A1 - A0).max()), 1e-300)
    if np.abs(half - 0.5 * (A0 + A1)).max() > 1e-7 * size:
        up, down = _by_factors(matrix)
        return Margin(True, up, down, none, none)
    return _from_loop_gain(A1, A0, period_s)


def loop_gain(A1: np.ndarray, A0: np.ndarray, z: np.ndarray) -> np.ndarray:
    """L(z) = det(z - A(1)) / det(z - A(0)) - 1"""
    closed, opened = np.linalg.eigvals(A1), np.linalg.eigvals(A0)
    ratio = np.ones_like(z, complex)
    for p, q in zip(_sorted(closed), _sorted(opened), strict=True):
        ratio = ratio * ((z - p) / (z - q))
    return ratio - 1.0


def _sorted(values: np.ndarray) -> np.ndarray:
    """By size, so that factors of the ratio stay near 1."""
    return values[np.lexsort((values.imag, values.real))]


def _radius(A: np.ndarray) -> float:
    """The largest |eigenvalue|; a double one on the circle is off it by the root of rounding."""
    return float(np.abs(np.linalg.eigvals(A)).max(initial=0.0))


def _from_loop_gain(A1: np.ndarray, A0: np.ndarray, period_s: float) -> Margin:
    angles = np.pi * np.logspace(-7.0, 0.0, _FREQUENCIES)
    L = loop_gain(A1, A0, np.exp(1j * angles))

    def at(angle: float) -> complex:
        return complex(loop_gain(A1, A0, np.exp(1j * np.array([angle])))[0])

    up, down = np.inf, -np.inf
    turns = np.flatnonzero((np.diff(np.sign(L.imag)) != 0) & (L.real[:-1] < 0) & (L.real[1:] < 0))
    for k in turns:
        if L.imag[k] * L.imag[k + 1] < 0:
            angle = _root(lambda a: at(a).imag, angles[k], angles[k + 1])
            up, down = _nearer(up, down, -20.0 * np.log10(abs(at(angle))))
    ends = float(L[-1].real)  # at Nyquist's frequency L is real
    if ends < 0:
        up, down = _nearer(up, down, -20.0 * np.log10(-ends))
    phase, crossover = np.inf, float("nan")
    loud = np.abs(L) - 1.0
    for k in np.flatnonzero(loud[:-1] * loud[1:] < 0):
        angle = _root(lambda a: abs(at(a)) - 1.0, angles[k], angles[k + 1])
        left = abs(np.degrees(np.angle(-at(angle))))
        if left < phase:
            phase, crossover = float(left), angle / (2 * np.pi * period_s)
    return Margin(True, float(up), float(down), phase, float(crossover))


def _nearer(up: float, down: float, room_db: float) -> tuple[float, float]:
    return (min(up, room_db), down) if room_db >= 0 else (up, max(down, room_db))


def _root(f: Callable[[float], float], a: float, b: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(f, a, b, xtol=1e-14, rtol=1e-12))


def _by_factors(matrix: Callable[[float], np.ndarray]) -> tuple[float, float]:
    """The factors nearest to 1 at which A(g) is unstable, in decibel."""

    def beyond(exponent: float) -> float:
        A = matrix(10.0**exponent)
        return _radius(A) - 1.0 - _UNSTABLE if np.isfinite(A).all() else 1.0

    up, down = np.inf, -np.inf
    exponents = np.log10(_FACTORS)
    rising, falling = exponents[exponents >= 0], exponents[exponents <= 0][::-1]
    for path, is_up in ((rising, True), (falling, False)):
        for a, b in itertools.pairwise(path):
            if beyond(b) > 0:
                edge = 20.0 * _root(beyond, a, b)
                up, down = (edge, down) if is_up else (up, edge)
                break
    return float(up), float(down)
