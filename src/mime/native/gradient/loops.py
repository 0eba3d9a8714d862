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
from jax.extend.core import ClosedJaxpr, Literal, Var, new_jaxpr_eqn, no_effects
from jax.extend.core.primitives import add_p

from mime.native.gradient.kinds import floats, typed
from mime.native.gradient.sweep import RULES_BOTH_WAYS, Sweep, with_reverse
from mime.native.jaxprs import flattened, kept, kept_values, part, with_light_branches


def reversible(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """The function of a jaxpr, with loops that `jax.vjp` reverses as above."""
    light = with_light_branches(closed)
    return lambda *args: _evaluated(light, args)


def _evaluated(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    jaxpr = closed.jaxpr
    env = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*closed.consts, *args), strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else env[atom]

    for eqn in jaxpr.eqns:
        operands = [read(v) for v in eqn.invars]
        if eqn.primitive.name == "scan":
            results = list(Loop(eqn).function(*operands))
        elif eqn.primitive.name == "jit" and _has_loop(eqn.params["jaxpr"].jaxpr):
            results = _evaluated(eqn.params["jaxpr"], operands)
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
    """A loop as a function of (*constants, *states, *inputs), with a reverse of its own.

    Inside of another loop, one that `keeps` does not run again in the reverse of the outer pass:
    what it needs is kept there. Where a pass is to be recomputed, it keeps nothing.
    """

    def __init__(self, eqn: Any, keeps: bool = False):
        self.eqn, self.keeps = eqn, keeps
        self.consts, self.states = eqn.params["num_consts"], eqn.params["num_carry"]
        self.function: Any = jax.custom_vjp(lambda *args: eqn.primitive.bind(*args, **eqn.params))
        self.function.defvjp(self._forward, lambda back, bars: back(bars), symbolic_zeros=True)

    def _forward(self, *given: Any) -> tuple[list[Any], Any]:
        both = self.both([x.perturbed and floats(x.value) for x in given])
        made = self.run(both, [x.value for x in given])
        count = len(self.eqn.outvars)

        def back(needed: Any, bars: Sequence[Any]) -> tuple[Any, ...]:
            seen = [not isinstance(bar, SymbolicZero) for bar in bars]
            there = [bar for bar, is_seen in zip(bars, seen, strict=True) if is_seen]
            return self.pulled(both, needed, seen, there)

        return made[:count], jax.tree_util.Partial(back, made[count:])

    def both(self, moving: Sequence[bool]) -> "Pass":
        """A pass and its reverse, where these arguments move."""
        first, end = self.consts, self.consts + self.states
        # A state moves if only because another one does.
        flags = [
            moves or (first <= k < end and floats(v.aval))
            for k, (moves, v) in enumerate(zip(moving, self.eqn.invars, strict=True))
        ]
        return Pass(self.eqn.params["jaxpr"], self.consts, self.states, flags)

    def run(self, both: "Pass", args: Sequence[Any]) -> list[Any]:
        """The results, and behind them what the reverse needs."""
        first, end = self.consts, self.consts + self.states
        made = self._scan(both.forward, False, args[:first], args[first:end], args[end:])
        if self.keeps:
            made = [kept(x) for x in made]
        count = len(self.eqn.outvars)
        consts, inputs = ([args[k] for k in ks] for ks in (both.used_consts, both.used_inputs))
        return [*made[:count], *consts, *made[count:], *inputs]

    def pulled(
        self, both: "Pass", needed: Sequence[Any], seen: Sequence[bool], bars: Sequence[Any]
    ) -> tuple[Any, ...]:
        """The bars of all arguments from those of the `seen` results; None where there is none."""
        given = iter(bars)
        found = [next(given) if is_seen else None for is_seen in seen]
        floating = [bar for bar, v in zip(found, self.eqn.outvars, strict=True) if floats(v.aval)]
        states, outputs = floating[: both.float_states], floating[both.float_states :]
        of_loop = [v.aval for v, moves in zip(self.eqn.invars, both.moving, strict=True) if moves]
        totals, rest = of_loop[: both.moving_consts], of_loop[both.moving_consts :]
        start = [
            *(jnp.zeros(a.shape, a.dtype) if x is None else x for x, a in zip(states, rest)),
            *(jnp.zeros(a.shape, a.dtype) for a in totals),
        ]
        count = len(both.used_consts)
        rows = [*needed[count:], *(x for x in outputs if x is not None)]
        body = both.reverse([x is None for x in outputs])
        pulled = self._scan(body, True, needed[:count], start, rows)
        of_states, of_others = pulled[: both.float_states], pulled[both.float_states :]
        of_consts, of_inputs = of_others[: both.moving_consts], of_others[both.moving_consts :]
        all_bars = iter([*of_consts, *of_states, *of_inputs])
        return tuple(next(all_bars) if moves else None for moves in both.moving)

    def _scan(self, body: ClosedJaxpr, backwards: bool, *parts: Sequence[Any]) -> list[Any]:
        """A loop of the same length over another body: constants, states, inputs."""
        consts, states, inputs = parts
        params = {
            **self.eqn.params, "jaxpr": body, "num_consts": len(consts), "num_carry": len(states),
            "reverse": self.eqn.params["reverse"] ^ backwards,
        }  # fmt: skip
        return self.eqn.primitive.bind(*consts, *states, *inputs, **params)


class Pass:
    """One pass of a loop and its reverse, both parts of one jaxpr:

        (c, x, u, x̄⁺, c̄, ȳ) -> (x⁺, y; x̄, c̄, ū)

    The bar of a constant is the sum so far. Integers have none, nor has what does not move.
    """

    def __init__(self, body: ClosedJaxpr, consts: int, states: int, moving: Sequence[bool]):
        self.moving = list(moving)
        whole = with_reverse(body, moving)
        jaxpr, count, end = whole.jaxpr, len(body.in_avals), consts + states
        results = len(body.out_avals)
        of_states = [a for a in body.out_avals[:states] if floats(a)]
        self.float_states, self.moving_consts = len(of_states), sum(moving[:consts])
        of_loop, bars = jaxpr.invars[:count], jaxpr.invars[count:]
        made, pulled = jaxpr.outvars[:results], jaxpr.outvars[results:]
        # The bar of a constant is the sum over the passes.
        totals = [Var(v.aval) for v in pulled[: self.moving_consts]]
        sums = [Var(v.aval) for v in totals]
        adding = [
            new_jaxpr_eqn([total, bar], [sum_], add_p, {}, no_effects)
            for total, bar, sum_ in zip(totals, pulled, sums, strict=False)
        ]
        whole = ClosedJaxpr(jaxpr.replace(eqns=[*jaxpr.eqns, *adding]), whole.consts)
        carried = [*bars[: self.float_states], *totals]
        rows = [*of_loop[consts:end], *kept_values(jaxpr)]
        given = [*of_loop[:consts], *carried, *rows, *of_loop[end:], *bars[self.float_states :]]
        moved = self.moving_consts
        wanted = [*pulled[moved : moved + self.float_states], *sums]
        wanted += pulled[moved + self.float_states :]
        always = {*carried, *bars}
        self.backward, used = part(whole, given, wanted, [v in always for v in given])
        needed = {v for v, flag in zip(given, used, strict=True) if flag}
        self.used_consts = [k for k in range(consts) if of_loop[k] in needed]
        self.used_inputs = [k for k in range(end, count) if of_loop[k] in needed]
        stacked = [v for v in rows if v in needed]
        self.forward, _ = part(whole, of_loop, [*made, *stacked], [True] * count)

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


def both_ways(
    sweep: Sweep, eqn: Any, invars: list[Any], flags: Sequence[bool], keeps: bool
) -> Sequence[Any]:
    """An inner loop: forward with what its reverse needs, and that reverse."""
    loop = Loop(eqn, keeps)
    both = loop.both(flags)
    ran = flattened(jax.make_jaxpr(lambda *x: loop.run(both, x))(*typed(invars)))
    found = sweep.inlined(ran, invars)
    count = len(eqn.outvars)
    results, needed = found[:count], found[count:]

    def rule(bars: Sequence[Any]) -> Sequence[Any]:
        seen = [bar is not None for bar in bars]
        given = [bar for bar in bars if bar is not None]

        def back(*x: Any) -> list[Any]:
            pulled = loop.pulled(both, x[: len(needed)], seen, x[len(needed) :])
            return [c for c, flag in zip(pulled, flags, strict=True) if flag]

        closed = flattened(jax.make_jaxpr(back)(*typed([*needed, *given])))
        return sweep.inlined(closed, [*needed, *given])

    sweep.note(results, invars, flags, rule)
    return results


RULES_BOTH_WAYS["scan"] = both_ways
