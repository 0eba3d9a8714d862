"""Motor, gear, spring and link as one graph."""

from typing import Any

from mime.core.node import ParameterError, Problem
from mime.nodes.actuation.elastic_joint import ElasticJointNode
from mime.nodes.actuation.motor import MotorNode
from mime.running.graph import GraphManager


def elastic_drive(
    motor: MotorNode, *, joint_name: str = "joint", iterated: bool = False, **joint: Any
) -> GraphManager:
    """The motor behind its gear, on an elastic joint: volts in, motion of the link out.

        L di/dt = V - R i - ke N x2'
        (N² J + Jo) x2'' = N (kt i - b N x2') + k x1 + v x1'
        I (x1'' + x2'') = -k x1 - v x1' + f

    `motor` has `shaft="driven"` and carries the gear; its `reflected_inertia()` is the joint's
    rotor, and follows when the motor's inertia or gear is varied. `joint` are the other parameters
    and options of `ElasticJointNode`. External inputs are the motor's command and the joint's
    `external_torque` f.

    The motor takes the rotor's speed of the step before: first order, and as in the motor alone
    dt < 2 (N² J + Jo) R / (N² kt ke) keeps it stable. `iterated=True` solves both nodes together in
    each step; still first order, without that limit.
    """
    hint = "Give the motor its inertia_kg_m2 and gear"
    problems = [
        Problem((name,), f"is the motor's, got {joint[name]} for the joint", hint)
        for name in ("rotor_inertia_kg_m2", "gear_ratio")
        if name in joint
    ]
    if motor.shaft != "driven":
        message = f"of the motor must be 'driven', got {motor.shaft!r}: the joint turns its rotor"
        problems.append(Problem(("shaft",), message))
    if problems:
        raise ParameterError(f"elastic_drive of {motor.name!r}", problems)
    timestep = joint.pop("timestep", motor.timestep)
    spring = ElasticJointNode(
        joint_name, timestep, rotor_inertia_kg_m2=motor.reflected_inertia(), **joint
    )
    graph = GraphManager()
    graph.add_node(motor)
    graph.add_node(spring)
    graph.add_derived_parameter(
        spring.name,
        "rotor_inertia_kg_m2",
        MotorNode.reflected_inertia,
        [motor.name],
        ["inertia_kg_m2", "gear"],
    )
    graph.add_edge(motor.name, spring.name, "shaft_torque", "motor_torque")
    graph.add_edge(spring.name, motor.name, "motor_velocity", "shaft_velocity", delay=not iterated)
    if iterated:
        graph.add_coupling_group([motor.name, spring.name])
    modes = ("torque", "voltage", "velocity")
    for mode in modes if motor.command_mode == "auto" else (motor.command_mode,):
        graph.add_external_input(motor.name, f"commanded_{mode}")
    graph.add_external_input(spring.name, "external_torque")
    return graph
