"""What a result holds, as plain values: variables with axes and units, coordinates, attributes.

A file is written and read from it without xarray, whose import costs more than most runs;
`to_xarray` makes the dataset for those who ask for one.
"""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import xarray


class Variable(NamedTuple):
    """Values along named axes, and what they are: `units`, `long_name`."""

    axes: tuple[str, ...]
    values: np.ndarray
    about: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Contents:
    """Fields over their coordinates, by name, and attributes of the whole."""

    fields: Mapping[str, Variable]
    coordinates: Mapping[str, Variable]
    attributes: Mapping[str, Any]

    @property
    def variables(self) -> dict[str, Variable]:
        """Fields and coordinates, by name."""
        return {**self.fields, **self.coordinates}

    @property
    def sizes(self) -> dict[str, int]:
        """The length of each axis."""
        return {
            axis: length
            for variable in self.variables.values()
            for axis, length in zip(variable.axes, variable.values.shape, strict=True)
        }

    def to_xarray(self) -> "xarray.Dataset":
        """The same as a dataset."""
        import xarray

        return xarray.Dataset(self.fields, self.coordinates, self.attributes)
