"""A maze-running mouse, from the volts at its motors to the walls around it."""

from mime.mouse.assembly import EXPLORE as EXPLORE
from mime.mouse.assembly import RACE as RACE
from mime.mouse.assembly import build_mouse as build_mouse
from mime.mouse.assembly import starting_state as starting_state
from mime.mouse.brain import MouseBrainNode as MouseBrainNode
from mime.mouse.strategy import Strategy as Strategy
