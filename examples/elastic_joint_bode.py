"""Bode plot of an elastic joint, exact and with an inserted body: what the extra body shifts."""

import jax
import numpy as np
from matplotlib.figure import Figure

from mime.nodes.actuation import elastic_joint_analysis as joint

jax.config.update("jax_enable_x64", True)
J, I, k, v = 0.1, 0.5, 200.0, 0.4  # rotor, output body, spring, damper
omega = np.geomspace(5.0, 300.0, 4000)
figure = Figure(figsize=(11, 6.6), layout="constrained")
axes = figure.subplots(2, 2, sharex=True, sharey="row")

for I_f, style in ((0.0, "-"), (0.025, "--")):
    name = f"inserted body of {I_f:g} kg·m²" if I_f else "exact joint"
    resonance, held = float(joint.resonance(J, I, k, I_f)), float(joint.anti_resonance(I, k, I_f))
    print(f"{name}: resonance {resonance:.1f} rad/s, anti-resonance {held:.1f} rad/s")
    for output, (size, phase) in zip(("rotor", "output"), axes.T, strict=True):
        numerator, denominator = joint.transfer_function(J, I, k, v, I_f, output=output)
        G = np.polyval(numerator, 1j * omega) / np.polyval(denominator, 1j * omega)
        angle = np.degrees(np.unwrap(np.angle(G)))
        angle -= 360.0 * np.round((angle[0] + 180.0) / 360.0)  # both begin at -180°
        (line,) = size.loglog(omega, np.abs(G), style, label=name)
        phase.semilogx(omega, angle, style, color=line.get_color())
        size.set_title(f"{output} / motor torque")
        for axis in (size, phase):
            axis.axvline(resonance, color=line.get_color(), linestyle=":", linewidth=1)
            axis.grid(which="both", alpha=0.2)

axes[0, 0].set_ylabel("magnitude [rad/(N·m)]")
axes[1, 0].set(ylabel="phase [°]", xlabel="frequency [rad/s]", yticks=range(-360, 1, 90))
axes[1, 1].set_xlabel("frequency [rad/s]")
axes[0, 1].legend()
figure.savefig("elastic_joint_bode.png", dpi=110)
