"""The picture of a convergence: errors against the parameter, with the slope that theory says."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mime.verification.benchmark import Convergence, Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_convergence(convergence: Convergence) -> "Figure":
    """log error against log parameter; the dashed line is error ~ parameter^order."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axis = figure.subplots()
    h = np.asarray(convergence.values)
    for (label, errors), marker in zip(convergence.errors.items(), "osD^vP*X<>" * 3, strict=False):
        words = f"{label}: slope {slope(convergence, label):.3f}"
        axis.loglog(h, errors, marker=marker, markersize=5, linewidth=1.3, label=words)
    # Through the middle of all curves at the coarsest parameter, so that slopes can be compared.
    coarsest = int(np.argmax(h))
    largest = [errors[coarsest] for errors in convergence.errors.values() if errors[coarsest] > 0]
    height = np.exp(np.mean(np.log(largest)))
    theory = height * (np.sort(h) / h[coarsest]) ** convergence.order
    words = f"theory: slope {convergence.order:g}"
    axis.loglog(np.sort(h), theory, "k--", linewidth=1.0, label=words)
    axis.set_xlabel(convergence.parameter)
    axis.set_ylabel(convergence.error)
    if len(h) <= 8:  # the values themselves say more than powers of ten
        axis.xaxis.set_major_locator(FixedLocator(list(np.sort(h))))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.3g}"))
    axis.grid(which="both", alpha=0.25)
    axis.legend(fontsize=8)
    return figure


def slope(convergence: Convergence, label: str) -> float:
    """The order fitted to one curve; an error of zero has no logarithm and is left out."""
    h, errors = np.asarray(convergence.values), np.asarray(convergence.errors[label])
    return order(h[errors > 0], errors[errors > 0])


def order(values: Sequence[float] | np.ndarray, errors: Sequence[float] | np.ndarray) -> float:
    """The slope of log(errors) over log(values), by least squares."""
    if np.size(values) < 2:
        return float("nan")
    return float(np.polyfit(np.log(values), np.log(errors), 1)[0])


def order_error(
    name: str,
    values: Sequence[float],
    errors: Sequence[float],
    expected: int,
    limit: float,
    why: str = "the second-order term at the coarsest step",
) -> Measurement:
    """How far the order of the errors is from the expected one."""
    distance = abs(order(values, errors) - expected)
    return Measurement(f"{name}, distance from {expected}", distance, limit, why=why)
