"""The mouse's brain is a node like any other: a scenario file can hold one."""

import numpy as np

from mime.maze.belief import OPEN, WALL
from mime.mouse import MouseBrainNode
from mime.mouse.estimator import Trust
from mime.mouse.tracking import Gains
from mime.scenarios import load_scenario

SCENARIO = """
[simulation]
duration = 0.02
timestep = 2e-3
[nodes.brain]
type = "MouseBrainNode"
goals = [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
start = [2, 0, 3]
explore = { turn_speed_m_per_s = 0.4 }
trust = { reading_m = 0.005 }
[nodes.brain.gains]
back_emf_v_s_per_rad = 0.03
driving_v_s2_per_rad = 1e-3
turning_v_s2_per_rad = 1e-3
"""


def test_a_scenario_can_hold_a_brain(tmp_path):
    file = tmp_path / "brain.toml"
    file.write_text(SCENARIO)
    scenario = load_scenario(file)
    brain = scenario.simulation.nodes["brain"]
    assert isinstance(brain, MouseBrainNode)
    assert brain.gains == Gains(0.03, 1e-3, 1e-3)
    assert brain.trust == Trust(reading_m=0.005)
    assert (brain.explore.turn_speed_m_per_s, brain.race.turn_speed_m_per_s) == (0.4, 0.5)
    state = brain.initial_state()
    np.testing.assert_array_equal(state["cell"], [1, 0])
    assert float(brain.compute_boundary_fluxes(state, {}, 2e-3)["left_voltage"]) == 0.0
    assert (state["horizontal"][2, 0], state["vertical"][2, 1]) == (OPEN, WALL)  # of the start
