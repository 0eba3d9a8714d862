"""DC brushed motor, MIME-NODE-100, and the effects that it can be given."""

from mime.nodes.actuation.friction import Coulomb, LoadFriction, Stribeck
from mime.nodes.actuation.motor.catalogue import CATALOGUE
from mime.nodes.actuation.motor.datasheet import Datasheet, DatasheetWarning
from mime.nodes.actuation.motor.gear import Gear
from mime.nodes.actuation.motor.imbalance import Imbalance
from mime.nodes.actuation.motor.limits import Limits
from mime.nodes.actuation.motor.linear import StateSpace, TransferFunction
from mime.nodes.actuation.motor.magnetics import Cogging, Saturation
from mime.nodes.actuation.motor.node import MotorNode, _quat_from_axis_angle, compose_pose
from mime.nodes.actuation.motor.parameters import MotorMeta
from mime.nodes.actuation.motor.thermal import Winding

__all__ = [
    "CATALOGUE",
    "Cogging",
    "Coulomb",
    "Datasheet",
    "DatasheetWarning",
    "Gear",
    "Imbalance",
    "Limits",
    "LoadFriction",
    "MotorMeta",
    "MotorNode",
    "Saturation",
    "StateSpace",
    "Stribeck",
    "TransferFunction",
    "Winding",
    "_quat_from_axis_angle",
    "compose_pose",
]
