"""Controllers of an arm, as nodes: the laws of `mime.control.control_laws`, sampled and clipped."""

import dataclasses
import os
from collections.abc import Iterator
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.control import drives
from mime.control.control_laws import (
    STANDARD_GRAVITY,
    computed_torque,
    pd_controller,
    pd_with_gravity_compensation,
)
from mime.control.kinematics import KinematicTree, joints_without_inertia
from mime.control.kinematics.robot_file import given_tree
from mime.control.postures import mass_matrices
from mime.control.trajectories import per_joint
from mime.control.tree_values import tree_problems
from mime.core.monitor import Monitor
from mime.core.node import Node, Scalar, State, Values
from mime.core.parameters import known
from mime.core.problem import ParameterError, Problem, StabilityWarning
from mime.core.spec import Input, Mapped, NodeMeta, Output, ValidatedRange, option, parameter

_ROUNDING_RAD = 1e-6
"""How far a trajectory that ends at a limit may pass it by rounding, in single precision too."""


def _goal_or_limit(state: State, inputs: Values, joints: Any, limit: Any, sign: int) -> Array:
    """sign q_des; the limit itself where q_des is beyond it by rounding only."""
    goal = sign * inputs["desired_joint_angles"][joints]
    bound = jnp.asarray(limit, goal.dtype)
    return jnp.where(goal < bound + _ROUNDING_RAD, jnp.minimum(goal, bound), goal)


def goal_monitors(tree: KinematicTree) -> dict[str, Monitor]:
    """Goals outside of the joint limits: the arm would end at its stop."""
    found = {}
    for what, side, sign in (("lower", 0, -1), ("upper", 1, 1)):
        limit = sign * tree.joint_limits[:, side]
        finite = np.isfinite(limit) if isinstance(limit, np.ndarray) else [True] * len(limit)
        if len(joints := np.flatnonzero(finite)):
            read = partial(_goal_or_limit, joints=joints, limit=limit[joints], sign=sign)
            entries = tuple(f"joint {tree.joint_names[j]!r}" for j in joints)
            found[what] = Monitor(read, limit[joints], "rad", "desired angle", entries, sign)
    return found


class _JointController(Node):
    """The base of an arm's controllers: a tree, gains, limits, and no state."""

    is_sampled: ClassVar[bool | None] = True
    tree: KinematicTree
    """The arm as the controller believes it to be."""
    kp: Float[Array, " joints"] = parameter(
        "N·m/rad", shape=None, at_least=0.0, doc="per error; N/m where a joint slides"
    )
    kd: Float[Array, " joints"] = parameter(
        "N·m·s/rad", shape=None, at_least=0.0, doc="per rate of the error; N·s/m where it slides"
    )
    torque_limits_n_m: Float[Array, " joints"] | None = parameter("N·m", shape=None, above=0.0)
    gravity_world: Float[Array | np.ndarray, "3"] = parameter("m/s²", shape=(3,), folds=True)
    saturate_effort: bool = option()

    def __init__(
        self,
        name: str,
        timestep: float,
        tree: KinematicTree | str | os.PathLike[str],
        kp: Any,
        kd: Any,
        *,
        torque_limits_n_m: Any = None,
        gravity_world: Any = None,
        saturate_effort: bool = False,
        on_problem: str = "warn",
    ):
        """Gains and limits: one for all joints, or (N,).

        tree             the arm, or the path of its URDF or MJCF
        torque_limits_n_m    the torques are clipped to plus and minus this; none when not given
        gravity_world    seen from the root link; default: the file's (MJCF says one), else standard
        saturate_effort  clip to the URDF's effort limits too
        on_problem       of a file: "warn", "refuse" or "mend", see `parse_robot`
        """
        self.name, self.timestep = name, timestep
        self.tree = given_tree(tree, on_problem)
        given = {"kp": kp, "kd": kd, "torque_limits_n_m": torque_limits_n_m}
        try:
            values: Any = (
                None if value is None else per_joint(label, value, jnp.zeros(self.num_joints))
                for label, value in given.items()
            )
            self.kp, self.kd, self.torque_limits_n_m = values
        except ParameterError as error:
            raise ParameterError(f"{type(self).__name__} {name!r}", error.problems) from None
        if gravity_world is None:
            gravity_world = self.tree.gravity_m_per_s2 or STANDARD_GRAVITY
        self.gravity_world, self.saturate_effort = gravity_world, saturate_effort

    @property
    def num_joints(self) -> int:
        """N, the number of independent joints."""
        return self.tree.num_joints

    @property
    def params(self) -> Any:
        """The parameters by name; those of the links as `tree.masses`, `tree.coms`, ..."""
        return MappingProxyType({"tree": self.tree, **super().params})

    def boundary_input_spec(self) -> dict[str, Input]:
        n = (self.num_joints,)
        return {
            "joint_angles": Input(n, "rad", 0.0, "replacive", "q, as measured"),
            "joint_velocities": Input(n, "rad/s", 0.0, "replacive", "q̇, as measured"),
            "desired_joint_angles": Input(n, "rad", 0.0, "replacive", "q_des"),
            "desired_joint_velocities": Input(n, "rad/s", 0.0, "replacive", "q̇_des"),
        }

    def value_problems(self) -> Iterator[Problem]:
        yield from (problem.inside("tree") for problem in tree_problems(self.tree))

    def goal_inputs(self) -> dict[str, str]:
        return {"desired_joint_angles": "joint_angles"}

    def boundary_flux_spec(self) -> dict[str, Output]:
        return {"joint_torques": Output((self.num_joints,), "N·m", "tau, within the limits")}

    def state_spec(self) -> dict[str, Output]:
        return {}

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """The state stays empty."""
        return state

    def monitors(self) -> dict[str, Monitor]:
        return goal_monitors(self.tree)

    def _limited(self, tau: Any) -> State:
        if (bound := self.torque_limits_n_m) is not None:
            bound = jnp.asarray(bound, tau.dtype)
            tau = jnp.clip(tau, -bound, bound)
        if self.saturate_effort:  # of the drives
            bound = jnp.asarray(self.tree.effort_limits, tau.dtype)
            given = jnp.clip(drives.torques_of(self.tree, tau), -bound, bound)
            tau = drives.on_joints(self.tree, given)
        return {"joint_torques": tau}

    def _feedback(self, inputs: Values) -> dict[str, Any]:
        return {
            "q": inputs["joint_angles"],
            "qd": inputs["joint_velocities"],
            "q_des": inputs["desired_joint_angles"],
            "qd_des": inputs["desired_joint_velocities"],
            "kp": self.kp,
            "kd": self.kd,
        }


_ASSUMPTIONS = (
    "The controller's tree is the arm's: masses it does not know become errors.",
    "Angles and velocities are measured without error or delay, except that of the edge.",
)
_LIMITATIONS = (
    "Angle errors are not wrapped: a continuous joint unwinds its full turns.",
    "The closed loop is a cycle of the graph: declare the torque's edge with delay=True. It is "
    "then held over a step, stable for 2 kd dt + kp dt² < 4 (gains over inertia in a PD).",
    "Joint friction is not compensated.",
)
_CHANGELOG = (
    ("1.0.0", "2026-11-15", "First version."),
    ("1.1.0", "2026-11-16", "Goals outside of the joint limits are warned of."),
)
_RANGES = (ValidatedRange("num_joints", 1, 7, ""), ValidatedRange("timestep", 1e-4, 2e-3, "s"))


def _least_inertia(tree: KinematicTree, dt: float) -> np.ndarray:
    """1 / (M + dt f)⁻¹_jj (N,): what joint j feels, the others free; least of two postures."""
    f = np.diag(dt * np.asarray(tree.joint_friction))
    if (C := tree.drive_coupling) is not None:
        f = np.asarray(C).T @ f @ np.asarray(C)
    return np.min([1 / np.diag(np.linalg.inv(M + f)) for M in mass_matrices(tree)], axis=0)


class JointPDNode(_JointController):
    """τ = Kp (q_des - q) + Kd (q̇_des - q̇) + g(q), the last term as an option; then clipped."""

    meta: ClassVar[NodeMeta] = NodeMeta(
        id="MIME-NODE-111",
        version="1.1.0",
        stability="experimental",
        summary="PD control of every joint, with gravity compensation.",
        equations=(r"\tau = K_p (q_d - q) + K_d (\dot q_d - \dot q) + g(q)",),
        discretisation=("The torque is evaluated once per step and held over the next one.",),
        assumptions=_ASSUMPTIONS,
        limitations=_LIMITATIONS,
        validated_ranges=_RANGES,
        changelog=_CHANGELOG,
        references=(
            "[@Takegaki1981] Takegaki, M., Arimoto, S. (1981). A new feedback method for dynamic "
            "control of manipulators. J. Dyn. Sys. Meas. Control 103(2).",
        ),
        implementation=(
            Mapped("tau", "mime.control.control_laws.pd_with_gravity_compensation"),
            Mapped("g(q)", "mime.control.kinematics.gravity_vector"),
        ),
    )
    gravity_compensation: bool = option()

    def __init__(self, *args: Any, gravity_compensation: bool = True, **kwargs: Any):
        self.gravity_compensation = gravity_compensation
        super().__init__(*args, **kwargs)

    def value_warnings(self) -> Iterator[Warning]:
        """A torque that is held over a step: 2 kd dt + kp dt² < 4 J, or the loop shakes itself."""
        tree, dt = self.tree, np.float64(self.timestep)
        if not known(self.kp, self.kd, *jax.tree.leaves(tree)):
            return
        with np.errstate(over="ignore"):  # infinite is too much as well
            demand = (2 * np.asarray(self.kd) * dt + np.asarray(self.kp) * dt**2) / 4
        held = dataclasses.replace(tree, base="fixed")
        if joints_without_inertia(held, dt * np.asarray(tree.joint_friction)):
            return  # what the arm gives them is not in this tree
        inertia = _least_inertia(tree, dt)
        if np.any(demand > inertia):
            j = int(np.argmax(demand / inertia))
            kp, kd = float(self.kp[j]), float(self.kd[j])
            longest = 4 * inertia[j] / (kd + np.sqrt(kd**2 + 4 * kp * inertia[j]))
            yield StabilityWarning(
                f"{self.label}: joint {tree.joint_names[j]!r} has an inertia of {inertia[j]:.3g} "
                f"kg·m², too small for kp {kp:g} and kd {kd:g} at a timestep of {dt:g} s: it would "
                f"shake with growing amplitude. Take at most {longest:.3g} s or smaller gains, or "
                "give the arm a Servo, which is stable at any gain."
            )

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        """The torques for these inputs."""
        feedback = self._feedback(boundary_inputs)
        if not self.gravity_compensation:
            return self._limited(pd_controller(**feedback))
        return self._limited(
            pd_with_gravity_compensation(self.tree, gravity_world=self.gravity_world, **feedback)
        )


class ComputedTorqueNode(_JointController):
    """τ = M(q) (q̈_des + Kd ė + Kp e) + c(q, q̇) + g(q),   e = q_des - q;   then clipped."""

    meta: ClassVar[NodeMeta] = NodeMeta(
        id="MIME-NODE-112",
        version="1.1.0",
        stability="experimental",
        summary="Computed torque: the arm's dynamics cancelled, every joint a linear oscillator.",
        equations=(
            r"\tau = M(q) (\ddot q_d + K_d \dot e + K_p e) + c(q, \dot q) + g(q)",
            r"e = q_d - q",
            r"\ddot e + K_d \dot e + K_p e = 0",
        ),
        discretisation=("The torque is evaluated once per step and held over the next one.",),
        assumptions=_ASSUMPTIONS,
        limitations=_LIMITATIONS,
        validated_ranges=_RANGES,
        changelog=_CHANGELOG,
        references=(
            "[@Siciliano2009] Siciliano, B., Sciavicco, L., Villani, L., Oriolo, G. (2009). "
            "Robotics: Modelling, Planning and Control. Springer. Section 8.5.2, inverse dynamics "
            "control.",
        ),
        implementation=(
            Mapped("tau", "mime.control.control_laws.computed_torque"),
            Mapped("M, c, g", "mime.control.kinematics.rnea"),
        ),
    )
    kp: Float[Array, " joints"] = parameter("1/s²", shape=None, at_least=0.0, doc="ω²")
    kd: Float[Array, " joints"] = parameter("1/s", shape=None, at_least=0.0, doc="2 ζ ω")

    def boundary_input_spec(self) -> dict[str, Input]:
        n = (self.num_joints,)
        return {
            **super().boundary_input_spec(),
            "desired_joint_accelerations": Input(n, "rad/s²", 0.0, "replacive", "q̈_des"),
        }

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        """The torques for these inputs."""
        tau = computed_torque(
            self.tree,
            qdd_des=boundary_inputs["desired_joint_accelerations"],
            gravity_world=self.gravity_world,
            **self._feedback(boundary_inputs),
        )
        return self._limited(tau)
