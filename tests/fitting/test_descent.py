"""The descent of many starts, where most of what is unknown cannot be known."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from mime.fitting import bodies
from mime.fitting.solve import Prior, levenberg_marquardt

UPPER = bodies.Body(1.0, np.array([0.12, 0.0, 0.0]), np.diag([0.001, 0.008, 0.008]))
LOWER = bodies.Body(0.6, np.array([0.1, 0.0, 0.0]), np.diag([0.001, 0.004, 0.004]))
SIZES = [bodies.size_of(body) for body in (UPPER, LOWER)]
NOISE = 1e-4


def coordinates(body, size):
    m, com, diagonal, above = np.split(bodies.factors(body), [1, 4, 7])
    return np.concatenate([np.log(m), com / size, np.log(diagonal), above])


def told(z):
    """The six sums that a planar arm of two links tells of twenty numbers, each in its own size."""
    links = []
    for part, size in zip(jnp.split(z, 2), SIZES, strict=True):
        m, com, diagonal, above = jnp.split(part, [1, 4, 7])
        factors = jnp.concatenate([jnp.exp(m), size * com, jnp.exp(diagonal), above])
        links.append(bodies.moments(bodies.of_factors(factors, size)))
    u, l = links
    first = jnp.stack([u[1] + 0.25 * l[0], u[3], l[1], l[3]]) / jnp.array([0.27, 0.27, 0.06, 0.06])
    second = jnp.stack([u[7] + 0.25**2 * l[0], l[7]]) / jnp.array([0.06, 0.01])
    return jnp.concatenate([first, second])


def test_every_start_arrives_though_six_sums_are_known_of_twenty_numbers():
    """The least is 0. With Marquardt's own scale a quarter of these forty stay far above it."""
    with jax.enable_x64(True):
        true = np.concatenate(
            [coordinates(b, size) for b, size in zip((UPPER, LOWER), SIZES, strict=True)]
        )
        linearised = jax.jit(jax.vmap(lambda z: (told(z), jax.jacfwd(told)(z))))
        starts = true + np.random.default_rng(0).uniform(-0.5, 0.5, (40, 20))
        wanted = np.asarray(linearised(0 * starts + true)[0])

        def normal(z):
            y, J = map(np.asarray, linearised(z))
            r = y - wanted
            slope = np.einsum("bki,bk->bi", J, r)
            return {"told": (np.sum(r**2, axis=1), slope, np.einsum("bki,bkj->bij", J, J))}

        everywhere = np.full(20, np.inf)
        prior = Prior(true, np.full(20, 100.0), -everywhere, everywhere, np.zeros(20, bool))
        _, cost, _ = levenberg_marquardt(normal, starts, {"told": NOISE}, prior, 60)
    assert np.max(cost) < 0.01


def valleys(z):
    """Two minima, at (1, 0) and, higher, at (-1, 0.1); residuals and their slopes."""
    x, y = z[:, 0], z[:, 1]
    r = np.stack([x**2 - 1.0, 0.3 * (x - 1.0) + y, 2.0 * y], axis=1)
    J = np.zeros((len(z), 3, 2))
    J[:, 0, 0], J[:, 1, 0], J[:, 1, 1], J[:, 2, 1] = 2.0 * x, 0.3, 1.0, 2.0
    slope = np.einsum("bki,bk->bi", J, r)
    return {"told": (np.sum(r**2, axis=1), slope, np.einsum("bki,bkj->bij", J, J))}


def test_starts_that_meet_go_on_as_one_and_end_where_each_by_itself_does():
    random, counts = np.random.default_rng(1), []
    starts = random.uniform(-2.0, 2.0, (30, 2))
    everywhere = np.full(2, np.inf)
    prior = Prior(np.zeros(2), np.full(2, 1e3), -everywhere, everywhere, np.zeros(2, bool))

    def counted(z):
        counts.append(len(z))
        return valleys(z)

    options = starts, {"told": 0.01}, prior, 60
    expected, costs, all_of_them = levenberg_marquardt(valleys, *options)
    ends, found, fewer = levenberg_marquardt(counted, *options, apart=True)
    assert fewer == sum(counts) < 0.5 * all_of_them
    assert counts[-1] <= 2  # one in each valley
    # A step that gains less than 1e-7 of the cost ends them; the least is 0 in one valley.
    np.testing.assert_allclose(ends, expected, rtol=0, atol=1e-3)
    assert np.array_equal(found < 1.0, costs < 1.0)
    assert 3 < np.count_nonzero(found < 1.0) < 27


def test_equal_starts_are_simulated_once():
    """As one start by itself, wherever it is among the others."""
    rows = []

    def counted(z):
        rows.append(len(z))
        return valleys(z)

    everywhere = np.full(2, np.inf)
    prior = Prior(np.zeros(2), np.full(2, 100.0), -everywhere, everywhere, np.zeros(2, bool))
    one, other = np.array([0.8, 0.3]), np.array([-1.3, 0.2])
    options = {"told": 1.0}, prior, 60
    alone, cost, _ = levenberg_marquardt(valleys, one[None], *options)
    starts = np.array([other, one, one, other, one])
    ends, costs, simulated = levenberg_marquardt(counted, starts, *options, apart=True)
    assert max(rows) == rows[0] == 2
    assert simulated == sum(rows)
    np.testing.assert_array_equal(ends[[1, 2, 4]], np.repeat(alone, 3, axis=0))
    np.testing.assert_array_equal(costs[[1, 2, 4]], np.repeat(cost, 3))


def test_a_step_that_promises_nothing_ends_a_descent_on_a_rough_cost():
    """Where a cost has teeth, as that of dry friction, no step holds what slopes promise."""

    def rough(z):
        squares, *slopes = valleys(z)["told"]
        return {"told": (squares + 1.0 + 0.01 * np.sin(1e6 * z[:, 0]), *slopes)}

    everywhere = np.full(2, np.inf)
    prior = Prior(np.zeros(2), np.full(2, 100.0), -everywhere, everywhere, np.zeros(2, bool))
    for start in ([0.8, 0.3], [1.7, -0.4], [1.1, 0.05]):
        given = np.array([start]), {"told": 1.0}, prior, 60
        _, cost, simulated = levenberg_marquardt(rough, *given)
        assert cost < 1.01 + 1e-3  # teeth of 0.01, and the anchor's 1e-4
        assert simulated <= 12  # damping eight times as large each time ends after 20


def test_a_model_of_many_logs_has_the_same_sums_start_by_start_and_all_at_once():
    from fitting.test_groups import COLUMNS, SIMULATION, UNKNOWNS, log
    from mime.fitting.coordinates import coordinates
    from mime.fitting.experiment import experiment
    from mime.fitting.model import Model

    with jax.enable_x64(True):
        read = [experiment(SIMULATION, log(seed, 50), COLUMNS) for seed in range(8)]
        model = Model(SIMULATION, tuple(read), coordinates(SIMULATION, UNKNOWNS, read), 4)
        assert model.is_wide
        assert not dataclasses.replace(model, experiments=tuple(read[:7])).is_wide
        z = np.array([c.z(c.start) for c in model.coordinates]) + np.array([[0.1], [-0.1]])
        found = model.normal(z, model.counted(0.5))
        expected = model.programs.normal(z, {**model.data, "counted": model.counted(0.5)})
    for field, sums in found.items():
        for one, other in zip(sums, expected[field], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9)  # sums in another order
