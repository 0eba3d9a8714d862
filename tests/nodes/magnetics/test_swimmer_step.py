"""A timestep too long for the fluid is told: the body would leap about the field."""

import numpy as np
import pytest

from mime import GraphManager, HelicalSwimmerNode, LimitWarning


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("torque", "is_told"), [(1e-8, False), (1e-4, True)])
def test_a_leap_about_its_axis_is_told(torque, is_told, recwarn):
    graph = GraphManager()
    size = {"pitch_m": 3e-3, "helix_radius_m": 8e-4, "turns": 3.0, "filament_radius_m": 2e-4}
    graph.add_node(HelicalSwimmerNode("swimmer", 1e-3, **size, viscosity_pa_s=1e-3))
    graph.add_external_input("swimmer", "wrench_world")
    simulation = graph.compile()
    wrench = np.array([0, 0, 0, 0, 0, torque])
    spin = simulation.run(steps=2, inputs={"swimmer": {"wrench_world": wrench}}, progress=False)
    rate = float(spin["swimmer"]["spin_rate"][-1])
    assert (1e-3 * rate > 0.5) == is_told
    told = [str(w.message) for w in recwarn if issubclass(w.category, LimitWarning)]
    assert len(told) == is_told
    assert all("shorten the step" in words for words in told)
