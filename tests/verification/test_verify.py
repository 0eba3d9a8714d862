"""`mime verify`: reports, what a rerun changes, messages and exit codes. With toy benchmarks."""

import dataclasses
import json
import math
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from mime.cli import main
from mime.verification import catalogue, results
from mime.verification.benchmark import (
    REGISTRY,
    Benchmark,
    Convergence,
    Fault,
    Measurement,
    benchmark,
    judge,
    replaced,
    run_benchmark,
    scaled,
)
from mime.verification.catalogue import UnknownBenchmarkError, all_benchmarks, select
from mime.verification.results import read_results, write_verdict


def spring(stiffness=2.0):
    return stiffness


ENDS = {"mass_kg": 3.0, "colour": "red"}


def measure_spring(Spring, *, stiffness_n_per_m=2.0, ends=ENDS):
    """F = k x

    The force of a spring | at one metre.

    Reference: Hooke.
    Procedure:
    1. Pull.
    2. Read.
    Covers: springs
    Excludes: ropes
    """
    error = abs(Spring(stiffness=stiffness_n_per_m) - stiffness_n_per_m)
    yield Measurement("error of the force", error + 1e-3, 0.1, "N", why="a|b")
    yield Measurement("stiffness", Spring(stiffness=stiffness_n_per_m), 1.5, "N/m", at_least=True)
    yield Convergence("step (s)", (0.1, 0.05), "error (m)", {"a": (1e-2, 5e-3)}, 1.0)


def toy(number=900, **changes):
    return dataclasses.replace(
        Benchmark(
            number,
            "A spring's force",
            subject=spring,
            node_id="MIME-NODE-900",
            fault=scaled("stiffness", 3.0),
            measure=measure_spring,
        ),
        **changes,
    )


def failing(Spring):
    """0 = 1"""
    yield Measurement("always too large", 2.0, 1.0)


def breaking(Spring):
    """0 = 1"""
    raise ZeroDivisionError("[/b] nobody saw it coming")


def interrupting(Spring):
    """0 = 1"""
    raise KeyboardInterrupt


@pytest.fixture
def verify(capsys, tmp_path, monkeypatch):
    """`verify(benchmarks, *words)` in an empty folder: exit code, standard output and error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mime.cli.enable_compilation_cache", lambda: None)

    def call(benchmarks, *words):
        monkeypatch.setattr(catalogue, "all_benchmarks", lambda: tuple(benchmarks))
        try:
            main(["verify", *words])
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
        return (code, *capsys.readouterr())

    return call


@pytest.fixture
def reports(tmp_path):
    return tmp_path / "benchmark_reports"


def stamps(folder):
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}


def on_day(monkeypatch, day):
    clock = SimpleNamespace(now=lambda _: datetime(2031, 1, day, tzinfo=UTC))
    monkeypatch.setattr(results, "datetime", clock)


def test_a_pass_writes_page_picture_index_and_json(verify, reports):
    code, out, _ = verify([toy()])
    assert code == 0
    assert "MIME-VER-900" in out
    assert "pass" in out
    assert {path.name for path in reports.iterdir()} == {
        "mime_ver_900_a_spring_s_force.md",
        "mime_ver_900_a_spring_s_force.png",
        "index.md",
        "results.json",
    }
    page = (reports / "mime_ver_900_a_spring_s_force.md").read_text(encoding="utf-8")
    for words in (
        "# MIME-VER-900: A spring's force",
        "PASS: 2 of 2 numbers keep their limits; the deliberate fault is caught",
        "```text\nF = k x\n```",
        "| `stiffness_n_per_m` | 2 |\n| `mass_kg` | 3 |\n| `colour` | red |",
        "## Reference\n\nHooke.\n\n## Procedure\n\n1. Pull.\n2. Read.\n",
        "Covered: springs.\n\nNot covered: ropes.",
        "| error of the force | 0.001 N | ≤ 0.1 N | pass | a\\|b |",
        "| stiffness | 2 N/m | ≥ 1.5 N/m | pass |",
        "`stiffness` times 3: 1 of 2 numbers fail",
        "| error of the force | 4.001 N | ≤ 0.1 N | **fail** |",
        "](mime_ver_900_a_spring_s_force.png)",
        "mime verify 900",
        "| precision | float64 |",
    ):
        assert words in page
    assert (reports / "mime_ver_900_a_spring_s_force.png").read_bytes().startswith(b"\x89PNG")
    index = (reports / "index.md").read_text(encoding="utf-8")
    assert "**1 of 1 pass.**" in index
    assert "| stiffness | 2 N/m | ≥ 1.5 N/m |" in index  # 1.5/2 is closer to 1 than 0.001/0.1
    entry = json.loads((reports / "results.json").read_text(encoding="utf-8"))["MIME-VER-900"]
    assert entry["measurements"][0]["value"] == 1e-3
    assert entry["fault"]["measurements"][0]["value"] == 4.001


def test_a_rerun_with_the_same_numbers_changes_no_file_on_another_day(verify, reports, monkeypatch):
    on_day(monkeypatch, 1)
    verify([toy()])
    before = stamps(reports)
    on_day(monkeypatch, 2)
    verify([toy()])
    assert stamps(reports) == before
    verify([toy(fault=scaled("stiffness", 4.0))])
    assert read_results(reports)["MIME-VER-900"]["date"] == "2031-01-02"


def test_other_entries_stay_when_some_are_run_and_removed_ones_go_when_all_are(verify, reports):
    verify([toy(900), toy(901), toy(902)])
    verify([toy(900), toy(902, measure=failing)], "902")
    assert {id: e["passed"] for id, e in read_results(reports).items()} == {
        "MIME-VER-900": True,
        "MIME-VER-901": True,
        "MIME-VER-902": False,
    }
    assert "**2 of 3 pass.**" in (reports / "index.md").read_text(encoding="utf-8")
    verify([toy(900), toy(902)])
    assert list(read_results(reports)) == ["MIME-VER-900", "MIME-VER-902"]


def test_reports_go_into_no_folder_of_documents_unless_told_so(verify, tmp_path):
    (tmp_path / "docs" / "validation" / "benchmark_reports").mkdir(parents=True)
    _, out, _ = verify([toy()])
    assert "reports: benchmark_reports" in out
    assert not any(path.is_file() for path in (tmp_path / "docs").rglob("*"))


def test_a_slug_names_the_report_and_a_test_of_its_own_is_named_in_it(tmp_path):
    made = toy(slug="spring_force", test="tests/test_spring.py::test_force")
    write_verdict(judge(made), tmp_path)
    page = (tmp_path / "mime_ver_900_spring_force.md").read_text(encoding="utf-8")
    assert "| tested by | `tests/test_spring.py::test_force` |" in page
    assert "| type | analytic, Mode 2 (independent) |" in page


def test_a_new_title_takes_the_old_report_away(tmp_path):
    write_verdict(judge(toy()), tmp_path)
    write_verdict(judge(toy(9001)), tmp_path)
    write_verdict(judge(toy(title="Hooke")), tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*.md")) == [
        "index.md",
        "mime_ver_9001_a_spring_s_force.md",
        "mime_ver_900_hooke.md",
    ]


def test_a_nan_fails_and_is_a_word_in_the_json(tmp_path):
    def nan(Spring):
        """x = 0/0"""
        yield Measurement("fine", 0.5, 1.0)
        yield Measurement("not a number", math.nan, 1.0)

    entry = write_verdict(judge(toy(measure=nan)), tmp_path)
    assert not entry["passed"]
    assert entry["measurements"][1]["value"] == "nan"
    assert "| not a number | nan | ≤ 1 |" in (tmp_path / "index.md").read_text(encoding="utf-8")


def test_a_failure_and_a_fault_that_is_not_caught_end_with_1(verify):
    blind = toy(901, fault=replaced("nothing at all"))
    code, out, err = verify([toy(900), blind, toy(902, measure=failing)])
    assert code == 1
    assert "FAULT NOT CAUGHT" in out
    assert "FAIL" in out
    assert err == "failed: MIME-VER-901, MIME-VER-902\n"


def test_one_that_breaks_is_told_and_the_others_are_run(verify, reports):
    code, out, err = verify([toy(900, measure=breaking), toy(901)])
    assert code == 1
    assert "broke: ZeroDivisionError: [/b] nobody saw it coming" in " ".join(out.split())
    assert err == "failed: MIME-VER-900\n"
    assert list(read_results(reports)) == ["MIME-VER-901"]
    with pytest.raises(ZeroDivisionError):
        verify([toy(900, measure=breaking)], "--debug")


def test_a_missing_package_leaves_the_report_alone(verify, reports):
    verify([toy(900), toy(901)])
    before = stamps(reports)
    lacking = [toy(900), toy(901, needs=("json", "no_such_package"), measure=failing)]
    code, out, _ = verify(lacking)
    assert code == 0
    assert "not run: needs no_such_package" in out
    code, _, err = verify(lacking, "901")
    assert code == 2
    assert err == "MIME-VER-901 was not run: needs no_such_package\n"
    assert stamps(reports) == before


def test_ctrl_c_keeps_what_is_finished(verify, reports):
    code, out, err = verify([toy(900), toy(901, measure=interrupting), toy(902)])
    assert code == 130
    assert "MIME-VER-900" in out
    assert "stopped: 1 of 3 benchmarks are done, with reports in" in err
    assert list(read_results(reports)) == ["MIME-VER-900"]


def test_a_folder_of_ones_own(verify, tmp_path):
    assert verify([toy()], "--out", "elsewhere")[0] == 0
    assert (tmp_path / "elsewhere" / "index.md").exists()
    (tmp_path / "file").write_text("")
    code, _, err = verify([toy()], "--out", "file")
    assert code == 2
    assert err.startswith("cannot write to file: ")


@pytest.mark.parametrize("text", ["{", "[]", '{"MIME-VER-900": {}}', '{"MIME-VER-900": 1}'])
def test_a_file_that_holds_no_results_is_not_overwritten(verify, reports, text):
    reports.mkdir(parents=True)
    (reports / "results.json").write_text(text)
    code, _, err = verify([toy()])
    assert code == 2
    assert "results.json is no file of results" in err
    assert (reports / "results.json").read_text() == text


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (["900"], [900]),
        (["mime-ver-902", "VER-900", "900"], [900, 902]),
        (["900-902"], [900, 902]),
        (["MIME-VER-901-MIME-VER-910"], [902, 910]),
    ],
)
def test_benchmarks_are_named_by_number_id_or_range(words, numbers, monkeypatch):
    known = tuple(toy(number) for number in (900, 902, 910))
    monkeypatch.setattr(catalogue, "all_benchmarks", lambda: known)
    assert [benchmark.number for benchmark in select(words)] == numbers


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("901", "no benchmark MIME-VER-901; the nearest: MIME-VER-900 and MIME-VER-902"),
        ("1", "the nearest: MIME-VER-900. `mime list benchmarks` shows all"),
        ("903-909", "no benchmark from 903 to 909; the nearest: MIME-VER-902 and MIME-VER-910"),
        ("910-900", "the range 910-900 is empty: its first number is the larger, try 900-910"),
        ("motor", r"'motor' is no benchmark: expected a number \(100\)"),
    ],
)
def test_an_unknown_benchmark_is_refused_with_the_nearest(word, message, monkeypatch):
    known = tuple(toy(number) for number in (900, 902, 910))
    monkeypatch.setattr(catalogue, "all_benchmarks", lambda: known)
    with pytest.raises(UnknownBenchmarkError, match=message):
        select([word])


def test_the_command_tells_an_unknown_benchmark_with_2(verify):
    code, _, err = verify([toy()], "123")
    assert code == 2
    assert "there is no benchmark MIME-VER-123" in err


def test_list_shows_the_benchmarks(capsys, monkeypatch):
    monkeypatch.setattr("mime.cli.enable_compilation_cache", lambda: None)
    main(["list", "benchmarks"])
    assert "MIME-VER-100  MotorNode Step Response (Torque Mode, No Load)" in capsys.readouterr().out


def test_a_package_plugs_its_benchmarks_in_and_a_broken_one_is_warned_of(monkeypatch):
    def load_one():
        REGISTRY[900] = toy()

    def load_none():
        raise ImportError("no module named 'ropes'")

    entries = [
        SimpleNamespace(value="springs.verification", load=load_one),
        SimpleNamespace(value="ropes.verification", load=load_none),
    ]
    monkeypatch.setattr(catalogue, "entry_points", lambda group: entries)
    registry = dict(all_benchmarks() and REGISTRY)
    monkeypatch.setattr(catalogue, "REGISTRY", registry)
    monkeypatch.setitem(globals(), "REGISTRY", registry)
    with pytest.warns(UserWarning, match="of 'ropes.verification' do not load: ImportError"):
        found = all_benchmarks.__wrapped__()
    assert found[-1].number == 900


def test_a_number_is_given_once_and_a_benchmark_measures_something(monkeypatch):
    number = all_benchmarks()[0].number
    with pytest.raises(ValueError, match=f"MIME-VER-{number} is already"):
        benchmark(number, "Another", spring, scaled("stiffness", 2.0))(measure_spring)
    with pytest.raises(ValueError, match="MIME-VER-9 'Dumb': its docstring lacks 'Reference'"):
        benchmark(9, "Dumb", spring, scaled("stiffness", 2.0), node_id="MIME-NODE-900")(failing)
    with pytest.raises(ValueError, match="MIME-VER-900 measured nothing"):
        run_benchmark(toy(measure=lambda Spring: iter(())))


def test_a_fault_may_be_the_mistake_itself_with_its_words_as_docstring():
    class Rope(dict):
        """a rope"""

    def softened(Spring):
        """a soft spring"""
        return lambda stiffness: Spring(stiffness / 2)

    assert Fault.of(Rope).description == "a rope"
    assert Fault.of(Rope).apply(dict) is Rope
    assert Fault.of(softened).description == "a soft spring"
    assert Fault.of(softened).apply(spring)(2.0) == 1.0
    assert Fault.of(scaled("stiffness", 2.0)).description == "`stiffness` times 2"


def test_a_fault_changes_only_what_it_names():
    assert scaled("stiffness", 3.0).apply(dict)(stiffness=2.0, mass=1.0) == {
        "stiffness": 6.0,
        "mass": 1.0,
    }
    assert scaled("stiffness", 3.0).apply(dict)(mass=1.0) == {"mass": 1.0}
    assert replaced("heavier", mass=9.0).apply(dict)(mass=1.0) == {"mass": 9.0}
    assert Fault("none", lambda subject: subject).apply(spring) is spring
