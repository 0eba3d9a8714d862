"""Logs of any rate and unit are read as they are meant; bad ones are refused by row and column."""

import dataclasses

import jax
import numpy as np
import pytest
import xarray

import mime
from fitting.motors import COLUMNS, PERIOD, TRUE, UNKNOWNS, bench, clean_motor, motor_log
from mime.fitting.coordinates import coordinates
from mime.fitting.experiment import experiment
from mime.fitting.log import Log
from mime.fitting.model import Model, in_double

SIMULATION = bench()
DOUBLE = in_double(SIMULATION)


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


def test_spans_of_one_log_are_its_rows_apart():
    """Half open: no row is in both, and none is lost."""
    table = {**plain(), "time": [5.0 + PERIOD * k for k in range(40)]}  # counted from the first row
    middle = 20 * PERIOD - 1e-9  # 5 + k PERIOD is rounded
    parts = [(0.0, middle), (middle, 1.0)]
    found = [experiment(SIMULATION, Log(table, span=span), COLUMNS) for span in parts]
    for rows, part in zip((slice(0, 20), slice(20, 40)), found, strict=True):
        cut = Log({name: values[rows] for name, values in table.items()})
        expected = experiment(SIMULATION, cut, COLUMNS)
        for own, same in zip(part.sensors, expected.sensors, strict=True):
            assert np.array_equal(own.measured, same.measured)
            np.testing.assert_allclose(own.positions, same.positions, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ([0.0], r"span must be two times, \(0.0, 1.5\)"),
        ([0.5, 0.2], r"span\[1\] must be a finite number > 0.5 s"),
        ([-1.0, 0.2], r"span\[0\] must be a finite number >= 0 s"),
        ([5.0, 6.0], "has 0 rows between 5 and 6 s; a fit takes 10 or more"),
    ],
)
def test_a_span_that_cannot_be_is_refused(span, expected):
    with pytest.raises(ValueError, match=expected):
        experiment(SIMULATION, Log(plain(), span=span), COLUMNS)


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
    end = time[0] + read.intervals * read.period_s  # the last row's input holds until then
    whole = np.sum(np.array(table["volts"]) * np.diff(np.append(time, end)))
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


def still(rows=301):
    """The motor without volts, its sensors rounded: none of them moves."""
    zeros = [0.0] * rows
    return {**plain(rows), "volts": zeros, "speed": zeros, "current": zeros}


def test_a_sensor_that_moves_in_no_log_is_refused(tmp_path):
    table = plain()
    table["current"] = [0.25] * 40
    path = written(tmp_path / "log.csv", table)
    expected = r"log.csv: column 'current' is 0.25 in every row: a sensor that does not move"
    with pytest.raises(mime.LogError, match=expected):
        mime.fit(SIMULATION, path, COLUMNS, UNKNOWNS, progress=False)
    logs = [Log(table, name="a"), Log(table, name="b"), Log(plain(), name="c", held_out=True)]
    with pytest.raises(mime.LogError, match="in every row, and moves in none of the 2 fitted logs"):
        mime.fit(SIMULATION, logs, COLUMNS, UNKNOWNS, progress=False)


@pytest.mark.parametrize("window", ["auto", 0.1])
def test_a_log_in_which_no_sensor_moves_is_kept_beside_others(window):
    logs = [
        Log(still(), name="still"),
        Log(plain(301), name="moved"),
        Log(still(), name="test", held_out=True),
    ]
    fit = mime.fit(bench(1.0), logs, COLUMNS, UNKNOWNS, window=window, starts=1, progress=False)
    assert fit.is_explained
    for name, symbol in zip(UNKNOWNS, "RLKJb", strict=True):
        assert fit[name].kind == "known"
        assert fit[name].low < TRUE[symbol] < fit[name].high
    for column in ("speed", "current"):
        words = f"column '{column}' does not move in 2 of 3 logs (still, test); it moves in others"
        assert words in str(fit)


def test_a_row_of_another_length_and_a_missing_file_are_refused(tmp_path):
    path = written(tmp_path / "log.csv", plain())
    path.write_text(path.read_text(encoding="utf-8") + "\n1,2\n", encoding="utf-8")
    with pytest.raises(mime.LogError, match=r"log.csv:42: has 2 cells, expected 4"):
        experiment(SIMULATION, Log(path), COLUMNS)
    with pytest.raises(mime.LogError, match="no such file"):
        experiment(SIMULATION, Log(tmp_path / "none.csv"), COLUMNS)


def volts_and(**columns):
    return {"volts": "motor.commanded_voltage", **columns}


def speed_read(column, channel, **options):
    """What a fit compares the speed with, where the log has this column for it."""
    table = {"time": 1e-3 * np.arange(40.0), "volts": np.zeros(40), **column}
    read = experiment(SIMULATION, Log(table, **options), volts_and(x=channel))
    return read.sensors[0].measured


def test_known_gain_and_offset_are_those_of_the_reading():
    """reading = gain y + offset, as where they are unknown; in the column's unit."""
    y = np.linspace(-1.0, 2.0, 40)
    field = "motor.rotor_angular_velocity"
    for reading, channel in (
        (-32.0 * y + 0.5, mime.Channel(field, gain=-32, offset=0.5)),
        (30 / np.pi * 2.0 * y + 7.0, mime.Channel(field, "rpm", gain=2.0, offset=7.0)),
        (2048 / (2 * np.pi) * y + 100.0, mime.Channel(field, counts_per_turn=2048, offset=100)),
    ):
        found = speed_read({"x": reading}, channel)
        np.testing.assert_allclose(found, y[4:-3], atol=4e-16 * 100)  # roundings of the offset


def test_an_input_has_a_known_gain_and_offset_too():
    volts = np.random.default_rng(0).normal(size=40)
    columns = {
        **COLUMNS,
        "volts": mime.Channel("motor.commanded_voltage", "mV", gain=0.1, offset=5),
    }
    read = experiment(SIMULATION, Log({**plain(), "volts": 100.0 * volts + 5.0}), columns)
    np.testing.assert_allclose(read.driven["motor", "commanded_voltage"], volts, atol=1e-15)


def test_what_is_stored_unsigned_is_signed():
    """As the Dynamixel XL330 stores its PWM: 65534 is -2."""
    values = np.arange(-20, 20)
    channel = mime.Channel("motor.rotor_angular_velocity", gain=885, wraps_at_bits=16)
    found = speed_read({"x": values.astype(np.int16).astype(np.uint16)}, channel)
    np.testing.assert_allclose(found, values[4:-3] / 885, rtol=1e-15)


@pytest.mark.parametrize("start", [0.1, 3.0, 6.2, -0.1])
@pytest.mark.parametrize("missing", [False, True])
def test_an_encoder_that_wraps_is_unwrapped_as_numpy_does(start, missing):
    angle = start + np.linspace(0.0, 40.0, 40)
    counts = np.mod(np.floor(angle * 4096 / (2 * np.pi)), 4096)
    table = np.where((np.arange(40) % 7 == 3) & missing, np.nan, counts)
    channel = mime.Channel("motor.rotor_angle", counts_per_turn=4096, wraps_at_bits=12, delay=0)
    found = speed_read({"x": table}, channel)
    expected = np.unwrap(counts, period=4096)
    expected = (expected - (4096 if counts[0] > 2048 else 0)) * 2 * np.pi / 4096
    expected = np.where(np.isnan(table), np.nan, expected)[1:]
    np.testing.assert_allclose(found, expected[np.isfinite(expected)], rtol=1e-15)


def test_a_mix_is_what_its_columns_are_of_the_field():
    """A coupled wrist: m5 = 45 q5, m6 = 32 q5 + 32 q6, both logged in counts of 16 bits."""
    q5, q6 = np.linspace(0.0, 2.0, 40), np.linspace(0.5, -1.0, 40) ** 3
    counts = 4096 / (2 * np.pi) * np.array([45 * q5, 32 * (q5 + q6)])
    m5, m6 = np.mod(np.round(counts), 65536)
    motor = mime.Channel(counts_per_turn=4096, wraps_at_bits=16)
    columns = {
        "m5": motor,
        "m6": motor,
        "q6": mime.Channel("motor.rotor_angle", mix={"m6": 1 / 32, "m5": -1 / 45}),
        "a": mime.Channel("motor.rotor_angular_velocity", "rpm", gain=-2.0),
        "sum": mime.Channel("motor.current", mix={"a": 45.0, "b": 32.0}, offset=1.0),
    }
    table = {"m5": m5, "m6": m6, "a": -2.0 * 30 / np.pi * q5, "b": q6}
    read = experiment(SIMULATION, Log(table, rate_hz=100.0), columns)
    assert read.period_s == 0.01
    angle, _, current = (sensor.measured for sensor in read.sensors)
    count = 2 * np.pi / 4096
    np.testing.assert_allclose(angle, q6[4:-3], atol=0.5 * count * (1 / 32 + 1 / 45))
    expected = (45 * q5 + 32 * q6 - 1.0)[4:-3]
    np.testing.assert_allclose(current, expected, atol=1e-13)  # roundings of sums below 100


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"gain": 0.0}, "gain must be a number other than 0"),
        ({"gain": "2"}, "gain must be a finite number"),
        ({"offset": float("nan")}, "offset must be a finite number"),
        ({"counts_per_turn": 0}, "counts_per_turn must be a finite number > 0"),
        ({"counts_per_turn": 4096, "unit": "rad"}, "unit must be absent beside counts_per_turn"),
        ({"wraps_at_bits": 1}, "wraps_at_bits must be a whole number from 2 to 52"),
        ({"mix": {}}, "mix must be columns with their numbers"),
        ({"mix": {"a": "b"}}, r"mix\['a'\] must be a finite number"),
        ({"mix": {"a": 1.0}, "wraps_at_bits": 16}, "wraps_at_bits belongs to a column"),
    ],
)
def test_a_channel_that_cannot_be_is_refused(options, expected):
    with pytest.raises(mime.InputError, match=expected):
        mime.Channel("motor.rotor_angle", **options)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"x": mime.Channel("motor.current", counts_per_turn=10)}, "of an angle or its rate, and"),
        ({"x": mime.Channel(unit="deg")}, r"columns\['x'\]: has no field, and no mix takes it"),
        (
            {"y": mime.Channel("motor.current", mix={"x": 1.0}), "x": mime.Channel(gain=True)},
            "no field, and so no .gain.",
        ),
        (
            {
                "y": mime.Channel("motor.current", mix={"z": 1.0}),
                "z": mime.Channel("motor.rotor_angle", mix={"x": 1.0}),
            },
            "'z' is a mix itself",
        ),
        ({"volts": mime.Channel("motor.commanded_voltage", gain=True)}, "has no unknown gain"),
        ({"volts": mime.Channel("motor.commanded_voltage", noise=0.1)}, "and no noise"),
        ({"y": mime.Channel("motor.current", mix={"xx": 1.0})}, "no column 'xx'"),
        (
            {"x": mime.Channel("motor.current", wraps_at_bits=4)},
            "log:2: column 'x' must be a whole",
        ),
    ],
)
def test_columns_that_cannot_be_read_so_are_refused(columns, expected):
    table = {"time": 1e-3 * np.arange(40.0), "volts": np.zeros(40), "x": 10.0 * np.arange(40)}
    table["x"][3] += 0.5
    with pytest.raises((mime.InputError, mime.LogError), match=expected):
        experiment(SIMULATION, Log(table), volts_and(**columns))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"motor.r_ohm": "head.kq"}, r"set 'motor.r_ohm': no 'head.kq' \(did you mean .kp.\?\)"),
        ({"motor.r_ohm": "kp"}, "must be a number or 'head.kp', got 'kp'"),
        ({"motor.r_ohm": "head.motor"}, "must be a finite number, got 'xl330'"),
        ({"motor.r_ohms": 1.0}, r"set\['motor.r_ohms'\]: .*did you mean 'r_ohm'"),
        ({"moter.r_ohm": 1.0}, "no node 'moter'"),
        ({"motor.r_ohm": -1.0}, "r_ohm must be >= 0"),
    ],
)
def test_what_a_log_cannot_set_is_refused(given, expected):
    table = {**plain(), "kp": 400, "motor": "xl330"}
    with pytest.raises((mime.InputError, mime.LogError), match=expected):
        experiment(SIMULATION, Log(table, set=given), COLUMNS)


def test_a_log_and_a_model_in_single_precision_are_fitted():
    with jax.enable_x64(False):
        true, start = bench(1.0), bench(1.1)
        volts = np.repeat(np.random.default_rng(0).normal(0.0, 6.0, 30), 10)
        run = true.run(steps=300, inputs={"motor": {"commanded_voltage": volts}}, progress=False)
        speed, current = run["motor"]["rotor_angular_velocity"], run["motor"]["current"]
        assert speed.dtype == np.float32
        log = Log(
            {**plain(300), "volts": volts, "speed": speed, "current": current}, inputs="until"
        )
        fit = mime.fit(start, log, COLUMNS, UNKNOWNS, starts=1, progress=False)
    for name, symbol in zip(UNKNOWNS, "RLKJb", strict=True):
        # 6e-8 a step, against at least a hundredth of the speed that each makes a difference of
        assert fit[name].value == pytest.approx(TRUE[symbol], rel=1e-5)


def test_what_a_log_sets_is_no_unknown():
    log = Log(plain(), set={"motor.r_ohm": 2.0})
    with pytest.raises(mime.InputError, match=r"motor.r_ohm is unknown, and the log 'log' sets it"):
        mime.fit(SIMULATION, log, COLUMNS, ["motor.r_ohm"], progress=False)


def test_logs_that_set_other_numbers_share_their_programs():
    def model(r_ohm):
        read = experiment(SIMULATION, Log(plain(), set={"motor.r_ohm": r_ohm}), COLUMNS)
        found = coordinates(DOUBLE, ["motor.inertia_kg_m2"], [read])
        return Model(DOUBLE, (read,), found, 4)

    with jax.enable_x64(True):
        one, other = model(2.0), model(3.0)
        changed = DOUBLE.with_parameters({"motor.r_ohm": 3.0})
        read = dataclasses.replace(other.experiments[0], settings={})
        same = dataclasses.replace(other, simulation=changed, experiments=(read,))
        assert one.programs is other.programs
        z = np.array([c.z(c.start) for c in one.coordinates])
        a, b, c = (m.programs.residuals(z, m.data)["motor.current"] for m in (one, other, same))
    assert np.max(np.abs(a - b)) > 0.1
    np.testing.assert_allclose(b, c, atol=1e-13)  # a parameter as argument or as constant


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
