"""MIME-VER-108 and 117: published figures of a motor, and exact steps of any length."""

import numpy as np

from mime.nodes.actuation.motor import MotorNode
from mime.verification.benchmark import Measurement, benchmark, largest, replaced, scaled
from mime.verification.benchmarks.motor import REFERENCE, SMARTMOUSE, J, closed_loop
from mime.verification.programs import final_state, rollout


@benchmark(
    108,
    "Smartmouse's motor has its published figures",
    MotorNode,
    scaled("l_henry", 1e-3),
    kind="published figures",
)
def smartmouse(
    Motor, *, parameters=SMARTMOUSE, timestep_s=0.1, commanded_voltage_v=5.0, integrator="exact"
):
    """G(s) = K / ((J s + b)(L s + R) + K^2)

    A motor of another project, with an inductance of 0.58 H: both poles matter.

    Reference: The state space of the motor that the Smartmouse project publishes, and its figures
    at 5 V: 3.89509, 36.41864 and 56.12780 rad/s after 0.1, 0.5 and 1 s, 63.468 rad/s in the end,
    poles at -2.781 and -5.842 per second.

        A = [[-b/J, K/J], [-K/L, -R/L]],   B = [[0], [1/L]],   C = [1, 0],   D = [0]

    Procedure:
    1. Run ten exact steps; compare three speeds with the published ones.
    2. Compare `poles`, the gain at zero frequency and `state_space`.
    Covers: a step longer than both time constants together; the linear analysis of a motor
    Excludes: whether the published figures are those of a motor that was built
    """
    V = commanded_voltage_v
    motor = Motor("wheel", timestep_s, **parameters, integrator=integrator, command_mode="voltage")
    speeds = rollout(motor, {"commanded_voltage": V}, 10)["angular_velocity"]
    digit = "half of the last printed digit"
    yield Measurement(
        "error of the speed after 0.1, 0.5 and 1 s",
        largest(speeds[[0, 4, 9]] - [3.89509, 36.41864, 56.12780]),
        limit=5e-6,
        unit="rad/s",
        why=digit,
    )
    poles = np.asarray(motor.poles()) - [-2.781, -5.842]
    yield Measurement("error of the poles", largest(poles), limit=5e-4, unit="1/s", why=digit)
    steady = float(motor.frequency_response(np.zeros(1))[0].real) * V - 63.468
    yield Measurement("error of the final speed", abs(steady), 5e-4, unit="rad/s", why=digit)
    j, k, r, l, b = parameters.values()
    expected = ([[-b / j, k / j], [-k / l, -r / l]], [[0], [1 / l]], [[1, 0]], [[0]])
    errors = []
    for found, wanted in zip(motor.state_space(), expected, strict=True):
        size = np.where(np.asarray(wanted) == 0, 1.0, np.abs(wanted))
        errors.append(largest((np.asarray(found) - wanted) / size))
    yield Measurement(
        "largest relative error of an entry of A, B, C, D",
        max(errors),
        limit=1e-15,
        why="one rounding each; where zero is expected, the entry itself",
    )


@benchmark(
    117,
    "The exact integrator gives the same for any step",
    MotorNode,
    replaced("semi-implicit Euler in its place", integrator="semi_implicit"),
    kind="self-consistency",
)
def any_step(
    Motor,
    *,
    parameters=REFERENCE,
    integrator="exact",
    load_torque_n_m=-0.002,
    duration_s=1.0,
    timesteps_s=(1e-4, 1e-2, 1.0),
    commanded_torque_n_m=0.01,
    commanded_voltage_v=2.0,
    commanded_velocity_rad_per_s=10.0,
):
    """x(t + h) = x_rest + e^{A h} (x(t) - x_rest),   x_rest = -A^-1 B u

    With constant inputs a motor is linear, so its step has no error to shrink.

    Reference: The integrator itself with a finer step, and for the end of time the rest state.
    Procedure:
    1. In each mode run under load with each of the timesteps; compare all states at the end.
    2. Make one step of 1e5 s; compare the speed with the rest state in NumPy.
    Covers: steps from far below to far above the time constants; all three modes
    Excludes: whether the solution is the right one (MIME-VER-101, 104 and 106)
    """
    for mode, command in (
        ("torque", commanded_torque_n_m),
        ("voltage", commanded_voltage_v),
        ("velocity", commanded_velocity_rad_per_s),
    ):
        inputs = {f"commanded_{mode}": command, "load_torque": load_torque_n_m}
        motor = Motor("motor", 1.0, **parameters, integrator=integrator, command_mode=mode)
        fine, *others = (
            final_state(motor, inputs, round(duration_s / dt), dt=dt) for dt in timesteps_s
        )
        yield Measurement(
            f"largest relative difference of a state, {mode} mode",
            max(
                abs(other[name] - fine[name]) / (abs(fine[name]) + 1e-30)
                for other in others
                for name in fine
            ),
            limit=1e-11,
            why="10,000 roundings, which add up at worst linearly to 1e-12",
        )
        A, b = closed_loop(mode)
        push = b * command + np.eye(len(A))[0] * load_torque_n_m / J
        rest = -np.linalg.solve(A, push)[0]
        yield Measurement(
            f"relative error of the speed after one step of 1e5 s, {mode} mode",
            abs(final_state(motor, inputs, 1, dt=1e5)["angular_velocity"] / rest - 1),
            limit=1e-13,
            why="a few roundings",
        )
