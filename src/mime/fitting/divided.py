"""A model of whole logs as one of their windows; how long windows are to be."""

import dataclasses
from collections.abc import Mapping, Sequence

import jax
import numpy as np

from mime.fitting.carried import Resets, Run, carried
from mime.fitting.experiment import Experiment, Start, ranges_of
from mime.fitting.first_states import free_slots, measured_slots, told_by_log
from mime.fitting.model import Model
from mime.fitting.sampled import sampled_nodes
from mime.fitting.windows import AUTO, FEWEST_ROWS, Piece, Slot, Windows, cut

_RANGES = 3.0
"""A free run that stays within so many ranges of the signal is near enough to its log."""
_PART = 0.1
"""Of the range that a sensor has in another log: no range of a log is taken for smaller."""


def chosen_seconds(whole: Model, z: np.ndarray, left: Sequence[Sequence[np.ndarray]]) -> float:
    """The longest window in which a free run from z stays near the log; 0: the whole log.

    left   residuals of the whole logs at z, by log and sensor
    """
    ranges = ranges_of(whole.experiments)
    if all(
        _is_near(whole, e.sensors[k].field, e.sensors[k].measured, r, ranges)
        for e, rest in zip(whole.experiments, left, strict=True)
        for k, r in enumerate(rest)
    ):
        return 0.0
    longest = max(e.positions[-1] * e.period_s for e in whole.experiments)
    slowest = max(e.period_s for e in whole.experiments)
    able = [s for s in AUTO if s < longest and s >= FEWEST_ROWS * slowest]
    for seconds in able:
        pieces = [cut(e, seconds) for e in whole.experiments]
        if _stay(whole, carried(whole, z, _resets(whole, pieces))):
            return seconds
    return able[-1] if able else 0.0


def _stay(whole: Model, runs: Sequence[Run]) -> bool:
    ranges = ranges_of(whole.experiments)
    return all(
        _is_near(
            whole,
            s.field,
            s.measured,
            np.interp(s.positions, np.arange(1.0, e.intervals + 1), readings) - s.measured,
            ranges,
        )
        for e, run in zip(whole.experiments, runs, strict=True)
        for s, readings in zip(e.sensors, run.readings, strict=True)
    )


def _is_near(
    model: Model, field: str, measured: np.ndarray, left: np.ndarray, ranges: Mapping[str, float]
) -> bool:
    """Within three ranges of the signal; a gain that is unknown says nothing of that."""
    kinds = {c.kind for c in model.coordinates if c.key[0] == field}
    if "gain" in kinds:
        return bool(np.isfinite(left).all())
    if "offset" in kinds:
        left = left - np.median(left)
    own = max(float(np.ptp(measured)), _PART * ranges[field])
    return bool(np.isfinite(left).all() and np.max(np.abs(left)) <= _RANGES * own)


def _resets(
    whole: Model, pieces: Sequence[Sequence[Piece]], found: Windows | None = None
) -> list[Resets]:
    """Measured states at the start of every window, but for what its log says of its own start.

    found    windows whose states are known better than from the log
    """
    logs = whole.experiments
    of_each = [measured_slots(whole.simulation, e, logs) for e in logs]
    slots = tuple(slot for slot in of_each[0] if all(slot in own for own in of_each))
    resets, number = [], 0
    for e, own, parts in zip(whole.experiments, of_each, pieces, strict=True):
        is_set, values = np.zeros((2, e.intervals, len(slots)))
        for piece in parts:
            given = _given(e) if piece.first == 0 else set()
            is_set[piece.first] = [slot not in given for slot in slots]
            values[piece.first] = (
                [told_by_log(own[s], e, piece.first)[0] for s in slots]
                if found is None
                else [found.starts[number, found.slots.index(s)] for s in slots]
            )
            number += 1
        resets.append(Resets(slots, is_set > 0, values))
    return resets


def _given(e: Experiment) -> set[Slot]:
    """States at the first row that the log says, or that are unknown by name."""
    return {(s.node, s.field, s.index) for s in e.starts}


def divided(whole: Model, seconds: float, z: np.ndarray, found: Windows | None = None) -> Model:
    """The windows of these logs, with what is known of their states from a run at z.

    found    the same windows, with states that are known better than from the log

    The same model where `seconds` is 0, or no log is longer.
    """
    simulation = whole.simulation
    pieces = [cut(e, seconds) for e in whole.experiments] if seconds else []
    if all(len(parts) == 1 for parts in pieces):
        return whole
    log_of = [i for i, parts in enumerate(pieces) for _ in parts]
    flat = [piece for parts in pieces for piece in parts]
    runs = carried(whole, z, _resets(whole, pieces, found))
    told = [measured_slots(simulation, e, whole.experiments) for e in whole.experiments]
    free = dict.fromkeys([*(slot for own in told for slot in own), *free_slots(simulation)])
    slots = tuple(dict.fromkeys([*whole.slots, *free]))
    sampled = sampled_nodes(simulation)
    centre, width = np.zeros((2, len(flat), len(slots)))
    for j, slot in enumerate(slots):
        node, field, index = slot
        spread = _spread(runs, slot)
        for k, (piece, i) in enumerate(zip(flat, log_of, strict=True)):
            e = whole.experiments[i]
            own = runs[i].nodes[node][field][piece.first]
            centre[k, j], width[k, j] = float(own[index]), spread
            if piece.first == 0 and slot in _given(e):
                width[k, j] = 0.0
            elif slot in told[i]:
                centre[k, j], width[k, j] = told_by_log(told[i][slot], e, piece.first)
            if slot not in free:
                width[k, j] = 0.0
    moves = (width > 0).any(axis=0) | np.array([s in whole.slots for s in slots], bool)
    kept = [j for j in range(len(slots)) if moves[j]]
    windows = Windows(
        seconds,
        _with_rows_of(whole.experiments, pieces),
        tuple(log_of),
        tuple(float(piece.first) for piece in flat),
        tuple(slots[j] for j in kept),
        centre[:, kept],
        width[:, kept],
        centre[:, kept].copy(),
        _carried(runs, flat, log_of, sampled),
    )
    first_of = {i: log_of.index(i) for i in range(len(pieces))}
    coordinates = tuple(
        dataclasses.replace(c, key=(first_of[c.key[0]], *c.key[1:])) if c.kind == "initial" else c
        for c in whole.coordinates
    )
    return dataclasses.replace(
        whole,
        experiments=tuple(piece.experiment for piece in flat),
        coordinates=coordinates,
        windows=windows,
    )


def _spread(runs: Sequence[Run], slot: Slot) -> float:
    """Of a state in the runs of all logs."""
    node, field, index = slot
    values = np.concatenate([run.nodes[node][field][(slice(None), *index)] for run in runs])
    return float(np.std(values[np.isfinite(values)]))


def _carried(
    runs: Sequence[Run], flat: Sequence[Piece], log_of: Sequence[int], sampled: Sequence[str]
) -> dict[str, object]:
    """States of all nodes, and what sampled ones hold, at the start of each window."""

    def at_starts(of_run: str) -> object:
        each = [
            jax.tree.map(lambda x, first=piece.first: x[first], getattr(runs[i], of_run))
            for piece, i in zip(flat, log_of, strict=True)
        ]
        return jax.tree.map(lambda *x: np.stack(x), *each)

    return {"nodes": at_starts("nodes"), "held": at_starts("held")}


def _with_rows_of(
    logs: Sequence[Experiment], pieces: Sequence[Sequence[Piece]]
) -> tuple[Experiment, ...]:
    """Whole logs with the rows that windows count, in their order."""
    found = []
    for e, parts in zip(logs, pieces, strict=True):
        sensors = []
        for s in e.sensors:
            own = [
                (piece.first, part)
                for piece in parts
                for part in piece.experiment.sensors
                if part.field == s.field
            ]
            sensors.append(
                dataclasses.replace(
                    s,
                    positions=np.concatenate([part.positions + first for first, part in own]),
                    measured=np.concatenate([part.measured for _, part in own]),
                    lines=np.concatenate([part.lines for _, part in own]),
                )
            )
        found.append(dataclasses.replace(e, sensors=tuple(sensors)))
    return tuple(found)


def undivided(model: Model, starts: np.ndarray) -> Model:
    """The whole logs of a model of windows, each from where its first window starts."""
    windows = model.windows
    assert windows is not None, "it is a model of windows"
    first_of = {log: windows.log_of.index(log) for log in range(len(windows.logs))}
    logs = []
    for i, e in enumerate(windows.logs):
        given = _given(e)
        own = tuple(
            Start(*slot, "", float(value))
            for slot, value in zip(windows.slots, starts[first_of[i]], strict=True)
            if slot not in given
        )
        logs.append(dataclasses.replace(e, starts=(*e.starts, *own)))
    log_of = {window: log for log, window in first_of.items()}
    coordinates = tuple(
        dataclasses.replace(c, key=(log_of[c.key[0]], *c.key[1:])) if c.kind == "initial" else c
        for c in model.coordinates
    )
    return dataclasses.replace(
        model, experiments=tuple(logs), coordinates=coordinates, windows=None
    )


def carried_again(model: Model, z: np.ndarray, starts: np.ndarray) -> Model:
    """The same windows with states that no sensor reads as the simulation at z has them."""
    windows = model.windows
    assert windows is not None, "it is a model of windows"
    whole = dataclasses.replace(undivided(model, starts), experiments=windows.logs)
    better = dataclasses.replace(windows, starts=starts)
    again = divided(whole, windows.seconds, z, better).windows
    assert again is not None, "it was cut"
    centre = windows.centre.copy()
    for j, slot in enumerate(windows.slots):
        if slot in again.slots:  # else it no longer moves
            centre[:, j] = again.centre[:, again.slots.index(slot)]
    own = dataclasses.replace(windows, centre=centre, starts=starts, carried=again.carried)
    return dataclasses.replace(model, windows=own)
