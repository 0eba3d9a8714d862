"""A function of one robot as a kernel: its jaxpr, the machine code, and its derivatives as kernels.

    jvp     the change of the results when some arguments change
    forward, backward
            the function with what its reverse needs, and that reverse: what changes of the results
            mean for those arguments

All are made when they are asked for, from the jaxpr, by JAX. Code is compiled when it is called,
once for each choice of the arguments that all members of a batch share.
"""

import hashlib
import threading
import weakref
from collections.abc import Callable, Sequence
from enum import Enum
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.interpreters import partial_eval

from mime.native.ffi import Entry, call_direct
from mime.native.gradient import reversible
from mime.native.lowering import (
    KernelText,
    Unsupported,
    is_unbounded,
    kernel_text,
    unknown_primitives,
)
from mime.native.machine import (
    NativeError,
    RefusedCodeError,
    compile_ir,
    host,
    optimises,
    strict,
    why_off,
)

NS_PER_OPERATION = 0.4
"""About what an instruction on a vector takes."""
AT_ONCE, NEAR_BYTES = 1024, 2**14
"""A processor that waits for one result works on others if they stand near enough. So a block
treats four vectors of members, or two, while that is at most so many operations, and its workspace
at most half of the nearest cache."""

Flags = tuple[bool, ...]


class Kernel:
    """A pure function of arrays, one member of a batch."""

    def __init__(self, closed: ClosedJaxpr, tangent_of: "Forward | None" = None):
        jaxpr, _ = partial_eval.dce_jaxpr(
            closed.jaxpr, [True] * len(closed.jaxpr.outvars), instantiate=True
        )
        self.closed = ClosedJaxpr(jaxpr, closed.consts)
        self.tangent_of = tangent_of
        self.unbounded = [k for k, a in enumerate(self.closed.out_avals) if is_unbounded(a)]
        self._derived: dict[Any, Kernel] = {}
        self._forwards: dict[Flags, Forward] = {}
        self._entries: dict[Any, Entry | Unsupported] = {}

    @property
    def in_avals(self) -> Sequence[Any]:
        """Shapes and types of the arguments."""
        return self.closed.in_avals

    @property
    def out_avals(self) -> Sequence[Any]:
        """Shapes and types of the results."""
        return self.closed.out_avals

    def why_not(self) -> str | None:
        """Why XLA must take this function; None when there is a rule for all that it does."""
        if reason := why_off():
            return reason
        if unknown := unknown_primitives(self.closed.jaxpr):
            return f"there is no rule for {', '.join(sorted(unknown))}"
        return None

    def entry(self, shared: Flags, members: int | None) -> Entry:
        """The machine code for a number of members; None for one without lanes: plain scalars.

        Raises `Unsupported` where there can be none.
        """
        key = (shared, _Width.of(members, self._lanes))
        if key not in self._entries:
            self._entries[key] = self._attempt(*key)
        found = self._entries[key]
        if isinstance(found, Unsupported):
            raise found
        return found

    @cached_property
    def _lanes(self) -> int:
        """Members in a vector."""
        return host().lanes(64 if _is_double(self.closed.jaxpr) else 32)

    def _attempt(self, shared: Flags, width: "_Width") -> Entry | Unsupported:
        """The machine code, or why there is none."""
        try:
            return self._compile(shared, width)
        except Unsupported as error:
            return error
        except NativeError as error:
            if strict() and isinstance(error, RefusedCodeError):
                raise
            return Unsupported(error)
        except Exception as error:  # a slip of ours is no reason why a user cannot simulate
            if strict():
                raise
            return Unsupported(f"{type(error).__name__} in the lowering: {error}")

    def _compile(self, shared: Flags, width: "_Width") -> Entry:
        lanes = 1 if width is _Width.SCALAR else self._lanes
        fma = host().has_fma
        lowered = kernel_text(self.closed, shared, lanes, fma)
        vectors = _vectors(lowered)
        if width is _Width.BLOCK and vectors > 1:
            lanes *= vectors
            lowered = kernel_text(self.closed, shared, lanes, fma)
        digest = hashlib.sha256(f"{optimises()}\n{lowered.text}".encode()).digest()
        with _lock:
            entry = _loaded.get(digest)
        if entry is None:
            code = compile_ir(lowered.text, ["kernel"])
            entry = Entry(
                code.address("kernel"),
                lanes,
                lowered.workspace_bytes,
                lowered.operations * NS_PER_OPERATION / lanes,
                int.from_bytes(digest[:8], "little", signed=True),
                code,
            )
            with _lock:
                entry = _loaded.setdefault(digest, entry)
        if width is not _Width.SCALAR and vectors == 1:  # one code for both
            self._entries |= dict.fromkeys([(shared, _Width.VECTOR), (shared, _Width.BLOCK)], entry)
        return entry

    def call(
        self,
        args: Sequence[np.ndarray],
        shared: Flags | None = None,
        members: int = 1,
        results: Sequence[np.ndarray | None] | None = None,
        threads: int | None = None,
    ) -> Sequence[np.ndarray]:
        """The results for NumPy arrays of the right types, computed at once, on all cores.

        Arguments have a leading member axis unless they are `shared`; with `shared=None` there is
        one member and no axis. `results` are filled where they are given; those of rows without end
        must be.
        """
        one = shared is None
        entry = self.entry(shared or (True,) * len(self.in_avals), None if one else members)
        lead = () if one else (members,)
        given = results or [None] * len(self.out_avals)
        filled = [
            np.empty((*lead, *a.shape), a.dtype) if x is None else x
            for x, a in zip(given, self.out_avals, strict=True)
        ]
        if self.unbounded:
            distances = [filled[k].strides[0] // filled[k].itemsize for k in self.unbounded]
            args = [*args, np.array(distances, np.int64)]
        call_direct(entry, args, filled, members, threads)
        return filled

    # --- derivatives ----------------------------------------------------------------------------

    def jvp(self, moving: Flags, forward: "Forward | None" = None) -> "Kernel":
        """(*arguments, *changes of those that move) -> changes of the floating results.

        Where a `forward` pass was made for the reverse, what it kept comes between the two. It is
        not needed here, but in the transpose.
        """
        kept = [] if forward is None else forward.kept_avals

        def change(*given: Any) -> list[Any]:
            arguments, rest = given[: len(moving)], iter(given[len(moving) + len(kept) :])
            tangents = [
                next(rest) if moves else _no_tangent(x)
                for x, moves in zip(arguments, moving, strict=True)
            ]
            changes = jax.jvp(jaxpr_as_fun(self.closed), arguments, tuple(tangents))[1]
            return [c for c, a in zip(changes, self.out_avals, strict=True) if _floats(a)]

        moved = [a for a, moves in zip(self.in_avals, moving, strict=True) if moves]
        avals = [*self.in_avals, *kept, *moved]
        return self._derive(("jvp", moving, forward is None), change, avals, forward)

    def forward(self, moving: Flags) -> "Forward":
        """The function, and what its reverse will need of it."""
        if moving not in self._forwards:
            self._forwards[moving] = Forward(self, moving)
        return self._forwards[moving]

    def transposed(self, linear: Flags) -> "Kernel":
        """(*other arguments, *cotangents) -> cotangents of arguments in which this is linear."""

        def pulled(*given: Any) -> list[Any]:
            count = len(linear) - sum(linear)
            fixed = given[:count]

            def of_linear(*free: Any) -> list[Any]:
                known, moved = iter(fixed), iter(free)
                return jaxpr_as_fun(self.closed)(
                    *(next(moved) if is_linear else next(known) for is_linear in linear)
                )

            free = [a for a, is_linear in zip(self.in_avals, linear, strict=True) if is_linear]
            return list(jax.linear_transpose(of_linear, *free)(list(given[count:])))

        fixed = [a for a, is_linear in zip(self.in_avals, linear, strict=True) if not is_linear]
        return self._derive(("transpose", linear), pulled, [*fixed, *self.out_avals])

    def _derive(
        self,
        key: Any,
        function: Callable[..., list[Any]],
        avals: Sequence[Any],
        tangent_of: "Forward | None" = None,
    ) -> "Kernel":
        if key not in self._derived:
            args = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
            self._derived[key] = Kernel(jax.make_jaxpr(function)(*args), tangent_of)
        return self._derived[key]


class _Width(Enum):
    """How many members a block of the code treats."""

    SCALAR = 0
    VECTOR = 1
    BLOCK = 2
    """Of several vectors."""

    @classmethod
    def of(cls, members: int | None, lanes: int) -> "_Width":
        """Members that fit into one vector leave the others of a block nothing to do."""
        if members is None:
            return cls.SCALAR
        return cls.BLOCK if members > lanes else cls.VECTOR


def _vectors(lowered: KernelText) -> int:
    """How many vectors of members a block treats at once."""
    fitting = min(
        AT_ONCE // max(1, lowered.arithmetic), NEAR_BYTES // max(1, lowered.workspace_bytes)
    )
    return next((n for n in (4, 2) if n <= fitting), 1)


class Forward:
    """A kernel that keeps what its reverse needs, and the kernels of that reverse.

    What is kept is what `jax.vjp` keeps; arguments among it are not kept twice.
    """

    def __init__(self, kernel: Kernel, moving: Flags):
        self.of, self.moving = kernel, moving
        self.floating = [_floats(a) for a in kernel.out_avals]
        self._reverses: dict[Flags, Kernel] = {}
        function = reversible(kernel.closed)

        def run(*arguments: Any) -> list[Any]:
            free = [x for x, moves in zip(arguments, moving, strict=True) if moves]

            def of_free(*free: Any) -> tuple[list[Any], list[Any]]:
                rest = iter(free)
                whole = [next(rest) if m else x for x, m in zip(arguments, moving, strict=True)]
                results = function(*whole)
                sides: tuple[list[Any], list[Any]] = [], []
                for x, floats in zip(results, self.floating, strict=True):
                    sides[not floats].append(x)
                return sides

            values, reverse, others = jax.vjp(of_free, *free, has_aux=True)
            leaves, self.treedef = jax.tree.flatten(reverse)
            places = {id(x): k for k, x in enumerate(arguments)}
            self.sources = [places.get(id(x), -1) for x in leaves]
            kept = [x for x, k in zip(leaves, self.sources, strict=True) if k < 0]
            both = iter(values), iter(others)
            return [*(next(both[not floats]) for floats in self.floating), *kept]

        args = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in kernel.in_avals]
        self.kernel = Kernel(jax.make_jaxpr(run)(*args))
        self.kept_avals = self.kernel.out_avals[len(self.floating) :]

    def reverse(self, seen: Flags) -> Kernel:
        """(*arguments, *kept, *cotangents of the `seen` results) -> those of what moves."""
        if seen not in self._reverses:
            count = len(self.moving)
            floating = [a for a in self.of.out_avals if _floats(a)]
            wanted = [a for a, is_seen in zip(floating, seen, strict=True) if is_seen]

            def run(*given: Any) -> list[Any]:
                arguments = given[:count]
                kept = iter(given[count : count + len(self.kept_avals)])
                leaves = [arguments[k] if k >= 0 else next(kept) for k in self.sources]
                cotangents = iter(given[count + len(self.kept_avals) :])
                return list(
                    jax.tree.unflatten(self.treedef, leaves)(
                        [
                            next(cotangents) if is_seen else jnp.zeros(a.shape, a.dtype)
                            for a, is_seen in zip(floating, seen, strict=True)
                        ]
                    )
                )

            avals = [*self.of.in_avals, *self.kept_avals, *wanted]
            args = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
            self._reverses[seen] = Kernel(jax.make_jaxpr(run)(*args))
        return self._reverses[seen]


_loaded: "weakref.WeakValueDictionary[bytes, Entry]" = weakref.WeakValueDictionary()
_lock = threading.Lock()


def _floats(aval: Any) -> bool:
    return jnp.issubdtype(aval.dtype, jnp.floating)


def _no_tangent(x: Any) -> Any:
    if _floats(x):
        return jnp.zeros(x.shape, x.dtype)
    return np.zeros(x.shape, jax.dtypes.float0)


def _is_double(jaxpr: Any, seen: set[int] | None = None) -> bool:
    """True when a float64 occurs anywhere."""
    seen = set() if seen is None else seen
    if id(jaxpr) in seen:  # a function that is called again
        return False
    seen.add(id(jaxpr))
    variables = [*jaxpr.invars, *jaxpr.constvars, *(v for eqn in jaxpr.eqns for v in eqn.outvars)]
    if any(getattr(v.aval, "dtype", None) == np.float64 for v in variables):
        return True
    return any(
        _is_double(getattr(inner, "jaxpr", inner), seen)
        for eqn in jaxpr.eqns
        for value in eqn.params.values()
        for inner in (value if isinstance(value, tuple | list) else (value,))
        if hasattr(inner, "jaxpr") or hasattr(inner, "eqns")
    )
