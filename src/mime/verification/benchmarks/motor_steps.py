"""MIME-VER-100 and 101: the speed of a motor after a step of torque and of voltage."""

import jax.numpy as jnp
import numpy as np
import scipy

from mime.nodes.actuation.motor import MotorNode
from mime.verification.benchmark import Convergence, Measurement, benchmark, largest, scaled
from mime.verification.benchmarks.motor import REFERENCE, SMARTMOUSE, B, J, back_emf, closed_loop
from mime.verification.convergence import order_error
from mime.verification.programs import final_state, quick_jit, rollout


@benchmark(
    100,
    "MotorNode Step Response (Torque Mode, No Load)",
    MotorNode,
    scaled("inertia_kg_m2", 0.5),
    slug="motor_step_response",
    test="tests/verification/test_motor.py::test_ver100_torque_step_response",
)
def torque_step(
    Motor,
    *,
    parameters=REFERENCE,
    timestep_s=1e-4,
    duration_s=1.0,
    commanded_torque_n_m=0.01,
    commanded_voltage_v=0.0,
    load_torque_n_m=0.0,
    parent_pose_world=(0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0),
    axis_in_parent_frame=(0.0, 0.0, 1.0),
    voltage_of_the_order_v=2.0,
    velocity_of_the_order_rad_per_s=10.0,
    timesteps_of_the_order_s=(1e-4, 5e-5, 2.5e-5, 1.25e-5),
):
    """J dw/dt = tau - b w,   w(t) = tau/b (1 - e^{-b t/J})

    The simplest motion that a motor can make: torque in, viscous friction, no load. The winding
    takes no part in torque mode. At the end the speed is tau/b = 20 rad/s; the time constant is
    J/b = 0.2 s. The trajectory holds the speed *after* each step, so that its sample n is at
    t_{n+1}; the error is given on the grid t_n = n dt too, which is one step off.

    Reference: A damped rotor from rest, in NumPy, and the same after n steps of the scheme,
    w_n = tau/b (1 - (1 + b dt/J)^-n). For the order in voltage and velocity mode, SciPy's
    `expm` of the mode's matrix.
    Procedure:
    1. Run semi-implicit Euler in one loop with a constant torque.
    2. Compare the speed after each step with the closed form at t_{n+1}, and at t_n.
    3. Compare it with the closed form of the discretisation.
    4. In each mode, halve the step three times and fit the order of the error at 50 ms.
    Covers: the mechanical path of torque mode; the order of semi-implicit Euler in all modes
    Excludes: the winding (MIME-VER-101); the velocity loop (MIME-VER-106); the pose
    (MIME-VER-107); friction other than viscous (MIME-VER-110); cogging (MIME-VER-111;
    `MotorMeta.has_cogging` is False unless the motor has a `Cogging`); imbalance of the rotor
    (MIME-VER-188; `MotorMeta.has_imbalance_vibration` is False unless it has an `Imbalance`); the
    reaction on an arm that carries the motor (MIME-VER-118; it is two-way where it is wired)
    """
    tau, dt, steps = commanded_torque_n_m, timestep_s, round(duration_s / timestep_s)
    motor = Motor("motor", dt, **parameters, axis_in_parent_frame=axis_in_parent_frame)
    inputs = {
        "commanded_torque": tau,
        "commanded_voltage": commanded_voltage_v,
        "load_torque": load_torque_n_m,
        "parent_pose_world": parent_pose_world,
    }
    omega = rollout(motor, inputs, steps)["angular_velocity"]
    n = np.arange(1, steps + 1)
    for grid, first, limit, why in (
        ("t_{n+1}", 1, 6e-5, "5.58e-5 expected: half of dt b/J times the rms of (t/T) e^{-t/T}"),
        ("t_n", 0, 1.3e-4, "1.25e-4 expected: a step of dt more; 5 % is required"),
    ):
        exact = tau / B * (1 - np.exp(-B * (n - 1 + first) * dt / J))
        rms = float(np.sqrt(np.mean((omega - exact) ** 2)) / (tau / B))
        yield Measurement(f"relative rms error of the speed, grid {grid}", rms, limit, why=why)
    discrete = tau / B * (1 - (1 + B * dt / J) ** -n.astype(float))
    yield Measurement(
        "relative error of the speed against the discrete closed form",
        largest((omega - discrete) / discrete),
        limit=1e-12,
        why="10,000 roundings of 1e-16",
    )
    commands = {
        "torque": tau,
        "voltage": voltage_of_the_order_v,
        "velocity": velocity_of_the_order_rad_per_s,
    }
    errors = {}
    for mode, command in commands.items():
        A, b = closed_loop(mode)
        e_At = scipy.linalg.expm(A * 0.05)
        at_50_ms = ((e_At - np.eye(len(A))) @ np.linalg.solve(A, b * command))[0]
        ends = (
            final_state(motor, {f"commanded_{mode}": command}, round(0.05 / dt), dt=dt)
            for dt in timesteps_of_the_order_s
        )
        errors[mode] = tuple(abs(end["angular_velocity"] - at_50_ms) for end in ends)
        yield order_error(
            f"order of the error in {mode} mode",
            timesteps_of_the_order_s,
            errors[mode],
            1,
            limit=0.02,
        )
    what = "error of the speed at 50 ms (rad/s)"
    yield Convergence("timestep (s)", timesteps_of_the_order_s, what, errors, 1.0)


@benchmark(101, "Speed after a voltage step", MotorNode, back_emf(0.99))
def voltage_step(
    Motor,
    *,
    parameters=REFERENCE,
    second_motor="Smartmouse's, of MIME-VER-108",
    inductance_of_the_third_motor_henry=0.2,
    timestep_s=1e-3,
    duration_s=1.0,
    commanded_voltage_v=5.0,
    integrator="exact",
):
    """J dw/dt = k i - b w,   L di/dt = V - R i - k w

    Two coupled first-order systems, the winding and the rotor. The third motor, which is the first
    with another inductance, has complex poles.

    Reference: Both poles in closed form, real or complex, in NumPy:

        J L s^2 + (J R + L b) s + R b + k^2 = 0
        w(t) = k V/(k^2 + R b) [1 + (s2 e^{s1 t} - s1 e^{s2 t}) / (s1 - s2)]

    Procedure:
    1. Run the exact integrator at a constant voltage for each of three motors.
    2. Compare the speed after each step, and `step_response` at the same times.
    Covers: winding and back-EMF; the exact integrator at real and at complex poles
    Excludes: semi-implicit Euler in voltage mode (its order is in MIME-VER-100); loads
    """
    V, dt, steps = commanded_voltage_v, timestep_s, round(duration_s / timestep_s)
    t = dt * np.arange(1, steps + 1)
    motors = {
        "reference motor": parameters,
        "Smartmouse's motor": SMARTMOUSE,
        "complex poles": parameters | {"l_henry": inductance_of_the_third_motor_henry},
    }
    for name, values in motors.items():
        exact = _two_poles(values, V, t)
        motor = Motor("motor", dt, **values, integrator=integrator, command_mode="voltage")
        omega = rollout(motor, {"commanded_voltage": V}, steps)["angular_velocity"]
        response = np.asarray(_step_response(motor, jnp.asarray(t), V))
        for what, speeds in (("speed", omega), ("step_response", response)):
            yield Measurement(
                f"relative error, {what}, {name}",
                largest(speeds - exact) / largest(exact),
                limit=1e-12,
                why="1,000 roundings of 1e-16, and those of the closed form",
            )


_step_response = quick_jit(
    lambda motor, t, V: motor.step_response(t, amplitude=V), static_argnames="V"
)


def _two_poles(parameters: dict[str, float], V: float, t: np.ndarray) -> np.ndarray:
    J, k, R, L, b = parameters.values()
    s1, s2 = np.roots([J * L, J * R + L * b, R * b + k * k]).astype(complex)
    w_inf = k * V / (k * k + R * b)
    return np.real(w_inf * (1 + (s2 * np.exp(s1 * t) - s1 * np.exp(s2 * t)) / (s1 - s2)))
