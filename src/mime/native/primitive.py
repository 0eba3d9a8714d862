"""A kernel as one operation of JAX, which `jit`, `vmap` and derivatives go through.

Its parameter is the kernel, a function of one member. Each transformation has one rule here:
a batch adds an axis of members, and a derivative is the kernel of the derivative. Where there is no
machine code (another platform, an operation without a rule), XLA compiles the same jaxpr.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

from mime.native.ffi import ffi_call
from mime.native.kernel import Flags, Kernel
from mime.native.lowering import Unsupported
from mime.native.lowering.program import STRUCTURED
from mime.native.machine import why_off


def ad_linearizations() -> dict[Any, Any]:
    """JAX's table of rules for `jax.linearize`, which `jax.interpreters` does not show."""
    from jax._src.interpreters import ad as private

    return private.primitive_linearizations


kernel_call = Primitive("mime_kernel")
kernel_call.multiple_results = True


def bind(kernel: Kernel, args: Sequence[Any]) -> list[Any]:
    """The results of a kernel for one member."""
    return kernel_call.bind(*args, kernel=kernel, batch=(), shared=(True,) * len(args))


def _types(*args: Any, kernel: Kernel, batch: tuple[int, ...], shared: Flags) -> list[Any]:
    return [jax.core.ShapedArray((*batch, *a.shape), a.dtype) for a in kernel.out_avals]


def _now(*args: Any, kernel: Kernel, batch: tuple[int, ...], shared: Flags) -> list[Any]:
    """Outside of `jit`: straight to the machine code."""
    try:
        results = _called(kernel, [np.asarray(x) for x in args], batch, shared)
    except Unsupported:
        return jax.jit(lambda *a: _in_xla(*a, kernel=kernel, batch=batch, shared=shared))(*args)
    return jax.device_put(list(results))


kernel_call.def_abstract_eval(_types)
kernel_call.def_impl(_now)


def _called(
    kernel: Kernel, args: Sequence[np.ndarray], batch: tuple[int, ...], shared: Flags
) -> list[np.ndarray]:
    flat = [np.ascontiguousarray(x) for x in args]
    if not batch:
        return list(kernel.call(flat))
    members = int(np.prod(batch))
    results = [np.empty((*batch, *a.shape), a.dtype) for a in kernel.out_avals]
    if members:
        kernel.call(flat, shared, members, results)
    return results


def _in_xla(*args: Any, kernel: Kernel, batch: tuple[int, ...], shared: Flags) -> list[Any]:
    """The jaxpr itself, for all members."""
    function = jaxpr_as_fun(kernel.closed)
    axes = [None if is_shared else 0 for is_shared in shared]
    for _ in batch:
        function = jax.vmap(function, in_axes=axes)
    return function(*args)


def _through_ffi(*args: Any, kernel: Kernel, batch: tuple[int, ...], shared: Flags) -> list[Any]:
    members = int(np.prod(batch, dtype=np.int64))
    entry = kernel.entry(shared, members if batch else None)
    flat = [
        x if is_shared else jnp.reshape(x, (members, *a.shape))
        for x, is_shared, a in zip(args, shared, kernel.in_avals, strict=True)
    ]
    lead = (members,) if batch else ()
    types = [jax.ShapeDtypeStruct((*lead, *a.shape), a.dtype) for a in kernel.out_avals]
    results = ffi_call(entry, members, flat, types)
    return [
        jnp.reshape(x, (*batch, *a.shape)) for x, a in zip(results, kernel.out_avals, strict=True)
    ]


def _lower_for_cpu(ctx: Any, *args: Any, **params: Any) -> Any:
    kernel, batch, shared = params["kernel"], params["batch"], params["shared"]
    if why_off() or 0 in batch:  # also of what was traced before the environment said so
        return mlir.lower_fun(_in_xla, multiple_results=True)(ctx, *args, **params)
    try:
        members = int(np.prod(batch)) if batch else None
        ctx.module_context.add_keepalive(kernel.entry(shared, members))
    except Unsupported:
        return mlir.lower_fun(_in_xla, multiple_results=True)(ctx, *args, **params)
    return mlir.lower_fun(_through_ffi, multiple_results=True)(ctx, *args, **params)


mlir.register_lowering(kernel_call, _lower_for_cpu, platform="cpu")
mlir.register_lowering(kernel_call, mlir.lower_fun(_in_xla, multiple_results=True))


def _batched(
    args: Sequence[Any], dims: Sequence[Any], *, kernel: Kernel, batch: Any, shared: Flags
) -> tuple[list[Any], list[int]]:
    """One more axis of members in front; what all of them share stays without."""
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    moved, still_shared = [], []
    for x, d, is_shared, aval in zip(args, dims, shared, kernel.in_avals, strict=True):
        if d is None:
            still_shared.append(is_shared)
            moved.append(x if is_shared else jnp.broadcast_to(x, (size, *x.shape)))
            continue
        x = jnp.moveaxis(x, d, 0)
        if is_shared and batch:
            spread = x.reshape(size, *(1 for _ in batch), *aval.shape)
            x = jnp.broadcast_to(spread, (size, *batch, *aval.shape))
        still_shared.append(False)
        moved.append(x)
    results = kernel_call.bind(
        *moved, kernel=kernel, batch=(size, *batch), shared=tuple(still_shared)
    )
    return results, [0] * len(results)


batching.primitive_batchers[kernel_call] = _batched


def _changed(
    primals: Sequence[Any], tangents: Sequence[Any], *, kernel: Kernel, batch: Any, shared: Flags
) -> tuple[list[Any], list[Any]]:
    results = kernel_call.bind(*primals, kernel=kernel, batch=batch, shared=shared)
    moving = tuple(not isinstance(t, ad.Zero) for t in tangents)
    still = [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in results]
    if not any(moving):
        return results, still
    given = [t for t, moves in zip(tangents, moving, strict=True) if moves]
    flags = (*shared, *(s for s, moves in zip(shared, moving, strict=True) if moves))
    changes = iter(
        kernel_call.bind(*primals, *given, kernel=kernel.jvp(moving), batch=batch, shared=flags)
    )
    return results, [
        next(changes) if jnp.issubdtype(a.dtype, jnp.floating) else zero
        for a, zero in zip(kernel.out_avals, still, strict=True)
    ]


ad.primitive_jvps[kernel_call] = _changed


def _linearised(
    is_vjp: bool,
    nonzero: Sequence[bool],
    *primals: Any,
    kernel: Kernel,
    batch: tuple[int, ...],
    shared: Flags,
) -> tuple[list[Any], list[bool], Any, Any]:
    """Results now, and a linear function of changes; for the reverse, with what it will need."""
    floats = [jnp.issubdtype(a.dtype, jnp.floating) for a in kernel.in_avals]
    moving = tuple(a and b for a, b in zip(nonzero, floats, strict=True))
    forward = kernel.forward(moving) if is_vjp else None
    made = kernel_call.bind(
        *primals, kernel=forward.kernel if forward else kernel, batch=batch, shared=shared
    )
    count = len(kernel.out_avals)
    results, kept = made[:count], made[count:]
    flags = (*shared, *(not batch for _ in kept))
    flags = (*flags, *(s for s, moves in zip(shared, moving, strict=True) if moves))

    def linear(residuals: Any, *tangents: Any) -> list[Any]:
        primals, kept = residuals
        given = [
            ad.instantiate_zeros(t) for t, moves in zip(tangents, moving, strict=True) if moves
        ]
        changes = iter(
            kernel_call.bind(
                *primals,
                *kept,
                *given,
                kernel=kernel.jvp(moving, forward),
                batch=batch,
                shared=flags,
            )
        )
        return [
            next(changes) if is_floating else ad.Zero(jax.typeof(x).to_tangent_aval())
            for x, is_floating in zip(results, out_floats, strict=True)
        ]

    out_floats = [bool(jnp.issubdtype(a.dtype, jnp.floating)) for a in kernel.out_avals]
    return results, out_floats, (list(primals), list(kept)), linear


ad_linearizations()[kernel_call] = _linearised


def _pulled_back(
    cotangents: Sequence[Any], *args: Any, kernel: Kernel, batch: Any, shared: Flags
) -> list[Any]:
    """Cotangents of the arguments in which the kernel is linear; of shared ones, summed."""
    linear = tuple(ad.is_undefined_primal(x) for x in args)
    known = [x for x, is_linear in zip(args, linear, strict=True) if not is_linear]
    flags = [s for s, is_linear in zip(shared, linear, strict=True) if not is_linear]
    forward = kernel.tangent_of
    seen = tuple(not isinstance(c, ad.Zero) for c in cotangents)
    if forward and linear == (*(False,) * len(known), *(True,) * sum(forward.moving)):
        given = [c for c, wanted in zip(cotangents, seen, strict=True) if wanted]
        backward = forward.reverse(seen)
    else:
        given = [ad.instantiate_zeros(c) for c in cotangents]
        backward = kernel.transposed(linear)
    results = iter(
        kernel_call.bind(
            *known,
            *given,
            kernel=backward,
            batch=batch,
            shared=(*flags, *(not batch for _ in given)),
        )
    )
    axes = tuple(range(len(batch)))
    pulled: list[Any] = []
    for is_linear, is_shared in zip(linear, shared, strict=True):
        if not is_linear:
            pulled.append(None)
            continue
        x = next(results)
        pulled.append(jnp.sum(x, axis=axes) if is_shared and batch else x)
    return pulled


ad.primitive_transposes[kernel_call] = _pulled_back


def _inside_another(program: Any, eqn: Any, operands: Any, last: Any, homes: Any) -> Any:
    """A kernel in the jaxpr of a kernel is lowered where it stands."""
    args = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.invars]
    inner = jax.make_jaxpr(lambda *a: _in_xla(*a, **eqn.params))(*args)
    return program.run(inner.jaxpr, inner.consts, operands)


STRUCTURED[kernel_call.name] = _inside_another
