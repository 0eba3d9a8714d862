"""Tool paths: splines against SciPy, joint angles against forward kinematics, every refusal."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.interpolate

from compiling import QUICK
from mime.control.kinematics import frame_pose, parse_urdf
from mime.control.spline import second_derivatives, spline_at
from mime.core.pose import quat_from_axis_angle
from mime.core.problem import ParameterError
from mime.models import model_path
from mime.nodes.control.tool_path import ToolPathNode
from mime.scenarios import ScenarioError, load_scenario

TREE = parse_urdf(model_path("desktop_arm_6axis"))
POSTURE = (0.0, 0.3, 0.2, 0.0, 1.0708, 0.0)
CIRCLE = {"centre_m": [0.0, -0.34, 0.32], "radius_m": 0.06, "normal": [0.0, -1.0, 0.0]}
MOST = 400
CORNERS = [[0.0, -0.34, 0.32], [0.05, -0.34, 0.32], [0.05, -0.30, 0.36]]


def node(**options):
    values = {"tree": TREE, "end_effector_link_name": "tool", "posture_rad": POSTURE}
    values |= {"speed_m_per_s": 0.1, "acceleration_m_per_s2": 0.5, "jerk_m_per_s3": 5.0}
    return ToolPathNode("path", 1e-3, **{**values, **options})


@pytest.fixture(scope="module")
def circle():
    return node(circle=CIRCLE)


@pytest.fixture(scope="module")
def polygon():
    return node(waypoints_m=CORNERS)


@eqx.filter_jit(compiler_options=QUICK)
def _targets(path, times):
    def at(t):
        state = {"elapsed_time": t, "clock_remainder": jnp.zeros_like(t)}
        return path.compute_boundary_fluxes(state, {}, 1e-3)

    return jax.vmap(at)(times)


def targets(path, times):
    """Always of so many times: one program a path."""
    padded = np.resize(np.asarray(times), MOST)
    return {name: y[: len(times)] for name, y in _targets(path, jnp.asarray(padded)).items()}


def test_a_spline_is_scipys():
    points = np.random.default_rng(0).normal(size=(9, 3))
    scipys = scipy.interpolate.CubicSpline(np.linspace(0, 1, 9), points)
    M = jnp.asarray(second_derivatives(points))
    u = np.linspace(0, 1, 101)
    found = jax.jit(jax.vmap(lambda x: spline_at(jnp.asarray(points), M, x)))(u)
    for order, values in enumerate(found):
        np.testing.assert_allclose(values, scipys(u, order), atol=1e-9)


def test_the_joint_angles_lead_the_tool_along_the_circle(circle):
    duration = float(circle.duration)
    found = targets(circle, np.linspace(0.0, duration, MOST))
    where = jax.jit(jax.vmap(lambda q: frame_pose(TREE, q, "tool")), compiler_options=QUICK)
    tool = where(found["desired_joint_angles"])
    # Between knots splines are off by 5/384 h⁴ times a fourth derivative: less than 1 µm.
    np.testing.assert_allclose(tool, found["desired_tool_pose_world"], atol=5e-7)
    off = np.asarray(tool)[:, :3] - CIRCLE["centre_m"]
    np.testing.assert_allclose(np.linalg.norm(off, axis=1), 0.06, atol=5e-7)
    np.testing.assert_allclose(off[:, 1], 0.0, atol=5e-7)
    # Its speed is the one given, from rest to rest: length/v + v/a + a/j.
    assert duration == pytest.approx(2 * np.pi * 0.06 / 0.1 + 0.1 / 0.5 + 0.5 / 5.0, rel=1e-12)
    speed = np.linalg.norm(np.gradient(off, duration / (MOST - 1), axis=0), axis=1)
    assert speed.max() == pytest.approx(0.1, rel=1e-3)
    np.testing.assert_allclose(found["desired_joint_velocities"][0], 0.0, atol=1e-15)
    np.testing.assert_allclose(found["desired_joint_velocities"][-1], 0.0, atol=1e-9)


def test_velocities_and_accelerations_are_the_derivatives(polygon):
    times = np.linspace(0.1, float(polygon.duration) - 0.1, 50)
    h = 1e-5
    before, at, after = (targets(polygon, times + d) for d in (-h, 0.0, h))
    for value, rate, tolerance in (
        ("desired_joint_angles", "desired_joint_velocities", 1e-7),
        ("desired_joint_velocities", "desired_joint_accelerations", 1e-4),  # jerk is not smooth
    ):
        slope = (np.asarray(after[value]) - np.asarray(before[value])) / (2 * h)
        np.testing.assert_allclose(at[rate], slope, atol=tolerance)


def test_a_polygon_is_straight_and_stops_in_its_corners(polygon):
    leg = polygon.path.profiles(0.1, 0.5, 5.0).segment_times.sum(axis=1)
    at_corner = targets(polygon, [0.0, float(leg[0]), float(leg.sum()), 100.0])
    corners = np.asarray(at_corner["desired_tool_pose_world"])[:, :3]
    np.testing.assert_allclose(corners, [*CORNERS, CORNERS[-1]], atol=1e-9)
    np.testing.assert_allclose(at_corner["desired_joint_velocities"], 0.0, atol=1e-9)
    on_line = targets(polygon, np.linspace(0.0, float(leg[0]), 30))["desired_tool_pose_world"]
    np.testing.assert_allclose(on_line[:, 1:3], np.tile([-0.34, 0.32], (30, 1)), atol=1e-9)


def test_a_base_and_a_tool_of_its_own_are_taken_into_account():
    turn = np.asarray(quat_from_axis_angle(np.array([0.0, 0.0, 1.0]), np.pi / 2))
    base = [1.0, 0.0, 0.5, *turn]
    offset = [0.0, 0.0, 0.02, 1.0, 0.0, 0.0, 0.0]
    corners = [[1.34, 0.0, 0.80], [1.34, 0.04, 0.80]]
    path = node(waypoints_m=corners, base_pose_world=base, end_effector_offset_in_link=offset)
    q = path.first_joint_angles
    # Turned by 90 degrees, the arm that faces -y faces +x; the tool points down by 20 mm.
    np.testing.assert_allclose(frame_pose(TREE, q, "tool")[:3], [0.0, -0.34, 0.32], atol=1e-6)


def test_single_precision_follows_the_same_path(circle):
    with jax.enable_x64(False):
        single = node(circle=CIRCLE)
        found = targets(single, np.linspace(0.0, 4.0, 50).astype(np.float32))
        assert found["desired_joint_angles"].dtype == np.float32
    expected = targets(circle, np.linspace(0.0, 4.0, 50))
    np.testing.assert_allclose(
        found["desired_joint_angles"], expected["desired_joint_angles"], atol=3e-6
    )


def test_the_time_on_the_path_has_the_derivative_of_the_closed_form(circle):
    slope = jax.jit(jax.grad(lambda v: circle.with_params(speed_m_per_s=v).duration))(0.1)
    assert slope == pytest.approx(-2 * np.pi * 0.06 / 0.1**2 + 1 / 0.5, rel=1e-9)


def test_the_node_is_consistent(circle):
    assert circle.validate_mime_consistency() == []


@pytest.mark.soak("test_inverse_kinematics.py has position alone")
def test_an_arm_of_three_joints_follows_by_position_alone():
    arm = parse_urdf(model_path("planar_arm_3link"))
    start = np.asarray(frame_pose(arm, np.array([0.3, 0.4, 0.2]), "tool"))[:3]
    end = start + np.array([0.0, 0.0, -0.05])
    path = ToolPathNode(
        "path",
        1e-3,
        arm,
        "tool",
        (0.3, 0.4, 0.2),
        0.1,
        waypoints_m=[start, end],
        position_only=True,
    )
    tool = frame_pose(arm, path.path.points[0, -1, 3:], "tool")
    np.testing.assert_allclose(tool[:3], end, atol=2e-6)


REFUSALS = {
    "out of reach": (
        {"waypoints_m": [*CORNERS, [0.0, -0.9, 0.3]]},
        r"is out of reach at waypoints_m\[3\] = \[0.0, -0.9, 0.3\] m: .* comes within \d+ mm and",
    ),
    "out of reach between": (
        {"waypoints_m": [[0.3, 0.0, 0.35], [-0.3, 0.0, 0.35]]},
        r"out of reach at waypoints_m\[0\] to waypoints_m\[1\], after \d+ mm = ",
    ),
    "circle out of reach": (
        {"circle": {**CIRCLE, "radius_m": 0.5}},
        r"circle is out of reach at 0 degrees = \[0.5, -0.34, 0.32\] m",
    ),
    "too fast": (
        {
            "waypoints_m": CORNERS,
            "speed_m_per_s": 0.6,
            "acceleration_m_per_s2": 20.0,
            "jerk_m_per_s3": 2000.0,
        },
        r"speed_m_per_s must be lower: 0.6 m/s would turn 'joint_\d' at .* its limit is 1.05 rad/s",
    ),
    "neither": ({}, "waypoints_m or circle must be given, one of them, got neither"),
    "both": (
        {"waypoints_m": CORNERS, "circle": CIRCLE},
        "waypoints_m or circle must be given, one of them, got both",
    ),
    "one waypoint": (
        {"waypoints_m": CORNERS[:1]},
        r"waypoints_m must be two or more .* shape \(1, 3\)",
    ),
    "the same twice": (
        {"waypoints_m": [CORNERS[0], CORNERS[0]]},
        r"got waypoints_m\[0\] and waypoints_m\[1\] the same",
    ),
    "unknown key": (
        {"circle": {"center": [0, 0, 0]}},
        "circle has no 'center' .did you mean 'centre_m'.. .it has 'centre_m', 'radius_m'",
    ),
    "no radius": ({"circle": {"centre_m": [0, 0, 0]}}, r"circle.radius_m must be .*, got nothing"),
    "no size": ({"circle": {**CIRCLE, "radius_m": 0}}, "needs radius_m > 0, turns > 0"),
    "words": ({"circle": {**CIRCLE, "turns": "two"}}, r"circle.turns must be .*, got 'two'"),
    "posture": (
        {"waypoints_m": CORNERS, "posture_rad": (0, 0)},
        "posture_rad must be 6 joint angles",
    ),
    "link": (
        {"waypoints_m": CORNERS, "end_effector_link_name": "tol"},
        "end_effector_link_name names no link 'tol' .did you mean 'tool'.*It has [0-9]+ links$",
    ),
    "speed": (
        {"waypoints_m": CORNERS, "speed_m_per_s": 0.0},
        "speed_m_per_s must be finite and > 0",
    ),
}


@pytest.mark.parametrize(("options", "message"), REFUSALS.values(), ids=REFUSALS.keys())
def test_what_no_arm_can_follow_is_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        node(**options)


def test_a_waypoint_whose_position_alone_is_within_reach_names_position_only():
    """A planar arm that holds its tool level reaches no point as far out as its links."""
    planar = parse_urdf(model_path("planar_arm_3link"))
    bent = [0.9, -0.6, -0.3]
    pose = np.asarray(frame_pose(planar, np.array(bent), "tool"))
    reach = np.asarray(frame_pose(planar, np.array([0.3, 0.0, 0.0]), "tool"))[:3]
    options = {"waypoints_m": [pose[:3], 0.99 * reach]}
    with pytest.raises(ParameterError, match="or pass position_only=True, if the tool may turn"):
        ToolPathNode("path", 1e-3, planar, "tool", bent, 0.1, **options)
    ToolPathNode("path", 1e-3, planar, "tool", bent, 0.1, position_only=True, **options)
    options = {"waypoints_m": [pose[:3], 2.0 * reach]}
    with pytest.raises(ParameterError, match=r"or choose another posture$"):
        ToolPathNode("path", 1e-3, planar, "tool", bent, 0.1, **options)


SCENARIO = """
[simulation]
duration = 0.01
timestep = 1e-3
[simulation.initial_state.arm]
holding = "node:path"
[nodes.arm]
type = "RobotArmNode"
urdf_path = "model:desktop_arm_6axis"
end_effector_link_name = "tool"
[nodes.path]
type = "ToolPathNode"
tree = "node:arm"
end_effector_link_name = "node:arm"
posture_rad = [0.0, 0.3, 0.2, 0.0, 1.0708, 0.0]
speed_m_per_s = 0.1
waypoints_m = [[0.0, -0.34, 0.32], [0.05, -0.34, 0.32]]
"""


HASTE = "\nacceleration_m_per_s2 = 100.0\njerk_m_per_s3 = 1e5"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("0.05, -0.34", "0.95, -0.34", "17: nodes.path.waypoints_m: "),
        ("speed_m_per_s = 0.1", f"speed_m_per_s = 9{HASTE}", "16: nodes.path.speed_m_per_s: "),
        (
            '"node:path"',
            '"node:arm"',
            "6: simulation.initial_state.arm.holding: does not fit: no node 'arm' with a path "
            "(nodes with one: 'path')",
        ),
    ],
)
def test_a_scenario_says_which_line_cannot_be_followed(tmp_path, old, new, expected):
    file = tmp_path / "arm.toml"
    file.write_text(SCENARIO.replace(old, new))
    with pytest.raises(ScenarioError) as caught:
        load_scenario(file)
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"{file}:{expected}"), problem


def test_an_arm_can_begin_where_its_path_does(tmp_path):
    file = tmp_path / "arm.toml"
    file.write_text(SCENARIO)
    scenario = load_scenario(file)
    first = scenario.simulation.nodes["path"].first_joint_angles
    np.testing.assert_array_equal(scenario.initial_state["arm"]["joint_angles"], first)
