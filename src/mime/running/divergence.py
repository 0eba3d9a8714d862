"""Where a run stopped being finite."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mime.core.program import Program, stepper
from mime.core.recorder import field_specs
from mime.core.signals import Signals
from mime.core.step import SimulationState
from mime.xla.folding import jit_folding


def locate(
    program: Program, state: SimulationState, signals: Signals, start: Array, steps: int
) -> tuple[SimulationState, tuple[str, str]]:
    """Walk `steps` steps again: the last finite state, and the first (node, field) that is not."""
    before, flags = _walk(program, state, signals, start, np.int32(steps))
    bad = [
        (node, field)
        for node in program.wiring.order
        for field in field_specs(program.nodes[node])
        if not flags[node].get(field, True)
    ]
    return before, bad[0] if bad else ("?", "?")


def is_finite(state: SimulationState) -> Array:
    """True when no field of any node's state is NaN or infinite; traced."""
    leaves = jax.tree.leaves((state.nodes, state.held))
    floating = [x for x in leaves if jnp.issubdtype(x.dtype, jnp.floating)]
    return jnp.all(jnp.array([jnp.isfinite(x).all() for x in floating]))


def all_finite(values: np.ndarray) -> bool:
    """True when an array holds no NaN or infinity; integers never do."""
    return values.dtype.kind != "f" or bool(np.isfinite(values).all())


@jit_folding
def _walk(
    program: Program, state: SimulationState, signals: Signals, start: Array, steps: Array
) -> tuple[SimulationState, dict[str, dict[str, Array]]]:
    """The last finite state, and which state fields and fluxes are finite one step later."""
    one = stepper(program, signals, start)

    def flags(state: SimulationState) -> tuple[SimulationState, dict[str, dict[str, Array]]]:
        after, fluxes, _ = one(state)
        found = {
            name: {
                field: jnp.isfinite(x).all()
                for field, x in {**after.nodes[name], **fluxes[name]}.items()
            }
            for name in program.nodes
        }
        return after, found

    last = state.step + steps

    def go_on(carry: tuple[SimulationState, SimulationState, Any]) -> Array:
        return jnp.all(jnp.stack(jax.tree.leaves(carry[2]))) & (carry[1].step < last)

    def body(
        carry: tuple[SimulationState, SimulationState, Any],
    ) -> tuple[SimulationState, SimulationState, Any]:
        _, after, _ = carry
        return after, *flags(after)

    before, _, found = jax.lax.while_loop(go_on, body, (state, *flags(state)))
    return before, found
