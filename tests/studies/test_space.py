"""What varies, against SciPy and NumPy; and what is refused."""

import re

import numpy as np
import pytest
from scipy import stats

from mime import InputError
from mime.studies.axes import Draw, Equals, Grid, Values, axis_model
from mime.studies.expression import evaluate, names_in
from mime.studies.space import Correlated, Drawing, cube, members

NOTHING_DRAWN = Drawing(None, "sobol", 0)
DISTRIBUTIONS = {
    "uniform": ([1.0, 3.0], stats.uniform(1.0, 2.0)),
    "loguniform": ([0.1, 10.0], stats.loguniform(0.1, 10.0)),
    "normal": ([2.0, 0.5], stats.norm(2.0, 0.5)),
    "lognormal": ([2.0, 0.5], stats.lognorm(0.5, scale=2.0)),
    "triangular": ([1.0, 2.0, 5.0], stats.triang(0.25, 1.0, 4.0)),
}
U = np.linspace(0.001, 0.999, 999)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_distribution_is_scipys(name):
    given, theirs = DISTRIBUTIONS[name]
    # ndtri has a few ulps, and loguniform's exp(log) as many.
    np.testing.assert_allclose(Draw(**{name: given}).at(U), theirs.ppf(U), rtol=1e-12)


def test_tails_are_cut_off_as_scipy_cuts_them():
    theirs = stats.truncnorm(-1.0, 3.0, 2.0, 0.5)
    ours = Draw(normal=[2.0, 0.5], between=[1.5, 3.5]).at(U)
    np.testing.assert_allclose(ours, theirs.ppf(U), rtol=1e-9)
    logs = np.log(Draw(lognormal=[np.exp(2.0), 0.5], between=np.exp([1.5, 3.5]).tolist()).at(U))
    np.testing.assert_allclose(logs, theirs.ppf(U), rtol=1e-9)


def test_whole_numbers_and_choices_are_equally_likely():
    found = Draw(integers=[3, 7]).at((np.arange(1000) + 0.5) / 1000)
    assert np.unique(found, return_counts=True)[1].tolist() == [200] * 5
    words = Draw(choice=["a", "b"]).at(np.array([0.0, 0.49, 0.51, 1.0]))
    assert words.tolist() == ["a", "a", "b", "b"]


def test_a_fits_covariance_is_that_of_its_draws_positive_ones_in_logarithms():
    covariance, mean = np.array([[4.0, 1.2], [1.2, 1.0]]), np.array([4.0, -20.0])
    drawn = members(
        {}, Drawing(4096, "sobol", 1), correlated=Correlated(("a", "b"), mean, covariance)
    )
    assert drawn["a"].min() > 0  # half of the mean is its deviation: a normal one has 2 % below 0
    values = np.stack([mean[0] * np.log(drawn["a"] / mean[0]), drawn["b"] - mean[1]])
    np.testing.assert_allclose(values.mean(1), [0.0, 0.0], atol=0.01)  # even points: 1/n
    np.testing.assert_allclose(np.cov(values), covariance, rtol=0.02)


@pytest.mark.parametrize("sampling", ["sobol", "random"])
def test_fewer_draws_are_the_first_of_more(sampling):
    few, many = (cube(Drawing(count, sampling, 3), 4) for count in (50, 200))
    np.testing.assert_array_equal(few, many[:50])
    assert not np.array_equal(few, cube(Drawing(50, sampling, 4), 4))


def test_a_latin_hypercube_has_one_point_in_each_row():
    points = cube(Drawing(100, "latin", 0), 3)
    assert (np.sort(np.floor(points * 100), axis=0) == np.arange(100)[:, None]).all()


def test_lists_and_grids_multiply_and_zipped_ones_go_together():
    axes = {
        "a": Values(values=[1.0, 2.0]),
        "b": Grid(**{"from": 1.0, "to": 100.0, "count": 3, "scale": "log"}),
        "c": Values(values=[5.0, 6.0]),
        "d": Equals(equals="a * b + e"),
        "e": Equals(equals="-c"),
    }
    found = members(axes, NOTHING_DRAWN, zipped=[["a", "c"]])
    assert list(found) == ["a", "b", "c", "d", "e"]
    expected = [(a, b, c) for a, c in ((1, 5), (2, 6)) for b in (1, 10, 100)]
    np.testing.assert_allclose(np.stack([found[n] for n in "abc"], 1), expected, rtol=1e-15)
    np.testing.assert_array_equal(found["d"], found["a"] * found["b"] - found["c"])


def test_constraints_leave_members_out_and_draws_multiply_with_lists():
    axes = {"m.a": Draw(uniform=[0.0, 1.0]), "m.b": Values(values=[0.25, 0.75])}
    found = members(axes, Drawing(64, "sobol", 0), constraints=["m.a < m.b", "m.b != 3"])
    assert (found["m.a"] < found["m.b"]).all()
    assert 60 <= len(found["m.a"]) <= 68  # of 128, a quarter and three quarters


def test_an_expression_knows_names_in_brackets_and_functions():
    columns = {"arm.link[forearm].mass_kg": np.array([1.0, 4.0]), "x": np.array([2.0, 3.0])}
    text = "sqrt(arm.link[forearm].mass_kg) + max(x, 2.5) ** 2"
    assert names_in(text) == set(columns)
    np.testing.assert_array_equal(evaluate(text, columns), [1 + 6.25, 2 + 9.0])
    both = evaluate("1 < x <= 2 and not x == 5", columns)
    assert both.tolist() == [True, False]


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "x.__class__()", "[x for x in y]", "lambda: 1", "x if x else 1", "x @ x",
     "open('f')", "sqrt(x, x)", "1 +", "'a' + 1", "y", "x" * 3000, "f'{x}'", "x is x"],
)  # fmt: skip
def test_an_expression_executes_nothing(text):
    with pytest.raises(InputError):
        evaluate(text, {"x": np.ones(2)})


def refusals():
    two, three = Values(values=[1.0, 2.0]), Values(values=[1.0, 2.0, 3.0])
    drawn = Draw(uniform=[0.0, 1.0])
    yield "as many values", {"a": two, "b": three}, {"zipped": [["a", "b"]]}
    yield "does not vary (did you mean 'ab'?)", {"ab": two}, {"zipped": [["abc", "ab"]]}
    yield "zipped twice", {"a": two, "b": two}, {"zipped": [["a", "b"], ["b", "a"]]}
    yield "no list or grid", {"a": two, "b": drawn}, {"zipped": [["a", "b"]]}
    yield "how many members are drawn", {"a": drawn}, {}
    yield "nothing is drawn", {"a": two}, {"draws": 3}
    yield "nothing varies", {}, {}
    circle = {"a": Equals(equals="b"), "b": Equals(equals="a"), "c": two}
    yield "follow from each other", circle, {}
    yield "no member keeps", {"a": two}, {"constraints": ["a > 5"]}
    yield "no comparison", {"a": two}, {"constraints": ["a"]}
    many = Grid(**{"from": 0.0, "to": 1.0, "count": 100_000})
    yield "more than 100,000,000", {"a": many, "b": many}, {}


@pytest.mark.parametrize(("words", "axes", "rest"), list(refusals()))
def test_what_makes_no_members_is_refused(words, axes, rest):
    rest = dict(rest)
    drawing = Drawing(rest.pop("draws", None), "sobol", 0)
    with pytest.raises(InputError, match=re.escape(words)):
        members(axes, drawing, **rest)


@pytest.mark.parametrize(
    "table",
    [{"uniform": [2.0, 1.0]}, {"normal": [0.0, 0.0]}, {"loguniform": [0.0, 1.0]}, {},
     {"uniform": [0.0, 1.0], "normal": [0.0, 1.0]}, {"uniform": [0.0, 1.0], "between": [0.0, 1.0]},
     {"from": -1.0, "to": 1.0, "count": 3, "scale": "log"}, {"from": 0.0, "to": 1.0},
     {"values": []}, {"normal": [0.0, 1.0], "between": [1.0, 1.0]}],
)  # fmt: skip
def test_an_axis_that_makes_no_sense_is_refused(table):
    with pytest.raises(ValueError, match=r"validation error"):
        axis_model(table)(**table)
