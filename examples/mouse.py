"""A mouse in a maze that it does not know: search, return and speed run, from volts to walls.

encoders, gyro, ranges -> brain -> volts -> motors -> wheels -> body -> walls -> ranges ...
"""

import jax
import numpy as np

from mime import build_mouse, random_maze, starting_state
from mime.maze import fastest_route, maze_text
from mime.mouse import RACE, figures

jax.config.update("jax_enable_x64", True)
maze = random_maze(0)  # or read_maze("my_maze.txt")
print(maze_text(maze))

# Sensors and wheels as bad as real ones; the brain calculates with perfect wheels.
mouse = build_mouse(
    maze,
    seed=0,
    range_noise_m=3e-3,
    gyro_noise_rad_per_s=0.01,
    gyro_bias_rad_per_s=0.02,
    wheel_radius_ratio=(1.02, 0.98),
)
start = starting_state(maze)
run = mouse.compile().run(60.0, initial_state=start, record=figures.RECORD, every=2)

body, brain = run["body"], run["brain"]
# The brain's inputs are of the sample before: what it believes belongs to that moment.
off = brain["estimated_pose"][1:, :2] - body["pose_world"][:-1, :2]
touches = np.diff(body["touching"], prepend=0.0) > 0
print(f"goal found after   {brain['time_to_goal'][-1]:.2f} s")
print(f"home again after   {brain['time_home'][-1]:.2f} s")
print(f"speed run          {brain['race_time'][-1]:.2f} s")
print(f"  ideal            {fastest_route(maze, RACE).time_s:.2f} s, knowing the whole maze")
print(f"estimation error   {1e3 * np.hypot(*off.T).max():.1f} mm at most")
print(f"walls touched      {touches.sum()} times")

run.save("mouse.nc")
figures.draw_path(run, maze)[0].figure.savefig("mouse_path.png", dpi=120)
figures.draw_wheels(run)[0, 0].figure.savefig("mouse_wheels.png", dpi=120)
figures.draw_readings(run)[0, 0].figure.savefig("mouse_readings.png", dpi=120)
figures.draw_belief(run, maze).figure.savefig("mouse_belief.png", dpi=120)
