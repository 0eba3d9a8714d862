"""Inputs over time against SciPy, NumPy and their own definitions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.signal

from mime.scenarios.waveforms import WAVEFORMS, Csv, read_columns

T = np.linspace(0.0, 2.0, 2001)


def sampled(size=(), **table):
    waveform = WAVEFORMS[table["kind"]](**table)
    function = waveform.shape(size)
    if not callable(function):
        return np.broadcast_to(function, (len(T), *size))
    return np.asarray(jax.vmap(function)(jnp.asarray(T)))


def test_a_constant_fills_the_shape_of_its_input():
    np.testing.assert_array_equal(
        sampled((3,), kind="constant", value=2.0), np.full((len(T), 3), 2)
    )
    np.testing.assert_array_equal(
        sampled((2,), kind="constant", value=[1.0, 2.0])[0], np.array([1.0, 2.0])
    )


def test_a_step_changes_at_its_time():
    expected = np.where(T < 0.5, 1.0, 3.0)
    np.testing.assert_array_equal(sampled(kind="step", at=0.5, before=1.0, after=3.0), expected)


def test_a_ramp_is_the_straight_line_between_its_ends():
    expected = np.interp(T, [0.5, 1.5], [1.0, -2.0])
    found = sampled(kind="ramp", begin=0.5, end=1.5, before=1.0, after=-2.0)
    np.testing.assert_allclose(found, expected, atol=1e-15)


def test_a_sine_is_numpys():
    found = sampled(
        (2,), kind="sine", amplitude=[1.0, 2.0], frequency_hz=3.0, offset=0.5, phase_rad=0.3
    )
    sine = np.sin(2 * np.pi * 3 * T + 0.3)
    np.testing.assert_allclose(found, 0.5 + np.stack([sine, 2 * sine], 1), atol=1e-13)


def test_a_chirp_is_scipys_and_keeps_its_last_frequency():
    found = sampled(kind="chirp", amplitude=1.0, begin_hz=1.0, end_hz=9.0, duration=2.0)
    expected = scipy.signal.chirp(T, 1.0, 2.0, 9.0, phi=-90.0)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    short = sampled(kind="chirp", amplitude=1.0, begin_hz=1.0, end_hz=9.0, duration=1.0)
    later = T > 1.0
    expected = np.sin(2 * np.pi * (5.0 + 9.0 * (T[later] - 1.0)))
    np.testing.assert_allclose(short[later], expected, atol=1e-12)


def test_a_pulse_train_is_scipys_square_wave():
    found = sampled(kind="pulse_train", high=4.0, low=-1.0, period=0.5, width=0.2, delay=0.1)
    t = T + 0.0005 - 0.1  # between the edges
    square = np.where(scipy.signal.square(2 * np.pi * t / 0.5, 0.4) > 0, 4.0, -1.0)
    inside = np.abs((t % 0.1) - 0.0005) > 1e-6
    expected = np.where(t < 0, -1.0, square)
    np.testing.assert_array_equal(found[inside], expected[inside])


@pytest.mark.small("a-size0", "column2-size2")
@pytest.mark.parametrize(("column", "size"), [("a", ()), ("a", (2,)), (["a", "b"], (2,))])
def test_csv_columns_are_interpolated_as_numpy_does(tmp_path, column, size):
    file = tmp_path / "x.csv"
    file.write_text("time, a, b\n0.1,1,5\n0.5,3,4\n1.5,-1,0\n")
    function = read_columns(Csv(kind="csv", file="x.csv", column=column, scale=2.0), file, size)
    found = np.asarray(jax.vmap(function)(jnp.asarray(T)))
    a, b = (2 * np.interp(T, [0.1, 0.5, 1.5], y) for y in ([1, 3, -1], [5, 4, 0]))
    expected = a if size == () else np.stack([a, b if isinstance(column, list) else a], 1)
    np.testing.assert_allclose(found, expected, atol=1e-14)
