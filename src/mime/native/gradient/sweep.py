"""A jaxpr and its reverse in one: the reverse of an operation is what `jax.vjp` makes of it.

    y = f(x),  ȳ   ->   y,  x̄ = (∂f/∂x)ᵀ ȳ

JAX itself finds the same, but takes a tenth of a millisecond and more for each operation of a
program, several times over. A robot has thousands of operations of a few dozen kinds: here JAX is
asked once for each kind. Branches are computed again in the reverse, and loops are those of
`loops`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal, Var

from mime.native.gradient.kinds import copy_of, floats, reverse_of, sum_of
from mime.native.jaxprs import SHARED, inner_jaxprs

RULES: dict[str, Callable[..., Sequence[Any]]] = {}
"""The reverse of an operation that JAX is not asked for: see `rules`."""
RULES_BOTH_WAYS: dict[str, Callable[..., Sequence[Any] | None]] = {}
"""Operations that are written otherwise, if they are to be reversed: (sweep, equation, arguments,
which of them move, keeps) -> results. None where a rule does not apply after all."""


def with_reverse(closed: ClosedJaxpr, moving: Sequence[bool], keeps: bool = True) -> ClosedJaxpr:
    """(*arguments, *bars of the floating results) -> (*results, *bars of the arguments that move).

    `keeps` tells whether inner loops keep what they need beyond this pass, see `Loop`.
    """
    sweep = Sweep(keeps)
    arguments = [Var(a) for a in closed.in_avals]
    for v, moves in zip(arguments, moving, strict=True):
        if moves:
            sweep.active.add(v)
    results = sweep.forward(closed, arguments)
    floating = [floats(a) for a in closed.out_avals]
    bars = [Var(a) for a, f in zip(closed.out_avals, floating, strict=True) if f]
    ends = [x for x, f in zip(results, floating, strict=True) if f]
    for x, bar in zip(ends, bars, strict=True):
        if not isinstance(x, Literal) and x in sweep.active:
            sweep.give(x, bar)
    sweep.backward(sweep.records)
    pulled = [sweep.bar_of(v) for v, moves in zip(arguments, moving, strict=True) if moves]
    jaxpr = closed.jaxpr.replace(
        constvars=sweep.constvars,
        invars=[*arguments, *bars],
        outvars=[*results, *pulled],
        eqns=sweep.eqns,
    )
    return ClosedJaxpr(jaxpr, sweep.consts)


class Sweep:
    """The jaxpr under way: equations so far, what moves, and the bars that are known."""

    def __init__(self, keeps: bool):
        self.keeps = keeps
        self.eqns: list[Any] = []
        self.constvars: list[Any] = []
        self.consts: list[Any] = []
        self.active: set[Any] = set()
        self.records: list[tuple[Sequence[Any], Callable[[Sequence[Any]], Sequence[Any]]]] = []
        """Of each operation that moves: its results, and (their bars) -> [(argument, bar)]."""
        self.bars: dict[Any, Any] = {}
        self.calls: dict[int, int] = {}
        self.functions: dict[Any, Any] = {}
        """The calls of the reverses of functions that are called often."""

    # --- forward --------------------------------------------------------------------------------

    def forward(self, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        """Write the equations of a jaxpr, and note how each is reversed. Returns its results."""
        self._count(closed.jaxpr)
        return self._run(closed.jaxpr, closed.consts, args, self.keeps)

    def _count(self, jaxpr: Any) -> None:
        for eqn in jaxpr.eqns:
            for inner in inner_jaxprs(eqn):
                self.calls[id(inner)] = self.calls.get(id(inner), 0) + 1
                if self.calls[id(inner)] == 1:
                    self._count(inner)

    def _run(
        self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Any], keeps: bool
    ) -> list[Any]:
        env = dict(zip(jaxpr.invars, args, strict=True))
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            env[var] = self.constant(const, var.aval)

        def read(atom: Any) -> Any:
            return atom if isinstance(atom, Literal) else env[atom]

        for eqn in jaxpr.eqns:
            results = self._equation(eqn, [read(v) for v in eqn.invars], keeps)
            env.update(zip(eqn.outvars, results, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def constant(self, value: Any, aval: Any) -> Any:
        """A variable for a constant."""
        var = Var(aval)
        self.constvars.append(var)
        self.consts.append(value)
        return var

    def _equation(self, eqn: Any, invars: list[Any], keeps: bool) -> Sequence[Any]:
        name, inner = eqn.primitive.name, eqn.params.get("jaxpr")
        if name == "jit" and self.calls.get(id(inner.jaxpr), 0) < SHARED:
            return self._run(inner.jaxpr, inner.consts, invars, keeps)
        if name == "remat2":
            return self._run(inner, (), invars, keeps and eqn.params["policy"] is not None)
        flags = tuple(not isinstance(v, Literal) and v in self.active for v in invars)
        outvars = [Var(v.aval) for v in eqn.outvars]
        still = name == "stop_gradient" or not any(floats(v.aval) for v in outvars)
        if still or not any(flags):
            self.eqns.append(eqn.replace(invars=invars, outvars=outvars))
            return outvars
        if name in RULES_BOTH_WAYS:
            found = RULES_BOTH_WAYS[name](self, eqn, invars, flags, keeps)
            if found is not None:
                return found
        self.eqns.append(eqn.replace(invars=invars, outvars=outvars))
        rule = RULES.get(name, Sweep.as_jax)
        self.note(outvars, invars, flags, lambda bars: rule(self, eqn, invars, flags, bars))
        return outvars

    def note(
        self,
        outvars: Sequence[Any],
        invars: Sequence[Any],
        flags: Sequence[bool],
        rule: Callable[[Sequence[Any]], Sequence[Any]],
    ) -> None:
        """Remember how results are reversed: (their bars) -> the bars of what moves."""
        self.active.update(v for v in outvars if floats(v.aval))
        moving = [v for v, flag in zip(invars, flags, strict=True) if flag]
        self.records.append((outvars, lambda bars: list(zip(moving, rule(bars), strict=True))))

    # --- backward -------------------------------------------------------------------------------

    def backward(self, records: Sequence[Any]) -> None:
        """From the last operation to the first."""
        for outvars, rule in reversed(records):
            bars = [self.bars.pop(v, None) for v in outvars]
            if any(bar is not None for bar in bars):
                for v, bar in rule(bars):
                    self.give(v, bar)

    def give(self, v: Any, bar: Any) -> None:
        """v̄ += bar"""
        before = self.bars.get(v)
        if before is not None:
            (bar,) = self.inlined(sum_of(v.aval.shape, v.aval.dtype), [before, bar])
        self.bars[v] = bar

    def bar_of(self, v: Any) -> Any:
        """v̄, zeros where nothing depends on v."""
        found = self.bars.get(v)
        return self.zeros(v.aval) if found is None else found

    def zeros(self, aval: Any) -> Any:
        """An array of zeros."""
        return self.constant(np.zeros(aval.shape, aval.dtype), aval)

    def inlined(self, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        """Write the equations of a jaxpr of ours. Returns its results."""
        jaxpr = closed.jaxpr
        env = dict(zip(jaxpr.invars, args, strict=True))
        for var, const in zip(jaxpr.constvars, closed.consts, strict=True):
            env[var] = self.constant(const, var.aval)
        for eqn in jaxpr.eqns:
            outvars = [Var(v.aval) for v in eqn.outvars]
            invars = [v if isinstance(v, Literal) else env[v] for v in eqn.invars]
            self.eqns.append(eqn.replace(invars=invars, outvars=outvars))
            env.update(zip(eqn.outvars, outvars, strict=True))
        return [v if isinstance(v, Literal) else env[v] for v in jaxpr.outvars]

    def inline_copy(self, value: Any, out: Any) -> None:
        """out = value"""
        eqn = copy_of(out.aval.shape, out.aval.dtype).jaxpr.eqns[0]
        self.eqns.append(eqn.replace(invars=[value], outvars=[out]))

    def as_jax(
        self, eqn: Any, invars: Sequence[Any], flags: Sequence[bool], bars: Sequence[Any]
    ) -> Sequence[Any]:
        """What `jax.vjp` makes of one operation."""
        seen = tuple(bar is not None for bar in bars)
        closed, used = reverse_of(eqn, tuple(flags), seen)
        given = [*invars, *(bar for bar in bars if bar is not None)]
        return self.inlined(closed, [x for x, flag in zip(given, used, strict=True) if flag])
