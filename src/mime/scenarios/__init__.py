"""Scenario files: a simulation as data.

scenario = load_scenario("motor.toml")
trajectory = scenario.run()
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Load a name when it is first used: the command line starts faster than pydantic does."""
    if name not in ("Scenario", "ScenarioError", "load_scenario"):
        raise AttributeError(f"module 'mime.scenarios' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module("mime.scenarios.scenario"), name)
