"""How large a step is, and how XLA should compile it: measured facts, in one place.

XLA's CPU compiler fuses operations into loops with one output each and computes what they share
anew in every one. For small programs that is right; for long ones in wide batches it is what takes
the time.
"""

from typing import Any

import jax

from mime.core.folding import split
from mime.core.simulation import Simulation
from mime.core.step import SimulationState, advance

_WIDE_BATCH, _LONG_STEP = 256, 150
"""From so many members and operations on, a batch runs faster with no fusion at all."""

_sizes: dict[Any, int] = {}


def compiler_options(simulation: Simulation, state: SimulationState, members: int) -> str:
    """The name of the options for a run of so many members side by side: a key of `OPTIONS`."""
    wide = members >= _WIDE_BATCH and step_size(simulation, state) >= _LONG_STEP
    return "unfused" if wide else "default"


OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    # As a whole (see whole_loops.py), a loop of a thousand unfused operations compiles for minutes.
    "unfused": {"xla_disable_hlo_passes": "fusion,small-while-loop-hoisting"},
}


def step_size(simulation: Simulation, state: SimulationState) -> int:
    """Operations that a step needs to advance the state; counted once a structure.

    A step with loops of its own counts as none: fusion is right for what stands between them.
    """
    key = split(simulation)[0]
    if key not in _sizes:
        jaxpr = jax.make_jaxpr(lambda s: advance(simulation.nodes, simulation.wiring, s, {})[0])(
            state
        ).jaxpr
        _sizes[key] = _needed(jaxpr)
    return _sizes[key]


def _needed(jaxpr: Any) -> int:
    """Equations that the outputs depend on: what is left after dead code is gone."""
    wanted = {id(variable) for variable in jaxpr.outvars}
    count = 0
    for equation in reversed(jaxpr.eqns):
        if any(id(variable) in wanted for variable in equation.outvars):
            if equation.primitive.name == "scan":
                return 0
            count += 1
            wanted |= {id(variable) for variable in equation.invars}
    return count
