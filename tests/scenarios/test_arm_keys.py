"""Changes of a robot, its payload and its servo as keys of a scenario file."""

import pytest

from mime import load_scenario
from mime.scenarios.source import ScenarioError

HEAD = """
title = "arm"
[simulation]
duration = 0.01
timestep = 1e-3
[nodes.arm]
type = "RobotArmNode"
urdf_path = "model:planar_arm_3link"
end_effector_link_name = "grip"
"""
KEYS = """
subtree = { root = "base_link" }
attach = [{ urdf_path = "model:planar_arm_3link", link = "tool", prefix = "b_" }]
lock = { b_elbow = 0.1, b_wrist = -0.2 }
frames = { grip = { link = "b_tool", pose = [0, 0, 0.1, 1, 0, 0, 0] } }
wrench_frames = ["grip"]
[nodes.arm.payload]
link = "grip"
mass_kg = 0.5
[nodes.arm.servo]
kp = { shoulder = 600.0 }
kd = 50.0
velocity_limits_rad_per_s = { wrist = 1.0 }
[inputs."arm.desired_joint_angles"]
kind = "constant"
value = [0.1, 0.2, 0.3, 0.1]
"""


def scenario(tmp_path, text, overrides=()):
    file = tmp_path / "arm.toml"
    file.write_text(text)
    return load_scenario(file, overrides)


def test_each_change_is_a_key(tmp_path):
    loaded = scenario(tmp_path, HEAD + KEYS, ["arm.payload.mass_kg=0.7"])
    arm = loaded.simulation.nodes["arm"]
    assert arm.tree.joint_names == ("shoulder", "elbow", "wrist", "b_shoulder")
    assert float(arm.payload.mass_kg) == 0.7
    assert arm.servo.kp.tolist() == [600.0, 0.0, 0.0, 0.0]
    assert arm.servo.velocity_limits_rad_per_s.tolist() == [10.0, 10.0, 1.0, 10.0]
    assert arm.boundary_input_spec()["external_wrenches_at_frames"].shape == (1, 6)


@pytest.mark.parametrize(
    ("wrong", "line", "words"),
    [
        ("lock = { elbo = 0.1 }", 10, "elbo: is no joint"),
        ("lock = { elbow = 9.0 }", 10, "elbow: must be from -2.8 to 2.8"),
        ('attach = [{ urdf_path = "no.urdf", link = "tool" }]', 10, "no such file"),
        ('subtree = { root = "base_link", tp = "tool" }', 10, "tp: is no key of it"),
        ('[nodes.arm.payload]\nlink = "tol"\nmass_kg = 1.0', 11, "names no link 'tol'"),
        ("[nodes.arm.servo]\nkp = -1.0\nkd = 1.0", 11, "must be >= 0"),
        ("[nodes.arm.servo]\nkp = 1.0", 10, "needs kd"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path, wrong, line, words):
    head = HEAD.replace('"grip"', '"tool"')
    with pytest.raises(ScenarioError) as caught:
        scenario(tmp_path, head + wrong + "\n")
    text = str(caught.value)
    assert words in text, text
    assert f"arm.toml:{line}:" in text, text
