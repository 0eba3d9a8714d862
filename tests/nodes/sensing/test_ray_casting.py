"""Ray casting: axes, walls from inside, outside, gradients, precision, batches, crossings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mime.core.problem import ParameterError
from mime.nodes.sensing.ray_casting import cast_ray, crossings, crossings_within

CELL, WALL, RANGE = 0.18, 0.012, 0.5
LENGTHS = {"cell_size_m": CELL, "wall_thickness_m": WALL, "max_range_m": RANGE}
ONE_CELL = (np.ones((2, 1)), np.ones((1, 2)))
CENTRE = np.full(2, CELL / 2)


@jax.jit
def cast(origin, angle, horizontal, vertical):
    return cast_ray(origin, angle, horizontal, vertical, **LENGTHS)


value_and_slopes = jax.jit(jax.value_and_grad(cast, (0, 1)))


@pytest.fixture(scope="module")
def scene():
    rng = np.random.default_rng(0)
    maze = [(rng.random(s) < 0.5).astype(float) for s in ((9, 7), (8, 8))]
    origin = rng.uniform(0, [7 * CELL, 8 * CELL], (400, 2))
    return origin, rng.uniform(-4, 4, 400), *maze


@pytest.mark.parametrize("angle", [0.0, -0.0, np.pi / 2, np.pi, -np.pi / 2, 2 * np.pi, 1e-200])
def test_along_an_axis_it_is_half_a_cell_less_half_a_wall(angle):
    value, grads = value_and_slopes(CENTRE, angle, *ONE_CELL)
    assert float(value) == pytest.approx(0.084, abs=1e-15)
    assert np.all(np.isfinite(grads[0]))
    assert float(grads[1]) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize(
    "place", [(0.0, 0.09), (0.0, 0.0), (0.003, 0.004), (0.09, 0.18), (0.1, -0.002)]
)
@pytest.mark.parametrize("angle", [0.0, 0.3, np.pi / 2, np.pi, -2.0])
def test_from_inside_a_wall_or_post_it_is_zero_with_finite_gradients(place, angle):
    value, grads = value_and_slopes(jnp.array(place), angle, *ONE_CELL)
    assert float(value) == 0.0
    assert all(np.all(np.isfinite(g)) for g in grads)


def test_a_gap_between_two_posts_is_no_wall():
    horizontal, vertical = np.ones((2, 2)), np.zeros((1, 3))
    vertical[0, 2] = 1.0
    origin = jnp.array([CELL, CELL / 2])  # in the gap
    assert float(cast(origin, 0.0, horizontal, vertical)) == pytest.approx(CELL - WALL / 2)
    assert float(cast(origin, np.pi, horizontal, vertical)) == RANGE


def test_outside_the_maze_its_outer_faces_are_seen_and_nothing_else():
    place = jnp.array([-0.1, CELL / 2])
    assert float(cast(place, 0.0, *ONE_CELL)) == pytest.approx(0.1 - WALL / 2)
    assert float(cast(place, np.pi, *ONE_CELL)) == RANGE
    beside = jnp.array([-0.1, -0.1])  # beyond the last post
    assert float(cast(beside, 0.0, *ONE_CELL)) == RANGE
    assert float(cast(beside, np.pi / 4, *ONE_CELL)) == pytest.approx((0.1 - WALL / 2) * 2**0.5)


def test_gradients_agree_with_central_differences(scene):
    origin, angle, *maze = scene
    pose = np.column_stack([origin, angle])

    def of(pose):
        return cast(pose[:, :2], pose[:, 2], *maze)

    ours = np.asarray(jax.jit(jax.grad(lambda p: jnp.sum(of(p))))(pose))
    assert np.all(np.isfinite(ours))
    smooth, theirs = np.ones(len(angle), bool), np.zeros_like(ours)
    for i in range(3):
        h = np.zeros(3)
        h[i] = 1e-7
        left, mid, right = (np.asarray(of(p)) for p in (pose - h, pose, pose + h))
        theirs[:, i] = (right - left) / 2e-7
        smooth &= np.abs(right + left - 2 * mid) < 1e-9  # no edge between
    assert smooth.sum() > 350
    # Rounding of 1 m over 2e-7, and curvature up to tan² at grazing rays.
    np.testing.assert_allclose(ours[smooth], theirs[smooth], rtol=1e-4, atol=1e-7)


def test_single_precision_errs_by_rounding_only(scene):
    origin, angle, *maze = scene
    exact = np.asarray(cast(*scene))
    single = cast(*(np.asarray(x, np.float32) for x in scene))
    assert single.dtype == np.float32
    error = np.abs(np.asarray(single) - exact)
    assert np.quantile(error, 0.99) < 5e-6  # eps · 1.4 m / cos; at edges a ray may pass a post
    total = jax.jit(jax.grad(lambda a: jnp.sum(cast(np.float32(origin), a, *maze))))
    by = total(np.float32(angle))
    assert np.all(np.isfinite(by))


def test_a_batch_of_mazes_equals_one_by_one():
    rng = np.random.default_rng(3)
    mazes = [(rng.random((6, *s)) < 0.5).astype(float) for s in ((4, 4), (3, 5))]
    origin, angle = rng.uniform(0.02, 0.5, (6, 2)), rng.uniform(-4, 4, 6)
    together = jax.vmap(cast)(origin, angle, *mazes)
    alone = [cast(o, a, h, v) for o, a, h, v in zip(origin, angle, *mazes)]
    np.testing.assert_array_equal(together, np.array(alone))


def test_crossings_name_the_wall_that_stops_the_ray(scene):
    origin, angle, horizontal, vertical = scene
    found = jax.jit(lambda o, a: crossings(o, a, 8, 7, **LENGTHS))(origin, angle)
    found = jax.tree.map(np.asarray, found)
    assert found.distance.shape == (400, 2 * crossings_within(CELL, WALL, RANGE))
    nearest = np.full(400, RANGE)
    for ray, k in zip(*np.nonzero(found.reached)):
        walls = vertical if found.vertical[k] else horizontal
        index = found.row[ray, k], found.col[ray, k]
        if found.post[ray, k] or walls[index] == 1.0:
            nearest[ray] = min(nearest[ray], found.distance[ray, k])
        if not found.post[ray, k]:
            assert all(0 <= i < n for i, n in zip(index, walls.shape))
    np.testing.assert_allclose(nearest, cast(*scene), rtol=0, atol=1e-15)


@pytest.mark.parametrize(("reach", "count"), [(0.15, 1), (0.167, 1), (0.169, 2), (1.0, 6)])
def test_the_number_of_crossings_follows_range_and_cell(reach, count):
    assert crossings_within(CELL, WALL, reach) == count


def test_traced_lengths_need_the_number_of_crossings():
    def of(max_range, count=None):
        return cast_ray(CENTRE, 0.0, *ONE_CELL, CELL, WALL, max_range, count)

    with pytest.raises(ParameterError, match="Give crossings_per_axis"):
        jax.jit(of)(0.05)
    assert float(jax.jit(of, static_argnums=1)(0.05, 1)) == 0.05


def test_walls_that_do_not_fit_are_refused():
    with pytest.raises(ParameterError, match=r"got \(2, 2\) and \(2, 2\)"):
        cast_ray(CENTRE, 0.0, np.ones((2, 2)), np.ones((2, 2)), **LENGTHS)
