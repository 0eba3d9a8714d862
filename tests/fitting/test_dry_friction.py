"""Fits of a motor with Coulomb friction: exact steps, and intervals that have a width."""

import dataclasses

import jax
import numpy as np
import pytest

import mime
from mime import Cogging, Coulomb, Gear, GraphManager, Limits, LoadFriction, MotorNode, Stribeck
from mime.fitting.exact import with_exact_motors
from mime.fitting.experiment import experiment
from mime.fitting.log import Log
from mime.fitting.model import Model
from mime.verification.benchmarks.motor_events import SMALL, with_events

TRUE = {name: value for name, value in SMALL.items() if not name.startswith("velocity")}
TAU_C, PERIOD = 8e-4, 1e-3
UNKNOWNS = {
    **{f"motor.{name}": value for name, value in TRUE.items()},
    "motor.friction.torque_n_m": TAU_C,
}
COLUMNS = {
    "volts": "motor.commanded_voltage",
    "angle": "motor.rotor_angle",
    "current": "motor.current",
}
NOISE = {"angle": 1e-3, "current": 0.03}
LATE_S = 3e-4


def bench(wrong=1.0, timestep=1e-4, **options):
    """The motor, every parameter `wrong` times the truth."""
    values = {name: wrong * value for name, value in TRUE.items()}
    options = {"friction": Coulomb(wrong * TAU_C), **options}
    graph = GraphManager()
    graph.add_node(MotorNode("motor", timestep, **values, command_mode="voltage", **options))
    graph.add_external_input("motor", "commanded_voltage")
    return graph.compile()


def clean_log(levels, late_s):
    """Volts, and angle and current, the latter late, by SciPy from event to event."""
    volts = np.repeat(levels, 50)
    x, angle, current, stops = np.zeros(3), [], [], 0
    for V in volts:
        angle.append(x[0])
        if late_s == 0:
            current.append(x[2])
        for duration in (PERIOD - late_s, late_s) if late_s else (PERIOD,):
            x, changes = with_events(SMALL, TAU_C, "voltage", V, 0.0, x, duration)
            stops += changes
            if late_s and duration != late_s:
                current.append(x[2])
    assert stops > 2
    return volts, np.array(angle), np.array([0.0, *current[:-1]] if late_s else current)


@pytest.fixture(scope="module")
def clean():
    """Eight levels of volts, 50 ms each; the current is 0.3 ms late."""
    return clean_log([4.0, 0.0, -9.0, -1.5, 9.0, 0.0, -4.0, 0.5], LATE_S)


def log_of(clean, seed):
    volts, angle, current = clean
    random = np.random.default_rng(seed)
    return {
        "time": PERIOD * np.arange(len(volts)),
        "volts": volts,
        "angle": angle + NOISE["angle"] * random.normal(size=len(angle)),
        "current": current + NOISE["current"] * random.normal(size=len(angle)),
    }


def fitted(clean, seed, **options):
    simulation = bench(1.03, **options)
    return mime.fit(
        simulation, log_of(clean, seed), COLUMNS, list(UNKNOWNS), starts=1, progress=False
    )


def test_a_fit_steps_exactly_and_says_so(clean):
    found = fitted(clean, 0, timestep=5e-6)
    assert "stepped from one stop or limit of current to the next: motor" in str(found)
    assert found.timestep == pytest.approx(PERIOD / 16)  # not the 5e-6 s of the model
    assert found.step_error < 0.001
    assert "error of the steps" not in str(found)
    coarse = dataclasses.replace(found, step_error=0.4, is_extrapolated=True)
    assert "extrapolated to none; half of that would change 0.4 of the noise" in str(coarse)
    assert "not below 0.03 of the noise" in str(coarse)
    for name, truth in UNKNOWNS.items():
        estimate = found[name]
        assert estimate.low < truth < estimate.high, name  # of this seed: all six
        assert estimate.high - estimate.low > 1e-4 * truth  # no interval has collapsed
    assert found["motor.current delay"].value == pytest.approx(LATE_S, abs=1e-4)


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ({}, ("motor",)),
        (
            {"cogging": Cogging(1e-4, 7.0)},
            ("motor",),
        ),  # held over a step, and halved until it holds
        ({"integrator": "exact"}, ()),
        ({"friction": None}, ()),
        ({"friction": None, "limits": Limits(supply_voltage_v=9.0)}, ()),
        ({"friction": None, "limits": Limits(current_a=1.5)}, ("motor",)),
        ({"friction": Stribeck(1e-3, 2e-3, 1.0)}, ("motor",)),
        ({"friction": LoadFriction(1e-3, 0.1)}, ()),
        ({"gear": Gear(10.0, efficiency=0.8)}, ()),
    ],
    ids=str,
)
def test_motors_are_stepped_from_event_to_event_where_all_else_is_linear(options, changed):
    simulation = bench(**options)
    other, names = with_exact_motors(simulation)
    assert names == changed
    assert other.nodes["motor"].integrator == (
        "exact" if changed else options.get("integrator", "semi_implicit")
    )
    assert simulation.nodes["motor"].integrator == options.get("integrator", "semi_implicit")


def test_a_descent_does_not_end_at_a_delay_of_no_row(clean):
    """Seed 5 has a minimum just below a delay of 0, where it starts; a lower one is beyond 0."""
    found = fitted(clean, 5)
    assert found["motor.current delay"].value == pytest.approx(LATE_S, abs=2e-4)


def test_extrapolated_readings_are_of_second_order(clean):
    volts, _, _ = clean
    table = {"time": PERIOD * np.arange(41), "volts": volts[:41], "speed": np.arange(41.0)}
    columns = {"volts": COLUMNS["volts"], "speed": "motor.rotor_angular_velocity"}

    def readings(fineness, extrapolates=False, **options):
        simulation = bench(friction=None, **options)
        one = experiment(simulation, Log(table), columns)
        model = Model(simulation, (one,), (), fineness, extrapolates=extrapolates)
        return np.asarray(model.readings(np.zeros(0), model.data)["motor.rotor_angular_velocity"])

    with jax.enable_x64(True):
        exact = readings(4, integrator="exact")
        plain, finer = (np.abs(readings(n) - exact).max() for n in (32, 64))
        better, finest = (np.abs(readings(n, True) - exact).max() for n in (32, 64))
    assert 1.8 < plain / finer < 2.2  # first order
    assert 3.2 < better / finest < 4.8  # second order
    assert better < 0.1 * plain
