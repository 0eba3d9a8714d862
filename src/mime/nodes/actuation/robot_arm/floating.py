"""An arm on a base that floats.

    P⁺ = P + dt (m g + Σ F),    L⁺ = L + dt Σ N,    c⁺ = c + dt P⁺ / m,    Q⁺ = Q exp(dt w / 2)

For the length of a step such an arm is one that stands where its base is now, with six joints more
(`mime.control.kinematics.floating`): springs, servos, friction and stops are those of a fixed base.
They say how the joints move. The base then follows from the balance of momentum: P and L, about the
centre of mass c, are those of the whole robot, so that without forces they stay what they are, and
under gravity the centre of mass falls as a stone does. An integrator of higher order steps all
coordinates together.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.control.base_frame import to_base
from mime.control.kinematics.floating import BASE, turning_of_hinges, with_base_joints
from mime.control.kinematics.ltdl import solve_ltdl
from mime.control.kinematics.momentum import WholeBody, whole_body
from mime.core.node import State, Values
from mime.core.parameters import with_fields
from mime.core.pose import quat_from_rotation_vector, quat_multiply, quat_normalize, quat_rotate
from mime.core.spec import Input, Output
from mime.nodes.actuation.robot_arm import forces
from mime.nodes.actuation.robot_arm.checks import HIGHER_ORDER
from mime.nodes.actuation.robot_arm.parameters import RobotArmParameters

POSITION, ORIENTATION, TWIST = (
    "base_position_world_m",
    "base_orientation_world",
    "base_twist_world",
)
STATE = {
    POSITION: Output((3,), "m", "origin of the base"),
    ORIENTATION: Output((4,), "", "unit quaternion [qw qx qy qz] of the base"),
    TWIST: Output((6,), "m/s, rad/s", "[v; w] of the base's origin, in world axes"),
}
INPUT = {
    "base_wrench_world": Input(
        (6,), "N, N·m", 0.0, "additive", "[F; M] in world axes at the base's origin"
    )
}
_PER_JOINT = (
    "joint_angles",
    "joint_velocities",
    "servo_torques",
    "joint_torques_actual",
    "rotor_angles",
    "rotor_velocities",
    "motor_angles",
    "motor_velocities",
    "motor_torques",
    "commanded_joint_torques",
    "desired_joint_angles",
    "desired_joint_velocities",
)


def start(arm: RobotArmParameters) -> State:
    """The base at rest, where the robot's file puts it."""
    pose = jnp.asarray(arm.tree.base_start_pose_world, jnp.result_type(float))
    return {POSITION: pose[:3], ORIENTATION: pose[3:], TWIST: jnp.zeros(6)}


def on_fixed_base(arm: Any, state: State) -> Any:
    """The arm on a base fixed where it is now, with the six joints of `with_base_joints`."""
    pose = jnp.concatenate([state[POSITION], state[ORIENTATION]])
    dry, servo = arm.friction, arm.servo
    if dry is not None:
        dry = dry.with_free_joints(BASE)
    if servo is not None:
        servo = servo.with_free_joints(arm.tree, BASE)
    return with_fields(
        arm,
        tree=with_base_joints(arm.tree),
        base_pose_world=pose,
        joint_friction_n_m_s=_padded(arm.joint_friction_n_m_s),
        friction=dry,
        elastic_joints=tuple(BASE + j for j in arm.elastic_joints),
        servo=servo,
    )


def joint_state(state: State) -> State:
    """The state of that arm: the base's six joints are at 0 and move with its twist."""
    joints = {name: _padded(x) for name, x in state.items() if name in _PER_JOINT}
    springs = {name: x for name, x in state.items() if name not in STATE | joints}
    return joints | springs | {"joint_velocities": _velocities(state)}


def joint_inputs(inputs: Values) -> dict[str, Any]:
    """Its inputs: nothing drives the base's joints, and the base is its sixth link."""
    given = {name: _padded(x) if name in _PER_JOINT else x for name, x in inputs.items()}
    on_base, per_link = given.pop("base_wrench_world"), given["external_wrenches_per_link"]
    xp: Any = np if isinstance(on_base, np.ndarray) and isinstance(per_link, np.ndarray) else jnp
    rows = [np.zeros((BASE - 1, 6), on_base.dtype), on_base[None], per_link]
    return given | {"external_wrenches_per_link": xp.concatenate(rows)}


def of_joints(values: State) -> State:
    """A state or fluxes of that arm without the base's joints and links."""
    trimmed = {name: x[BASE:] if name in _PER_JOINT else x for name, x in values.items()}
    if "link_poses_world" in values:
        trimmed["link_poses_world"] = values["link_poses_world"][BASE:]
    return trimmed


def step(arm: Any, state: State, inputs: Values, dt: Any) -> State:
    """The joints as on a fixed base, and then the base."""
    moving, before, given = on_fixed_base(arm, state), joint_state(state), joint_inputs(inputs)
    after = moving.step_on_fixed_base(before, given, dt)
    if arm.integrator in HIGHER_ORDER:
        base = _moved_by_joints(state, after)
    else:
        base = _moved_by_momentum(moving, state, before, given, after, dt)
    return base | of_joints(after)


def accelerations(arm: Any, state: State, inputs: Values) -> tuple[Array, Array]:
    """[v̇; ẇ; q̈] with those of the base in world axes, and ẍ."""
    moving, now = on_fixed_base(arm, state), joint_state(state)
    qdd, xdd = moving.accelerations(now, joint_inputs(inputs))
    turning = turning_of_hinges(now["joint_velocities"][3:BASE])
    Q = state[ORIENTATION]
    parts = (quat_rotate(Q, qdd[:3]), quat_rotate(Q, qdd[3:BASE] + turning), qdd[BASE:])
    return jnp.concatenate(parts), xdd


def fluxes(arm: Any, state: State, inputs: Values, dt: Any) -> State:
    """Those of the arm where its base is, and the base's own state."""
    moving = on_fixed_base(arm, state)
    found = moving.fluxes_on_fixed_base(joint_state(state), joint_inputs(inputs), dt)
    return {name: state[name] for name in STATE} | of_joints(found)


def _moved_by_joints(state: State, after: State) -> State:
    """The pose to which the base's six joints have moved it, and its twist there."""
    (x, roll), rates = jnp.split(after["joint_angles"][:BASE], 2), after["joint_velocities"]
    Q, zero = state[ORIENTATION], jnp.zeros_like(roll[0])
    turn = Q
    for axis in range(3):
        half = 0.5 * roll[axis]
        parts = [jnp.cos(half), zero, zero, zero]
        parts[axis + 1] = jnp.sin(half)
        turn = quat_multiply(turn, jnp.stack(parts))
    (_, b, c), (da, db, dc) = roll, rates[3:BASE]
    cb, sb, cc, sc = jnp.cos(b), jnp.sin(b), jnp.cos(c), jnp.sin(c)
    w = jnp.stack([cb * cc * da + sc * db, -cb * sc * da + cc * db, sb * da + dc])
    turn = quat_normalize(turn)
    return {
        POSITION: state[POSITION] + quat_rotate(Q, x),
        ORIENTATION: turn,
        TWIST: jnp.concatenate([quat_rotate(Q, rates[:3]), quat_rotate(turn, w)]),
    }


def _moved_by_momentum(
    arm: Any, state: State, before: State, inputs: Values, after: State, dt: Any
) -> State:
    """The pose and the twist with which momentum and centre of mass are what forces make them."""
    Q, tree = state[ORIENTATION], arm.loaded_tree
    q, q_new = before["joint_angles"], _padded(after["joint_angles"][BASE:])
    body = jax.jit(partial(whole_body, tree))  # traced once for both ends of the step
    now = body(q, before["joint_velocities"])
    gravity = to_base(arm.base_pose_world, jnp.asarray(arm.gravity_world, q.dtype))
    F, N = jnp.split(_wrench(arm, q, inputs), 2)
    P = jnp.asarray(now.momentum) + dt * (F + now.mass * gravity)
    L = jnp.asarray(now.spin) + dt * (N - jnp.cross(now.com, F))
    w = after["joint_velocities"][3:BASE]
    turn = quat_from_rotation_vector(dt * w)  # within the base's own axes before the step
    still = body(q_new, _padded(after["joint_velocities"][BASE:]))
    v, w = _twist(still, *(quat_rotate(_conjugate(turn), x) for x in (P, L)))
    centre = now.com + (dt / now.mass) * P
    Q_new = quat_normalize(quat_multiply(Q, turn))
    moved = centre - quat_rotate(turn, jnp.asarray(still.com))
    return {
        POSITION: state[POSITION] + quat_rotate(Q, moved),
        ORIENTATION: Q_new,
        TWIST: jnp.concatenate([quat_rotate(Q_new, v), quat_rotate(Q_new, w)]),
    }


def _twist(still: WholeBody, P: Array, L: Array) -> tuple[Array, Array]:
    """v and w of the base, of the whole robot's momenta P and L; `still` has a base at rest.

    I w = L - L_still,    m (v + w × c) = P - P_still
    """
    I, spin = still.inertia, L - still.spin
    lower = [[I[i, j] for j in range(i + 1)] for i in range(3)]
    w = jnp.stack(solve_ltdl(lower, [spin[k] for k in range(3)]))
    return (P - still.momentum) / still.mass - jnp.cross(w, still.com), w


def _wrench(arm: Any, q: Array, inputs: Values) -> Float[Array, "6"]:
    """Σ [F; N] of all wrenches from outside, at the base's origin in its axes.

    What compensates gravity is from outside, also where actuators give it at the joints.
    """
    total = forces.tool_torques(arm, q, inputs) + jnp.zeros_like(q)
    if arm.tree.compensated_masses is not None:
        total = total + forces.compensation(arm, q)
    wrenches = forces.wrenches_base(arm, inputs)
    if wrenches is not None:
        total = total + forces.wrench_to_joint_torques(arm.tree, q, wrenches)
    return total[:BASE]


def _velocities(state: State) -> Float[Array, " n"]:
    """[v; w; q̇], those of the base in its axes."""
    back, (v, w) = _conjugate(state[ORIENTATION]), jnp.split(state[TWIST], 2)
    return jnp.concatenate([quat_rotate(back, v), quat_rotate(back, w), state["joint_velocities"]])


def _conjugate(Q: Array) -> Array:
    return Q * np.array([1.0, -1.0, -1.0, -1.0], Q.dtype)


def _padded(values: Any) -> Any:
    """Six zeros for the base's joints, and then those of the arm."""
    xp: Any = np if isinstance(values, np.ndarray) else jnp
    return xp.concatenate([np.zeros(BASE, values.dtype), values])
