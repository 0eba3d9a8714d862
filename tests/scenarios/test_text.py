"""Text from a file is text in the terminal, in pictures and on the page; and no run is lost."""

import numpy as np
import pytest

from mime import Trajectory
from mime.cli import main
from mime.commands import execution
from mime.reporting.html import png_bytes
from mime.reporting.plots import draw_fields
from motor_scenario import motor_scenario

ODD = "[/V] [rpm] :smile: $U_{12$ $$ <b>"
MORE = f"""
[[plots]]
title = "{ODD}"
fields = ["rotor.current"]
[[plots]]
title = "second"
fields = ["rotor.current"]
[[figures_of_merit]]
name = "last {ODD}"
kind = "final"
field = "rotor.current"
after = 0.005
"""


@pytest.fixture
def cli(capsys, tmp_path, monkeypatch):
    """`cli("run", ...)` beside a motor's scenario of odd words: code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mime.cli.enable_compilation_cache", lambda: None)
    text = f'title = "{ODD}"\n' + motor_scenario(more=MORE)
    (tmp_path / "motor.toml").write_text(text, encoding="utf-8")

    def call(*words):
        try:
            main(words)
            code = 0
        except SystemExit as ended:
            code = ended.code
        return code, *capsys.readouterr()

    return call


def test_markup_and_formulas_in_a_file_are_shown_as_they_are_written(cli, tmp_path):
    code, out, err = cli("run", "motor.toml", "--out", "here")
    assert (code, err) == (0, "")
    assert f"{ODD}: 0.01 s in 100 steps" in out
    assert f"last {ODD} (from 0.005 s on)" in out
    page = (tmp_path / "here" / "report.html").read_text(encoding="utf-8")
    assert "[/V] [rpm] :smile: $U_{12$ $$ &lt;b&gt; (from 0.005 s on)" in page


def test_a_picture_that_fails_is_told_and_the_rest_goes_on(cli, tmp_path, monkeypatch):
    draw = execution.draw_plot

    def fail_once(scenario, plot, trajectory, title):
        if title == "second":
            raise MemoryError("cannot allocate 3 GiB")
        return draw(scenario, plot, trajectory, title)

    monkeypatch.setattr(execution, "draw_plot", fail_once)
    code, _, err = cli("run", "motor.toml", "--out", "here")
    words = "picture 'second' could not be drawn: MemoryError: cannot allocate 3 GiB"
    assert (code, err) == (1, f"{words}\n")
    assert Trajectory.load(tmp_path / "here" / "result.nc").time.size == 100
    assert (tmp_path / "here" / "plot_1.png").is_file()
    assert "picture &#x27;second&#x27;" in (tmp_path / "here" / "report.html").read_text()


def test_the_result_is_there_before_anything_is_drawn_or_told(cli, tmp_path, monkeypatch):
    seen = []

    def look(*_):
        seen.append((tmp_path / "here" / "result.nc").is_file())
        raise ValueError("no")

    monkeypatch.setattr(execution, "draw_plot", look)
    monkeypatch.setattr(execution, "draw_graph", look)
    cli("run", "motor.toml", "--out", "here")
    assert seen == [True, True, True]


def test_numbers_near_the_largest_can_be_drawn():
    time = np.arange(3.0)
    values = {"n": {"y": np.array([-1.7e308, 0.0, 1.7e308])}}
    run = Trajectory(time, values, {"n": {"y": "rad"}}, {"n": {"y": "rad"}}, {})
    figure = draw_fields(run, ["n.y"], unit="deg")
    assert png_bytes(figure)
    assert "cut at 1e+300" in figure.axes[0].get_ylabel()


def test_control_characters_in_text_are_refused(cli, tmp_path):
    file = tmp_path / "motor.toml"
    file.write_text(file.read_text().replace('title = "second"', r'title = "\u001b[31m"'))
    code, _, err = cli("run", "motor.toml")
    assert code == 2
    assert "plots[1].title: must be text without control characters" in err


def test_a_run_that_does_not_fit_in_memory_says_what_to_do(cli, monkeypatch):
    def fail(*_, **__):
        raise MemoryError("Unable to allocate 4 GiB")

    monkeypatch.setattr("mime.scenarios.scenario.Scenario.run", fail)
    code, _, err = cli("run", "motor.toml", "--out", "here")
    assert code == 1
    assert "too little memory" in err
    assert "simulation.every" in err
