"""Linear algebra in one thread while a fit runs."""

import numpy as np
import pytest

from mime.fitting.one_thread import libraries, one_thread


def test_openblas_takes_one_thread_within_and_as_many_as_before_afterwards():
    if not libraries():
        pytest.skip("NumPy and SciPy use another library")
    before = [get() for get, _ in libraries()]
    A = np.random.default_rng(0).normal(size=(300, 80))
    R = np.linalg.qr(A, mode="r")
    with one_thread():
        with one_thread():
            assert [get() for get, _ in libraries()] == [1] * len(before)
        assert [get() for get, _ in libraries()] == [1] * len(before)
        # The same sums in another order: rounding.
        np.testing.assert_allclose(np.linalg.qr(A, mode="r"), R, atol=1e-12)
    assert [get() for get, _ in libraries()] == before
