"""The harness by toy cases; nothing here depends on how long anything takes."""

import ast
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from harness import Case, Figure, Peer, Place, page, relative_difference, results, table
from harness.measure import best_of, measure, reason

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


class Counted:
    """Work that knows how often it was done."""

    def __init__(self, result):
        self.result, self.calls = result, 0

    def __call__(self):
        self.calls += 1
        return np.array(self.result)


def case(ours, *peers, **options):
    return Case("toy", lambda: ours, peers, units=10, unit="step", repeats=3, **options)


def peer(work, name="other", tolerance=1e-6, **options):
    return Peer(name, lambda: work, tolerance, **options)


def test_results_that_agree_are_timed_in_turns(monkeypatch):
    monkeypatch.setattr("harness.measure._TURN_SECONDS", 0.0)
    ours, theirs = Counted([1.0, 2.0]), Counted([1.0, 2.0 + 1e-9])
    entry = measure(case(ours, peer(theirs, target=1e9)))
    # Once to compare, once to see how long it takes, three times by the clock.
    assert (ours.calls, theirs.calls) == (5, 5)
    their = entry["theirs"]["other"]
    assert their["ratio"] > 0
    assert their["met"] is True
    assert their["difference"] == pytest.approx(5e-10)


def test_work_that_is_short_is_called_until_its_turn_is_over(monkeypatch):
    clock, calls = [0.0], []
    monkeypatch.setattr("harness.measure.time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def work(name, seconds):
        calls.append(name)
        clock[0] += seconds

    best = best_of(2, [lambda: work("short", 2**-10), lambda: work("long", 2**-5)])
    turn = ["short"] * 11 + ["long"]  # the first to last 10 ms
    assert calls == ["short", "long", *turn, *turn]
    assert best == [2**-10, 2**-5]  # seconds of a call, not of a turn


@pytest.mark.parametrize("wrong", [[1.0, 2.1], [1.0, np.nan]])
def test_results_that_differ_are_refused_before_timing(wrong):
    theirs = Counted(wrong)
    entry = measure(case(Counted([1.0, 2.0]), peer(theirs), peer(Counted([1.0, 2.0]), "good")))
    assert theirs.calls == 1
    assert "ratio" not in entry["theirs"]["other"]
    assert "not timed" in entry["theirs"]["other"]["refused"]
    assert "ratio" in entry["theirs"]["good"]
    json.dumps(entry, allow_nan=False)


def test_results_of_different_shapes_cannot_agree():
    entry = measure(case(Counted([1.0]), peer(Counted([1.0, 1.0]))))
    assert "shapes" in entry["theirs"]["other"]["missing"]


def test_a_missing_peer_is_told_without_paths():
    def build():
        raise ImportError("cannot import name 'x' from 'y' (/somewhere/of/mine/y.py)")

    entry = measure(case(Counted(1.0), Peer("absent", build, 1e-6, target=0.5)))
    told = entry["theirs"]["absent"]["missing"]
    assert told.startswith("ImportError: cannot import name 'x'")
    assert "/" not in told
    assert "absent" in " ".join(str(row) for row in table.rows({"toy": entry}))
    assert list(table.missed({"toy": entry})) == []


def test_a_reason_is_one_short_line():
    assert "\n" not in reason(ValueError("a\nb" * 300))
    assert len(reason(ValueError("a\nb" * 300))) <= 200


@pytest.mark.parametrize(("at_least", "met"), [(False, False), (True, True)])
def test_a_figure_is_held_to_its_target_from_either_side(at_least, met):
    entry = measure(Figure("f", lambda: 2.0, "s", target=1.0, at_least=at_least))
    assert entry["met"] is met
    assert len(list(table.missed({"f": entry}))) == (not met)


def test_a_figure_that_cannot_be_measured_says_why():
    entry = measure(Figure("f", lambda: 1 / 0, "s"))
    assert "ZeroDivisionError" in entry["missing"]
    assert "ZeroDivisionError" in next(table.rows({"f": entry})).ours


def test_difference_is_relative_to_the_largest_value():
    assert relative_difference([0.0, 10.0], [1.0, 10.0]) == 0.1
    assert relative_difference([0.0], [0.0]) == 0.0


def entries(ratio, target=None):
    met = None if target is None else ratio <= target
    their = {"ratio": ratio, "us": 1.0, "target": target, "met": met}
    return {"toy": {"us": ratio, "unit": "step", "first_call_s": 1.0, "theirs": {"other": their}}}


def test_a_regression_names_its_case_and_noise_is_none():
    assert list(results.regressions(entries(1.4), entries(1.0), 1.5)) == []
    ((name, sentence),) = results.regressions(entries(1.6), entries(1.0), 1.5)
    assert name == "toy"
    assert "toy: ours / other is 1.6, committed 1: 1.60 times worse" in sentence


def test_what_was_never_recorded_or_not_timed_is_no_regression():
    absent = {"toy": {"us": 1.0, "unit": "s", "theirs": {"other": {"missing": "", "target": None}}}}
    assert list(results.regressions(entries(9.0), {}, 1.5)) == []
    assert list(results.regressions(entries(9.0), absent, 1.5)) == []
    assert list(results.regressions(absent, entries(1.0), 1.5)) == []


def test_results_are_written_whole_or_not_at_all(tmp_path):
    results.save("toy", {"entries": entries(1 / 3)}, tmp_path)
    before = (tmp_path / "toy.json").read_text()
    assert results.load("toy", tmp_path)["entries"]["toy"]["us"] == 0.3333
    with pytest.raises(ValueError, match="JSON"):
        results.save("toy", {"entries": entries(float("nan"))}, tmp_path)
    assert (tmp_path / "toy.json").read_text() == before
    assert [file.name for file in tmp_path.iterdir()] == ["toy.json"]
    assert results.load("other", tmp_path) is None


def test_a_note_is_for_its_case_and_without_one_nothing_is_analysed(tmp_path):
    notes = tmp_path / "notes.toml"
    notes.write_text('[[note]]\ntopic = "arm"\ncase = "one"\ntext = "memory bound"')
    assert page.note("arm", "one", "anyone", notes) == "memory bound"
    assert page.note("arm", "one of many", "anyone", notes) == "memory bound"
    assert page.note("arm", "two", "anyone", notes) == "Not analysed."
    assert page.note("arm", "one", "anyone", tmp_path / "none.toml") == "Not analysed."


def test_the_page_shows_what_is_lost(tmp_path, monkeypatch):
    (tmp_path / "docs" / "images").mkdir(parents=True)
    found = entries(2.0, target=1.0)
    found["toy"]["place"] = vars(Place("size", "panel", 4, "members"))
    machine = {"threads": 2, "cores": 2, "load": 0.1, "processor": "P", "system": "S"}
    machine |= {"python": "3", "versions": {"jax": "1"}}
    stored = {"machine": machine, "entries": found}
    monkeypatch.setattr(results, "load", lambda topic: stored if topic == "a" else None)
    text = page.write({"a": ("Title", "About."), "b": ("Other", "")}, 1.5, tmp_path).read_text()
    assert "| toy | 2 µs per step | other | 1 µs | 2 | ≤ 1 | **no** |" in text
    assert "### Title\n\n| work |" in text
    assert "| toy | other | 2 | ≤ 1 |\n\nNot analysed.\n" in text
    assert "Not measured yet." in text
    assert (tmp_path / "docs/images/bench_a_size.png").exists()


def topics():
    assigned = (
        node
        for node in ast.parse((BENCHMARKS / "run.py").read_text()).body
        if isinstance(node, ast.Assign)
    )
    return next(ast.literal_eval(n.value) for n in assigned if n.targets[0].id == "TOPICS")


def test_recorded_results_belong_to_a_topic_and_name_no_place_of_a_machine():
    for file in (BENCHMARKS / "results").glob("*.json"):
        assert file.stem in topics()
        text = file.read_text()
        assert not any(word in text for word in ("/home", "/root", "/tmp", "/work", "://"))


@pytest.mark.parametrize("topic", topics())
def test_every_topic_has_a_title_and_a_text(topic):
    docstring = ast.get_docstring(ast.parse((BENCHMARKS / f"{topic}.py").read_text()))
    title, _, text = docstring.partition("\n\n")
    assert "\n" not in title
    assert text.strip()
