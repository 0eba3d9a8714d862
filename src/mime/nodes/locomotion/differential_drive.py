"""MIME-NODE-104: a mouse on two driven wheels, rolling, slipping, and stopped by walls."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.core.node import (
    Input,
    Node,
    NodeMeta,
    Output,
    ParameterError,
    Scalar,
    State,
    Values,
    option,
    parameter,
)
from mime.nodes.locomotion import outline
from mime.nodes.locomotion.differential_drive_meta import (
    CONTACT,
    FORCES,
    META,
    MOTION,
    POSE,
    VELOCITIES,
)
from mime.nodes.locomotion.rolling import BodyVelocity, Pose, advance
from mime.nodes.locomotion.tyres import Chassis, Pair, ground_speeds, roll
from mime.nodes.locomotion.wall_contact import (
    Surface,
    Walls,
    find_contacts,
    place,
    push_out,
    remaining_depth,
)

_NEEDED = ("mass_kg", "yaw_inertia_kg_m2", "wheel_inertia_kg_m2")
_DYNAMIC = (*_NEEDED, "rolling_resistance", "friction_coefficient", "horizontal_walls")


class DifferentialDriveNode(Node):
    """Two wheels on one axle, in the plane.   x right (columns), y down (rows), clockwise angles.

        v = (r_l w_l + r_r w_r) / 2,   w = (r_l w_l - r_r w_r) / W,   a = w dt / 2
        x += v dt sinc(a) cos(theta + a),   y += v dt sinc(a) sin(theta + a),   theta += 2 a

    `model="kinematic"` takes the wheels' speeds, `"dynamic"` their torques: while no tyre slips

        (m + 2 J_w/r²) v' = (tau_l + tau_r)/r,   (Iz + J_w W²/(2 r²)) w' = W (tau_l - tau_r)/(2 r)

    less rolling resistance c m g / 2 at each wheel, which holds a mouse at rest (dry, not viscous).
    With a friction coefficient the tyres slip beyond mu m g. With walls the body is stopped by
    them; that needs the friction coefficient, since a wall must be able to push it sideways.
    """

    meta: ClassVar[NodeMeta] = META

    wheel_radius_m: Scalar = parameter("m", above=0.0, default=0.0145, doc="r")
    track_width_m: Scalar = parameter("m", above=0.0, default=0.053, doc="W, between the wheels")
    mass_kg: Any = parameter("kg", above=0.0, default=None, doc="m, with the wheels")
    yaw_inertia_kg_m2: Any = parameter(
        "kg·m²", above=0.0, default=None, doc="Iz, about the axle's midpoint, the centre of mass"
    )
    wheel_inertia_kg_m2: Any = parameter(
        "kg·m²", above=0.0, default=None, doc="J_w of one wheel with its reflected rotor"
    )
    rolling_resistance: Scalar | None = parameter(
        "", at_least=0.0, default=None, doc="c, force over weight, against the wheels' rolling"
    )
    friction_coefficient: Scalar | None = parameter(
        "", above=0.0, default=None, doc="mu of the tyres; they never slip when absent"
    )
    wheel_radius_ratio: Float[Array, "2"] | None = parameter(
        "", above=0.0, shape=(2,), default=None, doc="left and right radius over wheel_radius_m"
    )
    gravity_m_per_s2: Scalar = parameter("m/s²", at_least=0.0, default=9.80665, doc="g")
    cell_size_m: Scalar = parameter("m", above=0.0, default=0.18, doc="side of a cell")
    horizontal_walls: Any = parameter(
        "", at_least=0.0, at_most=1.0, shape=None, default=None, doc="(rows + 1, cols), 0 or 1"
    )
    vertical_walls: Any = parameter(
        "", at_least=0.0, at_most=1.0, shape=None, default=None, doc="(rows, cols + 1), 0 or 1"
    )
    wall_thickness_m: Scalar = parameter("m", above=0.0, default=0.012, doc="2 h, posts too")
    outline_m: Any = parameter(
        "m",
        shape=None,
        folds=True,
        default=outline.DEFAULT_OUTLINE_M,
        doc="(P, 2) [forward, right]",
    )
    wall_stiffness_n_per_m: Scalar = parameter("N/m", above=0.0, default=5e4, doc="k")
    wall_damping_n_s_per_m: Scalar = parameter("N·s/m", at_least=0.0, default=100.0, doc="c_w")
    wall_friction: Scalar | None = parameter(
        "", at_least=0.0, default=None, doc="dry friction of body against wall; none when absent"
    )
    model: str = option(default="kinematic")
    """`"kinematic"`: wheel speeds in. `"dynamic"`: wheel torques in."""

    def __check_init__(self) -> None:
        super().__check_init__()
        where = f"{type(self).__name__} {self.name!r}"
        if self.model not in ("kinematic", "dynamic"):
            raise ParameterError(f"{where}: model must be kinematic or dynamic, got {self.model!r}")
        given = [name for name in _DYNAMIC if getattr(self, name) is not None]
        if self.model == "kinematic" and given:
            raise ParameterError(
                f"{where}: {given[0]} belongs to model='dynamic': wheel speeds leave forces and "
                f"walls nothing to act on. Leave it out or use model='dynamic'"
            )
        missing = [name for name in _NEEDED if getattr(self, name) is None]
        if self.model == "dynamic" and missing:
            raise ParameterError(f"{where}: model='dynamic' needs {', '.join(missing)}")
        if (self.horizontal_walls is None) != (self.vertical_walls is None):
            raise ParameterError(f"{where}: horizontal_walls and vertical_walls come together")
        if self.horizontal_walls is not None:
            self._check_walls(where)

    def _check_walls(self, where: str) -> None:
        if self.friction_coefficient is None:
            raise ParameterError(
                f"{where}: walls need friction_coefficient: a wall pushes a mouse sideways, and "
                f"tyres that never slip would not let it. A usual value is 1.0"
            )
        fault = outline.walls_problem(
            np.shape(self.horizontal_walls), np.shape(self.vertical_walls)
        )
        if not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(self)):
            cell, thickness = float(self.cell_size_m), float(self.wall_thickness_m)
            fault = fault or outline.problem(np.asarray(self.outline_m), cell, thickness)
        if fault is not None:
            raise ParameterError(f"{where}: {fault}")

    def boundary_input_spec(self) -> dict[str, Input]:
        if self.model == "kinematic":
            return {
                "left_wheel_velocity": Input((), "rad/s", 0.0, "replacive", "w_l"),
                "right_wheel_velocity": Input((), "rad/s", 0.0, "replacive", "w_r"),
            }
        return {
            "left_wheel_torque": Input((), "N·m", 0.0, "additive", "tau_l, drives forwards"),
            "right_wheel_torque": Input((), "N·m", 0.0, "additive", "tau_r, drives forwards"),
            "external_wrench_body": Input(
                (3,), "N, N·m", 0.0, "additive", "forward, right, clockwise, at the axle's midpoint"
            ),
        }

    def boundary_flux_spec(self) -> dict[str, Output]:
        spec = dict(MOTION)
        if self.model == "dynamic":
            spec |= FORCES
        if self.horizontal_walls is not None:
            spec |= CONTACT | {"touching": Output((), "", "1 when a wall pushed, else 0")}
        return spec

    def state_spec(self) -> dict[str, Output]:
        spec = dict(POSE)
        if self.model == "dynamic":
            spec |= VELOCITIES | FORCES
        if self.horizontal_walls is not None:
            spec |= CONTACT
        return spec

    def initial_state(self) -> State:
        """At rest in the origin; in a maze at the centre of its first cell. Facing x (east)."""
        return self.state_at(0.0, 0.0) if self.horizontal_walls is None else self.state_at(0.5, 0.5)

    def state_at(self, column: Any, row: Any, heading: Any = 0.0) -> State:
        """At rest at a column and row in cells (0.5 is the centre of the first) and a heading."""
        state = super().initial_state()
        place = {
            "x": column * self.cell_size_m,
            "y": row * self.cell_size_m,
            "heading": heading,
        }
        return state | {
            name: jnp.asarray(value, state[name].dtype) for name, value in place.items()
        }

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """Velocities first; then the arc that the new velocities describe, exactly."""
        pose = Pose(state["x"], state["y"], state["heading"])
        if self.model == "kinematic":
            wheels = self._commanded(boundary_inputs, pose.x.dtype)
            velocity = self._rolling(wheels)
            more: State = {}
        else:
            velocity, wheels, more = self._forced(state, boundary_inputs, dt)
        pose = advance(pose, velocity, dt)
        return {
            "x": pose.x,
            "y": pose.y,
            "heading": pose.heading,
            "left_wheel_angle": state["left_wheel_angle"] + dt * wheels.left,
            "right_wheel_angle": state["right_wheel_angle"] + dt * wheels.right,
            **more,
        }

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        """Pose, velocities, and what tyres and walls did in the step."""
        x, y, heading = state["x"], state["y"], state["heading"]
        if self.model == "kinematic":
            wheels = self._commanded(boundary_inputs, x.dtype)
            velocity = self._rolling(wheels)
        else:
            wheels = Pair(state["left_wheel_velocity"], state["right_wheel_velocity"])
            velocity = BodyVelocity(
                state["forward_velocity"], state["lateral_velocity"], state["turn_rate"]
            )
        fluxes = {
            "pose_world": jnp.stack([x, y, heading]),
            "pose_cells": jnp.stack([x / self.cell_size_m, y / self.cell_size_m, heading]),
            "body_velocity": velocity.v,
            "lateral_velocity": velocity.u,
            "turn_rate": velocity.w,
            "left_wheel_angle": state["left_wheel_angle"],
            "right_wheel_angle": state["right_wheel_angle"],
            "left_wheel_velocity": wheels.left,
            "right_wheel_velocity": wheels.right,
        }
        fluxes |= {name: state[name] for name in (*FORCES, *CONTACT) if name in state}
        if self.horizontal_walls is not None:
            force = state["contact_force"]
            fluxes["touching"] = jnp.where(force > 0.0, jnp.ones_like(force), 0.0)
        return fluxes

    def radii(self) -> Pair:
        """r_l, r_r"""
        if self.wheel_radius_ratio is None:
            return Pair(self.wheel_radius_m, self.wheel_radius_m)
        ratio = self.wheel_radius_ratio
        return Pair(self.wheel_radius_m * ratio[0], self.wheel_radius_m * ratio[1])

    def energy(self, state: State) -> Any:
        """E = (m (v² + u²) + Iz w² + J_w (w_l² + w_r²)) / 2, of model='dynamic'"""
        energy = self.mass_kg * (state["forward_velocity"] ** 2 + state["lateral_velocity"] ** 2)
        energy = energy + self.yaw_inertia_kg_m2 * state["turn_rate"] ** 2
        wheels = state["left_wheel_velocity"] ** 2 + state["right_wheel_velocity"] ** 2
        return 0.5 * (energy + self.wheel_inertia_kg_m2 * wheels)

    def _commanded(self, inputs: Values, dtype: Any) -> Pair:
        return Pair(
            inputs["left_wheel_velocity"].astype(dtype),
            inputs["right_wheel_velocity"].astype(dtype),
        )

    def _rolling(self, wheels: Pair) -> BodyVelocity:
        """v = (r_l w_l + r_r w_r) / 2,   w = (r_l w_l - r_r w_r) / W"""
        left, right = (r * w for r, w in zip(self.radii(), wheels))
        v = 0.5 * (left + right)
        return BodyVelocity(v, jnp.zeros_like(v), (left - right) * (1.0 / self.track_width_m))

    def _forced(self, state: State, inputs: Values, dt: Any) -> tuple[BodyVelocity, Pair, State]:
        """Body and wheel velocities after forces, walls and tyres; the rest of the new state."""
        v, u, w = state["forward_velocity"], state["lateral_velocity"], state["turn_rate"]
        m, Iz, r = self.mass_kg, self.yaw_inertia_kg_m2, self.radii()
        force = inputs["external_wrench_body"].astype(v.dtype)
        old = BodyVelocity(v, u, w)
        velocity = BodyVelocity(
            v + (dt / m) * force[0], u + (dt / m) * force[1], w + (dt / Iz) * force[2]
        )
        more: State = {}
        if self.horizontal_walls is not None:
            predicted = velocity
            pose = advance(Pose(state["x"], state["y"], state["heading"]), predicted, dt)
            body = place(self.outline_m, pose)
            contacts = find_contacts(self._walls(), self.outline_m, body)
            surface = Surface(
                self.wall_stiffness_n_per_m, self.wall_damping_n_s_per_m, self.wall_friction
            )
            push = push_out(contacts, surface, predicted, body, m, Iz, dt)
            velocity, more["contact_force"] = push
        chassis = self._chassis(r, dt)
        if self.friction_coefficient is None:  # rims follow the body, whatever the state says
            rims = ground_speeds(old, self.track_width_m)
        else:
            rims = Pair(
                r.left * state["left_wheel_velocity"], r.right * state["right_wheel_velocity"]
            )
        torques = Pair(
            inputs["left_wheel_torque"].astype(v.dtype) * (1.0 / r.left),
            inputs["right_wheel_torque"].astype(v.dtype) * (1.0 / r.right),
        )
        grip = roll(chassis, velocity, rims, torques, dt)
        if self.horizontal_walls is not None:
            depth = remaining_depth(contacts, body, predicted, grip.velocity, dt)
            more["penetration"] = depth
            more["deepest_penetration"] = jnp.maximum(state["deepest_penetration"], depth)
            more["hardest_contact"] = jnp.maximum(state["hardest_contact"], more["contact_force"])
        wheels = Pair(grip.rims.left * (1.0 / r.left), grip.rims.right * (1.0 / r.right))
        more |= {
            "forward_velocity": grip.velocity.v,
            "lateral_velocity": grip.velocity.u,
            "turn_rate": grip.velocity.w,
            "left_wheel_velocity": wheels.left,
            "right_wheel_velocity": wheels.right,
            "left_tyre_force": grip.impulses.left * (1.0 / dt),
            "right_tyre_force": grip.impulses.right * (1.0 / dt),
            "lateral_tyre_force": grip.lateral_impulse * (1.0 / dt),
            "slipping": grip.slipping,
        }
        return grip.velocity, wheels, more

    def _chassis(self, r: Pair, dt: Any) -> Chassis:
        m, Jw = self.mass_kg, self.wheel_inertia_kg_m2
        weight = m * self.gravity_m_per_s2 * dt
        c, mu = self.rolling_resistance, self.friction_coefficient
        return Chassis(
            m=m,
            Iz=self.yaw_inertia_kg_m2,
            Jl=Jw / r.left**2,
            Jr=Jw / r.right**2,
            W=self.track_width_m,
            rolling=None if c is None else 0.5 * c * weight,
            grip=None if mu is None else mu * weight,
        )

    def _walls(self) -> Walls:
        return Walls(
            self.horizontal_walls,
            self.vertical_walls,
            self.cell_size_m,
            0.5 * self.wall_thickness_m,
        )
