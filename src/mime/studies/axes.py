"""What a parameter may be in a study: a list, a grid, a distribution, or a function of others.

A distribution is drawn through its inverse: x = F⁻¹(u), u from 0 to 1, so that random and
quasi-random points of a cube serve all of them.
"""

from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

Number = Annotated[float, Field(allow_inf_nan=False)]
Entry = bool | int | Number | str
Pair = Annotated[list[Number], Field(min_length=2, max_length=2)]
Triple = Annotated[list[Number], Field(min_length=3, max_length=3)]
MOST = 100_000_000
"""Members of a study, and entries of an axis."""


class Axis(BaseModel):
    """A table below `[vary]`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @property
    def is_logarithmic(self) -> bool:
        """Whether it is even in the logarithm."""
        return False


class Values(Axis):
    """`[1.0, 2.0]` or `{values = [...]}`: as they are; numbers, or words for a key of the file."""

    values: Annotated[list[Entry], Field(min_length=1)]

    def column(self) -> np.ndarray:
        """All of them."""
        return column_of(self.values)


class Grid(Axis):
    """`{from = 1, to = 100, count = 5, scale = "log"}`: evenly spaced, both ends included."""

    first: Number = Field(alias="from")
    last: Number = Field(alias="to")
    count: Annotated[int, Field(ge=1, le=MOST)]
    scale: Literal["linear", "log"] = "linear"

    @property
    def is_logarithmic(self) -> bool:
        return self.scale == "log"

    @model_validator(mode="after")
    def _positive(self) -> "Grid":
        if self.scale == "log" and not (self.first > 0 and self.last > 0):
            raise ValueError("a logarithmic grid lies above 0")
        return self

    def column(self) -> np.ndarray:
        """All of them."""
        spaced = np.geomspace if self.scale == "log" else np.linspace
        return spaced(self.first, self.last, self.count)


class Draw(Axis):
    """One distribution by its name; `between` cuts its tails off."""

    uniform: Pair | None = None
    """From, to."""
    loguniform: Pair | None = None
    """From, to, both above 0."""
    normal: Pair | None = None
    """Mean, standard deviation."""
    lognormal: Pair | None = None
    """Median, standard deviation of the logarithm."""
    triangular: Triple | None = None
    """From, most likely, to."""
    integers: Annotated[list[int], Field(min_length=2, max_length=2)] | None = None
    """From, to, both included."""
    choice: Annotated[list[Entry], Field(min_length=1)] | None = None
    """One of these, all equally likely."""
    between: Pair | None = None

    @property
    def is_logarithmic(self) -> bool:
        return self.loguniform is not None or self.lognormal is not None

    @model_validator(mode="after")
    def _one(self) -> "Draw":
        given = [name for name in DISTRIBUTIONS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"name one of {', '.join(DISTRIBUTIONS)}")
        (name,) = given
        bounds: Any = getattr(self, name)
        if self.between is not None and name not in ("normal", "lognormal"):
            raise ValueError("between is for normal and lognormal")
        if name in ("normal", "lognormal") and not bounds[1] > 0:
            raise ValueError("the standard deviation must be above 0")
        if name in ("loguniform", "lognormal") and not bounds[0] > 0:
            raise ValueError(f"{name} lies above 0")
        if name in ("uniform", "loguniform", "triangular", "integers") and (
            list(bounds) != sorted(bounds) or bounds[0] == bounds[-1]
        ):
            raise ValueError(f"{name} goes from a smaller number to a larger one")
        if self.between is not None and not self.between[0] < self.between[1]:
            raise ValueError("between goes from a smaller number to a larger one")
        return self

    def at(self, u: np.ndarray) -> np.ndarray:
        """x = F⁻¹(u)"""
        from scipy import special

        if self.uniform is not None:
            a, b = self.uniform
            return a + (b - a) * u
        if self.loguniform is not None:
            a, b = np.log(self.loguniform)
            return np.exp(a + (b - a) * u)
        if self.triangular is not None:
            a, c, b = self.triangular
            rising = a + np.sqrt(u * (b - a) * (c - a))
            falling = b - np.sqrt((1 - u) * (b - a) * (b - c))
            return np.where(u * (b - a) < c - a, rising, falling)
        if self.integers is not None:
            low, high = self.integers
            return np.minimum(low + np.floor(u * (high - low + 1)), high)
        if self.choice is not None:
            index = np.minimum(u * len(self.choice), len(self.choice) - 1).astype(int)
            return column_of(self.choice)[index]
        pair = self.normal or self.lognormal
        assert pair is not None
        middle, width = pair
        logarithm = self.normal is None
        middle = np.log(middle) if logarithm else middle
        if self.between is not None:
            with np.errstate(divide="ignore"):
                ends = np.log(np.maximum(self.between, 0)) if logarithm else self.between
            low, high = special.ndtr((np.asarray(ends) - middle) / width)
            u = low + (high - low) * u
        z = middle + width * special.ndtri(np.clip(u, *OPEN))
        x = np.exp(z) if logarithm else z
        return x if self.between is None else np.clip(x, self.between[0], self.between[1])


class Equals(Axis):
    """`{equals = "2 * motor.r_ohm"}`: follows from others."""

    equals: str


OPEN = 2.0**-54, 1.0 - 2.0**-53
"""The cube's inside: the ends of a normal distribution are at infinity."""
DISTRIBUTIONS = tuple(name for name in Draw.model_fields if name != "between")
AnyAxis = Values | Grid | Draw | Equals
KINDS = get_args(AnyAxis)


def axis_model(table: dict[str, Any]) -> type[Axis]:
    """The model that a table's keys ask for."""
    if "values" in table:
        return Values
    if "equals" in table:
        return Equals
    if {"from", "to", "count", "scale"} & table.keys():
        return Grid
    return Draw


def column_of(values: list[Any]) -> np.ndarray:
    """Numbers as numbers; words, and true or false, as objects."""
    if set(map(type, values)) <= {int, float}:
        return np.array(values, dtype=float)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
