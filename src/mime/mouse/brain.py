"""MIME-NODE-130: the mouse's brain, from ticks, ranges and a gyro to the volts of two motors."""

import math
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.core.node import (
    Input,
    Node,
    Output,
    Scalar,
    State,
    Values,
    option,
    parameter,
)
from mime.maze.belief import Belief, unknown_belief
from mime.maze.routes import SpeedProfile
from mime.mouse import estimator, legs, navigator
from mime.mouse.brain_meta import META, STATE_FIELDS
from mime.mouse.estimator import Estimate, Trust
from mime.mouse.legs import REST, STRAIGHT, Leg
from mime.mouse.navigator import DONE, EDGE, RACE, RETURN, SEARCH, Plan, World
from mime.mouse.strategy import Strategy
from mime.mouse.tracking import Gains, track
from mime.nodes.sensing.range_sensor import MOUSE_SENSORS
from mime.xla.when import when

CALIBRATION_S = 0.3
"""How long the mouse stands still at first, to learn its gyro's bias."""
LOOK_M = 0.025
"""How far before an edge the walls behind it are looked at."""


class MouseBrainNode(Node):
    """Searches an unknown maze for its goal, returns, and races along the best way it has seen.

        encoders, gyro, walls known -> pose          estimator.py
        readings -> walls of the cell ahead          here
        walls -> where to go                         strategy.py: yours, if you like
        where to go -> legs -> reference             navigator.py, legs.py
        reference - pose -> volts                    tracking.py

    It is told its start, the goal's cells and the maze's size; nothing else of the maze.
    """

    meta: ClassVar = META

    goals: Float[Array, "rows cols"] = parameter(
        "", shape=None, doc="1 at the goal's cells, else 0"
    )
    start: Float[Array, "3"] = parameter("", shape=(3,), doc="row, column and heading (0 to 3)")
    explore: SpeedProfile = eqx.field(default_factory=SpeedProfile)
    race: SpeedProfile = eqx.field(default_factory=SpeedProfile)
    strategy: Strategy = eqx.field(default_factory=Strategy)
    gains: Gains = eqx.field(default=None)
    sensor_poses_body: Float[Any, "s 3"] = parameter(
        "m", shape=None, folds=True, default=MOUSE_SENSORS, doc="front, pairs left and right"
    )
    wheel_radius_m: Scalar = parameter("m", above=0.0, default=0.0145, doc="nominal")
    track_width_m: Scalar = parameter("m", above=0.0, default=0.053, doc="nominal")
    ticks_per_turn: Scalar = parameter("1/turn", above=0.0, default=16384.0, doc="of the wheel")
    pivot_rate_rad_s: Scalar = parameter("rad/s", above=0.0, default=8.0, doc="on the spot")
    pivot_acceleration_rad_s2: Scalar = parameter("rad/s²", above=0.0, default=100.0, doc="")
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
    trust: Trust = option(default=Trust())

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
        return {
            name: Output(value.shape, *STATE_FIELDS[name])
            for name, value in jax.eval_shape(self._initial).items()
        }

    def state_fields(self) -> list[str]:
        return ["clock", "mean", "phase", "cell", "heading", "horizontal", "vertical"]

    def observable_fields(self) -> list[str]:
        return []

    def initial_state(self) -> State:
        """At rest in the centre of the start cell."""
        return {name: jnp.asarray(value) for name, value in self._initial().items()}

    def _initial(self) -> State:
        dtype = jnp.result_type(float)
        world = self._world()
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

    def _world(self) -> World:
        rows, cols = self.goals.shape
        start = self.start.astype(jnp.int32)
        return World(
            rows,
            cols,
            self.cell_size_m,
            start[:2],
            start[2],
            self.goals > 0.5,
            self.explore,
            self.race,
            self.pivot_rate_rad_s,
            self.pivot_acceleration_rad_s2,
        )

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
        estimate, beside = self._pass_posts(estimate, plan, state["beside"], u["readings"])
        plan = self._look(plan, estimate.mean, u["readings"])
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

    def _pass_posts(
        self, estimate: Estimate, plan: Plan, beside: Array, readings: Array
    ) -> tuple[Estimate, Array]:
        """Correct the place along a straight where a side sensor loses its wall."""
        straight = plan.leg.kind == STRAIGHT
        now = []
        for which, sensor in enumerate(self.side_sensors):
            forward, right, angle = (float(v) for v in self.sensor_poses_body[sensor])
            gap = 0.5 * (self.cell_size_m - self.wall_thickness_m) - abs(right)
            beside_at = gap / abs(math.sin(angle))
            clear = 0.5 * (beside_at + self.range_m[1])
            lost = (beside[which] > 0) & (readings[sensor] > clear)
            estimate = estimator.pass_corner(
                estimate,
                lost & straight,
                (forward, right, angle),
                plan.heading * (0.5 * math.pi),
                self.cell_size_m,
                self.wall_thickness_m,
                self.trust,
            )
            seen = readings[sensor] < 0.75 * beside_at + 0.25 * self.range_m[1]
            now.append(jnp.where(seen, 1.0, jnp.where(lost, 0.0, beside[which])))
        return estimate, jnp.stack(now).astype(beside.dtype)

    def _look(self, plan: Plan, mean: Array, readings: Array) -> Plan:
        """Votes for the walls left, ahead and right of the cell to be entered.

        In the frame of the edge (f ahead of it, l to the right, psi turned) a wall ahead would be
        read at (cell - t/2 - f_s)/cos, one beside at (cell/2 - t/2 -+ l_s)/|sin|. A reading that
        is nearer than half way from there to the longest reading is a vote for the wall.
        """
        edge = navigator.pose_at(self._world(), plan.cell, plan.heading, EDGE, mean.dtype)
        dx, dy, psi = jnp.unstack(mean[:3] - edge)
        psi = psi - 2.0 * jnp.pi * jnp.round(psi / (2.0 * jnp.pi))
        cos, sin = jnp.cos(edge[2]), jnp.sin(edge[2])
        f, l = cos * dx + sin * dy, cos * dy - sin * dx
        near = (plan.place == EDGE) & (plan.phase <= RETURN)
        near = near & (f > -LOOK_M) & (f < LOOK_M) & (jnp.abs(psi) < 0.35)
        longest, half = self.range_m[1], 0.5 * self.wall_thickness_m
        left, right = self.look_ahead_sensors
        votes = []
        for sensor, side in ((left, -1.0), (self.front_sensor, 0.0), (right, 1.0)):
            forward, rightward, angle = (float(v) for v in self.sensor_poses_body[sensor])
            f_s = f + forward * jnp.cos(psi) - rightward * jnp.sin(psi)
            l_s = l + forward * jnp.sin(psi) + rightward * jnp.cos(psi)
            if side:
                expected = (side * 0.5 * self.cell_size_m - side * half - l_s) / jnp.sin(
                    psi + angle
                )
                hit = f_s + expected * jnp.cos(psi + angle)
                on_wall = (hit > 0.015) & (hit < self.cell_size_m - 0.015)
            else:
                expected = (self.cell_size_m - half - f_s) / jnp.cos(psi + angle)
                on_wall = jnp.ones_like(near)
            seen = near & on_wall & (expected < longest - 0.012)
            vote = jnp.where(readings[sensor] < 0.5 * (expected + longest), 1.0, -1.0)
            votes.append(jnp.where(seen, vote, 0.0))
        return plan._replace(evidence=plan.evidence + jnp.stack(votes).astype(mean.dtype))

    def _go_on(
        self, plan: Plan, reference: Array, times: Array, clock: Any, dt: Any
    ) -> tuple[Plan, legs.Reference, Array]:
        """The reference dt later; a new leg, when the old one is over."""
        cell_m = self.cell_size_m
        paused = clock <= CALIBRATION_S
        leg, now = legs.advance(plan.leg, reference, jnp.where(paused, 0.0, dt), cell_m)
        plan = plan._replace(leg=leg)
        world = self._world()

        def turn_over(carry: tuple[Plan, legs.Reference, Array]) -> Any:
            old, _, times = carry
            late = old.leg.time - jnp.sum(old.leg.segment_times)
            new = navigator.next_leg(old, world, self.strategy)
            leg, now = legs.advance(new.leg, new.origin, late, cell_m)
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
