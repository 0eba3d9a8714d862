"""A start or a goal that a joint cannot reach is refused before the run: joint, angle, limits."""

import numpy as np
import pytest

from mime import (
    GraphError,
    GraphManager,
    InputError,
    JointPDNode,
    JointTrajectoryNode,
    ParameterError,
    RobotArmNode,
    ScenarioError,
    ToolPathNode,
    load_scenario,
    model_path,
    parse_urdf,
)
from mime.control.joint_limits import limit_problems
from mime.scenarios.bundled import find_scenario

DT = 1e-3
TREE = parse_urdf(model_path("planar_arm_3link"))
JOINT = TREE.joint_names[1]
LOWER, UPPER = TREE.joint_limits[1]
WORDS = rf"puts joint '{JOINT}' at 90 rad, outside its limits {LOWER:g} to {UPPER:g} rad"
DEGREES = "If 90 is in degrees, write 1.5708 rad"
FINE, FAR = np.zeros(3), np.array([0.0, 90.0, 0.0])


def controlled(waypoints=None, **options):
    graph = GraphManager()
    graph.add_node(RobotArmNode("arm", DT, TREE, "link_3", **options))
    graph.add_node(JointPDNode("pd", DT, TREE, 50.0, 5.0))
    graph.add_edge("pd", "arm", "joint_torques", "commanded_joint_torques", delay=True)
    for field in ("joint_angles", "joint_velocities"):
        graph.add_edge("arm", "pd", field, field)
    if waypoints is None:
        graph.add_external_input("pd", "desired_joint_angles")
    else:
        graph.add_node(JointTrajectoryNode("path", DT, waypoints, 1.0, 5.0, 50.0))
        graph.add_edge("path", "pd", "desired_joint_angles", "desired_joint_angles")
    return graph.compile()


SIMULATION = controlled()


def test_a_waypoint_that_the_arm_cannot_reach_is_refused_with_the_graph():
    with pytest.raises(GraphError, match=rf"path\.waypoints_rad {WORDS}\. {DEGREES}") as error:
        controlled([FINE, FAR])
    (problem,) = error.value.problems
    assert problem.place == ("node", "path", "waypoints_rad")


def test_a_waypoint_is_refused_as_a_parameter_too():
    simulation = controlled([FINE, FINE + 0.1])
    with pytest.raises(ParameterError, match=WORDS):
        simulation.with_parameters({"path.waypoints_rad": np.stack([FINE, FAR])})


@pytest.mark.parametrize("options", [{"joint_limits": "spring"}, {"joint_limit_override": 99.0}])
def test_the_limits_are_those_of_the_arm_that_is_driven(options):
    """Soft stops can be passed, and an override counts though the controller's tree has none."""
    if "joint_limit_override" in options:
        options = {"joint_limit_override": [[-99.0, 99.0]] * 3}
    controlled([FINE, FAR], **options)


@pytest.mark.parametrize("goal", [FAR, np.stack([FINE, FINE, FAR])])
def test_a_goal_given_to_a_run_is_refused(goal):
    words = rf"input pd\.desired_joint_angles {WORDS}\. {DEGREES}"
    with pytest.raises(InputError, match=words) as error:
        SIMULATION.run(steps=3, inputs={"pd": {"desired_joint_angles": goal}})
    assert error.value.problems[0].place == ("input", "pd", "desired_joint_angles")


def test_a_goal_of_a_batch_is_refused_with_its_member():
    goals = {"pd": {"desired_joint_angles": np.stack([FINE, FINE, FAR, FINE])}}
    with pytest.raises(InputError, match=f"desired_joint_angles of member 2 {WORDS}"):
        SIMULATION.run_batch(steps=2, inputs=goals)


def test_a_start_of_a_run_is_refused():
    with pytest.raises(InputError, match=rf"initial state: arm\.joint_angles {WORDS}\. {DEGREES}"):
        SIMULATION.init_state({"arm": {"joint_angles": FAR}})


def test_a_start_of_a_batch_is_refused_with_its_member():
    starts = {"arm": {"joint_angles": np.stack([FINE, FINE, FAR])}}
    words = rf"member 2: initial state: arm\.joint_angles {WORDS}\. {DEGREES}"
    with pytest.raises(InputError, match=words) as error:
        SIMULATION.run_batch(steps=2, initial_state=starts)
    assert error.value.problems[0].place == ("state", "arm", "joint_angles")


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("field", ["joint_angles", "joint_velocities"])
def test_a_start_of_a_batch_that_is_not_finite_is_refused_with_its_member(field, value):
    values = np.zeros((3, 3))
    values[1, 2] = value
    with pytest.raises(InputError, match=rf"member 1: initial state: arm\.{field} is not finite"):
        SIMULATION.run_batch(steps=2, initial_state={"arm": {field: values}})


def test_a_start_that_all_members_share_is_refused():
    varied = {"arm": {"joint_velocities": np.zeros((2, 3)), "joint_angles": FAR}}
    with pytest.raises(InputError, match=WORDS):
        SIMULATION.run_batch(steps=2, initial_state=varied)


def test_angles_at_the_limits_and_their_rounding_are_fine():
    for angles in TREE.joint_limits.T:
        assert not list(limit_problems(TREE, np.float32(angles), ("q",)))


def test_an_angle_far_beyond_any_degrees_is_told_without_them():
    (problem,) = limit_problems(TREE, [0.0, 1e4, 0.0], ("q",))
    assert problem.hint == "Stay within them, or override them"


def test_a_posture_that_the_arm_cannot_have_is_refused():
    words = f"posture_rad {WORDS}"
    with pytest.raises(ParameterError, match=words):
        ToolPathNode("p", DT, TREE, "link_3", FAR, 0.1, waypoints_m=[[0.5, 0, 0], [0.6, 0, 0]])


INPUTS = {
    'kind = "constant"\nvalue = [0.0, 90.0, 0.0]': "value",
    'kind = "step"\nafter = [0.0, 90.0, 0.0]': "after",
    'kind = "sine"\namplitude = [0.0, 90.0, 0.0]\nfrequency_hz = 1.0': "amplitude",
    'kind = "csv"\nfile = "goal.csv"\ncolumn = ["a", "b", "c"]\ntime_column = "t"': "file",
}
SCENARIO = """
[simulation]
duration = 0.01
timestep = 1e-3
[nodes.arm]
type = "RobotArmNode"
urdf_path = "model:planar_arm_3link"
end_effector_link_name = "link_3"
[nodes.pd]
type = "JointPDNode"
tree = "model:planar_arm_3link"
kp = 50.0
kd = 5.0
[[edges]]
from = "pd.joint_torques"
to = "arm.commanded_joint_torques"
delay = true
[[edges]]
from = "arm.joint_angles"
to = "pd.joint_angles"
[inputs."pd.desired_joint_angles"]
"""


@pytest.mark.parametrize("table", INPUTS)
def test_a_goal_of_a_scenario_is_refused_at_its_line(tmp_path, table):
    (tmp_path / "goal.csv").write_text("t,a,b,c\n0,0,0,0\n1,0,90,0\n")
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO + table)
    with pytest.raises(ScenarioError, match=WORDS) as error:
        load_scenario(file)
    found = error.value.problems[0]
    assert found.place == ("inputs", "pd.desired_joint_angles", INPUTS[table])
    assert file.read_text().splitlines()[found.line - 1].startswith(INPUTS[table])


def test_a_start_and_waypoints_of_a_scenario_are_refused_at_their_lines():
    file = find_scenario("arm_3link_pd")
    start = "simulation.initial_state.arm.joint_angles=[0.0, 90.0, 0.0]"
    with pytest.raises(ScenarioError, match=rf"joint_angles: {WORDS}\. {DEGREES}"):
        load_scenario(file, [start])
    with pytest.raises(ScenarioError, match=rf"waypoints_rad.* {WORDS}\. {DEGREES}"):
        load_scenario(file, ["path.waypoints_rad=[[0.0, 0.0, 0.0], [0.0, 90.0, 0.0]]"])
