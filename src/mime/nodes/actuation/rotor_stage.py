"""What turns with a motor at the end of an arm: where its mass and its inertia go."""

from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np

from mime.control.kinematics import KinematicTree
from mime.control.kinematics.editing.bodies import RigidBody
from mime.control.kinematics.editing.checks import mass_problems, number_problems
from mime.control.kinematics.packages import Packages
from mime.control.kinematics.report import Findings
from mime.control.kinematics.urdf import tree_of
from mime.control.kinematics.urdf.xml import parsed_xml
from mime.core.problem import ParameterError
from mime.nodes.actuation.motor.imbalance import Imbalance
from mime.nodes.actuation.robot_arm.payload import Payload

Z = (0.0, 0.0, 1.0)


class RotorStage(eqx.Module):
    """Rotor, magnet, tool: a body of mass m, centre c and inertia I that a motor turns.

        I_mount = I + m (c² 1 - c cᵀ) = J a^ a^ᵀ + I_across (1 - a^ a^ᵀ) + D

    Each part has one place. The arm carries m at (a^ . c) a^ with I_across (`payload`): that does
    not change as the rotor turns. The motor has J (`axial_inertia`), and the rest, which turns, as
    its `imbalance`: s = m (c - (a^ . c) a^) and D. Stages add: `rotor + magnet + tool`.
    """

    mass_kg: float
    com_m: np.ndarray
    """Centre of mass in the rotor's frame, whose origin is the mount, (3,)."""
    inertia_kg_m2: np.ndarray
    """About the centre of mass, in the rotor's axes, (3, 3)."""

    def __init__(
        self, mass_kg: float, com_m: Any = (0.0, 0.0, 0.0), inertia_kg_m2: Any = ((0.0,) * 3,) * 3
    ):
        found = [
            *number_problems("mass_kg", mass_kg, (), "kg"),
            *number_problems("com_m", com_m, (3,), "m"),
            *number_problems("inertia_kg_m2", inertia_kg_m2, (3, 3), "kg·m²"),
        ]
        if found := found or list(mass_problems(mass_kg, inertia_kg_m2)):
            raise ParameterError("RotorStage", found)
        self.mass_kg = float(mass_kg)
        self.com_m = np.asarray(com_m, float)
        self.inertia_kg_m2 = np.asarray(inertia_kg_m2, float)

    @classmethod
    def cylinder(
        cls, mass_kg: float, radius_m: float, length_m: float, centre_m: Any = (0, 0, 0)
    ) -> "RotorStage":
        """A solid cylinder along z: m r²/2 about it, m (3 r² + l²)/12 across."""
        across = mass_kg * (3.0 * radius_m**2 + length_m**2) / 12.0
        return cls(mass_kg, centre_m, np.diag([across, across, 0.5 * mass_kg * radius_m**2]))

    def __add__(self, other: "RotorStage") -> "RotorStage":
        """Both as one body."""
        joined = self._body.joined(other._body)
        return RotorStage(float(joined.mass), joined.com, joined.inertia)

    def axial_inertia(self, axis: Any = Z) -> float:
        """J about the axis, kg·m²: what the motor's `inertia_kg_m2` has of it."""
        axis = _unit(axis)
        return float(axis @ self._about_mount @ axis)

    def payload(self, link: str, axis: Any = Z) -> Payload:
        """The body that the arm carries; the mount is the link's frame."""
        axis = _unit(axis)
        along = float(axis @ self.com_m)
        across = self._mean_across(axis) - self.mass_kg * along**2
        inertia = across * (np.eye(3) - np.outer(axis, axis))
        return Payload(link, self.mass_kg, along * axis, inertia)

    def imbalance(self, axis: Any = Z, gravity_world: Any = (0.0, 0.0, -9.80665)) -> Imbalance:
        """What is left and turns; gravity in m/s², as the arm has it."""
        axis = _unit(axis)
        static = self.mass_kg * (self.com_m - (axis @ self.com_m) * axis)
        about, across = np.outer(axis, axis), self._mean_across(axis)
        symmetric = self.axial_inertia(axis) * about + across * (np.eye(3) - about)
        return Imbalance(static, self._about_mount - symmetric, gravity_world)

    def as_joint(
        self, tree: KinematicTree, link: str, axis: Any = Z, name: str = "rotor"
    ) -> KinematicTree:
        """The tree with the stage as one more link, `name`, on a joint of that name.

        Exact at any step, for a rotor that its bearing may hold or whose momentum is that of the
        arm; its motor has a driven shaft then, and its own J is the joint's `rotor_inertia_kg_m2`.
        """
        I = self.inertia_kg_m2
        xyz, centre = (" ".join(str(float(x)) for x in v) for v in (_unit(axis), self.com_m))
        pairs = (("xx", 0, 0), ("xy", 0, 1), ("xz", 0, 2), ("yy", 1, 1), ("yz", 1, 2), ("zz", 2, 2))
        moments = " ".join(f'i{pair}="{float(I[i, j])}"' for pair, i, j in pairs)
        text = f"""<robot name="{name}"><link name="{name}_mount"/><link name="{name}"><inertial>
          <origin xyz="{centre}"/><mass value="{self.mass_kg}"/><inertia {moments}/></inertial>
          </link><joint name="{name}" type="continuous"><parent link="{name}_mount"/>
          <child link="{name}"/><axis xyz="{xyz}"/></joint></robot>"""
        found = Findings()
        robot = parsed_xml(text.encode(), Path("RotorStage"), found)
        stage = tree_of(robot, Packages(), found, None)
        return tree.attach(stage, link)

    @property
    def _body(self) -> RigidBody:
        return RigidBody(np.asarray(self.mass_kg), self.com_m, self.inertia_kg_m2)

    @property
    def _about_mount(self) -> np.ndarray:
        c = self.com_m
        return self.inertia_kg_m2 + self.mass_kg * (c @ c * np.eye(3) - np.outer(c, c))

    def _mean_across(self, axis: np.ndarray) -> float:
        """I_across: half of what the trace has beside J."""
        return 0.5 * (float(np.trace(self._about_mount)) - self.axial_inertia(axis))


def _unit(axis: Any) -> np.ndarray:
    axis = np.asarray(axis, float)
    length = np.linalg.norm(axis)
    if axis.shape != (3,) or not length > 0:
        raise ParameterError(f"axis must be a vector (3,) of a length > 0, got {axis.tolist()}")
    unit: np.ndarray = axis / length
    return unit
