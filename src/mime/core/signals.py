"""External inputs over time: constants, arrays over time, functions of time."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mime._text import nearest, quoted, shortened
from mime.core.arguments import mapping, numbers
from mime.core.parameters import known
from mime.core.pose import IDENTITY_POSE
from mime.core.problem import InputError
from mime.core.spec import Input

Inputs = Mapping[str, Any]
"""`{node: {input: constant | array over the steps | function of time}}`"""


class Signal(eqx.Module):
    """An external input over the course of a run."""

    @abstractmethod
    def at(self, step: Int[Array, ""], time_s: Float[Array, ""]) -> Array:
        """Its value during the step that starts at `time_s`; `step` counts from the run's start."""


class Constant(Signal):
    """The same value in every step."""

    value: Array | np.ndarray

    def at(self, step: Int[Array, ""], time_s: Float[Array, ""]) -> Array:
        return jnp.asarray(self.value)


class Series(Signal):
    """One value per step: `values[n]` holds during step n."""

    values: Array | np.ndarray

    def at(self, step: Int[Array, ""], time_s: Float[Array, ""]) -> Array:
        return jax.lax.dynamic_index_in_dim(jnp.asarray(self.values), step, keepdims=False)


class Function(Signal):
    """u(t), sampled at the start of each step and held over it."""

    function: Callable[[Any], Any]

    def at(self, step: Int[Array, ""], time_s: Float[Array, ""]) -> Array:
        return jnp.asarray(self.function(time_s))


class OfMembers(eqx.Module):
    """A function of time for each member of a batch: a module whose arrays have the members first.

    `run_batch` takes it as an input; a member's function has the member's own numbers.
    """

    function: Callable[[Any], Any]

    def __check_init__(self) -> None:
        sizes = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(self.function)}
        if len(sizes) != 1 or sizes == {()}:
            raise InputError("a function for each member needs arrays of one length, members first")

    @property
    def size(self) -> int:
        """How many members it is of."""
        return len(jax.tree.leaves(self.function)[0])

    def of(self, member: int) -> Callable[[Any], Any]:
        """The function of one member."""
        return jax.tree.map(lambda leaf: leaf[member], self.function)


Signals = dict[str, dict[str, Signal]]


def declared(
    inputs: Inputs | None, external: tuple[tuple[str, str], ...]
) -> list[tuple[str, str, Any]]:
    """`(node, field, value)` of every given input; one that was not declared is refused."""
    found = []
    for node, values in mapping("inputs", inputs, "{'node': {'input': value}}").items():
        for field, value in mapping(f"inputs[{node!r}]", values, "{'input': value}").items():
            if (node, field) not in external:
                wanted, names = f"{node}.{field}", [".".join(pair) for pair in external]
                raise InputError(
                    f"{wanted} is not an external input of this graph{nearest(wanted, names)}. "
                    f"It has {quoted(names)}; declare more with add_external_input(node, field)."
                )
            found.append((node, field, value))
    return found


def to_signals(
    inputs: Inputs | None,
    external: tuple[tuple[str, str], ...],
    specs: Mapping[str, Mapping[str, Input]],
    steps: int,
) -> Signals:
    """Check the inputs of a run of `steps` steps and tell constants, arrays and functions apart."""
    signals: Signals = {}
    for node, field, value in declared(inputs, external):
        signal = _to_signal(f"{node}.{field}", specs[node][field], value, steps)
        signals.setdefault(node, {})[field] = signal
    return signals


def _to_signal(name: str, spec: Input, value: Any, steps: int) -> Signal:
    if callable(value):
        try:
            shape = jax.eval_shape(
                lambda t: jnp.asarray(value(t)), jax.ShapeDtypeStruct((), jnp.result_type(float))
            ).shape
        except Exception as error:  # whatever the user's function raises is the finding
            reason = shortened(f"{type(error).__name__}: {error}", 600)
            raise InputError(
                f"input {name}: the function fails when it is called with a traced time: {reason}",
                place=("input", *name.split(".")),
            ) from error
        if shape != spec.shape:
            raise InputError(
                f"input {name}: the function gives shape {shape}, expected {spec.shape}"
            )
        # A module's parameters stay arguments of the program; a plain function is part of it.
        function: Any = value if isinstance(value, eqx.Module) else jax.tree_util.Partial(value)
        return Function(function)
    array = check_pose(name, spec, as_float_array(name, value))
    if array.shape == spec.shape:
        return Constant(array)
    if array.shape == (steps, *spec.shape):
        return Series(array)
    raise InputError(
        f"input {name} has shape {array.shape}: expected {spec.shape} [{spec.unit}] if constant, "
        f"{(steps, *spec.shape)} for one value per step, or a function of time"
    )


def as_float_array(name: str, value: Any) -> Array | np.ndarray:
    """A numeric value as a floating array: JAX's where it is one, else NumPy's, in JAX's precision.

    (To make an array of JAX's takes longer than to make a short run.)
    """
    array = numbers(f"input {name}", value)
    array = array if isinstance(array, jax.Array) else np.asarray(array)
    floats = jnp.issubdtype(array.dtype, jnp.floating)
    dtype = jax.dtypes.canonicalize_dtype(array.dtype if floats else float)
    return array if array.dtype == dtype else array.astype(dtype)


def check_pose(name: str, spec: Input, array: Array | np.ndarray) -> Array | np.ndarray:
    """The same array; where the input is a pose, its quaternions must be of unit length."""
    is_pose = spec.shape == (7,) and spec.default == IDENTITY_POSE and array.shape[-1:] == (7,)
    if is_pose and known(array):
        length = np.linalg.norm(np.asarray(array)[..., 3:], axis=-1)
        if np.any(np.abs(length - 1) > _UNIT):
            worst = length.flat[np.argmax(np.abs(length - 1))]
            raise InputError(
                f"input {name} must be a pose [x, y, z, qw, qx, qy, qz] with a quaternion of unit "
                f"length, got one of length {worst:.6g}",
                place=("input", *name.split(".")),
            )
    return array


_UNIT = 1e-3
"""How far from 1 a length may be: what three printed digits leave."""


def sample(
    signals: Signals, step: Int[Array, ""], time_s: Float[Array, ""]
) -> dict[str, dict[str, Array]]:
    """All external inputs of one step."""
    return {
        node: {field: signal.at(step, time_s) for field, signal in fields.items()}
        for node, fields in signals.items()
    }


def check_finite(signals: Signals) -> Signals:
    """The same signals; an input with a NaN is refused before it is blamed on a node."""
    for node, fields in signals.items():
        for field, signal in fields.items():
            for leaf in jax.tree.leaves(signal) if isinstance(signal, Constant | Series) else ():
                values = np.asarray(leaf)
                if not np.isfinite(values).all():
                    index = np.argwhere(~np.isfinite(values))[0].tolist()
                    raise InputError(
                        f"input {node}.{field} is not finite at index {index}",
                        place=("input", node, field),
                    )
    return signals
