"""The bundled mouse: it explores, returns and races, and everything can be made of its run."""

import pytest

from mime import RunInterrupted, Trajectory
from mime.maze import fastest_route, random_maze
from mime.mouse import EXPLORE, RACE
from mime.reporting.plots import draw_plot
from mime.scenarios import load_scenario
from mime.scenarios.bundled import bundled_scenarios
from sizes import FULL

pytestmark = pytest.mark.slow


def test_the_mouse_finds_the_goal_returns_and_races(tmp_path):
    """One test, since the mouse takes long to compile: figures, drawings, file, resumption."""
    scenario = load_scenario(bundled_scenarios()["mouse_in_maze"])
    # Its limits are the closed forms that the file's comments tell.
    maze = random_maze(1019)
    limits = {merit.name: merit for merit in scenario.tables.figures_of_merit.values()}
    to_goal, race = fastest_route(maze, EXPLORE).time_s, fastest_route(maze, RACE).time_s
    assert limits["time to the goal"].at_least == pytest.approx(to_goal, abs=0.005)
    assert limits["speed run"].at_least == pytest.approx(race, abs=0.0005)

    kept = tmp_path / "kept.npz"

    def stop_in_the_middle(done, total):
        if done > 1000:
            raise KeyboardInterrupt

    with pytest.raises(RunInterrupted) as stopped:
        scenario.run(checkpoint=kept, progress=stop_in_the_middle)
    run = scenario.run(checkpoint=kept, resume=True)
    assert 0 < len(stopped.value.trajectory.time) < len(run.time)
    figures = scenario.figures(run)
    assert all(figure.ok for figure in figures), figures
    if FULL:
        assert run.to_xarray().identical(scenario.run().to_xarray())

    assert [plot.drawing for plot in scenario.tables.plots.values()] == list(scenario.drawings)
    for plot in scenario.tables.plots.values():
        figure = draw_plot(scenario, plot, run, plot.title)
        words = " ".join(axis.get_xlabel() + axis.get_ylabel() for axis in figure.axes)
        assert "[m]" in words or "[s]" in words, words
    run.save(tmp_path / "result.nc")
    assert Trajectory.load(tmp_path / "result.nc").to_xarray().identical(run.to_xarray())
