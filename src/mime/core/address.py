"""The address of a parameter: one string, everywhere the same.

    motor.r_ohm                  a parameter of a node
    motor.gear.ratio             a parameter of an effect
    arm.link[forearm].mass_kg    one entry of an array, by the name of its link or joint
    arm.tree.masses              the whole array
    arm.link[forearm].com_m[2]   one number of an array, counted from 0; [0,1] of a matrix

Scenario files, sweeps, fits, reports and `with_parameters` all resolve it here.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mime._text import counted, nearest, quoted
from mime.core.arguments import mapping, numbers
from mime.core.parameters import NamedEntries, Parameterised, declared
from mime.core.problem import ParameterError, Problem
from mime.core.spec import ParameterSpec

Owner = TypeVar("Owner", bound=Parameterised)

_PART = re.compile(r"(\w+)(?:\[([^\]]*)\])?")
_COUNT = re.compile(r"\d{1,6}(?:,\d{1,6})*")
_ADDRESS = re.compile(rf"{_PART.pattern}(?:\.{_PART.pattern})*")


@dataclasses.dataclass(frozen=True)
class Leaf:
    """Where an address leads within a node: an array, or one entry of it."""

    path: tuple[str, ...]
    index: tuple[int, ...] | None
    spec: ParameterSpec | None
    """Unit and range, where the parameter declares them."""

    def of(self, node: Parameterised) -> Any:
        """The value there; None where the parameter is absent."""
        value: Any = node
        for part in self.path:
            value = getattr(value, part)
        return value if self.index is None else value[self.index]

    def replaced(self, node: Owner, value: Any) -> Owner:
        """The node with `value` there, at the old value's dtype; unchecked."""
        array: Any = dataclasses.replace(self, index=None).of(node)
        dtype = array.dtype if isinstance(array, jax.Array) else jnp.result_type(float)
        new = jnp.asarray(value, dtype=dtype)
        if self.index is not None:
            new = jnp.asarray(array, dtype=dtype).at[self.index].set(new)

        def where(node: Any) -> Any:
            for part in self.path:
                node = getattr(node, part)
            return node

        return eqx.tree_at(where, node, new, is_leaf=lambda x: x is None)


def split_addresses(parameters: Mapping[str, Any] | None) -> Iterator[tuple[str, str, Any]]:
    """`(node, parameter, value)` of `{"motor.gear.ratio": 5}` or `{"motor": {"gear.ratio": 5}}`."""
    form = "{'node.parameter': value}"
    for name, value in mapping("parameters", parameters, form).items():
        if isinstance(value, Mapping):
            mapping(f"parameters[{name!r}]", value, form)
            yield from ((name, inner, entry) for inner, entry in value.items())
        else:
            node, _, rest = name.partition(".")
            yield node, rest, value


def find(node: Parameterised, address: str) -> Leaf:
    """Where `address` (without the node's name) leads; a `ParameterError` names the nearest."""
    parts = _split(node, address)
    target: Any = node
    spec: ParameterSpec | None = None
    for count, (part, name) in enumerate(parts):
        if name is not None and not _is_counted(target, part, name):
            entries = _entries(node, address, part, [p for p, _ in parts[count + 1 :]])
            if name not in entries.names:
                near = nearest(name, entries.names, 3)
                known = f"It has {counted(name, entries.names, part)}"
                message = f"no {part} {name!r}{near}"
                raise ParameterError(node.label, [Problem((address,), message, known, "has")])
            leaf = dataclasses.replace(find(node, entries.leaf), index=(entries.names.index(name),))
            last = parts[-1][1] if count + 1 < len(parts) else None
            return leaf if last is None else _entry(node, address, leaf, last)
        names = _names(target)
        if part not in names:
            absent = f"no {parts[count - 1][0]}" if target is None else f"no parameter {part!r}"
            _refuse(node, address, absent, part, names)
        is_module = isinstance(target, eqx.Module)
        spec = declared(type(target), "parameter").get(part) if is_module else None
        target = getattr(target, part)
    if not isinstance(target, jax.Array | np.ndarray | None):
        _refuse(node, address, f"no number at {address!r}", "", _names(target))
    leaf = Leaf(tuple(part for part, _ in parts), None, spec)
    return leaf if parts[-1][1] is None else _entry(node, address, leaf, parts[-1][1])


def _is_counted(target: Any, part: str, name: str) -> bool:
    """True of `[2]` or `[0,1]` behind an array, which is no name of an entry."""
    array = getattr(target, part, None) if part in _names(target) else None
    return isinstance(array, jax.Array | np.ndarray) and _COUNT.fullmatch(name) is not None


def _entry(node: Parameterised, address: str, leaf: Leaf, count: str) -> Leaf:
    """The leaf of one number of the array at `leaf`."""
    shape = np.shape(leaf.of(node))
    index = tuple(int(i) for i in count.split(",")) if _COUNT.fullmatch(count) else ()
    if len(index) != len(shape) or any(i >= n for i, n in zip(index, shape, strict=True)):
        message = f"no entry [{count}]: the array has shape {shape}"
        raise ParameterError(node.label, [Problem((address,), message, label="has")])
    return dataclasses.replace(leaf, index=(*(leaf.index or ()), *index))


def replace_value(node: Owner, address: str, value: Any) -> Owner:
    """`node` with another value at `address`, at the old one's shape and dtype; unchecked."""
    leaf = find(node, address)
    old = leaf.of(node)
    numbers(address, value, where=f"{node.label}: ")
    if old is not None and np.shape(value) != np.shape(old):
        message = f"has shape {np.shape(old)}, got {np.shape(value)}"
        raise ParameterError(node.label, [Problem((address,), message)])
    return leaf.replaced(node, value)


def _split(node: Parameterised, address: str) -> list[tuple[str, str | None]]:
    """`link[forearm].mass_kg` -> [("link", "forearm"), ("mass_kg", None)]."""
    if not _ADDRESS.fullmatch(address):
        problem = Problem((address,), "is no address of a parameter", "Write it like gear.ratio")
        raise ParameterError(node.label, [problem])
    return [(match[1], match[2]) for match in _PART.finditer(address)]


def _entries(node: Parameterised, address: str, group: str, rest: list[str]) -> NamedEntries:
    groups = node.named_entries()
    if group not in groups:
        _refuse(node, address, f"nothing named {group!r}", group, list(groups))
    field = rest[0] if len(rest) == 1 else ".".join(rest)
    if field not in groups[group]:
        _refuse(node, address, f"a {group} with no {field!r}", field, list(groups[group]))
    return groups[group][field]


def _names(target: Any) -> list[str]:
    """What can follow in an address: parameters and effects, or the fields of a plain module."""
    if isinstance(target, Parameterised):
        return [*target.params, *target.effect_types()]
    return list(vars(target)) if isinstance(target, eqx.Module) else []


def _refuse(node: Parameterised, address: str, what: str, name: str, names: list[str]) -> None:
    if now := type(node).now(name):
        raise ParameterError(node.label, [Problem((address,), now)])
    known = f". It has {quoted(names)}" if names else ""
    message = f"{what}{nearest(name, names)}{known}"
    raise ParameterError(node.label, [Problem((address,), message, label="has")])
