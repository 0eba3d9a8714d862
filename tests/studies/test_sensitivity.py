"""Sobol's indices against closed forms and SciPy's; and the design that they are drawn by."""

import numpy as np
import pytest
from scipy.stats import qmc, sobol_indices

from mime.studies.build import build_study
from mime.studies.report.sensitivity import indices, of_design, of_members, saltelli_rows
from mime.studies.report.table import Column, Table
from mime.studies.space import Drawing, cube
from mime.studies.sweep import described

A, B = 7.0, 0.1
WEIGHTS = np.array([0.0, 1.0, 4.5, 9.0])


def ishigami(u):
    x = np.pi * (2 * u - 1)
    return np.sin(x[:, 0]) + A * np.sin(x[:, 1]) ** 2 + B * x[:, 2] ** 4 * np.sin(x[:, 0])


def ishigami_indices():
    first, second = (1 + B * np.pi**4 / 5) ** 2 / 2, A**2 / 8
    both = B**2 * np.pi**8 * (1 / 18 - 1 / 50)
    whole = first + second + both
    return np.array([first, second, 0]) / whole, np.array([first + both, second, both]) / whole


def g_function(u):
    return np.prod((np.abs(4 * u - 2) + WEIGHTS) / (1 + WEIGHTS), axis=1)


def g_indices():
    own = 1 / (3 * (1 + WEIGHTS) ** 2)
    whole = np.prod(1 + own) - 1
    return own / whole, own * np.prod(1 + own) / (1 + own) / whole


CASES = {"Ishigami": (ishigami, ishigami_indices()), "g": (g_function, g_indices())}


def named(points):
    return {f"x{i}": points[:, i] for i in range(points.shape[1])}


def columns(points):
    return [Column(name, "", "parameter", x) for name, x in named(points).items()]


def table(points, y):
    figure = Column("y", "", "figure", y)
    return Table((*columns(points), figure), None, {}, np.zeros(len(y), bool), "")


@pytest.mark.parametrize("case", CASES)
def test_indices_of_a_design_are_scipys_and_near_the_closed_form(case):
    function, (first, total) = CASES[case]
    dimension = len(first)
    points = cube(Drawing(1024, "saltelli", 3), dimension)
    y = function(points)
    rows = saltelli_rows(named(points), list(named(points)))
    found = of_design(y, rows, list(named(points)))
    given = {"f_A": y[rows[:, 0]][None], "f_B": y[rows[:, 1]][None]}
    theirs = sobol_indices(func={**given, "f_AB": y[rows[:, 2:]].T[:, None]}, n=1024)
    for ours, scipys, exact in (
        (found.first, theirs.first_order, first),
        (found.total, theirs.total_order, total),
    ):
        np.testing.assert_allclose([i.value for i in ours.values()], scipys.ravel(), atol=1e-13)
        np.testing.assert_allclose([i.value for i in ours.values()], exact, atol=0.03)
        assert all(i.low <= s <= i.high for i, s in zip(ours.values(), exact))
        assert max(i.high - i.low for i in ours.values()) < 0.3


@pytest.mark.parametrize("case", CASES)
def test_first_orders_of_any_members_come_near_the_closed_form(case):
    """Of 4000 random members an index scatters by 0.01; 95 of 100 intervals hold the truth."""
    function, (first, _) = CASES[case]
    held = []
    for seed in range(5):
        points = np.random.default_rng(seed).random((4000, len(first)))
        found = of_members(function(points), columns(points)).first
        np.testing.assert_allclose([i.value for i in found.values()], first, atol=0.04)
        held += [i.low <= s <= i.high for i, s in zip(found.values(), first)]
    assert np.mean(held) > 0.75


def test_a_sum_on_a_grid_is_divided_exactly():
    a, b = (x.ravel() for x in np.meshgrid(np.arange(8.0), [0.0, 1.0, 5.0], indexing="ij"))
    y = np.stack([a, 3 * b])
    found = of_members(y.sum(0).repeat(3), columns(np.stack([a, b], 1).repeat(3, axis=0))).first
    shares = y.var(axis=1) / y.sum(0).var()
    # The fit goes on until nothing changes by more than 1e-6.
    np.testing.assert_allclose([i.value for i in found.values()], shares, atol=1e-9)


def test_members_are_told_from_a_design_and_what_is_missing_is_left_out():
    points = cube(Drawing(64, "saltelli", 0), 3)
    y = ishigami(points)
    found = indices(table(points, y))["y"]
    assert list(found.total) == ["x0", "x1", "x2"]
    shuffled = np.random.default_rng(0).permutation(len(y))
    other = indices(table(points[shuffled], y[shuffled]))["y"]
    assert not other.total
    assert "as they are" in other.words
    y[7] = np.nan
    left = indices(table(points, y))["y"]
    whole = np.delete(np.arange(320).reshape(64, 5), 1, axis=0)
    again = of_design(np.delete(y, np.s_[5:10]), np.arange(315).reshape(63, 5), ["x0", "x1", "x2"])
    assert "1 draws without a value are left out" in left.words
    np.testing.assert_array_equal(list(left.first.values()), list(again.first.values()))
    assert len(whole) == 63
    assert "Too few" in indices(table(points[:20], y[:20]))["y"].words
    assert "the same for all" in indices(table(points, np.ones(320)))["y"].words
    together = np.stack([points[:, 0], points[:, 0] + 0.01 * points[:, 1]], axis=1)
    assert "x0 and x1 go together" in indices(table(together[shuffled], y))["y"].words


def test_saltellis_design_is_drawn_from_sobols_points_and_grows():
    small, large = (cube(Drawing(n, "saltelli", 5), 2) for n in (16, 32))
    np.testing.assert_array_equal(small, large[: len(small)])
    both = qmc.Sobol(4, scramble=True, rng=np.random.default_rng(5)).random(16)
    a, b = both[:, :2], both[:, 2:]
    rows = small.reshape(16, 4, 2)
    np.testing.assert_array_equal(rows[:, 0], a)
    np.testing.assert_array_equal(rows[:, 1], b)
    np.testing.assert_array_equal(rows[:, 2], np.stack([b[:, 0], a[:, 1]], axis=1))
    np.testing.assert_array_equal(rows[:, 3], np.stack([a[:, 0], b[:, 1]], axis=1))


def test_a_study_in_saltellis_design_names_its_columns():
    vary = {
        "motor.r_ohm": {"uniform": [0.5, 2.0]},
        "motor.l_henry": {"equals": "1e-3 * motor.r_ohm"},
        "motor.kt_n_m_per_a": {"lognormal": [0.05, 0.1]},
    }
    graph = {"duration": None, "inputs": None, "initial_state": None, "every": 1}
    tables = {"figures_of_merit": (), "keep": {"fields": (), "every": None}}
    drawn = {"draws": 4, "sampling": "saltelli"}
    study = build_study(described("motor_step", vary, graph, {**tables, **drawn}))
    assert study.design == ("motor.r_ohm", "motor.kt_n_m_per_a")
    assert study.logarithmic == {"motor.kt_n_m_per_a"}
    assert study.size == 16
    assert saltelli_rows(study.columns, study.design).shape == (4, 4)
