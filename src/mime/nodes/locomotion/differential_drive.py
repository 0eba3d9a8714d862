"""MIME-NODE-104: a body on two driven wheels, rolling, slipping, and stopped by walls."""

from collections.abc import Iterator
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.core.drawing import Drawing
from mime.core.node import Node, Scalar, State, Values
from mime.core.parameters import known
from mime.core.problem import Problem
from mime.core.spec import Input, Mapped, NodeMeta, Output, ValidatedRange, option, parameter
from mime.nodes.locomotion.drawing import vehicle_drawing
from mime.nodes.locomotion.dynamics import dynamic_step
from mime.nodes.locomotion.outline import outline_problems, wall_problems
from mime.nodes.locomotion.rolling import BodyVelocity, PlanarPose, move_along_arc
from mime.nodes.locomotion.tyres import Pair

_HERE = "mime.nodes.locomotion"
_NEEDED = ("mass_kg", "yaw_inertia_kg_m2", "wheel_inertia_kg_m2")
_DYNAMIC = (*_NEEDED, "rolling_resistance", "friction_coefficient", "horizontal_walls")

_POSE = {
    "x": Output((), "m", "of the axle's midpoint, to the right"),
    "y": Output((), "m", "down"),
    "heading": Output((), "rad", "clockwise from x, not wrapped"),
    "left_wheel_angle": Output((), "rad", "turned since the start"),
    "right_wheel_angle": Output((), "rad", "turned since the start"),
}
_VELOCITIES = {
    "forward_velocity": Output((), "m/s", "v"),
    "lateral_velocity": Output((), "m/s", "u, to the right; 0 while the tyres hold"),
    "turn_rate": Output((), "rad/s", "w, clockwise"),
    "left_wheel_velocity": Output((), "rad/s", "w_l"),
    "right_wheel_velocity": Output((), "rad/s", "w_r"),
}
_FORCES = {
    "left_tyre_force": Output((), "N", "on the body, forwards"),
    "right_tyre_force": Output((), "N", "on the body, forwards"),
    "lateral_tyre_force": Output((), "N", "of both tyres on the body, to the right"),
    "slipping": Output((), "", "1 when a tyre slipped in the step, else 0"),
}
_CONTACT = {
    "contact_force": Output((), "N", "of the walls on the body, all together"),
    "penetration": Output((), "m", "of the body in the walls, the largest"),
    "deepest_penetration": Output((), "m", "the largest penetration since the start"),
    "hardest_contact": Output((), "N", "the largest contact_force since the start"),
}


class DifferentialDriveNode(Node):
    """Two wheels on one axle, in the plane.   x right (columns), y down (rows), clockwise angles.

        v = (r_l w_l + r_r w_r) / 2,   w = (r_l w_l - r_r w_r) / W,   a = w dt / 2
        x += v dt sinc(a) cos(theta + a),   y += v dt sinc(a) sin(theta + a),   theta += 2 a

    `model="kinematic"` takes the wheels' speeds, `"dynamic"` their torques: while no tyre slips

        (m + 2 J_w/r²) v' = (tau_l + tau_r)/r,   (Iz + J_w W²/(2 r²)) w' = W (tau_l - tau_r)/(2 r)

    less rolling resistance c m g / 2 at each wheel, which holds a body at rest (dry, not viscous).
    With a friction coefficient the tyres slip beyond mu m g. With walls the body is stopped by
    them; that needs the friction coefficient, since a wall must be able to push it sideways.
    """

    is_sampled: ClassVar[bool | None] = False
    meta: ClassVar[NodeMeta] = NodeMeta(
        id="MIME-NODE-104",
        version="1.0.0",
        stability="experimental",
        summary="Differential drive: two driven wheels on one axle, with slip and walls.",
        equations=(
            r"v = (r_l\omega_l + r_r\omega_r)/2, \quad \omega = (r_l\omega_l - r_r\omega_r)/W",
            r"\dot x = v\cos\theta - u\sin\theta, \quad \dot y = v\sin\theta + u\cos\theta, \quad "
            r"\dot\theta = \omega",
            r"m(\dot v - u\omega) = F_l + F_r + F_x, \quad m(\dot u + v\omega) = F_{lat} + F_y, "
            r"\quad I_z\dot\omega = \tfrac{W}{2}(F_l - F_r) + M_z \quad \text{(dynamic)}",
            r"J_w\dot\omega_i = \tau_i - r_i (F_i + R_i), \quad "
            r"|R_i| \le \tfrac12 c\,m g \quad \text{(dry)}",
            r"|F_{lat}| \le \mu m g, \quad |F_i| \le \tfrac12\sqrt{(\mu m g)^2 - F_{lat}^2}",
            r"N = \max(0, k d + c_w \dot d) \quad \text{at each point of contact with a wall}",
        ),
        discretisation=(
            r"a = \omega\Delta t/2, \quad x_{n+1} = x_n + v\Delta t\,"
            r"\operatorname{sinc}(a)\cos(\theta_n + a), \quad y_{n+1} = y_n + v\Delta t\,"
            r"\operatorname{sinc}(a)\sin(\theta_n + a), \quad \theta_{n+1} = \theta_n + 2a "
            r"\quad \text{(exact)}",
            "Velocities come first, then the arc with the new ones (semi-implicit).",
            "Tyre impulses end the step without slip where their limits allow: a 2x2 system, then "
            "projected Gauss-Seidel. A tyre that holds does so exactly.",
            r"\text{walls:} \quad (M + \Delta t(k\Delta t + c_w)\sum JJ^T)\Delta V = "
            r"\Delta t\sum(k d - c_w JV)J \quad \text{(implicit, after the free step)}",
        ),
        assumptions=(
            "The centre of mass is the axle's midpoint; casters carry and resist nothing.",
            "The floor is level; each wheel carries half the weight, whatever the acceleration.",
            "Static and sliding friction of the tyres are the same.",
            "Rolling resistance is a dry moment at each wheel, c m g r / 2.",
            "The body is convex and smaller than a cell; walls and posts do not move.",
        ),
        limitations=(
            "The lateral force comes first on the friction circle: a wheel that spins keeps its "
            "lateral grip, and an axle that slides sideways has no drive.",
            "In a slip, rolling resistance keeps the value it has without slip.",
            "Walls need model='dynamic' and a friction coefficient.",
            "Walls act before the tyres: for a body pressed on a wall the depth (not the force) is "
            "(1 + n dt (k dt + c_w) / m) times the static one, n points of contact.",
            "A contact may act up to one step early. The depth grows with v sqrt(m/k) and must "
            "stay below the wall's thickness: it does for 0.1 kg at 3 m/s and 1 ms.",
        ),
        validated_ranges=(
            ValidatedRange("timestep", 1e-4, 1e-1, "s", "kinematic: exact at any"),
            ValidatedRange("wall_stiffness_n_per_m", 1e3, 1e6, "N/m", "stable"),
            ValidatedRange("friction_coefficient", 0.1, 2.0, ""),
        ),
        changelog=(("1.0.0", "2026-11-16", "First version."),),
        references=(
            "[@Mitrano2018] Mitrano, P. (2018). Dynamics equations for Smartmouse. (Its equation "
            "34 has the wrong sign: facing south increases the row.)",
            "[@Stewart1996] Stewart, D. E., Trinkle, J. C. (1996). An implicit time-stepping "
            "scheme for rigid body dynamics with inelastic collisions and Coulomb friction. IJNME "
            "39(15).",
        ),
        implementation=(
            Mapped("x, y, theta", f"{_HERE}.rolling.move_along_arc"),
            Mapped("sinc", f"{_HERE}.rolling.sinc"),
            Mapped("R", f"{_HERE}.rolling.radius_of_curvature"),
            Mapped("x_ICC, y_ICC", f"{_HERE}.rolling.centre_of_curvature"),
            Mapped("v, u, omega, F", f"{_HERE}.tyres.roll"),
            Mapped("d", f"{_HERE}.wall_contact.find_contacts"),
            Mapped("N", f"{_HERE}.wall_contact.push_out"),
            Mapped("E", f"{_HERE}.differential_drive.DifferentialDriveNode.energy"),
        ),
    )

    wheel_radius_m: Scalar = parameter("m", above=0.0, doc="r")
    track_width_m: Scalar = parameter("m", above=0.0, doc="W, between the wheels")
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
        "m", shape=None, folds=True, default=None, doc="(P, 2) [forward, right], with walls"
    )
    wall_stiffness_n_per_m: Scalar = parameter("N/m", above=0.0, default=5e4, doc="k")
    wall_damping_n_s_per_m: Scalar = parameter("N·s/m", at_least=0.0, default=100.0, doc="c_w")
    wall_friction: Scalar | None = parameter(
        "", at_least=0.0, default=None, doc="dry friction of body against wall; none when absent"
    )
    model: str = option(default="kinematic", choices=("kinematic", "dynamic"))
    """`"kinematic"`: wheel speeds in. `"dynamic"`: wheel torques in."""

    def value_problems(self) -> Iterator[Problem]:
        for name in _DYNAMIC if self.model == "kinematic" else ():
            if getattr(self, name) is not None:
                why = "belongs to model='dynamic': wheel speeds leave forces nothing to act on"
                yield Problem((name,), why, "Leave it out, or use model='dynamic'")
        for name in _NEEDED if self.model == "dynamic" else ():
            if getattr(self, name) is None:
                yield Problem((name,), "is missing: model='dynamic' needs it")
        if (self.horizontal_walls is None) != (self.vertical_walls is None):
            missing = "horizontal" if self.horizontal_walls is None else "vertical"
            yield Problem((f"{missing}_walls",), "is missing: walls come in pairs")
        elif self.horizontal_walls is not None:
            yield from wall_problems(np.shape(self.horizontal_walls), np.shape(self.vertical_walls))
            if self.friction_coefficient is None:
                why = "is missing: a wall pushes a body sideways, and tyres must be able to slip"
                yield Problem(("friction_coefficient",), why, "A usual value is 1.0")
            if self.outline_m is None:
                yield Problem(("outline_m",), "is missing: walls need the body's outline")
            elif known(*jax.tree.leaves(self)):
                cell, thickness = float(self.cell_size_m), float(self.wall_thickness_m)
                yield from outline_problems(np.asarray(self.outline_m), cell, thickness)

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
        spec = {
            "pose_world": Output((3,), "m", "x, y and heading [rad]"),
            "pose_cells": Output((3,), "", "column, row in cells, heading [rad]"),
            "body_velocity": Output((), "m/s", "v, forwards"),
            **{name: _VELOCITIES[name] for name in ("lateral_velocity", "turn_rate")},
            **{name: _POSE[name] for name in ("left_wheel_angle", "right_wheel_angle")},
            **{name: _VELOCITIES[name] for name in ("left_wheel_velocity", "right_wheel_velocity")},
        }
        if self.model == "dynamic":
            spec |= _FORCES
        if self.horizontal_walls is not None:
            spec |= _CONTACT | {"touching": Output((), "", "1 when a wall pushed, else 0")}
        return spec

    def state_spec(self) -> dict[str, Output]:
        spec = dict(_POSE)
        if self.model == "dynamic":
            spec |= _VELOCITIES | _FORCES
        if self.horizontal_walls is not None:
            spec |= _CONTACT
        return spec

    def initial_state(self) -> State:
        """The state at rest facing x (east): in the origin, or in a maze's first cell."""
        return self.state_at(0.0, 0.0) if self.horizontal_walls is None else self.state_at(0.5, 0.5)

    def state_at(self, column: Any, row: Any, heading_rad: Any = 0.0) -> State:
        """The state at rest at a place in cells: (0.5, 0.5) is the centre of the first one."""
        state = super().initial_state()
        place = {
            "x": column * self.cell_size_m,
            "y": row * self.cell_size_m,
            "heading": heading_rad,
        }
        return state | {
            name: jnp.asarray(value, state[name].dtype) for name, value in place.items()
        }

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """Velocities first; then the arc that the new velocities describe, exactly."""
        pose = PlanarPose(state["x"], state["y"], state["heading"])
        if self.model == "kinematic":
            wheels = self._commanded(boundary_inputs, pose.x.dtype)
            velocity = self._rolling(wheels)
            more: State = {}
        else:
            velocity, wheels, more = dynamic_step(self, state, boundary_inputs, dt)
        pose = move_along_arc(pose, velocity, dt)
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
        fluxes |= {name: state[name] for name in (*_FORCES, *_CONTACT) if name in state}
        if self.horizontal_walls is not None:
            force = state["contact_force"]
            fluxes["touching"] = jnp.where(force > 0.0, jnp.ones_like(force), 0.0)
        return fluxes

    def drawing(self) -> Drawing:
        """Body, wheels, walls, and the way it went."""
        return vehicle_drawing(self)

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
