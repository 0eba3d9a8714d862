"""Logs of any rate and unit are read as they are meant; bad ones are refused by row and column."""

import numpy as np
import pytest
import xarray

import mime
from fitting.motors import COLUMNS, PERIOD, bench, clean_motor, motor_log
from mime.fitting.experiment import experiment
from mime.fitting.log import Log

SIMULATION = bench()


def written(path, table, mark=","):
    rows = zip(*table.values(), strict=True)
    cells = ([v if isinstance(v, str) else "" if v is None else f"{v!r}" for v in r] for r in rows)
    lines = [mark.join(table), *map(mark.join, cells)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def plain(rows=40):
    return {name: [float(v) for v in values] for name, values in motor_log(rows=rows).items()}


def test_row_k_is_the_state_at_its_time_and_its_input_holds_from_then_on():
    """One sample off, the inductance of an ordinary log would be wrong by 105 %."""
    volts = np.random.default_rng(0).normal(size=40)
    read = experiment(SIMULATION, Log({**plain(), "volts": volts}), COLUMNS)
    steps = read.inputs(4)["motor"]["commanded_voltage"]
    assert np.array_equal(steps, np.repeat(volts[:-1], 4))
    speed = read.sensors[0]
    assert speed.positions[0] == 4  # three rows for the delay, and the first is where it starts
    assert speed.measured[0] == plain()["speed"][4]


@pytest.mark.parametrize("kind", ["csv", "semicolons", "nc"])
def test_files_units_and_comments_give_the_same_numbers(tmp_path, kind):
    table = plain()
    own = {
        "t": [1e3 * t for t in table["time"]],
        "U": table["volts"],
        "n": [v * 30 / np.pi for v in table["speed"]],
        "I": [1e3 * v for v in table["current"]],
    }
    path = tmp_path / ("log.nc" if kind == "nc" else "log.csv")
    if kind == "nc":
        xarray.Dataset({k: ("row", v) for k, v in own.items()}).to_netcdf(path, engine="h5netcdf")
    else:
        written(path, own, ";" if kind == "semicolons" else ",")
        path.write_text("# rig 3\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    columns = {
        "U": "motor.commanded_voltage",
        "n": mime.Channel("motor.rotor_angular_velocity", "rpm"),
        "I": mime.Channel("motor.current", "mA"),
    }
    a = experiment(SIMULATION, Log(path, time="t", time_unit="ms"), columns)
    b = experiment(SIMULATION, Log(table), COLUMNS)
    assert a.period_s == pytest.approx(PERIOD, rel=1e-9)
    for one, other in zip(a.sensors, b.sensors, strict=True):
        np.testing.assert_allclose(one.measured, other.measured, rtol=1e-14)
        np.testing.assert_array_equal(one.positions, other.positions)


def test_a_result_of_mime_has_inputs_that_acted_until_its_rows(tmp_path):
    _, volts, _ = clean_motor(40)
    run = SIMULATION.run(
        steps=40,
        inputs={"motor": {"commanded_voltage": volts}},
        record=["motor.commanded_voltage", "motor.current"],
        progress=False,
    )
    run.save(tmp_path / "result.nc")
    columns = {
        "motor.commanded_voltage": "motor.commanded_voltage",
        "motor.current": mime.Channel("motor.current", delay=0),
    }
    read = experiment(SIMULATION, Log(tmp_path / "result.nc"), columns)
    np.testing.assert_allclose(read.inputs(1)["motor"]["commanded_voltage"], volts, rtol=1e-7)
    assert read.sensors[0].positions[0] == 1  # the state after the first step
    np.testing.assert_array_equal(read.sensors[0].measured, run["motor"]["current"])


def test_rows_that_jitter_keep_the_integral_of_the_input_and_lost_rows_hold_it():
    table = plain()
    time = np.array(table["time"])
    time[1:-1] += 3e-4 * np.random.default_rng(1).uniform(-1, 1, len(time) - 2)
    read = experiment(SIMULATION, Log({**table, "time": time}), COLUMNS)
    assert not read.is_uniform
    u = read.inputs(8)["motor"]["commanded_voltage"]
    whole = np.sum(np.array(table["volts"])[:-1] * np.diff(time))
    assert np.sum(u) * read.period_s / 8 == pytest.approx(whole, rel=1e-12)
    lost = {name: values[:10] + values[14:] for name, values in plain().items()}
    read = experiment(SIMULATION, Log(lost), COLUMNS)
    assert read.is_uniform
    assert read.intervals == 39
    assert 12 not in read.sensors[0].positions


def cell(row, column, value):
    def change(table):
        table[column][row] = value

    return change


def scaled(column, factor):
    def change(table):
        table[column] = [factor * v for v in table[column]]

    return change


BAD = {
    "a number that is none": (cell(5, "speed", "x"), r"log.csv:7: column 'speed' must be a number"),
    "a decimal comma": (cell(5, "speed", "0,25"), r"log.csv:7: .*got '0,25'; write a point for"),
    "a time that is none": (cell(5, "time", float("nan")), r"log.csv:7: .*'time' must be.*nan$"),
    "nan": (cell(5, "speed", float("nan")), r"log.csv:7: column 'speed' must be finite.*empty"),
    "an input that is missing": (cell(8, "volts", None), r"log.csv:10: column 'volts' must have"),
    "time repeats": (cell(6, "time", 0.005), r"log.csv:8: column 'time' must increase.*repeats"),
    "time goes back": (cell(6, "time", 0.0), r"log.csv:8: column 'time' .* goes back from 0.005"),
    "a constant": (scaled("current", 0.0), r"log.csv:2: column 'current' is 0 in every row"),
    "a spike": (cell(9, "current", 900.0), r"log.csv:11: column 'current' is 900, and all other"),
    "no column": (lambda table: table.pop("current"), r"log.csv: has no column 'current'"),
    "a gap": (cell(39, "time", 0.1), r"log.csv:41: column 'time' nothing is logged for 0.062 s"),
    "too short": (lambda t: [v.__delitem__(slice(5, None)) for v in t.values()], r"has 5 rows"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_log_is_refused_with_file_row_and_column(tmp_path, name):
    change, expected = BAD[name]
    table = plain()
    change(table)
    path = written(tmp_path / "log.csv", table, ";" if "comma" in name else ",")
    with pytest.raises(mime.LogError, match=expected):
        experiment(SIMULATION, Log(path), COLUMNS)


def test_a_row_of_another_length_and_a_missing_file_are_refused(tmp_path):
    path = written(tmp_path / "log.csv", plain())
    path.write_text(path.read_text(encoding="utf-8") + "\n1,2\n", encoding="utf-8")
    with pytest.raises(mime.LogError, match=r"log.csv:42: has 2 cells, expected 4"):
        experiment(SIMULATION, Log(path), COLUMNS)
    with pytest.raises(mime.LogError, match="no such file"):
        experiment(SIMULATION, Log(tmp_path / "none.csv"), COLUMNS)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"speed": mime.Channel("motor.current", "rpm")}, "cannot be shown in 'rpm'"),
        ({"speed": "motor.curent"}, r"no field 'curent' \(did you mean 'current'\?\)"),
        ({"speed": "moter.current"}, "no node 'moter'"),
        ({"speed": "motor.load_torque"}, "add_external_input"),
        ({"speed": "motor.rotor_pose_world"}, r"write motor.rotor_pose_world\[0\]"),
        ({"volts": "motor.commanded_voltage"}, "no sensor"),
        ({"speed": "motor.current", "current": "motor.current"}, "same field"),
    ],
)
def test_columns_that_lead_nowhere_are_refused(columns, expected):
    with pytest.raises(mime.InputError, match=expected):
        experiment(SIMULATION, Log(plain()), columns)
