"""A graph as an MJCF: its machine with springs as joints, its motors as `dcmotor`.

A spring between a rotor and its link becomes a joint of its own, on the axis of the rotor's and in
the same body: the link turns by both, the rotor's inertia is the armature of its joint alone,

    x:  M (θ̈ + ẍ) + ... = -k x - v ẋ          θ:  J θ̈ + M (θ̈ + ẍ) + ... = tau

which is the elastic joint, with nothing inserted.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mime._text import nearest, quoted
from mime.control.kinematics import Actuator, DcMotor, KinematicTree
from mime.control.kinematics.compensation import by_actuators
from mime.control.kinematics.mjcf.write import TINY, mjcf_text
from mime.control.kinematics.poses import pose_matrix
from mime.control.kinematics.transmission import coupled_joints
from mime.control.kinematics.tree import JOINT_TYPE_CONTINUOUS
from mime.control.kinematics.writing import numbers
from mime.core.arguments import wrong
from mime.core.problem import InputError
from mime.core.program import Program
from mime.core.wiring import Edge
from mime.nodes.actuation.friction import Coulomb
from mime.nodes.actuation.motor.parameters import MotorParameters
from mime.nodes.actuation.robot_arm.inserted_bodies import with_inserted_bodies
from mime.nodes.actuation.robot_arm.parameters import RobotArmParameters
from mime.nodes.actuation.robot_arm.servo import Servo

_BALL_MASS = f"that an inserted body has no mass: it has {TINY:g} kg"


class Machine(NamedTuple):
    """What the motors of a graph turn."""

    name: str
    tree: KinematicTree
    """With springs as joints."""
    torque_input: str
    """The input of the node that motors feed."""
    rotors: tuple[str, ...]
    """The joint that each entry of that input drives."""
    gears: tuple[float, ...]
    """And the gear between the two."""
    base_in_world: np.ndarray
    link_limits: dict[tuple[str, str], tuple[float, float]]
    """Of the sum of a rotor's joint and its spring's."""
    unsaid: tuple[str, ...]
    actuators: tuple[Actuator, ...] = ()
    """Its own: a servo."""


def machine_of_arm(arm: RobotArmParameters) -> Machine:
    """An arm and what it carries; elastic joints as two joints each, a servo as actuators."""
    tree, elastic = arm.loaded_tree, arm.elastic_joints
    dry = np.zeros(arm.num_joints) if arm.friction is None else arm.friction.coulomb_torque
    gravity = np.asarray(arm.gravity_world, float)
    tree = dataclasses.replace(
        tree,
        joint_friction=np.asarray(arm.joint_friction_n_m_s, float),
        joint_coulomb_friction=np.asarray(dry, float),
        gravity_m_per_s2=(float(gravity[0]), float(gravity[1]), float(gravity[2])),
    )
    if arm.servo is not None:
        tree = _with_limits_of(arm.servo, tree)
    names, limits = tree.joint_names, {}
    unsaid = [f"option joint_limits={arm.joint_limits!r}: MuJoCo's limits are soft"]
    if arm.friction is not None and not isinstance(arm.friction, Coulomb):
        unsaid += [
            f"joint {name!r} has {arm.friction.in_words(j)}: its Coulomb torque is written"
            for j, name in enumerate(arm.tree.joint_names)
        ]
    if elastic:
        tree, limits = _with_springs(arm, tree, unsaid)
    actuators = () if arm.servo is None else _servo(arm.servo, arm.tree, unsaid)
    base = np.asarray(arm.base_pose_world, float)
    return Machine(
        arm.name,
        tree,
        "commanded_joint_torques",
        names,
        (1.0,) * len(names),
        pose_matrix(base[:3], base[3:]),
        limits,
        tuple(unsaid),
        actuators,
    )


def _servo(servo: Servo, tree: KinematicTree, unsaid: list[str]) -> tuple[Actuator, ...]:
    """kp (u - q) - kd q̇ within ±T at each joint, rotor or shared drive; u: the desired angle."""
    if servo.gravity_compensation:
        unsaid.append("the servo's feed-forward of gravity")
    torque, speed = (np.asarray(limit) for limit in servo.limits(tree, float))
    unsaid += [
        f"the servo drives joint {joint!r} at {float(most)!r} rad/s at most"
        for joint, most in zip(tree.joint_names, speed, strict=True)
        if np.isfinite(most)
    ]
    torque = np.where(by_actuators(tree), np.inf, torque)  # the joint's limit counts the weight too
    rows = zip(tree.joint_names, servo.kp, servo.kd, torque, strict=True)
    return tuple(
        Actuator(
            f"{joint}_servo",
            "position",
            joint,
            gain=(float(kp), 0.0, 0.0),
            bias=(0.0, -float(kp), -float(kd)),
            force_range=(-float(T), float(T)),
            at_drive=True,
        )
        for joint, kp, kd, T in rows
    )


def _with_limits_of(servo: Servo, tree: KinematicTree) -> KinematicTree:
    """The tree with a servo's limit at joints whose weight it bears within that."""
    torque, _ = servo.limits(tree, float)
    limits = np.where(by_actuators(tree), torque, tree.effort_limits)
    return dataclasses.replace(tree, effort_limits=limits)


def _with_springs(arm: RobotArmParameters, tree: KinematicTree, unsaid: list[str]) -> Any:
    """The tree with a joint for each spring, and the limits of the links that two joints move."""
    elastic, names = arm.elastic_joints, tree.joint_names
    shared = [j for j in elastic if tree.coordinate_idxs.count(j) > 1]
    if shared:
        raise InputError(
            f"{arm.name!r}: elastic joint {names[shared[0]]!r} moves several links, which an MJCF "
            "cannot say. Make it rigid, or take the mimicking joints out"
        )
    if tree.spring_stiffness_n_m_per_rad is not None:
        beside = np.asarray(tree.spring_stiffness_n_m_per_rad)
        unsaid += [
            f"joint {names[j]!r} has a spring beside an elastic drive: {float(beside[j])!r} N·m/rad"
            for j in elastic
            if beside[j]
        ]
    unsaid += [
        f"the rotor of elastic joint {names[j]!r} bears weight (gravcomp): here its link does"
        for j in elastic
        if names[j] in tree.actuator_compensated_joints
    ]
    inserted = arm.inserted_inertia_kg_m2
    inertia = np.zeros(len(elastic)) if inserted is None else np.asarray(inserted, float)
    whole = with_inserted_bodies(tree, elastic, inertia)
    friction, stiffness = np.array(whole.joint_friction), np.zeros(whole.num_joints)
    reference, ends = np.zeros(whole.num_joints), np.array(whole.joint_limits, float)
    limits = {}
    for e, j in enumerate(elastic):
        spring = whole.joint_names.index(f"{names[j]}_spring")
        stiffness[spring] = np.asarray(arm.joint_stiffness_n_m_per_rad)[e]
        friction[spring] = np.asarray(arm.joint_stiffness_damping_n_m_s)[e]
        low, high = (float(x) for x in ends[spring + 1])
        if np.isfinite(low) or np.isfinite(high):
            limits[names[j], f"{names[j]}_spring"] = (low, high)
        ends[spring + 1] = -np.inf, np.inf
    if tree.spring_stiffness_n_m_per_rad is not None:
        for j, name in enumerate(names):
            if j not in elastic:
                at = whole.joint_names.index(name)
                stiffness[at] = np.asarray(tree.spring_stiffness_n_m_per_rad)[j]
                reference[at] = np.asarray(tree.spring_reference_rad)[j]
    masses = np.array(whole.masses, float)
    if inserted is not None:
        masses[[name not in tree.link_names for name in whole.link_names]] = TINY
        unsaid.append(_BALL_MASS)
    whole = dataclasses.replace(
        whole,
        masses=masses,
        joint_friction=friction,
        joint_limits=ends,
        spring_stiffness_n_m_per_rad=stiffness,
        spring_reference_rad=reference,
        keyframes=(),
    )
    return whole, limits


def machine_of_joint(node: Any) -> Machine:
    """An `ElasticJointNode`: it turns a ball of its output inertia, about z and without gravity."""
    I = float(node.output_inertia_kg_m2)
    N = 1.0 if node.gear_ratio is None else float(node.gear_ratio)
    ball = 0.0 if node.inserted_inertia_kg_m2 is None else float(node.inserted_inertia_kg_m2)
    spring, rotor = f"{node.name}_spring", node.name
    tree = KinematicTree(
        joint_frames=np.stack([np.eye(4)] * 2),
        joint_axes_local=np.array([[0.0, 0.0, 1.0]] * 2),
        mimic_multiplier=np.ones(2),
        mimic_offset=np.zeros(2),
        masses=np.array([TINY if ball else 0.0, 1.0]),
        coms=np.zeros((2, 3)),
        inertial_shifts=np.zeros((2, 3)),
        inertias=np.stack([ball * np.eye(3), I * np.eye(3)]),
        joint_friction=np.array([float(node.damping_n_m_s), 0.0]),
        joint_coulomb_friction=np.zeros(2),
        joint_limits=np.array([[-np.inf, np.inf]] * 2),
        effort_limits=np.full(2, np.inf),
        velocity_limits=np.full(2, np.inf),
        gear_ratio=np.array([1.0, N]),
        rotor_inertia=np.array([0.0, float(node.rotor_inertia_kg_m2)]),
        frame_offsets=np.stack([np.eye(4)] * 3),
        name=node.name,
        source=f"ElasticJointNode {node.name!r}",
        joint_names=(spring, rotor),
        link_names=(f"{rotor}_ball", f"{rotor}_output"),
        link_joint_names=(spring, rotor),
        root_link_name="world",
        joint_kinds=(JOINT_TYPE_CONTINUOUS,) * 2,
        parent_idxs=(-1, 0),
        coordinate_idxs=(0, 1),
        frame_names=("world", f"{rotor}_ball", f"{rotor}_output"),
        frame_link_idxs=(-1, 0, 1),
        visuals=(),
        report=(),
        spring_stiffness_n_m_per_rad=np.array([float(node.stiffness_n_m_per_rad), 0.0]),
        spring_reference_rad=np.zeros(2),
        gravity_m_per_s2=(0.0, 0.0, 0.0),
    )
    unsaid = [_BALL_MASS] if ball else []
    if node.hardening_n_m_per_rad3 is not None:
        unsaid.append(f"the spring hardens: {float(node.hardening_n_m_per_rad3)!r} N·m/rad³")
    if node.backlash_rad is not None:
        unsaid.append(f"backlash of {float(node.backlash_rad)!r} rad on either side")
    rotors, gears = (rotor,), (N,)
    return Machine(node.name, tree, "motor_torque", rotors, gears, np.eye(4), {}, tuple(unsaid))


def graph_mjcf(
    program: Program,
    machine: Machine,
    origins: Mapping[str, str] | None = None,
    uncertainties: Mapping[str, Any] | None = None,
    mend: bool = False,
) -> str:
    """The file's text: the machine, and a motor for each motor node that drives it."""
    said = _by_node(program, {"origins": origins or {}, "uncertainties": uncertainties or {}})
    tree, unsaid = machine.tree, list(machine.unsaid)
    friction = np.array(tree.joint_friction, float)
    actuators, notes = list(machine.actuators), {}
    for edge in program.wiring.edges:
        if edge.target != machine.name:
            continue
        source = program.nodes[edge.source]
        drives = edge.target_field == machine.torque_input and edge.source_field == "shaft_torque"
        if not (drives and isinstance(source, MotorParameters)):
            unsaid.append(f"{type(source).__name__} {edge.source!r} gives {edge.target_field}")
            continue
        entry, sign = _driven(edge, len(machine.rotors))
        joint = machine.rotors[entry]
        actuator, damping = _motor(source, joint, sign * machine.gears[entry], unsaid)
        if damping and any(tree.joint_names[c] == joint for g in coupled_joints(tree) for c in g):
            unsaid.append(f"{source.name!r} damps joint {joint!r} by {damping!r} N·m·s/rad")
        else:
            friction[tree.joint_names.index(joint)] += damping
        actuators.append(actuator)
        notes[actuator.name] = _notes(source, said)
    tree = dataclasses.replace(tree, joint_friction=friction)
    if actuators:
        tree = dataclasses.replace(tree, actuators=tuple(actuators), keyframes=())
    return mjcf_text(
        tree,
        said["origins"].get(machine.name),
        said["uncertainties"].get(machine.name),
        unsaid=unsaid,
        tendon_limits=machine.link_limits,
        timestep=program.timestep,
        base_in_world=machine.base_in_world,
        actuator_comments=notes,
        mend=mend,
    )


def _by_node(
    program: Program, given: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, dict[str, Any]]]:
    """What is said of each node, by its own addresses."""
    found: dict[str, dict[str, dict[str, Any]]] = {label: {} for label in given}
    for label, entries in given.items():
        for address, value in entries.items():
            node, _, rest = address.partition(".")
            if node not in program.nodes:
                hint = f"The nodes are {quoted(program.nodes)}{nearest(node, program.nodes)}"
                raise wrong(label, "addresses such as 'arm.link[forearm].mass_kg'", address, hint)
            found[label].setdefault(node, {})[rest] = value
    return found


def _driven(edge: Edge, count: int) -> tuple[int, float]:
    """Which entry of the torques an edge feeds, and by which factor."""
    if count == 1 and edge.transform is None:
        return 0, 1.0
    torques = np.asarray([np.ravel(edge.value(np.float64(x))) for x in (0.0, 1.0, 2.0)])
    slope = torques[1] - torques[0]
    entries = np.flatnonzero(slope)
    linear = not np.any(torques[0]) and np.allclose(torques[2], 2 * slope, rtol=1e-6)
    if len(entries) != 1 or not linear:
        raise InputError(
            f"{edge}: its transform does not give the motor's torque to one joint; got {slope} for "
            "1 N·m. An MJCF has one joint for each motor"
        )
    return int(entries[0]), float(slope[entries[0]])


def _motor(
    motor: MotorParameters, joint: str, gear: float, unsaid: list[str]
) -> tuple[Actuator, float]:
    """The actuator of a motor node, and its friction at the joint."""
    if motor.gear is not None:
        gear *= float(motor.gear.ratio)
        if motor.gear.efficiency is not None:
            eta = float(motor.gear.efficiency)
            unsaid.append(f"the gear of {motor.name!r} has an efficiency of {eta!r}")
    if motor.friction is not None:
        unsaid.append(f"friction of {motor.name!r}: {motor.friction.in_words()}")
    effects = {name: getattr(motor, name) for name in ("saturation", "winding")}
    unsaid += [f"{name} of {motor.name!r}: {part}" for name, part in effects.items() if part]
    kt, ke = float(motor.kt_n_m_per_a), float(motor.ke_v_s_per_rad)
    if kt != ke:
        unsaid.append(f"{motor.name!r} has kt {kt!r} and ke {ke!r}: their mean is written")
    torque, voltage = np.inf, np.inf
    if motor.limits is not None:
        if motor.limits.torque_n_m is not None:
            torque = float(motor.limits.torque_n_m)
        if motor.limits.current_a is not None:
            torque = min(torque, kt * float(motor.limits.current_a))
        if motor.limits.supply_voltage_v is not None:
            voltage = float(motor.limits.supply_voltage_v)
    damping = gear**2 * float(motor.damping_n_m_s)
    if motor.command_mode not in ("voltage", "auto"):
        if motor.command_mode == "velocity":
            unsaid.append(f"{motor.name!r} is commanded by velocity: its PI is not in the file")
        actuator = Actuator(motor.name, "motor", joint, gear, control_range=(-torque, torque))
        return actuator, damping
    cogging = (0.0, 0.0, 0.0)
    if motor.cogging is not None:
        part = motor.cogging
        cogging = (float(part.torque_n_m), float(part.periods_per_turn), float(part.phase_rad))
    electrical = DcMotor(
        float(np.sqrt(kt * ke)), float(motor.r_ohm), float(motor.l_henry), *cogging
    )
    ranges = (-voltage, voltage), (-torque, torque)
    return Actuator(
        motor.name, "dcmotor", joint, gear, (0.0,) * 3, (0.0,) * 3, *ranges, electrical
    ), damping


def _notes(motor: MotorParameters, said: Mapping[str, Any]) -> list[str]:
    """Where a motor's figures came from, a line for each that something is known of."""
    origins = said["origins"].get(motor.name, {})
    widths = said["uncertainties"].get(motor.name, {})
    lines = []
    for address in dict.fromkeys([*origins, *widths]):
        words = f"{motor.name}.{address}"
        words += f": ± {numbers(widths[address])}" if address in widths else ""
        lines.append(words + (f" ({origins[address]})" if address in origins else ""))
    unit = "N·m" if motor.command_mode in ("torque", "velocity") else "V"
    return [f"{type(motor).__name__} {motor.name!r}, its control in {unit}", *lines]
