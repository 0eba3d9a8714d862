"""Jaxprs taken apart and put together again: no tracing, so thousands of equations take moments."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from jax.ad_checkpoint import checkpoint_name
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var, new_jaxpr_eqn
from jax.extend.core.primitives import remat_p
from jax.interpreters import partial_eval

KEPT = "mime_kept"
SHARED = 3
"""A function that is called so often stays one: its code is shared, and so are its derivatives."""


def kept(x: Any) -> Any:
    """x, which a gradient keeps from the forward pass: few numbers that took much to find."""
    return checkpoint_name(x, KEPT)


def is_kept(eqn: Any) -> bool:
    """True for the equation of `kept`."""
    return bool(eqn.primitive.name == "name" and eqn.params["name"] == KEPT)


def inner_jaxprs(eqn: Any) -> Iterator[Any]:
    """The jaxprs among the parameters of an equation."""
    for value in eqn.params.values():
        for inner in value if isinstance(value, tuple | list) else (value,):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                yield inner


def flattened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same with the equations of called functions in the place of the calls.

    Functions with derivatives of their own stay calls, and so do those that are called often.
    """
    calls: Counter[int] = Counter()

    def count(jaxpr: Any) -> None:
        for eqn in jaxpr.eqns:
            for inner in inner_jaxprs(eqn):
                calls[id(inner)] += 1
                if calls[id(inner)] == 1:
                    count(inner)

    count(closed.jaxpr)
    constvars, consts = list(closed.jaxpr.constvars), list(closed.consts)
    eqns: list[Any] = []

    def write(jaxpr: Any, env: dict[Any, Any], top: bool) -> list[Any]:
        def read(atom: Any) -> Any:
            return atom if isinstance(atom, Literal) else env.get(atom, atom)

        for eqn in jaxpr.eqns:
            invars = [read(v) for v in eqn.invars]
            called = eqn.params["jaxpr"] if eqn.primitive.name == "jit" else None
            if called is not None and calls[id(called.jaxpr)] < SHARED:
                inner = called.jaxpr
                own = dict(zip(inner.invars, invars, strict=True))
                for var, const in zip(inner.constvars, called.consts, strict=True):
                    own[var] = Var(var.aval)
                    constvars.append(own[var])
                    consts.append(const)
                env.update(zip(eqn.outvars, write(inner, own, False), strict=True))
                continue
            outvars = eqn.outvars
            if not top:
                outvars = [Var(v.aval) for v in outvars]
                env.update(zip(eqn.outvars, outvars, strict=True))
            eqns.append(eqn.replace(invars=invars, outvars=outvars))
        return [read(v) for v in jaxpr.outvars]

    outvars = write(closed.jaxpr, {}, True)
    return ClosedJaxpr(
        closed.jaxpr.replace(constvars=constvars, eqns=eqns, outvars=outvars), consts
    )


def kept_values(jaxpr: Jaxpr) -> list[Any]:
    """The variables that are `kept`; what is kept twice counts once."""
    named: set[Any] = set()
    found = []
    for eqn in jaxpr.eqns:
        if is_kept(eqn):
            if eqn.invars[0] not in named:
                found.append(eqn.outvars[0])
            named.add(eqn.outvars[0])
    return found


def part(
    closed: ClosedJaxpr, given: Sequence[Any], wanted: Sequence[Any], needed: Sequence[bool]
) -> tuple[ClosedJaxpr, list[bool]]:
    """The function from some variables of a jaxpr to others, and which arguments it has.

    An argument that nothing depends on is left out, unless it is `needed`.
    """
    known = set(given)
    eqns = [eqn for eqn in closed.jaxpr.eqns if not known.issuperset(eqn.outvars)]
    whole = closed.jaxpr.replace(eqns=eqns, invars=list(given), outvars=list(wanted))
    jaxpr, used = partial_eval.dce_jaxpr(whole, [True] * len(wanted), list(needed))
    return ClosedJaxpr(jaxpr, closed.consts), list(used)


def with_light_branches(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same where a gradient computes what is inside a branch again, instead of keeping it.

    What is kept of a branch has a place in every pass, also where the branch is not taken.
    """
    known: dict[int, Any] = {}

    def rewrite(jaxpr: Any) -> Any:
        if id(jaxpr) not in known:
            eqns = [_with_inner(eqn, rewrite) for eqn in jaxpr.eqns]
            changed = any(a is not b for a, b in zip(eqns, jaxpr.eqns, strict=True))
            known[id(jaxpr)] = jaxpr.replace(eqns=eqns) if changed else jaxpr
        return known[id(jaxpr)]

    return ClosedJaxpr(rewrite(closed.jaxpr), closed.consts)


def _with_inner(eqn: Any, rewrite: Any) -> Any:
    """The equation with its jaxprs rewritten; the branches of a choice are recomputed."""
    name, p = eqn.primitive.name, eqn.params
    if name in ("jit", "scan"):
        closed = p["jaxpr"]
        inner = rewrite(closed.jaxpr)
        if inner is closed.jaxpr:
            return eqn
        return eqn.replace(params={**p, "jaxpr": ClosedJaxpr(inner, closed.consts)})
    if name == "remat2":
        inner = rewrite(p["jaxpr"])
        return eqn if inner is p["jaxpr"] else eqn.replace(params={**p, "jaxpr": inner})
    if name == "cond":
        branches = tuple(ClosedJaxpr(_light(rewrite(b.jaxpr)), b.consts) for b in p["branches"])
        return eqn.replace(params={**p, "branches": branches})
    return eqn


def _light(branch: Any) -> Any:
    """A branch as one equation that JAX recomputes in a gradient."""
    if len(branch.eqns) < 2 or branch.effects:
        return branch
    args = [*branch.constvars, *branch.invars]
    inner = branch.replace(constvars=[], invars=args)
    results = [Var(v.aval) for v in branch.outvars]
    params = {"jaxpr": inner, "prevent_cse": False, "differentiated": False, "policy": None}
    eqn = new_jaxpr_eqn(args, results, remat_p, params, branch.effects)
    return branch.replace(eqns=[eqn], outvars=results)
