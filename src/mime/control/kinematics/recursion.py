"""Recursions over the links of a tree: the body is written once, on the scalars of one link.

A body takes the value of the parent (outward) or the sum over the children (inward), and the
link's entries of some **tables**. `Unrolled` calls it once per link, with the constants of the
link's own joint folded; a table is then a list with one entry per link. `Loops` traces it once per
run of links, as the body of a `lax.scan`; a table is then a tree of **columns**: arrays with one
entry per link, and constants where all links agree.

A **run** is a row of links, each the only child of the one before: a chain is one run, and a branch
begins another.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from mime.control.kinematics.scalar import Array, add, common_dtype, flatten, mul, pack, unpack
from mime.control.kinematics.tree import KinematicTree

WORTH_LOOPS = 40
"""Links' worth of program that loops must save. They bound the time to trace and to compile, and
nothing else: unrolled, a program is faster. A link is some 300 operations, and a run in a loop as
many as three links, since little folds; so only long runs are worth it.
"""


def walk(tree: KinematicTree, *arguments: Any, links: Sequence[int] | None = None) -> "Walk":
    """How the recursions go over `links` of the tree: all by default, parents first.

    With NumPy arrays only there is nothing to compile: Python itself goes from link to link. Joints
    that mimic others or share drives are unrolled too.
    """
    dtype = common_dtype(tree, arguments)
    unrolled = Unrolled(tree, tuple(range(tree.num_links) if links is None else links), dtype)
    coupled = tree.coordinate_idxs != tuple(range(tree.num_links))
    coupled |= tree.drive_coupling is not None
    saved = len(unrolled.links) - 3 * len(_runs(unrolled.parents))
    if dtype is None or coupled or saved <= WORTH_LOOPS:
        return unrolled
    return Loops(tree, unrolled.links, dtype)


class _Links:
    """Some links of a tree, and one dtype for all that varies; None when nothing does."""

    def __init__(
        self, tree: KinematicTree, links: tuple[int, ...], dtype: DTypeLike | None
    ) -> None:
        self.tree, self.links, self.dtype = tree, links, dtype
        place = {link: k for k, link in enumerate(links)}
        self.parents = tuple(place.get(tree.parent_idxs[link], -1) for link in links)


class Unrolled(_Links):
    """Link by link."""

    def link_table(self, array: Array) -> list:
        """The entries of each link, from an array with one row per link of the tree."""
        rows = unpack(array, self.dtype)
        return [rows[link] for link in self.links]

    def joint_table(self, array: Array | None) -> list:
        """The entries of each joint, from an array with one row per joint; None: zeros."""
        return [0.0] * self.tree.num_joints if array is None else unpack(array, self.dtype)

    def to_links(self, joint_table: Any) -> list:
        """q̇_i = multiplier_i q̇_c: what each link's joint has of its coordinate's velocity."""
        multiplier, c = unpack(self.tree.mimic_multiplier, self.dtype), self.tree.coordinate_idxs
        return [mul(multiplier[i], joint_table[c[i]]) for i in self.links]

    def to_joints(self, link_table: Any) -> list:
        """τ_c = Σ multiplier_i τ_i: a coordinate carries all links' joints that move with it."""
        total: list = [0.0] * self.tree.num_joints
        multiplier, c = unpack(self.tree.mimic_multiplier, self.dtype), self.tree.coordinate_idxs
        for i, share in zip(self.links, link_table, strict=True):
            total[c[i]] = add(total[c[i]], mul(multiplier[i], share))
        return total

    def each(self, function: Callable, *tables: Any) -> list:
        """function(entries), of each link or joint by itself."""
        return [function(*entries) for entries in zip(*tables, strict=True)]

    def outward(self, step: Callable, root: Any, *tables: Any) -> list:
        """value_i, kept_i = step(value_parent, entries of link i), from the root to the tips.

        Returns what is kept, a table.
        """
        values, kept = [root], []
        for parent, *entries in zip(self.parents, *tables, strict=True):
            value, keep = step(values[parent + 1], *entries)
            values.append(value)
            kept.append(keep)
        return kept

    def inward(self, step: Callable, tip: Any, *tables: Any) -> list:
        """share_i, kept_i = step(Σ share_children, entries of link i), from the tips to the root.

        At the tips the sum is `tip`. The share is a function without arguments, since nobody asks
        for that of a link on the root. Returns what is kept, a table.
        """
        beyond: dict[int, Any] = {}
        kept = []
        for i in reversed(range(len(self.links))):
            share, keep = step(beyond.pop(i, tip), *(table[i] for table in tables))
            if self.parents[i] >= 0:
                _give(beyond, self.parents[i], share())
            kept.append(keep)
        return kept[::-1]

    def last(self, table: Any) -> Any:
        """The entries of the last link."""
        return table[-1]

    def total(self, table: Any) -> Any:
        """The sum of a table of scalars."""
        return reduce(add, table, 0.0)

    def array(self, table: Any, *inputs: Array | None) -> Array:
        """The array with one row per entry of the table; `inputs` as in `pack`."""
        return pack(table, self.dtype, *inputs)

    def rows(self, tables: Sequence[Any], *inputs: Array | None) -> Array:
        """The array whose rows are tables of scalars."""
        return pack(tables, self.dtype, *inputs)


class Loops(_Links):
    """Run by run, each a loop of the compiled program. Each joint moves one link and has a drive.

    The methods are those of `Unrolled`.
    """

    def link_table(self, array: Array) -> Any:
        return _columns(_joined([array[start:stop] for start, stop in _pieces(self.links)]))

    def joint_table(self, array: Array | None) -> Any:
        return 0.0 if array is None else self.link_table(array)

    def to_links(self, joint_table: Any) -> Any:
        return joint_table

    def to_joints(self, link_table: Any) -> Any:
        """Links that are left out get zeros."""
        column = self._column(link_table)
        parts, done, taken = [], 0, 0
        for start, stop in [*_pieces(self.links), (self.tree.num_links,) * 2]:
            parts += [jnp.zeros(start - done, self.dtype), column[taken : taken + stop - start]]
            done, taken = stop, taken + stop - start
        return _joined([part for part in parts if len(part)])

    def each(self, function: Callable, *tables: Any) -> Any:
        """On NumPy columns Python does it, here and now."""
        columns, constants = eqx.partition(tables, _is_column)
        if common_dtype(columns) is None:
            links = [
                jax.tree.map(lambda x, k=k: float(x[k]), columns) for k in range(len(self.links))
            ]
            rows = [function(*eqx.combine(link, constants)) for link in links]
            return jax.tree.map(lambda *row: _columns(np.array(row)), *rows)
        varying = _Varying(lambda entries: function(*eqx.combine(entries, constants)))
        return varying.whole(jax.vmap(varying)(self._typed(columns)))

    def outward(self, step: Callable, root: Any, *tables: Any) -> Any:
        ends, parts = [self._typed(root)], []
        for run in _runs(self.parents):
            end, kept = self._along(run, step, ends[run.parent + 1], tables)
            ends.append(end)
            parts.append(kept)
        return _joined(parts)

    def inward(self, step: Callable, tip: Any, *tables: Any) -> Any:
        def inwards(value: Any, *entries: Any) -> tuple[Any, Any]:
            share, kept = step(value, *entries)
            return share(), kept

        beyond: dict[int, Any] = {}
        parts = []
        for k, run in reversed(list(enumerate(_runs(self.parents)))):
            start = self._typed(beyond.pop(k, tip))
            share, kept = self._along(run, inwards, start, tables, reverse=True)
            _give(beyond, run.parent, share)
            parts.append(kept)
        return _joined(parts[::-1])

    def last(self, table: Any) -> Any:
        return jax.tree.map(lambda x: x[-1] if _is_column(x) else x, table)

    def total(self, table: Any) -> Any:
        return jnp.sum(self._column(table))

    def array(self, table: Any, *inputs: Array | None) -> jax.Array:
        flat, shape = flatten(table)
        return jnp.stack([self._column(x) for x in flat], axis=1).reshape(-1, *shape)

    def rows(self, tables: Sequence[Any], *inputs: Array | None) -> jax.Array:
        return jnp.stack([self._column(x) for x in tables])

    def _column(self, x: Any) -> jax.Array:
        x = jnp.asarray(x, self.dtype)
        return x if x.ndim else jnp.full(len(self.links), x)

    def _typed(self, value: Any) -> Any:
        return jax.tree.map(lambda x: jnp.asarray(x, self.dtype), value)

    def _along(
        self, run: "_Run", step: Callable, start: Any, tables: Any, reverse: bool = False
    ) -> tuple[Any, Any]:
        columns, constants = eqx.partition(tables, _is_column)
        columns = jax.tree.map(lambda x: x[run.start : run.stop], columns)

        def body(value: Any, entries: Any) -> tuple[Any, Any]:
            value, kept = step(value, *eqx.combine(entries, constants))
            return self._typed(value), kept

        varying = _Varying(body)
        length = run.stop - run.start
        results = jax.lax.scan(varying, start, self._typed(columns), length, reverse)
        return varying.whole(results)


Walk = Unrolled | Loops


class _Varying:
    """A function that JAX transforms, without those of its results that are constants.

    `whole` puts them back.
    """

    def __init__(self, function: Callable) -> None:
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        results, self.constants = eqx.partition(self.function(*arguments), _is_column)
        return results

    def whole(self, results: Any) -> Any:
        return eqx.combine(results, self.constants)


class _Run(NamedTuple):
    """Links `start` to `stop` - 1, which hang on the last link of another run (-1: on the root)."""

    start: int
    stop: int
    parent: int


def _runs(parents: tuple[int, ...]) -> list[_Run]:
    """The runs of a tree, parents first."""
    children = Counter(parents)
    starts = [i for i, p in enumerate(parents) if p < 0 or p != i - 1 or children[p] > 1]
    stops = [*starts[1:], len(parents)][: len(starts)]  # none of no links
    run_of = {stop - 1: k for k, stop in enumerate(stops)}
    hangs_on = [run_of.get(parents[start], -1) for start in starts]
    return [_Run(*run) for run in zip(starts, stops, hangs_on, strict=True)]


def _pieces(links: Sequence[int]) -> list[tuple[int, int]]:
    """The links as few slices (start, stop) of consecutive numbers."""
    starts = [i for k, i in enumerate(links) if k == 0 or links[k - 1] != i - 1]
    ends = [i + 1 for k, i in enumerate(links) if k + 1 == len(links) or links[k + 1] != i + 1]
    return list(zip(starts, ends, strict=True))


def _give(beyond: dict[int, Any], parent: int, share: Any) -> None:
    beyond[parent] = beyond[parent] + share if parent in beyond else share


def _joined(parts: list) -> Any:
    """One table of the links of several."""

    def join(*parts: Any) -> Any:
        if not _is_column(parts[0]):
            return parts[0]
        return (np if isinstance(parts[0], np.ndarray) else jnp).concatenate(parts)

    return parts[0] if len(parts) == 1 else jax.tree.map(join, *parts)


def _is_column(x: Any) -> bool:
    return isinstance(x, jax.Array | np.ndarray)


def _columns(array: Array) -> Any:
    """Nested lists over all axes but the first; a constant where all links have the same."""
    if array.ndim > 1:
        return [_columns(array[:, k]) for k in range(array.shape[1])]
    if isinstance(array, np.ndarray) and np.all(array == array[0]):
        return float(array[0])
    return array
