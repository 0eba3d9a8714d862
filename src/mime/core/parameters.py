"""Values with physical parameters: a node, and the effects that a node can be given."""

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import equinox as eqx
import jax
import numpy as np

from mime.core.problem import ParameterError, Problem
from mime.core.spec import ParameterSpec


@dataclasses.dataclass(frozen=True)
class NamedEntries:
    """An array with one entry per named thing: `link[NAME].mass_kg` is one of `tree.masses`."""

    leaf: str
    """The array's own address within the node."""
    names: tuple[str, ...]
    """What each entry belongs to, in order."""
    unit: str


class Parameterised(eqx.Module):
    """A frozen value whose declared parameters have units, ranges and meanings."""

    # Plain methods: equinox makes a pytree of every method that it hands out, which makes calls of
    # `run` slow (benchmarks/parts.py). These methods are no pytrees: jit the value, not a method.
    __getattribute__ = object.__getattribute__

    @classmethod
    @cache
    def parameter_specs(cls) -> dict[str, ParameterSpec]:
        """Unit, range and meaning of every declared parameter, by name."""
        return _declared(cls, "parameter")

    @classmethod
    @cache
    def effect_types(cls) -> dict[str, tuple[type["Effect"], ...]]:
        """The kinds of effect that each field declared by `effect` takes, by name."""
        return _declared(cls, "effect")

    @classmethod
    @cache
    def option_choices(cls) -> dict[str, tuple[Any, ...]]:
        """What each option declared with `choices` can be, by name."""
        return _declared(cls, "choices")

    @property
    def label(self) -> str:
        """What an error calls this value."""
        return type(self).__name__

    @property
    def params(self) -> Mapping[str, Any]:
        """The physical parameters by name, read-only."""
        return MappingProxyType({name: getattr(self, name) for name in self.parameter_specs()})

    def named_entries(self) -> Mapping[str, Mapping[str, NamedEntries]]:
        """Arrays whose entries have names: `{"link": {"mass_kg": NamedEntries(...)}}`.

        They give the address `arm.link[NAME].mass_kg` to an entry. Most values have none.
        """
        return {}

    def value_problems(self) -> Iterator[Problem]:
        """What is wrong beyond single ranges; override it. Values may be traced: skip those."""
        yield from ()

    def problems(self) -> Iterator[Problem]:
        """All that is wrong with the parameters, options and effects."""
        simple = [*_option_problems(self), *_range_problems(self), *_effect_problems(self)]
        yield from simple
        if not simple:  # the author's own checks may rely on numbers of the right shape
            yield from self.value_problems()


class Effect(Parameterised):
    """A part of a node that it may or may not have: a gear, a friction, a limit.

    It declares its parameters like a node. `MotorNode(..., gear=Gear(ratio=20.0))` has it; a node
    without it holds None there, and its programs hold no trace of it.
    """

    def __check_init__(self) -> None:
        if found := list(self.problems()):
            raise ParameterError(self.label, found)


def known(*values: Any) -> bool:
    """True when no value is traced, so that they can be looked at."""
    return not any(isinstance(value, jax.core.Tracer) for value in values)


def _declared(cls: type, kind: str) -> dict[str, Any]:
    fields = dataclasses.fields(cls)
    return {field.name: field.metadata[kind] for field in fields if kind in field.metadata}


def _option_problems(value: Parameterised) -> Iterator[Problem]:
    for name, choices in value.option_choices().items():
        if (given := getattr(value, name)) not in choices:
            allowed = ", ".join(map(repr, choices))
            yield Problem((name,), f"must be one of {allowed}, got {given!r}")


def _range_problems(value: Parameterised) -> Iterator[Problem]:
    for name, spec in value.parameter_specs().items():
        given = getattr(value, name)
        if given is None or isinstance(given, jax.core.Tracer):
            continue
        if not isinstance(given, jax.Array | np.ndarray):
            yield Problem((name,), f"must be a number [{spec.unit}], got {given!r}")
        elif spec.shape is not None and given.shape != spec.shape:
            yield Problem((name,), f"must have shape {spec.shape}, got {given.shape}: {given}")
        elif not spec.allows(np.asarray(given)):
            shown = f"{float(given):.6g}" if given.ndim == 0 else str(given)
            yield Problem((name,), f"must be {spec.expected()}, got {shown}")


def _effect_problems(value: Parameterised) -> Iterator[Problem]:
    for name, kinds in value.effect_types().items():
        given = getattr(value, name)
        if given is None:
            continue
        if not isinstance(given, kinds):
            allowed = " or ".join(kind.__name__ for kind in kinds)
            yield Problem((name,), f"must be a {allowed} or None, got {given!r}")
        else:
            yield from (problem.inside(name) for problem in given.problems())
