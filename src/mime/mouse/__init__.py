"""A maze-running mouse, from the volts at its motors to the walls around it."""

from mime.mouse.assembly import EXPLORE, RACE, build_mouse, starting_state
from mime.mouse.brain import MouseBrainNode
from mime.mouse.strategy import Strategy

__all__ = ["EXPLORE", "RACE", "MouseBrainNode", "Strategy", "build_mouse", "starting_state"]
