"""How a node declares its parameters, inputs, fluxes and state: shape, unit, range, meaning."""

import dataclasses
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


class ParameterError(ValueError):
    """A parameter that no such element can have. Says which, what was given, what is allowed."""


class InputError(ValueError):
    """An input that a node does not have, or of the wrong shape."""


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

    def expected(self) -> str:
        """The allowed range in words: `> 0 kg·m²`."""
        bounds = [("> ", self.above), (">= ", self.at_least), ("<= ", self.at_most)]
        words = " and ".join(f"{sign}{bound:g}" for sign, bound in bounds if bound is not None)
        return f"{words or 'finite'} {self.unit}".strip()

    def allows(self, value: np.ndarray) -> bool:
        """True when every component is a finite number in the range."""
        return bool(
            np.all(np.isfinite(value))
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
    doc: str = "",
    **dataclass_options: Any,
) -> Any:
    """Declare a physical parameter: a differentiable leaf with its unit, range and meaning.

    `shape=None` accepts any shape. With `folds=True` the value stays a NumPy array: a constant of
    the compiled program, until someone varies it. Other options are those of `dataclasses.field`.
    """
    spec = ParameterSpec(unit, shape, above, at_least, at_most, doc)
    converter = _to_constant if folds else _to_variable
    return eqx.field(converter=converter, metadata={"parameter": spec}, **dataclass_options)


def _to_variable(value: Any) -> Any:
    """A number or sequence as a JAX array; what is not numeric stays, to be refused by name."""
    if value is None or isinstance(value, str):
        return value
    try:
        return jnp.asarray(value, dtype=jnp.result_type(float))
    except (TypeError, ValueError):
        return value


def _to_constant(value: Any) -> Any:
    """The same as a NumPy array; what is already a JAX array (or a tracer) stays a variable."""
    if value is None or isinstance(value, str | jax.Array):
        return value
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return value


def option(**dataclass_options: Any) -> Any:
    """Declare a structural choice (a mode, a model): hashable, fixed when the program compiles."""
    return eqx.field(static=True, **dataclass_options)
