"""An arm of rigid links, read from a URDF.

M(q) q̈ + c(q, q̇) + g(q) = tau_cmd - f q̇ - tau_c sign(q̇) + Σ J_iᵀ F_i
"""

import os
from types import MappingProxyType
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.control.base_frame import may_be_nonzero, to_base
from mime.control.joint_friction import coulomb_step
from mime.control.kinematics import (
    KinematicTree,
    forward_dynamics,
    frame_jacobian_at,
    frame_pose,
    link_world_poses,
    mass_matrix,
    parse_urdf,
    rnea,
)
from mime.core.node import (
    Input,
    Node,
    Output,
    ParameterError,
    Scalar,
    State,
    Values,
    option,
    parameter,
)
from mime.core.pose import IDENTITY_POSE, compose
from mime.core.text import nearest, quoted
from mime.nodes.actuation.robot_arm_meta import ROBOT_ARM_META

JOINT_LIMIT_MODES = ("stop", "clip", "spring")
INTEGRATORS = ("implicit", "explicit")


class RobotArmNode(Node):
    """M(q) q̈ + c(q, q̇) + g(q) = tau_cmd - f q̇ + Σ J_iᵀ F_i

    Semi-implicit Euler: q̇' = q̇ + dt q̈ and q' = q + dt q̇', with the friction f taken at q̇'
    (`integrator="implicit"`) or at q̇ (`"explicit"`).

    Angles are rad and torques N·m for a revolute joint, m and N for a prismatic one. N is the
    number of joints, L that of moving links; they differ only when joints mimic others.
    """

    meta: ClassVar = ROBOT_ARM_META

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
    limit_stiffness_n_m_per_rad: Any = parameter(
        "N·m/rad", above=0.0, doc="of the compliant stops, with joint_limits='spring'"
    )
    limit_damping_n_m_s: Any = parameter("N·m·s/rad", at_least=0.0, doc="likewise")
    end_effector_link_name: str = option()
    joint_limits: str = option()
    integrator: str = option()
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
        joint_limits: str = "stop",
        limit_stiffness_n_m_per_rad: float = 1e4,
        limit_damping_n_m_s: float = 1e2,
        integrator: str = "implicit",
        saturate_effort: bool = False,
    ):
        """Read the URDF and build the node.

        urdf_path               file, or a `KinematicTree` already parsed
        end_effector_link_name  any link of the URDF, merged ones included
        joint_friction_n_m_s    (N,), default: the URDF's `damping`
        coulomb_friction_n_m    (N,), default: the URDF's `friction`; none when that is all zero
        joint_limit_override    (N, 2) lower and upper, default: the URDF's
        rotor_inertia_kg_m2     (N,), at the motor; gear² times it goes on the diagonal of M
        gear_ratio              (N,), default: the URDF's `mechanicalReduction`, else 1
        joint_limits            "stop": the joint stops; "clip": the velocity is kept; "spring"
        integrator              "implicit" or "explicit" viscous friction
        saturate_effort         clip the command to the URDF's effort limits
        """
        where = f"RobotArmNode {name!r}"
        for label, value, allowed in (
            ("joint_limits", joint_limits, JOINT_LIMIT_MODES),
            ("integrator", integrator, INTEGRATORS),
        ):
            if value not in allowed:
                raise ParameterError(
                    f"{where}: {label} must be one of {quoted(allowed)}, got {value!r}"
                )
        tree = urdf_path if isinstance(urdf_path, KinematicTree) else parse_urdf(urdf_path)
        if end_effector_link_name not in tree.frame_names:
            raise ParameterError(
                f"{where}: no link {end_effector_link_name!r}"
                f"{nearest(end_effector_link_name, tree.frame_names)} in {tree.source}; "
                f"its links are {quoted(tree.frame_names)}."
            )
        n = tree.num_joints
        per_joint = {
            "joint_limits": _sized(where, "joint_limit_override", joint_limit_override, (n, 2)),
            "rotor_inertia": _sized(where, "rotor_inertia_kg_m2", rotor_inertia_kg_m2, (n,)),
            "gear_ratio": _sized(where, "gear_ratio", gear_ratio, (n,)),
        }
        for leaf, value in per_joint.items():
            if value is not None:
                tree = eqx.tree_at(lambda t, leaf=leaf: getattr(t, leaf), tree, value)
        friction = _sized(where, "joint_friction_n_m_s", joint_friction_n_m_s, (n,))
        coulomb = _sized(where, "coulomb_friction_n_m", coulomb_friction_n_m, (n,))
        if coulomb is None and np.any(np.asarray(tree.joint_coulomb_friction)):
            coulomb = tree.joint_coulomb_friction
        self.name, self.timestep, self.tree = name, timestep, tree
        self.end_effector_link_name = end_effector_link_name
        self.end_effector_offset_in_link = end_effector_offset_in_link
        self.base_pose_world = base_pose_world
        self.joint_friction_n_m_s = tree.joint_friction if friction is None else friction
        self.gravity_world = gravity_world
        self.coulomb_friction_n_m = coulomb
        springs = joint_limits == "spring"
        self.limit_stiffness_n_m_per_rad = limit_stiffness_n_m_per_rad if springs else None
        self.limit_damping_n_m_s = limit_damping_n_m_s if springs else None
        self.joint_limits, self.integrator = joint_limits, integrator
        self.saturate_effort = saturate_effort

    def __check_init__(self) -> None:
        where = f"{type(self).__name__} {self.name!r}"
        for label in ("base_pose_world", "end_effector_offset_in_link"):
            pose = getattr(self, label)
            if isinstance(pose, np.ndarray) and pose.shape == (7,):
                norm = np.linalg.norm(pose[3:])
                if abs(norm - 1) > 1e-6:
                    raise ParameterError(
                        f"{where}: {label} [x y z qw qx qy qz] must hold a unit quaternion, "
                        f"got one of length {norm:.6g}"
                    )
        limits = self.tree.joint_limits
        if isinstance(limits, np.ndarray) and np.any(limits[:, 0] > limits[:, 1]):
            joint = self.tree.joint_names[int(np.argmax(limits[:, 0] > limits[:, 1]))]
            raise ParameterError(
                f"{where}: the lower limit of joint {joint!r} is above its upper one"
            )

    @property
    def num_joints(self) -> int:
        """N, the number of independent joints."""
        return self.tree.num_joints

    @property
    def params(self) -> Any:
        """The parameters by name; those of the links as `tree.masses`, `tree.coms`, ..."""
        return MappingProxyType({"tree": self.tree, **super().params})

    def boundary_input_spec(self) -> dict[str, Input]:
        n, links = self.tree.num_joints, self.tree.num_links
        return {
            "commanded_joint_torques": Input((n,), "N·m", 0.0, "additive", "tau_cmd"),
            "external_wrenches_per_link": Input(
                (links, 6), "N, N·m", 0.0, "additive", "[F; M] in world axes at each link's COM"
            ),
            "end_effector_wrench_world": Input(
                (6,), "N, N·m", 0.0, "additive", "[F; M] in world axes at the tool tip"
            ),
        }

    def boundary_flux_spec(self) -> dict[str, Output]:
        n = self.tree.num_joints
        return {
            "end_effector_pose_world": Output((7,), "m", "tool tip [x y z qw qx qy qz]"),
            "link_poses_world": Output((self.tree.num_links, 7), "m", "COM frame of each link"),
            "joint_angles": Output((n,), "rad", "q"),
            "joint_velocities": Output((n,), "rad/s", "q̇"),
            "joint_torques_actual": Output((n,), "N·m", "tau_cmd - f q̇ + Jᵀ F_ext"),
        }

    def state_spec(self) -> dict[str, Output]:
        n = self.tree.num_joints
        return {
            "joint_angles": Output((n,), "rad", "q"),
            "joint_velocities": Output((n,), "rad/s", "q̇"),
        }

    def initial_state(self) -> State:
        """At rest, every joint at 0 or at the limit nearest to it."""
        limits = jnp.asarray(self.tree.joint_limits, jnp.result_type(float))
        q = jnp.clip(jnp.zeros(self.num_joints), limits[:, 0], limits[:, 1])
        return {"joint_angles": q, "joint_velocities": jnp.zeros(self.num_joints)}

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """(M + dt f) q̈ = tau_cmd - f q̇ - c - g + Jᵀ F;    q̇' = q̇ + dt q̈,    q' = q + dt q̇'"""
        q, qd = state["joint_angles"], state["joint_velocities"]
        tau = self._command(boundary_inputs, qd) + self._tool_torques(q, boundary_inputs)
        implicit = self.integrator == "implicit" and may_be_nonzero(self.joint_friction_n_m_s)
        diagonal = dt * jnp.asarray(self.joint_friction_n_m_s, q.dtype) if implicit else None
        if self.joint_limits == "spring":
            push, stiffness = self._soft_stops(q, qd, dt)
            tau = tau + push
            diagonal = stiffness if diagonal is None else diagonal + stiffness
        qdd = forward_dynamics(
            self.tree,
            q,
            qd,
            tau,
            self._gravity_base(),
            self._wrenches_base(boundary_inputs),
            diagonal,
        )
        qd = qd + dt * qdd
        if self.coulomb_friction_n_m is not None:
            H = jnp.asarray(mass_matrix(self.tree, q))
            H = H if diagonal is None else H + jnp.diag(jnp.asarray(diagonal, H.dtype))
            qd = coulomb_step(H, qd, jnp.asarray(dt * self.coulomb_friction_n_m, H.dtype))
        q = q + dt * qd
        if self.joint_limits == "spring":
            return {"joint_angles": q, "joint_velocities": qd}
        lower, upper = (jnp.asarray(x, q.dtype) for x in _columns(self.tree.joint_limits))
        if self.joint_limits == "stop":
            into_wall = ((q <= lower) & (qd < 0)) | ((q >= upper) & (qd > 0))
            qd = jnp.where(into_wall, 0, qd)
        return {"joint_angles": jnp.clip(q, lower, upper), "joint_velocities": qd}

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        """P_tip = P_base ⊕ P_link ⊕ P_offset, and the poses of all links."""
        q, qd = state["joint_angles"], state["joint_velocities"]
        tip = self._in_world(frame_pose(self.tree, q, self.end_effector_link_name))
        tip = compose(tip, jnp.asarray(self.end_effector_offset_in_link, q.dtype))
        tau = self._command(boundary_inputs, qd)
        wrenches = self._wrenches_base(boundary_inputs)
        if wrenches is not None:
            tau = tau + _wrench_to_joint_torques(self.tree, q, wrenches)
        return {
            "end_effector_pose_world": tip,
            "link_poses_world": jax.vmap(self._in_world)(link_world_poses(self.tree, q)),
            "joint_angles": q,
            "joint_velocities": qd,
            "joint_torques_actual": tau + self._tool_torques(q, boundary_inputs),
        }

    def _command(self, inputs: Values, qd: Array) -> Array:
        """tau_cmd - f q̇, the command saturated if asked for."""
        tau = jnp.asarray(inputs["commanded_joint_torques"], qd.dtype)
        if self.saturate_effort:
            limit = jnp.asarray(self.tree.effort_limits, qd.dtype)
            tau = jnp.clip(tau, -limit, limit)
        f = self.joint_friction_n_m_s
        return tau - jnp.asarray(f, qd.dtype) * qd if may_be_nonzero(f) else tau

    def _in_world(self, pose_base: Array) -> Array:
        """P_base ⊕ pose; free when the base stands at the origin."""
        base = self.base_pose_world
        if isinstance(base, np.ndarray) and np.array_equal(base, IDENTITY_POSE):
            return pose_base
        return compose(jnp.asarray(base, pose_base.dtype), pose_base)

    def _gravity_base(self) -> Any:
        return to_base(self.base_pose_world, self.gravity_world)

    def _wrenches_base(self, inputs: Values) -> Any:
        """World wrenches in the axes of the base; None when there are none."""
        wrenches = inputs["external_wrenches_per_link"]
        if not may_be_nonzero(wrenches):
            return None
        pairs = jnp.reshape(wrenches, (-1, 3))
        turned = jax.vmap(lambda v: to_base(self.base_pose_world, v))(pairs)
        return jnp.reshape(turned, (-1, 6))

    def _tool_torques(self, q: Array, inputs: Values) -> Any:
        """J_tipᵀ F for a wrench at the tool tip."""
        wrench = inputs["end_effector_wrench_world"]
        if not may_be_nonzero(wrench):
            return 0.0
        point = self.end_effector_offset_in_link[:3]
        J = frame_jacobian_at(self.tree, q, self.end_effector_link_name, point)
        force, moment = (to_base(self.base_pose_world, part) for part in (wrench[:3], wrench[3:]))
        return J.T @ jnp.concatenate([force, moment])

    def _soft_stops(self, q: Array, qd: Array, dt: Any) -> tuple[Array, Array]:
        """tau = -k (q' - limit) - d q̇' beyond a limit: the push now, and what M gains."""
        lower, upper = (jnp.asarray(x, q.dtype) for x in _columns(self.tree.joint_limits))
        beyond = jnp.where(q < lower, q - lower, jnp.where(q > upper, q - upper, 0))
        k, d = self.limit_stiffness_n_m_per_rad, self.limit_damping_n_m_s
        touching = (beyond != 0).astype(q.dtype)
        rate = (k * dt + d) * touching
        return -k * beyond - rate * qd, rate * dt


def _wrench_to_joint_torques(
    tree: KinematicTree, q: Float[Array, " n"], wrenches_base: Float[Array, "links 6"]
) -> Float[Array, " n"]:
    """Σ J_iᵀ F_i, by one inward pass of the Newton-Euler algorithm."""
    return -jnp.asarray(rnea(tree, q, None, None, np.zeros(3), wrenches_base))


def _columns(limits: Any) -> tuple[Any, Any]:
    return limits[:, 0], limits[:, 1]


def _sized(where: str, label: str, value: Any, shape: tuple[int, ...]) -> Any:
    """A parameter given by the user, at the shape that the robot asks for."""
    if value is None or isinstance(value, jax.Array):
        return value
    array = np.asarray(value, dtype=float)
    if array.shape != shape:
        raise ParameterError(f"{where}: {label} must have shape {shape}, got {array.shape}")
    if not np.all(np.isfinite(array)) and label != "joint_limit_override":
        raise ParameterError(f"{where}: {label} must be finite, got {array}")
    return array
