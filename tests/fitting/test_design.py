"""The experiment to run next: within its limits, better than a step and a chirp, as foretold."""

import jax
import numpy as np
import pytest

import mime
from fitting.motors import COLUMNS, NOISE, PERIOD, TRUE, UNKNOWNS, bench, motor_matrices, sampled

pytestmark = pytest.mark.slow
VOLTS, SPEED, CURRENT = COLUMNS["volts"], COLUMNS["speed"], COLUMNS["current"]
SENSORS = {SPEED: NOISE[0], CURRENT: NOISE[1]}


@pytest.fixture(scope="module")
def planned():
    return mime.design(
        bench(1.0),
        {VOLTS: 6.0},
        SENSORS,
        UNKNOWNS,
        duration=0.2,
        period=PERIOD,
        limits={CURRENT: 3.0},
        harmonics=6,
        starts=1,
    )


def test_it_tells_more_than_a_step_and_a_chirp_as_long(planned):
    assert planned.outlook.log_det > max(o.log_det for o in planned.others.values()) + 3.0
    for name in UNKNOWNS:
        assert planned.outlook.half[name] < min(o.half[name] for o in planned.others.values())
    assert "chirp" in str(planned)


def test_it_keeps_its_limits_and_the_intervals_are_those_of_a_fit(planned, tmp_path):
    volts = planned.inputs[VOLTS]
    time = planned.time_s
    states = sampled(*motor_matrices(**TRUE), volts, time, time)
    assert np.max(np.abs(volts)) <= 6.0
    assert np.max(np.abs(states[:, 1])) <= 3.0 * (1 + 1e-9)
    late = sampled(*motor_matrices(**TRUE), volts, time, time, 0.5 * PERIOD)  # as it foresees
    readings = late + NOISE * np.random.default_rng(0).normal(size=states.shape)
    log = {"time": time, "volts": volts, "speed": readings[:, 0], "current": readings[:, 1]}
    columns = {
        "volts": VOLTS,
        "speed": mime.Channel(SPEED, noise=NOISE[0]),
        "current": mime.Channel(CURRENT, noise=NOISE[1]),
    }
    fit = mime.fit(bench(1.0), log, columns, UNKNOWNS, starts=1, progress=False)
    for name in UNKNOWNS:  # at the values found, not at the true ones: a few percent
        half = 0.5 * np.log(fit[name].high / fit[name].low)
        assert half == pytest.approx(planned.outlook.half[name], rel=0.1), name
    planned.to_csv(tmp_path / "input.csv")
    table = np.genfromtxt(tmp_path / "input.csv", delimiter=",", skip_header=1)
    np.testing.assert_allclose(table[:, 1], volts, rtol=1e-8, atol=1e-8)


def test_what_no_input_can_tell_is_refused():
    with pytest.raises(mime.InputError, match=r"no input tells motor.r_ohm, motor.l_henry.*apart"):
        mime.design(
            bench(1.0), {VOLTS: 6.0}, {SPEED: 0.5}, UNKNOWNS, duration=0.1, period=PERIOD, starts=1
        )
    with pytest.raises(mime.InputError, match="is no external input"):
        mime.design(bench(1.0), {SPEED: 6.0}, {CURRENT: 0.5}, UNKNOWNS, duration=0.1, period=PERIOD)
    assert jax.config.jax_enable_x64
