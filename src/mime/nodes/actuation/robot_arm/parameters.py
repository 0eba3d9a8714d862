"""What an arm is made of: RobotArmNode's parameters, how they are read, and what is refused."""

import os
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from mime._text import nearest, quoted
from mime.control.kinematics import KinematicTree, parse_urdf
from mime.control.kinematics.tree import is_prismatic
from mime.core.node import Node, ParameterError, option, parameter
from mime.core.pose import IDENTITY_POSE

CHOICES = {
    "joint_limits": ("stop", "clip", "spring"),
    "integrator": ("implicit", "explicit"),
    "joint_model": ("sea", "inserted_body"),
    "spring_integrator": ("midpoint", "backward_euler"),
}


class RobotArmParameters(Node):
    """The fields of an arm. N joints, L moving links, E elastic joints among the N."""

    tree: KinematicTree
    """Kinematic and inertial structure, parsed once from the URDF."""
    end_effector_offset_in_link: Float[Any, "7"] = parameter("m", shape=(7,), folds=True)
    base_pose_world: Float[Any, "7"] = parameter("m", shape=(7,), folds=True)
    joint_friction_n_m_s: Float[Any, " n"] = parameter(
        "N·m·s/rad", shape=None, at_least=0.0, folds=True, doc="viscous friction f, per joint"
    )
    gravity_world: Float[Any, "3"] = parameter("m/s²", shape=(3,), folds=True)
    coulomb_friction_n_m: Float[Any, " n"] | None = parameter(
        "N·m", shape=None, at_least=0.0, folds=True, doc="dry friction tau_c, per joint"
    )
    joint_stiffness_n_m_per_rad: Float[Any, " e"] | None = parameter(
        "N·m/rad", shape=None, above=0.0, folds=True, doc="k of each elastic joint"
    )
    joint_stiffness_damping_n_m_s: Float[Any, " e"] | None = parameter(
        "N·m·s/rad", shape=None, at_least=0.0, folds=True, doc="v beside each k"
    )
    inserted_inertia_kg_m2: Float[Any, " e"] | None = parameter(
        "kg·m²", shape=None, above=0.0, folds=True, doc="I_f, only of joint_model='inserted_body'"
    )
    limit_stiffness_n_m_per_rad: Any = parameter(
        "N·m/rad", above=0.0, doc="of the compliant stops, with joint_limits='spring'"
    )
    limit_damping_n_m_s: Any = parameter("N·m·s/rad", at_least=0.0, doc="likewise")
    end_effector_link_name: str = option()
    elastic_joints: tuple[int, ...] = option()
    """Which of the N joints have a spring, in order. The rest are rigid."""
    joint_limits: str = option()
    integrator: str = option()
    joint_model: str = option()
    spring_integrator: str = option()
    saturate_effort: bool = option()

    def __init__(
        self,
        name: str,
        timestep: float,
        urdf_path: str | os.PathLike[str] | KinematicTree,
        end_effector_link_name: str,
        end_effector_offset_in_link: Any = IDENTITY_POSE,
        base_pose_world: Any = IDENTITY_POSE,
        joint_friction_n_m_s: Any = None,
        gravity_world: Any = (0.0, 0.0, -9.80665),
        joint_limit_override: Any = None,
        *,
        coulomb_friction_n_m: Any = None,
        rotor_inertia_kg_m2: Any = None,
        gear_ratio: Any = None,
        joint_stiffness_n_m_per_rad: Any = None,
        joint_stiffness_damping_n_m_s: Any = None,
        joint_model: str = "sea",
        inserted_inertia_kg_m2: Any = None,
        joint_limits: str = "stop",
        limit_stiffness_n_m_per_rad: float = 1e4,
        limit_damping_n_m_s: float = 1e2,
        integrator: str = "implicit",
        spring_integrator: str = "midpoint",
        saturate_effort: bool = False,
    ):
        """Read the URDF and build the node.

        Per-joint values are (N,), or a mapping from joint names; joints not named take the default.

        urdf_path               file, or a `KinematicTree` already parsed
        end_effector_link_name  any link of the URDF, merged ones included
        joint_friction_n_m_s    default: the URDF's `damping`
        coulomb_friction_n_m    default: the URDF's `friction`; none when that is all zero
        joint_limit_override    (N, 2) lower and upper, default: the URDF's
        rotor_inertia_kg_m2     at the motor; gear² times it goes on the diagonal of M, or spins
                                behind the spring of an elastic joint
        gear_ratio              default: the URDF's `mechanicalReduction`, else 1
        joint_stiffness_n_m_per_rad    spring between rotor and link; inf is a rigid joint, default
        joint_stiffness_damping_n_m_s  damper beside it, default 0
        joint_model             "sea": exact; "inserted_body": each spring on an extra body, a ball
                                of `inserted_inertia_kg_m2`, as engines without transmissions do
        joint_limits            "stop": the joint stops; "clip": the velocity is kept; "spring"
        integrator              "implicit" or "explicit" viscous friction
        spring_integrator       "midpoint": second order, undamped; "backward_euler": damps what the
                                step does not resolve, and some of what it does
        saturate_effort         clip the command to the URDF's effort limits
        """
        where = f"RobotArmNode {name!r}"
        tree = urdf_path if isinstance(urdf_path, KinematicTree) else parse_urdf(urdf_path)
        if end_effector_link_name not in tree.frame_names:
            raise ParameterError(
                f"{where}: no link {end_effector_link_name!r}"
                f"{nearest(end_effector_link_name, tree.frame_names)} in {tree.source}; "
                f"its links are {quoted(tree.frame_names)}."
            )

        def per_joint(label: str, value: Any, default: Any = 0.0) -> Any:
            return _per_joint(where, label, value, tree.joint_names, default)

        leaves = {
            "joint_limits": _sized(
                where, "joint_limit_override", joint_limit_override, (tree.num_joints, 2)
            ),
            "rotor_inertia": per_joint(
                "rotor_inertia_kg_m2", rotor_inertia_kg_m2, tree.rotor_inertia
            ),
            "gear_ratio": per_joint("gear_ratio", gear_ratio, tree.gear_ratio),
        }
        for leaf, value in leaves.items():
            if value is not None:
                tree = eqx.tree_at(lambda t, leaf=leaf: getattr(t, leaf), tree, value)
        friction = per_joint("joint_friction_n_m_s", joint_friction_n_m_s, tree.joint_friction)
        coulomb = per_joint(
            "coulomb_friction_n_m", coulomb_friction_n_m, tree.joint_coulomb_friction
        )
        if coulomb is None and np.any(np.asarray(tree.joint_coulomb_friction)):
            coulomb = tree.joint_coulomb_friction
        stiffness = per_joint("joint_stiffness_n_m_per_rad", joint_stiffness_n_m_per_rad, np.inf)
        damping = per_joint("joint_stiffness_damping_n_m_s", joint_stiffness_damping_n_m_s)
        inserted = per_joint("inserted_inertia_kg_m2", inserted_inertia_kg_m2)
        if stiffness is None:
            elastic: tuple[int, ...] = ()
        elif isinstance(stiffness, np.ndarray):
            elastic = tuple(int(j) for j in np.flatnonzero(np.isfinite(stiffness)))
        else:
            elastic = tuple(range(tree.num_joints))  # traced: cannot be looked at
        self.name, self.timestep, self.tree = name, timestep, tree
        self.end_effector_link_name = end_effector_link_name
        self.end_effector_offset_in_link = end_effector_offset_in_link
        self.base_pose_world = base_pose_world
        self.joint_friction_n_m_s = tree.joint_friction if friction is None else friction
        self.gravity_world = gravity_world
        self.coulomb_friction_n_m = coulomb
        self.elastic_joints = elastic
        chosen = np.array(elastic, dtype=int)
        self.joint_stiffness_n_m_per_rad = stiffness[chosen] if elastic else None
        if elastic:
            damping = np.zeros(tree.num_joints) if damping is None else damping
            damping = damping[chosen]
            inserted = None if inserted is None else inserted[chosen]
        self.joint_stiffness_damping_n_m_s, self.inserted_inertia_kg_m2 = damping, inserted
        springs = joint_limits == "spring"
        self.limit_stiffness_n_m_per_rad = limit_stiffness_n_m_per_rad if springs else None
        self.limit_damping_n_m_s = limit_damping_n_m_s if springs else None
        self.joint_limits, self.integrator = joint_limits, integrator
        self.joint_model, self.spring_integrator = joint_model, spring_integrator
        self.saturate_effort = saturate_effort

    def __check_init__(self) -> None:
        where = f"{type(self).__name__} {self.name!r}"
        for problem in (*_option_problems(self), *_value_problems(self), *_spring_problems(self)):
            raise ParameterError(f"{where}: {problem}")

    @property
    def num_joints(self) -> int:
        """N, the number of independent joints."""
        return self.tree.num_joints

    @property
    def params(self) -> Any:
        """The parameters by name; those of the links as `tree.masses`, `tree.coms`, ..."""
        return MappingProxyType({"tree": self.tree, **super().params})


def _option_problems(arm: RobotArmParameters) -> Iterator[str]:
    for label, allowed in CHOICES.items():
        if getattr(arm, label) not in allowed:
            yield f"{label} must be one of {quoted(allowed)}, got {getattr(arm, label)!r}"


def _value_problems(arm: RobotArmParameters) -> Iterator[str]:
    for label in ("base_pose_world", "end_effector_offset_in_link"):
        pose = getattr(arm, label)
        if isinstance(pose, np.ndarray) and pose.shape == (7,):
            norm = np.linalg.norm(pose[3:])
            if abs(norm - 1) > 1e-6:
                yield (
                    f"{label} [x y z qw qx qy qz] must hold a unit quaternion, got one of length "
                    f"{norm:.6g}"
                )
    limits = arm.tree.joint_limits
    if isinstance(limits, np.ndarray) and np.any(limits[:, 0] > limits[:, 1]):
        joint = arm.tree.joint_names[int(np.argmax(limits[:, 0] > limits[:, 1]))]
        yield f"the lower limit of joint {joint!r} is above its upper one"


def _spring_problems(arm: RobotArmParameters) -> Iterator[str]:
    tree, model = arm.tree, arm.joint_model
    if not arm.elastic_joints:
        for label in ("joint_stiffness_damping_n_m_s", "inserted_inertia_kg_m2"):
            if getattr(arm, label) is not None:
                yield f"{label} needs joint_stiffness_n_m_per_rad as well: all joints are rigid"
        return
    if (arm.inserted_inertia_kg_m2 is not None) != (model == "inserted_body"):
        yield (
            f"inserted_inertia_kg_m2 belongs to joint_model='inserted_body', which needs it; got "
            f"{arm.inserted_inertia_kg_m2} with joint_model={model!r}"
        )
    armature = tree.armature
    for j in arm.elastic_joints:
        joint = tree.joint_names[j]
        if isinstance(armature, np.ndarray) and not armature[j] > 0:
            yield (
                f"elastic joint {joint!r} needs rotor_inertia_kg_m2 > 0 and gear_ratio != 0: the "
                f"rotor is what the spring holds, got gear² · inertia = {armature[j]:g} kg·m²"
            )
        if model == "inserted_body":
            links = [i for i, c in enumerate(tree.coordinate_idxs) if c == j]
            if len(links) > 1 or is_prismatic(tree, links[0]):
                yield (
                    f"elastic joint {joint!r} cannot have an inserted body: it slides, or other "
                    f"joints mimic it. Use joint_model='sea', which takes any joint"
                )
    if model == "inserted_body" and arm.joint_limits == "spring":
        yield "joint_limits='spring' goes with joint_model='sea' only; use 'stop' or 'clip'"


def _per_joint(
    where: str, label: str, value: Any, joint_names: tuple[str, ...], default: Any
) -> Any:
    """(N,) from an array or from a mapping of joint names; None stays None."""
    if not isinstance(value, Mapping):
        return _sized(where, label, value, (len(joint_names),))
    array = np.array(np.broadcast_to(np.asarray(default, float), (len(joint_names),)))
    for joint, entry in value.items():
        if joint not in joint_names:
            raise ParameterError(
                f"{where}: {label} names no joint {joint!r}{nearest(joint, joint_names)}; its "
                f"joints are {quoted(joint_names)}"
            )
        array[joint_names.index(joint)] = entry
    return _sized(where, label, array, array.shape)


def _sized(where: str, label: str, value: Any, shape: tuple[int, ...]) -> Any:
    """A parameter given by the user, at the shape that the robot asks for."""
    if value is None or isinstance(value, jax.Array):
        return value
    array = np.asarray(value, dtype=float)
    if array.shape != shape:
        raise ParameterError(f"{where}: {label} must have shape {shape}, got {array.shape}")
    may_be_infinite = label in ("joint_limit_override", "joint_stiffness_n_m_per_rad")
    if np.any(np.isnan(array)) or not (may_be_infinite or np.all(np.isfinite(array))):
        raise ParameterError(f"{where}: {label} must be finite, got {array}")
    return array
