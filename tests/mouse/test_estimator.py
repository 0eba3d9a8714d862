"""The pose filter against the textbook's equations, with derivatives that JAX takes of geometry."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mime.maze import Maze, full_belief, random_maze, unknown_belief
from mime.mouse import estimator
from mime.mouse.body import SENSOR_POSES
from mime.mouse.estimator import Estimate, Trust
from mime.nodes.sensing.ray_casting import cast_ray

CELL, THICK, RANGES = 0.18, 0.012, (0.01, 0.15)
TRUST = Trust()
SENSORS = np.array(SENSOR_POSES)

predict = jax.jit(partial(estimator.predict, trust=TRUST))
correct = jax.jit(
    lambda e, reading, sensor, belief: estimator.correct(
        e, reading, sensor, belief, CELL, THICK, RANGES, TRUST
    )
)
pass_corner = jax.jit(
    lambda e, lost, sensor, along: estimator.pass_corner(
        e, lost, sensor, along, CELL, THICK, TRUST
    ),
    static_argnums=2,
)


def random_covariance(rng, *batch):
    """Symmetric positive definite, of the size that the filter has on its way."""
    root = rng.normal(size=(*batch, 4, 4)) * np.array([2e-3, 2e-3, 1e-2, 1e-2])[:, None]
    return root @ np.swapaxes(root, -1, -2) + np.diag([1e-6, 1e-6, 1e-5, 1e-5])


def kalman(mean, P, H, nu, sigma):
    """The textbook's update of one scalar measurement, in Joseph's form."""
    K = P @ H / (H @ P @ H + sigma**2)
    A = np.eye(4) - np.outer(K, H)
    return mean + K * nu, A @ P @ A.T + sigma**2 * np.outer(K, K)


def ray_length(mean, sensor, horizontal, vertical, longest=RANGES[1]):
    cos, sin = jnp.cos(mean[2]), jnp.sin(mean[2])
    x = mean[0] + sensor[0] * cos - sensor[1] * sin
    y = mean[1] + sensor[0] * sin + sensor[1] * cos
    angle = mean[2] + sensor[2]
    return cast_ray(jnp.stack([x, y]), angle, horizontal, vertical, CELL, THICK, longest)


@pytest.mark.parametrize(
    ("travelled", "turned"), [(1e-3, 0.0), (4e-3, 0.03), (-2e-3, -0.05), (0.0, 0.1)]
)
def test_prediction_follows_the_arc(travelled, turned):
    x, y, heading, k = 0.3, 0.5, 0.7, 1.02
    e = Estimate(jnp.array([x, y, heading, k]), jnp.eye(4) * 1e-6)
    mean = np.asarray(predict(e, travelled, turned, 2e-3).mean)
    ds, middle = k * travelled, heading + turned / 2
    chord = ds * np.sinc(turned / (2 * np.pi))  # exact: 2 r sin(turned/2)
    exact = [x + chord * np.cos(middle), y + chord * np.sin(middle), heading + turned, k]
    # The arc is taken for its chord, which is turned²/24 shorter.
    np.testing.assert_allclose(mean, exact, rtol=0, atol=abs(ds) * turned**2 / 24 + 1e-15)


def test_predicted_covariance_is_f_p_f_plus_q():
    rng = np.random.default_rng(1)
    dt = 2e-3
    jacobian = jax.jit(
        jax.jacfwd(lambda m, s, t: estimator.predict(Estimate(m, jnp.eye(4)), s, t, dt, TRUST).mean)
    )
    for _ in range(20):
        mean = jnp.asarray([*rng.uniform(-3, 3, 3), rng.uniform(0.95, 1.05)])
        travelled, turned = rng.normal(size=2) * [3e-3, 3e-2]
        P = random_covariance(rng)
        F = np.asarray(jacobian(mean, travelled, turned))
        middle, ds = mean[2] + turned / 2, abs(mean[3] * travelled)
        turn = np.array([[np.cos(middle), -np.sin(middle)], [np.sin(middle), np.cos(middle)]])
        Q = np.zeros((4, 4))
        spread = [TRUST.distance_m_per_sqrt_m**2 * ds, TRUST.sideways_m_per_sqrt_m**2 * ds]
        Q[:2, :2] = turn @ np.diag(spread) @ turn.T
        Q[2, 2] = TRUST.heading_rad_per_sqrt_s**2 * dt
        got = predict(Estimate(mean, jnp.asarray(P)), travelled, turned, dt).covariance
        # The same sums in another order: some roundings of the largest entry.
        np.testing.assert_allclose(got, F @ P @ F.T + Q, rtol=0, atol=1e-15 * np.max(P) * 10)


def test_a_range_corrects_by_the_gradient_of_the_ray():
    """All rays of many poses in a known maze; those that are not used have a reason."""
    rng = np.random.default_rng(2)
    maze = random_maze(3, 6, 6)
    walls = tuple(w.astype(float) for w in (maze.horizontal, maze.vertical))
    n = 2000
    cells = rng.integers(0, 6, (n, 2))
    means = np.column_stack(
        [(cells + 0.5) * CELL + rng.uniform(-0.05, 0.05, (n, 2)), rng.uniform(-9, 9, n), np.ones(n)]
    )
    sensors, P = SENSORS[rng.integers(0, 7, n)], random_covariance(rng, n)
    length = jax.jit(jax.vmap(jax.value_and_grad(partial(ray_length)), (0, 0, None, None)))
    d, H = (np.asarray(v) for v in length(jnp.asarray(means), jnp.asarray(sensors), *walls))
    nu = rng.uniform(-3e-3, 3e-3, n)
    after = jax.vmap(correct, (0, 0, 0, None))(
        Estimate(jnp.asarray(means), jnp.asarray(P)),
        jnp.asarray(d + nu),
        jnp.asarray(sensors),
        full_belief(maze),
    )
    after = jax.tree.map(np.asarray, after)
    phi = means[:, 2] + sensors[:, 2]
    cos, sin = np.cos(means[:, 2]), np.sin(means[:, 2])
    hit = means[:, :2] + np.column_stack(
        [
            sensors[:, 0] * cos - sensors[:, 1] * sin + d * np.cos(phi),
            sensors[:, 0] * sin + sensors[:, 1] * cos + d * np.sin(phi),
        ]
    )
    off_post = np.abs(hit - np.round(hit / CELL) * CELL)
    on_post = np.all(off_post <= THICK / 2 + 1e-12, axis=1)
    grazing = np.max(np.abs(H[:, :2]), axis=1) >= 1 / 0.3
    out_of_range = (d >= RANGES[1]) | (d + nu >= RANGES[1]) | (d + nu <= RANGES[0])
    S = np.einsum("ni,nij,nj->n", H, P, H) + TRUST.reading_m**2
    beyond_gate = nu**2 >= TRUST.gate**2 * S
    used = ~(on_post | grazing | out_of_range | beyond_gate)
    assert np.sum(used) > 500
    assert np.sum(on_post) > 5
    assert np.sum(grazing & ~out_of_range) > 5
    expected = [  # in NumPy, each alone
        kalman(means[i], P[i], H[i], nu[i], TRUST.reading_m) if used[i] else (means[i], P[i])
        for i in range(n)
    ]
    # Joseph's form and the short one differ by roundings.
    for found, wanted, atol in zip(after, zip(*expected, strict=True), (1e-13, 1e-16), strict=True):
        np.testing.assert_allclose(found, np.array(wanted), rtol=0, atol=atol)


def facing_north(x=0.27, y=0.09, heading=-np.pi / 2):
    """In the cell (0, 1) of a small maze, whose north wall the front sensor reads."""
    return Estimate(jnp.array([x, y, heading, 1.0]), jnp.diag(jnp.array([1e-5, 1e-5, 1e-4, 1e-4])))


def assert_unchanged(after, before):
    np.testing.assert_array_equal(after.mean, before.mean)
    np.testing.assert_array_equal(after.covariance, before.covariance)


def test_a_known_wall_is_used_and_an_unknown_one_is_not():
    e, front, left = facing_north(), jnp.asarray(SENSORS[0]), jnp.asarray(SENSORS[1])
    known, unknown = full_belief(Maze.empty(3, 3)), unknown_belief(3, 3)
    after = correct(e, 0.09 - 0.006 - 0.055 + 0.002, front, known)
    assert 0.0901 < float(after.mean[1]) < 0.092  # 2 mm further from the north wall
    assert float(after.covariance[1, 1]) < float(e.covariance[1, 1])
    walled = unknown._replace(vertical=unknown.vertical.at[0, 1].set(2))
    reading = (0.084 - 0.026) / np.sin(1.3446) + 0.001
    assert float(correct(e, reading, left, walled).mean[0]) != float(e.mean[0])
    assert_unchanged(correct(e, reading, left, unknown), e)


def test_an_unknown_wall_before_a_known_one_spoils_the_reading():
    e, left = facing_north(x=0.25, y=0.13), jnp.asarray(SENSORS[3])
    reading = 0.084 * np.sqrt(2) + 1e-3  # to the boundary, through the cell's west side
    unknown = unknown_belief(3, 3)
    assert_unchanged(correct(e, reading, left, unknown), e)
    seen = unknown._replace(vertical=unknown.vertical.at[0, 1].set(1))
    assert float(correct(e, reading, left, seen).mean[1]) > 0.13


@pytest.mark.parametrize("reading", [0.005, 0.010, 0.15, 0.08])
def test_a_reading_out_of_range_or_far_from_its_wall_is_not_used(reading):
    e, front = facing_north(), jnp.asarray(SENSORS[0])
    assert_unchanged(correct(e, reading, front, full_belief(Maze.empty(3, 3))), e)


def test_a_post_is_not_used():
    e, front = facing_north(x=0.18, y=0.26), jnp.asarray(SENSORS[0])  # of the corner (1, 1)
    walls = Maze.empty(3, 3)
    reading = 0.26 - 0.186 - 0.055
    length = jax.jit(ray_length)(e.mean, front, walls.horizontal * 1.0, walls.vertical * 1.0)
    assert float(length) == pytest.approx(reading, abs=1e-15)
    assert_unchanged(correct(e, reading + 1e-3, front, full_belief(walls)), e)


@pytest.mark.small("float32")
def test_the_covariance_stays_symmetric_and_positive_definite(precision):
    """Two minutes of a mouse that turns about in one cell and drives to and fro."""
    belief = full_belief(random_maze(3, 6, 6))
    dtype = jnp.dtype(precision)
    steps = 60_000

    @jax.jit
    def run(e):
        def tick(e, i):
            turned = 0.02 * jnp.sin(0.003 * i)
            e = estimator.predict(e, 1e-3 * jnp.sin(0.05 * i), turned, 2e-3, TRUST)
            # Its readings are what it expects: only the covariance matters here.
            mean = e.mean.at[:2].set(jnp.array([0.09, 0.99], dtype))
            sensor = jnp.asarray(SENSORS, dtype)[i.astype(int) % 7]
            walls = ((belief.horizontal == 2) * 1.0, (belief.vertical == 2) * 1.0)
            reading = ray_length(mean, sensor, *walls)
            after = estimator.correct(
                Estimate(mean, e.covariance), reading, sensor, belief, CELL, THICK, RANGES, TRUST
            )
            return after, after.covariance

        return jax.lax.scan(tick, e, jnp.arange(steps, dtype=dtype))[1][::50]

    start = estimator.start(jnp.array([0.09, 0.99, 0.3], dtype), TRUST)
    P = np.asarray(run(start), np.float64)
    scale = np.sqrt(np.einsum("nii->ni", P))
    correlation = P / (scale[:, :, None] * scale[:, None, :])
    eps = float(np.finfo(precision).eps)
    asymmetry = np.max(np.abs(correlation - np.swapaxes(correlation, 1, 2)))
    assert asymmetry < 1e4 * eps  # grows like a random walk of roundings: 250 of 60 000, and more
    assert np.min(np.linalg.eigvalsh(correlation)) > 0


def crossing_along(mean, sensor, along, plane):
    """Where a ray meets the plane of the wall's face, along the way; plain geometry."""
    c, s = jnp.cos(along), jnp.sin(along)
    ahead, right = jnp.stack([c, s]), jnp.stack([-s, c])
    turn = jnp.array([[jnp.cos(mean[2]), -jnp.sin(mean[2])], [jnp.sin(mean[2]), jnp.cos(mean[2])]])
    origin = mean[:2] + turn @ jnp.asarray(sensor[:2])
    ray = jnp.stack([jnp.cos(mean[2] + sensor[2]), jnp.sin(mean[2] + sensor[2])])
    d = (plane - right @ origin) / (right @ ray)
    return ahead @ (origin + d * ray)


@pytest.mark.small("0-left", "1-left", "2-left", "3-left")
@pytest.mark.parametrize("side", [1, 2], ids=["left", "right"])
@pytest.mark.parametrize("heading", range(4))
def test_a_corner_corrects_by_the_gradient_of_where_the_ray_crosses(heading, side):
    rng = np.random.default_rng(heading)
    along = heading * np.pi / 2
    sensor = SENSOR_POSES[side]
    sign = np.sign(sensor[1])
    crossing = jax.jit(jax.value_and_grad(crossing_along), static_argnums=1)
    for _ in range(10):
        x, y = rng.uniform(-0.02, 0.02, 2) + (np.array([2.5, 3.5]) * CELL)
        mean = np.array([x, y, along + rng.uniform(-0.14, 0.14) + 2 * np.pi * rng.integers(3), 1.0])
        across = np.cos(along) * 3.5 - np.sin(along) * 2.5  # of the corridor's middle, in cells
        plane = across * CELL + sign * 0.5 * (CELL - THICK)
        h, _ = crossing(jnp.asarray(mean), sensor, along, plane)
        nu = rng.uniform(-0.01, 0.01)
        corner = np.round((h - THICK / 2) / CELL) * CELL + THICK / 2
        mean[:2] += (corner - nu - float(h)) * np.array([np.cos(along), np.sin(along)])
        H = np.asarray(crossing(jnp.asarray(mean), sensor, along, plane)[1])
        P = random_covariance(rng)
        assert nu**2 < TRUST.gate**2 * (H @ P @ H + TRUST.corner_m**2)
        before = Estimate(jnp.asarray(mean), jnp.asarray(P))
        after = pass_corner(before, jnp.bool_(True), sensor, along)
        expected, covariance = kalman(mean, P, H, nu, TRUST.corner_m)
        np.testing.assert_allclose(after.mean, expected, rtol=0, atol=1e-13)
        np.testing.assert_allclose(after.covariance, covariance, rtol=0, atol=1e-16)


def comb(cells=24):
    """A long corridor in the middle row, beside which every second wall stands."""
    horizontal = np.zeros((4, cells), bool)
    horizontal[[0, 3]] = True
    horizontal[1:3, ::2] = True
    vertical = np.zeros((3, cells + 1), bool)
    vertical[:, [0, -1]] = True
    return horizontal, vertical


@pytest.mark.small("0-left", "1-right", "3-left")
@pytest.mark.parametrize("side", [1, 2], ids=["left", "right"])
@pytest.mark.parametrize("quarter_turns", range(4))
def test_where_a_ray_loses_a_wall_the_place_along_is_pulled_to_the_truth(quarter_turns, side):
    """The moment is found by casting rays in the maze, turned to all four sides."""
    maze = Maze(*comb(6), start=(1, 0), start_heading=0, goals=[(1, 5)]).rotated(quarter_turns)
    along = quarter_turns * np.pi / 2
    ahead = np.array([np.cos(along), np.sin(along)])
    x0, y0 = maze.cell_centre_m(maze.start)
    way = np.linspace(0.0, 0.3, 3001)
    poses = np.column_stack(
        [x0 + way * ahead[0], y0 + way * ahead[1], np.full_like(way, along), np.ones_like(way)]
    )
    walls = maze.horizontal * 1.0, maze.vertical * 1.0
    lengths = jax.jit(jax.vmap(ray_length, (0, None, None, None)))
    d = np.asarray(lengths(jnp.asarray(poses), jnp.asarray(SENSORS[side]), *walls))
    lost = np.flatnonzero((d[:-1] < 0.07) & (d[1:] > 0.1))
    assert len(lost) == 1
    truth = poses[lost[0]]
    P, off = np.eye(4) * 1e-10, 0.008
    P[:2, :2] += 1e-4 * np.outer(ahead, ahead)  # all is known but the place along
    e = Estimate(jnp.asarray(truth).at[:2].add(off * ahead), jnp.asarray(P))
    after = pass_corner(e, jnp.bool_(True), SENSOR_POSES[side], along)
    error = ahead @ (np.asarray(after.mean) - truth)[:2]
    # What is left of the error is sigma²/(P + sigma²) of it; the moment is known to 0.1 mm.
    left = off * TRUST.corner_m**2 / (1e-4 + TRUST.corner_m**2)
    assert error == pytest.approx(left, abs=1.5e-4)
    assert_unchanged(pass_corner(e, jnp.bool_(False), SENSOR_POSES[side], along), e)


def test_a_corner_passed_askew_is_not_used():
    e = Estimate(jnp.array([0.45, 0.27, 0.16, 1.0]), jnp.eye(4) * 1e-4)
    assert_unchanged(pass_corner(e, jnp.bool_(True), SENSOR_POSES[1], 0.0), e)


def test_the_scale_is_learnt_from_the_posts_of_a_corridor():
    """Encoders that read 2 % short: k goes to 1.02, and the place along the corridor is right."""
    horizontal, vertical = (walls * 1.0 for walls in comb(24))
    maze = Maze(*comb(24), start=(1, 0), start_heading=0, goals=[(1, 23)])
    belief = full_belief(maze)
    truth, dt, v = 1.02, 2e-3, 0.5
    sensors = jnp.asarray(SENSORS)
    steps = int(22.5 * CELL / (v * dt))

    @jax.jit
    def run(e):
        def tick(carry, i):
            e, x, beside = carry
            x = x + v * dt
            pose = jnp.stack([x, jnp.asarray(1.5 * CELL), jnp.zeros_like(x)])
            readings = jax.vmap(lambda s: ray_length(pose, s, horizontal, vertical))(sensors)
            e = estimator.predict(e, v * dt / truth, 0.0, dt, TRUST)
            ray = i % 7
            e = estimator.correct(
                e, readings[ray], sensors[ray], belief, CELL, THICK, RANGES, TRUST
            )
            for which, side in enumerate((1, 2)):
                lost = (beside[which] > 0) & (readings[side] > 0.1)
                e = estimator.pass_corner(e, lost, SENSOR_POSES[side], 0.0, CELL, THICK, TRUST)
            return (e, x, (readings[1:3] < 0.08) * 1.0), (e.mean, e.covariance, x)

        return jax.lax.scan(tick, (e, 0.5 * CELL, jnp.zeros(2)), jnp.arange(steps))[1]

    start = estimator.start(jnp.array([0.5 * CELL, 1.5 * CELL, 0.0]), TRUST)
    means, covariances, x = (np.asarray(v) for v in run(start))
    sigma = np.sqrt(covariances[-1, 3, 3])
    assert sigma < 0.25 * TRUST.scale
    assert means[-1, 3] == pytest.approx(truth, abs=sigma)
    assert means[-1, 3] == pytest.approx(truth, abs=0.003)
    # Between two posts, 0.36 m apart, a scale not yet learnt loses at most 2 % of it.
    assert np.max(np.abs(means[:, 0] - x)) < 0.02 * 2 * 2 * CELL
    assert np.max(np.abs(means[-500:, 0] - x[-500:])) < 0.003
    assert np.max(np.abs(means[:, 1] - 1.5 * CELL)) < 0.001
