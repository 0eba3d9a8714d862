"""The robots of the benchmarks: URDF files that every package reads as the same model."""

import atexit
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from mime.control.kinematics import KinematicTree, parse_urdf
from mime.models import model_path
from mime.running.simulation import Simulation

GRAVITY = np.array([0.0, 0.0, -9.81])
DT = 1e-3


@dataclass(frozen=True)
class Robot:
    """A file that all can read, with viscous friction in every joint.

    The friction (implicit in the step, as in MuJoCo) makes a falling arm come to rest: without it
    rounding grows until two right answers have nothing in common.
    """

    name: str
    path: Path
    tip: str
    friction: float

    @property
    def tree(self) -> KinematicTree:
        return _tree(self.path)

    @property
    def joints(self) -> int:
        return self.tree.num_joints

    def simulation(self, stop_at_rad: float | None = None) -> Simulation:
        """The robot as a graph; with hard stops at plus and minus an angle, or without any."""
        from mime import GraphManager
        from mime.nodes.actuation.robot_arm import RobotArmNode

        friction = np.full(self.joints, self.friction)
        stop = np.inf if stop_at_rad is None else stop_at_rad
        tree = replace(self.tree, joint_limits=np.tile([-stop, stop], (self.joints, 1)))
        graph = GraphManager()
        graph.add_node(
            RobotArmNode(
                "arm", DT, tree, self.tip, joint_friction_n_m_s=friction, gravity_world=GRAVITY
            )
        )
        graph.add_external_input("arm", "commanded_joint_torques")
        return graph.compile()

    def angles(self, count: int) -> np.ndarray:
        """Where so many robots start, at rest: (count, joints)."""
        return np.random.default_rng(0).uniform(-0.5, 0.5, (count, self.joints))

    def order(self, names: Sequence[str]) -> list[int]:
        """Where the joints that another package lists so stand in our order."""
        return [self.tree.joint_names.index(name) for name in names]


@cache
def _tree(path: Path) -> KinematicTree:
    return parse_urdf(path)


def ur5() -> Robot:
    return Robot("UR5", cleaned(example("ur5_robot.urdf")), "tool0", 1.0)


def panda() -> Robot:
    """Its two fingers, one of which mimics the other, are held still."""
    fingers = ("panda_finger_joint1", "panda_finger_joint2")
    return Robot("panda", cleaned(example("panda.urdf"), fingers), "panda_hand", 1.0)


def desktop_arm() -> Robot:
    path = model_path("desktop_arm_6axis")
    tree = parse_urdf(path)
    return Robot("desktop arm", cleaned(path), tree.frame_names[-1], 0.05)


def humanoid() -> Robot:
    """Unitree's G1 with its pelvis fixed."""
    path = cleaned(example("g1_29dof_rev_1_0.urdf"))
    return Robot("humanoid of 29 joints", path, "right_rubber_hand", 1.0)


def chain(joints: int) -> Robot:
    """A serial arm as they are built: each axis a quarter turn from the last, centres off it."""
    text = ['<robot name="chain"><link name="l0"/>']
    text += [
        f'<link name="l{i}"><inertial><origin xyz="0.02 0 0.1"/><mass value="1"/>'
        '<inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0.001" iyz="0"/>'
        f'</inertial></link><joint name="j{i}" type="revolute">'
        f'<parent link="l{i - 1}"/><child link="l{i}"/><axis xyz="0 0 1"/>'
        f'<origin xyz="0 0.02 0.2" rpy="{np.pi / 2 * (-1) ** i} 0 0"/></joint>'
        for i in range(1, joints + 1)
    ]
    path = _scratch() / f"raw_chain_{joints}.urdf"
    path.write_text("".join(text) + "</robot>")
    return Robot(f"chain of {joints}", cleaned(path), f"l{joints}", 1.0)


def example(name: str) -> Path:
    files = metadata.files("example-robot-data") or []
    return Path(next(str(f.locate()) for f in files if str(f).endswith(f"/{name}")))


@cache
def _scratch() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="mime_bench_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


_READ_DIFFERENTLY = (
    *("visual", "collision", "mimic", "dynamics", "limit", "safety_controller"),
    *("calibration", "transmission", "gazebo", "mujoco"),
)


def cleaned(path: Path, held: Sequence[str] = ()) -> Path:
    """The file without what packages read differently: meshes, friction, gears, mimics, limits."""
    document = ElementTree.parse(path)
    root = document.getroot()
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in _READ_DIFFERENTLY:
                parent.remove(child)
    for joint in root.iter("joint"):
        if joint.get("name") in held:
            joint.set("type", "fixed")
        elif joint.get("type") == "continuous":  # for Pinocchio a point on a circle, two numbers
            joint.set("type", "revolute")
        if joint.get("type") in {"revolute", "prismatic"}:
            wide = {"lower": "-1e4", "upper": "1e4", "effort": "1e6", "velocity": "1e6"}
            ElementTree.SubElement(joint, "limit", wide)
    out = _scratch() / path.name.removeprefix("raw_")
    document.write(out)
    return out
