"""A function of one member, for many of them, on all cores."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import jax
import numpy as np

from mime.native.compiled import double_precision
from mime.native.folding import Folding
from mime.native.lowering import Unsupported

_SMALLEST_CUT = 16
"""Members from which on another thread pays, in XLA."""


class OverMembers:
    """`function(value, varied, *common)` with a member for each entry of the leaves of `varied`.

    As machine code, members are lanes of one program. In XLA they run one after another, which
    keeps a member's values in registers, in equal cuts on all cores.
    """

    def __init__(self, folding: Folding, value: Any):
        self.compiled, self.variables = folding.compiled(value)

    def shapes(self, varied: Any, *common: Any, members: int, **fixed: Any) -> Any:
        """Shapes and types of one member's results; None where XLA does the work."""
        args = (self.variables, varied, *common)
        found = self.compiled.find(args, fixed, varied=1)
        if found is None:
            return None
        try:
            found[0].kernel.entry(self._shared(args), members)
        except Unsupported as error:
            found[0].why_not = str(error)
            return None
        return found[0].shapes

    def _shared(self, args: tuple[Any, ...]) -> tuple[bool, ...]:
        return tuple(not flag for flag in self.compiled.flags(args, {}, 1))

    def __call__(
        self,
        varied: Any,
        *common: Any,
        members: int,
        threads: int | None = None,
        results: Sequence[np.ndarray | None] | None = None,
        **fixed: Any,
    ) -> Any:
        """The members' results as NumPy arrays, members first.

        `results`: arrays to fill, in the order of the leaves; machine code alone does that.
        """
        args = (self.variables, varied, *common)
        found = self.compiled.find(args, fixed, varied=1)
        if found is not None:
            traced, leaves = found
            try:
                return traced.now(leaves, self._shared(args), members, results, threads)
            except Unsupported as error:
                traced.why_not = str(error)
        return self._in_xla(varied, common, members, threads, fixed)

    def _in_xla(
        self, varied: Any, common: Any, members: int, threads: int | None, fixed: dict[str, Any]
    ) -> Any:
        count = threads or max(1, min(os.cpu_count() or 1, members // _SMALLEST_CUT))
        count = min(count, members)
        length = -(-members // count)
        # Equal cuts share one program: a cut that would reach beyond the end begins earlier.
        starts = [min(k * length, members - length) for k in range(count)]
        double = double_precision()

        def run(start: int) -> Any:
            with jax.enable_x64(double):  # the caller's holds in the caller's thread only
                mine = jax.tree.map(lambda x: x[start : start + length], varied)
                return jax.tree.map(
                    np.asarray, self.compiled.mapped(self.variables, mine, *common, **fixed)
                )

        parts = [run(starts[0])] if count == 1 else list(_pool(count).map(run, starts))
        if count == 1:
            return parts[0]
        surplus = [k * length - start for k, start in enumerate(starts)]

        def join(*pieces: np.ndarray) -> np.ndarray:
            return np.concatenate([x[extra:] for x, extra in zip(pieces, surplus, strict=True)])

        return jax.tree.map(join, *parts)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="mime")
