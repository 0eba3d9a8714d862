"""A mouse in a maze that it does not know: search, return and speed run, from volts to walls.

    encoders, gyro, ranges -> brain -> volts -> motors -> wheels -> body -> walls -> ranges ...

One graph, one compiled program. Prints the figures and writes four pictures and the trajectory.
"""

import argparse
import dataclasses
from pathlib import Path

import jax
import matplotlib

matplotlib.use("Agg")
import numpy as np

from mime import Trajectory
from mime.maze import (
    UNREACHABLE,
    Maze,
    fastest_route,
    flood_fill,
    maze_text,
    pessimistic_walls,
    random_maze,
    read_maze,
)
from mime.mouse import RACE, build_mouse, figures, starting_state
from mime.mouse.navigator import DONE
from mime.xla.cache import enable_compilation_cache

EVERY = 2
"""Steps from sample to sample, 2 ms: the brain's tick, and less than the shortest touch takes."""
PIECE_S, LONGEST_S = 10.0, 600.0
NOISE = {
    "range_noise_m": 3e-3,
    "gyro_noise_rad_per_s": 0.01,
    "gyro_bias_rad_per_s": 0.02,
    "wheel_radius_ratio": (1.02, 0.98),
}


def run_until_done(maze: Maze, **mouse) -> Trajectory:
    """In pieces, each from the final state of the one before, until the mouse rests."""
    simulation = build_mouse(maze, **mouse).compile()
    state, pieces = starting_state(maze), []
    while len(pieces) * PIECE_S < LONGEST_S:
        piece = simulation.run(PIECE_S, initial_state=state, record=figures.RECORD, every=EVERY)
        state = piece.final_state
        pieces.append(piece)
        if piece["brain"]["phase"][-1] >= DONE:
            break
    fields = {
        node: {name: np.concatenate([p[node][name] for p in pieces]) for name in names}
        for node, names in figures.RECORD.items()
    }
    time = np.concatenate([p.time for p in pieces])
    return dataclasses.replace(pieces[-1], time=time, fields=fields)


def seen_part(run: Trajectory, maze: Maze) -> Maze:
    """The maze as the mouse has seen it: what it has not seen is closed, goals are within reach."""
    horizontal, vertical = map(np.asarray, pessimistic_walls(figures.final_belief(run)))
    from_start = np.zeros((maze.rows, maze.cols), bool)
    from_start[maze.start] = True
    distances = np.asarray(flood_fill(horizontal, vertical, from_start))
    goals = [goal for goal in maze.goals if distances[goal] != UNREACHABLE]
    dimensions = maze.cell_size_m, maze.wall_thickness_m
    return Maze(horizontal, vertical, maze.start, maze.start_heading, goals, *dimensions)


def report(run: Trajectory, maze: Maze) -> str:
    body, brain = run["body"], run["brain"]
    # The brain's inputs are of the sample before: what it believes belongs to that moment.
    off = brain["estimated_pose"][1:, :2] - body["pose_world"][:-1, :2]
    touches = np.diff(body["touching"], prepend=0.0) > 0
    phase = figures.PHASE_NAMES[int(brain["phase"][-1])]
    lines = [f"the mouse is       {phase} after {run.time[-1]:.0f} s"]
    if brain["time_to_goal"][-1]:
        lines.append(f"goal found after   {brain['time_to_goal'][-1]:.2f} s")
    if brain["time_home"][-1]:
        lines.append(f"home again after   {brain['time_home'][-1]:.2f} s")
    if brain["race_time"][-1]:
        ideal = fastest_route(maze, RACE).time_s
        ideal_seen = fastest_route(seen_part(run, maze), RACE).time_s
        lines.append(f"speed run          {brain['race_time'][-1]:.2f} s")
        lines.append(f"  ideal            {ideal:.2f} s, knowing the whole maze")
        lines.append(f"  ideal            {ideal_seen:.2f} s, knowing what the mouse has seen")
    lines.append(f"estimation error   {1e3 * np.hypot(*off.T).max():.1f} mm at most")
    depth = f", {1e3 * body['penetration'].max():.2f} mm deep at most" if touches.any() else ""
    lines.append(f"walls touched      {touches.sum()} times{depth}")
    return "\n".join(lines)


def save_pictures(run: Trajectory, maze: Maze, folder: Path) -> list[Path]:
    drawn = {
        "mouse_path": figures.draw_path(run, maze)[0].figure,
        "mouse_wheels": figures.draw_wheels(run)[0, 0].figure,
        "mouse_readings": figures.draw_readings(run)[0, 0].figure,
        "mouse_belief": figures.draw_belief(run, maze).figure,
    }
    paths = [folder / f"{name}.png" for name in drawn]
    for figure, path in zip(drawn.values(), paths, strict=True):
        figure.savefig(path, dpi=120)
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of the random maze, and of the noise")
    parser.add_argument("--maze", type=Path, help="a maze file instead: .mz, .txt, .maz or .num")
    parser.add_argument(
        "--noise", action="store_true", help="sensors and wheels as bad as real ones"
    )
    parser.add_argument("--out", type=Path, default=Path("demo_output"))
    options = parser.parse_args()
    try:
        maze = read_maze(options.maze) if options.maze else random_maze(options.seed)
    except OSError as error:
        parser.error(f"{options.maze}: {error.strerror}")
    except ValueError as error:  # a MazeError says which line and cell
        parser.error(str(error))
    jax.config.update("jax_enable_x64", True)
    enable_compilation_cache()

    print(maze_text(maze))
    run = run_until_done(maze, seed=options.seed, **(NOISE if options.noise else {}))
    print(report(run, maze))
    options.out.mkdir(parents=True, exist_ok=True)
    run.save(options.out / "mouse.nc")
    written = [options.out / "mouse.nc", *save_pictures(run, maze, options.out)]
    print(f"wrote {', '.join(map(str, written))}")


if __name__ == "__main__":
    main()
