"""What an arm is made of: RobotArmNode's parameters, how they are read, and what is refused."""

import os
from collections.abc import Iterator, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Float

from mime._text import unknown_name
from mime.control.kinematics import KinematicTree
from mime.control.kinematics.editing.checks import base_problems
from mime.core.arguments import text
from mime.core.node import Node
from mime.core.parameters import NamedEntries
from mime.core.pose import IDENTITY_POSE
from mime.core.problem import InputError, ParameterError, Problem
from mime.core.spec import effect, option, parameter
from mime.nodes.actuation.friction import Coulomb, DryFriction, LoadFriction, Stribeck
from mime.nodes.actuation.robot_arm import checks
from mime.nodes.actuation.robot_arm.checks import HIGHER_ORDER
from mime.nodes.actuation.robot_arm.payload import Payload
from mime.nodes.actuation.robot_arm.per_joint import by_name, sized
from mime.nodes.actuation.robot_arm.servo import Servo
from mime.nodes.actuation.robot_arm.tree_keys import read

_OF_LINKS = {
    "mass_kg": ("tree.masses", "kg"),
    "com_m": ("tree.coms", "m"),
    "inertia_kg_m2": ("tree.inertias", "kg·m²"),
    "compensated_mass_kg": ("tree.compensated_masses", "kg"),
    "compensated_moment_kg_m": ("tree.compensated_moments", "kg·m"),
}
_OF_JOINTS = {
    "friction_n_m_s": ("joint_friction_n_m_s", "N·m·s/rad"),
    "rotor_inertia_kg_m2": ("tree.rotor_inertia", "kg·m²"),
    "gear_ratio": ("tree.gear_ratio", ""),
    "spring_stiffness_n_m_per_rad": ("tree.spring_stiffness_n_m_per_rad", "N·m/rad"),
    "spring_reference_rad": ("tree.spring_reference_rad", "rad"),
}
_OF_SERVO = {"kp": ("servo.kp", "N·m/rad"), "kd": ("servo.kd", "N·m·s/rad")}
_OF_SPRINGS = {
    "stiffness_n_m_per_rad": ("joint_stiffness_n_m_per_rad", "N·m/rad"),
    "damping_n_m_s": ("joint_stiffness_damping_n_m_s", "N·m·s/rad"),
    "inserted_inertia_kg_m2": ("inserted_inertia_kg_m2", "kg·m²"),
}


def _of_friction(friction: DryFriction) -> dict[str, tuple[str, str]]:
    specs = friction.parameter_specs()
    return {f"friction.{name}": (f"friction.{name}", spec.unit) for name, spec in specs.items()}


class RobotArmParameters(Node):
    """The fields of an arm. N joints, L moving links, E elastic joints among the N."""

    was: ClassVar = {"coulomb_friction_n_m": "friction.torque_n_m, of a Coulomb"}

    tree: KinematicTree
    """Kinematic and inertial structure, parsed once from the URDF."""
    end_effector_offset_in_link: Float[Any, "7"] = parameter("m", shape=(7,), folds=True)
    base_pose_world: Float[Any, "7"] = parameter("m", shape=(7,), folds=True)
    joint_friction_n_m_s: Float[Any, " n"] = parameter(
        "N·m·s/rad", shape=None, at_least=0.0, folds=True, doc="viscous friction f, per joint"
    )
    gravity_world: Float[Any, "3"] = parameter("m/s²", shape=(3,), folds=True)
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
    limit_damping_n_m_s: Any = parameter("N·m·s/rad", at_least=0.0, doc="of these stops")
    stop_restitution: Any = parameter(
        "", at_least=0.0, at_most=1.0, folds=True, doc="e of every hard stop; 0: the joint stays"
    )
    end_effector_link_name: str = option()
    elastic_joints: tuple[int, ...] = option()
    """Which of the N joints have a spring, in order. The rest are rigid."""
    joint_limits: str = option(choices=("stop", "clip", "spring"))
    integrator: str = option(choices=("implicit", "explicit", *HIGHER_ORDER))
    joint_model: str = option(choices=("sea", "inserted_body"))
    spring_integrator: str = option(choices=("midpoint", "backward_euler"))
    saturate_effort: bool = option()
    wrench_frames: tuple[str, ...] = option()
    """Links or named frames at whose origins wrenches act: rows of an input of their own."""
    friction: Coulomb | Stribeck | LoadFriction | None = effect(
        Coulomb,
        Stribeck,
        LoadFriction,
        doc="dry friction per joint; default: the URDF's `friction`",
    )
    payload: Payload | None = effect(Payload, doc="a body that a link carries")
    servo: Servo | None = effect(Servo, doc="holds every joint at a desired angle and velocity")

    def __init__(
        self,
        name: str,
        timestep: float,
        urdf_path: str | os.PathLike[str] | KinematicTree,
        end_effector_link_name: str,
        end_effector_offset_in_link: Any = IDENTITY_POSE,
        base_pose_world: Any = IDENTITY_POSE,
        joint_friction_n_m_s: Any = None,
        gravity_world: Any = None,
        joint_limit_override: Any = None,
        *,
        friction: Any = None,
        rotor_inertia_kg_m2: Any = None,
        gear_ratio: Any = None,
        transmission: Any = None,
        joint_stiffness_n_m_per_rad: Any = None,
        joint_stiffness_damping_n_m_s: Any = None,
        joint_model: str = "sea",
        inserted_inertia_kg_m2: Any = None,
        joint_limits: str = "stop",
        stop_restitution: float = 0.0,
        limit_stiffness_n_m_per_rad: float = 1e4,
        limit_damping_n_m_s: float = 1e2,
        integrator: str = "implicit",
        spring_integrator: str = "midpoint",
        saturate_effort: bool = False,
        base: str | None = None,
        on_problem: str = "warn",
        open_loops: bool = False,
        subtree: Any = None,
        attach: Any = None,
        lock: Any = None,
        frames: Any = None,
        wrench_frames: Any = (),
        payload: Payload | None = None,
        servo: Servo | None = None,
    ):
        """Read the URDF or MJCF and build the node.

        Per-joint values are (N,), or a mapping from joint names; joints not named take the default.

        urdf_path               URDF or MJCF file, or a `KinematicTree` already parsed
        end_effector_link_name  any link of the file, merged ones and sites included
        gravity_world           default: the file's (MJCF says one), else (0, 0, -9.80665)
        joint_friction_n_m_s    default: the URDF's `damping`
        friction                `Coulomb(torque_n_m)`, `Stribeck(...)` or `LoadFriction(...)`, with
                                an entry per joint; default: the URDF's `friction`; none when that
                                is all zero
        joint_limit_override    (N, 2) lower and upper, default: the URDF's
        rotor_inertia_kg_m2     at the motor; gear² times it goes on the diagonal of M, or spins
                                behind the spring of an elastic joint
        gear_ratio              default: the URDF's `mechanicalReduction`, else 1
        transmission            T of theta = T q, where drives move several joints: a matrix, or
                                rows by name, {joint_6 = {joint_5 = 32, joint_6 = 32}}; instead of
                                gear_ratio. Friction, limits and servos are the drives' then
        joint_stiffness_n_m_per_rad    spring between rotor and link; inf is a rigid joint, default
        joint_stiffness_damping_n_m_s  damper beside it, default 0
        joint_model             "sea": exact; "inserted_body": each spring on an extra body, a ball
                                of `inserted_inertia_kg_m2`, as engines without transmissions do
        joint_limits            "stop": a wall; "clip": the velocity is kept; "spring": a soft wall
        stop_restitution        speed after over speed before a hit: one value for the whole arm
        integrator              semi-implicit Euler with "implicit" (default) or "explicit" viscous
                                friction; or "midpoint" (order 2) and "gauss4" (order 4), whose
                                energy error stays bounded, or "rk4"
        spring_integrator       "midpoint": second order, undamped; "backward_euler": damps what the
                                step does not resolve, and some of what it does
        saturate_effort         clip the command to the URDF's effort limits
        base                    "fixed": the root stands at base_pose_world; "floating": it flies
                                freely, from `base_position_world_m` ... of the state on. Default:
                                what the file says (an MJCF with a free joint floats)
        on_problem              of a file: "warn" (default), "refuse" or "mend", see `parse_robot`
        open_loops              of a file: cut closed loops, see `parse_robot`
        subtree, attach, lock, frames    changes of the tree, see `tree_keys`
        wrench_frames           links or frames at which `external_wrenches_at_frames` acts
        payload                 `Payload(link, mass_kg, com_m, inertia_kg_m2)`
        servo                   `Servo(kp, kd)`: holds the joints, stable at any gain
        """
        tree, found = read(urdf_path, base, on_problem, open_loops, subtree, attach, lock, frames)
        if transmission is not None:
            if gear_ratio is not None:
                message = "cannot be given beside transmission, which has the gears"
                found.append(Problem(("gear_ratio",), message))
            try:
                tree = tree.with_drives(transmission=transmission)
            except InputError as error:
                found += error.problems
        found += [] if base is None else base_problems(tree, base)
        if found:  # names of links and joints are not known
            raise ParameterError(f"{type(self).__name__} {name!r}", found)

        def per_joint(label: str, value: Any, default: Any = 0.0) -> Any:
            if isinstance(value, Mapping):
                value = by_name(label, value, tree.joint_names, default, found)
            return sized(label, value, (tree.num_joints,), found)

        if text("end_effector_link_name", end_effector_link_name) not in tree.frame_names:
            message, known = unknown_name(end_effector_link_name, tree.frame_names, "link")
            message = f"{message} of {tree.source}"
            found.append(Problem(("end_effector_link_name",), message, known))
        for label, named in (("wrench_frames", wrench_frames), ("payload", [payload])):
            links = [link.link if isinstance(link, Payload) else link for link in named if link]
            for link in links:
                if link not in tree.frame_names:
                    place = (label, "link") if label == "payload" else (label,)
                    found.append(Problem(place, *unknown_name(link, tree.frame_names, "link")))

        def of_effect(place: str, effect: Servo | DryFriction) -> Any:
            """An effect with an entry per joint; what is wrong with it is found."""
            own: list[Problem] = []

            def entries(label: str, value: Any, default: Any) -> Any:
                if np.ndim(value) == 0 and not isinstance(value, Mapping):
                    return value * np.ones(tree.num_joints)
                if isinstance(value, Mapping):
                    value = by_name(label, value, tree.joint_names, default, own)
                return sized(label, value, (tree.num_joints,), own)

            try:
                return effect.of_joints(tree, entries)
            except ParameterError as error:
                own += [] if own else error.problems
                return effect
            finally:
                found.extend(problem.inside(place) for problem in own)

        if isinstance(servo, Servo):
            servo = of_effect("servo", servo)
        limits = sized("joint_limit_override", joint_limit_override, (tree.num_joints, 2), found)
        rotor = per_joint("rotor_inertia_kg_m2", rotor_inertia_kg_m2, tree.rotor_inertia)
        gear = per_joint("gear_ratio", gear_ratio, tree.gear_ratio)
        viscous = per_joint("joint_friction_n_m_s", joint_friction_n_m_s, tree.joint_friction)
        if friction is None and np.any(np.asarray(tree.joint_coulomb_friction)):
            friction = Coulomb({})
        if isinstance(friction, DryFriction):
            friction = of_effect("friction", friction)
        higher = isinstance(integrator, str) and integrator in HIGHER_ORDER
        if higher and isinstance(friction, Coulomb) and not np.any(np.asarray(friction.torque_n_m)):
            friction = None
        stiffness = per_joint("joint_stiffness_n_m_per_rad", joint_stiffness_n_m_per_rad, np.inf)
        damping = per_joint("joint_stiffness_damping_n_m_s", joint_stiffness_damping_n_m_s)
        inserted = per_joint("inserted_inertia_kg_m2", inserted_inertia_kg_m2)
        if found:
            raise ParameterError(f"{type(self).__name__} {name!r}", found)
        tree = tree if base is None else tree.with_base(base)
        leaves = {"joint_limits": limits, "rotor_inertia": rotor, "gear_ratio": gear}
        for leaf, value in leaves.items():
            if value is not None:
                tree = eqx.tree_at(lambda t, leaf=leaf: getattr(t, leaf), tree, value)
        if stiffness is None:
            elastic: tuple[int, ...] = ()
        elif isinstance(stiffness, np.ndarray):
            elastic = tuple(int(j) for j in np.flatnonzero(np.isfinite(stiffness)))
        else:
            elastic = tuple(range(tree.num_joints))  # a JAX array may be traced
        self.name, self.timestep, self.tree = name, timestep, tree
        self.end_effector_link_name = end_effector_link_name
        self.end_effector_offset_in_link = end_effector_offset_in_link
        self.base_pose_world = base_pose_world
        self.joint_friction_n_m_s = tree.joint_friction if viscous is None else viscous
        if gravity_world is None:
            gravity_world = tree.gravity_m_per_s2 or (0.0, 0.0, -9.80665)
        self.gravity_world = gravity_world
        self.elastic_joints = elastic
        chosen = np.array(elastic, dtype=int)
        self.joint_stiffness_n_m_per_rad = stiffness[chosen] if elastic else None
        if elastic:
            damping = np.zeros(tree.num_joints) if damping is None else damping
            damping = damping[chosen]
            inserted = None if inserted is None else inserted[chosen]
        self.joint_stiffness_damping_n_m_s, self.inserted_inertia_kg_m2 = damping, inserted
        springs = text("joint_limits", joint_limits) == "spring"
        self.limit_stiffness_n_m_per_rad = limit_stiffness_n_m_per_rad if springs else None
        self.limit_damping_n_m_s = limit_damping_n_m_s if springs else None
        self.joint_limits, self.integrator = joint_limits, integrator
        self.stop_restitution = stop_restitution
        self.joint_model, self.spring_integrator = joint_model, spring_integrator
        self.saturate_effort = saturate_effort
        self.wrench_frames = tuple(wrench_frames)
        self.friction, self.payload, self.servo = friction, payload, servo

    @property
    def base(self) -> str:
        """Whether the root is "fixed" or "floating"."""
        return self.tree.base

    @property
    def loaded_tree(self) -> KinematicTree:
        """The tree with what it carries: what moves."""
        return self.tree if self.payload is None else self.payload.on(self.tree)

    @property
    def num_joints(self) -> int:
        """N, the number of independent joints."""
        return self.tree.num_joints

    @property
    def params(self) -> Any:
        """The parameters by name; those of the links as `tree.masses`, `tree.coms`, ..."""
        return MappingProxyType({"tree": self.tree, **super().params})

    def named_entries(self) -> Mapping[str, Mapping[str, NamedEntries]]:
        """`link[NAME].mass_kg`, `joint[NAME].gear_ratio`, ...; of those arrays that the arm has."""
        tree = self.tree
        elastic = tuple(tree.joint_names[j] for j in self.elastic_joints)

        def entries(names: tuple[str, ...], arrays: dict[str, tuple[str, str]]) -> Any:
            return {
                name: NamedEntries(leaf, names, unit)
                for name, (leaf, unit) in arrays.items()
                if attrgetter(leaf)(self) is not None
            }

        return {
            "link": entries(tree.link_names, _OF_LINKS),
            "joint": entries(tree.joint_names, _OF_JOINTS)
            | entries(elastic, _OF_SPRINGS)
            | ({} if self.servo is None else entries(tree.joint_names, _OF_SERVO))
            | (
                {}
                if self.friction is None
                else entries(tree.joint_names, _of_friction(self.friction))
            ),
        }

    def state_problems(self, given: Mapping[str, Any]) -> Iterator[Problem]:
        yield from checks.state_problems(self, given)

    def value_problems(self) -> Iterator[Problem]:
        yield from checks.value_problems(self)
