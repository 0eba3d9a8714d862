"""Work that is needed now and then, by some members of a batch: only they pay for it."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

T = TypeVar("T")


def when(condition: Bool[Array, ""], change: Callable[[T], T], value: T) -> T:
    """`change(value)` where `condition` holds, else `value`.

    Alone this is `lax.cond`. Under `jax.vmap` that would be computed for all members in every step;
    here the members that need it are taken one by one. Not for reverse-mode derivatives in a batch.
    """
    leaves, structure = jax.tree.flatten(value)

    def same_types(*leaves: Any) -> Any:
        value = jax.tree.unflatten(structure, leaves)
        new = jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), change(value), value)
        return jax.tree.leaves(new)

    # What `change` refers to from outside must be an argument, or `vmap` would not see it.
    closed = jax.make_jaxpr(same_types)(*leaves)

    def convert(leaves: Any, constants: Any) -> Any:
        return jax.core.eval_jaxpr(closed.jaxpr, constants, *leaves)

    @jax.custom_batching.custom_vmap
    def single(condition: Any, value: Any, constants: Any) -> Any:
        return jax.lax.cond(condition, lambda v: convert(v, constants), lambda v: v, value)

    @single.def_vmap
    def _(size: int, batched: Any, conditions: Any, values: Any, constants: Any) -> Any:
        is_batched, values_batched, constants_batched = batched
        if not is_batched:
            conditions = jnp.broadcast_to(conditions, (size,))
        values = jax.tree.map(
            lambda x, b: x if b else jnp.broadcast_to(x, (size, *x.shape)), values, values_batched
        )

        def one_member(carry: tuple[Any, Any]) -> tuple[Any, Any]:
            waiting, values = carry
            i = jnp.argmax(waiting)
            mine = [x[i] if b else x for x, b in zip(constants, constants_batched, strict=True)]
            new = convert(jax.tree.map(lambda x: x[i], values), mine)
            values = jax.tree.map(lambda x, y: x.at[i].set(y), values, new)
            return waiting.at[i].set(False), values

        _, values = jax.lax.while_loop(
            lambda carry: jnp.any(carry[0]), one_member, (conditions, values)
        )
        return values, jax.tree.map(lambda _: True, values)

    return jax.tree.unflatten(structure, single(condition, leaves, list(closed.consts)))
