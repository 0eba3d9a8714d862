"""Where a joint's travel ends: a hard stop, or the limit alone.

    q' = clip(q),    H v⁺ = H v + Jᵀ λ,    0 ≤ λ ⊥ J v⁺ + e J v ≥ 0

A stop holds the link and not what is behind its spring. The blow goes through the whole arm: H is
the mass matrix in the coordinates v in which the arm's model moves, and J says how they move the
links against their stops. One restitution e holds for the whole arm, see `mime.control.impact`.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mime.control.impact import velocities_after_blow
from mime.control.kinematics import mass_matrix
from mime.core.node import State
from mime.nodes.actuation.robot_arm.elastic import rigid_joints, rotor_motion, without_rotors
from mime.nodes.actuation.robot_arm.forces import limits
from mime.nodes.actuation.robot_arm.inserted_bodies import (
    interleaved,
    separated,
    with_inserted_bodies,
)
from mime.nodes.actuation.robot_arm.parameters import RobotArmParameters
from mime.nodes.actuation.robot_arm.springs import only, spread


def held(arm: RobotArmParameters, state: State) -> State:
    """The links within their limits, their velocities kept; rotors stay where they are."""
    if not has_limits(arm):
        return state
    q = state["joint_angles"]
    inside = jnp.clip(q, *limits(arm, q.dtype))
    new = {**state, "joint_angles": inside}
    if arm.elastic_joints:
        moved = only(inside - q, arm.elastic_joints)
        new["joint_deflections"] = state["joint_deflections"] + moved
    return new


def stopped(arm: RobotArmParameters, state: State) -> State:
    """The same, and the velocities after the blow where a link was driven into its stop."""
    if not has_limits(arm):
        return state
    q = state["joint_angles"]
    lower, upper = limits(arm, q.dtype)
    reached = jnp.any((q <= lower) | (q >= upper))
    return jax.lax.cond(reached, lambda s: _at_stops(arm, s), lambda s: s, state)


def _at_stops(arm: RobotArmParameters, state: State) -> State:
    """Where some links have reached their stops: a blow if one of them is driven in."""
    q, qd = state["joint_angles"], state["joint_velocities"]
    lower, upper = limits(arm, q.dtype)
    side = (q <= lower).astype(q.dtype) - (q >= upper).astype(q.dtype)
    driven_in = jnp.any(side * qd < 0)
    return jax.lax.cond(driven_in, lambda s: _hit(arm, s, side), lambda s: s, held(arm, state))


def has_limits(arm: RobotArmParameters) -> bool:
    """False when every joint is known to turn without end."""
    both = arm.tree.joint_limits
    return not (isinstance(both, np.ndarray) and np.all(np.isinf(both)))


def _hit(arm: RobotArmParameters, state: State, side: Array) -> State:
    """The velocities after a blow; `side` is 1 at a lower stop, -1 at an upper one, else 0."""
    q, qd = state["joint_angles"], state["joint_velocities"]
    e = jnp.asarray(arm.stop_restitution, q.dtype)
    elastic = arm.elastic_joints
    J, touching = jnp.diag(side), side != 0
    if elastic and arm.joint_model == "inserted_body":
        return {**state, **_hit_with_bodies(arm, state, J, touching, e)}
    links = (
        without_rotors(arm.loaded_tree, rigid_joints(arm, q.dtype)) if elastic else arm.loaded_tree
    )
    after = velocities_after_blow(jnp.asarray(mass_matrix(links, q)), qd, J, touching, e)
    new = {**state, "joint_velocities": after}
    if elastic:
        xd = state["joint_deflection_velocities"] + only(after - qd, elastic)
        new["joint_deflection_velocities"] = xd
    return new


def _hit_with_bodies(
    arm: RobotArmParameters, state: State, J: Array, touching: Array, e: Any
) -> dict[str, Array]:
    """The coordinates are those of springs and motors: a link moves with both of its own."""
    elastic, n = arm.elastic_joints, arm.num_joints
    x, xd = state["joint_deflections"], state["joint_deflection_velocities"]
    q, qd = state["joint_angles"], state["joint_velocities"]
    tree = with_inserted_bodies(arm.loaded_tree, elastic, arm.inserted_inertia_kg_m2)
    z = interleaved(x, rotor_motion(arm, q, x), elastic)
    zd = interleaved(xd, rotor_motion(arm, qd, xd), elastic)
    rows = jnp.stack([interleaved(only(row, elastic), row, elastic) for row in J])
    H = jnp.asarray(mass_matrix(tree, z))
    xd, motor = separated(velocities_after_blow(H, zd, rows, touching, e), elastic)
    return {"joint_velocities": motor + spread(xd, elastic, n), "joint_deflection_velocities": xd}
