"""Loops of a graph, and one step of it as a matrix: holds, delays and rates are all in it.

x(k+1) = A(g) x(k)      one step (or one period of all rates), linear about a working point;
                        g scales the gains of one loop, all others stay closed
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from mime.core.program import Program
from mime.core.signals import sample
from mime.core.step import SimulationState

LOOPS = {
    "MotorNode": ("velocity_kp", "velocity_ki"),
    "JointPDNode": ("kp", "kd"),
    "ComputedTorqueNode": ("kp", "kd"),
}
"""Gains that act together, by the type of the node: opening a loop takes all of them away."""


@dataclasses.dataclass(frozen=True)
class Loop:
    """Gains that act together on one signal: parameters, and which entry where they are lists."""

    name: str
    addresses: tuple[str, ...]
    index: int | None


def loops_of(program: Program, gains: Sequence[Any]) -> list[Loop]:
    """The loops that tuned gains are in: one a node, or one an entry where gains are lists."""
    found: dict[tuple[str, int | None], Loop] = {}
    for gain in gains:
        node, _, rest = gain.address.partition(".")
        parent, dot, _ = rest.rpartition(".")
        own = LOOPS.get(type(program.nodes[node]).__name__, ())
        tuned = [g.address for g in gains if g.address.rpartition(".")[0] == f"{node}{dot}{parent}"]
        others = [f"{node}.{name}" for name in own] if not parent else []
        addresses = tuple(dict.fromkeys([*tuned, *others]))
        tail = gain.name.partition("[")[2]
        name = f"{node}{dot}{parent}" + (f"[{tail}" if gain.index is not None else "")
        found.setdefault((f"{node}{dot}{parent}", gain.index), Loop(name, addresses, gain.index))
    return list(found.values())


def period_of(program: Program) -> int:
    """Steps after which all rates have fired as before."""
    return math.lcm(*(period for _, period in program.wiring.periods), 1)


def step_matrix(program: Program, state: SimulationState, external: Any) -> Any:
    """A = d x(k + period) / d x(k) of all floating numbers of the state, inputs held."""
    parts = state.nodes, state.held
    leaves, structure = jax.tree.flatten(parts)
    moves = [jnp.issubdtype(jnp.result_type(leaf), jnp.floating) for leaf in leaves]
    flat, unravel = ravel_pytree([leaf for leaf, m in zip(leaves, moves, strict=True) if m])

    def ahead(x: Any) -> Any:
        fresh = iter(unravel(x))
        mixed = [next(fresh) if m else leaf for leaf, m in zip(leaves, moves, strict=True)]
        nodes, held = jax.tree.unflatten(structure, mixed)
        now = dataclasses.replace(state, nodes=nodes, held=held)
        for _ in range(period_of(program)):
            now, _ = program.step(now, external)
        after = jax.tree.leaves((now.nodes, now.held))
        return ravel_pytree([leaf for leaf, m in zip(after, moves, strict=True) if m])[0]

    return jax.jacfwd(ahead)(flat)


def external_at(program: Program, inputs: Any, steps: int) -> Callable[[SimulationState], Any]:
    """The external inputs that the run had in its last step."""
    signals = program.signals(inputs, steps)

    def at(state: SimulationState) -> Any:
        before = jnp.maximum(state.step - 1, 0)
        return sample(signals, before, program.time_at(before))

    return at


def scaled(program: Program, loop: Loop, factor: Any, parameters: Mapping[str, Any]) -> Any:
    """Parameters of the loop, times a factor; others as they are."""
    found = dict(parameters)
    for address in loop.addresses:
        node, _, rest = address.partition(".")
        value = parameters.get(address)
        if value is None:
            value = program.nodes[node]
            for part in rest.split("."):
                value = getattr(value, part)
        value = jnp.asarray(value)
        if loop.index is None:
            found[address] = value * factor
        else:
            found[address] = value.at[loop.index].multiply(factor)
    return found
