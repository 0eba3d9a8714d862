"""NumPy leaves are constants of a program, in its precision and as they were when it was made."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mime.native.compiled import OFTEN
from mime.native.folding import jit_folding


def scaled(constant, x):
    return x * constant["by"]


@pytest.mark.parametrize("first", [True, False])
def test_a_constant_serves_both_precisions(first):
    """JAX alone cannot: lowered for one, the same array has the wrong type in the other."""
    function, constant = jit_folding(scaled), {"by": np.array([0.1, 0.2, 0.3])}
    for double in (first, not first, first):
        with jax.enable_x64(double):
            found = function(constant, jnp.asarray(2.0))
            assert found.dtype == (np.float64 if double else np.float32)
            np.testing.assert_array_equal(found, 2 * np.asarray(constant["by"], found.dtype))


def test_a_program_keeps_its_constants_when_their_owner_writes_into_them():
    function, array = jit_folding(scaled), np.array([1.0, 2.0])
    original = array.copy()
    np.testing.assert_array_equal(function({"by": array}, jnp.asarray(2.0)), [2.0, 4.0])
    array[:] = 5.0
    # A new kind of argument traces the program of the original constants again.
    np.testing.assert_array_equal(function({"by": original}, jnp.asarray(2)), [2.0, 4.0])


def test_a_function_called_often_keeps_its_bits():
    """Beyond `OFTEN` calls it is JAX that calls the machine code."""

    def rotated(constant, x):
        return {"x": jnp.sin(x["x"]) + constant["by"] * x["x"] ** 2}

    function, constant = jit_folding(rotated), {"by": np.array([0.1, 0.2, 0.3])}
    start = {"x": jnp.array([0.3, -0.7, 2.0])}
    (program, variables) = function.compiled(constant)
    results = [function(constant, start)["x"] for _ in range(OFTEN + 2)]
    assert program.jitted._cache_size() == 1
    assert not variables
    assert all(isinstance(x, jax.Array) for x in results)
    for found in results[1:]:
        np.testing.assert_array_equal(found, results[0])
