"""The next experiment: a designed input beside a chirp and a step as long, within the same limits.

The motor is that of the fits: 6 V and 3 A at most, 0.3 s at 1 kHz, noise of 0.5 rad/s and 50 mA,
all of R, L, kt, J and b unknown, delays as well. There are 20 designs, each from another start, and
the best of them. The logs are matrix exponentials in NumPy with the noise of 20 seeds, for the
best, for each design its own (`designs`), for the chirp and the step; each is fitted. An interval
is half of the 95 % one and an error its root mean square over the seeds; both are of the five
parameters' geometric mean. The arm
moves for 3 s at 20 Hz; what is told is its torques' information on its nine base parameters.
"""

import sys
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from harness import Case, Figure

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import mime
from fitting.motors import COLUMNS, NOISE, PERIOD, TRUE, UNKNOWNS, bench, motor_matrices, sampled

SEEDS = 20
VOLTS, SPEED, CURRENT = COLUMNS["volts"], COLUMNS["speed"], COLUMNS["current"]


def cases(threads: int) -> Iterator[Case | Figure]:
    """Foretold, then as fits find it."""
    for name in ("design", "chirp", "step"):
        yield Figure(f"motor, {name}: log det", lambda n=name: outlook(n).log_det, "")
    for word, of in (("least", np.min), ("median", np.median), ("spread", np.std)):
        title = f"motor, {SEEDS} designs from other starts: {word} log det"
        yield Figure(title, lambda of=of: float(of([e.log_det for e in planned().ends])), "")
    for name in ("chirp", "step"):
        for other in ("design", "designs"):
            for what, place in (("intervals", 0), ("errors", 1)):
                title = f"motor, {what} of {SEEDS} fits: {name} over {other}"
                value = partial(over_design, name, other, place)
                yield Figure(title, value, "times", 1.0, True)
    yield Figure("motor, truth within its interval, designs", coverage, "% of 100")
    for name in ("chirp", "step"):
        title = f"arm of three joints, intervals foretold: {name} over design"
        yield Figure(title, lambda n=name: motion().narrower(n), "times", 1.0, True)


@cache
def planned() -> mime.Design:
    sensors = {SPEED: NOISE[0], CURRENT: NOISE[1]}
    options: dict[str, Any] = {"duration": 0.3, "period": PERIOD, "limits": {CURRENT: 3.0}}
    return mime.design(bench(1.0), {VOLTS: 6.0}, sensors, UNKNOWNS, starts=SEEDS, **options)


@cache
def motion() -> mime.MotionDesign:
    tree = mime.parse_urdf(mime.model_path("planar_arm_3link"))
    return mime.design_motion(tree, duration=3.0, period=0.05, noise=0.1, harmonics=4)


def outlook(name: str, seed: int = 0) -> Any:
    own = {"design": planned().outlook, "designs": planned().ends[seed]}
    return own.get(name) or planned().others[name]


@cache
def fitted(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Half intervals, errors, as parts, and whether the truth is inside (seeds, parameters)."""
    inputs = [outlook(name, seed).inputs[VOLTS] for seed in range(SEEDS)]
    found = [_fitted(planned().time_s, volts, seed) for seed, volts in enumerate(inputs)]
    half, error, inside = (np.array(part) for part in zip(*found, strict=True))
    return half, error, inside


def _fitted(time: np.ndarray, volts: np.ndarray, seed: int) -> tuple[Any, Any, Any]:
    late = sampled(*motor_matrices(**TRUE), volts, time, time, 0.5 * PERIOD)
    readings = late + NOISE * np.random.default_rng(seed).normal(size=late.shape)
    log = {"time": time, "volts": volts, "speed": readings[:, 0], "current": readings[:, 1]}
    fit = mime.fit(bench(1.0), log, COLUMNS, UNKNOWNS, starts=1, progress=False)
    half = [0.5 * np.log(fit[name].high / fit[name].low) for name in UNKNOWNS]
    truth = dict(zip(UNKNOWNS, TRUE.values(), strict=True))
    inside = [fit[name].low <= truth[name] <= fit[name].high for name in UNKNOWNS]
    return half, [np.log(fit[name].value / truth[name]) for name in UNKNOWNS], inside


def over_design(name: str, other: str, place: int) -> float:
    """The geometric mean over the parameters."""
    sizes = [np.sqrt(np.mean(np.square(fitted(n)[place]), axis=0)) for n in (name, other)]
    return float(np.exp(np.mean(np.log(sizes[0] / sizes[1]))))


def coverage() -> float:
    return float(100 * np.mean(fitted("designs")[2]))
