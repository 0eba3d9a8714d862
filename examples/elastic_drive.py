"""A geared motor that turns a link through a spring: from volts to the motion of the link.

    volts -> motor -> gear -> spring -> link, and the link's swing back into the motor's current

One graph, one compiled program. Prints the figures and writes a picture.
"""

import argparse
from pathlib import Path

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from mime import GraphManager, Trajectory
from mime.nodes.actuation import elastic_joint_analysis as analysis
from mime.nodes.actuation.elastic_drive import elastic_drive
from mime.nodes.actuation.motor import Gear, MotorNode
from mime.xla.cache import enable_compilation_cache

DT = 1e-4
VOLTS, OFF = 12.0, 2.0
INERTIA, STIFFNESS, DAMPING = 0.2, 60.0, 0.03


def build() -> tuple[GraphManager, MotorNode]:
    motor = MotorNode(
        "motor",
        DT,
        inertia_kg_m2=1e-5,
        kt_n_m_per_a=0.05,
        r_ohm=1.0,
        l_henry=1e-3,
        damping_n_m_s=1e-5,
        gear=Gear(ratio=50.0),
        shaft="driven",
        command_mode="voltage",
        integrator="exact",
    )
    graph = elastic_drive(
        motor,
        joint_name="link",
        output_inertia_kg_m2=INERTIA,
        stiffness_n_m_per_rad=STIFFNESS,
        damping_n_m_s=DAMPING,
    )
    return graph, motor


def volts(t: jax.Array) -> jax.Array:
    return jax.numpy.where(t < OFF, VOLTS, 0.0)


def draw(run: Trajectory, speed: float, path: Path) -> None:
    t, motor, link = run.time, run["motor"], run["link"]
    output = link["rotor_velocity"] + link["deflection_velocity"]
    figure, axes = plt.subplots(4, 1, figsize=(9, 8), sharex=True, layout="constrained")
    axes[0].plot(t, np.asarray(volts(t)), color="tab:gray")
    axes[0].set_ylabel("voltage [V]")
    axes[1].plot(t, motor["current"], color="tab:red")
    axes[1].set_ylabel("current [A]")
    axes[2].plot(t, output, color="tab:blue", label="link")
    axes[2].plot(t, link["rotor_velocity"], color="tab:orange", label="rotor, after the gear")
    axes[2].axhline(speed, color="black", linestyle=":", linewidth=1, label="closed form")
    axes[2].set_ylabel("speed [rad/s]")
    axes[2].legend(loc="upper right", ncols=3)
    axes[3].plot(t, np.degrees(link["deflection"]), color="tab:green")
    axes[3].set_ylabel("deflection [°]")
    axes[3].set_xlabel("time [s]")
    for axis in axes:
        axis.grid(alpha=0.3)
    axes[0].set_title("12 V at the motor, then its terminals shorted")
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo_output"))
    folder = parser.parse_args().out
    jax.config.update("jax_enable_x64", True)
    enable_compilation_cache()

    graph, motor = build()
    run = graph.compile().run(3.5, {"motor": {"commanded_voltage": volts}}, every=10)
    J = float(motor.reflected_inertia())
    speed = VOLTS * 0.05 / (0.05**2 + 1e-5) / 50.0
    link, before = run["link"], run.time < OFF
    print(f"rotor after the gear {J:.4g} kg·m², link {INERTIA:.4g} kg·m²")
    free, held = (
        analysis.resonance(J, INERTIA, STIFFNESS),
        analysis.anti_resonance(INERTIA, STIFFNESS),
    )
    print(
        f"swing with the rotor free {float(free):.2f} rad/s, with it held {float(held):.2f} rad/s"
    )
    reached = link["rotor_velocity"][before][-1]
    print(f"speed after {OFF:g} s {reached:.4f} rad/s, in closed form {speed:.4f} rad/s")
    print(f"largest current {np.max(np.abs(run['motor']['current'])):.2f} A")
    print(f"largest deflection {np.degrees(np.max(np.abs(link['deflection']))):.2f}°")
    angle = link["rotor_angle"][-1] + link["deflection"][-1]
    print(f"link at the end {angle:.4f} rad")
    folder.mkdir(parents=True, exist_ok=True)
    draw(run, speed, folder / "elastic_drive.png")
    print(f"wrote {folder / 'elastic_drive.png'}")


if __name__ == "__main__":
    main()
