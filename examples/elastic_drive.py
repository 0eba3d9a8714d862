"""A geared motor that turns a link through a spring: from volts to the motion of the link.

volts -> motor -> gear -> spring -> link, and the link's swing back into the motor's current
"""

import jax
import jax.numpy as jnp
import numpy as np

from mime import Gear, MotorNode, elastic_drive

jax.config.update("jax_enable_x64", True)
motor = MotorNode(
    "motor",
    1e-4,
    inertia_kg_m2=1e-5,
    kt_n_m_per_a=0.05,
    r_ohm=1.0,
    l_henry=1e-3,
    damping_n_m_s=1e-5,
    gear=Gear(ratio=50.0),
    shaft="driven",  # the spring turns the shaft; the motor only pulls at it
    command_mode="voltage",
    integrator="exact",
)
graph = elastic_drive(
    motor,
    joint_name="link",
    output_inertia_kg_m2=0.2,
    stiffness_n_m_per_rad=60.0,
    damping_n_m_s=0.03,
)


def volts(t):
    """12 V for two seconds, then the terminals are shorted."""
    return jnp.where(t < 2.0, 12.0, 0.0)


run = graph.compile().run(3.5, {"motor": {"commanded_voltage": volts}}, every=10)
link, on = run["link"], run.time < 2.0
speed = 12.0 * 0.05 / (0.05**2 + 1e-5) / 50.0
print(f"speed {link['rotor_velocity'][on][-1]:.4f} rad/s, in closed form {speed:.4f} rad/s")
print(f"largest current {np.abs(run['motor']['current']).max():.2f} A")
print(f"largest deflection {np.degrees(np.abs(link['deflection']).max()):.2f}°")
fields = ["motor.current", "link.rotor_velocity", "link.deflection"]
run.plot(*fields).savefig("elastic_drive.png")
