"""A fit in words: no number of what cannot be identified."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mime.fitting.explanation import pooled
from mime.fitting.parameters import KINDS
from mime.fitting.rates import STEP_ERROR

if TYPE_CHECKING:
    from mime.fitting.combinations import Combination
    from mime.fitting.result import Estimate, Fit, FreeRun, Outliers


_SKEW = 0.2
"""Sides of an interval that differ by more than this part of their mean are told one by one."""
_MOST_ROWS, _MOST_LOGS = 8, 3
_MOST_SENSORS, _MOST_KINDS = 3, 4
_WIDEST = 60
"""Longer names stand on a line of their own."""


def words(fit: "Fit") -> str:
    """All of it, a line a thing."""
    return "\n".join(_lines(fit))


def _lines(fit: "Fit") -> Iterator[str]:
    if not fit.is_explained:
        yield headline(fit)
    sensors = len(fit.noise)
    yield (
        f"{len(fit.known)} of {len(fit)} unknowns known"
        f"{_rank(fit)}, from {fit.rows} values of {sensors} sensor{'s' * (sensors > 1)}"
    )
    names = [e.name for e in fit.estimates] + [c.name for c in fit.combinations]
    width = max((len(name) for name in names if len(name) <= _WIDEST), default=0)
    for estimate in fit.estimates:
        if estimate.quantity != "body" or estimate.is_known:
            yield f"  {estimate.name:{width}}  {verdict(estimate)}"
    yield from silent_bodies(fit)
    if fit.combinations:
        yield "known only together:"
        for found in fit.combinations:
            if len(found.name) > _WIDEST:
                yield f"  {found.name}\n  {'':{width}}  {combined(found)}"
            else:
                yield f"  {found.name:{width}}  {combined(found)}"
    yield from advices(fit)
    for names_together in _together(fit.trade_offs):
        yield f"trade-off, their errors go together: {', '.join(names_together)}"
    for field, (sigma, unit) in fit.noise.items():
        yield f"noise of {field}: {sigma:.3g} {unit}".rstrip()
    yield from unexplained(fit)
    yield from remarks(fit)


def silent_bodies(fit: "Fit") -> Iterator[str]:
    """One line a body for its moments that are not known."""
    open_: dict[str, list[str]] = {}
    total: dict[str, int] = {}
    for e in fit.estimates:
        if e.quantity == "body":
            body, _, moment = e.name.rpartition(".")
            total[body] = total.get(body, 0) + 1
            if not e.is_known:
                open_.setdefault(body, []).append(moment)
    for body, moments in open_.items():
        which = "all" if len(moments) == total[body] else ", ".join(moments)
        yield f"  {body}: not known one by one, prior kept: {which}"


def _together(pairs: Sequence[tuple[str, str, float]]) -> list[list[str]]:
    """Names that pairs join, directly or through others."""
    groups: list[list[str]] = []
    for first, second, _ in pairs:
        joined = [group for group in groups if first in group or second in group]
        members = [name for group in joined for name in group]
        groups = [group for group in groups if group not in joined]
        groups.append(list(dict.fromkeys([*members, first, second])))
    return groups


def _rank(fit: "Fit") -> str:
    count = len([e for e in fit.estimates if e.quantity in KINDS])
    return f"; the parameters have rank {fit.rank} of {count}" if count else ""


def verdict(estimate: "Estimate") -> str:
    """Value and interval, or why there is none."""
    if estimate.kind == "known":
        assert estimate.value is not None
        assert estimate.low is not None
        assert estimate.high is not None
        return _with_interval(estimate.value, estimate.low, estimate.high, estimate.unit)
    if estimate.kind == "bound":
        return f"at its bound, {estimate.value:.4g} {estimate.unit}".rstrip()
    kept = "; prior kept" if estimate.has_prior else "; no prior to keep"
    if estimate.quantity not in KINDS:
        kept = ""
    if estimate.kind == "combination":
        return f"not known by itself{kept}"
    return f"not known from this log{kept}"


def combined(found: "Combination") -> str:
    """Value and interval of a combination."""
    local = ", near this solution only" if found.is_local else ""
    return _with_interval(found.value, found.low, found.high, found.unit) + local


def _with_interval(value: float, low: float, high: float, unit: str) -> str:
    half = 0.5 * (high - low)
    above, below = high - value, value - low
    amount = f"{value:.4g} {unit}".rstrip()
    if low == 0:
        return f"{amount}, from 0 to {high:.2g}"
    if abs(above - below) > _SKEW * half:
        if abs(value) > 3 * half:
            return f"{amount} + {100 * above / abs(value):.2g} % - {100 * below / abs(value):.2g} %"
        return f"{amount} + {above:.2g} - {below:.2g}"
    about = f"± {100 * half / abs(value):.2g} %" if abs(value) > 3 * half else f"± {half:.2g}"
    return f"{amount} {about}"


def advices(fit: "Fit") -> Iterator[str]:
    """What another sensor, a longer log or another input would tell."""
    found = fit.advice, fit.longer, fit.other_input, fit.other_motion
    yield from (str(a) for a in found if a is not None)


def _percent(part: float) -> str:
    """Two digits, and no powers of ten: 0.034, 7.1, 93, 130."""
    return f"{100 * part:.2g}" if part < 0.995 else f"{100 * part:.0f}"


def headline(fit: "Fit") -> str:
    """What the model leaves unexplained, the worst sensors first; else of the held-out logs."""
    open_ = [e for e in fit.explained.values() if not e.is_explained]
    where = ""
    if not open_:
        held = [check for check in fit.held_out if not check.is_explained]
        fields = dict.fromkeys(check.field for check in held)
        open_, where = [pooled([c for c in held if c.field == f]) for f in fields], " held out"
    open_.sort(key=lambda e: -e.over_signal)
    told = ", ".join(f"{_percent(e.over_signal)} % of {e.field}" for e in open_[:_MOST_SENSORS])
    more = f" and of {len(open_) - _MOST_SENSORS} more" if len(open_) > _MOST_SENSORS else ""
    wide = "" if where else "; intervals are widened"
    return f"The model leaves {told}{more}{where} unexplained{wide}"


def unexplained(fit: "Fit") -> Iterator[str]:
    """What is left of the logs that are not explained, sensor by sensor, and of what kind."""
    for title, found in (("unexplained", fit.checks), ("unexplained, held out", fit.held_out)):
        open_ = [check for check in found if not check.is_explained]
        if open_:
            yield f"{title}:"
        for field in dict.fromkeys(check.field for check in open_):
            own = [check for check in found if check.field == field]
            whole = pooled(own)
            count = sum(not check.is_explained for check in own)
            logs = f" in {count} of {len(own)} logs" if len(own) > 1 else ""
            yield (
                f"  {field}{logs}: {_percent(whole.over_signal)} % of the signal, "
                f"{whole.over_noise:.2g} times the noise; {100 * whole.patterned:.0f} % of that "
                "has a pattern"
            )
            yield from (f"    {words}" for words in whole.kinds[:_MOST_KINDS])


def remarks(fit: "Fit") -> Iterator[str]:
    """How the fit was made, and how far it can be trusted."""
    yield from fit.notes
    yield from _shapes(fit)
    yield from _spikes(fit)
    yield from _windows(fit)
    runs = {(r.log, r.field): r for r in fit.windows.free_runs} if fit.windows else {}
    for check in fit.held_out:
        run = runs.get((check.log, check.field))
        more = f" in windows; {_free(run)}" if run is not None else ""
        yield f"held out {check.log}, {check.field}: {check.over_noise:.2f} of the noise{more}"
    if fit.how:
        yield from fit.how.splitlines()
        return
    if not fit.is_complete:
        yield "interrupted: the best of the starts until then, brought to its minimum"
    same, count = fit.starts
    small = "less than 0.001" if fit.step_error < 1e-3 else f"{fit.step_error:.1g}"
    extrapolated = ", extrapolated to none" if fit.is_extrapolated else ""
    yield (
        f"{same} of {count} starts ended here, {fit.simulations} simulations in steps of "
        f"{fit.timestep:.3g} s{extrapolated}; half of that would change {small} of the noise"
    )
    if fit.step_error > STEP_ERROR:
        yield (
            f"the error of the steps is not below {STEP_ERROR:g} of the noise with the shortest "
            "that a fit takes; intervals do not contain it"
        )
    if fit.sampled:
        yield f"sampled at their own rate: {', '.join(fit.sampled)}"
    if fit.undeclared:
        yield (
            f"stepped as physics: {', '.join(fit.undeclared)}. A node whose timestep is part of "
            "what it is, as of a controller, must say `is_sampled = True`"
        )


def _windows(fit: "Fit") -> Iterator[str]:
    """How logs were cut, and what runs of the whole ones leave."""
    if (found := fit.windows) is None:
        return
    held = f", {found.held_out} held out" if found.held_out else ""
    free = f"; free at the start of each: {', '.join(found.states)}" if found.states else ""
    yield f"windows of {found.seconds:g} s: {found.fitted} fitted{held}{free}"
    fitted = [run for run in found.free_runs if not run.held_out]
    for field in dict.fromkeys(run.field for run in fitted):
        own = [run for run in fitted if run.field == field]
        worst = max(own, key=lambda run: run.left)
        which = f" ({worst.log}, the worst of {len(own)})" if len(own) > 1 else ""
        yield f"{field}: {_free(worst)}{which}"


def _free(run: "FreeRun") -> str:
    """What is left of a whole log."""
    if not np.isfinite(run.left):
        return "over the whole log the simulation leaves the finite numbers"
    part = f", {_percent(run.left / run.spread)} % of the signal" if run.spread > 0 else ""
    return f"over the whole log {run.left:.3g} {run.unit} is left{part}"


def _shapes(fit: "Fit") -> Iterator[str]:
    """Whether intervals from the Jacobian were good enough."""
    known = [e for e in fit.estimates if e.is_known]
    profiled = [e.name for e in known if e.interval == "profile"]
    if profiled:
        worst = max(e.nonlinearity for e in known)
        told = f"by {100 * worst:.0f} %" if worst < 1 else "by more than 100 %"
        yield (
            f"intervals by profile, not linear enough: {', '.join(profiled)} (at the ends of a "
            f"linear one the cost's root is off {told})"
        )
    if wider := [e.name for e in known if e.interval == "windows"]:
        yield (
            "residuals are not white: intervals are from leaving out windows of the logs "
            f"({_listed(wider, len(known))})"
        )
    if rough := [e.name for e in known if e.interval == "rough"]:
        yield (
            f"the cost is too rough for a profile near {', '.join(rough)}: intervals are from the "
            "Jacobian, and may be too narrow. Events that fall on a step, as of dry friction, do "
            "so, and delays of whole rows where inputs jump"
        )


def _listed(names: Sequence[str], count: int) -> str:
    """The names, or that it is all of them."""
    return "all" if len(names) == count else ", ".join(names)


def _spikes(fit: "Fit") -> Iterator[str]:
    """Outliers by row, a line for each sensor."""
    squares = fit.loss == "linear" and not fit.how  # inverse dynamics takes no other loss
    hint = '; loss="soft_l1" makes them count less' if squares else ""
    for field in dict.fromkeys(found.field for found in fit.outliers):
        own = [found for found in fit.outliers if found.field == field]
        rows = sum(len(found.rows) for found in own)
        count = sum(found.count for found in own)
        told = f"{rows} of {count} values of {own[0].column!r} are outliers"
        if len(own) == 1:
            yield f"{own[0].file}: {told}, {_rows_of(own[0])}{hint}"
            continue
        where = "; ".join(f"{found.file} {_rows_of(found)}" for found in own[:_MOST_LOGS])
        more = f"; {len(own) - _MOST_LOGS} more logs" if len(own) > _MOST_LOGS else ""
        yield f"{told}: {where}{more}{hint}"


def _rows_of(found: "Outliers") -> str:
    some = ", ".join(map(str, found.rows[:_MOST_ROWS]))
    more = ", ..." if len(found.rows) > _MOST_ROWS else ""
    return f"row{'s' * (len(found.rows) > 1)} {some}{more}"
