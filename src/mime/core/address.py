"""The address of a parameter: one string, everywhere the same.

    motor.r_ohm                  a parameter of a node
    motor.gear.ratio             a parameter of an effect
    arm.link[forearm].mass_kg    one entry of an array, by the name of its link or joint
    arm.tree.masses              the whole array

Scenario files, sweeps, fits, reports and `with_parameters` all resolve it here.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mime._text import nearest, quoted
from mime.core.parameters import Parameterised
from mime.core.problem import ParameterError, Problem
from mime.core.spec import ParameterSpec

if TYPE_CHECKING:
    from mime.core.node import Node

AnyNode = TypeVar("AnyNode", bound="Node")

_PART = re.compile(r"(\w+)(?:\[([^\]]*)\])?")


@dataclasses.dataclass(frozen=True)
class NamedEntries:
    """An array with one entry per named thing: `link[NAME].mass_kg` is one of `tree.masses`."""

    leaf: str
    """The array's own address within the node."""
    names: tuple[str, ...]
    """What each entry belongs to, in order."""
    unit: str


@dataclasses.dataclass(frozen=True)
class Leaf:
    """Where an address leads within a node: an array, or one entry of it."""

    path: tuple[str, ...]
    index: int | None
    spec: ParameterSpec | None
    """Unit and range, where the parameter declares them."""

    def of(self, node: "Node") -> Any:
        """The value there; None where the parameter is absent."""
        value: Any = node
        for part in self.path:
            value = getattr(value, part)
        return value if self.index is None else value[self.index]

    def replaced(self, node: AnyNode, value: Any) -> AnyNode:
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


def split_addresses(parameters: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """`(node, parameter, value)` of `{"motor.gear.ratio": 5}` or `{"motor": {"gear.ratio": 5}}`."""
    for name, value in parameters.items():
        if isinstance(value, Mapping):
            yield from ((name, inner, entry) for inner, entry in value.items())
        else:
            node, _, rest = name.partition(".")
            yield node, rest, value


def find(node: "Node", address: str) -> Leaf:
    """Where `address` (without the node's name) leads; a `ParameterError` names the nearest."""
    target: Any = node
    path: list[str] = []
    index: int | None = None
    spec: ParameterSpec | None = None
    parts = _split(address)
    for count, (part, name) in enumerate(parts):
        if name is not None:
            entries = _entries(node, address, part, [p for p, _ in parts[count + 1 :]])
            if name not in entries.names:
                _refuse(node, address, f"no {part} {name!r}", name, entries.names)
            leaf = find(node, entries.leaf)
            return dataclasses.replace(leaf, index=entries.names.index(name))
        names = _names(target)
        if part not in names:
            _refuse(node, address, f"no parameter {part!r}", part, names)
        spec = target.parameter_specs().get(part) if isinstance(target, Parameterised) else None
        target = getattr(target, part)
        path.append(part)
        if target is None and count + 1 < len(parts):
            raise ParameterError(
                _label(node),
                [
                    Problem(
                        (address,), f"cannot be set: this node has no {part}", "Give it one first"
                    )
                ],
            )
    if not isinstance(target, jax.Array | np.ndarray | None):
        _refuse(node, address, f"{address!r} is not a number", "", _names(target))
    return Leaf(tuple(path), index, spec)


def replace_value(node: AnyNode, address: str, value: Any) -> AnyNode:
    """`node` with another value at `address`, at the old one's shape and dtype; unchecked."""
    leaf = find(node, address)
    old = leaf.of(node)
    if old is not None and np.shape(value) != np.shape(old):
        message = f"has shape {np.shape(old)}, got {np.shape(value)}"
        raise ParameterError(_label(node), [Problem((address,), message)])
    return leaf.replaced(node, value)


def _split(address: str) -> list[tuple[str, str | None]]:
    """`link[forearm].mass_kg` -> [("link", "forearm"), ("mass_kg", None)]."""
    return [(match[1], match[2]) for match in _PART.finditer(address)]


def _entries(node: "Node", address: str, group: str, rest: list[str]) -> NamedEntries:
    groups = node.named_entries()
    if group not in groups:
        _refuse(node, address, f"nothing named {group!r}", group, groups)
    field = rest[0] if len(rest) == 1 else ".".join(rest)
    if field not in groups[group]:
        _refuse(node, address, f"a {group} with no {field!r}", field, groups[group])
    return groups[group][field]


def _names(target: Any) -> list[str]:
    """What can follow in an address: parameters and effects, or the fields of a plain module."""
    if isinstance(target, Parameterised):
        return [*target.params, *target.effect_types()]
    return list(vars(target)) if isinstance(target, eqx.Module) else []


def _label(node: "Node") -> str:
    return f"{type(node).__name__} {node.name!r}"


def _refuse(node: "Node", address: str, what: str, name: str, names: Any) -> None:
    message = f"{what}{nearest(name, names)}. It has {quoted(names)}"
    raise ParameterError(_label(node), [Problem((address,), message, label="has")])
