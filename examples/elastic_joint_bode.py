"""Bode plot of an elastic joint, exact and with an inserted body: what the extra body shifts.

Writes docs/images/elastic_joint_bode.png.
"""

import argparse
from pathlib import Path

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MultipleLocator, NullFormatter, ScalarFormatter

from mime.nodes.actuation import elastic_joint_analysis as analysis

J, I, K, V = 0.1, 0.5, 200.0, 0.4
I_F = 0.025
EXACT, INSERTED = "#1b4f72", "#c0392b"


def response(omega: np.ndarray, output: str, I_f: float) -> tuple[np.ndarray, np.ndarray]:
    """Magnitude [rad/(N·m)] and phase [°] of an angle over the motor's torque, from -180° on."""
    numerator, denominator = analysis.transfer_function(J, I, K, V, I_f, output=output)
    s = 1j * omega
    G = np.polyval(np.asarray(numerator), s) / np.polyval(np.asarray(denominator), s)
    phase = np.degrees(np.unwrap(np.angle(G)))
    return np.abs(G), phase - 360.0 * np.round((phase[0] + 180.0) / 360.0)


def mark(axis: plt.Axes, omega: float, name: str, color: str, y: float, side: str) -> None:
    """A line at a frequency, its name and value beside it."""
    axis.axvline(omega, color=color, linestyle=":", linewidth=1.1)
    axis.annotate(
        f"{name}\n{omega:.1f} rad/s",
        (omega, y),
        xycoords=("data", "axes fraction"),
        xytext=(5 if side == "left" else -5, 0),
        textcoords="offset points",
        ha=side,
        va="center",
        fontsize=8.5,
        color=color,
    )


def draw(path: Path) -> None:
    omega = np.geomspace(5.0, 300.0, 4000)
    eps = float(analysis.inserted_body_error(J, I, I_F).eps)
    models = (
        (0.0, EXACT, "-", "exact joint"),
        (I_F, INSERTED, "--", rf"inserted body, $I_f$ = {I_F:g} kg·m², $\varepsilon$ = {eps:.2f}"),
    )
    figure, axes = plt.subplots(
        2, 2, figsize=(11, 6.6), sharex=True, sharey="row", layout="constrained"
    )
    columns = (
        ("rotor", r"rotor / motor torque,  $X_2/U$"),
        ("output", "output / motor torque,  $Y/U$"),
    )
    for (magnitude, phase), (output, title) in zip(axes.T, columns, strict=True):
        for I_f, color, style, label in models:
            size, angle = response(omega, output, I_f)
            magnitude.loglog(omega, size, style, color=color, linewidth=1.8, label=label)
            phase.semilogx(omega, angle, style, color=color, linewidth=1.8)
            resonance = float(analysis.resonance(J, I, K, I_f))
            side = "left" if I_f == 0.0 else "right"
            mark(magnitude, resonance, "resonance", color, 0.92, side)
            phase.axvline(resonance, color=color, linestyle=":", linewidth=1.1)
        zeros = [(0.0, EXACT), (I_F, INSERTED)] if output == "rotor" else [(I_F, INSERTED)]
        for I_f, color in zeros:
            if output == "rotor":
                zero = float(analysis.anti_resonance(I, K, I_f))
            else:  # where the inserted body takes all of the spring's torque
                zero = float(np.sqrt(K / I_f))
            side = "left" if I_f == 0.0 or output == "output" else "right"
            mark(magnitude, zero, "anti-resonance", color, 0.1, side)
            phase.axvline(zero, color=color, linestyle=":", linewidth=1.1)
        magnitude.set_title(title)
        phase.set_xlabel("frequency [rad/s]")
        phase.yaxis.set_major_locator(MultipleLocator(90.0))
        for axis in (magnitude, phase):
            axis.grid(which="both", alpha=0.2)
            axis.set_xlim(omega[0], omega[-1])
    axes[0, 0].set_ylim(3e-7, 0.5)
    axes[1, 0].set_xticks([5, 10, 20, 50, 100, 200])
    axes[1, 0].xaxis.set_major_formatter(ScalarFormatter())
    axes[1, 0].xaxis.set_minor_formatter(NullFormatter())
    axes[0, 0].set_ylabel("magnitude [rad/(N·m)]")
    axes[1, 0].set_ylabel("phase [°]")
    axes[0, 1].legend(loc="lower left")
    figure.suptitle(
        f"Elastic joint: J = {J:g} kg·m², I = {I:g} kg·m², k = {K:g} N·m/rad, ν = {V:g} N·m·s/rad"
    )
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    images = Path(__file__).parents[1] / "docs" / "images"
    parser.add_argument("--out", type=Path, default=images)
    folder = parser.parse_args().out
    jax.config.update("jax_enable_x64", True)
    folder.mkdir(parents=True, exist_ok=True)
    draw(folder / "elastic_joint_bode.png")
    print(f"wrote {folder / 'elastic_joint_bode.png'}")


if __name__ == "__main__":
    main()
