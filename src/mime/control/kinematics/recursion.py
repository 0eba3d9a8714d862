"""Recursions over the links as loops of the compiled program, for trees too large to unroll.

Unrolled, every link is compiled by itself, with the constants of its own joint folded. In a loop
all links share one body, and a long chain compiles in seconds instead of minutes. The scalars of
`scalar.py` are arrays here with one entry per link, their **columns**.

A loop goes along a **run** of links, each the only child of the one before: a chain is one run, and
a branch begins another. (One loop over all links, with the parent's value fetched by its index,
compiles sooner and runs more slowly.) benchmarks/joints.py measures both sides.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from mime.control.kinematics.scalar import Array
from mime.control.kinematics.tree import KinematicTree, path_to_root
from mime.xla.keep_call import keep_call

T = TypeVar("T")

UNROLLED_FRAMES, UNROLLED_MASSES, UNROLLED_SOLVES, UNROLLED_TORQUES = 4, 6, 10, 16
"""The most links for which a recursion is unrolled: for all frames or a Jacobian, for the mass
matrix, for the forward dynamics of many robots, and for the torques or the motion of one link.
`benchmarks/kinematics.py` measures them.
"""
INLINED_SOLVES = 6
"""The most links for which the forward dynamics of one robot is unrolled without `keep_call`."""


def is_large(
    tree: KinematicTree, few: int, *arguments: Array | None, link_idx: int | None = None
) -> bool:
    """True when the links (all, or those that carry `link_idx`) are more than `few` and there is an
    array to compile for.
    """
    links = tree.num_links if link_idx is None else len(path_to_root(tree, link_idx))
    return links > few and any(isinstance(x, jax.Array) for x in arguments)


def use_loops(
    tree: KinematicTree, few: int, *arguments: Array | None, link_idx: int | None = None
) -> bool:
    """True when the tree is large and has no mimic joints, which need the unrolled form."""
    return tree.num_links == tree.num_joints and is_large(tree, few, *arguments, link_idx=link_idx)


class Run(NamedTuple):
    """Links `start` to `stop` - 1, which hang on the last link of another run (-1: on the root)."""

    start: int
    stop: int
    parent: int


def runs(parent_idxs: tuple[int, ...]) -> list[Run]:
    """The runs of a tree, parents first."""
    children = Counter(parent_idxs)
    starts = [i for i, p in enumerate(parent_idxs) if p < 0 or p != i - 1 or children[p] > 1]
    stops = [*starts[1:], len(parent_idxs)]
    run_of = {stop - 1: k for k, stop in enumerate(stops)}
    parents = [run_of.get(parent_idxs[start], -1) for start in starts]
    return [Run(*run) for run in zip(starts, stops, parents, strict=True)]


def runs_to(parent_idxs: tuple[int, ...], link_idx: int) -> list[Run]:
    """The links from the root to this one, in as few runs as their numbers allow."""
    stops: list[int] = []
    starts: list[int] = []
    i = link_idx
    while i >= 0:
        stops.insert(0, i + 1)
        while parent_idxs[i] == i - 1 >= 0:
            i -= 1
        starts.insert(0, i)
        i = parent_idxs[i]
    return [
        Run(start, stop, k - 1) for k, (start, stop) in enumerate(zip(starts, stops, strict=True))
    ]


def of_runs(tree_runs: Sequence[Run], links: T) -> T:
    """The columns of those links that are in these runs."""
    varying, constant = eqx.partition(links, eqx.is_array)
    parts = [jax.tree.map(lambda x, run=run: x[run.start : run.stop], varying) for run in tree_runs]
    return eqx.combine(_joined(parts), constant)


def scattered(tree_runs: Sequence[Run], rows: jax.Array, num_links: int) -> jax.Array:
    """Rows with one entry per link of these runs, widened to all links by zeros."""
    parts, done, column = [], 0, 0
    for start, stop, _ in tree_runs:
        parts += [jnp.zeros((len(rows), start - done), rows.dtype)]
        parts += [rows[:, column : column + stop - start]]
        done, column = stop, column + stop - start
    return jnp.concatenate([*parts, jnp.zeros((len(rows), num_links - done), rows.dtype)], axis=1)


def columns(array: Array, dtype: DTypeLike) -> Any:
    """`unpack` that keeps the links together: nested lists over all axes but the first.

    An entry that is the same constant for all links stays a constant, and folds.
    """
    if array.ndim > 1:
        return [columns(array[:, k], dtype) for k in range(array.shape[1])]
    if isinstance(array, np.ndarray) and np.all(array == array[0]):
        return float(array[0])
    return jnp.asarray(array, dtype)


def common_dtype(*values: Any) -> DTypeLike:
    """The dtype that all JAX arrays among the values share; constants do not count."""
    arrays = (x for x in jax.tree.leaves(values) if isinstance(x, jax.Array))
    return jnp.result_type(jnp.float32, *arrays)


def outward(
    tree_runs: Sequence[Run], step: Callable[[T, Any], T], root: T, links: Any, dtype: DTypeLike
) -> T:
    """value_i = step(value_parent, link_i), from the root to the tips; returns all, as columns."""
    ends, parts = [_arrays(root, dtype)], []
    for run in tree_runs:
        end, values = _along(
            run, lambda value, link: 2 * (step(value, link),), ends[run.parent + 1], links, dtype
        )
        ends.append(end)
        parts.append(values)
    return _joined(parts)


def inward(
    tree_runs: Sequence[Run],
    step: Callable[[T, Any], tuple[T, Any]],
    tip: T,
    links: Any,
    dtype: DTypeLike,
) -> Any:
    """share_i, kept_i = step(Σ share_children, link_i), from the tips to the root.

    At the tips the sum is `tip`. Returns all that is kept, as columns.
    """
    shares, parts = [_arrays(tip, dtype)] * (len(tree_runs) + 1), []
    for k, run in reversed(list(enumerate(tree_runs))):
        share, kept = _along(run, step, shares[k + 1], links, dtype, reverse=True)
        shares[run.parent + 1] = jax.tree.map(jnp.add, shares[run.parent + 1], share)
        parts.append(kept)
    return _joined(parts[::-1])


def _along(
    run: Run,
    step: Callable[[T, Any], tuple[T, Any]],
    start: T,
    links: Any,
    dtype: DTypeLike,
    reverse: bool = False,
) -> tuple[T, Any]:
    varying, constant = eqx.partition(links, eqx.is_array)
    varying = jax.tree.map(lambda x: x[run.start : run.stop], varying)

    def body(carry: T, link: Any) -> tuple[T, Any]:
        return _arrays(step(carry, eqx.combine(link, constant)), dtype)

    return jax.lax.scan(body, start, varying, length=run.stop - run.start, reverse=reverse)


def _arrays(value: T, dtype: DTypeLike) -> T:
    return jax.tree.map(lambda x: jnp.asarray(x, dtype), value)


def _joined(parts: list[T]) -> T:
    if len(parts) == 1:
        return parts[0]
    return keep_call(partial(jax.tree.map, lambda *columns: jnp.concatenate(columns)), *parts)
