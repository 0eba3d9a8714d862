"""What a fit looks for: a number, where it starts, and between which bounds it is."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from mime.core.arguments import instance, real, several, wrong


@dataclasses.dataclass(frozen=True)
class Unknown:
    """A number to be found; `Unknown()` starts at the model's own value, its prior."""

    start: float | None = None
    """The value to start from; the model's when not given."""
    between: tuple[float, float] | None = None
    """Bounds; the parameter's own range when not given."""
    std: float | None = None
    """How well the start is known beforehand (standard deviation); by default not at all."""
    prior: bool = True
    """The start is a value to keep where the log tells nothing. False: it is a mere guess, and a
    fit that leaves it open gives no simulation."""

    def __post_init__(self) -> None:
        if self.start is not None:
            object.__setattr__(self, "start", real("start", self.start))
        if self.std is not None:
            object.__setattr__(self, "std", real("std", self.std, above=0))
        instance("prior", self.prior, bool, np.bool_)
        if self.between is not None:
            ends = several("between", self.between)
            if len(ends) != 2:
                raise wrong("between", "(least, largest)", self.between)
            low, high = real("between[0]", ends[0]), real("between[1]", ends[1])
            if not low < high:
                raise wrong("between", "(least, largest), the first below the second", self.between)
            if self.start is not None and not low <= self.start <= high:
                raise wrong("start", f"between {low:g} and {high:g}", self.start)
            object.__setattr__(self, "between", (low, high))


WIDEST_LOG = float(np.log(2.0))
"""Half of the widest 95 % interval of a logarithm that is known: a factor of two."""
WIDEST = 1.0
"""The same of an unknown that is no logarithm, in its scale: a delay of one row, say."""
WIDEST_OF_VALUE, WIDEST_OF_START = 2.0, 1.0
"""The same of one that may be zero, over its value or over its start, whichever gives more."""
_ROUNDED = 1.0 + 1e-9


class Which(NamedTuple):
    """What a coordinate is of, without its numbers; see `Coordinate`."""

    kind: str
    key: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Coordinate:
    """One unknown as the optimiser sees it: z = log(value), or value / scale."""

    name: str
    unit: str
    kind: str
    """`parameter`, `body`, `initial`, `delay`, `offset` or `gain`."""
    is_log: bool
    scale: float
    start: float
    low: float
    high: float
    std: float | None
    prior: bool
    key: tuple[Any, ...]
    """What it is of: `(address,)`, `(log, node, field, index)`, `(column's field,)`, or of a body
    `(address, as what, which, size)`."""
    may_be_zero: bool = False
    """Zero is in its range, as of friction."""

    def value(self, z: Any) -> Any:
        """The number itself; z may be traced."""
        import jax.numpy as jnp

        return jnp.exp(z) if self.is_log else self.scale * z

    def z(self, value: float) -> float:
        """Its coordinate."""
        if self.is_log:
            return float(np.log(value)) if value > 0 else -np.inf
        return value / self.scale

    @property
    def std_of_z(self) -> float | None:
        """What is known beforehand, of the coordinate."""
        if self.std is None:
            return None
        return self.std / (self.start if self.is_log else self.scale)

    def widest(self, z: float) -> float:
        """Half of the widest 95 % interval, of the coordinate at z, with which it is known well.

        What may be zero is known with twice as wide an interval, but no longer to a factor.
        """
        if self.is_log and not self.may_be_zero:
            return WIDEST_LOG
        if self.may_be_zero:
            value = float(self.value(z))
            unit = max(value, float(np.finfo(float).tiny)) if self.is_log else self.scale
            return 0.5 * self._reach(value) / unit
        return WIDEST

    def _reach(self, value: float) -> float:
        return max(WIDEST_OF_VALUE * value, WIDEST_OF_START * self.start)

    def is_narrow(self, z: float, low: float, high: float) -> bool:
        """Whether a 95 % interval, from low to high of the coordinate, is one of what is known."""
        if self.may_be_zero:
            half = 0.5 * float(self.value(high) - self.value(low))
            return half <= _ROUNDED * self._reach(float(self.value(z)))
        return 0.5 * (high - low) <= _ROUNDED * self.widest(z)

    def interval(self, z: float, half: float) -> tuple[float, float]:
        """The values at z - half and z + half."""
        if self.is_log:
            return float(np.exp(z - half)), float(np.exp(z + half))
        return self.scale * (z - half), self.scale * (z + half)
