"""A design drawn and as a page: the input to run, and what it would tell."""

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from mime.reporting.html import image, page, png_bytes, table
from mime.reporting.plots import plain_text
from mime.reporting.report import versions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mime.fitting.design import Design
    from mime.fitting.motion_design import MotionDesign


def picture(design: "Design") -> "Figure":
    """An axis an input."""
    from matplotlib.figure import Figure

    with plain_text():
        count = len(design.inputs)
        figure = Figure(figsize=(8.0, 0.8 + 2.0 * count), layout="constrained")
        axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
        for axis, (field, values) in zip(axes, design.inputs.items(), strict=True):
            axis.step(design.time_s, values, where="post", linewidth=1.2)
            axis.set_title(field, fontsize=8, loc="left")
            axis.grid(alpha=0.3)
        axes[-1].set_xlabel("time [s]")
        return figure


def report_page(design: "Design", title: str) -> str:
    """Intervals beside those of a step and a chirp, limits, and the input."""
    columns = {"design": design.outlook, **design.others}
    rows = [
        [name, *(f"{100 * found.half[name]:.3g} %" for found in columns.values())]
        for name in design.outlook.half
    ]
    rows.append(["log det", *(f"{found.log_det:.2f}" for found in columns.values())])
    numbers = list(range(1, 1 + len(columns)))
    parts = ["<h2>Half of each 95 % interval</h2>", table(["", *columns], rows, numbers)]
    if design.reached:
        rows = [[f, f"{v:.4g} {u}", f"{m:g} {u}"] for f, (v, m, u) in design.reached.items()]
        parts += ["<h2>Limits</h2>", table(["", "reached", "limit"], rows, [1, 2])]
    parts.append(f"<figure>{image(png_bytes(picture(design)), 'inputs over time')}</figure>")
    rate = 1.0 / float(np.median(np.diff(design.time_s)))
    seconds = len(design.time_s) / rate
    told = [f"{seconds:g} s at {rate:g} rows a second", *design.notes]
    parts += [f"<p>{escape(words)}</p>" for words in told]
    parts.append(table(["", ""], [[name, value] for name, value in versions().items()]))
    return page(title, "\n".join(parts))


def motion_picture(design: "MotionDesign") -> "Figure":
    """Angles, velocities and torques, a line a joint."""
    from matplotlib.figure import Figure

    parts = {"angle [rad]": design.q, "velocity [rad/s]": design.qd, "torque [N·m]": design.torques}
    with plain_text():
        figure = Figure(figsize=(8.0, 6.8), layout="constrained")
        axes = figure.subplots(len(parts), 1, sharex=True)
        for axis, (title, values) in zip(axes, parts.items(), strict=True):
            axis.plot(design.time_s, values, linewidth=1.2, label=list(design.joint_names))
            axis.set_title(title, fontsize=8, loc="left")
            axis.grid(alpha=0.3)
        axes[0].legend(fontsize=7, ncols=3)
        axes[-1].set_xlabel("time [s]")
        return figure


def motion_page(design: "MotionDesign", title: str) -> str:
    """What the motion tells beside a step and a chirp, the limits it uses, and itself."""
    columns = {"design": design.outlook, **design.others}
    rows = [[name, f"{o.log_det:.2f}", f"{o.condition:.3g}"] for name, o in columns.items()]
    for row in rows[1:]:
        row.append(f"{design.narrower(row[0]):.3g}")
    rows[0].append("1")
    headings = ["", "log det", "condition number", "intervals, times as wide"]
    parts = [f"<p>{design.rank} base parameters</p>", table(headings, rows, [1, 2, 3])]
    rows = [[name, f"{100 * part:.0f} %"] for name, part in design.reached.items()]
    parts += ["<h2>Limits</h2>", table(["", "used at most"], rows, [1])]
    parts.append(f"<figure>{image(png_bytes(motion_picture(design)), 'the motion')}</figure>")
    parts.append(table(["", ""], [[name, value] for name, value in versions().items()]))
    return page(title, "\n".join(parts))
