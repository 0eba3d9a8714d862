"""MIME-NODE-102: an arm of rigid links, read from a URDF."""

from collections.abc import Iterator
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from mime._text import quoted
from mime.control import drives
from mime.control.base_frame import from_base, to_base
from mime.control.kinematics import (
    KinematicTree,
    compensating_torques,
    forward_dynamics,
    frame_jacobian_at,
    frame_pose,
    gravity_vector,
    link_world_poses,
    mass_matrix,
    rnea,
)
from mime.control.kinematics.compensation import by_actuators
from mime.control.kinematics.coupling import solver
from mime.control.kinematics.writing import write_text
from mime.core.drawing import Drawing
from mime.core.monitor import Monitor
from mime.core.node import Scalar, State, Values
from mime.core.pose import IDENTITY_POSE, compose
from mime.core.problem import Problem
from mime.core.spec import Input, Output
from mime.nodes.actuation.robot_arm import elastic, floating, forces, integrators, stops
from mime.nodes.actuation.robot_arm.checks import HIGHER_ORDER
from mime.nodes.actuation.robot_arm.drawing import arm_drawing
from mime.nodes.actuation.robot_arm.inertia import inertia_problems
from mime.nodes.actuation.robot_arm.meta import ROBOT_ARM_META
from mime.nodes.actuation.robot_arm.parameters import RobotArmParameters
from mime.nodes.actuation.robot_arm.springs import only, spread
from mime.nodes.actuation.robot_arm.stability import spring_warnings
from mime.nodes.control.joint_controllers import goal_monitors


class RobotArmNode(RobotArmParameters):
    """M(q) q̈ + c(q, q̇) + g(q) = tau_cmd - f q̇ - k (q - q0) + g_c(q) + Σ J_iᵀ F_i

    Semi-implicit Euler: q̇' = q̇ + dt q̈ and q' = q + dt q̇', with the friction f taken at q̇'
    (`integrator="implicit"`) or at q̇ (`"explicit"`).

    A joint with a finite `joint_stiffness_n_m_per_rad` is elastic: the command drives a rotor
    θ = q - x that the spring joins to the link. The arm's state then holds the deflections x too,
    and a state of joint angles alone has relaxed springs.

    k and q0 are those of springs beside the joints, of which an MJCF may have some; g_c is what is
    compensated of gravity (MJCF `gravcomp`), see `compensating_torques`.

    With `base="floating"` the root flies freely (no contact): its pose and twist are states then,
    see `floating`.

    Angles are rad and torques N·m for a revolute joint, m and N for a prismatic one. N is the
    number of joints, L that of moving links (they differ only when joints mimic others), E that of
    elastic joints.
    """

    is_sampled: ClassVar[bool | None] = False
    meta: ClassVar = ROBOT_ARM_META

    def boundary_input_spec(self) -> dict[str, Input]:
        n, links = self.tree.num_joints, self.tree.num_links
        spec = {
            "commanded_joint_torques": Input((n,), "N·m", 0.0, "additive", "tau_cmd, after gears"),
            "external_wrenches_per_link": Input(
                (links, 6),
                "N, N·m",
                0.0,
                "additive",
                "[F; M] in world axes at each <inertial> origin",
            ),
            "end_effector_wrench_world": Input(
                (6,), "N, N·m", 0.0, "additive", "[F; M] in world axes at the tool tip"
            ),
        }
        if self.wrench_frames:
            words = f"[F; M] in world axes at the origins of {quoted(self.wrench_frames)}"
            spec["external_wrenches_at_frames"] = Input(
                (len(self.wrench_frames), 6), "N, N·m", 0.0, "additive", words
            )
        if self.base == "floating":
            spec |= floating.INPUT
        return spec if self.servo is None else spec | self.servo.inputs(n)

    def boundary_flux_spec(self) -> dict[str, Output]:
        n, e = self.tree.num_joints, len(self.elastic_joints)
        spec = {
            "end_effector_pose_world": Output((7,), "m", "tool tip [x y z qw qx qy qz]"),
            "end_effector_twist_world": Output((6,), "m/s, rad/s", "[v; w] of the tool tip"),
            "link_poses_world": Output(
                (self.tree.num_links, 7), "m", "<inertial> origin of each link"
            ),
            "joint_angles": Output((n,), "rad", "q"),
            "joint_velocities": Output((n,), "rad/s", "q̇"),
            "joint_torques_actual": Output(
                (n,), "N·m", "tau_cmd - f q̇ - k (q - q0) + g_c + Jᵀ F_ext"
            ),
        }
        if self.servo is not None:
            spec["servo_torques"] = Output((n,), "N·m", "of the servo over the last step")
        if self.tree.drive_coupling is not None:
            spec |= {
                "motor_angles": Output((n,), "rad", "T q, before the gears; 0 at q = 0"),
                "motor_velocities": Output((n,), "rad/s", "T q̇"),
                "motor_torques": Output((n,), "N·m", "T⁻ᵀ tau_cmd, before friction and rotors"),
            }
        if self.elastic_joints:
            spec |= {
                "rotor_angles": Output((n,), "rad", "θ after the gear; q where a joint is rigid"),
                "rotor_velocities": Output((n,), "rad/s", "θ̇ likewise"),
                "joint_deflections": Output((e,), "rad", "x = q - θ of the elastic joints"),
                "spring_torques": Output((e,), "N·m", "-k x - v ẋ, on the links"),
            }
        return spec | floating.STATE if self.base == "floating" else spec

    def state_spec(self) -> dict[str, Output]:
        n, e = self.tree.num_joints, len(self.elastic_joints)
        spec = {
            "joint_angles": Output((n,), "rad", "q"),
            "joint_velocities": Output((n,), "rad/s", "q̇"),
        }
        if self.elastic_joints:
            spec["joint_deflections"] = Output((e,), "rad", "x = q - θ of the elastic joints")
            spec["joint_deflection_velocities"] = Output((e,), "rad/s", "ẋ")
        if self.servo is not None:
            spec["servo_torques"] = Output((n,), "N·m", "of the servo over the last step")
        return spec | floating.STATE if self.base == "floating" else spec

    def initial_state(self) -> State:
        """The arm at rest: every joint at 0 or at the limit nearest to it, springs relaxed."""
        lower, upper = forces.limits(self, jnp.result_type(float))
        at_rest = {name: jnp.zeros(entry.shape) for name, entry in self.state_spec().items()}
        at_rest["joint_angles"] = jnp.clip(at_rest["joint_angles"], lower, upper)
        return at_rest | floating.start(self) if self.base == "floating" else at_rest

    def state_holding(self, joint_angles: Float[ArrayLike, " n"]) -> State:
        """The arm at rest, its springs wound up by its weight: x = -g(q) / k.

        A commanded torque of g(q) keeps it there. Springs beside the joints and what compensates
        gravity count as weight, and a base that floats is taken to be held where it starts.
        """
        q = jnp.asarray(joint_angles, jnp.result_type(float))
        state = self.initial_state() | {"joint_angles": q}
        if self.elastic_joints:
            pose = self.base_pose_world
            if self.base == "floating":
                pose = np.array(self.tree.base_start_pose_world)
            gravity = to_base(pose, self.gravity_world)
            g = jnp.asarray(gravity_vector(self.loaded_tree, q, gravity))
            g = g - forces.spring_torques(self.tree, q)
            if self.tree.compensated_masses is not None:
                borne = compensating_torques(self.tree, q, gravity)[-self.num_joints :]
                g = g - jnp.where(by_actuators(self.tree), 0, borne)
            k = jnp.asarray(self.joint_stiffness_n_m_per_rad)
            state["joint_deflections"] = -only(g, self.elastic_joints) / k
        return state

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """(M + dt f) q̈ = tau_cmd - f q̇ - c - g + Jᵀ F;    q̇' = q̇ + dt q̈,    q' = q + dt q̇'"""
        if self.base == "floating":
            return floating.step(self, state, boundary_inputs, dt)
        return self.step_on_fixed_base(state, boundary_inputs, dt)

    def step_on_fixed_base(self, state: State, boundary_inputs: Values, dt: Any) -> State:
        """The same, as a part of a program that is being traced."""
        if self.integrator in HIGHER_ORDER:
            new = self._step_of_higher_order(state, boundary_inputs, dt)
        elif self.elastic_joints:
            new = self._elastic_step(state, boundary_inputs, dt)
        else:
            new = self._rigid_step(state, boundary_inputs, dt)
        if self.joint_limits == "spring":
            return new
        return stops.stopped(self, new) if self.joint_limits == "stop" else stops.held(self, new)

    def _rigid_step(self, state: State, inputs: Values, dt: Any) -> State:
        q, qd = state["joint_angles"], state["joint_velocities"]
        outside = forces.link_torques(self, q, inputs)
        tau = forces.driving_torques(self, q, inputs, qd) + outside
        friction = forces.implicit_friction(self, dt, q.dtype)
        tree, diagonal = drives.resisting(self.loaded_tree, friction)
        if self.joint_limits == "spring":
            push, stiffness = forces.soft_stops(self, q, qd, dt)
            tau, outside = tau + push, outside + push
            diagonal = stiffness if diagonal is None else diagonal + stiffness
        gravity, wrenches = forces.gravity_base(self), forces.wrenches_base(self, inputs)
        law, servo_torques = None, {}
        bias: Any = None
        if self.servo is not None:
            law = forces.servo_law(self, q, q, inputs, dt)
        if self.servo is not None or (self.friction is not None and self.friction.by_load):
            bias = jnp.asarray(rnea(tree, q, qd, None, gravity, wrenches))
        tau_f, shift = forces.dry_friction(self, q, qd, inputs, law, lambda: outside - bias)
        tau = tau if shift is None else tau + shift
        if law is not None:
            H = _resistance(tree, q, diagonal)
            p = H @ qd + dt * (tau - bias)
            law, solve = law._replace(friction=tau_f), solver(tree, q, ())
            qd, torques = drives.servo_step_at_drives(tree, solve, H, p, qd, law, dt)
            servo_torques["servo_torques"] = torques
        else:
            qd = qd + dt * forward_dynamics(tree, q, qd, tau, gravity, wrenches, diagonal)
            if self.friction is not None:
                H = _resistance(tree, q, diagonal)
                qd = drives.dry_step(tree, H, qd, dt * tau_f)
        return {"joint_angles": q + dt * qd, "joint_velocities": qd, **servo_torques}

    def _elastic_step(self, state: State, inputs: Values, dt: Any) -> State:
        """x' = x + dt (ẋ + h ẍ) with h = dt or dt/2; links and rotors together as a rigid arm.

        By the midpoint rule a link would move by dt (q̇ + q̇') / 2. The acceleration that links and
        rotors share (r̈) moves them by the new velocity instead, as in a rigid arm. That is half a
        step more, and the same for both, so the deflection does not change. With dry friction or a
        servo the rotors' own acceleration is used, so that a rotor moves by dt times its new
        velocity and one that sticks does not move.
        """
        midpoint = self.spring_integrator == "midpoint"
        h = 0.5 * dt if midpoint else dt
        qdd, xdd, servo_torques = elastic.accelerations(self, state, inputs, dt, h)
        q, qd = state["joint_angles"], state["joint_velocities"] + dt * qdd
        x, xd = state["joint_deflections"], state["joint_deflection_velocities"]
        q_next = q + dt * qd
        own = self.friction is not None or self.servo is not None
        if midpoint and not own:
            q_next = q_next - dt * h * (qdd - elastic.rigid_acceleration(self, q, qdd, xdd))
        elif midpoint:
            q_next = q_next - dt * h * spread(xdd, self.elastic_joints, self.num_joints)
        new = {
            "joint_angles": q_next,
            "joint_velocities": qd,
            "joint_deflections": x + dt * (xd + h * xdd),
            "joint_deflection_velocities": xd + dt * xdd,
        }
        return new if self.servo is None else new | {"servo_torques": servo_torques}

    def _step_of_higher_order(self, state: State, inputs: Values, dt: Any) -> State:
        """A step of `integrators`, with the inputs held and positions and velocities as vectors."""
        n = self.num_joints
        names = list(self.state_spec())
        positions, velocities = names[::2], names[1::2]

        def a(p: Array, w: Array) -> Array:
            now = dict(zip(positions, (p[:n], p[n:]), strict=False))
            now |= dict(zip(velocities, (w[:n], w[n:]), strict=False))
            return jnp.concatenate(self.accelerations(now, inputs))

        p, w = (jnp.concatenate([state[k] for k in half]) for half in (positions, velocities))
        if self.integrator == "rk4":
            p, w = integrators.rk4_step(a, (p, w), dt)
        else:
            p, w = integrators.gauss_step(self.integrator, a, (p, w), dt)
        new = dict(zip(positions, (p[:n], p[n:]), strict=False))
        return new | dict(zip(velocities, (w[:n], w[n:]), strict=False))

    def monitors(self) -> dict[str, Monitor]:
        """The URDF's limits: velocities, commands that are not saturated, travel at soft stops."""
        tree, found = self.tree, {}

        def add(what: str, unit: str, limit: Any, read: Any, of: str = "joint") -> None:
            finite = np.isfinite(limit) if isinstance(limit, np.ndarray) else [True] * len(limit)
            if len(joints := np.flatnonzero(finite)):
                entries = tuple(f"{of} {tree.joint_names[j]!r}" for j in joints)
                found[what] = Monitor(
                    lambda s, u: read(s, u)[joints], limit[joints], unit, what, entries
                )

        def beyond(s: State, u: Values) -> Array:
            lower, upper = forces.limits(self, s["joint_angles"].dtype)
            return jnp.maximum(s["joint_angles"] - upper, lower - s["joint_angles"])

        def driven(s: State, u: Values) -> Array:
            if not tree.actuator_compensated_joints:
                return jnp.abs(drives.torques_of(tree, u["commanded_joint_torques"]))
            arm, now = self, s["joint_angles"]
            if self.base == "floating":
                arm, now = floating.on_fixed_base(self, s), floating.joint_state(s)["joint_angles"]
            borne = forces.actuator_compensation(arm, now)[-self.num_joints :]
            return jnp.abs(drives.torques_of(tree, u["commanded_joint_torques"] + borne))

        speed = "joint_velocities"
        limited = self.saturate_effort or self.servo is not None

        def turning(s: State, u: Values) -> Array:
            return jnp.abs(drives.of_joints(tree, s[speed]))

        whose = "joint" if tree.drive_coupling is None else "drive"
        add("velocity", "rad/s", tree.velocity_limits, turning, whose)
        if not limited:
            add("commanded torque", "N·m", tree.effort_limits, driven, whose)
        if self.joint_limits == "spring":
            add("travel beyond the limit", "rad", np.zeros(self.num_joints), beyond)
        return found if self.servo is None else found | goal_monitors(tree)

    def value_problems(self) -> Iterator[Problem]:
        found = list(super().value_problems())
        yield from found
        if not found:  # masses below 0 are told first
            yield from inertia_problems(self)

    def value_warnings(self) -> Iterator[Warning]:
        yield from spring_warnings(self)

    def drawing(self) -> Drawing:
        """Links, torques, tool path, springs and wrenches."""
        return arm_drawing(self)

    def goal_inputs(self) -> dict[str, str]:
        return {} if self.servo is None else {"desired_joint_angles": "joint_angles"}

    def accelerations(
        self, state: State, boundary_inputs: Values | None = None
    ) -> tuple[Float[Array, " n"], Float[Array, " e"]]:
        """q̈ (N,) and ẍ (E,) at this instant, in rad/s²: the arm's equations without a timestep.

        For an integrator of your own. Dry friction and hard stops act over steps and are not in it.
        Of a floating base its [v̇; ẇ], in world axes, come before q̈.
        """
        inputs = self.complete_inputs(boundary_inputs or {}, state["joint_angles"].dtype)
        if self.base == "floating":
            return floating.accelerations(self, state, inputs)
        if self.elastic_joints:
            return elastic.accelerations(self, state, inputs, 0.0, 0.0)[:2]
        q, qd = state["joint_angles"], state["joint_velocities"]
        tau = forces.driving_torques(self, q, inputs, qd) + forces.link_torques(self, q, inputs)
        if self.joint_limits == "spring":
            tau = tau + forces.soft_stops(self, q, qd, 0.0)[0]
        if self.servo is not None:
            tau = tau + forces.servo_torques_now(self, q, q, qd, inputs)
        gravity, wrenches = forces.gravity_base(self), forces.wrenches_base(self, inputs)
        qdd = forward_dynamics(self.loaded_tree, q, qd, tau, gravity, wrenches)
        return jnp.asarray(qdd), jnp.zeros(0, q.dtype)

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        """P_tip = P_base ⊕ P_link ⊕ P_offset, and the poses of all links."""
        if self.base == "floating":
            return floating.fluxes(self, state, boundary_inputs, dt)
        return self.fluxes_on_fixed_base(state, boundary_inputs, dt)

    def fluxes_on_fixed_base(self, state: State, boundary_inputs: Values, dt: Any) -> State:
        """The same, as a part of a program that is being traced."""
        q, qd = state["joint_angles"], state["joint_velocities"]
        tip = self._in_world(frame_pose(self.tree, q, self.end_effector_link_name))
        tip = compose(tip, jnp.asarray(self.end_effector_offset_in_link, q.dtype))
        fluxes = {}
        rotor_velocities = qd
        if self.elastic_joints:
            x, xd = state["joint_deflections"], state["joint_deflection_velocities"]
            rotor_velocities = elastic.rotor_motion(self, qd, xd)
            k, v = self.joint_stiffness_n_m_per_rad, self.joint_stiffness_damping_n_m_s
            fluxes = {
                "rotor_angles": elastic.rotor_motion(self, q, x),
                "rotor_velocities": rotor_velocities,
                "joint_deflections": x,
                "spring_torques": -jnp.asarray(k, x.dtype) * x - jnp.asarray(v, x.dtype) * xd,
            }
        tau = forces.driving_torques(self, q, boundary_inputs, rotor_velocities)
        given = forces.actuator_torques(self, q, boundary_inputs)
        if self.servo is not None:
            tau, given = tau + state["servo_torques"], state["servo_torques"]
            fluxes["servo_torques"] = state["servo_torques"]
        if self.tree.drive_coupling is not None:
            g = jnp.asarray(self.tree.gear_ratio, q.dtype)
            fluxes |= {
                "motor_angles": g * drives.of_joints(self.tree, q),
                "motor_velocities": g * drives.of_joints(self.tree, qd),
                "motor_torques": drives.torques_of(self.tree, given) / g,
            }
        wrenches = forces.wrenches_base(self, boundary_inputs)
        if wrenches is not None:
            tau = tau + forces.wrench_to_joint_torques(self.tree, q, wrenches)
        return fluxes | {
            "end_effector_pose_world": tip,
            "end_effector_twist_world": self._tip_twist(q, qd),
            "link_poses_world": jax.vmap(self._in_world)(link_world_poses(self.tree, q)),
            "joint_angles": q,
            "joint_velocities": qd,
            "joint_torques_actual": tau + forces.link_torques(self, q, boundary_inputs),
        }

    def graph_to_mjcf(
        self, program: Any, path: Any, origins: Any, uncertainties: Any, mend: bool
    ) -> None:
        """Write this machine and the motors that drive it; `Simulation.to_mjcf` calls it."""
        from mime.nodes.actuation.mjcf_export import graph_mjcf, machine_of_arm

        machine = machine_of_arm(self)
        write_text(path, graph_mjcf(program, machine, origins, uncertainties, mend))

    def _tip_twist(self, q: Array, qd: Array) -> Array:
        """[v; w] = J(q) q̇ of the tool tip, in world axes."""
        point = self.end_effector_offset_in_link[:3]
        J = jnp.asarray(frame_jacobian_at(self.tree, q, self.end_effector_link_name, point))
        v, w = (from_base(self.base_pose_world, part) for part in jnp.split(J @ qd, 2))
        return jnp.concatenate([v, w])

    def _in_world(self, pose_base: Array) -> Array:
        """P_base ⊕ pose; free when the base stands at the origin."""
        base = self.base_pose_world
        if isinstance(base, np.ndarray) and np.array_equal(base, IDENTITY_POSE):
            return pose_base
        return compose(jnp.asarray(base, pose_base.dtype), pose_base)


def _resistance(tree: KinematicTree, q: Array, diagonal: Array | None) -> Array:
    """H = M + diag(what friction and stops add), which resists a change of velocity."""
    H = jnp.asarray(mass_matrix(tree, q))
    return H if diagonal is None else H + jnp.diag(jnp.asarray(diagonal, H.dtype))
