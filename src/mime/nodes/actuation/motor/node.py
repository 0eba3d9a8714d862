"""MIME-NODE-100: a DC brushed motor."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.core.drawing import Drawing
from mime.core.monitor import Monitor
from mime.core.node import Scalar, State, Values
from mime.core.parameters import known
from mime.core.pose import IDENTITY_POSE, Pose, Quat, Vec3, compose, quat_from_axis_angle
from mime.core.pose import Scalar as Angle
from mime.core.problem import ParameterError
from mime.core.spec import Input, Output
from mime.nodes.actuation.motor import carried, events, linear, rotor
from mime.nodes.actuation.motor.catalogue import CATALOGUE
from mime.nodes.actuation.motor.datasheet import Datasheet, parameters_from
from mime.nodes.actuation.motor.drawing import motor_drawing
from mime.nodes.actuation.motor.drive import (
    Mode,
    circuit_resistance,
    command,
    largest_current,
    limited_current,
    mode_of,
    select,
    terminal_voltage,
)
from mime.nodes.actuation.motor.parameters import MOTOR_META, MotorMeta, MotorParameters
from mime.nodes.actuation.motor.stability import largest_stable_timestep, stability_warnings

_TWIST, _ACCELERATION = "parent_twist_world", "parent_acceleration_world"
_SEEN = "parent_twist_seen"


class MotorNode(MotorParameters):
    """DC brushed motor, commanded by torque, voltage or velocity.

        J dw/dt = tau_cmd + tau_motor + tau_load - b w,   dtheta/dt = w
        L di/dt = V - R i - ke w,   tau_motor = kt i                       (voltage mode)
        tau_cmd = Kp (w_des - w) + Ki integral of (w_des - w)              (velocity mode)
        P_rotor_world = P_parent_world + R(axis, theta) + P_tool_rotor

    Angle, speed and current are the rotor's. With a gear, load and pose are the output shaft's.
    With `shaft="driven"` the mechanism turns the rotor, see `rotor`. With `reaction="full"` its
    parent moves, and feels the gyroscopic moment, an imbalance and the tool too, see `carried`.
    """

    is_sampled: ClassVar[bool | None] = False
    meta: ClassVar[MotorMeta] = MOTOR_META
    datasheets: ClassVar[Mapping[str, Datasheet]] = CATALOGUE

    def boundary_input_spec(self) -> dict[str, Input]:
        spec = {
            "commanded_torque": Input((), "N·m", 0.0, "additive", "direct rotor torque"),
            "commanded_voltage": Input((), "V", 0.0, "replacive", "armature terminal voltage"),
            "commanded_velocity": Input((), "rad/s", 0.0, "replacive", "desired rotor speed"),
            "parent_pose_world": Input((7,), "m", IDENTITY_POSE, "replacive", "parent's pose"),
        }
        if self.command_mode == "voltage":
            words = "in the circuit, of a bridge"
            spec["series_resistance"] = Input((), "Ω", 0.0, "replacive", words)
        if self.shaft == "driven":
            spec["shaft_velocity"] = Input((), "rad/s", 0.0, "replacive", "of the (output) shaft")
        else:
            spec["load_torque"] = Input(
                (), "N·m", 0.0, "additive", "external torque on the (output) shaft"
            )
        if self.reaction == "full":
            words = "[v; w] of the mount in world axes"
            spec["parent_twist_world"] = Input((6,), "m/s, rad/s", 0.0, "replacive", words)
            words = "[F; M] on the tool in world axes, at the origin of rotor_pose_world"
            spec["tool_wrench_world"] = Input((6,), "N, N·m", 0.0, "additive", words)
        return spec

    def boundary_flux_spec(self) -> dict[str, Output]:
        spec = {
            "rotor_angle": Output((), "rad", "cumulative rotor angle"),
            "rotor_angular_velocity": Output((), "rad/s", "rotor speed"),
            "rotor_pose_world": Output((7,), "m", "tool-tip pose in the world"),
            "motor_torque": Output((), "N·m", "electromagnetic torque on the rotor"),
        }
        if self.shaft == "driven":
            spec["shaft_torque"] = Output((), "N·m", "on the mechanism, at the (output) shaft")
        else:
            spec |= {
                "reaction_torque": Output((), "N·m", "torque on the parent about the axis"),
                "reaction_wrench_world": Output((6,), "N, N·m", "on the parent, at the mount"),
            }
        if self.gear is not None:
            spec["output_angle"] = Output((), "rad", "angle of the output shaft")
            spec["output_angular_velocity"] = Output((), "rad/s", "speed of the output shaft")
        if self.winding is not None:
            spec["winding_temperature"] = Output((), "°C", "winding temperature")
            spec["winding_resistance"] = Output((), "Ω", "R at that temperature")
            if self.winding.max_temperature_c is not None:
                spec["overload"] = Output((), "", "1 above the largest temperature, else 0")
        return spec

    def state_spec(self) -> dict[str, Output]:
        spec = {
            "angle": Output((), "rad", "cumulative rotor angle, not wrapped"),
            "angular_velocity": Output((), "rad/s", "rotor speed"),
            "current": Output((), "A", "armature current, zero outside voltage mode"),
            "velocity_integral_error": Output((), "rad", "the PI's integral"),
        }
        if self.winding is not None:
            spec["winding_temperature"] = Output((), "°C", "winding temperature")
        if self.reaction == "full":
            spec[_TWIST] = Output((6,), "m/s, rad/s", "[v; w] of the mount at the last step")
            spec[_SEEN] = Output((), "", "1 from the first step on: before, no twist is known")
        if self.imbalance is not None:
            spec[_ACCELERATION] = Output((6,), "m/s², rad/s²", "of the mount over the last step")
        return spec

    def initial_state(self) -> State:
        state = super().initial_state()
        if self.winding is not None:
            state["winding_temperature"] = jnp.asarray(self.winding.ambient_temperature_c)
        return state

    def state_fields(self) -> list[str]:
        inside = ("velocity_integral_error", _TWIST, _SEEN, _ACCELERATION)
        return [name for name in self.state_spec() if name not in inside]

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """One step: current (with w_n), speed (with i_{n+1}), angle (with w_{n+1})."""
        u = _like(state["angle"], boundary_inputs)
        mode = mode_of(self, u)
        of_parent = {}
        if self.reaction == "full":
            twist = u["parent_twist_world"]
            acceleration = state[_SEEN] * (twist - state[_TWIST]) / dt
            theta, w = state["angle"], state["angular_velocity"]
            u["load_torque"] = carried.load_torque(self, theta, w, u, acceleration)
            seen = jnp.ones_like(state[_SEEN])
            of_parent = {_TWIST: twist, _SEEN: seen, _ACCELERATION: acceleration}
            of_parent = {name: of_parent[name] for name in of_parent if name in state}
        if self.shaft == "driven":
            new = rotor.driven_step(self, state, u, mode, dt)
        else:
            advance = self._exact if self.integrator == "exact" else self._semi_implicit
            new = advance(state, u, mode, dt)
        if self.winding is not None:
            i = self._current({**state, **new}, u, mode)
            T = state["winding_temperature"]
            new["winding_temperature"] = self.winding.next_temperature(self.r_ohm, T, i, dt)
        return new | of_parent

    def _semi_implicit(self, state: State, u: dict[str, Any], mode: Mode, dt: Any) -> State:
        """Semi-implicit Euler: R i and b w are implicit, all else is taken as it stands."""
        theta, w = state["angle"], state["angular_velocity"]
        i, integral = state["current"], state["velocity_integral_error"]
        R, L = self.resistance(state), self.l_henry

        i_next: Any = 0.0
        if mode.voltage is not False:
            _, ke = self.constants(i)
            V = terminal_voltage(self, u)
            of_circuit = circuit_resistance(self, state, u)
            i_next = (i + dt / L * (V - ke * w)) / (1.0 + dt * of_circuit / L)
            i_next = select(mode.voltage, limited_current(self, i_next), 0.0)
        kt, _ = self.constants(i_next)
        tau_motor = kt * i_next

        drive = command(self, u, mode, w, integral, R, dt)
        tau = drive.torque + tau_motor
        if self.cogging is not None:
            tau = tau + self.cogging.torque(theta)
        w_next = rotor.next_speed(self, w, tau, u["load_torque"], drive.held_inertia, dt)
        return {
            "angle": theta + w_next * dt,
            "angular_velocity": w_next,
            "current": i_next,
            "velocity_integral_error": drive.integral,
        }

    def _exact(self, state: State, u: dict[str, Any], mode: Mode, dt: Any) -> State:
        """The matrix exponential of the mode's linear system, between its events."""
        tau_load = rotor.load_on_rotor(self, u["load_torque"])
        if self.cogging is not None:
            tau_load = tau_load + self.cogging.torque(state["angle"])
        is_linear = self.friction is None and largest_current(self, mode) is None
        step = linear.exact_step if is_linear else events.step_with_friction
        return step(self, state, u, tau_load, mode, dt)

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        """Angle, speed and pose; the torques at the end of the step."""
        theta, w = state["angle"], state["angular_velocity"]
        u = _like(theta, boundary_inputs)
        pose, axis = u["parent_pose_world"], self.axis_in_parent_frame
        N = None if self.gear is None else self.gear.ratio
        shaft_angle = theta if N is None else theta / N
        tau = self._motor_torque(state, u, mode_of(self, u))
        if self.shaft == "free":
            reaction = self._reaction_torque(theta, w, tau, u["load_torque"])
            wrench = self._reaction_wrench(state, u, tau, reaction)
        fluxes = {
            "rotor_angle": theta,
            "rotor_angular_velocity": w,
            "rotor_pose_world": compose_pose(
                pose, axis, shaft_angle, self.tool_offset_in_rotor_frame
            ),
            "motor_torque": tau,
        }
        if self.shaft == "free":
            fluxes |= {"reaction_torque": reaction, "reaction_wrench_world": wrench}
        else:
            fluxes["shaft_torque"] = rotor.shaft_torque(self, theta, w, tau)
        if N is not None:
            fluxes |= {"output_angle": shaft_angle, "output_angular_velocity": w / N}
        if self.winding is not None:
            T = state["winding_temperature"]
            fluxes |= {"winding_temperature": T, "winding_resistance": self.resistance(state)}
            if self.winding.max_temperature_c is not None:
                fluxes["overload"] = (self.winding.max_temperature_c < T).astype(T.dtype)
        return fluxes

    def _motor_torque(self, state: State, u: dict[str, Any], mode: Mode) -> Any:
        """The torque at this instant: kt i in voltage mode, else what the drive applies."""
        i, integral = state["current"], state["velocity_integral_error"]
        R = self.resistance(state)
        drive = command(self, u, mode, state["angular_velocity"], integral, R, 0.0)
        kt, _ = self.constants(i)
        return select(mode.voltage, kt * i, drive.torque)

    def _current(self, state: State, u: dict[str, Any], mode: Mode) -> Any:
        """i of the winding: the state's in voltage mode, else tau / kt of what the drive gives."""
        tau = self._motor_torque(state, u, mode)
        return select(mode.voltage, state["current"], tau / self.kt_n_m_per_a)

    def _reaction_torque(self, theta: Any, w: Any, tau: Any, load: Any) -> Any:
        """Torque on the parent: tau_load - d/dt (J w + Jo w / N), what the shaft does not keep."""
        if self.cogging is not None:
            tau = tau + self.cogging.torque(theta)
        momentum = self.inertia_kg_m2
        if self.gear is not None and self.gear.output_inertia_kg_m2 is not None:
            momentum = momentum + self.gear.output_inertia_kg_m2 / self.gear.ratio
        return load - momentum * rotor.acceleration(self, w, tau, load)

    def _reaction_wrench(self, state: State, u: dict[str, Any], tau: Any, reaction: Any) -> Array:
        """[F; M] on the parent at the mount."""
        if self.reaction == "axial":
            axis = carried.axis_in_world(u["parent_pose_world"], self.axis_in_parent_frame)
            return jnp.concatenate([jnp.zeros_like(axis), reaction * axis])
        theta, w = state["angle"], state["angular_velocity"]
        acceleration, w_dot = state.get(_ACCELERATION), 0.0
        if acceleration is not None:
            load = carried.load_torque(self, theta, w, u, acceleration)
            if self.cogging is not None:
                load = load + self.cogging.torque(theta)
            w_dot = rotor.acceleration(self, w, tau, load)
        return carried.reaction_wrench(self, theta, w, w_dot, reaction, u, acceleration)

    def reflected_inertia(self) -> Any:
        """N² J + Jo, the motor's inertia at the (output) shaft: what a driven mechanism carries."""
        J = self.inertia_kg_m2
        return J if self.gear is None else self.gear.inertia_on_output(J)

    def monitors(self) -> dict[str, Monitor]:
        """The temperature of a winding that has a largest one, and the current of a rated motor."""
        found = {}

        def temperature(state: Any, inputs: Any) -> Any:
            return state["winding_temperature"]

        def current(state: Any, inputs: Any) -> Any:
            u = _like(state["angle"], inputs)
            return jnp.abs(self._current(state, u, mode_of(self, u)))

        if self.winding is not None and (highest := self.winding.max_temperature_c) is not None:
            found["temperature"] = Monitor(temperature, highest, "°C", "winding temperature")
        if self.rated_current_a is not None:
            found["current"] = Monitor(current, self.rated_current_a, "A", "current")
        return found

    def drawing(self) -> Drawing:
        """A can, warm as its winding is, and a shaft that turns."""
        return motor_drawing(self)

    def value_warnings(self) -> Iterator[Warning]:
        yield from stability_warnings(self)

    largest_stable_timestep = largest_stable_timestep
    state_space = linear.state_space
    transfer_function = linear.transfer_function
    lumped_constants = linear.lumped_constants
    poles = linear.poles
    step_response = linear.step_response
    frequency_response = linear.frequency_response
    bode = linear.bode

    def effective_meta(self) -> MotorMeta:
        """`meta` with the effects that this motor was given."""
        return dataclasses.replace(
            self.meta,
            has_cogging=self.cogging is not None,
            has_imbalance_vibration=self.imbalance is not None,
        )

    @classmethod
    def from_datasheet(
        cls, name: str, timestep: float, sheet: Datasheet | None = None, **figures_and_options: Any
    ) -> "MotorNode":
        """The motor of a data sheet. Figures are `Datasheet`'s fields; other names go to the node.

        Warns (`DatasheetWarning`) when figures contradict each other: which pair, by how much.
        `on_contradiction="raise"` makes that an error. See `datasheet.parameters_from`.
        """
        parameters = parameters_from(sheet, figures_and_options)
        return cls(name, timestep, **parameters)


def _like(value: Array, inputs: Values) -> dict[str, Any]:
    """The inputs in the precision of the state; those that are NumPy constants stay so."""
    return {name: entry.astype(value.dtype) for name, entry in inputs.items()}


def _quat_from_axis_angle(axis: Vec3, angle: Angle) -> Float[Array, "4"]:
    """[cos(angle / 2), sin(angle / 2) axis / |axis|], angle in rad."""
    _refuse_zero("axis", axis)
    return quat_from_axis_angle(axis, angle)


def compose_pose(parent_pose: Pose, axis: Vec3, angle: Angle, tool_pose: Pose) -> Float[Array, "7"]:
    """P_tool_world = P_parent_world + R(axis, angle) + P_tool_rotor

    Poses are `[x, y, z, qw, qx, qy, qz]` with unit quaternions; `axis` is in the parent's frame.
    """
    _refuse_zero("parent_pose's quaternion", _quaternion(parent_pose))
    _refuse_zero("tool_pose's quaternion", _quaternion(tool_pose))
    quaternion = _quat_from_axis_angle(axis, angle)
    pose_parent_rotor = jnp.concatenate([jnp.zeros(3, quaternion.dtype), quaternion])
    return compose(parent_pose, compose(pose_parent_rotor, tool_pose))


def _quaternion(pose: Any) -> Any:
    return pose[3:]


def _refuse_zero(what: str, value: Quat | Vec3) -> None:
    parts = value if isinstance(value, tuple) else (value,)
    if known(*parts) and np.linalg.norm(np.asarray(value, dtype=float)) < 1e-6:
        raise ParameterError(f"{what} must have a length > 0, got {value}")
