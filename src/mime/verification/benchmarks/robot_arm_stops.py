"""MIME-VER-162: the arm of three links driven into its stops, one and several at once."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.nodes.actuation.robot_arm import RobotArmNode
from mime.nodes.actuation.robot_arm.stops import stopped
from mime.verification.benchmark import Measurement, benchmark, largest
from mime.verification.benchmarks.robot_arm import SETUP, planar, plane
from mime.verification.programs import quick_jit

LIMITS = np.array([[-1.0, 0.9], [-0.8, 0.7], [-0.6, 1.1]])
SPRINGS = {
    "joint_stiffness_n_m_per_rad": (300.0, np.inf, 200.0),
    "rotor_inertia_kg_m2": (1e-4, 1e-4, 1e-4),
    "gear_ratio": (50.0, 50.0, 50.0),
}
"""Shoulder and wrist are elastic, the elbow is rigid."""


def _one_velocity_zeroed(stopped):
    """each velocity into a stop set to zero, and the other joints left as they are"""

    def wrong(arm: RobotArmNode, state: dict) -> dict:
        q, qd = state["joint_angles"], state["joint_velocities"]
        lower, upper = jnp.asarray(arm.tree.joint_limits).T
        into = ((q <= lower) & (qd < 0)) | ((q >= upper) & (qd > 0))
        return {**state, "joint_velocities": jnp.where(into, 0.0, qd)}

    return wrong


def _states(count: int, elastic: int) -> tuple[dict[str, Any], np.ndarray]:
    """Each joint at its lower stop, at its upper one or between, and the sides: 1, -1 or 0."""
    rng = np.random.default_rng(162)
    lower, upper = LIMITS.T
    side = rng.integers(-1, 2, (count, 3)).astype(float)
    between = rng.uniform(lower, upper, (count, 3))
    q = np.where(side > 0, lower, np.where(side < 0, upper, between))
    state = {"joint_angles": q, "joint_velocities": rng.normal(size=(count, 3))}
    if elastic:
        state["joint_deflections"] = 0.1 * rng.normal(size=(count, elastic))
        state["joint_deflection_velocities"] = rng.normal(size=(count, elastic))
    return state, side


def _energies(node: RobotArmNode, state: dict[str, Any], M: np.ndarray) -> np.ndarray:
    """Links by the plane's mass matrix, rotors by their own speeds, springs."""
    qd = np.asarray(state["joint_velocities"])
    energy = 0.5 * np.einsum("bi,bij,bj->b", qd, M, qd)
    if joints := list(node.elastic_joints):
        rotors = qd.copy()
        rotors[:, joints] -= np.asarray(state["joint_deflection_velocities"])
        k = np.asarray(node.joint_stiffness_n_m_per_rad)
        energy += 0.5 * rotors**2 @ np.asarray(node.tree.armature)
        energy += 0.5 * np.asarray(state["joint_deflections"]) ** 2 @ k
    return energy


@benchmark(162, "Hard stops add no energy", stopped, _one_velocity_zeroed, node_id="MIME-NODE-102")
def blows(
    stopped,
    *,
    setup=SETUP,
    joint_limits_rad=LIMITS,
    springs=SPRINGS,
    states=10_000,
    restitution=0.7,
):
    """q̇⁺ = q̇ + M⁻¹ Jᵀ λ,   0 ≤ λ  ⊥  J (q̇⁺ + e q̇) ≥ 0

    A blow at one joint is felt in all of them. The impulse that takes one velocity away changes the
    others; to set that one to zero alone would be the work of a force that nobody applied.

    Reference: Moreau's law of impact: these conditions have one solution, and it never raises the
    energy. Energies and impulses are computed with the plane's mass matrix in closed form.
    Procedure:
    1. Draw states with each joint at a stop or between, at normal velocities of 1 rad/s (seed 162).
    2. Rigid arm, e = 0: hold λ = J M (q̇⁺ - q̇) and the speeds after the blow to the conditions.
    3. Rigid and elastic arm, e = 0 and e > 0: compare the energy of links, rotors and springs
       before and after.
    Covers: one and several stops at once; restitution; links whose rotors are behind springs
    Excludes: motion between the blows; inserted bodies and MuJoCo's limits (in the tests)
    """
    roundings = "a hundred roundings"
    Arm: Any = RobotArmNode
    for name, given in (("rigid", {}), ("elastic", springs)):
        for e in (0.0, restitution):
            options = {**given, "joint_limit_override": joint_limits_rad, "stop_restitution": e}
            node = Arm("arm", 1e-3, planar(), "link_3", **options)
            before, side = _states(states, len(node.elastic_joints))
            after = quick_jit(jax.vmap(lambda state, node=node: stopped(node, state)))(before)
            M = plane(before["joint_angles"], before["joint_velocities"]).M
            energies = _energies(node, before, M)
            rise = (_energies(node, after, M) - energies) / energies
            yield Measurement(
                f"largest rise of the energy, relative, {name}, e = {e:g}",
                float(rise.max()),
                limit=1e-12,
                why=roundings,
            )
            v, new = (np.asarray(state["joint_velocities"]) for state in (before, after))
            yield Measurement(
                f"smallest speed away from a stop, {name}, e = {e:g}",
                float(np.min(side * (new + e * v))),
                limit=-1e-12,
                unit="rad/s",
                at_least=True,
                why=roundings,
            )
            if name == "rigid" and not e:
                yield from _complementary(side, v, new, M)


def _complementary(side: Any, v: Any, new: Any, M: Any) -> Any:
    """The impulses of a rigid arm's stops push, and only where the joint stays."""
    impulses = np.einsum("bij,bj->bi", M, new - v)
    yield Measurement(
        "impulse of a joint that is at no stop",
        largest(impulses[side == 0]),
        limit=1e-13,
        unit="N·m·s",
        why="a hundred roundings of 0.1 N·m·s",
    )
    yield Measurement(
        "smallest impulse of a stop",
        float(np.min(side * impulses)),
        limit=-1e-13,
        unit="N·m·s",
        at_least=True,
        why="likewise: a stop pushes and never pulls",
    )
    yield Measurement(
        "impulse times speed after the blow",
        largest(impulses * side * new),
        limit=1e-13,
        unit="J",
        why="likewise: a stop that pushes holds its joint still",
    )
    yield Measurement(
        "states in which several stops push at once",
        float(np.sum(np.sum(side * impulses > 1e-9, axis=1) > 1)),
        limit=1000.0,
        at_least=True,
        why="a tenth, so that the search among several stops is measured",
    )
