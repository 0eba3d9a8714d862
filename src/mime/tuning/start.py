"""What there is before the first step: y = g(x₀, u₀).

Samples of a run begin after its first step. A command is largest before it, since nothing has moved
yet; a limit that looked at samples alone would not see it.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from mime.core.node import traced_fluxes
from mime.core.program import Program
from mime.core.step import SimulationState, gather
from mime.core.wiring import CouplingGroup


def at_start(
    program: Program, state: SimulationState, external: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """State, inputs and fluxes of every node before the first step, a sample each (1, ...)."""
    fluxes: dict[str, dict[str, Any]] = {}
    found: dict[str, dict[str, Any]] = {}
    for stage in program.wiring.schedule:
        for name in stage.members if isinstance(stage, CouplingGroup) else (stage,):
            node = program.nodes[name]
            inputs = gather(program.wiring, node, fluxes, state.held, external)
            fluxes[name] = traced_fluxes(node, state.nodes[name], inputs, node.timestep)
            found[name] = {**inputs, **state.nodes[name], **fluxes[name]}
    return jax.tree.map(lambda x: jnp.asarray(x)[None], found)
