"""DC brushed motor, MIME-NODE-100."""

from mime.nodes.actuation.motor.catalogue import CATALOGUE
from mime.nodes.actuation.motor.datasheet import Datasheet, DatasheetWarning
from mime.nodes.actuation.motor.linear import StateSpace, TransferFunction
from mime.nodes.actuation.motor.meta import MotorMeta
from mime.nodes.actuation.motor.node import MotorNode
from mime.nodes.actuation.motor.pose import _quat_from_axis_angle, compose_pose

__all__ = [
    "CATALOGUE",
    "Datasheet",
    "DatasheetWarning",
    "MotorMeta",
    "MotorNode",
    "StateSpace",
    "TransferFunction",
    "_quat_from_axis_angle",
    "compose_pose",
]
