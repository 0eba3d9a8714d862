"""How far a sampled loop is from its stability limit, with slopes by the matrices of its step.

    gain margin          -20 log10 |L|         where L is real and negative
    phase margin         |arg(-L)|             where |L| = 1
    delay margin         arg(-L) T / angle     there, arg from 0 to 2 pi: a delay only turns back
    largest sensitivity  Ms = max |1 / (1 + L)|

Each is 0 at the stability limit, Ms by its inverse, the least distance of L from -1. A margin at an
angle that is held by h(L) = 0 changes as L does there and as the angle moves so that h stays 0.

Where A is not linear in g (a servo within a node that is solved implicitly, a PI in a matrix
exponential), or gains act on several signals, there is no L(z) (`loop_gain.py`): the gain margin is
then the factor at which an eigenvalue of A(g) leaves the unit circle, and there is no other.
"""

import dataclasses
import itertools
from collections.abc import Callable, Collection

import numpy as np

from mime.tuning.loop_gain import UNSTABLE, LoopGain, radius

ALL = ("gain_db", "gain_down_db", "phase_deg", "delay_s", "sensitivity")
_FACTORS = np.logspace(-3.0, 3.0, 121)
_NONE = float("nan")


@dataclasses.dataclass(frozen=True)
class Margin:
    """How far a loop is from its stability limit.

    All is NaN for a loop that is unstable, or that has no gain where the run ends.
    """

    is_stable: bool
    gain_db: float = _NONE
    """By how much the gain may grow; infinite if by any amount."""
    gain_down_db: float = _NONE
    """By how much it may fall (negative); minus infinite if to nothing."""
    phase_deg: float = _NONE
    """NaN where there is no L(z); infinite where |L| never is 1."""
    crossover_hz: float = _NONE
    """Where |L| = 1 and the phase margin is least; NaN without such a frequency."""
    sensitivity: float = _NONE
    """Ms, the largest |1 / (1 + L)|; NaN where there is no L(z)."""
    delay_s: float = _NONE
    """The delay that the loop bears; NaN where there is no L(z), infinite if any."""


@dataclasses.dataclass(frozen=True)
class Distance:
    """A margin as a distance from the stability limit, and what it changes by."""

    value: float
    angle: float = _NONE
    """Radians a period, where it is least."""
    weight: complex = 0.0
    """The distance changes by Re(weight dL), dL that of the matrices alone."""


def margin_of(matrix: Callable[[float], np.ndarray], period_s: float) -> Margin:
    """The margins of a loop whose gains, times g, make the matrix A(g)."""
    loop = LoopGain(matrix(1.0), matrix(0.0))
    if not (np.isfinite(loop.closed).all() and np.isfinite(loop.opened).all()):
        return Margin(False)
    if not loop.is_stable:
        return Margin(False)
    if not loop.has_gain:
        return Margin(True)
    if not is_one_signal(loop, matrix(0.5)):
        up, down = _by_factors(matrix)
        return Margin(True, up, down)
    found = distances(loop, period_s)
    phase = found["phase_deg"]
    return Margin(
        True,
        gain_db=found["gain_db"].value,
        gain_down_db=-found["gain_down_db"].value,
        phase_deg=phase.value,
        crossover_hz=phase.angle / (2.0 * np.pi * period_s),
        sensitivity=1.0 / found["sensitivity"].value,
        delay_s=found["delay_s"].value,
    )


def is_one_signal(loop: LoopGain, half: np.ndarray) -> bool:
    """A(g) = A(0) + g b cᵀ, by A(1/2): there is an L(z)."""
    change = loop.closed - loop.opened
    size = max(float(np.abs(change).max(initial=0.0)), 1e-300)
    if np.abs(half - 0.5 * (loop.closed + loop.opened)).max(initial=0.0) > 1e-7 * size:
        return False
    sizes = np.linalg.svd(change, compute_uv=False)
    return len(sizes) < 2 or bool(sizes[1] <= 1e-7 * sizes[0])


def distances(loop: LoopGain, period_s: float, keys: Collection[str] = ALL) -> dict[str, Distance]:
    """Margins of a stable loop that has an L(z), at least those that are asked for."""
    found = {}
    if "gain_db" in keys or "gain_down_db" in keys:
        found["gain_db"], found["gain_down_db"] = _gain(loop)
    if "phase_deg" in keys or "delay_s" in keys:
        found["phase_deg"], found["delay_s"] = _phase(loop, period_s)
    if "sensitivity" in keys:
        found["sensitivity"] = _sensitivity(loop)
    return found


def _gain(loop: LoopGain) -> tuple[Distance, Distance]:
    """How far the gain may grow, and how far it may fall, in decibel."""
    (angles, L), found = loop.curve, []
    turns = (L.imag[:-1] * L.imag[1:] < 0) & (L.real[:-1] < 0) & (L.real[1:] < 0)
    for k in np.flatnonzero(turns):
        angle = _root(lambda a: loop.one(a).imag, angles[k], angles[k + 1])
        if abs(loop.one(angle).imag) < 1e-6 * abs(loop.one(angle)):  # else it jumps: a pole
            found.append((angle, loop.slope(angle)))
    if L[-1].real < 0:  # at Nyquist's frequency L is real, and the angle stays
        found.append((angles[-1], 1j))
    both = {1.0: Distance(np.inf), -1.0: Distance(np.inf)}
    for angle, slope in found:
        real = loop.one(angle).real
        room = -20.0 * np.log10(-real)
        side = 1.0 if room >= 0 else -1.0
        if abs(room) < both[side].value:
            weight = -side * 20.0 / np.log(10.0) * (1.0 + 1j * slope.real / slope.imag) / real
            both[side] = Distance(float(abs(room)), float(angle), complex(weight))
    return both[1.0], both[-1.0]


def _phase(loop: LoopGain, period_s: float) -> tuple[Distance, Distance]:
    """Phase margin in degrees, and delay margin in seconds."""
    angles, L = loop.curve
    loud = np.abs(L) - 1.0
    phase, delay = Distance(np.inf), Distance(np.inf)
    for k in np.flatnonzero(loud[:-1] * loud[1:] < 0):
        angle = _root(lambda a: abs(loop.one(a)) - 1.0, angles[k], angles[k + 1])
        here = loop.one(angle)
        turn, slope = float(np.angle(-here)), loop.slope(angle) / here
        if np.degrees(abs(turn)) < phase.value:
            weight = np.degrees(np.sign(turn)) * (-1j - slope.imag / slope.real) / here
            phase = Distance(float(np.degrees(abs(turn))), angle, complex(weight))
        back = turn % (2.0 * np.pi)
        if back * period_s / angle < delay.value:
            moved = (slope.imag - back / angle) / slope.real
            weight = period_s / angle * (-1j - moved) / here
            delay = Distance(back * period_s / angle, angle, complex(weight))
    return phase, delay


def _sensitivity(loop: LoopGain) -> Distance:
    """The least |1 + L|, the inverse of the largest sensitivity."""
    from scipy.optimize import minimize_scalar

    angles, L = loop.curve
    k = int(np.argmin(np.abs(1.0 + L)))
    low, high = angles[max(k - 1, 0)], angles[min(k + 1, len(angles) - 1)]
    near = minimize_scalar(
        lambda a: abs(1.0 + loop.one(a)),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-10 * high},
    )
    angle = min(float(near.x), float(angles[k]), key=lambda a: abs(1.0 + loop.one(a)))
    there = 1.0 + loop.one(angle)
    return Distance(abs(there), angle, np.conj(there) / abs(there))


def _root(f: Callable[[float], float], a: float, b: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(f, a, b, xtol=1e-14, rtol=1e-12))


def _by_factors(matrix: Callable[[float], np.ndarray]) -> tuple[float, float]:
    """The factors nearest to 1 at which A(g) is unstable, in decibel."""

    def beyond(exponent: float) -> float:
        A = matrix(10.0**exponent)
        return radius(A) - 1.0 - UNSTABLE if np.isfinite(A).all() else 1.0

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
