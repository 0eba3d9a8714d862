"""Work that is needed now and then, by some members of a batch: only they pay for it."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

T = TypeVar("T")


def when(condition: Bool[Array, ""], change: Callable[[T], T], value: T) -> T:
    """`change(value)` where `condition` holds, else `value`.

    Alone this is `lax.cond`. Under `jax.vmap` that would be computed for all members in every step;
    here the members that need it are taken one by one. Not for reverse-mode derivatives in a batch.
    """
    # One vector for each dtype: XLA copies every array that a branch may change by itself.
    pack, unpack = _packing(value)

    def same_types(*vectors: Any) -> Any:
        value = unpack(vectors)
        return pack(
            jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), change(value), value)
        )

    vectors = pack(value)
    # What `change` refers to from outside must be an argument, or `vmap` would not see it.
    closed = jax.make_jaxpr(same_types)(*vectors)

    def changed(vectors: Any, constants: Any) -> Any:
        return jax.core.eval_jaxpr(closed.jaxpr, constants, *vectors)

    @jax.custom_batching.custom_vmap
    def single(condition: Any, vectors: Any, constants: Any) -> Any:
        return jax.lax.cond(condition, lambda v: changed(v, constants), lambda v: v, vectors)

    @single.def_vmap
    def _(size: int, batched: Any, conditions: Any, vectors: Any, constants: Any) -> Any:
        is_batched, vectors_batched, constants_batched = batched
        if not is_batched:
            conditions = jnp.broadcast_to(conditions, (size,))
        rows = [
            x if b else jnp.broadcast_to(x, (size, *x.shape))
            for x, b in zip(vectors, vectors_batched, strict=True)
        ]

        def one_member(carry: tuple[Any, Any]) -> tuple[Any, Any]:
            waiting, rows = carry
            i = jnp.argmax(waiting)
            mine = [x[i] if b else x for x, b in zip(constants, constants_batched, strict=True)]
            new = changed([x[i] for x in rows], mine)
            return waiting.at[i].set(False), [x.at[i].set(y) for x, y in zip(rows, new)]

        _, rows = jax.lax.while_loop(
            lambda carry: jnp.any(carry[0]), one_member, (conditions, rows)
        )
        return rows, [True] * len(rows)

    return unpack(single(condition, vectors, list(closed.consts)))


def _packing(value: T) -> tuple[Callable[[T], list[Array]], Callable[[Any], T]]:
    """Functions from a tree of arrays to a vector for each dtype, and back."""
    leaves, structure = jax.tree.flatten(value)
    shapes, dtypes = [np.shape(x) for x in leaves], [jnp.result_type(x) for x in leaves]
    kinds = list(dict.fromkeys(dtypes))

    def pack(value: T) -> list[Array]:
        leaves = jax.tree.leaves(value)
        return [
            jnp.concatenate([jnp.ravel(x) for x, d in zip(leaves, dtypes) if d == kind])
            for kind in kinds
        ]

    def unpack(vectors: Any) -> T:
        parts: dict[Any, int] = dict.fromkeys(kinds, 0)
        leaves = []
        for shape, dtype in zip(shapes, dtypes):
            at, size = parts[dtype], int(np.prod(shape))
            leaves.append(vectors[kinds.index(dtype)][at : at + size].reshape(shape))
            parts[dtype] = at + size
        return jax.tree.unflatten(structure, leaves)

    return pack, unpack
