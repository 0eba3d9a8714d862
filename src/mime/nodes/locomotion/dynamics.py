"""One step of a driven chassis: outer forces, walls and tyres change its velocities.

    (m + 2 J_w/r²) v' = (tau_l + tau_r)/r,   (Iz + J_w W²/(2 r²)) w' = W (tau_l - tau_r)/(2 r)

is what remains of it while no tyre slips, without walls and rolling resistance.
"""

from typing import Any

import jax.numpy as jnp

from mime.core.node import State, Values
from mime.nodes.locomotion.rolling import BodyVelocity, PlanarPose, move_along_arc
from mime.nodes.locomotion.tyres import Chassis, Pair, ground_speeds, roll
from mime.nodes.locomotion.wall_contact import (
    Surface,
    Walls,
    find_contacts,
    place_outline,
    push_out,
    remaining_depth,
)


def dynamic_step(
    drive: Any, state: State, inputs: Values, dt: Any
) -> tuple[BodyVelocity, Pair, State]:
    """Body and wheel velocities after forces, walls and tyres; and the rest of the new state.

    `drive` is a `DifferentialDriveNode`. Outer forces come first, then walls, then tyres.
    """
    v, u, w = state["forward_velocity"], state["lateral_velocity"], state["turn_rate"]
    m, Iz, r = drive.mass_kg, drive.yaw_inertia_kg_m2, drive.radii()
    force = inputs["external_wrench_body"].astype(v.dtype)
    old = BodyVelocity(v, u, w)
    velocity = BodyVelocity(
        v + (dt / m) * force[0], u + (dt / m) * force[1], w + (dt / Iz) * force[2]
    )
    more: State = {}
    if drive.horizontal_walls is not None:
        predicted = velocity
        pose = move_along_arc(PlanarPose(state["x"], state["y"], state["heading"]), predicted, dt)
        body = place_outline(drive.outline_m, pose)
        contacts = find_contacts(_walls(drive), drive.outline_m, body)
        surface = Surface(
            drive.wall_stiffness_n_per_m, drive.wall_damping_n_s_per_m, drive.wall_friction
        )
        push = push_out(contacts, surface, predicted, body, m, Iz, dt)
        velocity, more["contact_force"] = push
    chassis = _chassis(drive, r, dt)
    if drive.friction_coefficient is None:  # rims follow the body, whatever the state says
        rims = ground_speeds(old, drive.track_width_m)
    else:
        rims = Pair(r.left * state["left_wheel_velocity"], r.right * state["right_wheel_velocity"])
    torques = Pair(
        inputs["left_wheel_torque"].astype(v.dtype) * (1.0 / r.left),
        inputs["right_wheel_torque"].astype(v.dtype) * (1.0 / r.right),
    )
    grip = roll(chassis, velocity, rims, torques, dt)
    if drive.horizontal_walls is not None:
        depth = remaining_depth(contacts, body, predicted, grip.velocity, dt)
        more["penetration"] = depth
        more["deepest_penetration"] = jnp.maximum(state["deepest_penetration"], depth)
        more["hardest_contact"] = jnp.maximum(state["hardest_contact"], more["contact_force"])
    wheels = Pair(grip.rims.left * (1.0 / r.left), grip.rims.right * (1.0 / r.right))
    more |= {
        "forward_velocity": grip.velocity.v,
        "lateral_velocity": grip.velocity.u,
        "turn_rate": grip.velocity.w,
        "left_wheel_velocity": wheels.left,
        "right_wheel_velocity": wheels.right,
        "left_tyre_force": grip.impulses.left * (1.0 / dt),
        "right_tyre_force": grip.impulses.right * (1.0 / dt),
        "lateral_tyre_force": grip.lateral_impulse * (1.0 / dt),
        "slipping": grip.slipping,
    }
    return grip.velocity, wheels, more


def _chassis(drive: Any, r: Pair, dt: Any) -> Chassis:
    m, Jw = drive.mass_kg, drive.wheel_inertia_kg_m2
    weight = m * drive.gravity_m_per_s2 * dt
    c, mu = drive.rolling_resistance, drive.friction_coefficient
    return Chassis(
        m=m,
        Iz=drive.yaw_inertia_kg_m2,
        Jl=Jw / r.left**2,
        Jr=Jw / r.right**2,
        W=drive.track_width_m,
        rolling=None if c is None else 0.5 * c * weight,
        grip=None if mu is None else mu * weight,
    )


def _walls(drive: Any) -> Walls:
    return Walls(
        drive.horizontal_walls,
        drive.vertical_walls,
        drive.cell_size_m,
        0.5 * drive.wall_thickness_m,
    )
