"""A fit drawn: what was measured, what the model gives, and what is left."""

from typing import TYPE_CHECKING

import numpy as np

from mime.reporting.plots import plain_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mime.fitting.result import Fit

_MOST_POINTS = 20_000


def picture(fit: "Fit") -> "Figure":
    """Two axes a sensor and log: the signal, and the residual over its noise."""
    from matplotlib.figure import Figure

    with plain_text():
        count = len(fit.traces)
        figure = Figure(figsize=(8.0, 0.8 + 2.6 * count), layout="constrained")
        axes = figure.subplots(2 * count, 1, squeeze=False, height_ratios=[2, 1] * count)[:, 0]
        for place, trace in enumerate(fit.traces):
            signal, rest = axes[2 * place], axes[2 * place + 1]
            thin = slice(None, None, max(1, len(trace.time_s) // _MOST_POINTS))
            t = trace.time_s[thin]
            signal.plot(t, trace.measured[thin], ".", markersize=2, color="0.6", label="log")
            signal.plot(t, trace.fitted[thin], linewidth=1.2, label="model")
            signal.set_ylabel(f"[{trace.unit or '1'}]", fontsize=8)
            held = ", held out" if trace.held_out else ""
            signal.set_title(f"{trace.log}: {trace.field}{held}", fontsize=8, loc="left")
            signal.legend(fontsize=7)
            left = np.asarray(trace.measured - trace.fitted) / fit.noise[trace.field][0]
            rest.plot(t, left[thin], ".", markersize=2, color="C3")
            rest.set_ylabel("left / noise", fontsize=8)
            for axis in (signal, rest):
                axis.grid(alpha=0.3)
        axes[-1].set_xlabel("time [s]")
        return figure
