"""Friction of motors and of joints: one set of values for both."""

import dataclasses

import numpy as np
import pytest

from mime import (
    Coulomb,
    MotorNode,
    ParameterError,
    RobotArmNode,
    Stribeck,
    load_scenario,
    model_path,
    parse_urdf,
)

PLANAR = parse_urdf(model_path("planar_arm_3link"))
DT = 1e-3


def arm(tree=PLANAR, **options):
    return RobotArmNode("arm", DT, tree, "link_3", **options)


def motor(**options):
    return MotorNode("motor", DT, 1e-4, 0.05, 1.0, 1e-3, 0.0, command_mode="torque", **options)


@pytest.mark.parametrize(
    ("given", "entries"),
    [
        (0.3, [0.3, 0.3, 0.3]),
        ([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]),
        ({"elbow": 0.3}, [0.5, 0.3, 0.5]),  # others: what the robot's file says
    ],
)
def test_an_arm_takes_one_number_an_array_or_names(given, entries):
    tree = dataclasses.replace(PLANAR, joint_coulomb_friction=np.full(3, 0.5))
    node = arm(tree, friction=Coulomb(given))
    np.testing.assert_allclose(node.friction.torque_n_m, entries, rtol=1e-7)  # single precision
    torque = node.with_params(**{"joint[wrist].friction.torque_n_m": 0.7}).friction.torque_n_m
    np.testing.assert_allclose(torque, [*entries[:2], 0.7], rtol=1e-7)


def test_joints_that_a_stribeck_curve_does_not_name_keep_the_friction_of_their_file():
    tree = dataclasses.replace(PLANAR, joint_coulomb_friction=np.full(3, 0.5))
    curve = Stribeck({"elbow": 0.2}, {"elbow": 0.4}, {"elbow": 3.0})
    at = np.array([3.0, 3.0, 3.0])
    torque = arm(tree, friction=curve).friction.torque(at)
    np.testing.assert_allclose(torque, [0.5, 0.2 + 0.2 / np.e, 0.5], rtol=1e-6)  # single precision


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: arm(friction=Coulomb([1.0, 2.0])), r"friction.torque_n_m must have shape \(3,\)"),
        (
            lambda: arm(friction=Coulomb({"elbow": -2.0})),
            r"'arm': friction.torque_n_m must be >= 0 N·m, got \[0.0, -2.0, 0.0\]",
        ),
        (lambda: arm(friction=Coulomb({"elbo": 2.0})), "names no joint 'elbo' .*'elbow'"),
        (lambda: arm(friction=Coulomb(None)), "torque_n_m must be a number"),
        (
            lambda: arm(friction=Stribeck([0.1, 2.0, 0.1], [0.2, 1.0, 0.2], 1.0)),
            "static_torque_n_m must be >= coulomb_torque_n_m = 2 N·m, got 1",
        ),
        (
            lambda: arm(friction=0.3),
            "friction must be a Coulomb or Stribeck or LoadFriction or None",
        ),
        (lambda: motor(friction=Coulomb([0.1, 0.2])), "friction.torque_n_m must be one number"),
        (lambda: motor(friction=Coulomb({"a": 0.2})), "friction.torque_n_m must be one number"),
        (
            lambda: arm(coulomb_friction_n_m=np.zeros(3)),
            "coulomb_friction_n_m is called friction.torque_n_m",
        ),
        (
            lambda: arm().with_params(coulomb_friction_n_m=np.zeros(3)),
            "coulomb_friction_n_m is called friction.torque_n_m",
        ),
        (
            lambda: arm().with_params(**{"joint[elbow].coulomb_friction_n_m": 0.1}),
            "coulomb_friction_n_m is called friction.torque_n_m",
        ),
    ],
)
def test_what_no_machine_has_is_refused_by_name(build, words):
    with pytest.raises(ParameterError, match=words):
        build()


SCENARIO = """
[simulation]
duration = 0.1
timestep = 1e-3

[nodes.arm]
type = "RobotArmNode"
urdf_path = "model:planar_arm_3link"
end_effector_link_name = "link_3"
"""


def test_a_scenario_gives_an_arm_its_friction(tmp_path):
    file = tmp_path / "arm.toml"
    table = '[nodes.arm.friction]\ntype = "Coulomb"\ntorque_n_m = { elbow = 0.25 }\n'
    file.write_text(SCENARIO + table)
    node = load_scenario(file).simulation.nodes["arm"]
    np.testing.assert_array_equal(node.friction.torque_n_m, [0.0, 0.25, 0.0])
    file.write_text(SCENARIO + "coulomb_friction_n_m = [0.1, 0.1, 0.1]\n")
    with pytest.raises(ValueError, match=r"arm.toml:10: .* is called friction.torque_n_m"):
        load_scenario(file)


def test_stribeck_friction_of_a_sliding_joint_is_that_of_the_velocity_before_the_step():
    curve = Stribeck([3.0, 2.0, 1.0], [5.0, 3.0, 2.0], [5.0, 6.0, 14.0])
    start = {"joint_angles": [0.3, 0.2, 0.1], "joint_velocities": [5.0, -6.0, 7.0]}
    start = {name: np.array(x, np.float32) for name, x in start.items()}
    tau_f = curve.torque(start["joint_velocities"]) * np.sign(start["joint_velocities"])
    rubbed = arm(friction=curve).update(start, {}, DT)
    pushed = arm().update(start, {"commanded_joint_torques": -np.asarray(tau_f)}, DT)
    for name, value in pushed.items():
        np.testing.assert_allclose(rubbed[name], value, rtol=1e-5, atol=1e-6)  # single precision
