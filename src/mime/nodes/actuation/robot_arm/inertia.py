"""Joints of an arm that nothing resists: its accelerations would not be definite.

Rotors and payload count. Friction, servo and stops do not, although a step takes them implicitly:
without them there is no equation at an instant. Beside the spring of an elastic joint the link must
resist by itself, since the rotor spins apart.
"""

from collections.abc import Iterator
from typing import Any

from mime.control.kinematics.joints_without_inertia import inertia_problem, joints_without_inertia
from mime.core.problem import Problem
from mime.nodes.actuation.robot_arm.elastic import rigid_joints, without_rotors
from mime.nodes.actuation.robot_arm.inserted_bodies import with_inserted_bodies


def inertia_problems(arm: Any) -> Iterator[Problem]:
    """What forward dynamics of the tree lack, as the arm has it: loaded, its springs apart."""
    tree = arm.loaded_tree
    if arm.elastic_joints and arm.joint_model == "inserted_body":
        tree = with_inserted_bodies(tree, arm.elastic_joints, arm.inserted_inertia_kg_m2)
    elif arm.elastic_joints:
        tree = without_rotors(tree, rigid_joints(arm, float))
    if names := joints_without_inertia(tree):
        yield inertia_problem(tree, names)
