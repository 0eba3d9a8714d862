"""MIME: electromechanical robots, from the voltage at a motor to the pose of the tool."""

from typing import TYPE_CHECKING, Any

from mime.core.whole_loops import compile_whole_loops

if TYPE_CHECKING:
    from mime.core.batch import DivergenceWarning
    from mime.core.batched import batched
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

compile_whole_loops()

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
    "batched",
    "option",
    "parameter",
]

_HOMES = {
    "batch": ["DivergenceWarning"],
    "batched": ["batched"],
    "checkpoint": ["CheckpointError"],
    "graph": ["GraphManager"],
    "meta": ["Mapped", "NodeMeta", "ValidatedRange"],
    "node": ["Node"],
    "run": ["DivergenceError", "RunInterrupted"],
    "simulation": ["ConvergenceWarning", "Simulation"],
    "spec": ["Input", "InputError", "Output", "ParameterError", "option", "parameter"],
    "step": ["SimulationState"],
    "trajectory": ["Trajectory"],
    "wiring": ["GraphError"],
}
"""Where each name is defined in `mime.core`, for `__getattr__`; type checkers read the imports."""


def __getattr__(name: str) -> Any:
    """Load a name when it is first used: `mime --version` and completion do not wait for JAX."""
    import importlib

    for module, names in _HOMES.items():
        if name in names:
            value = getattr(importlib.import_module(f"mime.core.{module}"), name)
            globals()[name] = value  # asked for once only
            return value
    raise AttributeError(f"module 'mime' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
