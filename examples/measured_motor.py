"""A log that nobody simulated: a gearmotor's step response, what it tells, and what it does not.

The motor of a micromouse is switched from 0 to a duty of 100/255, and its encoder is read every
5 ms. The log is from github.com/opatiny/micromouse, under CERN-OHL-P v2; see its first lines.
"""

from pathlib import Path

import numpy as np

from mime import Channel, GraphManager, Log, MotorNode, Unknown, fit

FILE = Path(__file__).parent / "logs" / "gearmotor_step.csv"
BATTERY_V, COUNTS = 7.4, 12  # nominal, and counts a turn of the motor

time, counts, mode = np.genfromtxt(FILE, delimiter=",", comments="#", skip_header=6).T
time, angle = 1e-3 * (time - time[0]), -2 * np.pi / COUNTS * (counts - counts[0])
volts = np.where(mode > 0, 100 / 255 * BATTERY_V, 0.0)

# The data sheet: 0.75 A stall and 1100 rpm, 0.08 A without load, both at 12 V and behind 30:1.
R = 12.0 / 0.75
KT = (12.0 - 0.08 * R) / (1100 * 29.861 * np.pi / 30)
B = 0.08 * KT / (1100 * 29.861 * np.pi / 30)
graph = GraphManager()
graph.add_node(
    MotorNode(
        "motor",
        5e-3,
        r_ohm=R,
        l_henry=2e-3,
        kt_n_m_per_a=KT,
        inertia_kg_m2=1e-7,
        damping_n_m_s=B,
        command_mode="voltage",
        integrator="exact",
    )
)
graph.add_external_input("motor", "commanded_voltage")
model = graph.compile()
columns = {
    "volts": "motor.commanded_voltage",
    "angle": Channel("motor.rotor_angle", delay=12),  # the firmware takes its time
}
names = [
    f"motor.{n}" for n in ("r_ohm", "l_henry", "kt_n_m_per_a", "inertia_kg_m2", "damping_n_m_s")
]


def part(rows: int) -> Log:
    return Log({"time": time[:rows], "volts": volts[:rows], "angle": angle[:rows]}, name="step")


print("The first 0.6 s, and nothing known beforehand:")
alone = fit(model, part(120), columns, names, starts=1, progress=False)
print(alone)

print("\nR, L and b as the data sheet has them, to 10 %:")
sheet = {"motor.r_ohm": R, "motor.l_henry": 2e-3, "motor.damping_n_m_s": B}
known = {name: Unknown(sheet.get(name), std=0.1 * sheet[name] if name in sheet else None)
         for name in names}  # fmt: skip
found = fit(model, part(120), columns, known, starts=1, progress=False)
print(found)
found.plot().savefig("measured_motor.png", dpi=120)

print("\nAll 1.6 s:")
print(fit(model, part(len(time)), columns, known, starts=1, progress=False))
