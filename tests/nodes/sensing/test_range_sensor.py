"""The range sensor's model: each option against its definition, gradients, batches, refusals."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compiling import QUICK
from mime.core.problem import ParameterError
from mime.mouse.body import SENSOR_POSES
from mime.nodes.sensing.infrared import adc_from_distance
from mime.nodes.sensing.range_sensor import RangeSensorNode
from mime.nodes.sensing.ray_casting import crossings_within
from mime.running.graph import GraphManager
from sizes import sized

MAZE = (np.ones((4, 3)), np.ones((3, 4)))
IR = {"ir_a_m": 1.214233, "ir_b": 0.023794, "ir_c_counts": 284.688506}
POSE = jnp.array([0.27, 0.27, 0.1])
AHEAD = [(0.0, 0.0, 0.0)]


def sensor(**options):
    return RangeSensorNode("range", 1e-3, *MAZE, **({"sensor_poses_body": SENSOR_POSES} | options))


@jax.jit
def scan(node, poses):
    def step(state, pose):
        state = node.update(state, {"pose_world": pose}, 1e-3)
        return state, node.compute_boundary_fluxes(state, {"pose_world": pose}, 1e-3)

    return jax.lax.scan(step, node.initial_state(), poses)[1]


def measure(node, poses):
    return jax.tree.map(np.asarray, scan(node, jnp.asarray(poses)))


@pytest.mark.soak("test_every_node.py has an example of each node")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"noise_m": 1e-3, "sensor_poses_body": AHEAD},
        {"delay_samples": 2, "hold_steps": 3, "bias_m": 0.01, "adc_bits": 8},
        {**IR, "noise_m": 1e-3, "noise_counts": 2.0, "adc_bits": 12, "beam_half_angle_rad": 0.1},
    ],
)
def test_metadata_is_whole_and_runs(options):
    node = sensor(**options)
    assert node.validate_mime_consistency() == []
    fluxes = measure(node, np.tile(POSE, (5, 1)))
    assert fluxes.keys() == node.boundary_flux_spec().keys()
    assert all(np.all(np.isfinite(x)) for x in fluxes.values())


def test_the_ideal_sensor_reads_the_true_distance_within_its_range():
    fluxes = measure(sensor(), np.random.default_rng(0).uniform(0, 0.54, (200, 3)))
    np.testing.assert_array_equal(fluxes["distance"], fluxes["reading"])
    assert fluxes["reading"].min() == 0.01
    assert fluxes["reading"].max() <= 0.15


def test_left_and_right_see_the_same_in_a_symmetric_place():
    d = measure(sensor(), [(0.27, 0.27, -np.pi / 2)])["distance"][0]
    np.testing.assert_allclose(d[[1, 3, 5]], d[[2, 4, 6]], atol=1e-15)
    assert d[0] == pytest.approx(0.084 - 0.055, abs=1e-15)


def test_noise_has_its_deviation_follows_its_seed_and_is_independent_by_sensor():
    poses = np.tile(POSE, (5000, 1))
    noisy = [measure(sensor(noise_m=1e-3, seed=s), poses) for s in (1, 1, 2)]
    error = noisy[0]["reading"] - noisy[0]["distance"]
    np.testing.assert_allclose(np.std(error, axis=0), 1e-3, rtol=0.04)  # 4 / sqrt(2 · 5000)
    correlation = np.corrcoef(error.T) - np.eye(7)
    assert np.max(np.abs(correlation)) < 0.06  # 4 / sqrt(5000)
    lagged = np.mean(error[1:] * error[:-1], axis=0) / 1e-6
    assert np.max(np.abs(lagged)) < 0.06
    np.testing.assert_array_equal(noisy[0]["reading"], noisy[1]["reading"])
    assert not np.array_equal(noisy[0]["reading"], noisy[2]["reading"])


@pytest.mark.soak("noise in metres has its deviation above")
def test_noise_in_counts_has_its_deviation():
    fluxes = measure(sensor(**IR, noise_counts=5.0), np.tile(POSE, (5000, 1)))
    calibration = tuple(IR.values())
    error = fluxes["adc"] - np.asarray(adc_from_distance(fluxes["distance"], *calibration))
    np.testing.assert_allclose(np.std(error, axis=0), 5.0, rtol=0.04)


def test_bias_is_added_per_sensor_or_to_all():
    bias = np.linspace(-2e-3, 2e-3, 7)
    for given, expected in ((bias, bias), (1e-3, np.full(7, 1e-3))):
        fluxes = measure(sensor(bias_m=given), [POSE])
        np.testing.assert_allclose(
            fluxes["reading"][0] - fluxes["distance"][0], expected, atol=1e-16
        )


@pytest.mark.small("4")
@pytest.mark.parametrize("delay", [1, 4])
def test_delay_is_a_whole_number_of_samples(delay):
    poses = np.random.default_rng(1).uniform(0.2, 0.34, (30, 3))
    fluxes = measure(sensor(delay_samples=delay), poses)
    np.testing.assert_array_equal(fluxes["reading"][delay:], fluxes["distance"][:-delay])
    assert np.all(fluxes["reading"][:delay] == 0.15)  # nothing seen yet


def test_a_held_reading_is_the_last_sample_and_delay_counts_samples():
    poses = np.random.default_rng(2).uniform(0.2, 0.34, (30, 3))
    fluxes = measure(sensor(hold_steps=5), poses)
    sampled = fluxes["distance"][::5]
    np.testing.assert_array_equal(fluxes["reading"], np.repeat(sampled, 5, axis=0))
    late = measure(sensor(hold_steps=5, delay_samples=1), poses)["reading"]
    np.testing.assert_array_equal(late[5:], np.repeat(sampled[:-1], 5, axis=0))


def test_a_converter_without_infrared_has_even_steps():
    poses = np.random.default_rng(3).uniform(0.2, 0.34, (200, 3))
    fluxes = measure(sensor(adc_bits=6, max_range_m=0.3), poses)
    step = 0.3 / 63
    ticks = (fluxes["reading"] / step)[fluxes["reading"] > 0.01]  # the rest is clipped to 10 mm
    np.testing.assert_allclose(ticks, np.round(ticks), atol=1e-12)
    assert np.max(np.abs(fluxes["reading"] - fluxes["distance"])) <= step / 2 + 1e-15


def test_counts_are_whole_and_stop_at_full_scale():
    fluxes = measure(sensor(**IR, adc_bits=9), np.random.default_rng(4).uniform(0.2, 0.34, (99, 3)))
    assert np.array_equal(fluxes["adc"], np.round(fluxes["adc"]))
    assert fluxes["adc"].max() == 511.0


def test_a_beam_on_a_flat_wall_has_its_closed_form_and_grows_with_its_width():
    """Mean of cos² over the cone: d / sqrt((1 + sin(2 beta) / 2 beta) / 2)."""
    widths, readings = (0.01, 0.1, 0.3, 0.6), []
    for beta in widths:
        node = sensor(sensor_poses_body=AHEAD, beam_half_angle_rad=beta, beam_rays=9)
        fluxes = measure(node, [(0.27, 0.27, 0.0)])
        assert fluxes["distance"][0, 0] == pytest.approx(0.084, abs=1e-15)
        readings.append(fluxes["reading"][0, 0])
    beta = np.array(widths)
    exact = 0.084 / np.sqrt((1 + np.sin(2 * beta) / (2 * beta)) / 2)
    np.testing.assert_allclose(readings, exact, rtol=1e-12)  # Gauss-Legendre of nine rays
    assert np.all(np.diff(readings) > 0)


def test_a_beam_past_an_edge_reads_between_near_and_far():
    open_maze = (np.zeros((2, 2)), np.zeros((1, 3)))  # posts only
    pose = [(0.10, 0.16, 0.0)]  # the ray just misses the post at (0.18, 0.18)
    readings = [
        measure(
            RangeSensorNode("r", 1e-3, *open_maze, AHEAD, beam_half_angle_rad=beta, beam_rays=15),
            pose,
        )["reading"][0, 0]
        for beta in (0.1, 0.3, 0.5)
    ]
    assert readings[0] == pytest.approx(0.15, abs=1e-15)
    assert 0.074 < readings[2] < 0.15
    assert 0.074 < readings[1] < 0.15


def test_gradients_pass_quantisation_only_straight_through():
    @partial(jax.jit, compiler_options=QUICK)
    def slope(pose, node):
        return jax.grad(read)(pose, node)

    def read(pose, node):
        return jnp.sum(node.compute_boundary_fluxes({}, {"pose_world": pose}, 1e-3)["reading"])

    true = slope(POSE, sensor())
    counts = ({"adc_bits": 10}, {"adc_bits": 12, **IR})
    for options in sized(counts, small=counts[1:]):
        assert np.all(np.asarray(slope(POSE, sensor(**options))) == 0.0)
        straight = slope(POSE, sensor(**options, straight_through=True))
        # Infrared: the slope of the inverse is taken at the rounded count.
        np.testing.assert_allclose(straight, true, rtol=2e-2)


def test_single_precision_stays_single():
    single = lambda tree: jax.tree.map(  # noqa: E731
        lambda x: np.float32(x) if jnp.issubdtype(x.dtype, jnp.floating) else x, tree
    )
    for options in ({}, {"noise_m": 1e-3, "delay_samples": 1, "beam_half_angle_rad": 0.1, **IR}):
        node = sensor(**options)
        pose = {"pose_world": np.float32(POSE)}
        state = single(node).update(single(node.initial_state()), pose, 1e-3)
        fluxes = single(node).compute_boundary_fluxes(state, pose, 1e-3)
        assert {x.dtype for x in fluxes.values()} == {jnp.dtype("float32")}
        exact = node.compute_boundary_fluxes(node.initial_state(), {"pose_world": POSE}, 1e-3)
        np.testing.assert_allclose(fluxes["distance"], exact["distance"], atol=1e-6)


@pytest.mark.soak("tests/running has batches with parameters of their own")
def test_a_batch_holds_different_mazes_and_ranges():
    rng = np.random.default_rng(5)
    walls = [(rng.random((3, *m.shape)) < 0.5).astype(float) for m in MAZE]
    reach = np.linspace(0.05, 0.5, 3)
    node = sensor(crossings_per_axis=crossings_within(0.18, 0.012, 0.5))

    def read(horizontal, vertical, reach):
        one = node.with_params(
            horizontal_walls=horizontal, vertical_walls=vertical, max_range_m=reach
        )
        return one.compute_boundary_fluxes({}, {"pose_world": POSE}, 1e-3)["reading"]

    together = jax.vmap(read)(*walls, reach)
    for i in range(3):
        alone = RangeSensorNode(
            "r", 1e-3, walls[0][i], walls[1][i], SENSOR_POSES, max_range_m=reach[i]
        )
        expected = alone.compute_boundary_fluxes({}, {"pose_world": POSE}, 1e-3)["reading"]
        np.testing.assert_allclose(together[i], expected, atol=1e-15)


def test_it_runs_in_a_graph():
    graph = GraphManager()
    graph.add_node(sensor(noise_m=1e-3, delay_samples=1))
    graph.add_external_input("range", "pose_world")
    simulation = graph.compile()
    _, recorded = simulation.rollout(
        simulation.init_state(), {"range": {"pose_world": POSE}}, steps=20
    )
    assert recorded["range"]["samples"].shape == (20, 2, 7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sensor_poses_body": [0.0, 0.0, 0.0]}, r"must have shape \(S, 3\), got \(3,\)"),
        ({"horizontal_walls": np.ones((3, 3))}, r"got \(3, 3\) and \(3, 4\)"),
        ({"horizontal_walls": 2 * MAZE[0]}, "horizontal_walls must be >= 0 and <= 1"),
        ({"bias_m": np.zeros(3)}, r"one per sensor, shape \(7,\), got shape \(3,\)"),
        ({"ir_a_m": 1.2}, "ir_b is missing. Give all of ir_a_m, ir_b, ir_c_counts"),
        ({"noise_counts": 1.0}, "noise_counts belongs to an infrared sensor"),
        ({**IR, "ir_a_m": 0.1}, "max_range_m must be below ir_a_m"),
        ({"min_range_m": 0.2}, "min_range_m must be below max_range_m"),
        ({"cell_size_m": 0.01}, "wall_thickness_m must be below cell_size_m"),
        ({"max_range_m": "far"}, "max_range_m must be a number"),
        ({"adc_bits": 0}, "adc_bits must be 1 to 24, got 0"),
        ({"hold_steps": 0}, "hold_steps must be >= 1, got 0"),
        ({"max_range_m": 1.0, "crossings_per_axis": 1}, "reaches 6 wall lines"),
    ],
)
def test_what_no_sensor_can_have_is_refused(options, message):
    sound = dict(zip(("horizontal_walls", "vertical_walls"), MAZE, strict=True))
    with pytest.raises(ParameterError, match=message):
        RangeSensorNode("range", 1e-3, **(sound | {"sensor_poses_body": SENSOR_POSES} | options))


def test_a_longer_range_than_the_node_was_built_for_is_refused():
    with pytest.raises(ParameterError, match="Build the node again"):
        sensor().with_params(max_range_m=1.0)
