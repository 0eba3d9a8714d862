"""Files of every format give the same numbers; what is wrong in one is told with its place."""

import json

import numpy as np
import pytest
import xarray

import mime
from damage import damaged, seeds
from fitting.motors import COLUMNS, bench, motor_log
from mime.fitting.experiment import experiment
from mime.fitting.log import Log
from mime.fitting.tables import read_table

SIMULATION = bench()
TABLE = motor_log(rows=40)
NAMES = list(TABLE)
ROWS = [dict(zip(NAMES, map(float, row), strict=True)) for row in zip(*TABLE.values(), strict=True)]
MATRIX = np.column_stack(list(TABLE.values()))
STRUCTURED = np.array(list(map(tuple, MATRIX)), [(name, float) for name in NAMES])
LISTS = {name: values.tolist() for name, values in TABLE.items()}


def dumped(value):
    return lambda file: file.write_text(json.dumps(value), encoding="utf-8")


def saved(**arrays):
    return lambda file: np.savez(file, **arrays)


def text(mark, heading):
    return lambda file: np.savetxt(file, MATRIX, "%.17g", mark, header=heading)


FORMATS = {
    "rows.json": (dumped({"kp": 400, "entries": ROWS}), {"rows": "entries"}),
    "deep.json": (dumped({"run": {"samples": ROWS}}), {"rows": "run.samples"}),
    "plain.json": (dumped(ROWS), {}),
    "lists.json": (dumped({"rows": MATRIX.tolist()}), {"rows": "rows", "names": NAMES}),
    "columns.json": (dumped({"kp": 400, **LISTS}), {}),
    "columns_inside.json": (dumped({"head": {"kp": 1}, "data": LISTS}), {"rows": "data"}),
    "log.jsonl": (lambda f: f.write_text("\n".join(map(json.dumps, ROWS)), "utf-8"), {}),
    "columns.npz": (saved(kp=400, **TABLE), {}),
    "matrix.npz": (saved(data=MATRIX), {"names": NAMES}),
    "one_of.npz": (saved(data=MATRIX, kp=400), {"rows": "data", "names": NAMES}),
    "structured.npy": (lambda file: np.save(file, STRUCTURED), {}),
    "matrix.npy": (lambda file: np.save(file, MATRIX), {"names": NAMES}),
    "spaces.txt": (text(" ", " ".join(NAMES)), {}),
    "commented.csv": (text(",", ",".join(NAMES)), {}),
    "tabs.dat": (text("\t", ""), {"names": NAMES}),
    "one_number_a_line.txt": (
        lambda file: np.savetxt(file, MATRIX.ravel(), "%.17g"),
        {"names": NAMES},
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_the_same_numbers(tmp_path, name):
    write, options = FORMATS[name]
    write(tmp_path / name)
    table = read_table(tmp_path / name, name, **options)
    for column, values in TABLE.items():
        np.testing.assert_array_equal(table.numbers(column), values)  # 17 digits are a double
    read = experiment(SIMULATION, Log(tmp_path / name, **options), COLUMNS)
    assert [len(sensor.measured) for sensor in read.sensors] == [33, 33]


def test_a_data_frame_and_an_array_are_logs(tmp_path):
    pandas = pytest.importorskip("pandas")
    for source in (pandas.DataFrame(TABLE), STRUCTURED):
        read = experiment(SIMULATION, Log(source), COLUMNS)
        np.testing.assert_array_equal(read.sensors[0].measured, TABLE["speed"][4:-3])


def test_parquet_is_read_or_its_absence_is_told_with_the_command(tmp_path):
    pandas = pytest.importorskip("pandas")
    file = tmp_path / "log.parquet"
    try:
        pandas.DataFrame(TABLE).to_parquet(file)
    except ImportError:
        file.write_bytes(b"PAR1")
        with pytest.raises(mime.LogError, match=r"pip install pyarrow$"):
            read_table(file, "log")
    else:
        np.testing.assert_array_equal(read_table(file, "log").numbers("speed"), TABLE["speed"])


def test_files_side_by_side_are_one_table(tmp_path):
    np.savetxt(tmp_path / "q.csv", MATRIX[:, :2], "%.17g", ",", header="a,b", comments="")
    np.savetxt(tmp_path / "tau.csv", MATRIX[:, 2:], "%.17g", ",", header="a,c", comments="")
    source = {"q": tmp_path / "q.csv", "tau": tmp_path / "tau.csv"}
    table = read_table(source, "log")
    for name, column in {"q.a": 0, "q.b": 1, "b": 1, "tau.a": 2, "c": 3}.items():
        np.testing.assert_array_equal(table.numbers(name), MATRIX[:, column])
    with pytest.raises(mime.LogError, match=r"q.csv \+ .*tau.csv: has no column 'a'"):
        table.numbers("a")
    (tmp_path / "tau.csv").write_text("a,c\n1,2\n3,x\n", encoding="utf-8")
    with pytest.raises(mime.LogError, match=r"tau.csv:3: column 'c' must be a number, got 'x'"):
        read_table(source, "log").numbers("c")
    columns = {"b": "motor.commanded_voltage", "c": "motor.current"}
    (tmp_path / "tau.csv").write_text("a,c\n1,2\n3,4\n", encoding="utf-8")
    with pytest.raises(mime.LogError, match=r"'c' has 2 rows, and 'b' has 40"):
        experiment(SIMULATION, Log(source, rate_hz=100.0), columns)


def test_a_number_inside_a_row_is_a_column(tmp_path):
    rows = [{"t": k, "state": {"q": [k + 0.5, 2.0 * k]}} for k in range(12)]
    dumped(rows)(tmp_path / "a.json")
    np.savez(tmp_path / "a.npz", q=np.arange(24.0).reshape(12, 2))
    table = read_table(tmp_path / "a.json", "a")
    np.testing.assert_array_equal(table.numbers("state.q[1]"), 2.0 * np.arange(12))
    with pytest.raises(mime.LogError, match=r"a.json:0: column 'state.q\[2\]' is not there"):
        table.numbers("state.q[2]")
    table = read_table(tmp_path / "a.npz", "a")
    np.testing.assert_array_equal(table.numbers("q[1]"), 2.0 * np.arange(12) + 1.0)
    with pytest.raises(mime.LogError, match=r"'q\[2\]' is not there: a row has 2 values"):
        table.numbers("q[2]")
    with pytest.raises(mime.LogError, match=r"'q' has shape \(12, 2\); write one .*q\[0\]"):
        table.numbers("q")


def test_a_null_and_a_key_that_a_row_lacks_say_that_nothing_was_measured(tmp_path):
    dumped([{"a": 1.0, "b": None}, {"a": 2.0}, {"a": True, "b": 3}])(tmp_path / "a.json")
    table = read_table(tmp_path / "a.json", "a")
    np.testing.assert_array_equal(table.numbers("b"), [np.nan, np.nan, 3.0])
    np.testing.assert_array_equal(table.numbers("a"), [1.0, 2.0, 1.0])


WRONG = {
    "no rows": ('{"entries": [{"a": 1}]}', {}, r"no column 'a'.*Then say rows = \"entries\""),
    "rows misspelt": (
        '{"entries": []}',
        {"rows": "entrys"},
        r"nothing at rows = 'entrys' \(did you mean .entries.\?\)",
    ),
    "no rows there": ('{"entries": []}', {"rows": "entries"}, "must have rows or columns"),
    "not json": ('[{"a": 1},\n{"a" 2}]', {}, "a.json:2: is not JSON: Expecting ':'"),
    "cut off": ('[{"a": 1}, {"a"', {}, "a.json:1: is not JSON"),
    "a string": ('[{"a": 1}, {"a": "x"}]', {}, "a.json:1: column 'a' must be a number, got 'x'"),
    "a list": ('[{"a": 1}, {"a": [2]}]', {}, r"a.json:1: column 'a' must be a number, got \[2\]"),
    "too large": (f'[{{"a": 1{"0" * 400}}}]', {}, "a.json:0: column 'a' must be a number, got 1"),
    "digits": (f'[{{"a": 1{"0" * 5000}}}]', {}, "a.json: is not JSON: Exceeds the limit"),
    "no object": ('[{"a": 1}, 2]', {}, "a.json:1: must be an object, as the first row is, got 2"),
    "no names": ("[[1, 2], [3, 4]]", {}, "lists as rows and no names"),
    "few names": ("[[1, 2], [3]]", {"names": ["a", "b"]}, r"a.json:1: must have 2 values.*\[3\]"),
    "names twice": ('[{"a": 1}]', {"names": ["a"]}, "its rows have keys"),
    "deep": ("[" * 100_000, {}, "a.json: is nested too deeply for a log|is not JSON"),
    "a number": ("3", {}, "a.json: must have rows or columns, got 3"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_in_json_is_told_with_its_place(tmp_path, name):
    content, options, expected = WRONG[name]
    (tmp_path / "a.json").write_text(content, encoding="utf-8")
    with pytest.raises(mime.LogError, match=expected):
        read_table(tmp_path / "a.json", "a", **options).numbers("a")


def test_what_is_wrong_in_other_files_is_told(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{}, 1], object))
    np.save(tmp_path / "cube.npy", np.zeros((3, 3, 3)))
    np.save(tmp_path / "matrix.npy", MATRIX)
    (tmp_path / "numbers.csv").write_text("1,2\n3,4\n", encoding="utf-8")
    xarray.Dataset({"a": ("row", np.arange(3.0))}).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    for name, options, expected in (
        ("objects.npy", {}, "save numbers, not Python objects"),
        ("cube.npy", {}, r"has shape \(3, 3, 3\)"),
        ("matrix.npy", {"names": ["a"]}, r"has shape \(40, 4\), expected 1 columns, as names"),
        ("numbers.csv", {}, r"numbers.csv:1: has no heading.*give names"),
        ("numbers.csv", {"rows": "a", "names": ["a", "b"]}, "says where a JSON or a NumPy"),
        ("numbers.csv", {"names": ["a", "b", "c"]}, "numbers.csv:1: has 2 cells, expected 3"),
        ("a.nc", {"names": ["a"]}, "has names of its own for its columns: 'a'$"),
    ):
        with pytest.raises(mime.LogError, match=expected):
            read_table(tmp_path / name, "log", **options).numbers("a")
    with pytest.raises(mime.LogError, match=r"names: no file 'p'"):
        read_table({"q": tmp_path / "numbers.csv"}, "log", names={"p": ["a", "b"]})


@pytest.mark.parametrize("name", ["rows.json", "columns.npz", "structured.npy", "spaces.txt"])
def test_a_damaged_file_is_read_or_refused_in_words(tmp_path, name):
    write, options = FORMATS[name]
    write(tmp_path / name)
    whole, file = (tmp_path / name).read_bytes(), tmp_path / f"damaged{name[name.index('.') :]}"
    for seed in seeds(100):
        file.write_bytes(damaged(whole, seed)[0])
        try:
            experiment(SIMULATION, Log(file, **options), COLUMNS, spikes=True)
        except mime.LogError as error:
            assert str(file) in str(error), seed  # noqa: PT017
