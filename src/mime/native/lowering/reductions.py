"""Sums, products, extremes along axes, scans of them, and products of matrices."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from mime.native.lowering.elementwise import ELEMENTS
from mime.native.lowering.emitter import Emitter
from mime.native.lowering.values import Unsupported, Value, as_objects, registers, type_of

JOINS = {
    "reduce_sum": "add",
    "reduce_prod": "mul",
    "reduce_max": "max",
    "reduce_min": "min",
    "reduce_or": "or",
    "reduce_and": "and",
    "reduce_xor": "xor",
    "cumsum": "add",
    "cumprod": "mul",
    "cummax": "max",
    "cummin": "min",
}


def neutral(join: str, dtype: Any) -> Any:
    """What joins to anything and leaves it as it is."""
    kind = np.dtype(dtype).kind
    if join in ("max", "min"):
        if kind == "f":
            return -np.inf if join == "max" else np.inf
        if kind == "b":
            return join == "min"
        info = np.iinfo(dtype)
        return int(info.min if join == "max" else info.max)
    plain = {"add": 0, "mul": 1, "or": 0, "xor": 0, "and": -1}[join]
    return bool(plain) if kind == "b" else float(plain) if kind == "f" else plain


def joiner(e: Emitter, eqn: Any, join: str) -> Callable[[Any, Any], Any]:
    """How two elements become one."""
    type_ = type_of(eqn.invars[0].aval.dtype)
    rule, numbers = (
        ELEMENTS[join],
        getattr(np, {"max": "maximum", "min": "minimum"}.get(join, ""), None),
    )

    def joined(x: Any, y: Any) -> Any:
        if numbers is not None and not isinstance(x, Value) and not isinstance(y, Value):
            return numbers(x, y).item()
        return rule(e, x, y, type_, eqn)

    return joined


def lower_reduction(e: Emitter, eqn: Any, x: np.ndarray) -> np.ndarray:
    """Join along axes, from the first element to the last."""
    join = JOINS[eqn.primitive.name]
    axes = eqn.params["axes"]
    if x.dtype != object:
        folded: Any = {
            "add": np.sum, "mul": np.prod, "max": np.max, "min": np.min,
            "or": np.bitwise_or.reduce, "and": np.bitwise_and.reduce,
        }.get(join)  # fmt: skip
        if folded and x.size:
            return np.asarray(folded(x, axis=axes), eqn.outvars[0].aval.dtype)
    shape = eqn.outvars[0].aval.shape
    count = math.prod([x.shape[a] for a in axes])
    if x.size == 0:
        start = neutral(join, eqn.invars[0].aval.dtype)
        return np.full(shape, start, eqn.outvars[0].aval.dtype)
    rows = np.moveaxis(as_objects(x), axes, range(len(axes))).reshape(count, -1)
    joined = joiner(e, eqn, join)
    results = []
    for k in range(rows.shape[1]):
        total = rows[0, k]
        for part in rows[1:, k]:
            total = joined(total, part)
        results.append(total)
    return registers(results, shape)


def lower_cumulative(e: Emitter, eqn: Any, x: np.ndarray) -> np.ndarray:
    """Join all before and with each element along one axis."""
    if eqn.primitive.name not in JOINS:
        raise Unsupported(eqn.primitive.name)
    joined = joiner(e, eqn, JOINS[eqn.primitive.name])
    axis, back = eqn.params["axis"], eqn.params["reverse"]
    rows = np.moveaxis(as_objects(x), axis, 0).copy()
    flat = rows.reshape(rows.shape[0], -1)
    order = list(range(rows.shape[0]))
    for before, now in pairwise(order[::-1] if back else order):
        for k in range(flat.shape[1]):
            flat[now, k] = joined(flat[before, k], flat[now, k])
    return np.moveaxis(flat.reshape(rows.shape), 0, axis)


def lower_dot(e: Emitter, eqn: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Σ_k a_ik b_kj, batched axes first."""
    (ka, kb), (ba, bb) = eqn.params["dimension_numbers"]
    out = eqn.outvars[0].aval
    if a.dtype != object and b.dtype != object and not ba:
        folded = np.tensordot(a.astype(out.dtype), b.astype(out.dtype), axes=(list(ka), list(kb)))
        return np.asarray(folded, out.dtype)
    type_ = type_of(out.dtype)
    if any(v.aval.dtype != out.dtype for v in eqn.invars):
        raise Unsupported("dot_general to another type")
    free_a = [i for i in range(a.ndim) if i not in (*ka, *ba)]
    free_b = [i for i in range(b.ndim) if i not in (*kb, *bb)]
    batch = math.prod([a.shape[i] for i in ba])
    inner = math.prod([a.shape[i] for i in ka])
    rows, columns = (
        math.prod([x.shape[i] for i in free]) for x, free in ((a, free_a), (b, free_b))
    )
    left = as_objects(a).transpose(*ba, *free_a, *ka).reshape(batch, rows, inner)
    right = as_objects(b).transpose(*bb, *free_b, *kb).reshape(batch, columns, inner)
    results = []
    for k in range(batch):
        for row in left[k].tolist():
            for column in right[k].tolist():
                total: Any = out.dtype.type(0).item()
                for x, y in zip(row, column, strict=True):
                    total = e.add(e.mul(x, y, type_), total, type_)
                results.append(total)
    return registers(results, out.shape)


def lower_arg_extreme(e: Emitter, eqn: Any, x: np.ndarray) -> np.ndarray:
    """The first index of the largest or smallest element; that of a NaN comes before all."""
    axes = eqn.params["axes"]
    if len(axes) != 1:
        raise Unsupported(f"{eqn.primitive.name} over several axes")
    source, target = eqn.invars[0].aval.dtype, type_of(eqn.params["index_dtype"])
    type_ = type_of(source)
    rows = np.moveaxis(as_objects(x), axes[0], 0)
    flat, results = rows.reshape(rows.shape[0], -1), []
    floating = type_ in ("double", "float")
    signs = "u" if np.issubdtype(source, np.unsignedinteger) or type_ == "i1" else "s"
    larger = eqn.primitive.name == "argmax"
    code = (
        f"fcmp o{'gt' if larger else 'lt'}"
        if floating
        else f"icmp {signs}{'gt' if larger else 'lt'}"
    )
    for k in range(flat.shape[1]):
        best, index = flat[0, k], 0
        for i in range(1, flat.shape[0]):
            candidate = flat[i, k]
            better: Any = e.compare(code, candidate, best, type_)
            if floating:
                is_nan = e.compare("fcmp uno", candidate, candidate, type_)
                was_number = e.compare("fcmp ord", best, best, type_)
                better = e.op("or", "i1", better, e.op("and", "i1", is_nan, was_number))
            best = e.select(better, candidate, best, type_)
            index = e.select(better, i, index, target)
        results.append(index)
    return registers(results, eqn.outvars[0].aval.shape)


REDUCTIONS: dict[str, Any] = {
    **{name: lower_reduction for name in JOINS if name.startswith("reduce")},
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin"), lower_cumulative),
    "dot_general": lower_dot,
    "argmax": lower_arg_extreme,
    "argmin": lower_arg_extreme,
}
