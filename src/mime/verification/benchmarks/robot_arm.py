"""MIME-VER-120 to 122: three links in a vertical plane, so that gravity loads every joint.

The references are the plane's own closed forms, from the geometry of three bars: they share no code
with the arm's kinematics and dynamics. Motion in time is in `robot_arm_motion`.
"""

from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mime.control.kinematics import KinematicTree, forward_dynamics, mass_matrix, parse_urdf
from mime.models import model_path
from mime.native.folding import jit_folding
from mime.nodes.actuation.robot_arm import RobotArmNode
from mime.verification.benchmark import Measurement, benchmark, largest
from mime.verification.programs import quick_jit

LENGTHS = np.array([0.4, 0.3, 0.2])
G = 9.80665
GRAVITY = np.array([0.0, 0.0, -G])
SETUP = {"model": "planar_arm_3link", "link_lengths_m": LENGTHS, "gravity_m_per_s2": G}
FREE = np.tile([-np.inf, np.inf], (3, 1))
"""No joint limits."""


@cache
def planar() -> KinematicTree:
    """The bundled arm of three bars."""
    return parse_urdf(model_path("planar_arm_3link"))


class Plane(NamedTuple):
    """Geometry and equation of motion of the three bars."""

    centres: Any
    tip: Any
    M: Any
    c: Any
    g: Any
    V: Any


def plane(q: Any, qd: Any) -> Plane:
    """M q̈ + c + g = tau by d'Alembert's principle on the centres of mass, c_i = Σ l_ij e_j.

    e_j points along bar j, at the absolute angle a_j = q_1 + ... + q_j; n_j across it. Of angles
    (..., 3): NumPy's give NumPy's results, and nothing is compiled for them.
    """
    tree, xp = planar(), q.__array_namespace__()
    m, I = tree.masses, tree.inertias[:, 1, 1]
    S = np.tril(np.ones((3, 3)))
    l = np.tril(np.tile(LENGTHS, (3, 1)), -1) + np.diag(tree.coms[:, 0])
    a, w = q @ S.T, qd @ S.T
    e = xp.stack([xp.cos(a), xp.sin(a)], axis=-1)
    n = xp.stack([-xp.sin(a), xp.cos(a)], axis=-1)
    J = xp.einsum("ij,...jx,jk->...ixk", l, n, S)
    return Plane(
        centres=l @ e,
        tip=LENGTHS @ e,
        M=xp.einsum("i,...ixk,...ixm->...km", m, J, J) + S.T @ np.diag(I) @ S,
        c=-xp.einsum("i,...ixk,ij,...jx,...j->...k", m, J, l, e, w**2),
        g=G * m @ J[..., 1, :],
        V=(G * (l @ e)[..., 1]) @ m,
    )


def angles(count: int) -> np.ndarray:
    """All within the joint limits."""
    return np.random.default_rng(120).uniform(-np.pi, np.pi, (count, 3)) * [1, 0.89, 0.89]


def _reversed_axes(Arm):
    """every joint's axis reversed"""

    def build(name: str, dt: float, tree: KinematicTree, *rest: Any, **options: Any) -> Any:
        turned = eqx.tree_at(lambda t: t.joint_axes_local, tree, -tree.joint_axes_local)
        return Arm(name, dt, turned, *rest, **options)

    return build


@benchmark(
    120,
    "Forward kinematics in the plane",
    RobotArmNode,
    _reversed_axes,
    slug="robot_arm_fk",
    test="tests/verification/test_robot_arm.py::test_ver120_forward_kinematics",
)
def forward_kinematics(Arm, *, setup=SETUP, tool_offset_m=0.2, configurations=50):
    """p_tip = Σ l_j (cos a_j, sin a_j),   a_j = q_1 + ... + q_j

    Reference: Sums of bars at absolute angles: p_j = p_{j-1} + l_j (cos a_j, sin a_j),
    a_j = q_1 + ... + q_j; a turn by a about -y is (cos a/2, 0, -sin a/2, 0).
    Procedure:
    1. Draw configurations within the joint limits (seed 120).
    2. Compare tool pose and centres of mass from `compute_boundary_fluxes` with the sums.
    Covers: poses of all links and of a tool with an offset; signs of joint axes
    Excludes: axes out of the plane (against Pinocchio, in the tests); prismatic joints
    """
    tool = (tool_offset_m, 0, 0, 1, 0, 0, 0)
    node = Arm("arm", 1e-3, planar(), "link_3", end_effector_offset_in_link=tool)
    q = angles(configurations)
    fluxes, truth = _fluxes(node, q), plane(q, np.zeros_like(q))
    pose = np.asarray(fluxes["end_effector_pose_world"])
    half = q.sum(axis=1) / 2
    turn = np.stack([np.cos(half), 0 * half, -np.sin(half), 0 * half], axis=1)
    turn *= np.sign(np.sum(turn * pose[:, 3:], axis=1, keepdims=True))  # q and -q are one turn
    centres = np.asarray(fluxes["link_poses_world"])[:, :, [0, 2]]
    errors = {
        "tool position in the plane": (pose[:, [0, 2]] - truth.tip, "m"),
        "tool position out of the plane": (pose[:, 1], "m"),
        "centres of mass": (centres - truth.centres, "m"),
        "tool quaternion": (pose[:, 3:] - turn, "1"),
    }
    for name, (error, unit) in errors.items():
        why = "a dozen roundings of numbers of order one"
        yield Measurement(name, largest(error), limit=1e-14, unit=unit, why=why)


def _poses(node: RobotArmNode, q: Any) -> Any:
    def fluxes(q: Any) -> Any:
        state = {"joint_angles": q, "joint_velocities": jnp.zeros_like(q)}
        return node.compute_boundary_fluxes(state, {}, node.timestep)

    return jax.vmap(fluxes)(q)


_fluxes = jit_folding(_poses)


def _no_parallel_axes(mass_matrix):
    """centres of mass moved to the joints (no parallel axes)"""

    def wrong(tree: KinematicTree, q: Any) -> Any:
        return mass_matrix(eqx.tree_at(lambda t: t.coms, tree, 0 * tree.coms), q)

    return wrong


@benchmark(
    121,
    "Mass matrix in the plane",
    mass_matrix,
    _no_parallel_axes,
    node_id="MIME-NODE-102",
    slug="robot_arm_mass_matrix",
    test="tests/verification/test_robot_arm.py::test_ver121_mass_matrix",
)
def mass_matrix_of_the_plane(mass_matrix, *, setup=SETUP, configurations=200):
    """M = Σ m_i J_iᵀ J_i + Σ I_i S_iᵀ S_i

    Reference: J_i, the Jacobian of bar i's centre of mass, and S_i, that of its absolute angle, in
    closed form.
    Procedure:
    1. Draw configurations within the joint limits (seed 120).
    2. Compare M with the closed form, with its transpose, and look at its eigenvalues.
    Covers: the composite-rigid-body algorithm in the plane
    Excludes: rotor inertias (MIME-VER-160); other robots (against Pinocchio, in the tests)
    """
    q = angles(configurations)
    M = np.asarray(quick_jit(jax.vmap(lambda q: jnp.asarray(mass_matrix(planar(), q))))(q))
    truth = plane(q, np.zeros_like(q)).M
    yield Measurement(
        "error over (0.01 kg·m² + the entry)",
        largest((M - truth) / (0.01 + np.abs(truth))),
        limit=1e-12,
        why="some hundred roundings; 0.01 is a tenth of a bar's own inertia",
    )
    yield Measurement(
        "asymmetry", largest(M - M.transpose(0, 2, 1)), limit=0.0, unit="kg·m²", why="by structure"
    )
    yield Measurement(
        "smallest eigenvalue",
        float(np.linalg.eigvalsh(M).min()),
        limit=1e-3,
        unit="kg·m²",
        at_least=True,
        why="positive definite: the least is the last bar's about its joint, 2.7e-3, less coupling",
    )


def _upward_gravity(forward_dynamics):
    """the sign of gravity reversed"""
    return lambda tree, q, qd, tau, gravity: forward_dynamics(tree, q, qd, tau, -gravity)


@benchmark(
    122,
    "Accelerations of the released arm",
    forward_dynamics,
    _upward_gravity,
    node_id="MIME-NODE-102",
    slug="robot_arm_free_fall",
    test="tests/verification/test_robot_arm.py::test_ver122_free_fall",
)
def released(forward_dynamics, *, setup=SETUP, states=200, deviation_of_velocities_rad_per_s=1.0):
    """q̈ = -M(q)⁻¹ (c(q, q̇) + g(q))

    Reference: q̈ = -M⁻¹ (c + g) from d'Alembert's principle on the three centres of mass.
    Procedure:
    1. Draw configurations (seed 120) and normally distributed velocities (seed 122).
    2. Compare forward dynamics without torque with the solution in NumPy.
    Covers: mass matrix, Coriolis, centrifugal and gravity torques; the solution by LᵀDL
    Excludes: external wrenches and other robots (against Pinocchio, in the tests)
    """
    tree, q, rng = planar(), angles(states), np.random.default_rng(122)
    qd = rng.normal(scale=deviation_of_velocities_rad_per_s, size=(states, 3))
    fall = quick_jit(
        jax.vmap(lambda q, qd: forward_dynamics(tree, q, qd, jnp.zeros(3), jnp.asarray(GRAVITY)))
    )
    _, _, M, c, g, _ = plane(q, qd)
    truth = np.linalg.solve(M, -(c + g)[..., None])[..., 0]
    yield Measurement(
        "error over max(1 rad/s², the acceleration)",
        largest((np.asarray(fall(q, qd)) - truth) / np.maximum(1.0, np.abs(truth))),
        limit=1e-10,
        why="the condition of M, about 100, times some hundred roundings",
    )
