"""A tuning drawn: what its goals look at, before and after."""

from typing import TYPE_CHECKING

from mime.reporting.plots import plain_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mime.tuning.result import Tuning


def picture(tuning: "Tuning") -> "Figure":
    """An axis a field: the nominal plant as a line, all plants as a shade around it."""
    from matplotlib.figure import Figure

    with plain_text():
        count = len(tuning.traces)
        figure = Figure(figsize=(8.0, 0.8 + 1.8 * count), layout="constrained")
        axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
        for axis, trace in zip(axes, tuning.traces, strict=True):
            for label, colour, side in (
                ("before", "0.6", trace.before),
                ("after", "C0", trace.after),
            ):
                nominal, low, high = side
                axis.fill_between(trace.time_s, low, high, color=colour, alpha=0.25, linewidth=0)
                axis.plot(trace.time_s, nominal, color=colour, linewidth=1.2, label=label)
            axis.set_title(trace.field, fontsize=8, loc="left")
            axis.grid(alpha=0.3)
        axes[0].legend(fontsize=7)
        axes[-1].set_xlabel("time [s]")
        return figure
