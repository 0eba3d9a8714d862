"""Accelerations of an arm with elastic joints, over a step or at an instant.

    M(q) q̈ + c + g = tau_link + Σ J_iᵀ F_i,    J θ̈ = tau_cmd - f θ̇ + k x + v ẋ,    x = q - θ

tau_link is tau_cmd - f q̇ of a rigid joint and -k x - v ẋ of an elastic one: friction is the
gear's, before the spring. With `joint_model="inserted_body"` the tree has the bodies in it.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.control import drives
from mime.control.joint_friction import coulomb_step
from mime.control.kinematics import KinematicTree, forward_dynamics, mass_matrix, rnea
from mime.control.kinematics.coupling import solver
from mime.control.servo_step import servo_step
from mime.core.node import State, Values
from mime.nodes.actuation.robot_arm import forces
from mime.nodes.actuation.robot_arm.inserted_bodies import (
    interleaved,
    separated,
    with_inserted_bodies,
)
from mime.nodes.actuation.robot_arm.parameters import RobotArmParameters
from mime.nodes.actuation.robot_arm.springs import Springs, only, spread

Accelerations = tuple[Float[Array, " n"], Float[Array, " e"], Any]
"""q̈, ẍ, and the servo's torques (N,); None without a servo."""


def rotor_motion(arm: RobotArmParameters, link: Array, deflection: Array) -> Array:
    """θ = q - x (N,), and θ̇ likewise; θ is q where a joint is rigid."""
    return link - spread(deflection, arm.elastic_joints, arm.num_joints)


def accelerations(
    arm: RobotArmParameters, state: State, inputs: Values, dt: Any, h: Any
) -> Accelerations:
    """q̈ (N,) and ẍ (E,) over a step dt with the springs at the time h; at an instant when both
    are 0, without dry friction and speed limits then.
    """
    if arm.joint_model == "sea":
        return _series_elastic(arm, state, inputs, dt, h)
    return _inserted_body(arm, state, inputs, dt, h)


def rigid_acceleration(
    arm: RobotArmParameters, q: Array, qdd: Array, xdd: Array
) -> Float[Array, " n"]:
    """r̈ = (M + J)⁻¹ (M q̈ + J θ̈): the acceleration that links and rotors share.

    Springs act on both sides and cancel; what is left is what drives the arm as a rigid one.
    """
    n, elastic = arm.num_joints, arm.elastic_joints
    rigid, none = rigid_joints(arm, q.dtype), np.zeros(3)
    J = jnp.asarray(only(arm.tree.armature, elastic), q.dtype)
    of_rotors = spread(J * (only(qdd, elastic) - xdd), elastic, n)
    of_links = rnea(without_rotors(arm.loaded_tree, rigid), q, None, qdd, none)
    return jnp.asarray(
        forward_dynamics(arm.loaded_tree, q, np.zeros(n), of_links + of_rotors, none)
    )


def _series_elastic(
    arm: RobotArmParameters, state: State, inputs: Values, dt: Any, h: Any
) -> Accelerations:
    q, qd, x, xd = _motion(state)
    elastic, n, dtype = arm.elastic_joints, arm.num_joints, q.dtype
    friction = forces.implicit_friction(arm, dt, dtype)
    rotor_velocities = rotor_motion(arm, qd, xd)
    tau, servo_torques = forces.driving_torques(arm, q, inputs, rotor_velocities), None
    if arm.servo is not None and _instant(dt):
        rotors = rotor_motion(arm, q, x)
        servo_torques = forces.servo_torques_now(arm, q, rotors, rotor_velocities, inputs)
        tau = tau + servo_torques
    law, outside = None, forces.link_torques(arm, q, inputs)
    if arm.servo is not None and not _instant(dt):
        law = forces.servo_law(arm, q, rotor_motion(arm, q, x), inputs, dt)
    if arm.joint_limits == "spring":
        push, stiffness = forces.soft_stops(arm, q, qd, dt)
        outside = outside + push
    gravity, wrenches = forces.gravity_base(arm), forces.wrenches_base(arm, inputs)
    k = jnp.asarray(arm.joint_stiffness_n_m_per_rad, dtype)
    v = jnp.asarray(arm.joint_stiffness_damping_n_m_s, dtype)
    rigid = rigid_joints(arm, dtype)

    def external() -> Array:
        """On a rigid joint all but the actuators; on a rotor before a spring that spring."""
        bias = jnp.asarray(rnea(arm.loaded_tree, q, qd, None, gravity, wrenches))
        return rigid * (outside - bias) + spread(k * x + v * xd, elastic, n)

    tau_f, shift = forces.dry_friction(arm, q, rotor_velocities, inputs, law, external)
    if shift is not None and not _instant(dt):
        tau = tau + shift
    J = jnp.asarray(only(arm.tree.armature, elastic), dtype)
    springs = Springs(
        k, v, J if friction is None else J + only(friction, elastic), x, xd, only(tau, elastic), h
    )
    links, rubbed = drives.resisting(
        without_rotors(arm.loaded_tree, rigid), None if friction is None else rigid * friction
    )
    diagonal = spread(springs.diagonal, elastic, n)
    if rubbed is not None:
        diagonal = diagonal + rubbed
    tau_link = rigid * tau + spread(springs.torque, elastic, n)
    tau_link = tau_link + outside
    if arm.joint_limits == "spring":
        diagonal = diagonal + stiffness
    qdd = jnp.asarray(forward_dynamics(links, q, qd, tau_link, gravity, wrenches, diagonal))
    rotor = springs.rotor_acceleration(only(qdd, elastic))
    if (tau_f is not None or arm.servo is not None) and not _instant(dt):
        at_spring = springs.K * h
        # Links and rotors together: undo the elimination, and let servo and friction hold the
        # rotors.
        M = jnp.asarray(mass_matrix(links, q)) + jnp.diag(diagonal)
        M = M + jnp.diag(spread(at_spring - springs.diagonal, elastic, n))
        across = -at_spring[None] * np.eye(n, dtype=dtype)[:, list(elastic)]
        H = jnp.block([[M, across], [across.T, jnp.diag(springs.J + at_spring)]])
        thetad = only(qd, elastic) - xd
        before = jnp.concatenate([qd, thetad])
        free = before + dt * jnp.concatenate([qdd, rotor])
        if law is not None:

            def of_all(values: Array, rest: float) -> Array:
                """Of links and rotors: `rest` at a link whose rotor has the servo."""
                return jnp.concatenate([jnp.where(rigid == 1, values, rest), only(values, elastic)])

            law = law._replace(friction=tau_f).arranged(of_all)
            solve = solver(links, q, elastic)
            held, torques = drives.servo_step_at_drives(links, solve, H, H @ free, before, law, dt)
            servo_torques = rigid * torques[:n] + spread(torques[n:], elastic, n)
        else:
            impulse = jnp.concatenate([rigid * tau_f, only(tau_f, elastic)])
            held = drives.dry_step(links, H, free, dt * impulse)
        change = (held - before) / dt
        qdd, rotor = change[:n], change[n:]
    return qdd, only(qdd, elastic) - rotor, servo_torques


def _inserted_body(
    arm: RobotArmParameters, state: State, inputs: Values, dt: Any, h: Any
) -> Accelerations:
    q, qd, x, xd = _motion(state)
    elastic, n, dtype = arm.elastic_joints, arm.num_joints, q.dtype
    motor, motor_velocity = rotor_motion(arm, q, x), rotor_motion(arm, qd, xd)
    k = jnp.asarray(arm.joint_stiffness_n_m_per_rad, dtype)
    K = k * h + jnp.asarray(arm.joint_stiffness_damping_n_m_s, dtype)
    tool = forces.link_torques(arm, q, inputs) + jnp.zeros(n, dtype)
    tau, servo_torques = forces.driving_torques(arm, q, inputs, motor_velocity) + tool, None
    if arm.servo is not None and _instant(dt):
        servo_torques = forces.servo_torques_now(arm, q, motor, motor_velocity, inputs)
        tau = tau + servo_torques
    friction = forces.implicit_friction(arm, dt, dtype)
    friction = jnp.zeros(n, dtype) if friction is None else friction
    tree = with_inserted_bodies(arm.loaded_tree, elastic, arm.inserted_inertia_kg_m2)
    z, zd = interleaved(x, motor, elastic), interleaved(xd, motor_velocity, elastic)
    diagonal = interleaved(K * h, friction, elastic)
    gravity, wrenches = forces.gravity_base(arm), _with_bodies(arm, tree, inputs)
    law = None
    if arm.servo is not None and not _instant(dt):
        law = forces.servo_law(arm, q, motor, inputs, dt)

    def external() -> Array:
        bias = jnp.asarray(rnea(tree, z, zd, None, gravity, wrenches))
        return tool - separated(bias, elastic)[1]

    tau_f, shift = forces.dry_friction(arm, q, motor_velocity, inputs, law, external)
    if shift is not None and not _instant(dt):
        tau = tau + shift
    torques = interleaved(only(tool, elastic) - k * x - K * xd, tau, elastic)
    zdd = jnp.asarray(forward_dynamics(tree, z, zd, torques, gravity, wrenches, diagonal))
    if (tau_f is not None or arm.servo is not None) and not _instant(dt):
        H = jnp.asarray(mass_matrix(tree, z)) + jnp.diag(diagonal)
        if law is not None:
            law = law._replace(friction=tau_f).arranged(
                lambda values, rest: interleaved(jnp.full_like(x, rest), values, elastic)
            )
            p = H @ (zd + dt * zdd)
            held, torques = servo_step(H, p, zd, law, dt, solver(tree, z, ()))
            _, servo_torques = separated(torques, elastic)
        else:
            impulse = dt * interleaved(jnp.zeros_like(x), tau_f, elastic)
            held = coulomb_step(H, zd + dt * zdd, impulse)
        zdd = (held - zd) / dt
    xdd, motor_acceleration = separated(zdd, elastic)
    return motor_acceleration + spread(xdd, elastic, n), xdd, servo_torques


def _motion(state: State) -> tuple[Array, Array, Array, Array]:
    return (
        state["joint_angles"],
        state["joint_velocities"],
        state["joint_deflections"],
        state["joint_deflection_velocities"],
    )


def rigid_joints(arm: RobotArmParameters, dtype: Any) -> Float[np.ndarray, " n"]:
    """1 at rigid joints, 0 at elastic ones."""
    return np.array([j not in arm.elastic_joints for j in range(arm.num_joints)], dtype)


def without_rotors(tree: KinematicTree, rigid: Float[np.ndarray, " n"]) -> KinematicTree:
    """The tree with an armature at rigid joints only: an elastic joint's rotor spins apart."""
    return eqx.tree_at(lambda t: t.rotor_inertia, tree, tree.rotor_inertia * rigid)


def _with_bodies(arm: RobotArmParameters, tree: KinematicTree, inputs: Values) -> Any:
    """Wrenches per link of the tree with bodies, in the axes of the base: none on a body."""
    wrenches = forces.wrenches_base(arm, inputs)
    if wrenches is None:
        return None
    none = jnp.zeros_like(wrenches[0])
    old = arm.tree.link_names
    return jnp.stack([wrenches[old.index(k)] if k in old else none for k in tree.link_names])


def _instant(dt: Any) -> bool:
    return isinstance(dt, float) and dt == 0.0
