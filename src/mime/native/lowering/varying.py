"""Which variables of a jaxpr differ from member to member; all others are computed once a block."""

from collections.abc import Sequence
from typing import Any

from jax.extend.core import Literal


class Varying:
    """The answers for all jaxprs of a kernel, each found once."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[bool, ...]] = {}
        self._kept: list[Any] = []

    def outputs(self, jaxpr: Any, given: Sequence[bool]) -> tuple[bool, ...]:
        """Which results vary when these arguments do."""
        key = (id(jaxpr), tuple(given))
        if key not in self._known:
            self._kept.append(jaxpr)  # an id is good for as long as the object lives
            self._known[key] = self._walk(jaxpr, given)
        return self._known[key]

    def _walk(self, jaxpr: Any, given: Sequence[bool]) -> tuple[bool, ...]:
        varies = {v for v, flag in zip(jaxpr.invars, given, strict=True) if flag}
        for eqn in jaxpr.eqns:
            flags = [not isinstance(v, Literal) and v in varies for v in eqn.invars]
            if any(flags):
                results = self.of_eqn(eqn, flags)
                varies |= {v for v, flag in zip(eqn.outvars, results, strict=True) if flag}
        return tuple(not isinstance(v, Literal) and v in varies for v in jaxpr.outvars)

    def of_eqn(self, eqn: Any, flags: Sequence[bool]) -> Sequence[bool]:
        """Which results of one equation vary."""
        name, p = eqn.primitive.name, eqn.params
        if name == "scan":
            return self.scan(eqn, flags)[1]
        if name == "while":
            return self.loop(eqn, flags)[0]
        if name == "cond":
            if flags[0]:
                return [True] * len(eqn.outvars)
            branches = [self.outputs(b.jaxpr, flags[1:]) for b in p["branches"]]
            return [any(each) for each in zip(*branches, strict=True)]
        inner = inner_jaxpr(eqn)
        if inner is not None and len(inner[0].invars) == len(flags):
            return self.outputs(inner[0], flags)
        return [any(flags)] * len(eqn.outvars)

    def scan(self, eqn: Any, flags: Sequence[bool]) -> tuple[list[bool], list[bool]]:
        """Which carried values vary, and which results do."""
        p = eqn.params
        consts, carries = p["num_consts"], p["num_carry"]
        carried = list(flags[consts : consts + carries])
        while True:
            given = [*flags[:consts], *carried, *flags[consts + carries :]]
            results = self.outputs(p["jaxpr"].jaxpr, given)
            after = [a or b for a, b in zip(carried, results[:carries], strict=True)]
            if after == carried:
                return carried, [*carried, *results[carries:]]
            carried = after

    def loop(self, eqn: Any, flags: Sequence[bool]) -> tuple[list[bool], bool]:
        """Which carried values of a while loop vary, and whether its condition does."""
        p = eqn.params
        cond, body = p["cond_nconsts"], p["body_nconsts"]
        of_cond, of_body = flags[:cond], flags[cond : cond + body]
        carried = list(flags[cond + body :])
        while True:
            going = self.outputs(p["cond_jaxpr"].jaxpr, [*of_cond, *carried])[0]
            results = self.outputs(p["body_jaxpr"].jaxpr, [*of_body, *carried])
            kept = [a is b for a, b in zip(
                p["body_jaxpr"].jaxpr.invars[body:], p["body_jaxpr"].jaxpr.outvars, strict=True
            )]  # fmt: skip
            after = [
                a or b or (going and not same)
                for a, b, same in zip(carried, results, kept, strict=True)
            ]
            if after == carried:
                return carried, going
            carried = after


def inner_jaxpr(eqn: Any) -> tuple[Any, Sequence[Any]] | None:
    """The jaxpr and constants of an equation that is a call of a function."""
    for name in ("jaxpr", "call_jaxpr", "call", "fun_jaxpr"):
        found = eqn.params.get(name)
        if found is not None and (hasattr(found, "jaxpr") or hasattr(found, "eqns")):
            if hasattr(found, "jaxpr"):
                return found.jaxpr, found.consts
            return found, ()
    return None
