# The public names of MIME, each with the module that defines it. This is the one table of them.

# To write a node
# Nodes, and what their arguments are made of
from mime.control.kinematics.tree import KinematicTree as KinematicTree
from mime.control.kinematics.urdf import parse_urdf as parse_urdf
from mime.core.node import Node as Node
from mime.core.node import Scalar as Scalar
from mime.core.node import State as State
from mime.core.node import Values as Values
from mime.core.parameters import Effect as Effect
from mime.core.problem import GraphError as GraphError
from mime.core.problem import InputError as InputError
from mime.core.problem import ParameterError as ParameterError
from mime.core.problem import Problem as Problem

# To run a graph
from mime.core.program import ConvergenceWarning as ConvergenceWarning
from mime.core.spec import Input as Input
from mime.core.spec import Mapped as Mapped
from mime.core.spec import NodeMeta as NodeMeta
from mime.core.spec import Output as Output
from mime.core.spec import ValidatedRange as ValidatedRange
from mime.core.spec import effect as effect
from mime.core.spec import option as option
from mime.core.spec import parameter as parameter
from mime.core.step import SimulationState as SimulationState

# Scenarios and models
from mime.models import model_path as model_path
from mime.mouse.assembly import build_mouse as build_mouse
from mime.mouse.brain import MouseBrainNode as MouseBrainNode
from mime.nodes.actuation.elastic_drive import elastic_drive as elastic_drive
from mime.nodes.actuation.elastic_joint import ElasticJointNode as ElasticJointNode
from mime.nodes.actuation.motor import MotorNode as MotorNode
from mime.nodes.actuation.motor.friction import Coulomb as Coulomb
from mime.nodes.actuation.motor.friction import Stribeck as Stribeck
from mime.nodes.actuation.motor.gear import Gear as Gear
from mime.nodes.actuation.motor.limits import Limits as Limits
from mime.nodes.actuation.motor.magnetics import Cogging as Cogging
from mime.nodes.actuation.motor.magnetics import Saturation as Saturation
from mime.nodes.actuation.motor.thermal import Winding as Winding
from mime.nodes.actuation.pwm_drive import PwmDriveNode as PwmDriveNode
from mime.nodes.actuation.robot_arm import RobotArmNode as RobotArmNode
from mime.nodes.control.joint_controllers import ComputedTorqueNode as ComputedTorqueNode
from mime.nodes.control.joint_controllers import JointPDNode as JointPDNode
from mime.nodes.control.joint_trajectory import JointTrajectoryNode as JointTrajectoryNode
from mime.nodes.control.tool_path import ToolPathNode as ToolPathNode
from mime.nodes.locomotion.differential_drive import DifferentialDriveNode as DifferentialDriveNode
from mime.nodes.sensing.encoder import EncoderNode as EncoderNode
from mime.nodes.sensing.gyro import GyroNode as GyroNode
from mime.nodes.sensing.range_sensor import RangeSensorNode as RangeSensorNode
from mime.running.batch import DivergenceWarning as DivergenceWarning
from mime.running.batched import batched as batched
from mime.running.checkpoint import CheckpointError as CheckpointError
from mime.running.graph import GraphManager as GraphManager
from mime.running.job import DivergenceError as DivergenceError
from mime.running.job import RunInterrupted as RunInterrupted
from mime.running.simulation import Simulation as Simulation
from mime.running.trajectory import Trajectory as Trajectory
from mime.scenarios.loader import load_scenario as load_scenario
from mime.scenarios.problems import ScenarioError as ScenarioError
from mime.scenarios.scenario import Scenario as Scenario
from mime.xla.cache import enable_compilation_cache as enable_compilation_cache

__version__: str
