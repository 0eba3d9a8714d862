"""The whole chain: arm, motor, magnet, microrobot.

4,096 of the bundled scenario `helical_drive` by `simulation.run_batch`, each in a fluid of its own
viscosity: path, computed torque, an arm of six joints with its payload, a motor with its gyroscopic
moment, the exact field of a cylinder with its gradient, the wrench on the swimmer and its reaction,
and the swimmer in its tube, whose velocities are found by Newton's method. No peer was found that
has more than one of these links, so the chain stands beside its own arm with path and controller.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from harness import Case, Peer, relative_difference

from mime import GraphManager, load_scenario

COUNT, STEPS = 4096, 50
VOLTS = 2.6
TOLERANCE = 1e-9
"""Of where the swimmers are, in the batch and in runs of single members: order of operations."""
ARM = ("path", "controller", "arm")
WIRES = (
    *(
        ("path", "controller", f"desired_joint_{name}", f"desired_joint_{name}", False)
        for name in ("angles", "velocities", "accelerations")
    ),
    ("arm", "controller", "joint_angles", "joint_angles", True),
    ("arm", "controller", "joint_velocities", "joint_velocities", True),
    ("controller", "arm", "joint_torques", "commanded_joint_torques", False),
)


def cases(threads: int) -> Iterator[Case]:
    """Batches of whole chains, with the exact field and with a dipole's."""
    for words, changes in (("", []), (", the magnet a dipole", ["magnet.model=dipole"])):
        chain = Chain(changes)
        peer = Peer(
            "its arm, path and controller alone",
            lambda chain=chain: chain.arms(threads),
            TOLERANCE,
            agree=lambda ours, _, chain=chain: chain.against_single_runs(ours),
        )
        yield Case(
            f"{COUNT:,} whole chains{words}",
            lambda chain=chain: chain.batch(threads),
            (peer,),
            COUNT * STEPS,
            "chain-step",
            repeats=5,
            quick=not changes,
        )


class Chain:
    """The scenario, its fluids and its start."""

    def __init__(self, changes: list[str]):
        self.scenario = load_scenario("helical_drive", changes)
        self.viscosities = np.linspace(0.05, 0.2, COUNT)

    @property
    def options(self) -> dict[str, Any]:
        """What all runs share; the inputs are constants, as they are in a sweep."""
        points = np.ones((9, 3))
        inputs = {"rotor": {"commanded_voltage": VOLTS}, "around": {"points_world": points}}
        common = {"steps": STEPS, "record": (), "progress": False}
        return common | {"inputs": inputs, "initial_state": self.scenario.initial_state}

    def batch(self, threads: int) -> Any:
        """All members at once; where their swimmers are."""
        parameters = {"swimmer.viscosity_pa_s": self.viscosities}
        options = self.options | {"parameters": parameters, "threads": threads}
        run = self.scenario.simulation.run_batch
        return lambda: run(**options).final_state.of("swimmer")["pose_world"]

    def arms(self, threads: int) -> Any:
        """The arms alone, as often."""
        graph = GraphManager()
        for name in ARM:
            graph.add_node(self.scenario.simulation.nodes[name])
        for source, target, field, wanted, delay in WIRES:
            graph.add_edge(source, target, field, wanted, delay=delay)
        starts = np.tile(self.scenario.initial_state["arm"]["joint_angles"], (COUNT, 1))
        options = {
            "steps": STEPS, "record": (), "progress": False, "threads": threads,
            "initial_state": {"arm": {"joint_angles": starts}},
        }  # fmt: skip
        run = graph.compile().run_batch
        return lambda: run(**options).final_state.of("arm")["joint_angles"]

    def against_single_runs(self, ours: Any) -> float:
        """The first and the last member again, by `run`: another program for the same numbers."""
        worst = 0.0
        for member in (0, COUNT - 1):
            own = {"swimmer.viscosity_pa_s": self.viscosities[member]}
            chain = self.scenario.simulation.with_parameters(own)
            end = chain.run(**self.options).final_state.of("swimmer")["pose_world"]
            worst = max(worst, relative_difference(ours[member], end))
        return worst
