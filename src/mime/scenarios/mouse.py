"""`type = "mouse"`: the whole mouse in a maze, from the volts at its motors to the walls."""

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from mime._text import nearest
from mime.core.problem import InputError
from mime.maze.formats import parse_text, read_maze
from mime.maze.generator import random_maze
from mime.maze.grid import MazeError
from mime.maze.maze import Maze
from mime.maze.routes import SpeedProfile
from mime.mouse import figures
from mime.mouse.assembly import EXPLORE, RACE, TICK_S, build_mouse, starting_state
from mime.nodes.actuation.motor.catalogue import CATALOGUE
from mime.running.trajectory import Trajectory
from mime.scenarios.assemblies import Assembled, Assembly, Drawing, Surroundings
from mime.scenarios.source import in_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Size = Annotated[int, Field(ge=3, le=32)]
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]


class RandomMaze(BaseModel):
    """A maze by contest rules, the same for the same seed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    seed: Seed = Field(description="the maze's number")
    rows: Size = Field(16, description="3 to 32")
    cols: Size = Field(16, description="3 to 32")
    loops: Share = Field(0.08, description="share of the walls that fall, for ways around")
    winding: Share = Field(0.85, description="1: long corridors, 0: short dead ends")


class Speeds(BaseModel):
    """Speeds of the mouse; what is not given is its own."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    turn_speed_m_per_s: Positive | None = Field(default=None, description="along a curve")
    top_speed_m_per_s: Positive | None = Field(default=None, description="on straights")
    acceleration_m_per_s2: Positive | None = Field(default=None, description="on straights")
    jerk_m_per_s3: Positive | None = Field(default=None, description="on straights")
    pivot_time_s: Positive | None = Field(default=None, description="of a quarter turn on the spot")

    def over(self, usual: SpeedProfile) -> SpeedProfile:
        """The usual profile with these numbers instead."""
        values = {name: getattr(usual, name) for name in type(self).model_fields}
        return SpeedProfile(**{**values, **self.model_dump(exclude_none=True)})


def _words(usual: SpeedProfile) -> str:
    return ", ".join(f"{float(getattr(usual, name)):g}" for name in Speeds.model_fields)


def _kind(value: Any) -> str:
    return "table" if isinstance(value, dict | RandomMaze) else "words"


MazeWords = Annotated[
    Annotated[str, Tag("words")] | Annotated[RandomMaze, Tag("table")], Discriminator(_kind)
]


class MouseAssembly(Assembly):
    """A maze-running mouse: it explores a maze that it does not know, returns, and races.

    Nodes `brain`, `left_motor`, `right_motor`, `body`, `left_encoder`, `right_encoder`, `gyro` and
    `ranges`; drawings `path`, `wheels`, `readings` and `belief`.
    """

    maze: MazeWords = Field(
        description="a file, a drawing of several lines, or { seed, rows, cols, loops, winding }"
    )
    cell_size_m: Positive = Field(0.18, description="from post to post")
    wall_thickness_m: Positive = Field(0.012, description="of walls and posts")
    seed: Seed | None = Field(None, description="of the sensors' noise")
    range_noise_m: NotNegative | None = Field(None, description="of the range sensors")
    gyro_noise_rad_per_s: NotNegative | None = Field(None, description="of the gyro")
    gyro_bias_rad_per_s: float | None = Field(None, description="of the gyro, constant")
    wheel_radius_ratio: Annotated[list[Positive], Field(min_length=2, max_length=2)] = Field(
        [1.0, 1.0], description="left and right, over the radius that the brain believes in"
    )
    tick_s: Annotated[float, Field(ge=1e-5, le=1.0)] = Field(
        TICK_S, description="of sensors and brain"
    )
    motor: str = Field("faulhaber_1331t006sr", description="of the catalogue, both wheels")
    gear_ratio: Positive = Field(5.0, description="from motor to wheel")
    supply_v: Positive = Field(7.4, description="most that the brain gives to a motor")
    mass_kg: Positive = Field(0.1, description="of the whole mouse")
    yaw_inertia_kg_m2: Positive = Field(1e-4, description="about its vertical axis")
    wheel_radius_m: Positive = Field(0.0145, description="as the brain believes it")
    track_width_m: Positive = Field(0.053, description="from wheel to wheel")
    friction_coefficient: Positive = Field(1.0, description="of the tyres")
    rolling_resistance: NotNegative = Field(0.02, description="force over weight")
    explore: Speeds = Field(Speeds(), description=f"on search and return: {_words(EXPLORE)}")
    race: Speeds = Field(Speeds(), description=f"on the speed run: {_words(RACE)}")

    def build(self, surroundings: Surroundings) -> Assembled:
        """The graph of `build_mouse`, the mouse at rest in its start cell."""
        if self.motor not in CATALOGUE:
            near = nearest(self.motor, CATALOGUE)
            words = f"no motor {self.motor!r}{near} (see `mime list motors`)"
            raise InputError(words, place=("motor",))
        maze = self._maze(surroundings)
        own = {"type", "maze", "cell_size_m", "wall_thickness_m", "seed"}
        graph = build_mouse(
            maze,
            **self.model_dump(exclude={*own, "explore", "race"}),
            timestep=surroundings.timestep,
            seed=surroundings.seed if self.seed is None else self.seed,
            explore=_keyed("explore", lambda: self.explore.over(EXPLORE)),
            race=_keyed("race", lambda: self.race.over(RACE)),
        )
        return Assembled(graph, starting_state(maze), _drawings(maze))

    def _maze(self, surroundings: Surroundings) -> Maze:
        maze = _keyed("maze", lambda: self._read(surroundings))
        sizes = self.cell_size_m, self.wall_thickness_m
        fields = maze.start, maze.start_heading, maze.goals
        try:
            return Maze(maze.horizontal, maze.vertical, *fields, *sizes, maze.name)
        except MazeError as error:
            raise InputError(in_words(error), place=("cell_size_m",)) from error

    def _read(self, surroundings: Surroundings) -> Maze:
        if isinstance(self.maze, RandomMaze):
            return random_maze(**self.maze.model_dump())
        if "\n" in self.maze:
            drawing = textwrap.dedent(self.maze).strip("\n")
            return parse_text(drawing, source="the drawing")
        return read_maze(surroundings.file("maze", self.maze))


def _keyed(key: str, make: Callable[[], Any]) -> Any:
    """What `make` returns; its refusal is blamed on a key."""
    try:
        return make()
    except InputError:
        raise
    except (ValueError, OSError) as error:
        raise InputError(in_words(error), place=(key,)) from error


def _drawings(maze: Maze) -> dict[str, Drawing]:
    fields = tuple(f"{node}.{name}" for node, names in figures.RECORD.items() for name in names)
    drawn: dict[str, Callable[[Trajectory], Any]] = {
        "path": lambda run: figures.draw_path(run, maze)[0],
        "wheels": lambda run: figures.draw_wheels(run)[0, 0],
        "readings": lambda run: figures.draw_readings(run)[0, 0],
        "belief": lambda run: figures.draw_belief(run, maze),
    }
    return {name: Drawing(fields, _closed(draw)) for name, draw in drawn.items()}


def _closed(draw: Callable[[Trajectory], Any]) -> Callable[[Trajectory], "Figure"]:
    def figure(run: Trajectory) -> "Figure":
        import matplotlib.pyplot as plt

        drawn: Figure = draw(run).figure
        plt.close(drawn)  # it is saved, not shown; pyplot would keep it for good
        return drawn

    return figure
