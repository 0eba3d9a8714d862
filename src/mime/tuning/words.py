"""A tuning in words: before and after, nominal and worst."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mime.tuning.margins import Margin
    from mime.tuning.result import FigureRow, GainRow, Tuning


def words(tuning: "Tuning") -> str:
    """All of it, a line a thing."""
    return "\n".join(_lines(tuning))


def _lines(tuning: "Tuning") -> Iterator[str]:
    yield heading(tuning)
    width = max(len(name) for name in [*tuning, *(f.name for f in tuning.figures)])
    for gain in tuning.gains:
        yield f"  {gain.name:{width}}  {gain.before:.4g} -> {after(gain)}"
    yield "figures, nominal (worst plant), before -> after:"
    for row in tuning.figures:
        limits = limits_of(row, tuning)
        yield f"  {row.name:{width}}  {both(row, 0)} -> {both(row, 1)} {row.unit}".rstrip() + (
            f"; {limits}" if limits else ""
        )
    yield "margins where the run ends, worst plant, before -> after:"
    for loop in tuning.margins:
        yield f"  {loop.loop:{width}}  {margin(loop.before)} -> {margin(loop.after)}"
    yield from remarks(tuning)


def heading(tuning: "Tuning") -> str:
    """How many gains, over which plants."""
    gains = f"{len(tuning)} gain{'s' * (len(tuning) > 1)}"
    if not tuning.plants:
        return f"{gains} tuned for the plant as it is"
    spans = ", ".join(f"{a} {min(v):.3g} to {max(v):.3g}" for a, v in tuning.plants.items())
    return f"{gains} tuned for {len(next(iter(tuning.plants.values())))} plants: {spans}"


def after(gain: "GainRow") -> str:
    """The tuned value, and the bound that it ended at."""
    at = f" (at its {gain.bound} bound)" if gain.bound else ""
    return f"{gain.after:.4g} {gain.unit}".rstrip() + at


def both(row: "FigureRow", side: int) -> str:
    """Nominal, and worst of all plants."""
    values = (row.before, row.after)[side]
    nominal, worst = _number(values[0]), _number(row.worst(values))
    return nominal if len(values) == 1 else f"{nominal} ({worst})"


def _number(value: float) -> str:
    """Four digits; a margin may be missing (of an unstable loop), or infinite."""
    return "none" if np.isnan(value) else "any" if np.isinf(value) else f"{value:.4g}"


def limits_of(row: "FigureRow", tuning: "Tuning") -> str:
    """The limits, in how many plants they are kept, and where they are tightest."""
    tightest = row.tightest(row.after)
    if tightest is None:
        return ""
    count = len(row.after)
    kept = [round(count * (1 - row.violations(values))) for values in (row.before, row.after)]
    said = f"{row.bounds}: kept in {kept[1]} of {count} (before: {kept[0]})"
    if not tuning.plants:
        return said
    values = [f"{address} {v[tightest]:.3g}" for address, v in tuning.plants.items()]
    more = ", ..." if len(values) > 3 else ""
    return f"{said}, tightest in plant {tightest} ({', '.join(values[:3])}{more})"


def margin(members: Sequence["Margin"]) -> str:
    """The worst of all plants."""
    unstable = sum(not m.is_stable for m in members)
    if unstable:
        return f"unstable in {unstable} of {len(members)}"
    if missing := sum(np.isnan(m.gain_db) for m in members):
        return f"no loop gain where the run ends in {missing} of {len(members)}"
    gain = min(m.gain_db for m in members)
    down = max(m.gain_down_db for m in members)
    words = ["any gain" if np.isinf(gain) else f"gain +{gain:.1f} dB"]
    words += [f"and {down:.1f} dB"] if np.isfinite(down) else []
    phases = [m for m in members if np.isfinite(m.phase_deg)]
    if phases:
        least = min(phases, key=lambda m: m.phase_deg)
        delay = min(m.delay_s for m in phases)
        words.append(
            f"phase {least.phase_deg:.1f}° at {least.crossover_hz:.3g} Hz, "
            f"delay {1e3 * delay:.3g} ms"
        )
    peaks = [m.sensitivity for m in members if np.isfinite(m.sensitivity)]
    words += [f"Ms {max(peaks):.3g}"] if peaks else []
    return ", ".join(words)


def remarks(tuning: "Tuning") -> Iterator[str]:
    """How it was found."""
    if not tuning.is_complete:
        yield "interrupted: the best gains until then"
    same, count = tuning.starts
    yield f"{same} of {count} starts ended at this cost, in {tuning.rounds} rounds"
