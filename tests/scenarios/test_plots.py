"""What a plot shows: names of components, differences, units, one field over another."""

import numpy as np
import pytest

from mime.reporting.plots import draw_fields
from mime.running.trajectory import Trajectory
from mime.scenarios.fields import component_names, picked_shape, split_field

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
    assert list(drawn) == ["n.q[1] - n.p[1]", "n.q[2] - n.p[2]"]
    np.testing.assert_allclose(drawn["n.q[2] - n.p[2]"].get_ydata(), 1e3 * T)
    assert figure.axes[0].get_ylabel() == "[mm]"


def test_paths_are_drawn_each_over_its_own_field_to_one_scale():
    figure = draw_fields(RUN, ["n.p[1]", "n.q[1]"], against=["n.p[0]", "n.q[0]"], unit="mm")
    first, second = lines(figure).values()
    np.testing.assert_allclose(first.get_xdata(), 1e3 * np.cos(T))
    assert (first.get_linestyle(), second.get_linestyle()) == ("-", "--")
    assert figure.axes[0].get_xlabel() == "n.p[0] / n.q[0] [mm]"
    assert figure.axes[0].get_aspect() == 1.0


def test_fields_alike_share_colours_and_a_unit_spares_fields_that_do_not_have_it():
    figure = draw_fields(RUN, ["n.p", "n.q", "n.w"], unit="rpm")
    drawn = lines(figure)
    assert drawn["n.p[1]"].get_color() == drawn["n.q[1]"].get_color()
    assert drawn["n.q[1]"].get_linestyle() == "--"
    np.testing.assert_allclose(drawn["n.p[2]"].get_ydata(), T)
    assert [axis.get_ylabel() for axis in figure.axes] == ["[m]", "w\n[rpm]"]
    np.testing.assert_allclose(next(iter(figure.axes[1].lines)).get_ydata(), 90 / np.pi * T)


@pytest.mark.parametrize(
    ("name", "shape", "names", "picked"),
    [
        ("n.x", (), ["n.x"], None),
        ("n.x", (2,), ["n.x[0]", "n.x[1]"], None),
        ("n.x[1]", (2,), ["n.x[1]"], ()),
        ("n.x[1:]", (3,), ["n.x[1]", "n.x[2]"], (2,)),
        ("n.x[:,1]", (2, 2), ["n.x[0,1]", "n.x[1,1]"], (2,)),
    ],
)
def test_components_are_named_as_they_are_picked(name, shape, names, picked):
    assert component_names(name, shape) == names
    index = split_field(name)[2]
    assert index is None or picked_shape(shape, index) == picked


@pytest.mark.parametrize("index", ["[3]", "[2:5]", "[3:]", "[2:1]", "[0,0]"])
def test_what_is_not_there_cannot_be_picked(index):
    assert picked_shape((3,), split_field(f"n.x{index}")[2]) is None
