"""Motor, gear, spring, link: against the matrix exponential of all five states, closed forms."""

from functools import partial

import jax
import numpy as np
import pytest
from scipy.linalg import expm

from compiling import QUICK
from mime.core.problem import ParameterError
from mime.nodes.actuation.elastic_drive import elastic_drive
from mime.nodes.actuation.motor import Gear, MotorNode

pytestmark = pytest.mark.slow

N, KT, R, L, B_MOTOR = 50.0, 0.05, 1.0, 1e-3, 1e-5
J, I, K, V = N**2 * 1e-5 + 1e-3, 0.05, 30.0, 0.05
MOTOR = {
    "inertia_kg_m2": 1e-5,
    "kt_n_m_per_a": KT,
    "r_ohm": R,
    "l_henry": L,
    "damping_n_m_s": B_MOTOR,
}
JOINT = {"output_inertia_kg_m2": I, "stiffness_n_m_per_rad": K, "damping_n_m_s": V}
INPUTS = {"motor": {"commanded_voltage": 12.0}, "joint": {"external_torque": -0.5}}


def drive(timestep=1e-4, joint=None, iterated=False, **changes):
    gear = Gear(ratio=N, output_inertia_kg_m2=1e-3)
    options = {"shaft": "driven", "command_mode": "voltage", "gear": gear}
    motor = MotorNode("motor", timestep, **(MOTOR | options | changes))
    return elastic_drive(motor, iterated=iterated, **(JOINT | (joint or {}))).compile()


def states(trajectory):
    """(i, x2, x2', x1, x1') after each step."""
    fields = ("rotor_angle", "rotor_velocity", "deflection", "deflection_velocity")
    joint = [trajectory["joint"][name] for name in fields]
    return np.stack([trajectory["motor"]["current"], *joint], axis=1)


def matrices(I=I):
    """A, B of the five states for the inputs (voltage, external torque)."""
    rotor = [N * KT / J, 0.0, -(N**2) * B_MOTOR / J, K / J, V / J]
    link = [0.0, 0.0, 0.0, -K / I, -V / I]
    A = np.array(
        [
            [-R / L, 0.0, -KT * N / L, 0.0, 0.0],
            [0.0, 0.0, 1.0, 0.0, 0.0],
            rotor,
            [0.0, 0.0, 0.0, 0.0, 1.0],
            np.subtract(link, rotor),
        ]
    )
    return A, np.array([[1 / L, 0], [0, 0], [0, 0], [0, 0], [0, 1 / I]])


@pytest.mark.small("semi_implicit-False", "exact-True")
@pytest.mark.parametrize("iterated", [False, True])
@pytest.mark.parametrize("integrator", ["semi_implicit", "exact"])
def test_it_converges_to_the_exponential_of_the_whole_with_first_order(integrator, iterated):
    """And Richardson's extrapolation of the two steps takes that order away."""
    A, B = matrices()
    step = expm(np.block([[A, (B @ [12.0, -0.5])[:, None]], [np.zeros((1, 6))]]) * 1e-4)
    x, theirs = np.array([0, 0, 0, 0, 0, 1.0]), []
    for _ in range(1000):
        x = step @ x
        theirs.append(x[:5])
    theirs = np.array(theirs)
    coarse, fine = (
        states(
            drive(1e-4 / n, iterated=iterated, integrator=integrator).run(
                duration=0.1, inputs=INPUTS, every=n
            )
        )
        for n in (5, 10)
    )

    def error(ours):
        return np.max(np.abs(ours - theirs) / np.max(np.abs(theirs), axis=0))

    assert error(coarse) / error(fine) == pytest.approx(2.0, rel=0.03)
    assert error(fine) < 1e-5 * np.max(np.abs(np.linalg.eigvals(A)))
    assert error(2 * fine - coarse) < 2e-4


def test_the_steady_speed_is_the_motors_speed_torque_line():
    """w = (kt V / R + f / N) / (b + kt ke / R) of the rotor: the load is felt through the motor."""
    run = drive(1e-3, integrator="exact").run(duration=10.0, inputs=INPUTS, every=10_000)
    w = (KT * 12.0 / R - 0.5 / N) / (B_MOTOR + KT**2 / R) / N
    x = states(run)[-1]
    np.testing.assert_allclose(x[2], w, rtol=1e-9)
    np.testing.assert_allclose(x[4], 0.0, atol=1e-9)
    np.testing.assert_allclose(x[0], (12.0 - KT * N * w) / R, rtol=1e-9)
    np.testing.assert_allclose(x[3], -0.5 / K, rtol=1e-9)  # the spring carries the load alone


def test_with_the_output_held_the_motor_stalls_against_the_spring():
    """A link of 1e9 kg·m² stands still: i = V/R, and the deflection is -N kt V / (R k)."""
    run = drive(1e-3, {"output_inertia_kg_m2": 1e9, "damping_n_m_s": 2.0}, integrator="exact").run(
        duration=6.0, inputs={"motor": {"commanded_voltage": 6.0}}, every=6000
    )
    i, _, w, x1, _ = states(run)[-1]
    assert i == pytest.approx(6.0 / R, rel=1e-6)
    assert x1 == pytest.approx(-N * KT * 6.0 / R / K, rel=1e-6)
    assert abs(w) < 1e-6


@pytest.mark.small("False")
@pytest.mark.parametrize("iterated", [False, True])
def test_gradients_of_the_link_angle_agree_with_central_differences(iterated):
    simulation = drive(1e-3, iterated=iterated)

    @partial(jax.jit, compiler_options=QUICK)
    @jax.value_and_grad
    def angle(p):
        changed = simulation.with_parameters(
            {"motor": {"r_ohm": p[0]}, "joint": {"stiffness_n_m_per_rad": p[1]}}
        )
        end, _ = changed.rollout(changed.init_state(), INPUTS, 100, record=())
        joint = end.of("joint")
        return joint["rotor_angle"] + joint["deflection"]

    p = np.array([R, K])
    _, gradient = angle(p)
    for h, ours in zip(np.diag(1e-4 * p), gradient):
        central = (float(angle(p + h)[0]) - float(angle(p - h)[0])) / (2 * h.sum())
        # The differences' own error: h² of curvature, and the group's tolerance of 1e-9 over h.
        assert float(ours) == pytest.approx(central, rel=1e-4)


def test_the_inserted_body_and_other_commands_fit_in_too():
    inserted = {"model": "inserted_body", "inserted_inertia_kg_m2": 1e-6}
    run = drive(joint=inserted, command_mode="torque").run(
        steps=100, inputs={"motor": {"commanded_torque": 0.01}}
    )
    plain = drive(command_mode="torque").run(
        steps=100, inputs={"motor": {"commanded_torque": 0.01}}
    )
    x, exact = states(run), states(plain)
    assert np.max(np.abs(x - exact)) < 1e-3 * np.max(np.abs(exact))
    assert np.max(np.abs(x - exact)) > 0.0
    total = x[:, 2] + I / (I + J) * x[:, 4]
    t = 1e-4 * np.arange(1, 101)  # N tau - b N² w, and b N² t / (I + J) = 0.3 %
    np.testing.assert_allclose(total, N * 0.01 * t / (I + J), rtol=1e-2)


SWEEPS = {"motor.gear.ratio": [30.0, 50.0, 70.0], "motor.inertia_kg_m2": [5e-6, 1e-5, 2e-5]}


def rebuilt(name, value, iterated=False):
    """The drive built anew with one value of `SWEEPS`."""
    changes = {"gear": Gear(value, output_inertia_kg_m2=1e-3)}
    if name == "motor.inertia_kg_m2":
        changes = {"inertia_kg_m2": value}
    return drive(1e-3, iterated=iterated, **changes)


@pytest.mark.small("motor.gear.ratio-True", "motor.inertia_kg_m2-False")
@pytest.mark.parametrize("iterated", [False, True])
@pytest.mark.parametrize("name", SWEEPS)
def test_the_joints_rotor_follows_the_motor_in_a_sweep(name, iterated):
    simulation, values = drive(1e-3, iterated=iterated), np.array(SWEEPS[name])
    batch = simulation.run_batch(steps=50, inputs=INPUTS, parameters={name: values}, progress=False)
    for n, value in enumerate(values):
        expected = rebuilt(name, value, iterated)
        changed = simulation.with_parameters({name: value})
        assert float(changed.nodes["joint"].rotor_inertia_kg_m2) == pytest.approx(
            float(expected.nodes["joint"].rotor_inertia_kg_m2), rel=1e-15
        )
        # Compiled apart: rounding, and with an iterated group its tolerance of 1e-9.
        rtol = 1e-7 if iterated else 1e-11
        angle = expected.run(steps=50, inputs=INPUTS, progress=False)["joint"]["output_angle"]
        np.testing.assert_allclose(batch["joint"]["output_angle"][n], angle, rtol=rtol)
        alone = changed.run(steps=50, inputs=INPUTS, progress=False)["joint"]["output_angle"]
        np.testing.assert_allclose(alone, angle, rtol=rtol)


@pytest.mark.small("motor.gear.ratio")
@pytest.mark.parametrize("name", SWEEPS)
def test_the_gradient_by_the_gear_is_that_of_the_whole_drive(name):
    simulation, x = drive(1e-3), SWEEPS[name][1]

    def angle(simulation):
        end, _ = simulation.rollout(simulation.init_state(), INPUTS, 50, record=())
        return end.of("joint")["rotor_angle"] + end.of("joint")["deflection"]

    gradient = jax.grad(lambda value: angle(simulation.with_parameters({name: value})))(x)
    high, low = (float(angle(rebuilt(name, x * factor))) for factor in (1 + 1e-5, 1 - 1e-5))
    # h² of curvature is 1e-10, rounding over h 1e-11.
    assert float(gradient) == pytest.approx((high - low) / (2e-5 * x), rel=1e-6)


def test_the_rotor_that_follows_the_motor_is_not_set_by_itself():
    refusal = "rotor_inertia_kg_m2 follows inertia_kg_m2, gear of 'motor'. Vary those instead"
    with pytest.raises(ParameterError, match=refusal):
        drive().with_parameters({"joint.rotor_inertia_kg_m2": 0.1})
    with pytest.raises(ParameterError, match=refusal):
        drive().run_batch(steps=1, parameters={"joint.rotor_inertia_kg_m2": np.ones(2)})


def test_single_precision_agrees_with_double():
    double = states(drive().run(steps=500, inputs=INPUTS))[-1]
    with jax.enable_x64(False):
        single = states(drive().run(steps=500, inputs=INPUTS))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single[-1], double, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(
    ("changes", "joint", "says"),
    [
        ({"shaft": "free"}, {}, "shaft of the motor must be 'driven', got 'free'"),
        ({}, {"gear_ratio": 50.0}, "gear_ratio is the motor's, got 50.0 for the joint"),
        ({}, {"rotor_inertia_kg_m2": 0.1}, "rotor_inertia_kg_m2 is the motor's"),
    ],
)
def test_a_gear_or_a_rotor_that_counts_twice_is_refused(changes, joint, says):
    with pytest.raises(ParameterError, match=says):
        drive(joint=joint, **changes)
