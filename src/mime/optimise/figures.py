"""Figures of merit as differentiable functions of a run's samples.

The figures are those of scenario files (`scenarios/merits.py`). A time is found on straight lines
between samples, so that it has a slope; a run that never settles counts as longer than it is, by
how far from the band it ends.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from mime.scenarios.fields import split_field
from mime.scenarios.merits import Comparison, Merit, Quantile, Response


def figure(merit: Merit, time_s: np.ndarray, recorded: Any) -> Any:
    """A figure in its field's unit, of `{node: {field: (time, ...)}}`."""
    y, first = picked(merit.field, recorded), int(np.searchsorted(time_s, merit.after))
    if isinstance(merit, Comparison):
        earlier = _earlier(time_s, picked(merit.reference, recorded), merit.lag)
        counts = (time_s >= merit.after) & (time_s - merit.lag >= time_s[0])
        return _compared(merit.kind, (y - earlier)[np.flatnonzero(counts)])
    if isinstance(merit, Response):
        return _response(merit, time_s, y)
    if isinstance(merit, Quantile):
        return jnp.quantile(y[first:], merit.q)
    if merit.kind == "rms":
        return _root(jnp.mean(y[first:] ** 2))
    if merit.kind == "final":
        return y[-1]
    if merit.kind == "mean":
        return jnp.mean(y[first:])
    assert merit.kind in ("min", "max"), merit.kind
    sign = -1.0 if merit.kind == "min" else 1.0
    return sign * largest(sign * y[first:])


def picked(name: str, recorded: Any) -> Any:
    """The samples of a field, or of a part of it."""
    node, field, index = split_field(name)
    values = recorded[node][field]
    return values if index is None else values[(slice(None), *index)]


def largest(x: Any) -> Any:
    """max x. The slope of `jnp.max` looks for entries equal to the largest; where a compiler rounds
    the two differently there are none, and the slope is 0 / 0.
    """
    flat = x.ravel()
    return flat[jnp.argmax(flat)]


def _root(x: Any) -> Any:
    """sqrt, with a slope of 0 at 0."""
    return jnp.where(x == 0, 0.0, jnp.sqrt(jnp.where(x == 0, 1.0, x)))


def _earlier(t: np.ndarray, y: Any, lag: float) -> Any:
    """y(t - lag), on straight lines between samples."""
    if not lag:
        return y
    flat = y.reshape(len(t), -1)
    moved = [jnp.interp(t - lag, t, flat[:, j]) for j in range(flat.shape[1])]
    return jnp.stack(moved, axis=1).reshape(y.shape)


def _compared(kind: str, error: Any) -> Any:
    if kind == "rms_error":
        return _root(jnp.mean(error**2))
    squares = jnp.sum(error.reshape(len(error), -1) ** 2, axis=1)
    return _root(jnp.mean(squares)) if kind == "rms_distance" else _root(largest(squares))


def _response(merit: Any, time: np.ndarray, y: Any) -> Any:
    """Settling time, rise time and overshoot of the way from y0 to y1."""
    first = max(int(np.searchsorted(time, merit.after, side="right")) - 1, 0)
    t, values = time[first:] - merit.after, y[first:]
    y0, y1 = values[0], values[-1] if merit.target is None else merit.target
    way = (values - y0) / (y1 - y0)
    if merit.kind == "overshoot":
        return 100.0 * jnp.maximum(0.0, largest(way - 1.0))
    if merit.kind == "rise_time":
        return _crossing(t, way, 0.9) - _crossing(t, way, 0.1)
    off = jnp.abs(way - 1.0)
    last = jnp.max(jnp.where(~(off <= merit.band), jnp.arange(len(t)), -1))
    k = jnp.clip(last, 0, len(t) - 2)
    settles = _between(t, off, k, merit.band)
    never = t[-1] * off[-1] / merit.band
    inside = jnp.where(last < 0, jnp.maximum(t[0], 0.0), settles)
    return jnp.where(last == len(t) - 1, never, inside)


def _crossing(t: np.ndarray, way: Any, level: float) -> Any:
    """When `way` first reaches the level; beyond the end where it does not."""
    k = jnp.clip(jnp.argmax(way >= level), 1, len(t) - 1) - 1
    never = t[-1] * (2.0 - way[-1] / level)
    return jnp.where(jnp.max(way) >= level, _between(t, way, k, level), never)


def _between(t: np.ndarray, y: Any, k: Any, level: float) -> Any:
    """The time between samples k and k + 1 at which y passes the level."""
    times = jnp.asarray(t)
    rise = y[k + 1] - y[k]
    part = (level - y[k]) / jnp.where(rise == 0, 1.0, rise)
    return times[k] + jnp.clip(part, 0.0, 1.0) * (times[k + 1] - times[k])
