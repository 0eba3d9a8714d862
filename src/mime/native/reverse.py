"""Reverse mode through loops: a loop keeps its states, and its reverse computes each pass again.

    x⁺, y = f(c, x, u)                        a pass: constants c, state x, inputs u, outputs y
    (c̄, x̄, ū) = (c̄, 0, 0) + (∂f)ᵀ (x̄⁺, ȳ)     its reverse, from the last pass to the first

Only the states go to memory, and the few numbers that a pass calls `kept`. JAX would differentiate
the body of a loop several times, to find what depends on what. Here that is done once, and both
loops are parts of what comes out.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import ClosedJaxpr, Literal

from mime.native.jaxprs import flattened, kept, kept_values, part, with_light_branches


def floats(x: Any) -> bool:
    """True for what has derivatives."""
    return bool(jnp.issubdtype(x.dtype, jnp.floating))


def reversible(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """The function of a jaxpr, with loops that `jax.vjp` reverses as above."""
    light = with_light_branches(closed)
    return lambda *args: _evaluated(light.jaxpr, light.consts, args, keeps=None)


def _evaluated(
    jaxpr: Any, consts: Sequence[Any], args: Sequence[Any], keeps: bool | None
) -> list[Any]:
    """The results of a jaxpr. Inside of a loop, `keeps` tells whether what an inner loop needs for
    its reverse is kept in the pass of the outer one; a part that is to be recomputed keeps nothing.
    """
    env = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else env[atom]

    for eqn in jaxpr.eqns:
        operands = [read(v) for v in eqn.invars]
        name, inner = eqn.primitive.name, eqn.params.get("jaxpr")
        if name == "scan":
            results = Loop(eqn, bool(keeps))(*operands)
        elif name == "jit" and _has_loop(inner.jaxpr):
            results = _evaluated(inner.jaxpr, inner.consts, operands, keeps)
        elif name == "remat2" and keeps is not None:
            more = keeps and eqn.params["policy"] is not None
            results = _evaluated(inner, (), operands, more)
        else:
            params = eqn.primitive.get_bind_params(eqn.params)
            found = eqn.primitive.bind(*operands, **params)
            results = found if eqn.primitive.multiple_results else [found]
        env.update(zip(eqn.outvars, results, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _has_loop(jaxpr: Any) -> bool:
    return any(
        eqn.primitive.name == "scan"
        or (eqn.primitive.name == "jit" and _has_loop(eqn.params["jaxpr"].jaxpr))
        for eqn in jaxpr.eqns
    )


class Loop:
    """A loop as a function of (*constants, *states, *inputs), with a reverse of its own."""

    def __init__(self, eqn: Any, keeps: bool):
        self.eqn, self.keeps = eqn, keeps
        self.consts, self.states = eqn.params["num_consts"], eqn.params["num_carry"]
        self.function: Any = jax.custom_vjp(self._plain)
        self.function.defvjp(self._forward, self._backward, symbolic_zeros=True)

    def __call__(self, *args: Any) -> list[Any]:
        return list(self.function(*args))

    def _plain(self, *args: Any) -> list[Any]:
        return self.eqn.primitive.bind(*args, **self.eqn.params)

    def _run(self, body: ClosedJaxpr, backwards: bool, *parts: Sequence[Any]) -> list[Any]:
        """A loop of the same length over another body: constants, states, inputs."""
        consts, states, inputs = parts
        args = [*consts, *states, *inputs]
        params = {
            **self.eqn.params, "jaxpr": body, "num_consts": len(consts), "num_carry": len(states),
            "reverse": self.eqn.params["reverse"] ^ backwards,
        }  # fmt: skip
        return self.eqn.primitive.bind(*args, **params)

    def _forward(self, *given: Any) -> tuple[list[Any], Any]:
        """The results, and what the reverse needs."""
        first, end = self.consts, self.consts + self.states
        # A state moves if only because another one does.
        moving = [
            floats(x.value) and (x.perturbed or first <= k < end) for k, x in enumerate(given)
        ]
        args = [x.value for x in given]
        both = Pass(self.eqn.params["jaxpr"], self.consts, self.states, moving)
        results = self._run(both.forward, False, args[:first], args[first:end], args[end:])
        count = len(self.eqn.outvars)
        stacks = results[count:]
        if self.keeps:
            results, stacks = [kept(x) for x in results[:count]], [kept(x) for x in stacks]
        consts = [args[k] for k in both.used_consts]
        inputs = [args[k] for k in both.used_inputs]
        reverse = jax.tree_util.Partial(lambda *x: self._reverse(both, *x), consts, stacks, inputs)
        return results[:count], reverse

    def _backward(self, reverse: Any, cotangents: Sequence[Any]) -> tuple[Any, ...]:
        return reverse(cotangents)

    def _reverse(
        self, both: "Pass", consts: Any, stacks: Any, inputs: Any, cotangents: Sequence[Any]
    ) -> tuple[Any, ...]:
        """The cotangents of all arguments; None where there is none."""
        floating = [c for c, v in zip(cotangents, self.eqn.outvars, strict=True) if floats(v.aval)]
        states, outputs = floating[: both.float_states], floating[both.float_states :]
        absent = [isinstance(c, SymbolicZero) for c in outputs]
        avals = [v.aval for v, moves in zip(self.eqn.invars, both.moving, strict=True) if moves]
        totals = avals[: both.moving_consts]
        start = [
            *(jnp.zeros(c.shape, c.dtype) if isinstance(c, SymbolicZero) else c for c in states),
            *(jnp.zeros(a.shape, a.dtype) for a in totals),
        ]
        seen = [c for c, zero in zip(outputs, absent, strict=True) if not zero]
        found = self._run(both.reverse(absent), True, consts, start, [*stacks, *inputs, *seen])
        of_states, rest = found[: both.float_states], found[both.float_states :]
        of_consts, of_inputs = rest[: both.moving_consts], rest[both.moving_consts :]
        pulled = iter([*of_consts, *of_states, *of_inputs])
        return tuple(next(pulled) if moves else None for moves in both.moving)


class Pass:
    """One pass of a loop and its reverse, both parts of one jaxpr:

        (c, x, u, x̄⁺, c̄, ȳ) -> (x⁺, y; x̄, c̄, ū)

    The bar of a constant is the sum so far. Integers have none, nor has what does not move.
    """

    def __init__(self, body: ClosedJaxpr, consts: int, states: int, moving: Sequence[bool]):
        self.moving = list(moving)
        body = flattened(body)
        arguments, results = body.in_avals, body.out_avals
        of_states = [a for a in results[:states] if floats(a)]
        outputs = [a for a in results[states:] if floats(a)]
        self.float_states, self.moving_consts = len(of_states), sum(moving[:consts])
        totals = [a for a, moves in zip(arguments[:consts], moving, strict=False) if moves]
        avals = [*arguments, *of_states, *totals, *outputs]
        typed = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
        whole = flattened(jax.make_jaxpr(lambda *x: self._both(body, x))(*typed))
        jaxpr, count = whole.jaxpr, len(arguments)
        named = kept_values(jaxpr)
        of_loop, bars = jaxpr.invars[:count], jaxpr.invars[count:]
        carried = self.float_states + self.moving_consts
        # What the reverse needs of a pass: constants, states and kept values, inputs.
        pools = [
            of_loop[:consts],
            [*of_loop[consts : consts + states], *named],
            of_loop[consts + states :],
        ]
        given = [*pools[0], *bars[:carried], *pools[1], *pools[2], *bars[carried:]]
        needed = [v in set(bars) for v in given]
        backward, used = part(whole, given, jaxpr.outvars[len(results) :], needed)
        is_used = {v for v, flag in zip(given, used, strict=True) if flag}
        self.backward, self.outputs = backward, outputs
        self.used_consts = [k for k, v in enumerate(pools[0]) if v in is_used]
        self.used_inputs = [
            consts + states + k for k, v in enumerate(pools[2]) if v in is_used
        ]
        stacked = [v for v in pools[1] if v in is_used]
        self.forward, _ = part(
            whole, of_loop, [*jaxpr.outvars[: len(results)], *stacked], [True] * count
        )

    def _both(self, body: ClosedJaxpr, given: Sequence[Any]) -> list[Any]:
        count = len(self.moving)
        arguments, bars = given[:count], given[count:]
        floating = [floats(a) for a in body.out_avals]

        def of_moving(*free: Any) -> tuple[list[Any], list[Any]]:
            rest = iter(free)
            whole = [next(rest) if m else x for x, m in zip(arguments, self.moving, strict=True)]
            results = _evaluated(body.jaxpr, body.consts, whole, keeps=True)
            return [x for x, f in zip(results, floating, strict=True) if f], results

        free = [x for x, moves in zip(arguments, self.moving, strict=True) if moves]
        _, pull, results = jax.vjp(of_moving, *free, has_aux=True)
        states, consts = self.float_states, self.moving_consts
        pulled = pull([*bars[:states], *bars[states + consts :]])
        totals = [a + b for a, b in zip(bars[states : states + consts], pulled, strict=False)]
        return [*results, *pulled[consts : consts + states], *totals, *pulled[consts + states :]]

    def reverse(self, absent: Sequence[bool]) -> ClosedJaxpr:
        """The reverse of a pass, without the cotangents of outputs that are `absent`: zeros."""
        jaxpr, consts = self.backward.jaxpr, list(self.backward.consts)
        first = len(jaxpr.invars) - len(absent)
        gone = [v for v, zero in zip(jaxpr.invars[first:], absent, strict=True) if zero]
        left = [v for v, zero in zip(jaxpr.invars[first:], absent, strict=True) if not zero]
        zeros = [np.zeros(v.aval.shape, v.aval.dtype) for v in gone]
        known = jaxpr.replace(
            constvars=[*jaxpr.constvars, *gone], invars=[*jaxpr.invars[:first], *left]
        )
        return ClosedJaxpr(known, [*consts, *zeros])
