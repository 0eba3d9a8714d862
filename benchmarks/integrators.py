"""Integrators of an arm.

The bundled arm of three links, rigid and with elastic joints, swings without friction for 5 s at
1 ms, by `simulation.run`: a step of each integrator beside one of semi-implicit Euler, the default.
The angles at the end are compared with Euler's, whose error is of first order.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from harness import Case, Peer

STEPS = 5000
START = {"arm": {"joint_angles": [-np.pi / 2 + 0.5, 0.2, 0.0]}}
TOLERANCE = 0.05
"""Of the angles after 5 s: Euler's error of first order."""
SPRINGS = {
    "joint_stiffness_n_m_per_rad": [400.0, 300.0, 200.0],
    "rotor_inertia_kg_m2": [1e-4] * 3,
    "gear_ratio": [50.0] * 3,
}


def cases(threads: int) -> Iterator[Case]:
    """Every integrator of higher order, on both arms."""
    for kind, options in (("rigid", {}), ("elastic", SPRINGS)):
        for name in ("midpoint", "gauss4", "rk4"):
            euler = Peer("semi-implicit Euler", lambda o=options: swing("implicit", **o), TOLERANCE)
            ours = lambda n=name, o=options: swing(n, **o)  # noqa: E731
            quick = name == "gauss4" and not options
            yield Case(f"{name}, {kind} arm, a step", ours, (euler,), STEPS, "step", quick=quick)


def swing(integrator: str, **options: Any) -> Any:
    """The work: the angles after all steps."""
    from mime import GraphManager, RobotArmNode, model_path

    free = np.tile([-np.inf, np.inf], (3, 1))
    model, tip = model_path("planar_arm_3link"), "link_3"
    options = {"joint_limit_override": free, "integrator": integrator, **options}
    graph = GraphManager()
    graph.add_node(RobotArmNode("arm", 1e-3, model, tip, **options))
    simulation = graph.compile()
    run = {"steps": STEPS, "initial_state": START, "record": (), "progress": False}
    return lambda: simulation.run(**run).final_state.of("arm")["joint_angles"]
