"""Experiments of one kind are simulated side by side, and read as each by itself."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from fitting.motors import bench
from mime import Channel, Log, Unknown
from mime.fitting.coordinates import coordinates
from mime.fitting.experiment import experiment, with_common_periods
from mime.fitting.groups import groups_of
from mime.fitting.model import Model, in_double

with jax.enable_x64(True):
    SIMULATION = in_double(bench(1.2))
COLUMNS = {
    "volts": "motor.commanded_voltage",
    "speed": Channel("motor.rotor_angular_velocity", gain=True),
    "current": "motor.current",
}
UNKNOWNS = ["motor.r_ohm", "motor.inertia_kg_m2"]


def log(seed, rows, jitter=0.0, **options):
    """Random steps of volts; some rows of the current are missing. What is read is no matter."""
    random = np.random.default_rng(seed)
    time = 1e-3 * (np.arange(rows) + jitter * random.uniform(-1.0, 1.0, rows))
    table = {
        "time": time,
        "volts": np.repeat(random.normal(0.0, 6.0, rows // 10 + 1), 10)[:rows],
        "speed": random.normal(size=rows),
        "current": np.where(random.uniform(size=rows) < 0.1, np.nan, random.normal(size=rows)),
    }
    return Log(table, name=f"{seed}", **options)


LOGS = [
    log(0, 50, set={"motor.r_ohm": 1.0}),
    log(1, 44, set={"motor.r_ohm": 2.0}, initial={"motor.angular_velocity": 30.0}),
    log(2, 120, set={"motor.r_ohm": 3.0}),  # too long to go with the others
    log(3, 48, initial={"motor.angular_velocity": Unknown(5.0), "motor.current": 0.2}),  # sets none
    log(4, 50, jitter=0.2),
    log(5, 47, jitter=0.2),
]


def model_of(read):
    return Model(SIMULATION, tuple(read), coordinates(SIMULATION, UNKNOWNS[1:], read), 4)


@pytest.fixture(scope="module")
def read():
    with jax.enable_x64(True):
        found = [experiment(SIMULATION, log, COLUMNS) for log in LOGS]
        return with_common_periods(SIMULATION, found)


def test_experiments_of_one_kind_and_about_one_length_are_a_group(read):
    assert [g.members for g in groups_of(read)] == [(0, 1), (2,), (3,), (4, 5)]
    assert [g.intervals for g in groups_of(read)][:3] == [49, 119, 47]


def test_a_group_reads_as_each_of_its_experiments_by_itself(read):
    with jax.enable_x64(True):
        whole = model_of(read)
        z = np.array([c.z(c.start) for c in whole.coordinates]) + 0.1
        both = whole.programs.linearised(z, whole.data)
        apart = []
        for number, e in enumerate(read):
            all_ = enumerate(whole.coordinates)
            at = [j for j, c in all_ if c.kind != "initial" or c.key[0] == number]
            own = [whole.coordinates[j] for j in at]
            own = [replace(c, key=(0, *c.key[1:])) if c.kind == "initial" else c for c in own]
            one = Model(SIMULATION, (e,), tuple(own), 4)
            r, J = one.programs.linearised(z[at], one.data)
            apart.append((number, at, r, J))
        normal = whole.normal(np.stack([z, z]), whole.counted(0.5))
    rows = whole.split(both[0])
    slopes = whole.split(both[1])
    for number, at, r, J in apart:
        for k, sensor in enumerate(read[number].sensors):
            # Rounding, of sums over 200 steps: another order of operations in a batch.
            np.testing.assert_allclose(rows[number][k], r[sensor.field], rtol=0, atol=1e-11)
            size = np.max(np.abs(J[sensor.field]))
            np.testing.assert_allclose(
                slopes[number][k][:, at], J[sensor.field], rtol=0, atol=1e-11 * size
            )
            others = np.delete(slopes[number][k], at, axis=1)
            assert not others.any()
    for field, used in whole.counted(0.5).items():
        r, J = np.asarray(both[0][field])[used], np.asarray(both[1][field])[used]
        np.testing.assert_allclose(normal[field][1][1], J.T @ r, rtol=1e-9)
        np.testing.assert_allclose(normal[field][2][0], J.T @ J, rtol=1e-9)


def test_rows_that_jitter_keep_their_times_under_the_period_that_logs_share(read):
    for found, log in zip(read[4:], LOGS[4:], strict=True):
        time = log.source["time"]
        seconds = found.positions * found.period_s
        np.testing.assert_allclose(seconds, time - time[0], rtol=0, atol=1e-15 * len(time))
    assert read[4].period_s == read[5].period_s
