"""What computes a graph: machine code of our own, or XLA; and why."""

from typing import NamedTuple

import jax

from mime.core.program import Program
from mime.core.step import advance
from mime.native.folding import MOST_PROGRAMS, Constants, split
from mime.native.kernel import Kernel
from mime.native.machine import why_off


class Backend(NamedTuple):
    """`native`: machine code of our own (`mime.native`); else XLA, for the reason given."""

    native: bool
    reason: str

    def __str__(self) -> str:
        return "native" if self.native else f"XLA: {self.reason}"


def backend(program: Program) -> Backend:
    """What computes this graph; found once per structure, by looking at one step."""
    if reason := why_off():
        return Backend(False, reason)
    key = split(program)[0]
    if key not in _known:
        state = program.init_state()
        traced = jax.make_jaxpr(lambda s: advance(program.nodes, program.wiring, s, {}))(state)
        reason = Kernel(traced).why_not()
        if len(_known) >= MOST_PROGRAMS:
            _known.clear()
        _known[key] = Backend(reason is None, reason or "")
    return _known[key]


_known: dict[Constants, Backend] = {}
