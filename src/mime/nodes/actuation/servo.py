"""MIME-NODE-115: the firmware of a position servo."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from mime.core.node import Node, Scalar, State, Values
from mime.core.problem import Problem
from mime.core.spec import Input, Mapped, NodeMeta, Output, ValidatedRange, option, parameter
from mime.nodes.actuation.servo_datasheet import SERVOS, ServoDatasheet

OPEN_RESISTANCE_OHM = 1e6
"""Of a bridge that is off: a motor of volts leaks microamperes."""
_HERE = "mime.nodes.actuation.servo.ServoNode"


class ServoNode(Node):
    """Firmware of a position servo: a goal angle in, the voltage of its bridge out.

        e = goal - measured,   0 where |e| <= e_0
        D = c_p kp e + c_i ki I - c_d kd d(measured)/dt,   dI/dt = e,   |D| <= D_max
        V = D V_supply

    Gains are the numbers of the servo's registers; c_p, c_i and c_d make a duty of them. The node
    has one sample per timestep and holds its duty until the next. Wire `terminal_voltage` and
    `series_resistance` to a motor, and its output angle, delayed, to `angle`.
    """

    is_sampled: ClassVar[bool | None] = True
    meta: ClassVar[NodeMeta] = NodeMeta(
        id="MIME-NODE-115",
        version="1.0.0",
        stability="experimental",
        summary="Firmware of a position servo: a goal angle in, the voltage of its bridge out.",
        equations=(
            r"e = \theta_\text{goal} - \hat\theta, \quad e = 0 \;\text{where}\; |e| \le e_0, \quad "
            r"\hat\theta = q \operatorname{round}(\theta / q), \; q = 2\pi / n",
            r"D = \operatorname{clip}\big(c_p k_p e + c_i k_i I - c_d k_d \dot{\hat\theta},\, "
            r"-D_{\max},\, D_{\max}\big), \quad \dot I = e",
            r"V = D V_\text{supply}, \quad R_\text{series} = R_b \;\text{on},\; 1\,\text{MΩ} "
            r"\;\text{or}\; R_b \;\text{off}",
        ),
        discretisation=(
            r"I_{n+1} = I_n + e_n \Delta t, \quad "
            r"\dot{\hat\theta}_n = (\hat\theta_n - \hat\theta_{n-1}) / \Delta t",
            "The duty of a sample is held over the step, or a whole number of steps later.",
        ),
        assumptions=(
            "The bridge applies the mean of its switched voltage; the ripple of the current is "
            "small.",
            "A bridge that is off lets no current through: the back-EMF is below the supply's "
            "voltage.",
            "The integral stands still while it would push the duty further beyond its limit.",
            "Goal and angle are rounded to the nearest tick.",
        ),
        limitations=(
            "Profiles of velocity and acceleration, feed-forward gains and current limits of the "
            "firmware are not simulated: give the goal that the profile has at each time.",
            "The position is not wrapped: it is that of a multi-turn mode.",
            "The gradient of a rounded angle is 0, and with it that of the feedback; "
            "straight_through=True gives that of the angle.",
        ),
        validated_ranges=(
            ValidatedRange("kp", 0.0, 16383.0, "", "the registers of Dynamixel servos"),
            ValidatedRange("duty_limit", 0.01, 1.0, ""),
            ValidatedRange("timestep", 1e-4, 1e-2, "s"),
        ),
        changelog=(("1.0.0", "2026-11-19", "First version."),),
        references=(
            "[@RobotisEManual] ROBOTIS e-Manual, XL330-M288: position PID gains, PWM limit, "
            "operating modes.",
            "[@Duclusaud2025] Duclusaud, M. et al. (2025). Extended friction models for the "
            "physics simulation of servo actuators. The firmware's gain in volts.",
        ),
        implementation=(
            Mapped("D, I", f"{_HERE}.update"),
            Mapped("theta_hat", f"{_HERE}._read", "nearest tick"),
            Mapped("V, R_series", f"{_HERE}.compute_boundary_fluxes"),
        ),
    )
    example: ClassVar = {"kp": 400.0, "supply_voltage_v": 5.0}
    datasheets: ClassVar[Mapping[str, ServoDatasheet]] = SERVOS

    kp: Scalar = parameter("", at_least=0.0, doc="register of the position P gain")
    ki: Scalar | None = parameter(
        "", at_least=0.0, default=None, doc="register of the I gain; no integral when absent"
    )
    kd: Scalar | None = parameter(
        "", at_least=0.0, default=None, doc="register of the D gain; no derivative when absent"
    )
    duty_per_kp: Scalar = parameter(
        "1/rad", above=0.0, default=1.0, doc="c_p, duty at an error of one radian and kp = 1"
    )
    duty_per_ki: Scalar = parameter(
        "1/(rad·s)", above=0.0, default=1.0, doc="c_i, duty gained per second at 1 rad and ki = 1"
    )
    duty_per_kd: Scalar = parameter(
        "s/rad", above=0.0, default=1.0, doc="c_d, duty at a speed of 1 rad/s and kd = 1"
    )
    supply_voltage_v: Scalar | None = parameter(
        "V", above=0.0, default=None, doc="V_supply; when absent it is the input supply_voltage"
    )
    duty_limit: Scalar = parameter("", above=0.0, at_most=1.0, default=1.0, doc="D_max")
    dead_band_rad: Scalar | None = parameter(
        "rad", at_least=0.0, default=None, doc="e_0, error without effect"
    )
    ticks_per_turn: Scalar | None = parameter(
        "1/turn",
        above=0.0,
        default=None,
        doc="n, 4096 for an encoder of 12 bits; exact when absent",
    )
    bridge_resistance_ohm: Scalar = parameter(
        "Ω", at_least=0.0, default=0.0, doc="R_b, switched on"
    )
    delay_samples: int = option(default=0)
    """Whole samples from an angle to the duty that answers it."""
    when_disabled: str = option(default="open", choices=("open", "brake"))
    """Without torque the motor's terminals are `"open"`, or joined by the bridge: `"brake"`."""
    straight_through: bool = option(default=False)
    """Differentiate rounded angles as if they were not: for fits and tuning."""

    @classmethod
    def from_datasheet(
        cls, name: str, timestep: float, sheet: ServoDatasheet, **options: Any
    ) -> "ServoNode":
        """The firmware of a servo in the catalogue; `options` go to the node, its gains too.

        The motor behind it takes the sheet's `r_ohm`, `kt_n_m_per_a` and `gear_ratio`.
        """
        names = ("kp", "duty_per_kp", "duty_limit", "ticks_per_turn")
        return cls(name, timestep, **({key: getattr(sheet, key) for key in names} | options))

    def value_problems(self) -> Iterator[Problem]:
        if self.delay_samples < 0:
            words = f"must be a whole number >= 0, got {self.delay_samples}"
            yield Problem(("delay_samples",), words)

    def boundary_input_spec(self) -> dict[str, Input]:
        spec = {
            "goal_angle": Input((), "rad", 0.0, "replacive", "of the output shaft"),
            "angle": Input((), "rad", 0.0, "replacive", "of the output shaft, at the encoder"),
            "torque_enabled": Input((), "", 1.0, "replacive", "1: on, 0: the bridge is off"),
        }
        if self.supply_voltage_v is None:
            spec["supply_voltage"] = Input((), "V", 0.0, "replacive", "V_supply, as measured")
        return spec

    def boundary_flux_spec(self) -> dict[str, Output]:
        return {
            "terminal_voltage": Output((), "V", "mean voltage of the bridge"),
            "series_resistance": Output((), "Ω", "of the bridge, in series with the motor"),
            "duty": Output((), "", "D, 0 where the bridge is off"),
            "measured_angle": Output((), "rad", "as the encoder gives it"),
        }

    def state_spec(self) -> dict[str, Output]:
        spec = {
            "duty": Output((), "", "D of this step"),
            "measured_angle": Output((), "rad", "at the last sample"),
            "enabled": Output((), "", "1 where the bridge is on, else 0"),
        }
        if self.ki is not None:
            spec["integral_error"] = Output((), "rad·s", "I")
        if self.kd is not None:
            spec["sampled"] = Output(
                (), "", "1 from the first sample on: before, no speed is known"
            )
        if self.delay_samples:
            spec["pending_duty"] = Output((self.delay_samples,), "", "duties of the next steps")
        return spec

    def state_fields(self) -> list[str]:
        return [name for name in self.state_spec() if name not in ("sampled", "pending_duty")]

    def goal_inputs(self) -> dict[str, str]:
        return {"goal_angle": "angle"}

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """Sample the angle and compute the duty that is held over the step."""
        dtype = state["duty"].dtype
        u = {name: jnp.asarray(value, dtype) for name, value in boundary_inputs.items()}
        on = u["torque_enabled"] > 0.5
        measured = self._read(u["angle"])
        error = self._read(u["goal_angle"]) - measured
        if self.dead_band_rad is not None:
            error = jnp.where(jnp.abs(error) > self.dead_band_rad, error, 0.0)
        D: Any = self.duty_per_kp * self.kp * error
        new: State = {"measured_angle": measured, "enabled": on.astype(dtype)}
        if self.kd is not None:
            speed = state["sampled"] * (measured - state["measured_angle"]) / dt
            D = D - self.duty_per_kd * self.kd * speed
            new["sampled"] = jnp.ones_like(speed)
        if self.ki is not None:
            integral = state["integral_error"]
            D, new["integral_error"] = self._integrated(D, error, integral, on, dt)
        D = jnp.where(on, jnp.clip(D, -self.duty_limit, self.duty_limit), 0.0)
        if self.delay_samples:
            waiting = jnp.where(on, state["pending_duty"], 0.0)
            new["pending_duty"] = jnp.concatenate([waiting[1:], D[None]])
            D = waiting[0]
        return {**new, "duty": D}

    def _integrated(self, D: Any, error: Any, before: Any, on: Any, dt: Any) -> tuple[Any, Any]:
        """D with the integral's part, and the integral after the sample; 0 without torque."""
        gain = self.duty_per_ki * self.ki
        after = before + error * dt
        beyond = D + gain * after
        winds_up = (jnp.abs(beyond) > self.duty_limit) & (beyond * error > 0)
        after = jnp.where(on, jnp.where(winds_up, before, after), 0.0)
        return D + gain * after, after

    def _read(self, angle: Any) -> Any:
        """The angle at the nearest tick of the encoder."""
        if self.ticks_per_turn is None:
            return angle
        tick = 2.0 * math.pi / self.ticks_per_turn
        rounded = tick * jnp.round(angle / tick)
        if self.straight_through:
            return angle + jax.lax.stop_gradient(rounded - angle)
        return rounded

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        """The bridge over the step that led to `state`."""
        D, dtype = state["duty"], state["duty"].dtype
        V: Any = self.supply_voltage_v
        if V is None:
            V = boundary_inputs["supply_voltage"].astype(dtype)
        R = jnp.asarray(self.bridge_resistance_ohm, dtype)
        if self.when_disabled == "open":
            R = jnp.where(state["enabled"] > 0.5, R, OPEN_RESISTANCE_OHM)
        return {
            "terminal_voltage": D * V,
            "series_resistance": R,
            "duty": D,
            "measured_angle": state["measured_angle"],
        }
