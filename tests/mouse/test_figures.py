"""Pictures show what was recorded, with units on every axis. The runs are made by hand here."""

import dataclasses

import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import pytest

from mime import Trajectory
from mime.core.step import SimulationState
from mime.maze import full_belief, random_maze, unknown_belief
from mime.mouse import figures
from mime.mouse.navigator import DONE, RACE, RETURN, SEARCH

mpl.use("Agg")
MAZE = random_maze(0, 4, 4)
STEPS = 40
"""Samples of each phase, 0.1 s apart."""


@pytest.fixture(autouse=True)
def _close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture
def new_axes():
    import matplotlib.pyplot as plt

    return lambda count: plt.subplots(count, 1, squeeze=False)[1][:, 0]


def made_run(phases=(SEARCH, RETURN, RACE, DONE), **more):
    """To the right at a speed of 1, 2, 3 ... m/s in the phases, 0 when done."""
    num = STEPS * len(phases)
    phase = np.repeat(phases, STEPS)
    time = 0.1 * np.arange(1, num + 1)
    ramp = np.linspace(0.0, 0.7, num)
    fields = {
        "body": {
            "pose_world": np.column_stack([ramp, np.full(num, 0.09), np.zeros(num)]),
            "body_velocity": np.where(phase == DONE, 0.0, phase + 1.0),
            "left_wheel_velocity": 10.0 * ramp,
            "right_wheel_velocity": 20.0 * ramp,
        },
        "brain": {
            "left_voltage": 1.0 + ramp,
            "right_voltage": 2.0 + ramp,
            "phase": phase,
            "race_time": np.where(phase == DONE, 3.25, 0.0),
        },
        "ranges": {"reading": 0.02 * np.arange(1, 8) + 0.0 * ramp[:, None]},
    }
    return Trajectory(time, fields, {}, {}, {}, **more)


def state_with(belief, headings=()):
    route = np.zeros(16, np.int8)
    route[: len(headings)] = headings
    brain = {**belief._asdict(), "route": jnp.asarray(route), "moves": jnp.int32(len(headings))}
    return SimulationState(jnp.int32(0), {"brain": brain}, {}, {})


def collection(axes, label):
    return next(c for c in axes.collections if c.get_label() == label)


def test_path_has_a_panel_a_phase_with_the_speed_as_colour():
    run = made_run()
    axes = figures.draw_path(run, MAZE)
    assert [a.get_title().partition(":")[0] for a in axes] == ["search", "return", "speed run"]
    for axis, phase in zip(axes, (SEARCH, RETURN, RACE), strict=True):
        path = collection(axis, "path")
        segments = np.array(path.get_segments())
        assert segments.shape == (STEPS - 1, 2, 2)
        within = run["brain"]["phase"] == phase
        np.testing.assert_array_equal(segments[:, 0], run["body"]["pose_world"][within, :2][:-1])
        np.testing.assert_array_equal(path.get_array(), np.full(STEPS - 1, phase + 1.0))
        assert path.get_clim() == (0.0, 3.0)
        assert (axis.get_xlabel(), axis.get_ylabel()) == ("x [m]", "y [m]")
        assert {"start", "goal", "walls"} <= {c.get_label() for c in axis.collections}
    bars = [a for a in axes[0].figure.axes if a not in axes]
    assert [bar.get_xlabel() for bar in bars] == ["speed [m/s]"]


def test_the_speed_run_is_drawn_thicker_and_timed_by_its_own_clock():
    axes = figures.draw_path(made_run(), MAZE)
    widths = [collection(axis, "path").get_linewidth()[0] for axis in axes]
    assert widths[0] == widths[1] < widths[2]
    assert axes[2].get_title().endswith("in 3.2 s")
    assert axes[0].get_title().endswith("in 3.9 s")


def test_a_phase_that_was_not_reached_is_an_empty_panel(new_axes):
    given = new_axes(1)
    (axis,) = figures.draw_path(made_run([SEARCH]), MAZE, given, phases=[RACE])
    assert axis is given[0]
    assert axis.get_title() == "speed run: none"
    assert not collection(axis, "path").get_segments()


def test_wheels_have_volts_and_speeds_of_both_sides_with_units(new_axes):
    run = made_run()
    volts, speeds = figures.draw_wheels(run, new_axes(2), span=(1.0, 2.0))
    assert (volts.get_ylabel(), speeds.get_ylabel()) == ("motor voltage [V]", "wheel speed [rad/s]")
    assert speeds.get_xlabel() == "time [s]"
    assert [line.get_label() for line in volts.lines] == ["left", "right"]
    within = slice(9, 20)
    for line, side in zip(speeds.lines, ("left", "right"), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), run.time[within])
        np.testing.assert_array_equal(
            line.get_ydata(), run["body"][f"{side}_wheel_velocity"][within]
        )
    assert volts.get_xlim() == (1.0, 2.0)


def test_without_axes_the_whole_run_and_its_speed_run_are_drawn():
    axes = figures.draw_wheels(made_run())
    assert axes.shape == (2, 2)
    assert axes[0, 0].get_xlim() == pytest.approx((0.0, 13.0))  # the last move, and 1 s
    assert axes[0, 1].get_xlim() == pytest.approx((8.1, 12.0))
    assert [t.get_text() for t in axes[0, 0].texts] == ["search", "return", "speed run"]
    assert figures.draw_wheels(made_run([SEARCH])).shape == (2, 1)


def test_readings_are_drawn_in_mm_left_and_right_together(new_axes):
    axes = figures.draw_readings(made_run(), new_axes(4))
    assert [a.get_ylabel() for a in axes] == [
        "front [mm]",
        "front sides [mm]",
        "look-ahead [mm]",
        "back sides [mm]",
    ]
    assert axes[-1].get_xlabel() == "time [s]"
    heights = [[line.get_ydata()[0] for line in axis.lines] for axis in axes]
    expected = [[20.0], [40.0, 60.0], [80.0, 100.0], [120.0, 140.0]]
    for row, wanted in zip(heights, expected, strict=True):
        assert row == pytest.approx(wanted)


def test_belief_shows_known_walls_the_route_and_counts(new_axes):
    headings = [3, 3, 0]
    run = made_run(final_state=state_with(full_belief(MAZE), headings))
    axes = figures.draw_belief(run, MAZE, new_axes(1)[0])
    assert "24 of 24 inner edges known, 0 wrong" in axes.get_title()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x [m]", "y [m]")
    route = next(line for line in axes.lines if line.get_label() == "route")
    assert len(route.get_xdata()) == 1 + len(headings)
    assert not [line for line in axes.lines if line.get_label() == "wrong"]


def test_belief_marks_what_is_unknown_and_what_is_wrong():
    nothing = figures.draw_belief(made_run(final_state=state_with(unknown_belief(4, 4))), MAZE)
    assert "0 of 24 inner edges known, 0 wrong" in nothing.get_title()
    assert len(collection(nothing, "unknown").get_segments()) == 24
    belief = full_belief(MAZE)
    flipped = belief._replace(vertical=belief.vertical.at[1, 2].set(3 - belief.vertical[1, 2]))
    axes = figures.draw_belief(made_run(final_state=state_with(flipped)), MAZE)
    assert "1 wrong" in axes.get_title()
    (cross,) = (line for line in axes.lines if line.get_label() == "wrong")
    assert cross.get_xydata() == pytest.approx(np.array([[2 * 0.18, 1.5 * 0.18]]))


def test_a_recorded_belief_will_do_and_none_is_refused():
    run = made_run()
    with pytest.raises(ValueError, match="this run holds no belief"):
        figures.final_belief(run)
    belief = full_belief(MAZE)
    recorded = {name: np.asarray(edges)[None] for name, edges in belief._asdict().items()}
    fields = {**run.fields, "brain": {**run.fields["brain"], **recorded}}
    found = figures.final_belief(dataclasses.replace(run, fields=fields))
    np.testing.assert_array_equal(found.horizontal, belief.horizontal)
    np.testing.assert_array_equal(found.vertical, belief.vertical)


def test_refusals(new_axes):
    run = made_run()
    with pytest.raises(ValueError, match=r"draw_wheels needs 2 axes.*got 3"):
        figures.draw_wheels(run, new_axes(3))
    three = {**run.fields, "ranges": {"reading": np.zeros((len(run.time), 3))}}
    with pytest.raises(ValueError, match="has 3 sensors, expected the 7"):
        figures.draw_readings(dataclasses.replace(run, fields=three))


def test_the_fields_to_record_are_those_of_the_mouse():
    from mime.mouse import build_mouse

    simulation = build_mouse(MAZE).compile()
    assert dict(simulation.select(figures.RECORD)).keys() == {"body", "brain", "ranges"}
