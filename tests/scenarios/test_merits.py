"""Figures of merit against closed forms and python-control."""

import dataclasses

import numpy as np
import pytest

import control
from mime.reporting.numbers import figure_cells
from mime.running.trajectory import Divergence, Trajectory
from mime.scenarios.merits import MERITS, evaluate

DT = 1e-3
T = DT * np.arange(1, 10_001)


def trajectory(**fields):
    shape = {"n": fields}
    units = {"n": dict.fromkeys(fields, "rad")}
    return Trajectory(T, shape, units, units, {})


def figure(run, **table):
    table = {"name": "x", "field": "n.y", **table}
    return evaluate(MERITS[table["kind"]](**table), run)


Y = np.sin(T) * np.exp(-0.1 * T)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("final", Y[-1]),
        ("max", Y.max()),
        ("min", Y.min()),
        ("mean", Y.mean()),
        ("rms", np.sqrt((Y**2).mean())),
    ],
)
def test_statistics_are_numpys(kind, expected):
    found = figure(trajectory(y=Y), kind=kind)
    assert found.value == pytest.approx(expected, abs=1e-15)
    assert found.unit == "rad"


EVERY_KIND = [
    *[{"kind": kind} for kind in ("final", "max", "min", "mean", "rms", "count", "time_of_max")],
    *[
        {"kind": kind, "after": 0.5, "target": 1.0}
        for kind in ("settling_time", "rise_time", "overshoot")
    ],
    *[
        {"kind": kind, "field": "n.y[0:2]", "reference": "n.z[0:2]", "lag": 0.0137}
        for kind in ("rms_error", "rms_distance", "max_distance")
    ],
    {"kind": "quantile", "q": 0.95},
]


@pytest.mark.parametrize("table", EVERY_KIND, ids=lambda table: table["kind"])
def test_a_members_figure_has_the_same_bits_alone_and_in_any_batch(table):
    random = np.random.default_rng(0)
    steps = np.cumsum(random.normal(size=(7, len(T), 3)), axis=1)
    y = 1.0 - np.exp(-T)[:, None] * (1 + 0.1 * np.cos(steps))
    fields = {"y": y, "z": steps}
    units = {"n": dict.fromkeys(fields, "rad")}
    table = {"field": "n.y[1]", "after": 2.5, **table}
    many = figure(Trajectory(T, {"n": fields}, units, units, {}, batch_size=7), **table).value
    for member in range(7):
        alone = figure(trajectory(y=y[member], z=steps[member]), **table).value
        assert many[member] == alone, (member, table)
    assert np.isfinite(many).all()


def test_settling_is_the_sample_after_the_last_outside_of_the_band():
    walks = 0.01 * np.cumsum(np.random.default_rng(1).normal(size=(40, len(T))), axis=1)
    found = []
    for y in walks:
        found.append(figure(trajectory(y=y), kind="settling_time", target=0.3, band=0.5).value)
        outside = np.flatnonzero(np.abs(y - 0.3) > 0.5 * np.abs(0.3 - y[0]))
        expected = np.nan if outside[-1] == len(T) - 1 else T[outside[-1] + 1]
        np.testing.assert_equal(found[-1], expected)
    assert 0 < np.count_nonzero(np.isnan(found)) < 40
    inside = np.append(0.0, np.ones(len(T) - 1))
    assert figure(trajectory(y=inside), kind="settling_time").value == T[1]


def test_a_quantile_is_numpys_and_its_share_is_checked():
    found = figure(trajectory(y=Y), kind="quantile", q=0.25)
    assert found.value == np.quantile(Y, 0.25)
    with pytest.raises(ValueError, match="less than or equal to 1"):
        figure(trajectory(y=Y), kind="quantile", q=1.5)


def test_a_member_that_diverged_has_no_figure():
    run = Trajectory(
        T, {"n": {"y": np.stack([Y, Y])}}, {"n": {"y": "rad"}}, {"n": {"y": ""}}, {}, batch_size=2
    )
    run = dataclasses.replace(run, diverged={1: Divergence("n", "y", 1.0)})
    found = figure(run, kind="max", at_most=2.0)
    assert found.value[0] == Y.max()
    assert np.isnan(found.value[1])
    assert found.ok.tolist() == [True, False]
    assert found.verdict == "1 of 2 ok"


def test_statistics_count_from_after_on():
    assert figure(trajectory(y=Y), kind="max", after=5.0).value == Y[T >= 5.0].max()
    assert figure(trajectory(y=Y), kind="time_of_max", after=5.0).value == pytest.approx(
        T[T >= 5.0][np.abs(Y[T >= 5.0]).argmax()] - 5.0
    )


def test_a_component_and_an_error_between_two_fields():
    vector = np.stack([Y, 2 * Y], 1)
    run = trajectory(y=vector, z=np.zeros_like(vector))
    assert figure(run, kind="final", field="n.y[1]").value == 2 * Y[-1]
    error = figure(run, kind="rms_error", reference="n.z").value
    assert error == pytest.approx(np.sqrt((vector**2).mean()), abs=1e-15)


def test_distances_are_lengths_of_vectors():
    ahead = np.stack([np.cos(T), np.sin(T), T], 1)
    run = trajectory(y=ahead, z=np.stack([0 * T, 0 * T, T], 1))
    for kind in ("rms_distance", "max_distance"):
        assert figure(run, kind=kind, reference="n.z").value == pytest.approx(1.0)
        flat = {"field": "n.y[1:3]", "reference": "n.z[1:]", "after": 0.01}
        wanted = np.abs(np.sin(T[T >= 0.01]))
        expected = wanted.max() if kind == "max_distance" else np.sqrt((wanted**2).mean())
        assert figure(run, kind=kind, **flat).value == pytest.approx(expected)


def test_a_lag_compares_with_what_was_earlier():
    run = trajectory(y=np.sin(T - 0.25), z=np.sin(T))
    assert figure(run, kind="max_distance", reference="n.z").value > 0.2
    late = figure(run, kind="max_distance", reference="n.z", lag=0.25)
    # Straight lines between samples of 1 ms are off by no more than 1e-6 / 8.
    assert late.value < 1.3e-7


def test_a_count_is_how_often_a_field_leaves_zero():
    y = np.zeros_like(T)
    assert figure(trajectory(y=y), kind="count").value == 0
    y[0] = y[10:20] = y[-1] = 1.0
    assert figure(trajectory(y=y), kind="count").value == 3
    assert figure(trajectory(y=y), kind="count", after=0.015).value == 2
    assert figure(trajectory(y=y), kind="count").unit == ""


@pytest.mark.parametrize(
    ("kind", "unit", "factor"),
    [("max", "deg", 180 / np.pi), ("max", "mrad", 1e3), ("time_of_max", "ms", 1e3)],
)
def test_a_figure_and_its_limits_are_in_the_unit_asked_for(kind, unit, factor):
    plain = figure(trajectory(y=Y), kind=kind)
    shown = figure(trajectory(y=Y), kind=kind, unit=unit, at_most=plain.value * factor * 1.001)
    assert shown.value == pytest.approx(factor * plain.value)
    assert (shown.unit, shown.ok) == (unit, True)
    assert shown.limits.endswith(f" {unit}")


def test_a_step_response_has_python_controls_figures():
    system = control.tf([4.0], [1.0, 0.8, 4.0])
    expected = control.step_info(system, T=np.r_[0.0, T])
    y = control.step_response(system, np.r_[0.0, T]).outputs[1:]
    run = trajectory(y=y)
    # Both look at samples: they differ by one, and by how the start is taken.
    for kind, name in (("rise_time", "RiseTime"), ("settling_time", "SettlingTime")):
        found = figure(run, kind=kind, target=1.0)
        assert found.unit == "s"
        assert found.value == pytest.approx(expected[name], abs=3 * DT)
    overshoot = figure(run, kind="overshoot", target=1.0)
    assert overshoot.unit == "%"
    assert overshoot.value == pytest.approx(expected["Overshoot"], rel=1e-3)


def test_what_does_not_exist_is_nan_and_outside_every_limit():
    flat = trajectory(y=np.ones_like(T))
    assert np.isnan(figure(flat, kind="rise_time").value)
    assert np.isnan(figure(flat, kind="overshoot").value)
    never = figure(trajectory(y=T), kind="settling_time", target=100.0, at_most=5.0)
    assert np.isnan(never.value)
    assert not never.ok


@pytest.mark.parametrize(
    ("limits", "ok", "words"),
    [
        ({}, True, ""),
        ({"at_most": 2.0}, True, "≤ 2 rad"),
        ({"at_least": 2.0}, False, "≥ 2 rad"),
        ({"at_least": 0.0, "at_most": 0.5}, False, "≥ 0 rad and ≤ 0.5 rad"),
    ],
)
def test_limits_are_kept_or_not(limits, ok, words):
    found = figure(trajectory(y=np.ones_like(T)), kind="final", **limits)
    assert (found.ok, found.limits) == (ok, words)


def test_an_event_that_never_happened_is_not_reached_and_outside_every_limit():
    zero = trajectory(y=np.zeros_like(T))
    for table in (
        {"kind": "final", "never": 0.0, "at_most": 1.0},
        {"kind": "time_of_max", "at_least": 0.0},
        {"kind": "rise_time", "target": 1.0, "at_most": 1.0},
        {"kind": "max", "after": 1e3, "at_most": 1.0},
    ):
        found = figure(zero, **table)
        assert not found.reached
        assert not found.ok
    assert figure(zero, kind="final", at_most=1.0).ok
    assert figure(trajectory(y=Y), kind="final", never=0.0).reached


def test_the_window_of_a_figure_is_told_beside_its_name():
    found = figure(trajectory(y=Y), kind="max", after=0.5)
    assert figure_cells(found)[0] == "x (from 0.5 s on)"
    assert figure_cells(figure(trajectory(y=Y), kind="max"))[0] == "x"
