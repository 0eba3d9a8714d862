"""What the range sensors tell about walls: votes for those of the cell ahead, posts passed."""

import math
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from mime.mouse import estimator, navigator
from mime.mouse.estimator import Estimate
from mime.mouse.legs import STRAIGHT
from mime.mouse.navigator import EDGE, RETURN, Plan

LOOK_M = 0.025
"""The walls of the cell ahead are looked at within this distance of its edge."""


def pass_posts(
    brain: Any, estimate: Estimate, plan: Plan, beside: Array, readings: Array
) -> tuple[Estimate, Array]:
    """Correct the place along a straight where a side sensor loses its wall."""
    straight = plan.leg.kind == STRAIGHT
    now = []
    for which, sensor in enumerate(brain.side_sensors):
        forward, right, angle = (float(v) for v in brain.sensor_poses_body[sensor])
        gap = 0.5 * (brain.cell_size_m - brain.wall_thickness_m) - abs(right)
        beside_at = gap / abs(math.sin(angle))
        clear = 0.5 * (beside_at + brain.range_m[1])
        lost = (beside[which] > 0) & (readings[sensor] > clear)
        estimate = estimator.pass_corner(
            estimate,
            lost & straight,
            (forward, right, angle),
            plan.heading * (0.5 * math.pi),
            brain.cell_size_m,
            brain.wall_thickness_m,
            brain.trust,
        )
        seen = readings[sensor] < 0.75 * beside_at + 0.25 * brain.range_m[1]
        now.append(jnp.where(seen, 1.0, jnp.where(lost, 0.0, beside[which])))
    return estimate, jnp.stack(now).astype(beside.dtype)


def look_ahead(brain: Any, plan: Plan, mean: Array, readings: Array) -> Plan:
    """Votes for the walls left, ahead and right of the cell to be entered.

    In the frame of the edge (f ahead of it, l to the right, psi turned) a wall ahead would be
    read at (cell - t/2 - f_s)/cos, one beside at (cell/2 - t/2 -+ l_s)/|sin|. A reading that
    is nearer than half way from there to the longest reading is a vote for the wall.
    """
    edge = navigator.pose_at(brain.world(), plan.cell, plan.heading, EDGE, mean.dtype)
    dx, dy, psi = jnp.unstack(mean[:3] - edge)
    psi = psi - 2.0 * jnp.pi * jnp.round(psi / (2.0 * jnp.pi))
    cos, sin = jnp.cos(edge[2]), jnp.sin(edge[2])
    f, l = cos * dx + sin * dy, cos * dy - sin * dx
    near = (plan.place == EDGE) & (plan.phase <= RETURN)
    near = near & (f > -LOOK_M) & (f < LOOK_M) & (jnp.abs(psi) < 0.35)
    longest, half = brain.range_m[1], 0.5 * brain.wall_thickness_m
    left, right = brain.look_ahead_sensors
    votes = []
    for sensor, side in ((left, -1.0), (brain.front_sensor, 0.0), (right, 1.0)):
        forward, rightward, angle = (float(v) for v in brain.sensor_poses_body[sensor])
        f_s = f + forward * jnp.cos(psi) - rightward * jnp.sin(psi)
        l_s = l + forward * jnp.sin(psi) + rightward * jnp.cos(psi)
        if side:
            expected = (side * 0.5 * brain.cell_size_m - side * half - l_s) / jnp.sin(psi + angle)
            hit = f_s + expected * jnp.cos(psi + angle)
            on_wall = (hit > 0.015) & (hit < brain.cell_size_m - 0.015)
        else:
            expected = (brain.cell_size_m - half - f_s) / jnp.cos(psi + angle)
            on_wall = jnp.ones_like(near)
        seen = near & on_wall & (expected < longest - 0.012)
        vote = jnp.where(readings[sensor] < 0.5 * (expected + longest), 1.0, -1.0)
        votes.append(jnp.where(seen, vote, 0.0))
    return plan._replace(evidence=plan.evidence + jnp.stack(votes).astype(mean.dtype))
