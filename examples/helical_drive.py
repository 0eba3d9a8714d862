"""From the volts at a motor to the way of a microrobot, and back: an arm holds a spinning magnet.

path -> computed torque -> arm -> rotor -> magnet -> field -> swimmer in a tube
                                   arm <- rotor <- reaction of the swimmer

The machine is the bundled scenario `helical_drive`. Here its figures are held against closed forms;
slopes of the swum way go through the whole chain; and the fastest passage that keeps step is found.
"""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import NonlinearConstraint, minimize

from mime import load_scenario

jax.config.update("jax_enable_x64", True)
KT, B_ROTOR, OHM = 0.05, 1e-4, 1.0  # of the motor
MAGNET, MOMENT, STANDOFF = 18.89, 1e-3, 0.15  # A·m², A·m², m

scenario = load_scenario("helical_drive")
simulation = scenario.simulation
run = scenario.run()
time, spin = run.time, run["swimmer"]["spin_rate"]
turned, speed = run["rotor"]["rotor_angle"], run["rotor"]["rotor_angular_velocity"]

# The drag of its spin, c, and its way in a turn, both free to swim: from its resistance.
R = np.asarray(simulation.nodes["swimmer"].resistance())
A, C, D = R[:3, :3], R[3:, :3], R[3:, 3:]
drag = (D - C @ np.linalg.inv(A) @ C.T)[2, 2]
way = abs(2 * np.pi * R[2, 5] / R[2, 2])
field = 1e-7 * MAGNET / STANDOFF**3  # B0; the field right below the magnet is 2 B0 by B0
step_out = 1.5 * MOMENT * field / drag / (2 * np.pi)
behind = turned + np.cumsum(spin) * (time[1] - time[0])
lost = int(np.argmax(behind > np.pi))
print(f"step lost at {speed[lost] / (2 * np.pi):.1f} Hz; of the mean field {step_out:.1f} Hz")

steady = time > 3.0  # 8 Hz from here on
lag = np.sin(run["body"]["angle_to_field"][steady]).mean()
print(f"sine of the lag at 8 Hz {lag:.3f}; f / f_so = {8 / step_out:.3f}")
swimming = run["swimmer"]["swim_speed"][steady].mean()
print(f"swims {1e3 * swimming:.3f} mm/s; 8 turns are {8e3 * way:.3f} mm")

# What the motor feels of it: the same run with next to no moment in the body.
alone = load_scenario("helical_drive", ["body.moment_a_m2=[1e-12, 0, 0]"]).run()
cost = (run["rotor"]["current"] - alone["rotor"]["current"])[steady].mean()
load = -run["body"]["load_torque"][steady].mean()
expected = load / KT * KT**2 / (KT**2 + OHM * B_ROTOR)
print(
    f"the swimmer costs {1e6 * cost:.3f} µA; torque over kt, less back-EMF {1e6 * expected:.3f} µA"
)

# The magnet's axis 10° off: the field's axis is w ~ H⁻¹ Omega, H⁻¹ = 3/2 r rᵀ - 1.
axis = [0.0, float(np.sin(np.radians(10))), float(np.cos(np.radians(10)))]
tilted = load_scenario("helical_drive", [f"rotor.axis_in_parent_frame={axis}"]).run()
B = tilted["magnet"]["field_world"][steady]
found = np.cross(B[:-1], B[1:]).sum(axis=0)
w, x, y, z = tilted["arm"]["end_effector_pose_world"][-1, 3:]
turn = np.array(
    [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
)
magnet, swimmer = (
    tilted[node][name][steady].mean(axis=0)[:3]
    for node, name in (("rotor", "rotor_pose_world"), ("swimmer", "swimmer_pose_world"))
)
r = (swimmer - magnet) / np.linalg.norm(swimmer - magnet)
told = 1.5 * r * (r @ (turn @ axis)) - turn @ axis
apart = np.degrees(np.arccos(found @ told / np.linalg.norm(found) / np.linalg.norm(told)))
tilt = np.degrees(np.arccos(-told[0] / np.linalg.norm(told)))
print(f"field's axis tilted by {tilt:.2f}°, within {apart:.2f}° of what is told")


# The way in 0.2 s and the largest lag, as functions of voltage and standoff; and of pitch, by a
# theory that follows the geometry (Stokeslets are computed for numbers).
START = np.asarray(run["path"]["desired_joint_angles"][0])
following = load_scenario("helical_drive", ["swimmer.theory=lighthill"]).simulation


def passage(volts, standoff_m, pitch_m=None, steps=800):
    place = jnp.array([0.07, -0.33, 0.5]) - standoff_m * jnp.array([0.0, 0.0, 1.0])
    chain = simulation.with_parameters({"swimmer.tube.point_m": place})
    if pitch_m is not None:
        own = {"pitch_m": pitch_m, "tube.point_m": place}
        chain = following.with_parameters({"swimmer": own})
    rate = volts * KT / (KT**2 + OHM * B_ROTOR)
    state = {
        "arm": {"joint_angles": START},
        "rotor": {"angular_velocity": rate, "current": B_ROTOR * rate / KT},
        "swimmer": {"pose_world": jnp.concatenate([place, jnp.array([0.5, -0.5, 0.5, -0.5])])},
    }
    inputs = {"rotor": {"commanded_voltage": volts}, "around": {"points_world": np.ones((9, 3))}}
    record = {"body": ["angle_to_field"], "swimmer": ["position_world"]}
    _, seen = chain.rollout(chain.init_state(state), inputs, steps=steps, record=record, every=8)
    way = seen["swimmer"]["position_world"][-1, 0] - place[0]
    late = seen["body"]["angle_to_field"][25:]  # when it has caught up
    return jnp.stack([way, jax.nn.logsumexp(100.0 * late) / 100.0])


def differences(function, at, step):
    return (function(at + step) - function(at - step)) / (2 * np.abs(step).sum())


both = jax.jit(lambda x: passage(*x))
slopes = jax.jit(jax.jacfwd(lambda x: passage(*x)))
at, small = np.array([2.6, 0.15]), np.diag([1e-4, 1e-6])
by_pitch = jax.jit(lambda pitch: passage(2.6, 0.15, pitch)[0])
found = [
    ("volt", slopes(at)[0, 0], differences(both, at, small[0])[0]),
    ("metre of standoff", slopes(at)[0, 1], differences(both, at, small[1])[0]),
    ("metre of pitch", jax.grad(by_pitch)(3e-3), differences(by_pitch, 3e-3, 1e-7)),
]
for name, exact, near in found:
    print(f"way per {name} {exact:.5e} m, by central differences {near:.5e} m")

# Fastest passage, 150 mm to 200 mm away and never more than 60° behind the field.
scale = np.array([1.0, 0.1])
bounds = [(0.5, 6.0), (1.5, 2.0)]
best = minimize(
    lambda x: -1e3 * float(both(x * scale)[0]),
    np.array([1.5, 1.8]),
    jac=lambda x: -1e3 * np.asarray(slopes(x * scale))[0] * scale,
    bounds=bounds,
    constraints=NonlinearConstraint(
        lambda x: float(both(x * scale)[1]),
        -np.inf,
        np.radians(60),
        jac=lambda x: np.asarray(slopes(x * scale))[1] * scale,
    ),
    method="SLSQP",
)
volts, standoff = best.x * scale
reached, largest_lag = both(best.x * scale)
rate = volts * KT / (KT**2 + OHM * B_ROTOR) / (2 * np.pi)
print(
    f"fastest: {volts:.3f} V, {rate:.2f} Hz, {1e3 * standoff:.0f} mm away: "
    f"{1e3 * reached / 0.2:.2f} mm/s, {np.degrees(largest_lag):.1f}° behind at most"
)
fields = ["rotor.rotor_angular_velocity", "swimmer.spin_rate", "body.angle_to_field"]
run.plot(*fields).savefig("helical_drive.png")
run.save("helical_drive.nc")
