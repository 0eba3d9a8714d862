"""`batched`: the numbers of `jax.vmap`, on any number of threads and in any batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mime import InputError, batched
from mime.control.kinematics import forward_dynamics, parse_urdf
from mime.models import model_path

TREE = parse_urdf(model_path("planar_arm_3link"))
GRAVITY = np.array([0.0, 0.0, -9.81])
RNG = np.random.default_rng(0)


def accelerations(q, qd, tau):
    return forward_dynamics(TREE, q, qd, tau, GRAVITY)


@pytest.fixture(scope="module")
def dynamics():
    return batched(accelerations)


@pytest.mark.parametrize("size", [1, 5, 129, 300])
def test_it_equals_vmap(dynamics, size):
    args = [jnp.asarray(RNG.normal(size=(size, 3))) for _ in range(3)]
    expected = jax.vmap(accelerations)(*args)
    np.testing.assert_allclose(dynamics(*args), expected, rtol=1e-12, atol=1e-12)
    # Other threads are other blocks of the same loop: bits do not depend on them.
    in_four = batched(accelerations, threads=min(4, size))
    np.testing.assert_array_equal(in_four(*args), dynamics(*args))


def test_it_can_be_traced_and_takes_trees(dynamics):
    both = batched(lambda x: {"sum": x["a"] + x["b"], "a": x["a"]})
    x = {"a": np.arange(200.0), "b": np.ones(200)}
    np.testing.assert_array_equal(jax.jit(both)(x)["sum"], both(x)["sum"])
    assert both(x)["a"].shape == (200,)
    slopes = batched(jax.grad(lambda q: jnp.sum(jnp.sin(q))))
    q = RNG.normal(size=(150, 2))
    np.testing.assert_allclose(slopes(q), np.cos(q), rtol=1e-15, atol=1e-15)


def test_precision_of_the_caller_holds_in_every_thread():
    with jax.enable_x64(False):
        doubled = batched(lambda x: 2 * x, threads=2)
        assert doubled(np.ones(200, np.float32)).dtype == jnp.float32


@pytest.mark.parametrize("args", [(np.ones(3), np.ones(4)), (np.ones(3), 1.0)])
def test_arguments_without_one_batch_axis_are_refused(args):
    with pytest.raises(InputError, match="one leading batch axis"):
        batched(lambda a, b: a + b)(*args)


def test_random_keys_are_members_too():
    keys = jax.random.split(jax.random.key(0), 150)
    drawn = batched(lambda key: (jax.random.normal(key), key), threads=2)(keys)
    np.testing.assert_array_equal(drawn[0], jax.vmap(jax.random.normal)(keys))
    assert drawn[1].dtype == keys.dtype
