"""MIME-NODE-130: the mouse's brain, from ticks, ranges and a gyro to the volts of two motors."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.core.arguments import instance, wrong
from mime.core.drawing import Drawing
from mime.core.node import Node, Scalar, State, Values
from mime.core.spec import Input, Mapped, NodeMeta, Output, ValidatedRange, option, parameter
from mime.maze.belief import Belief, unknown_belief
from mime.maze.routes import SpeedProfile
from mime.mouse import estimator, legs, navigator
from mime.mouse.body import SENSOR_POSES, TICKS_PER_TURN, TRACK_WIDTH_M, WHEEL_RADIUS_M
from mime.mouse.drawing import brain_drawing
from mime.mouse.estimator import Estimate, Trust
from mime.mouse.legs import REST, Leg
from mime.mouse.navigator import DONE, RACE, RETURN, SEARCH, Plan, World
from mime.mouse.sighting import look_ahead, pass_posts
from mime.mouse.strategy import Strategy
from mime.mouse.tracking import Gains, track
from mime.xla.when import when

CALIBRATION_S = 0.3
"""The mouse first stands still for this time, to learn its gyro's bias."""

_STATE_FIELDS = {
    "clock": ("s", "since it was switched on"),
    "ticks": ("", "left and right count of the tick before"),
    "gyro_bias": ("rad/s", "learnt while it stood still"),
    "ray": ("", "which range sensor corrects the pose next"),
    "integral": ("rad", "of the wheels' speed errors"),
    "volts": ("V", "left and right"),
    "beside": ("", "1 while a side sensor sees a wall; left, right"),
    "reference": ("m", "x, y, heading [rad] where it should be"),
    "times": ("s", "goal entered, home again, race started, race over"),
    "mean": ("m", "x, y, heading [rad], k"),
    "covariance": ("", "of the mean"),
    "phase": ("", "0 search, 1 return, 2 race, 3 done, 4 stuck"),
    "place": ("", "where the leg ends: 0 edge, 1 centre, 2 turned"),
    "cell": ("", "row and column of the cell that it enters or stands in"),
    "heading": ("", "0 east, 1 south, 2 west, 3 north"),
    "horizontal": ("", "belief: 0 unknown, 1 open, 2 wall"),
    "vertical": ("", "belief: 0 unknown, 1 open, 2 wall"),
    "evidence": ("", "votes for walls left, ahead, right"),
    "route": ("", "headings of the speed run"),
    "straight": ("", "moves in the same direction from each on"),
    "moves": ("", "number of moves of the route"),
    "move": ("", "the next move of the route"),
    "origin": ("m", "x, y, heading [rad] at the start of the leg"),
    "leg_kind": ("", "0 straight, 1 curve, 2 pivot, 3 rest"),
    "leg_turn": ("", "+1 right, -1 left"),
    "leg_length": ("m", "rad of a pivot"),
    "leg_segment_times": ("s", "of its S-curve"),
    "leg_jerk": ("m/s³", "of its S-curve"),
    "leg_v0": ("m/s", "speed at its start"),
    "leg_time": ("s", "since its start"),
}
_SHAPES: dict[tuple[int, ...], dict[str, tuple[int, ...]]] = {}
"""Of the state's fields by the maze's rows and columns, which alone decide them: traced once."""
"""Unit and meaning of each field of the state."""


def _part(kind: type, **options: Any) -> Any:
    """A field that takes a value of that kind, or the table that describes one."""

    def made(given: Any) -> Any:
        if not isinstance(given, Mapping):
            return instance(kind.__name__, given, kind)
        try:
            return kind(**given)
        except TypeError as error:  # a key that it has not
            raise wrong(kind.__name__, f"a table of its fields ({error})", given) from None

    return eqx.field(converter=made, **options)


class MouseBrainNode(Node):
    """Searches an unknown maze for its goal, returns, and races along the best way it has seen.

        encoders, gyro, walls known -> pose          estimator.py
        readings -> walls of the cell ahead          sighting.py
        walls -> where to go                         strategy.py: yours, if you like
        where to go -> legs -> reference             navigator.py, legs.py
        reference - pose -> volts                    tracking.py

    It knows its start, the goal's cells and the maze's size, and nothing else of the maze.
    """

    is_sampled: ClassVar[bool | None] = True
    meta: ClassVar[NodeMeta] = NodeMeta(
        id="MIME-NODE-130",
        version="1.0.0",
        stability="experimental",
        summary="Maze-solving controller: encoder ticks, ranges and a gyro in, two voltages out.",
        equations=(
            r"\Delta s = k\,(\Delta l + \Delta r)/2, \quad x \mathrel{+}= \Delta s\cos(\theta + "
            r"\Delta\theta/2), \quad y \mathrel{+}= \Delta s\sin(\theta + \Delta\theta/2)",
            r"\nu = d - (X - x_s)/\cos\varphi \quad\text{(Kalman filter, one ray per tick)}",
            r"v = v_r\cos e_\theta + k_x e_x, \quad \omega = \omega_r + e_y v_r/\lambda^2 + "
            r"2(v_r/\lambda + k_\theta)e_\theta",
            r"V = k_v\omega_w + k_a\dot\omega_w + k_p(\omega_w - \hat\omega_w) + k_i\int",
            r"\kappa(s) = \frac{\pi^2}{4L}\sin\frac{\pi s}{L} \quad\text{(curves)}",
        ),
        discretisation=("A step is one tick; legs are evaluated exactly at its time.",),
        assumptions=(
            "It is set down in the centre of the start cell, facing its open side.",
            "It knows the maze's size, the cells' size and the goal's cells.",
            "It stands still for the first 0.3 s.",
        ),
        limitations=(
            "It drives no diagonals.",
            "It explores at one speed, also where it has been before.",
            "Range sensors that see the walls of the cell ahead from its edge are needed.",
        ),
        validated_ranges=(ValidatedRange("timestep", 1e-3, 2e-3, "s", "in 100 random mazes"),),
        changelog=(("1.0.0", "2026-11-16", "First version."),),
        references=(
            "[@Kanayama1990] Kanayama, Y. et al. (1990). A stable tracking control method for an "
            "autonomous mobile robot. IEEE ICRA.",
            "[@Thrun2005] Thrun, S., Burgard, W., Fox, D. (2005). Probabilistic Robotics. MIT "
            "Press.",
        ),
        implementation=(
            Mapped("x, y, theta, k", "mime.mouse.estimator.correct"),
            Mapped("v, omega, V", "mime.mouse.tracking.track"),
            Mapped("kappa", "mime.mouse.legs.follow"),
            Mapped("walls", "mime.mouse.brain.MouseBrainNode.update"),
            Mapped("way", "mime.mouse.strategy.Strategy.explore"),
        ),
    )

    goals: Float[Array, "rows cols"] = parameter(
        "", shape=None, doc="1 at the goal's cells, else 0"
    )
    start: Float[Array, "3"] = parameter("", shape=(3,), doc="row, column and heading (0 to 3)")
    gains: Gains = _part(Gains)
    """Gains of the wheels' control; `build_mouse` works them out from motor and chassis."""
    explore: SpeedProfile = _part(SpeedProfile, default=SpeedProfile())
    """Speeds of search and return."""
    race: SpeedProfile = _part(SpeedProfile, default=SpeedProfile())
    """Speeds of the speed run."""
    strategy: Strategy = eqx.field(default=Strategy())
    """Decides where to go."""
    sensor_poses_body: Float[Any, "s 3"] = parameter(
        "m", shape=None, folds=True, default=SENSOR_POSES, doc="front, pairs left and right"
    )
    wheel_radius_m: Scalar = parameter("m", above=0.0, default=WHEEL_RADIUS_M, doc="nominal")
    track_width_m: Scalar = parameter("m", above=0.0, default=TRACK_WIDTH_M, doc="nominal")
    ticks_per_turn: Scalar = parameter(
        "1/turn", above=0.0, default=TICKS_PER_TURN, doc="of the wheel"
    )
    pivot_rate_rad_per_s: Scalar = parameter("rad/s", above=0.0, default=8.0, doc="on the spot")
    pivot_acceleration_rad_per_s2: Scalar = parameter(
        "rad/s²", above=0.0, default=100.0, doc="on the spot"
    )
    cell_size_m: float = option(default=0.18)
    wall_thickness_m: float = option(default=0.012)
    range_m: tuple[float, float] = option(default=(0.01, 0.15))
    """Shortest and longest reading of the range sensors."""
    closed_start: bool = option(default=True)
    """The contest's rule: the start cell is open ahead and closed on its other three sides."""
    front_sensor: int = option(default=0)
    look_ahead_sensors: tuple[int, int] = option(default=(3, 4))
    """Left and right, the ones that see the walls of the next cell."""
    side_sensors: tuple[int, int] = option(default=(1, 2))
    """Left and right, the ones that look square at the walls beside the mouse."""
    trust: Trust = _part(Trust, default=Trust(), static=True)
    """Standard deviations of the filter."""

    def boundary_input_spec(self) -> dict[str, Input]:
        s = np.shape(self.sensor_poses_body)[0]
        return {
            "left_ticks": Input((), "", 0.0, "replacive", "of the left wheel's encoder"),
            "right_ticks": Input((), "", 0.0, "replacive", "of the right wheel's encoder"),
            "turn_rate": Input((), "rad/s", 0.0, "replacive", "of the gyro, clockwise"),
            "readings": Input((s,), "m", self.range_m[1], "replacive", "of the range sensors"),
        }

    def boundary_flux_spec(self) -> dict[str, Output]:
        return {
            "left_voltage": Output((), "V", "to the left motor"),
            "right_voltage": Output((), "V", "to the right motor"),
            "estimated_pose": Output((3,), "m", "x, y, heading [rad] as the mouse believes"),
            "reference_pose": Output((3,), "m", "x, y, heading [rad] where it wants to be"),
            "phase": Output((), "", "0 search, 1 return, 2 race, 3 done, 4 stuck"),
            "time_to_goal": Output((), "s", "when the goal was entered first; 0 before"),
            "time_home": Output((), "s", "when it was back; 0 before"),
            "race_time": Output((), "s", "of the speed run, from its first move to its stop"),
        }

    def state_spec(self) -> dict[str, Output]:
        if (size := self.goals.shape) not in _SHAPES:
            _SHAPES[size] = {n: x.shape for n, x in jax.eval_shape(self._initial).items()}
        return {n: Output(shape, *_STATE_FIELDS[n]) for n, shape in _SHAPES[size].items()}

    def state_fields(self) -> list[str]:
        return ["clock", "mean", "phase", "cell", "heading", "horizontal", "vertical"]

    def observable_fields(self) -> list[str]:
        return []

    def drawing(self) -> Drawing:
        """The walls that it believes in, where it thinks it is, and its route."""
        return brain_drawing(self)

    def initial_state(self) -> State:
        """The state at rest in the centre of the start cell."""
        return _at_rest(self)

    def _initial(self) -> State:
        dtype = jnp.result_type(float)
        world = self.world()
        unknown = unknown_belief(world.rows, world.cols)
        plan = navigator.standing(world, unknown, self.closed_start, dtype)
        estimate = estimator.start(plan.origin, self.trust)
        zero = jnp.zeros((), dtype)
        return {
            "clock": zero,
            "ticks": jnp.zeros(2, dtype),
            "gyro_bias": zero,
            "ray": jnp.zeros((), jnp.int32),
            "integral": jnp.zeros(2, dtype),
            "volts": jnp.zeros(2, dtype),
            "beside": jnp.zeros(2, dtype),
            "reference": plan.origin,
            "times": jnp.zeros(4, dtype),
            **estimate._asdict(),
            **_flat(plan),
        }

    def world(self) -> World:
        """What it knows of the contest before it starts: sizes, start, goals, its own speeds."""
        rows, cols = self.goals.shape
        start = self.start.astype(jnp.int32)
        place = rows, cols, self.cell_size_m, start[:2], start[2], self.goals > 0.5
        pivot = self.pivot_rate_rad_per_s, self.pivot_acceleration_rad_per_s2
        return World(*place, self.explore, self.race, *pivot)

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """One tick: estimate, look, go on along the leg, drive."""
        dtype = state["clock"].dtype
        u = {name: jnp.asarray(value, dtype) for name, value in boundary_inputs.items()}
        clock = state["clock"] + dt
        moving = clock > CALIBRATION_S
        ticks = jnp.stack([u["left_ticks"], u["right_ticks"]])
        turned = (ticks - state["ticks"]) * (2.0 * math.pi / self.ticks_per_turn)
        rate = u["turn_rate"]
        bias = state["gyro_bias"]
        bias = jnp.where(moving, bias, bias + (rate - bias) * (dt / clock))

        plan = _plan(state)
        estimate = Estimate(state["mean"], state["covariance"])
        travelled = 0.5 * jnp.sum(turned) * self.wheel_radius_m
        turn = jnp.where(moving, (rate - bias) * dt, 0.0)
        estimate = estimator.predict(estimate, travelled, turn, dt, self.trust)
        ray = state["ray"]
        sensors = jnp.asarray(self.sensor_poses_body, dtype)
        estimate = estimator.correct(
            estimate,
            u["readings"][ray],
            sensors[ray],
            plan.belief,
            self.cell_size_m,
            self.wall_thickness_m,
            self.range_m,
            self.trust,
        )
        estimate, beside = pass_posts(self, estimate, plan, state["beside"], u["readings"])
        plan = look_ahead(self, plan, estimate.mean, u["readings"])
        plan, reference, times = self._go_on(plan, state["reference"], state["times"], clock, dt)
        command = track(
            reference,
            estimate.mean[:3],
            turned / dt,
            state["integral"],
            ~moving | (plan.leg.kind == REST),
            self.wheel_radius_m,
            self.track_width_m,
            self.gains,
            dt,
        )
        return {
            "clock": clock,
            "ticks": ticks,
            "gyro_bias": bias,
            "ray": (ray + 1) % sensors.shape[0],
            "integral": command.integral,
            "volts": command.volts,
            "beside": beside,
            "reference": reference.pose,
            "times": times,
            **estimate._asdict(),
            **_flat(plan),
        }

    def _go_on(
        self, plan: Plan, reference: Array, times: Array, clock: Any, dt: Any
    ) -> tuple[Plan, legs.Reference, Array]:
        """The reference dt later; a new leg, when the old one is over."""
        cell_size_m = self.cell_size_m
        paused = clock <= CALIBRATION_S
        leg, now = legs.follow(plan.leg, reference, jnp.where(paused, 0.0, dt), cell_size_m)
        plan = plan._replace(leg=leg)
        world = self.world()

        def turn_over(carry: tuple[Plan, legs.Reference, Array]) -> Any:
            old, _, times = carry
            late = old.leg.time - jnp.sum(old.leg.segment_times)
            new = navigator.next_leg(old, world, self.strategy)
            leg, now = legs.follow(new.leg, new.origin, late, cell_size_m)
            goal = (old.phase == SEARCH) & (new.phase != SEARCH)
            home = (old.phase == RETURN) & (new.phase == RACE)
            starts = (old.phase == RACE) & (old.place == navigator.TURNED)
            done = (old.phase == RACE) & (new.phase == DONE)
            events = jnp.stack([goal, home, starts, done])
            return new._replace(leg=leg), now, jnp.where(events, clock, times)

        return when(legs.is_over(leg), turn_over, (plan, now, times))

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        """The volts, and what the mouse believes and has achieved."""
        goal, home, started, done = jnp.unstack(state["times"])
        return {
            "left_voltage": state["volts"][0],
            "right_voltage": state["volts"][1],
            "estimated_pose": state["mean"][:3],
            "reference_pose": state["reference"],
            "phase": state["phase"].astype(goal.dtype),
            "time_to_goal": goal,
            "time_home": home,
            "race_time": jnp.where(done > 0, done - started, 0.0),
        }


def _flat(plan: Plan) -> State:
    fields = plan._asdict()
    leg, belief = fields.pop("leg"), fields.pop("belief")
    return fields | belief._asdict() | {f"leg_{name}": v for name, v in leg._asdict().items()}


def _plan(state: State) -> Plan:
    leg = Leg(*(state[f"leg_{name}"] for name in Leg._fields))
    belief = Belief(state["horizontal"], state["vertical"])
    own = {name: state[name] for name in Plan._fields if name not in ("leg", "belief")}
    return Plan(leg=leg, belief=belief, **own)


@partial(jax.jit, inline=True)  # else each of its operations is a program of XLA's
def _at_rest(brain: MouseBrainNode) -> State:
    return {name: jnp.asarray(value) for name, value in brain._initial().items()}
