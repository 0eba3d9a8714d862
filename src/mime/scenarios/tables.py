"""The tables of a scenario file, as pydantic checks them. What a node takes, the node checks."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from mime.scenarios.merits import FigureOfMerit
from mime.scenarios.waveforms import Waveform

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Number = Annotated[float, Field(allow_inf_nan=False)]
NodeName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$")]


class Table(BaseModel):
    """A table whose keys are all known."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SimulationTable(Table):
    """`[simulation]`"""

    duration: Positive
    """Seconds."""
    timestep: Positive
    """Seconds; of every node that has none of its own."""
    precision: Literal["single", "double"] = "double"
    record: list[str] | None = None
    """`node.field` names; all fluxes and observable states when not given."""
    every: Annotated[int, Field(ge=1, le=2**31 - 1)] = 1
    """Record every n-th step."""
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    """Of every node that draws random numbers and has no seed of its own."""
    initial_state: dict[str, dict[str, Any]] = {}


class NodeTable(BaseModel):
    """`[nodes.NAME]`: a type, and whatever its constructor takes."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    type: str
    timestep: Positive | None = None


class AssemblyTable(BaseModel):
    """`[assemblies.NAME]`: a type, and the keys of that type, which it checks itself."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    type: str


class EdgeTable(Table):
    """`[[edges]]`: a flux into an input, of this step or the one before."""

    source: str = Field(alias="from")
    to: str
    delay: bool = False
    component: Annotated[int, Field(ge=0)] | list[Annotated[int, Field(ge=0)]] | None = None
    """Which component of a vector, or which ones, from 0."""
    scale: Number | None = None
    negate: bool = False


class CouplingTable(Table):
    """`[[coupling]]`: nodes that are iterated in every step until they agree."""

    nodes: Annotated[list[str], Field(min_length=2)]
    tolerance: Positive | None = None
    max_iterations: Annotated[int, Field(ge=1, le=2**31 - 1)] = 50
    acceleration: Literal["none", "aitken"] = "none"
    method: Literal["gauss_seidel", "jacobi"] = "gauss_seidel"
    name: NodeName | None = None


class PlotTable(Table):
    """`[[plots]]`: fields over time or over others, or a drawing of an assembly."""

    title: str = ""
    fields: Annotated[list[str], Field(min_length=1)] | None = None
    against: str | list[str] | None = None
    """A field for all, or one for each."""
    minus: list[str] | None = None
    """What is taken from each field: the plot is of the differences."""
    unit: str | None = None
    """Of all fields that can be shown in it."""
    drawing: str | None = None
    """`assembly.drawing`, instead of fields."""

    def over(self) -> list[str]:
        """What each field is drawn over; nothing when that is time."""
        if self.against is None or isinstance(self.against, list):
            return self.against or []
        return [self.against] * len(self.fields or [])


class ScenarioTables(Table):
    """A whole scenario file."""

    title: str = ""
    description: str = ""
    simulation: SimulationTable
    nodes: dict[NodeName, NodeTable] = {}
    assemblies: dict[NodeName, AssemblyTable] = {}
    edges: list[EdgeTable] = []
    coupling: list[CouplingTable] = []
    inputs: dict[str, Waveform] = {}
    plots: list[PlotTable] = []
    figures_of_merit: list[FigureOfMerit] = []
