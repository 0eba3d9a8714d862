"""How an operation is reversed: as JAX does it, or, where it holds other jaxprs, by a rule of ours.

rule(sweep, equation, its arguments, which of them move, bars of its results) -> bars of those
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal, Var, jaxpr_as_fun, new_jaxpr_eqn
from jax.extend.core.primitives import cond_p

from mime.native.gradient.kinds import bind_equation, floats, typed
from mime.native.gradient.sweep import RULES, RULES_BOTH_WAYS, Sweep, with_reverse
from mime.native.jaxprs import flattened, inner_jaxprs, part


def call(
    sweep: Sweep, eqn: Any, invars: Sequence[Any], flags: Sequence[bool], bars: Sequence[Any]
) -> Sequence[Any]:
    """A function that is called often: its reverse is one function, too, which computes it
    again.
    """
    seen = tuple(bar is not None for bar in bars)
    key = (id(eqn.params["jaxpr"].jaxpr), tuple(flags), seen)
    if key not in sweep.functions:
        pulled = jax.jit(jaxpr_as_fun(_pulled(eqn.params["jaxpr"], flags, seen)))
        given = [v for v, is_seen in zip(eqn.outvars, seen, strict=True) if is_seen]
        made = jax.make_jaxpr(pulled)(*typed([*eqn.invars, *given]))
        sweep.functions[key] = made.jaxpr.eqns[0]
    call = sweep.functions[key]
    outvars = [Var(v.aval) for v in call.outvars]
    given = [*invars, *(bar for bar in bars if bar is not None)]
    sweep.eqns.append(call.replace(invars=given, outvars=outvars))
    return outvars


def choice(
    sweep: Sweep, eqn: Any, invars: Sequence[Any], flags: Sequence[bool], bars: Sequence[Any]
) -> Sequence[Any]:
    """A branch and its reverse, where the same condition holds."""
    if flags[0]:
        raise AssertionError("the index of a branch is an integer")
    seen = tuple(bar is not None for bar in bars)
    given = [bar for bar in bars if bar is not None]
    branches = [_pulled(branch, flags[1:], seen) for branch in eqn.params["branches"]]
    args = [*invars[1:], *given]
    moving = [v for v, flag in zip(invars, flags, strict=True) if flag]
    # Constants of branches are arguments of all of them.
    consts = [
        [sweep.constant(c, v.aval) for v, c in zip(b.jaxpr.constvars, b.consts, strict=True)]
        for b in branches
    ]
    everything = [v for row in consts for v in row]
    uniform = []
    for k, b in enumerate(branches):
        heads = [
            v
            for j, row in enumerate(consts)
            for v in (b.jaxpr.constvars if j == k else [Var(c.aval) for c in row])
        ]
        uniform.append(
            ClosedJaxpr(b.jaxpr.replace(constvars=[], invars=[*heads, *b.jaxpr.invars]), [])
        )
    outvars = [Var(v.aval) for v in moving]
    params = {**eqn.params, "branches": tuple(uniform)}
    sweep.eqns.append(
        new_jaxpr_eqn([invars[0], *everything, *args], outvars, cond_p, params, eqn.effects)
    )
    return outvars


def own_rule(
    sweep: Sweep, eqn: Any, invars: list[Any], flags: Sequence[bool], keeps: bool
) -> Sequence[Any] | None:
    """A function with a rule of its own for changes: the rule, and its transpose.

    None where the transpose of the rule needs more than its equations one by one.
    """
    moving = [v for v, flag in zip(invars, flags, strict=True) if flag]
    count = len(invars)

    def change(*given: Any) -> list[Any]:
        def of_moving(*free: Any) -> list[Any]:
            rest = iter(free)
            whole = [next(rest) if f else x for x, f in zip(given, flags, strict=False)]
            return bind_equation(eqn, whole)

        free = [x for x, f in zip(given, flags, strict=False) if f]
        results, changes = jax.jvp(of_moving, tuple(free), tuple(given[count:]))
        return [*results, *(c for c in changes if floats(c))]

    closed = flattened(jax.make_jaxpr(change)(*typed([*invars, *moving])))
    jaxpr = closed.jaxpr
    linear = set(jaxpr.invars[count:])
    for step in jaxpr.eqns:
        if any(not isinstance(v, Literal) and v in linear for v in step.invars):
            if next(inner_jaxprs(step), None) is not None:
                return None
            linear.update(step.outvars)
    env: dict[Any, Any] = dict(zip(jaxpr.invars[:count], invars, strict=True))
    tangents = [Var(v.aval) for v in moving]
    env.update(zip(jaxpr.invars[count:], tangents, strict=True))
    for var, const in zip(jaxpr.constvars, closed.consts, strict=True):
        env[var] = sweep.constant(const, var.aval)

    def read(atom: Any) -> Any:
        return atom if isinstance(atom, Literal) else env[atom]

    steps: list[Any] = []
    for step in jaxpr.eqns:
        inputs = [read(v) for v in step.invars]
        outputs = [Var(v.aval) for v in step.outvars]
        env.update(zip(step.outvars, outputs, strict=True))
        which = tuple(not isinstance(v, Literal) and v in linear for v in step.invars)
        if any(which):
            steps.append((step, inputs, outputs, which))
        else:
            sweep.eqns.append(step.replace(invars=inputs, outvars=outputs))
    results = [read(v) for v in jaxpr.outvars]
    values, changes = results[: len(eqn.outvars)], results[len(eqn.outvars) :]
    # A result may be an argument: the bars of the two are different things.
    outvars = [Var(v.aval) for v in eqn.outvars]
    for value, out in zip(values, outvars, strict=True):
        sweep.inline_copy(value, out)

    def rule(bars: Sequence[Any]) -> Sequence[Any]:
        floating = [bar for bar, v in zip(bars, outvars, strict=True) if floats(v.aval)]
        for change, bar in zip(changes, floating, strict=True):
            if bar is not None and not isinstance(change, Literal):
                sweep.give(change, bar)
        for step, inputs, outputs, which in reversed(steps):
            given = [sweep.bars.pop(v, None) for v in outputs]
            if any(bar is not None for bar in given):
                pulled = sweep.as_jax(step, inputs, which, given)
                targets = [v for v, flag in zip(inputs, which, strict=True) if flag]
                for v, bar in zip(targets, pulled, strict=True):
                    sweep.give(v, bar)
        return [sweep.bar_of(t) for t in tangents]

    sweep.note(outvars, invars, flags, rule)
    return outvars


def _pulled(closed: ClosedJaxpr, flags: Sequence[bool], seen: Sequence[bool]) -> ClosedJaxpr:
    """(*arguments, *bars of the `seen` results) -> bars of the arguments that move."""
    whole = with_reverse(closed, flags, keeps=False)
    count, results = len(closed.in_avals), len(closed.out_avals)
    floating = [is_seen for is_seen, a in zip(seen, closed.out_avals, strict=True) if floats(a)]
    arguments, bars = whole.jaxpr.invars[:count], whole.jaxpr.invars[count:]
    there = [v for v, is_seen in zip(bars, floating, strict=True) if is_seen]
    absent = [v for v, is_seen in zip(bars, floating, strict=True) if not is_seen]
    zeros = [np.zeros(v.aval.shape, v.aval.dtype) for v in absent]
    known = whole.jaxpr.replace(constvars=[*whole.jaxpr.constvars, *absent])
    given = [*arguments, *there]
    wanted = known.outvars[results:]
    found, _ = part(ClosedJaxpr(known, [*whole.consts, *zeros]), given, wanted, [True] * len(given))
    return found


RULES.update({"cond": choice, "jit": call})
RULES_BOTH_WAYS["custom_jvp_call"] = own_rule
