"""What a plot shows: names of components, differences, units, one field over another, batches."""

import dataclasses

import matplotlib.figure
import numpy as np
import pytest

from mime.core.drawing import Drawing
from mime.core.problem import InputError
from mime.reporting.components import components
from mime.reporting.plots import draw_fields
from mime.running.trajectory import Trajectory
from mime.scenarios.fields import picked_shape, split_field

T = np.linspace(0.0, 1.0, 101)
FIELDS = {
    "p": np.stack([np.cos(T), np.sin(T), T], 1),
    "q": np.stack([np.cos(T), np.sin(T), 2 * T], 1),
    "w": 3 * T,
}
UNITS = {"p": "m", "q": "m", "w": "rad/s"}
RUN = Trajectory(T, {"n": FIELDS}, {"n": UNITS}, {"n": UNITS}, {})


def lines(figure, axis=0):
    return {line.get_label(): line for line in figure.axes[axis].lines}


def test_a_difference_is_named_and_shown_in_its_unit():
    figure = draw_fields(RUN, ["n.q[1:]"], minus=["n.p[1:]"], unit="mm")
    drawn = lines(figure)
    assert list(drawn) == ["n.q y - n.p y", "n.q z - n.p z"]
    np.testing.assert_allclose(drawn["n.q z - n.p z"].get_ydata(), 1e3 * T)
    assert figure.axes[0].get_ylabel() == "[mm]"


def test_paths_are_drawn_each_over_its_own_field_to_one_scale():
    figure = draw_fields(RUN, ["n.p[1]", "n.q[1]"], against=["n.p[0]", "n.q[0]"], unit="mm")
    first, second = lines(figure).values()
    np.testing.assert_allclose(first.get_xdata(), 1e3 * np.cos(T))
    assert (first.get_linestyle(), second.get_linestyle()) == ("-", "--")
    assert figure.axes[0].get_xlabel() == "n.p x / n.q x [mm]"
    assert figure.axes[0].get_aspect() == 1.0


def test_fields_alike_share_colours_and_a_unit_spares_fields_that_do_not_have_it():
    figure = draw_fields(RUN, ["n.p", "n.q", "n.w"], unit="rpm")
    drawn = lines(figure)
    assert drawn["n.p y"].get_color() == drawn["n.q y"].get_color()
    assert drawn["n.q y"].get_linestyle() == "--"
    np.testing.assert_allclose(drawn["n.p z"].get_ydata(), T)
    assert [axis.get_ylabel() for axis in figure.axes] == ["[m]", "w\n[rpm]"]
    np.testing.assert_allclose(next(iter(figure.axes[1].lines)).get_ydata(), 90 / np.pi * T)


def test_components_have_the_names_of_joints_and_units_of_their_own():
    run = seen_run()
    figure = run.plot("arm.joint_angles", "arm.pose", unit="deg")
    assert list(lines(figure)) == ["shoulder", "elbow"]
    np.testing.assert_allclose(lines(figure)["elbow"].get_ydata(), np.rad2deg(2 * T))
    assert [axis.get_title(loc="left") for axis in figure.axes] == [
        "arm.joint_angles",
        "arm.pose",
        "arm.pose",
    ]
    assert list(lines(figure, 1)) == ["x", "y", "z"]
    assert list(lines(figure, 2)) == ["qw", "qx", "qy", "qz"]
    units = ["joint_angles\n[deg]", "pose\n[m]", "pose\n[1]"]
    assert [axis.get_ylabel() for axis in figure.axes] == units


def test_forces_are_apart_from_torques_and_a_heading_from_metres():
    figure = seen_run().plot(["arm.wrench", "arm.place"])
    assert [list(lines(figure, k)) for k in range(2)] == [["x", "y", "z"]] * 2
    assert list(lines(figure, 2)) == ["x", "y"]
    units = [axis.get_ylabel().rpartition("\n")[2] for axis in figure.axes]
    assert units == ["[N]", "[N·m]", "[m]", "[rad]"]
    assert figure.axes[3].get_title(loc="left") == "arm.place heading"


def test_a_map_is_no_curve_unless_it_is_asked_for():
    titles = {axis.get_title(loc="left") for axis in seen_run().plot().axes}
    assert "arm.map" not in titles
    assert len(seen_run().plot("arm.map").axes[0].lines) == 64


def test_members_of_a_batch_have_one_name_and_one_colour_for_each_component():
    one = seen_run()
    angles = np.stack([k * one["arm"]["joint_angles"] for k in range(150)])
    batch = dataclasses.replace(one, fields={"arm": {"joint_angles": angles}}, batch_size=150)
    figure = batch.plot("arm.joint_angles[1]")
    (axis,) = figure.axes
    assert len(axis.lines) == 100
    assert len({line.get_color() for line in axis.lines}) == 1
    assert axis.get_title(loc="left") == "arm.joint_angles elbow, 100 of 150 members"
    np.testing.assert_allclose(axis.lines[-1].get_ydata(), 149 * 2 * T)
    labels = axis.get_legend_handles_labels()[1]
    assert labels == ["elbow"]


def test_a_figure_shows_itself_in_a_notebook():
    figure = RUN.plot("n.w")
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert isinstance(figure, matplotlib.figure.Figure)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: RUN.plot("n.x"), "'x' of 'n' was not recorded"),
        (lambda: RUN.plot("n.p[3]"), r"no such component; the field has shape \(3,\)"),
        (lambda: RUN.plot("w"), "must be 'node.field'"),
        (lambda: RUN.plot("n.w", unit="mm"), "'rad/s' cannot be shown in 'mm'"),
        (lambda: RUN.plot("n.p", "n.q", "n.w", against=["n.p", "n.q"]), "one for each of the 3"),
        (lambda: RUN.plot(3), "fields must be"),
        (lambda: RUN.plot("n.w", title=3), "title must be"),
    ],
)
def test_what_cannot_be_drawn_is_an_input_error(call, words):
    with pytest.raises(InputError, match=words):
        call()


def seen_run():
    """A run that was read from a file, so that only what the file says can name its components."""
    pose = np.zeros((len(T), 7))
    fields = {
        "joint_angles": np.stack([T, 2 * T], 1),
        "pose": pose,
        "wrench": pose[:, :6],
        "place": pose[:, :3],
        "map": np.zeros((len(T), 8, 8)),
    }
    units = {"joint_angles": "rad", "pose": "m", "wrench": "N, N·m", "place": "m", "map": ""}
    names = {"arm.joint_angles": ("shoulder", "elbow"), "arm.place": ("x", "y", "heading [rad]")}
    seen = Drawing(names=names)
    return Trajectory(T, {"arm": fields}, {"arm": units}, {"arm": units}, {}, drawn=seen)


@pytest.mark.parametrize(
    ("name", "shape", "labels", "picked"),
    [
        ("n.x", (), [""], None),
        ("n.x", (2,), ["[0]", "[1]"], None),
        ("n.x[1]", (2,), ["[1]"], ()),
        ("n.x[1:]", (3,), ["[1]", "[2]"], (2,)),
        ("n.x[:,1]", (2, 2), ["[0, 1]", "[1, 1]"], (2,)),
    ],
)
def test_components_are_named_as_they_are_picked(name, shape, labels, picked):
    run = Trajectory(T, {"n": {"x": np.zeros((101, *shape))}}, {"n": {"x": ""}}, {}, {})
    assert [component.label for component in components(run, name)] == labels
    index = split_field(name)[2]
    assert index is None or picked_shape(shape, index) == picked


@pytest.mark.parametrize("index", ["[3]", "[2:5]", "[3:]", "[2:1]", "[0,0]"])
def test_what_is_not_there_cannot_be_picked(index):
    assert picked_shape((3,), split_field(f"n.x{index}")[2]) is None
