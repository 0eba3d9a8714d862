"""How it is measured: results compared before any clock runs, then in turns, best of several."""

import math
import re
import time
from collections.abc import Sequence
from typing import Any

import jax

from harness.case import Case, Figure, Peer, Work

_MOST_SECONDS = 6.0
"""Whoever has used so much is not called again: the best of fewer will do for the very slow."""
_TURN_SECONDS = 0.01
"""The least time of a turn. Shorter work is called again and again in it: alone it would find the
threads of the one before still waiting for work, as OpenMP's do, and caches full of its data."""


def measure(item: Case | Figure, more: int = 1) -> dict[str, Any]:
    """The entry of a case or figure in the results; `more` multiplies the repeats."""
    return measure_figure(item) if isinstance(item, Figure) else measure_case(item, more)


def measure_figure(figure: Figure) -> dict[str, Any]:
    """`{"value", "unit", "target", "at_least", "met"}`, or why there is none."""
    entry = {"unit": figure.unit, "target": figure.target, "at_least": figure.at_least}
    try:
        value = float(figure.measure())
    except Exception as error:
        return entry | {"missing": reason(error)}
    return entry | {"value": value, "met": figure.met(value)}


def measure_case(case: Case, more: int = 1) -> dict[str, Any]:
    """Ours beside every peer that is there and agrees; the others are told with the reason."""
    ours = case.ours()
    began = time.perf_counter()
    result = jax.block_until_ready(ours())
    first = time.perf_counter() - began
    theirs, contenders = {}, {}
    for peer in case.peers:
        theirs[peer.name], work = _compare(peer, result)
        if work is not None:
            contenders[peer.name] = work
    seconds = best_of(case.repeats * more, [ours, *contenders.values()])
    scale = 1e6 / case.units
    for name, other in zip(contenders, seconds[1:], strict=True):
        ratio, target = seconds[0] / other, theirs[name]["target"]
        theirs[name] |= {"us": other * scale, "ratio": ratio}
        theirs[name]["met"] = None if target is None else ratio <= target
    entry: dict[str, Any] = {
        "unit": case.unit,
        "units": case.units,
        "us": seconds[0] * scale,
        "first_call_s": first,
        "theirs": theirs,
    }
    return entry | ({"place": vars(case.place)} if case.place else {})


def _compare(peer: Peer, ours: Any) -> tuple[dict[str, Any], Work | None]:
    """The start of a peer's entry, and its work if that is there and gives our result."""
    entry: dict[str, Any] = {"target": peer.target, "tolerance": peer.tolerance}
    try:
        work = peer.build()
        began = time.perf_counter()
        result = jax.block_until_ready(work())
        first = time.perf_counter() - began
        difference = peer.agree(ours, result)
    except Exception as error:  # whatever keeps a peer from running is told, and ends nothing else
        return entry | {"missing": reason(error)}, None
    entry |= {"difference": difference if math.isfinite(difference) else None}
    entry["first_call_s"] = first
    if not difference <= peer.tolerance:
        told = f"results differ by {difference:.1e}, more than {peer.tolerance:.0e}: not timed"
        return entry | {"refused": told}, None
    return entry, work


def best_of(repeats: int, works: Sequence[Work]) -> list[float]:
    """Seconds of each, in turns, so that all see the same machine; each has run once before."""
    calls = [max(1, math.ceil(_TURN_SECONDS / _seconds(work, 1))) for work in works]
    best, used = [float("inf")] * len(works), [0.0] * len(works)
    for turn in range(repeats):
        for index, work in enumerate(works):
            if turn and used[index] > _MOST_SECONDS:
                continue
            seconds = _seconds(work, calls[index])
            best[index] = min(best[index], seconds / calls[index])
            used[index] += seconds
    return best


def _seconds(work: Work, calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        jax.block_until_ready(work())
    return time.perf_counter() - began


def reason(error: BaseException) -> str:
    """One line without the paths of a machine, which have no place in a result."""
    text = re.sub(r"(/[\w.+~-]+){2,}/?", "…", f"{type(error).__name__}: {error}")
    return " ".join(text.split())[:200]
