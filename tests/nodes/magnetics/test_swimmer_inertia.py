"""A swimmer with inertia: time constants in closed form, and the quasi-static one as its limit."""

import numpy as np
import pytest
import scipy

from mime import GraphManager, HelicalSwimmerNode, ParameterError, SwimmerInertia

ROD = {
    "pitch_m": 1e-2, "helix_radius_m": 1e-9, "turns": 1.0, "filament_radius_m": 1e-4,
    "viscosity_pa_s": 1e-3, "linear_drag_n_m_s": 1e-9,
}  # fmt: skip
MASS, J, DT = 1e-4, 1e-11, 1e-4


def simulation(**changes):
    graph = GraphManager()
    graph.add_node(HelicalSwimmerNode("rod", DT, **(ROD | changes)))
    graph.add_external_input("rod", "wrench_world")
    graph.add_external_input("rod", "flow_velocity_world")
    return graph.compile()


@pytest.fixture(scope="module")
def heavy():
    return simulation(inertia=SwimmerInertia(mass_kg=MASS, inertia_kg_m2=(1e-9, 2e-9, J)))


def test_it_speeds_up_and_its_spin_decays_with_mass_over_drag(heavy):
    R = np.array(HelicalSwimmerNode("rod", DT, **ROD).resistance())
    pull = np.array([0.0, 0.0, 1e-8, 0.0, 0.0, 0.0])
    start = {"rod": {"twist_world": np.array([0.0, 0.0, 0.0, 0.0, 0.0, 100.0])}}
    run = heavy.run(steps=1000, inputs={"rod": {"wrench_world": pull}}, initial_state=start)["rod"]
    n = np.arange(1, 1001)
    # The step is implicit: it has (1 + dt/tau)^-n in place of exp(-n dt/tau), exactly.
    tau = MASS / R[2, 2]
    speed = 1e-8 / R[2, 2] * (1 - (1 + DT / tau) ** -n)
    assert run["twist_world"][:, 2] == pytest.approx(speed, rel=1e-10)
    spin_tau = J / (R[5, 5] + 1e-9)
    spin = 100 * (1 + DT / spin_tau) ** -n
    assert run["twist_world"][:, 5] == pytest.approx(spin, rel=1e-10, abs=1e-12)
    assert speed[-1] == pytest.approx(1e-8 / R[2, 2] * (1 - np.exp(-0.1 / tau)), rel=2e-3)


def test_a_flow_carries_it_along(heavy):
    still = simulation()
    flow = {"rod": {"flow_velocity_world": np.array([1e-3, 0.0, 2e-3])}}
    assert still.run(steps=1, inputs=flow)["rod"]["twist_world"][-1, :3] == pytest.approx(
        [1e-3, 0.0, 2e-3], rel=1e-12
    )
    R = np.array(HelicalSwimmerNode("rod", DT, **ROD).resistance())
    after = heavy.run(steps=1, inputs=flow)["rod"]["twist_world"][-1]
    assert after[2] == pytest.approx(2e-3 / (1 + MASS / (DT * R[2, 2])), rel=1e-10)


def test_a_swimmer_of_little_mass_is_quasi_static():
    wrench = np.array([2e-8, -1e-8, 3e-8, 1e-11, 2e-11, 5e-10])
    given = {"rod": {"wrench_world": wrench}}
    light = {"mass_kg": 1e-12, "inertia_kg_m2": (1e-18, 1e-18, 1e-19)}
    helix = {"helix_radius_m": 1e-3, "head_radius_m": 1.5e-3}
    ways = [
        simulation(**helix, **extra).run(steps=200, inputs=given)["rod"]["pose_world"][-1]
        for extra in ({}, {"inertia": SwimmerInertia(**light)})
    ]
    # m / drag is 1e-8 s; a way of 0.02 s differs by some of that in 0.02.
    assert ways[1][:3] == pytest.approx(ways[0][:3], rel=1e-5, abs=1e-10)
    assert ways[1][3:] == pytest.approx(ways[0][3:], abs=1e-5)


def test_without_drag_its_angular_momentum_stays(heavy):
    vacuum = {"rod.viscosity_pa_s": 1e-15, "rod.linear_drag_n_m_s": 0.0}
    rates = np.array([3.0, 4.0, 5.0])
    start = {"rod": {"twist_world": np.concatenate([np.zeros(3), rates])}}
    inertia = np.array([1e-9, 2e-9, 3e-9])
    run = heavy.run_batch(
        steps=1000, parameters=vacuum | {"rod.inertia.inertia_kg_m2": inertia[None]},
        initial_state=start,
    )["rod"]  # fmt: skip
    pose, twist = run["pose_world"][0, -1], run["twist_world"][0, -1]
    turn = scipy.spatial.transform.Rotation.from_quat(pose[3:], scalar_first=True)
    momentum = turn.apply(inertia * turn.inv().apply(twist[3:]))
    change = np.abs(momentum - inertia * rates).max() / np.linalg.norm(inertia * rates)
    # It turned by half a radian and more; of first order in steps of 1e-4 s.
    assert change < 2e-3


def test_no_mass_is_refused():
    with pytest.raises(ParameterError, match="mass_kg"):
        SwimmerInertia(mass_kg=0.0, inertia_kg_m2=(1.0, 1.0, 1.0))
