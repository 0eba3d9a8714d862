"""Walls from readings: turned walls, degenerate points, the front wall."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mime.nodes.sensing.wall_estimate import estimate_wall, front_wall

BACK, FRONT = (-0.0256, 0.03, 1.48353), (0.035, 0.026, 1.3446)
LENGTHS = {"cell_size_m": 0.18, "wall_thickness_m": 0.012, "min_range_m": 0.01, "max_range_m": 0.15}


@pytest.mark.parametrize("yaw", [-0.3, 0.0, 0.2])
def test_a_wall_on_the_right_is_found_from_its_distance_and_yaw(yaw):
    """Ray to the line n . p = 0.07 in closed form; n is the wall's normal in the body's axes."""
    n = np.array([np.sin(yaw), np.cos(yaw)])
    readings = [(0.07 - n @ [x, y]) / (n @ [np.cos(t), np.sin(t)]) for x, y, t in (BACK, FRONT)]
    wall = jax.jit(estimate_wall)(BACK, FRONT, *readings)
    assert float(wall.distance) == pytest.approx(0.07, abs=1e-15)
    assert float(wall.yaw) == pytest.approx(yaw, abs=1e-14)


def test_gradients_agree_with_central_differences_and_are_finite_for_equal_points():
    @jax.jit
    def of(d, first=BACK, second=FRONT):
        return jnp.stack(estimate_wall(first, second, d[0], d[1]))

    d, h = np.array([0.05, 0.06]), 1e-6
    theirs = np.stack(
        [(np.asarray(of(d + e)) - np.asarray(of(d - e))) / (2 * h) for e in h * np.eye(2)], axis=1
    )
    slopes = jax.jit(jax.jacobian(of))
    np.testing.assert_allclose(slopes(d), theirs, rtol=1e-7)
    for pose, reading in ((BACK, 0.05), ((0.0, 0.0, 0.0), 0.0)):  # one sensor twice
        same = np.full(2, reading)
        assert float(of(same, pose, pose)[0]) == 0.0
        assert np.all(np.isfinite(slopes(same, pose, pose)))


@pytest.mark.parametrize("cells", [0, 1])
@pytest.mark.parametrize("offset", [-0.03, 0.0, 0.06])
@pytest.mark.parametrize("e", [-0.2, 0.0, 0.1])
def test_the_front_wall_gives_the_place_along_the_cell(cells, offset, e):
    D = 0.084 - offset + 0.18 * cells
    reading = D / np.cos(e) - 0.055
    found = front_wall((0.055, 0.0, 0.0), reading, **LENGTHS, heading_error_rad=e)
    assert float(found.axle_to_face) == pytest.approx(D, abs=1e-15)
    assert float(found.offset) == pytest.approx(offset, abs=1e-14)
    assert bool(found.valid) == (0.01 < reading < 0.15)


@pytest.mark.parametrize("reading", [0.01, 0.15])
def test_a_clipped_reading_is_not_valid(reading):
    assert not front_wall((0.055, 0.0, 0.0), reading, **LENGTHS).valid
