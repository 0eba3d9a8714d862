"""Straight calls with NumPy arrays: whatever kind comes after the usual one is seen."""

import threading

import numpy as np
import pytest

from mime.native.straight import kernel_function


class Factor:
    """A value that a function belongs to."""

    def __init__(self, factor):
        self.factor = factor


@kernel_function("power")
def scaled(value, x, power=1, offset=None):
    y = value.factor * x**power
    return y if offset is None else y + offset


DOUBLE = Factor(2.0)
USUAL = np.arange(6.0)


class Subclass(np.ndarray):
    pass


def unaligned(x):
    room = np.zeros(x.nbytes + 1, np.uint8)[1:]
    y = room.view(x.dtype)
    y[:] = x
    return y


def read_only(x):
    y = x.copy()
    y.flags.writeable = False
    return y


KINDS = {
    "the same": USUAL + 1,
    "strided": np.arange(12.0)[::2],
    "backwards": USUAL[::-1],
    "longer": np.arange(7.0),
    "two axes": USUAL.reshape(2, 3),
    "two others": USUAL.reshape(3, 2),
    "in Fortran's order": np.asfortranarray(USUAL.reshape(2, 3)),
    "a scalar's": np.array(3.0),
    "no entries": np.zeros(0),
    "single": USUAL.astype(np.float32),
    "bytes in the other order": USUAL.astype(">f8"),
    "unaligned": unaligned(USUAL),
    "a subclass": USUAL.view(Subclass),
    "read only": read_only(USUAL),
    "a list": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
}


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_another_kind_are_seen(kind):
    x = KINDS[kind]
    for _ in range(2):  # the second call finds what the first has left
        np.testing.assert_array_equal(scaled(DOUBLE, USUAL), 2 * USUAL)
        y = scaled(DOUBLE, x)
        assert type(y) is np.ndarray
        assert y.dtype == (np.float32 if kind == "single" else np.float64)
        np.testing.assert_array_equal(y, 2 * np.asarray(x))


def test_other_arguments_are_seen_too():
    offset, triple = np.full(6, 0.5), Factor(3.0)
    calls = [
        ((DOUBLE, USUAL), 2 * USUAL),
        ((DOUBLE, USUAL, 2), 2 * USUAL**2),
        ((DOUBLE, USUAL, 1, None), 2 * USUAL),
        ((DOUBLE, USUAL, 1, offset), 2 * USUAL + 0.5),
        ((DOUBLE, USUAL, 1, offset.astype(np.float32)), 2 * USUAL + 0.5),
        ((triple, USUAL, 1, offset), 3 * USUAL + 0.5),
    ]
    for arguments, expected in [*calls, *calls[::-1], *calls]:
        np.testing.assert_array_equal(scaled(*arguments), expected)
    np.testing.assert_array_equal(scaled(DOUBLE, USUAL, offset=offset), 2 * USUAL + 0.5)


def test_every_call_has_an_array_of_its_own():
    first = scaled(DOUBLE, USUAL)
    second = scaled(DOUBLE, USUAL + 1)
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, 2 * USUAL)


def test_a_value_in_the_place_of_one_that_has_gone_is_another():
    for factor in np.arange(1.0, 20.0):  # Python puts them all to the same place
        np.testing.assert_array_equal(scaled(Factor(factor), USUAL), factor * USUAL)


def test_threads_may_call_at_once():
    wrong = []

    def work(k):
        x = USUAL + k
        wrong.extend(k for _ in range(300) if not np.array_equal(scaled(DOUBLE, x), 2 * x))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
