"""MIME-VER-108 and 117: published figures of a motor, and exact steps of any length."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mime.nodes.actuation.motor import MotorNode
from mime.verification.benchmark import (
    Finding,
    Measurement,
    Subject,
    benchmark,
    largest,
    replaced,
    scaled,
)
from mime.verification.benchmarks.motor import REFERENCE, J, after, run
from mime.verification.benchmarks.motor_steps import COMMANDS, SMARTMOUSE, closed_loop


@benchmark(
    108,
    "Smartmouse's motor has its published figures",
    subject=MotorNode,
    node_id="MIME-NODE-100",
    fault=scaled("l_henry", 1e-3),
    configuration=SMARTMOUSE
    | {"timestep_s": 0.1, "duration_s": 1.0, "commanded_voltage_v": 5.0, "integrator": "exact"},
    reference="""The state space of the motor that the Smartmouse project publishes, and its figures
at 5 V: 3.89509, 36.41864 and 56.12780 rad/s after 0.1, 0.5 and 1 s, 63.468 rad/s in the end,
poles at -2.781 and -5.842 per second.

    A = [[-b/J, K/J], [-K/L, -R/L]],   B = [[0], [1/L]],   C = [1, 0],   D = [0]""",
    procedure=(
        "Run ten exact steps of 0.1 s at 5 V; compare three speeds with the published ones.",
        "Compare `poles`, the gain at zero frequency and `state_space`.",
    ),
    covers=("a step longer than both time constants together", "the linear analysis of a motor"),
    excludes=("whether the published figures are those of a motor that was built",),
    kind="published figures",
)
def smartmouse(Motor: Subject) -> Iterator[Finding]:
    """G(s) = K / ((J s + b)(L s + R) + K^2)

    A motor of another project, with an inductance of 0.58 H: both poles matter.
    """
    motor = Motor("wheel", 0.1, **SMARTMOUSE, integrator="exact", command_mode="voltage")
    speeds = run(motor, {"commanded_voltage": 5.0}, 10)["angular_velocity"]
    yield Measurement(
        "error of the speed after 0.1, 0.5 and 1 s",
        largest(speeds[[0, 4, 9]] - [3.89509, 36.41864, 56.12780]),
        limit=5e-6,
        unit="rad/s",
        why="half of the last printed digit",
    )
    yield Measurement(
        "error of the poles",
        largest(np.asarray(motor.poles()) - [-2.781, -5.842]),
        limit=5e-4,
        unit="1/s",
        why="half of the last printed digit",
    )
    steady = float(motor.frequency_response(np.zeros(1))[0].real) * 5.0
    yield Measurement(
        "error of the final speed",
        abs(steady - 63.468),
        limit=5e-4,
        unit="rad/s",
        why="half of the last printed digit",
    )
    j, k, r, l, b = SMARTMOUSE.values()
    expected = ([[-b / j, k / j], [-k / l, -r / l]], [[0], [1 / l]], [[1, 0]], [[0]])
    matrices = zip(motor.state_space(), expected, strict=True)
    errors = [np.abs(np.asarray(found) - wanted) / _size(wanted) for found, wanted in matrices]
    yield Measurement(
        "largest relative error of an entry of A, B, C, D",
        max(float(np.max(error)) for error in errors),
        limit=1e-15,
        why="one rounding each; where zero is expected, the entry itself",
    )


def _size(matrix: Any) -> np.ndarray:
    return np.where(np.asarray(matrix) == 0, 1.0, np.abs(matrix))


@benchmark(
    117,
    "The exact integrator gives the same for any step",
    subject=MotorNode,
    node_id="MIME-NODE-100",
    fault=replaced("semi-implicit Euler in its place", integrator="semi_implicit"),
    configuration=REFERENCE
    | {
        "integrator": "exact",
        "load_torque_n_m": -0.002,
        "duration_s": 1.0,
        "timesteps_s": (1e-4, 1e-2, 1.0),
        **{f"commanded_{mode}": command for mode, command in COMMANDS.items()},
    },
    reference="""The integrator itself with a finer step, and for the end of time the rest state:

    x(t + h) = x_rest + e^{A h} (x(t) - x_rest),   x_rest = -A^-1 B u""",
    procedure=(
        "In each mode run 1 s under load in 10,000 steps, in 100 and in one; compare all states.",
        "Make one step of 1e5 s; compare the speed with the rest state in NumPy.",
    ),
    covers=("steps from far below to far above the time constants", "all three modes"),
    excludes=("whether the solution is the right one (MIME-VER-101, 104 and 106)",),
    kind="self-consistency",
)
def any_step(Motor: Subject) -> Iterator[Finding]:
    """x(t + h) = x_rest + e^{A h} (x(t) - x_rest)

    With constant inputs a motor is linear, so its step has no error to shrink.
    """
    load = -0.002
    for mode, command in COMMANDS.items():
        inputs = {f"commanded_{mode}": command, "load_torque": load}

        def end(dt: float, steps: int, mode: str = mode, inputs: dict = inputs) -> dict:
            options = {"integrator": "exact", "command_mode": mode}
            return after(Motor("motor", dt, **REFERENCE, **options), inputs, steps)

        fine, medium, coarse = end(1e-4, 10_000), end(1e-2, 100), end(1.0, 1)
        yield Measurement(
            f"largest relative difference of a state, {mode} mode",
            max(
                abs(other[name] - fine[name]) / (abs(fine[name]) + 1e-30)
                for other in (medium, coarse)
                for name in fine
            ),
            limit=1e-11,
            why="10,000 roundings, which add up at worst linearly to 1e-12",
        )
        A, b = closed_loop(mode)
        push = b * command + np.eye(len(A))[0] * load / J
        rest = -np.linalg.solve(A, push)[0]
        yield Measurement(
            f"relative error of the speed after one step of 1e5 s, {mode} mode",
            abs(end(1e5, 1)["angular_velocity"] / rest - 1),
            limit=1e-13,
            why="a few roundings",
        )
