"""How a node declares itself: parameters, inputs, fluxes and state with shape, unit, range and
meaning; and its metadata, the one source of its equations, assumptions, limits and ranges.
"""

import dataclasses
import importlib
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass(frozen=True)
class Input:
    """One boundary input. `additive` inputs sum all their sources, `replacive` ones take one."""

    shape: tuple[int, ...]
    unit: str
    default: float | int | tuple = 0.0
    coupling: Literal["additive", "replacive"] = "replacive"
    description: str = ""

    def default_value(self, dtype: Any = None) -> np.ndarray:
        """The default at full shape, a NumPy array so that it folds into a compiled program."""
        value = np.asarray(self.default, dtype=dtype or jnp.result_type(float))
        return np.broadcast_to(value, self.shape).copy()


@dataclasses.dataclass(frozen=True)
class Output:
    """One boundary flux or one field of the state."""

    shape: tuple[int, ...]
    unit: str
    description: str = ""


@dataclasses.dataclass(frozen=True)
class ParameterSpec:
    """Unit, range and meaning of a parameter, as declared by `parameter`."""

    unit: str
    shape: tuple[int, ...] | None
    above: float | None
    at_least: float | None
    at_most: float | None
    doc: str
    may_be_infinite: bool = False

    def expected(self) -> str:
        """The allowed range in words: `> 0 kg·m²`."""
        bounds = [("> ", self.above), (">= ", self.at_least), ("<= ", self.at_most)]
        words = " and ".join(f"{sign}{bound:g}" for sign, bound in bounds if bound is not None)
        return f"{words or 'finite'} {self.unit}".strip()

    def allows(self, value: np.ndarray) -> bool:
        """True when every component is a number in the range, and finite unless that may not be."""
        numbers = ~np.isnan(value) if self.may_be_infinite else np.isfinite(value)
        return bool(
            np.all(numbers)
            and (self.above is None or np.all(value > self.above))
            and (self.at_least is None or np.all(value >= self.at_least))
            and (self.at_most is None or np.all(value <= self.at_most))
        )


def parameter(
    unit: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    shape: tuple[int, ...] | None = (),
    folds: bool = False,
    may_be_infinite: bool = False,
    doc: str = "",
    **dataclass_options: Any,
) -> Any:
    """Declare a physical parameter: a differentiable leaf with its unit, range and meaning.

    `shape=None` accepts any shape. With `folds=True` the value stays a NumPy array: a constant of
    the compiled program, until someone varies it. Only a limit `may_be_infinite`. Other
    options are those of `dataclasses.field`.
    """
    spec = ParameterSpec(unit, shape, above, at_least, at_most, doc, may_be_infinite)
    converter = _to_constant if folds else _to_variable
    return eqx.field(converter=converter, metadata={"parameter": spec}, **dataclass_options)


def _to_variable(value: Any) -> Any:
    """A number or sequence as a JAX array; what is not numeric stays, to be refused by name."""
    if value is None or isinstance(value, str):
        return value
    dtype = jnp.result_type(float)
    try:
        if all(map(_is_plain, jax.tree.leaves(value, is_leaf=lambda x: x is None))):
            return jax.device_put(np.asarray(value, dtype))  # XLA compiles nothing for that
        return jnp.asarray(value, dtype)
    except (TypeError, ValueError, OverflowError):
        return value


def _is_plain(value: Any) -> bool:
    is_array = isinstance(value, np.ndarray | np.generic)
    return value.dtype.kind in "biuf" if is_array else isinstance(value, int | float)


def _to_constant(value: Any) -> Any:
    """The same as a NumPy array; what is already a JAX array (or a tracer) stays a variable."""
    if value is None or isinstance(value, str | jax.Array):
        return value
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        return value


def option(*, choices: tuple[Any, ...] | None = None, **dataclass_options: Any) -> Any:
    """Declare a structural choice (a mode, a model): hashable, fixed when the program compiles.

    With `choices`, any other value is refused when the node is built.
    """
    metadata = {} if choices is None else {"choices": choices}
    return eqx.field(static=True, metadata=metadata, **dataclass_options)


def effect(*kinds: type, doc: str = "") -> Any:
    """Declare an effect that the node may have: one of the `Effect` classes `kinds`, or None.

    Absent (None, the default) it costs nothing: nothing of it is in the program.
    """
    return eqx.field(default=None, metadata={"effect": kinds, "doc": doc})


@dataclasses.dataclass(frozen=True)
class ValidatedRange:
    """A range over which a quantity (parameter, input or state) was checked."""

    quantity: str
    low: float | int
    high: float | int
    unit: str
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Mapped:
    """An equation's term and the function (dotted path) that computes it."""

    term: str
    function: str
    note: str = ""


INDEPENDENT = (
    "Mode 2 (independent): against closed forms and other codes, none of which shares code with it."
)
LABORATORY = (
    "External apparatus in the laboratory: in no anatomical compartment, in no contact with a "
    "patient; no clinical claim."
)


@dataclasses.dataclass(frozen=True)
class NodeMeta:
    """What an element computes, how, under which assumptions, and where that was checked."""

    id: str
    version: str
    stability: Literal["experimental", "stable", "deprecated"]
    summary: str
    equations: tuple[str, ...]
    discretisation: tuple[str, ...]
    assumptions: tuple[str, ...]
    limitations: tuple[str, ...]
    validated_ranges: tuple[ValidatedRange, ...]
    references: tuple[str, ...]
    implementation: tuple[Mapped, ...]
    verification_mode: str = INDEPENDENT
    """How it was checked."""
    operating_context: str = LABORATORY
    """Where the real thing works."""
    changelog: tuple[tuple[str, str, str], ...] = ()
    """Version, date and change, oldest first."""

    def problems(self) -> list[str]:
        """Fields left empty that have no default."""
        return [
            f"meta.{field.name} is empty"
            for field in dataclasses.fields(self)
            if field.default is dataclasses.MISSING and getattr(self, field.name) in ("", (), None)
        ]


def missing_functions(meta: NodeMeta) -> list[str]:
    """Functions named in `meta.implementation` that do not exist."""
    return [
        f"{entry.term!r} is mapped to {entry.function}, which does not exist"
        for entry in meta.implementation
        if not _exists(entry.function)
    ]


def _exists(dotted: str) -> bool:
    parts = dotted.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            target: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            target = getattr(target, part, None)
        return callable(target)
    return False
