"""What a fit says beside the values of a URDF or an MJCF: where they came from, and their ±."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from mime._text import quoted
from mime.core.address import find
from mime.core.problem import InputError, ParameterError
from mime.fitting.parameters import KINDS
from mime.nodes.actuation.elastic_joint import ElasticJointNode
from mime.nodes.actuation.friction import Coulomb
from mime.nodes.actuation.robot_arm.parameters import RobotArmParameters
from mime.running.simulation import Simulation

if TYPE_CHECKING:
    from mime.fitting.result import Estimate, Fit

Comments = tuple[dict[str, str], dict[str, float]]
"""Origins and uncertainties, by address."""
_WORDS = {
    "known": "fit, 95 %",
    "combination": "known only together with others, prior kept",
    "unknown": "not known from this log, prior kept",
    "bound": "at its bound",
}
_OF_ELASTIC_JOINT = {
    "stiffness_n_m_per_rad": "joint[{}_spring]",
    "damping_n_m_s": "joint[{}_spring]",
    "rotor_inertia_kg_m2": "joint[{}]",
    "gear_ratio": "joint[{}]",
    "output_inertia_kg_m2": "link[{}_output]",
    "inserted_inertia_kg_m2": "link[{}_ball]",
}
"""Where an MJCF has the values of an elastic joint."""


def comments(fit: "Fit", simulation: Simulation) -> Comments:
    """Of all parameters, by the addresses that writers know."""
    origins: dict[str, str] = {}
    uncertainties: dict[str, float] = {}
    for e in fit.estimates:
        address = _in_file(simulation, e) if e.quantity in KINDS else None
        if address is None:
            continue
        words = _WORDS[e.kind]
        if e.quantity == "body" and e.value is not None:  # a file has no moment to stand beside
            words = f"fit, 95 %: {e.value:.5g} {e.unit}"
        origins[address] = words
        if e.low is not None and e.high is not None:
            uncertainties[address] = float(f"{0.5 * (e.high - e.low):.2g}")
    return origins, uncertainties


def _in_file(simulation: Simulation, e: "Estimate") -> str | None:
    """`arm.joint_friction_n_m_s[0]` is arm.joint[NAME].friction_n_m_s in a file."""
    name, _, rest = e.name.partition(".")
    node = simulation.nodes[name]
    if e.quantity == "body":
        return e.name if rest.startswith("link[") else None
    if isinstance(node, ElasticJointNode):
        where = _OF_ELASTIC_JOINT.get(rest)
        return f"{name}.{where.format(name)}.{rest}" if where else None
    if not isinstance(node, RobotArmParameters):
        return e.name
    try:
        leaf = find(node, rest)
    except ParameterError:
        return None
    for group, fields in node.named_entries().items():
        for field, entries in fields.items():
            if entries.leaf == ".".join(leaf.path) and leaf.index:
                which, *others = leaf.index
                last = f"[{','.join(map(str, others))}]" if others else ""
                return f"{name}.{group}[{entries.names[which]}].{field}{last}"
    return None


def arm_to_urdf(fit: "Fit", path: Any) -> None:
    """The fitted arm, what it carries in its links, as a URDF."""
    simulation = fit.simulation
    arms = [n for n in simulation.nodes.values() if isinstance(n, RobotArmParameters)]
    if len(arms) != 1:
        names = quoted(node.name for node in arms) if arms else "none"
        raise InputError(f"to_urdf writes a graph with one arm; this one has {names}")
    arm: Any = arms[0]
    dry = np.zeros(arm.num_joints) if arm.friction is None else arm.friction.coulomb_torque
    tree = dataclasses.replace(
        arm.loaded_tree,
        joint_friction=np.asarray(arm.joint_friction_n_m_s, float),
        joint_coulomb_friction=np.asarray(dry, float),
    )
    origins, uncertainties = comments(fit, simulation)
    start = f"{arm.name}."
    own = {a.removeprefix(start): w for a, w in origins.items() if a.startswith(start)}
    widths = {a.removeprefix(start): w for a, w in uncertainties.items() if a.startswith(start)}
    for e, j in enumerate(arm.elastic_joints):
        k = float(np.asarray(arm.joint_stiffness_n_m_per_rad)[e])
        address = f"joint[{arm.tree.joint_names[j]}].stiffness_n_m_per_rad"
        said = own.get(address, "the model's own")
        own[address] = f"{said}; {k!r} N·m/rad, which a URDF cannot say"
    if arm.friction is not None and not isinstance(arm.friction, Coulomb):
        for j, name in enumerate(arm.tree.joint_names):
            words = f"{arm.friction.in_words(j)}, of which a URDF says the Coulomb torque"
            own[f"joint[{name}].friction"] = words
    tree.to_urdf(path, origins=own, uncertainties=widths)
