"""MIME: electromechanical robots, from the voltage at a motor to the pose of the tool."""

from mime.core.batch import DivergenceWarning
from mime.core.checkpoint import CheckpointError
from mime.core.graph import GraphManager
from mime.core.meta import Mapped, NodeMeta, ValidatedRange
from mime.core.node import Node
from mime.core.run import DivergenceError, RunInterrupted
from mime.core.simulation import ConvergenceWarning, Simulation
from mime.core.spec import Input, InputError, Output, ParameterError, option, parameter
from mime.core.step import SimulationState
from mime.core.trajectory import Trajectory
from mime.core.wiring import GraphError

__version__ = "0.1.0"

__all__ = [
    "CheckpointError",
    "ConvergenceWarning",
    "DivergenceError",
    "DivergenceWarning",
    "GraphError",
    "GraphManager",
    "Input",
    "InputError",
    "Mapped",
    "Node",
    "NodeMeta",
    "Output",
    "ParameterError",
    "RunInterrupted",
    "Simulation",
    "SimulationState",
    "Trajectory",
    "ValidatedRange",
    "option",
    "parameter",
]
