"""Which xacro files are expanded, and with which arguments."""

import fnmatch
import itertools
import re
from typing import NamedTuple

from survey.checkouts import Repository


class Call(NamedTuple):
    """A file of a repository and what its <xacro:arg>s get."""

    file: str
    arguments: dict[str, str]


def _each(**choices: str) -> tuple[dict[str, str], ...]:
    """Every combination: words of an argument are its values."""
    values = itertools.product(*(words.split() for words in choices.values()))
    return tuple(dict(zip(choices, chosen, strict=True)) for chosen in values)


_UR = "ur3 ur5 ur10 ur3e ur5e ur7e ur8long ur10e ur12e ur15 ur16e ur18 ur20 ur30"
_AR4 = _each(ar_model="mk1 mk2 mk3 mk4 mk5", include_gripper="true false")
_DX100 = "$(find motoman_es_support)/config/joint_velocities_dx100.yaml"
CALLS: dict[str, dict[str, tuple[dict[str, str], ...]]] = {
    "*/Universal_Robots_ROS2_Description": {
        "urdf/ur.urdf.xacro": _each(name="ur", ur_type=_UR),
        "urdf/ur_mocked.urdf.xacro": _each(name="ur", ur_type="ur5e"),
    },
    "*/xarm_ros2": {
        "xarm_description/urdf/xarm_device.urdf.xacro": (
            *_each(dof="5 6 7", robot_type="xarm"),
            *_each(dof="6", robot_type="lite uf850"),
            *_each(dof="7", robot_type="xarm", add_gripper="true"),
        )
    },
    "*/ros2_kortex": {
        "kortex_description/robots/gen3.xacro": _each(dof="6 7"),
        "kortex_description/robots/kinova.urdf.xacro": (
            *_each(name="gen3", arm="gen3", dof="6 7"),
            *_each(name="gen3", arm="gen3", dof="7", gripper="robotiq_2f_85 robotiq_2f_140"),
            *_each(name="gen3_lite", arm="gen3_lite", dof="6", gripper="gen3_lite_2f"),
        ),
    },
    "*/openarm_description": {"urdf/robot/v10.urdf.xacro": ({}, *_each(bimanual="true"))},
    "*/ar4_ros_driver": {
        "annin_ar4_description/urdf/ar.urdf.xacro": _AR4,
        "annin_ar4_driver/urdf/ar.urdf.xacro": _each(ar_model="mk3"),
        "annin_ar4_moveit_config/urdf/fake_ar.urdf.xacro": _each(ar_model="mk3"),
    },
    "*/franka_description": {
        "robots/fr3_duo/fr3_duo_arm.urdf.xacro": _each(arm_id="fr3v2", arm_prefix="left right"),
        "robots/f*/f*.urdf.xacro": ({}, *_each(hand="false")),
    },
    "*/interbotix_ros_manipulators": {"*/uxarm_gripper.urdf.xacro": _each(robot_name="uxarm6")},
    "*/motoman": {"motoman_es_support/urdf/es*.xacro": ({"joint_velocities_file": _DX100},)},
    "*/tiago_robot": {"tiago_description/robots/tiago.urdf.xacro": ({},)},
    "*/unitree_ros": {
        "robots/z1_description/xacro/robot.xacro": ({},),
        "robots/*/xacro/robot.xacro": _each(DEBUG="false"),
    },
}
"""Repository (a pattern), file (a pattern), arguments of each call.

Every other xacro file of any repository is called once without arguments, unless its name says
that it is a part. A file that expands to no <link> is a part too, and is not counted.
"""
PARTS = re.compile(
    r"macro|srdf|gazebo|ros2_control|transmission|materials|colou?rs|constant|const\.|utilities|"
    r"utils|stairs|_arguments|/test/|calibration|leg\.xacro"
)


def calls(repository: Repository) -> list[Call]:
    """All of a repository, in the order of its files."""
    patterns = [
        pattern for name, files in CALLS.items() if fnmatch.fnmatch(repository.name, name)
        for pattern in files.items()
    ]  # fmt: skip
    found = []
    for path in repository.files(".xacro"):
        file = repository.relative(path)
        chosen = next((given for name, given in patterns if fnmatch.fnmatch(file, name)), None)
        if chosen is not None:
            found += [Call(file, arguments) for arguments in chosen]
        elif not PARTS.search(file):
            found.append(Call(file, {}))
    return found
