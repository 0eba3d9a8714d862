"""Whole runs: native code beside XLA, and the same bits however the members are cut and ordered.

`docs/native_accuracy.md` has the bundled scenarios at full length, arms among them.
"""

import runpy
from pathlib import Path

import numpy as np
import pytest

from compiling import QUICK
from mime.scenarios.bundled import bundled_scenarios
from mime.scenarios.node_types import own_types
from mime.scenarios.scenario import load_scenario

table = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "native_table.py"))
SHORT = {
    "geared_motor_voltage": "simulation.duration=0.06",  # the first pulse comes at 0.05 s
    "elastic_joint_resonance": "simulation.duration=0.05",
}


@pytest.mark.small("geared_motor_voltage")
@pytest.mark.parametrize("name", SHORT)
def test_a_scenario_differs_from_xla_by_rounding_alone(name):
    _, computed, steps, field, far = table["scenario_row"](bundled_scenarios()[name], SHORT[name])
    assert computed == "native"
    assert steps > 50
    # A rounding or two per step, which these systems damp: far less than one per step in sum.
    assert far < 300, field


@pytest.mark.parametrize("cls", [c for c in own_types().values() if c.__name__ != "MouseBrainNode"])
def test_a_step_of_a_node_differs_from_xla_by_rounding_alone(cls):
    name, computed, field, far = table["node_row"](cls, QUICK)
    if name == "RangeSensorNode":
        assert computed == "XLA: there is no rule for random_bits, random_wrap"
    else:
        assert computed == "native"
        assert far < 20, field  # an arm of six joints is a few hundred operations


SPREAD = {"arm_3link_pd": ("arm", "joint_angles", 3), "motor_step": ("motor", "angle", ())}


@pytest.fixture(scope="module", params=SPREAD)
def members(request):
    """Nine members of a scenario, and a run of them: (simulation, node, starts, call, all nine)."""
    scenario = load_scenario(request.param)
    node, field, shape = SPREAD[request.param]
    starts = 0.1 * np.random.default_rng(1).normal(size=(9, *np.atleast_1d(shape).astype(int)))
    inputs = {
        n: {k: v for k, v in part.items() if not callable(v)} for n, part in scenario.inputs.items()
    }

    def run(which, **options):
        batch = scenario.simulation.run_batch(
            steps=60, initial_state={node: {field: starts[which]}}, inputs=inputs,
            **{"progress": False, **options},
        )  # fmt: skip
        return {f"{n}.{f}": x for n, part in batch.items() for f, x in part.items()}

    return scenario, node, field, starts, inputs, run, run(np.arange(9))


@pytest.mark.small("arm_3link_pd")
def test_any_batch_size_and_order_gives_a_member_the_same_bits(members):
    *_, run, nine = members
    for which in [
        *(np.arange(n) for n in range(1, 9)),
        np.arange(9)[::-1],
        np.array([7, 2, 2, 5, 0]),
    ]:
        found = run(which)
        assert all(x.tobytes() == nine[name][which].tobytes() for name, x in found.items())


@pytest.mark.small("arm_3link_pd")
def test_any_number_of_threads_and_any_chunks_give_the_same_bits(members):
    *_, run, nine = members
    for options in ({"threads": 1}, {"threads": 3}, {"progress": lambda *_: None}, {"every": 1}):
        found = run(np.arange(9), **options)
        assert all(x.tobytes() == nine[name].tobytes() for name, x in found.items())


@pytest.mark.small("arm_3link_pd")
def test_a_run_alone_has_the_bits_of_the_member_of_a_batch(members):
    scenario, node, field, starts, inputs, _, nine = members
    alone = scenario.simulation.run(
        steps=60, initial_state={node: {field: starts[4]}}, inputs=inputs, progress=False
    )
    for n, part in alone.items():
        for f, x in part.items():
            assert x.tobytes() == nine[f"{n}.{f}"][4].tobytes(), (n, f)


@pytest.mark.small("arm_3link_pd")
def test_a_run_that_goes_on_has_the_bits_of_one_that_was_not_stopped(members):
    scenario, node, field, starts, inputs, _, nine = members
    parts, state = [], {node: {field: starts[4]}}
    for steps in (7, 1, 52):
        parts.append(
            scenario.simulation.run(steps=steps, initial_state=state, inputs=inputs, progress=False)
        )
        state = parts[-1].final_state
    for n, part in parts[0].items():
        for f in part:
            joined = np.concatenate([p[n][f] for p in parts])
            assert joined.tobytes() == nine[f"{n}.{f}"][4].tobytes(), (n, f)
