"""Values with physical parameters: a node, and the effects that a node can be given."""

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType, UnionType
from typing import Any, ClassVar, Self, TypeVar, get_args

import equinox as eqx
import jax
import numpy as np

from mime._text import brief
from mime.core.problem import ParameterError, Problem
from mime.core.spec import ParameterSpec

AnyValue = TypeVar("AnyValue", bound="Parameterised")


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

    was: ClassVar[Mapping[str, str]] = {}
    """Old names of arguments and of entries that have names, each with the one that it has."""

    # Plain methods: equinox makes a pytree of every method that it hands out, which makes calls of
    # `run` slow (benchmarks/parts.py). These methods are no pytrees: jit the value, not a method.
    __getattribute__ = object.__getattribute__

    def __new__(cls, *_: Any, **given: Any) -> Self:
        if old := [Problem((name,), cls.now(name)) for name in given if name in cls.was]:
            raise ParameterError(cls.__name__, old)
        return super().__new__(cls)

    @classmethod
    @cache
    def parameter_specs(cls) -> dict[str, ParameterSpec]:
        """Unit, range and meaning of every declared parameter, by name."""
        return declared(cls, "parameter")

    @classmethod
    @cache
    def effect_types(cls) -> dict[str, tuple[type["Effect"], ...]]:
        """The kinds of effect that each field declared by `effect` takes, by name."""
        return declared(cls, "effect")

    @classmethod
    @cache
    def option_choices(cls) -> dict[str, tuple[Any, ...]]:
        """What each option declared with `choices` can be, by name."""
        return declared(cls, "choices")

    @classmethod
    def now(cls, name: str) -> str:
        """What to write instead of an old name, as a predicate of it; empty where it is none."""
        return f"is called {cls.was[name]}" if name in cls.was else ""

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

    def _own_problems(self) -> Iterator[Problem]:
        yield from ()

    def problems(self) -> Iterator[Problem]:
        """All that is wrong with the parameters, options and effects."""
        simple = [
            *self._own_problems(),
            *_option_problems(self),
            *_range_problems(self),
            *_effect_problems(self),
        ]
        yield from simple
        if not simple:  # the author's own checks may rely on numbers of the right shape
            yield from self.value_problems()


class Effect(Parameterised):
    """A part of a node that it may or may not have: a gear, a friction, a limit.

    It declares its parameters like a node. `MotorNode(..., gear=Gear(ratio=20.0))` has it; a node
    without it holds None there, and its programs hold no trace of it.
    """

    def __check_init__(self) -> None:
        if found := list(as_numpy(self).problems()):
            raise ParameterError(self.label, found)


class EffectByName(Effect):
    """An effect whose values may be mappings from names (of joints), until its owner, which knows
    the names, makes arrays of them.
    """

    def problems(self) -> Iterator[Problem]:
        for problem in super().problems():
            if not isinstance(getattr(self, problem.place[0], None), Mapping):
                yield problem


def with_fields(value: AnyValue, **changed: Any) -> AnyValue:
    """The same value with other fields, unchecked: for what a program makes of it for itself."""
    same = object.__new__(type(value))
    for name, old in vars(value).items():
        object.__setattr__(same, name, changed.get(name, old))
    return same


def as_numpy(value: AnyValue) -> AnyValue:
    """The same value to be looked at: NumPy arrays wherever no leaf is traced.

    What checks compute is then no work for XLA, which would compile each of their operations.
    """
    return jax.tree.map(
        lambda x: np.asarray(x) if isinstance(x, jax.Array) and known(x) else x, value
    )


def known(*values: Any) -> bool:
    """True when no value is traced, so that they can be looked at."""
    return not any(isinstance(value, jax.core.Tracer) for value in values)


def declared(cls: type, kind: str) -> dict[str, Any]:
    """What the fields of a class declare of a kind (`parameter`, `effect`, ...), by name."""
    fields = dataclasses.fields(cls)
    return {field.name: field.metadata[kind] for field in fields if kind in field.metadata}


_PLAIN = {int: (int, np.integer), bool: (bool, np.bool_), str: (str,), type(None): (type(None),)}


def _option_problems(value: Parameterised) -> Iterator[Problem]:
    for name, kinds in _plain_options(type(value)).items():
        given = getattr(value, name)
        fitting = tuple(plain for kind in kinds for plain in _PLAIN[kind])
        if not isinstance(given, fitting) or (isinstance(given, bool) and bool not in kinds):
            expected = " or ".join("None" if k is type(None) else k.__name__ for k in kinds)
            yield Problem((name,), f"must be of type {expected}, got {brief(given)}")
    for name, choices in value.option_choices().items():
        given = getattr(value, name)
        if not any(type(given) is type(choice) and given == choice for choice in choices):
            allowed = ", ".join(map(repr, choices))
            yield Problem((name,), f"must be one of {allowed}, got {brief(given)}")


def _range_problems(value: Parameterised) -> Iterator[Problem]:
    for name, spec in value.parameter_specs().items():
        given = getattr(value, name)
        absent = given is None and name in _may_be_absent(type(value))
        if absent or isinstance(given, jax.core.Tracer):
            continue
        if not isinstance(given, jax.Array | np.ndarray) or given.dtype.kind in "OUSMmc":
            yield Problem((name,), f"must be a number [{spec.unit}], got {brief(given)}")
        elif spec.shape is not None and given.shape != spec.shape:
            shown = brief(np.asarray(given).tolist())
            yield Problem((name,), f"must have shape {spec.shape}, got {given.shape}: {shown}")
        elif not spec.allows(np.asarray(given)):
            shown = f"{float(given):.6g}" if given.ndim == 0 else brief(np.asarray(given).tolist())
            yield Problem((name,), f"must be {spec.expected()}, got {shown}")


@cache
def _plain_options(cls: type) -> dict[str, tuple[type, ...]]:
    """Options without `choices` whose type is made of int, bool, str and None."""
    fields = [f for f in dataclasses.fields(cls) if f.metadata.get("static")]
    kinds = {
        f.name: get_args(f.type) if isinstance(f.type, UnionType) else (f.type,)
        for f in fields
        if "choices" not in f.metadata
    }
    return {
        name: found
        for name, found in kinds.items()
        if name != "name" and all(kind in _PLAIN for kind in found)
    }


@cache
def _may_be_absent(cls: type) -> frozenset[str]:
    """Parameters that may be None, by their default or their type."""
    return frozenset(
        field.name
        for field in dataclasses.fields(cls)
        if field.default is None
        or (field.default is dataclasses.MISSING and field.type is Any)
        or type(None) in get_args(field.type)
    )


def _effect_problems(value: Parameterised) -> Iterator[Problem]:
    for name, kinds in value.effect_types().items():
        given = getattr(value, name)
        if given is None:
            continue
        if not isinstance(given, kinds):
            allowed = " or ".join(kind.__name__ for kind in kinds)
            yield Problem((name,), f"must be a {allowed} or None, got {brief(given)}")
        else:
            yield from (problem.inside(name) for problem in given.problems())
