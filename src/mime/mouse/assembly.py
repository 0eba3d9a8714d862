"""The whole mouse as a graph: brain, motors, wheels, walls, sensors."""

import dataclasses
from typing import Any

import numpy as np

from mime._text import quoted
from mime.core.arguments import instance, real, wrong
from mime.core.parameters import known
from mime.core.problem import ParameterError
from mime.maze.maze import Maze
from mime.maze.routes import SpeedProfile
from mime.mouse.body import OUTLINE_M, SENSOR_POSES, TICKS_PER_TURN, TRACK_WIDTH_M, WHEEL_RADIUS_M
from mime.mouse.brain import MouseBrainNode
from mime.mouse.strategy import Strategy
from mime.mouse.tracking import Gains
from mime.nodes.actuation.motor import CATALOGUE, Gear, MotorNode
from mime.nodes.locomotion.differential_drive import DifferentialDriveNode
from mime.nodes.sensing.encoder import EncoderNode
from mime.nodes.sensing.gyro import GyroNode
from mime.nodes.sensing.range_sensor import RangeSensorNode
from mime.running.graph import GraphManager

TIMESTEP_S = 1e-3
"""Step of motors, wheels and walls."""
TICK_S = 2e-3
"""Step of sensors and brain."""
EXPLORE = SpeedProfile(0.5, 0.5, 4.0, 400.0, 0.25)
"""The speeds of a mouse that looks for the goal."""
RACE = SpeedProfile(0.6, 2.0, 5.0, 400.0, 0.25)
"""The speeds of its run along the best way that it has seen."""


def build_mouse(
    maze: Maze,
    *,
    timestep: float = TIMESTEP_S,
    tick_s: float = TICK_S,
    motor: str = "faulhaber_1331t006sr",
    gear_ratio: float = 5.0,
    supply_v: float = 7.4,
    mass_kg: float = 0.1,
    yaw_inertia_kg_m2: float = 1e-4,
    wheel_inertia_kg_m2: float = 5e-7,
    wheel_radius_m: float = WHEEL_RADIUS_M,
    wheel_radius_ratio: Any = (1.0, 1.0),
    track_width_m: float = TRACK_WIDTH_M,
    friction_coefficient: float = 1.0,
    rolling_resistance: float = 0.02,
    range_noise_m: float | None = None,
    gyro_noise_rad_per_s: float | None = None,
    gyro_bias_rad_per_s: float | None = None,
    seed: int = 0,
    strategy: Strategy | None = None,
    explore: SpeedProfile = EXPLORE,
    race: SpeedProfile = RACE,
) -> GraphManager:
    """A mouse in `maze`: nodes `brain`, `left_motor`, `right_motor`, `body`, `left_encoder`,
    `right_encoder`, `gyro` and `ranges`. `wheel_radius_ratio` is what the brain does not know.

    When the motors' inertia or gear is varied, the inertia of the body's wheels follows. The
    brain's gains do not: they are what the mouse was told when it was built.
    """
    instance("maze", maze, Maze)
    if not isinstance(motor, str) or motor not in CATALOGUE:
        raise wrong("motor", f"one of {quoted(CATALOGUE)}", motor)
    given = {
        "gear_ratio": gear_ratio,
        "supply_v": supply_v,
        "mass_kg": mass_kg,
        "yaw_inertia_kg_m2": yaw_inertia_kg_m2,
        "wheel_inertia_kg_m2": wheel_inertia_kg_m2,
        "wheel_radius_m": wheel_radius_m,
        "track_width_m": track_width_m,
    }
    for name, value in given.items():
        if known(value):  # a gradient may go through it
            real(name, value, above=0)
    if maze.has_wall(maze.start, maze.start_heading):
        raise ParameterError(
            f"mouse: the start cell {maze.start} of maze {maze.name!r} must be open ahead, and the "
            f"mouse faces a wall there (heading {maze.start_heading}: 0 east, 1 south, 2 west, 3 "
            "north). Give the maze a start_heading that points out of the cell"
        )
    walls: dict[str, Any] = maze.wall_parameters()
    motors = [
        MotorNode.from_datasheet(
            f"{side}_motor",
            timestep,
            CATALOGUE[motor],
            gear=Gear(gear_ratio),
            command_mode="voltage",
            integrator="exact",
            shaft="driven",
        )
        for side in ("left", "right")
    ]
    wheel_with_motor = _WheelWithMotor(wheel_inertia_kg_m2)
    wheel = float(wheel_with_motor(*motors))
    chassis: dict[str, Any] = {
        "wheel_radius_m": wheel_radius_m,
        "wheel_radius_ratio": wheel_radius_ratio,
        "track_width_m": track_width_m,
        "mass_kg": mass_kg,
        "yaw_inertia_kg_m2": yaw_inertia_kg_m2,
        "wheel_inertia_kg_m2": wheel,
        "friction_coefficient": friction_coefficient,
        "rolling_resistance": rolling_resistance,
        "outline_m": OUTLINE_M,
        "cell_size_m": maze.cell_size_m,
        "wall_thickness_m": maze.wall_thickness_m,
    }
    body = DifferentialDriveNode("body", timestep, model="dynamic", **chassis, **walls)
    kt, R = float(motors[0].kt_n_m_per_a), float(motors[0].r_ohm)
    volts_per_torque = R / (kt * gear_ratio)
    goals = np.zeros((maze.rows, maze.cols))
    for cell in maze.goals:
        goals[cell] = 1.0
    nominal: dict[str, Any] = {
        "goals": goals,
        "start": (*maze.start, maze.start_heading),
        "wheel_radius_m": wheel_radius_m,
        "track_width_m": track_width_m,
    }
    brain = MouseBrainNode(
        "brain",
        tick_s,
        **nominal,
        explore=explore,
        race=race,
        strategy=Strategy() if strategy is None else strategy,
        gains=Gains(
            back_emf_v_s_per_rad=float(motors[0].ke_v_s_per_rad) * gear_ratio,
            driving_v_s2_per_rad=volts_per_torque * (wheel + 0.5 * mass_kg * wheel_radius_m**2),
            turning_v_s2_per_rad=volts_per_torque
            * (wheel + 2.0 * yaw_inertia_kg_m2 * (wheel_radius_m / track_width_m) ** 2),
            supply_v=supply_v,
        ),
        cell_size_m=maze.cell_size_m,
        wall_thickness_m=maze.wall_thickness_m,
        closed_start=sum(maze.walls_around(maze.start)) == 3,
    )
    sensors: dict[str, Any] = {
        "sensor_poses_body": SENSOR_POSES,
        "noise_m": range_noise_m,
        "cell_size_m": maze.cell_size_m,
        "wall_thickness_m": maze.wall_thickness_m,
    }
    ranges = RangeSensorNode("ranges", tick_s, seed=seed, **sensors, **walls)
    rate: dict[str, Any] = {
        "noise_rad_per_s": gyro_noise_rad_per_s,
        "bias_rad_per_s": gyro_bias_rad_per_s,
    }
    gyro = GyroNode("gyro", tick_s, seed=seed + 1, **rate)
    turn: Any = TICKS_PER_TURN
    encoders = [EncoderNode(f"{side}_encoder", tick_s, turn) for side in ("left", "right")]
    graph = GraphManager()
    for node in (brain, *motors, body, *encoders, gyro, ranges):
        graph.add_node(node)
    graph.add_derived_parameter(
        "body",
        "wheel_inertia_kg_m2",
        wheel_with_motor,
        [node.name for node in motors],
        ["inertia_kg_m2", "gear"],
    )
    for side in ("left", "right"):
        graph.add_edge("brain", f"{side}_motor", f"{side}_voltage", "commanded_voltage")
        graph.add_edge(f"{side}_motor", "body", "shaft_torque", f"{side}_wheel_torque")
        graph.add_edge(
            "body", f"{side}_motor", f"{side}_wheel_velocity", "shaft_velocity", delay=True
        )
        graph.add_edge("body", f"{side}_encoder", f"{side}_wheel_angle", "angle", delay=True)
        graph.add_edge(f"{side}_encoder", "brain", "ticks", f"{side}_ticks")
    graph.add_edge("body", "gyro", "turn_rate", "turn_rate", delay=True)
    graph.add_edge("gyro", "brain", "measured_turn_rate", "turn_rate")
    graph.add_edge("body", "ranges", "pose_world", "pose_world", delay=True)
    graph.add_edge("ranges", "brain", "reading", "readings")
    return graph


@dataclasses.dataclass(frozen=True)
class _WheelWithMotor:
    """J_wheel + N² J, the mean of both sides. No closure: equal mice share their programs."""

    wheel_inertia_kg_m2: float

    def __call__(self, left: MotorNode, right: MotorNode) -> Any:
        reflected = 0.5 * (left.reflected_inertia() + right.reflected_inertia())
        return self.wheel_inertia_kg_m2 + reflected


def starting_state(maze: Maze) -> dict[str, dict[str, Any]]:
    """The mouse in the centre of its start cell, facing its open side."""
    x, y = instance("maze", maze, Maze).cell_centre_m(maze.start)
    return {"body": {"x": x, "y": y, "heading": maze.start_heading * 0.5 * np.pi}}
