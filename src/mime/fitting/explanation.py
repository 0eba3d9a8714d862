"""Does the model explain the log? What is left of it should be noise: white, and of no pattern.

    Q = n (n + 2) sum rho_k² / (n - k)      (Ljung-Box: chi² of as many degrees as lags, if white)
    R² = rhoᵀ T⁻¹ rho                       (the part of a residual that its past foretells)

A long log shows a pattern that hardly matters, so both must speak: the test, and the part.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mime.fitting.experiment import Experiment, Sensor
from mime.fitting.model import Model

_LAGS = 20
_SURE = 1e-6
"""Probability below which white noise is no explanation."""
_FORETOLD = 0.1
"""The part of a residual's variance that may have a pattern."""
_SMALLEST = 1e-4
"""A residual smaller than this part of the signal's spread needs no explanation."""
_LATE, _LEAST_LATE, _LATEST = 0.1, 0.1, 10.0
"""The part of a residual that a shift in time must take away, and the fewest and most rows of one
that is named: less is no delay of a sensor, and over more a signal is a straight line no longer."""
_APART = 0.3
"""Of their median, how far apart the delays of one sensor in its logs may be."""
_OWN = 0.05
"""A line is no resonance of its own where the model's reading has this part of its power there."""
_LINE = 0.05
"""An input has a line where the bins around it have this part of its power, or of its slope's."""
_MULTIPLES = 5
"""Up to which multiple of a line a part of the motion's own may be."""
_ROWS_A_CYCLE, _ORDER = 12, 10
_NEAR, _LIGHT, _RINGING = 1.3, 0.3, 0.2
"""How near to the largest line the pole of a resonance is, how lightly damped, and how much of the
residual a line must have to be named."""
_RESOLVED = 0.6
"""A residual smaller than this part of the sensor's own step needs none either; rounding alone
leaves 0.29 of it, or 0.58 where a sensor counts whole steps below."""
_STILL = 2.0
"""Where a sensor does not move, a residual below so many times the noise of the logs in which it
does needs none: as much as rounding hides."""
_AGAINST = -0.7
"""Below this correlation a log moves the other way than its model."""
LOUDER = 1.25
"""How much louder than the noise a residual may be, where the noise is known from elsewhere."""


@dataclasses.dataclass(frozen=True)
class Check:
    """One sensor in one log: how large the residual is, and what is seen in it."""

    log: str
    field: str
    over_noise: float
    """Its root mean square, over the sensor's noise."""
    over_signal: float
    """The same over the spread of the signal."""
    probability: float
    """That white noise has such correlations (Ljung-Box)."""
    foretold: float
    """R², the part of its variance that has a pattern."""
    is_explained: bool
    seen: tuple[str, ...]
    """What the pattern is like, in words."""
    left: float = 0.0
    """Root mean square of the residual, in the unit of the field."""
    spread: float = 0.0
    """Standard deviation of the signal, in the same."""
    rows: int = 1


@dataclasses.dataclass(frozen=True)
class Explained:
    """One sensor in all fitted logs: what the model leaves unexplained."""

    field: str
    over_signal: float
    """The residual's root mean square over the spread of the signal in each log."""
    over_noise: float
    """The same over the sensor's noise; near 1 where the noise is estimated from the residual."""
    patterned: float
    """The part of its variance that its own past foretells."""
    is_explained: bool
    """True where that is small enough, in every log."""
    kinds: tuple[str, ...]
    """What the pattern is like, in words, that of most logs first."""

    @property
    def percent(self) -> float:
        """What is left, in percent of the signal."""
        return 100.0 * self.over_signal


def pooled(checks: Sequence[Check]) -> Explained:
    """The checks of one sensor, log by log, as one."""
    rows = np.array([check.rows for check in checks], float)

    def mean(values: Sequence[float]) -> float:
        return float(rows @ np.asarray(values) / rows.sum())

    left, spread = (
        np.sqrt(mean([getattr(check, name) ** 2 for check in checks]))
        for name in ("left", "spread")
    )
    told = [words for check in checks for words in check.seen]
    return Explained(
        checks[0].field,
        float(left / spread) if spread > 0 else 0.0,
        float(np.sqrt(mean([check.over_noise**2 for check in checks]))),
        mean([check.foretold for check in checks]),
        all(check.is_explained for check in checks),
        tuple(sorted(dict.fromkeys(told), key=lambda words: -told.count(words))),
    )


def checks(
    model: Model,
    residuals: Mapping[str, Any],
    noise: Mapping[str, float],
    known_noise: bool | Mapping[str, bool],
    with_delay: Sequence[str],
    motions: Sequence[Mapping[str, np.ndarray]] = (),
) -> list[Check]:
    """One for each sensor of each log.

    known_noise   the noise is not that of these residuals
    motions       of each log, at the rows of each sensor, (rows, signals): what was commanded
                  besides the inputs
    """
    found = []
    each = [
        [s.measured + r for s, r in zip(e.sensors, left, strict=True)]
        for e, left in zip(model.experiments, model.split(residuals), strict=True)
    ]
    late = {field: _late_in_all(model, field, each) for field in model.fields}
    for number, (experiment, made) in enumerate(zip(model.experiments, each, strict=True)):
        for sensor, reading in zip(experiment.sensors, made, strict=True):
            sure = known_noise if isinstance(known_noise, bool) else known_noise[sensor.field]
            may_be_late = sensor.field not in with_delay
            moved = list(motions[number][sensor.field].T) if motions else []
            rows = late[sensor.field] if may_be_late else 0.0
            words = _seen(experiment, sensor, made, reading, may_be_late, rows, moved)
            found.append(_check(experiment, sensor, reading, noise[sensor.field], sure, words))
    return found


def _check(
    experiment: Experiment,
    sensor: Sensor,
    reading: np.ndarray,
    noise: float,
    sure: bool,
    seen: list[str],
) -> Check:
    r = reading - sensor.measured
    size, spread = float(np.sqrt(np.mean(r**2))), float(np.std(sensor.measured))
    probability, foretold = whiteness(r)
    has_pattern = probability < _SURE and foretold > _FORETOLD
    allowed = LOUDER + 3.0 / np.sqrt(2.0 * len(r))
    is_loud = sure and size / noise > allowed
    is_small = size < _SMALLEST * spread or size < _RESOLVED * resolution(sensor.measured)
    is_small |= spread == 0 and size < _STILL * noise
    is_explained = is_small or not (has_pattern or is_loud)
    if is_loud:
        seen = [f"it is {size / noise:.2g} times the noise", *seen]
    return Check(
        experiment.name,
        sensor.field,
        size / noise,
        size / spread if spread else 0.0,
        probability,
        foretold,
        is_explained,
        () if is_explained else tuple(seen),
        size,
        spread,
        len(r),
    )


def resolution(values: np.ndarray) -> float:
    """The step of a signal that comes in steps, as an encoder's does; 0 of any other."""
    levels = np.unique(values)
    apart = np.diff(levels)
    if len(apart) < 2 or len(levels) > 0.9 * len(values):
        return 0.0
    step = float(np.min(apart))
    off = np.abs(apart / step - np.round(apart / step))
    return step if step > 1e-9 * np.ptp(levels) and np.all(off < 1e-3) else 0.0


def whiteness(r: np.ndarray) -> tuple[float, float]:
    """The probability of such correlations in white noise, and the part R² that is foretold."""
    from scipy.linalg import solve_toeplitz
    from scipy.special import chdtrc

    n, rho = len(r), correlations(r)
    lags = len(rho)
    if not lags:
        return 1.0, 0.0
    Q = n * (n + 2) * np.sum(rho**2 / (n - np.arange(1, lags + 1)))
    foretold = float(rho @ solve_toeplitz(np.concatenate([[1.0], rho[:-1]]), rho))
    return float(chdtrc(lags, Q)), max(foretold - lags / n, 0.0)


def correlations(r: np.ndarray) -> np.ndarray:
    """rho_1, rho_2, ...: up to twenty lags, or a fifth of the rows; none of a constant."""
    n, r = len(r), r - np.mean(r)
    lags, power = min(_LAGS, n // 5), r @ r
    if power == 0:
        return np.zeros(0)
    return np.array([r[k:] @ r[: n - k] for k in range(1, lags + 1)]) / power


def _seen(
    experiment: Experiment,
    sensor: Sensor,
    made: Sequence[np.ndarray],
    reading: np.ndarray,
    may_be_late: bool,
    late_rows: float,
    moved: Sequence[np.ndarray],
) -> list[str]:
    r = reading - sensor.measured
    words = []
    if may_be_late and (limit := sensor.place.channel.delay):
        words.append(f"its delay is at the limit of {limit} row{'s' * (limit > 1)}")
    elif late_rows:
        late = "late" if late_rows > 0 else "early"
        words.append(
            f"it is as if the sensor were {abs(late_rows):.2g} rows {late}; let `delay` be unknown"
        )
    speed = speed_of(experiment, sensor, made)
    if speed is not None:
        slow = np.abs(speed) < 0.1 * np.max(np.abs(speed))
        if 10 <= np.count_nonzero(slow) <= len(r) - 10:
            ratio = np.sqrt(np.mean(r[slow] ** 2) / np.mean(r[~slow] ** 2))
            if ratio > 1.5:
                words.append(
                    f"it is {ratio:.1f} times as large at low speed: stick, or dry friction, "
                    "is in the log and not in the model"
                )
    frequency, part = line(r, experiment.period_s)
    driven = _inputs(experiment, sensor)
    commanded = (*driven, *map(np.gradient, driven), *moved)
    if any(has_line(values, frequency, experiment.period_s) for values in commanded):
        return words  # it follows the motion that was asked for
    if any(is_multiple(x, frequency, experiment.period_s) for x in (*commanded, reading)):
        return words  # as that of friction does, which turns with the motion
    resonant = resonance(r, driven, experiment.period_s)
    if resonant is not None and part > _RINGING and not _has(reading, resonant[0], experiment):
        words.append(
            f"it rings at {resonant[0]:.3g} Hz, damped to {resonant[1]:.2g} of critical: a "
            "resonance, as of an elastic joint, is in the log and not in the model"
        )
    elif part > _RINGING and not has_line(reading, frequency, experiment.period_s):
        words.append(f"{part:.0%} of it is about {frequency:.3g} Hz")
    return words


def is_multiple(values: np.ndarray, frequency: float, period_s: float) -> bool:
    """A frequency is twice to five times that of a signal's largest line, within its width."""
    first, part = line(values, period_s)
    number = round(frequency / first) if first > 0 and part > _LINE else 0
    apart = abs(frequency - number * first) * len(values) * period_s
    return 2 <= number <= _MULTIPLES and apart <= 2.0


def has_line(values: np.ndarray, frequency: float, period_s: float) -> bool:
    """A signal has a line of its own at a frequency, within the width of a line in its rows."""
    power = np.abs(np.fft.rfft((values - np.mean(values)) * np.hanning(len(values)))) ** 2
    at = round(frequency * len(values) * period_s)
    near = power[max(at - 2, 1) : at + 3]
    return bool(near.sum() > _LINE * power[1:].sum() > 0)


def _late_in_all(model: Model, field: str, made: Sequence[Sequence[np.ndarray]]) -> float:
    """The median of the rows by which a sensor is late; 0 unless it is so in all logs alike."""
    rows = np.array(
        [
            _late_rows(sensor, reading)
            for e, readings in zip(model.experiments, made, strict=True)
            for sensor, reading in zip(e.sensors, readings, strict=True)
            if sensor.field == field and np.ptp(sensor.measured) > 0
        ]
    )
    middle = float(np.median(rows)) if len(rows) else 0.0
    return middle if np.all(np.abs(rows - middle) <= _APART * abs(middle)) else 0.0


def _late_rows(sensor: Sensor, reading: np.ndarray) -> float:
    """By how many rows a shift of the reading takes most away of the residual; 0 if it does not."""
    r = reading - sensor.measured
    slope = np.gradient(reading, sensor.positions)
    steep = float(slope @ slope)
    rows = float(r @ slope) / steep if steep > 0 else 0.0
    if not _LEAST_LATE <= abs(rows) <= _LATEST:
        return 0.0
    then = np.interp(sensor.positions - rows, sensor.positions, reading) - sensor.measured
    return rows if then @ then < (1.0 - _LATE) * (r @ r) else 0.0


def _has(reading: np.ndarray, frequency: float, experiment: Experiment) -> bool:
    """The model moves at that frequency itself, by its spectrum or by its own poles."""
    power = np.abs(np.fft.rfft((reading - np.mean(reading)) * np.hanning(len(reading)))) ** 2
    lines = np.fft.rfftfreq(len(reading), experiment.period_s)
    near = (lines > frequency / _NEAR) & (lines < frequency * _NEAR)
    return bool(power[near].sum() > _OWN * power[1:].sum())


def turned(sensor: Sensor, reading: np.ndarray) -> str:
    """Words, where a log moves against the model with its start values; else nothing."""
    a, b = reading - np.mean(reading), sensor.measured - np.mean(sensor.measured)
    size = float(np.sqrt((a @ a) * (b @ b)))
    if not size > 0 or a @ b > _AGAINST * size:
        return ""
    return (
        f"with the start values it goes against the model (correlation {a @ b / size:.2f}): is "
        f"the sign of column {sensor.column!r}, or of an input, the other one?"
    )


def _inputs(experiment: Experiment, sensor: Sensor) -> list[np.ndarray]:
    """Inputs that change, in the rows of a sensor."""
    at = np.searchsorted(experiment.positions, sensor.positions + 1e-9, side="right") - 1
    flat = [rows.reshape(len(rows), -1)[at].T for rows in experiment.driven.values()]
    return [column for columns in flat for column in columns if np.ptp(column) > 0]


def resonance(
    r: np.ndarray, inputs: Sequence[np.ndarray], period_s: float
) -> tuple[float, float] | None:
    """Frequency and damping ratio of a resonance that the residual has, driven by the inputs.

    r_k = sum a_i r_{k-i} + sum b_i u_{k-i}: the pole of 1 - sum a_i z^-i nearest to the largest
    line, if it is lightly damped. Rows are averaged to a dozen a cycle, where poles lie well apart.
    """
    frequency, _ = line(r, period_s)
    if frequency <= 0:
        return None
    together = max(1, int(1.0 / (_ROWS_A_CYCLE * frequency * period_s)))
    rows = len(r) // together

    def averaged(values: np.ndarray) -> np.ndarray:
        means: np.ndarray = values[: rows * together].reshape(rows, together).mean(axis=1)
        return means - means.mean()

    if rows < 10 * _ORDER:
        return None
    left, driven = averaged(r), [averaged(u) for u in inputs]
    now = np.arange(_ORDER, rows)
    before = [left[now - lag] for lag in range(1, _ORDER + 1)]
    acting = [u[now - lag] for u in driven for lag in range(_ORDER + 1)]
    found, *_ = np.linalg.lstsq(np.column_stack([*before, *acting]), left[now], rcond=None)
    roots: np.ndarray = np.roots(np.concatenate([[1.0], -found[:_ORDER]])).astype(complex)
    poles = np.log(roots[np.abs(roots) > 0]) / (together * period_s)
    poles = poles[poles.imag > 0]
    if not len(poles):
        return None
    pole = poles[np.argmin(np.abs(np.log(poles.imag / (2 * np.pi * frequency))))]
    own, damping = float(pole.imag / (2 * np.pi)), float(-pole.real / abs(pole))
    is_one = 1 / _NEAR < own / frequency < _NEAR and 0 < damping < _LIGHT
    return (own, damping) if is_one else None


def speed_of(
    experiment: Experiment, sensor: Sensor, made: Sequence[np.ndarray]
) -> np.ndarray | None:
    """The speed in a sensor's rows: of a sensor of it in the same node, or of an angle's slope."""
    for other, values in zip(experiment.sensors, made, strict=True):
        if other.place.node != sensor.place.node:
            continue
        if other.place.spec.unit in ("rad/s", "m/s"):
            return np.interp(sensor.positions, other.positions, values)
        if other.place.spec.unit in ("rad", "m"):
            slope = np.gradient(values, other.positions)
            return np.interp(sensor.positions, other.positions, slope)
    return None


def line(r: np.ndarray, period_s: float) -> tuple[float, float]:
    """The frequency of the largest line of a residual, and its part of the variance."""
    window = np.hanning(len(r))
    power = np.abs(np.fft.rfft((r - np.mean(r)) * window)) ** 2
    at = int(np.argmax(power[1:])) + 1 if len(power) > 1 else 0
    near = power[max(at - 2, 1) : at + 3]
    frequencies = np.fft.rfftfreq(len(r), period_s)[max(at - 2, 1) : at + 3]
    total = power[1:].sum()
    if not total:
        return 0.0, 0.0
    return float(near @ frequencies / near.sum()), float(near.sum() / total)
