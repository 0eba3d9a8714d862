"""Hard stops of arms in a fit: a hit falls on the end of a step, and derivatives lack its instant.

    dq/dp after a hit at t lacks  -(1 + e) q̇ dt/dp

The cost is rough at the scale of a step, and its slope is wrong: fits end at values that are many
standard deviations off. So the result says which joints have reached their stops.
"""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from mime.control.kinematics import KinematicTree
from mime.fitting.model import Model, first_state
from mime.fitting.parameters import assembled
from mime.fitting.rates import with_timestep
from mime.nodes.actuation.robot_arm import RobotArmNode


def note(model: Model, z: np.ndarray) -> tuple[str, ...]:
    """What the fit says of joints that reach a hard stop in its logs, none if none does."""
    arms = {
        name: node.tree
        for name, node in model.simulation.nodes.items()
        if isinstance(node, RobotArmNode)
        and node.joint_limits == "stop"
        and np.isfinite(node.tree.joint_limits).any()
    }
    joints = sorted(_reached(model, z, arms)) if arms else []
    if not joints:
        return ()
    return (
        f"a hard stop is reached: {', '.join(joints)}. A step meets it at its end, and the fit "
        "does not know the instant: values and intervals may be far off. Fit a part of the log "
        "without hits (span)",
    )


def _reached(model: Model, z: np.ndarray, arms: Mapping[str, KinematicTree]) -> set[str]:
    """Addresses of the joints that come to a limit in some step, with what was found."""
    values = [c.value(z[i]) for i, c in enumerate(model.coordinates)]
    parameters = assembled(model.simulation, model.coordinates, values)
    starts = model.with_unknown_starts(model.data["starts"], values)
    found: set[str] = set()
    for g, inputs, settings in zip(
        model.groups, model.data["inputs"], model.data["settings"], strict=True
    ):
        for k, member in enumerate(g.members):
            e = model.experiments[member]
            simulation = with_timestep(model.simulation, e.period_s / model.fineness)
            own = dict(zip(e.settings, settings[k], strict=True))
            simulation = simulation.with_parameters({**parameters, **own})
            carried = _at(model.data.get("carried"), member)
            _, states = simulation.rollout(
                first_state(simulation, model.slots, starts[member], carried),
                _at(inputs, k),
                steps=g.intervals * model.fineness,
                record={arm: ["joint_angles"] for arm in arms},
            )
            for arm, tree in arms.items():
                lower, upper = np.asarray(tree.joint_limits).T
                q = np.asarray(states[arm]["joint_angles"])
                at = (q <= lower) | (q >= upper)
                hit = np.any(at[1:] & ~at[:-1], axis=0)  # a finger that is closed hits nothing
                names = zip(tree.joint_names, hit.tolist(), strict=True)
                found |= {f"{arm}.joint[{name}]" for name, is_hit in names if is_hit}
    return found


def _at(tree: Any, index: int) -> Any:
    """The entry of a batch."""
    return jax.tree.map(lambda x: x[index], tree)
