"""Scenario files: a simulation as data.

scenario = load_scenario("motor.toml")
trajectory = scenario.run()
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mime.scenarios.scenario import Scenario, load_scenario
    from mime.scenarios.source import ScenarioError

__all__ = ["Scenario", "ScenarioError", "load_scenario"]

_HOME = {"Scenario": "scenario", "ScenarioError": "source", "load_scenario": "scenario"}


def __getattr__(name: str) -> Any:
    """Loaded when first used: the command line starts faster than pydantic and all nodes do."""
    if name not in _HOME:
        raise AttributeError(f"module 'mime.scenarios' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"mime.scenarios.{_HOME[name]}"), name)
