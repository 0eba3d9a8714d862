"""Figures as functions of samples: the same as of scenario files, and with the slopes they have."""

import jax
import numpy as np
import pytest

import mime
from compiling import QUICK
from mime.scenarios.merits import evaluate
from mime.tuning.goal import LARGEST, Figures
from mime.tuning.start import at_start

STEP = "motor.rotor_angular_velocity"
GOALS = [
    mime.Goal("rms_error", STEP, "motor.commanded_velocity", after=0.02),
    mime.Goal("rms_error", STEP, "motor.commanded_velocity", lag=0.013),
    mime.Goal("rms_distance", STEP, "motor.commanded_velocity"),
    mime.Goal("max_distance", STEP, "motor.commanded_velocity", after=0.03),
    mime.Goal("max", STEP, unit="rpm"),
    mime.Goal("min", STEP, after=0.06),
    mime.Goal("mean", STEP),
    mime.Goal("rms", STEP),
    mime.Goal("final", STEP),
    mime.Goal("overshoot", STEP, target=10.0),
    mime.Goal("rise_time", STEP, target=10.0, unit="ms"),
    mime.Goal("settling_time", STEP, target=10.0),
]


@pytest.fixture(scope="module")
def run():
    graph = mime.GraphManager()
    constants = {"r_ohm": 1.0, "l_henry": 1e-3, "kt_n_m_per_a": 0.05, "damping_n_m_s": 3e-4}
    gains = {"velocity_kp": 0.01, "velocity_ki": 1.0, "command_mode": "velocity"}
    graph.add_node(mime.MotorNode("motor", 1e-3, inertia_kg_m2=1e-4, **constants, **gains))
    graph.add_external_input("motor", "commanded_velocity")
    simulation = graph.compile()
    inputs = {"motor": {"commanded_velocity": 10.0}}
    record = ["motor.rotor_angular_velocity", "motor.commanded_velocity"]
    return simulation, simulation.run(0.2, inputs, record=record, progress=False)


def test_they_are_those_of_scenario_files(run):
    simulation, trajectory = run
    figures = Figures(simulation, GOALS, trajectory.time)
    found = np.asarray(figures.values(trajectory))
    for goal, value, unit in zip(GOALS, found, figures.units, strict=True):
        wanted = evaluate(goal.merit, trajectory)
        assert unit == wanted.unit
        # A settling time of the file is that of the first sample within the band.
        room = 1e-3 if goal.kind == "settling_time" else 1e-9 * abs(wanted.value)
        assert value == pytest.approx(wanted.value, abs=room), goal.label


def test_their_slopes_are_differences_of_themselves(run):
    simulation, trajectory = run
    field = "rotor_angular_velocity"
    goals = [*GOALS, mime.Goal(LARGEST, STEP)]
    figures = Figures(simulation, goals, trajectory.time)
    wave = np.sin(40.0 * trajectory.time) * np.exp(-20.0 * trajectory.time)

    def of(a):
        samples = dict(trajectory["motor"])
        samples[field] = samples[field] + a * wave
        return figures.values({"motor": samples})

    slopes = np.asarray(jax.jit(jax.jacfwd(of), compiler_options=QUICK)(0.0))
    of = jax.jit(of, compiler_options=QUICK)
    small = 1e-6
    differences = (np.asarray(of(small)) - np.asarray(of(-small))) / (2 * small)
    np.testing.assert_allclose(slopes, differences, rtol=1e-6, atol=1e-8)
    assert np.all(slopes[:-1] != 0)


def test_a_run_that_never_settles_counts_as_longer_than_it_is(run):
    simulation, trajectory = run
    goal = mime.Goal("settling_time", STEP, target=30.0)
    late = Figures(simulation, [goal], trajectory.time).values(trajectory)[0]
    assert late > trajectory.time[-1]
    assert np.isnan(evaluate(goal.merit, trajectory).value)


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("no kind 'rms_eror'", {"kind": "rms_eror", "field": STEP}),
        ("reference: field required", {"kind": "rms_error", "field": STEP}),
        ("target: does not go with 'rms'", {"kind": "rms", "field": STEP, "target": 1.0}),
        ("at_least 2 is above", {"kind": "max", "field": STEP, "at_least": 2.0, "at_most": 1.0}),
        ("no node 'moter'", {"kind": "rms", "field": "moter.current"}),
        ("no field 'curent'", {"kind": "rms", "field": "motor.curent"}),
        ("has shape (7,)", {"kind": "final", "field": "motor.rotor_pose_world"}),
        ("after 3 s there is no sample", {"kind": "rms", "field": STEP, "after": 3.0}),
        ("cannot be shown in 'mm'", {"kind": "rms", "field": STEP, "unit": "mm"}),
    ],
)  # fmt: skip
def test_what_is_no_figure_is_refused(run, words, given):
    simulation, trajectory = run
    with pytest.raises(mime.InputError) as refused:
        Figures(simulation, [mime.Goal(**given)], trajectory.time)
    assert words in str(refused.value)


def test_what_must_not_be_exceeded_counts_before_the_first_step(run):
    simulation, _ = run
    inputs = {"motor": {"commanded_velocity": 10.0}}
    torque = simulation.run(0.05, inputs, record=["motor.motor_torque"], progress=False)
    figures = Figures(simulation, [mime.Goal(LARGEST, "motor.motor_torque")], torque.time)
    start = at_start(simulation, simulation.init_state(), inputs)
    # kp times the whole error, before anything moves; the first sample is one step later.
    assert float(figures.values(torque, start)[0]) == pytest.approx(0.01 * 10.0, rel=1e-12)
    assert float(figures.values(torque)[0]) < 0.0995
