"""The longest step at which springs beside the joints do not shake an arm.

    (M + dt F) v' = M v - dt K q,     q' = q + dt v'

A step takes these springs at its beginning, and friction at its end (`integrator="implicit"`) or at
its beginning too. About its equilibrium the arm is linear; the step is a matrix, here in NumPy, and
the motion grows where that has an eigenvalue beyond 1. For a rigid arm this is where

    4 M + 2 dt F - dt² K     (explicit friction: - 2 dt F)

is not positive definite: dt < 2 sqrt(J / k) for a single joint without friction. The midpoint rule
of an elastic joint moves its link by the mean of two velocities; then a spring beside a joint is
stable only with some friction, and the motion grows slowly where it is not.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np

from mime.control.postures import mass_matrices
from mime.core.parameters import known
from mime.core.problem import StabilityWarning
from mime.nodes.actuation.robot_arm.checks import HIGHER_ORDER
from mime.nodes.actuation.robot_arm.elastic import rigid_joints, without_rotors
from mime.nodes.actuation.robot_arm.parameters import RobotArmParameters

_GROWTH = 1e-5
"""Of an amplitude in a step, 1 % a second at 1 ms. Less is no reason to warn, or rounding: a joint
that nothing holds has the eigenvalue 1 twice, which is computed to the root of the precision.
"""
_HALVINGS = 40


class LinearStep(NamedTuple):
    """An arm about its equilibrium, with springs beside joints; of N joints E are elastic."""

    M: np.ndarray
    """(N, N), an elastic joint's rotor left out."""
    J: np.ndarray
    """(E,) of the rotors."""
    K: np.ndarray
    """(N,) beside the joints."""
    F: np.ndarray
    """(N,) friction of the drives, an elastic joint's on its rotor."""
    k: np.ndarray
    v: np.ndarray
    """(E,) of the elastic joints."""
    elastic: tuple[int, ...]
    implicit: bool
    """Whether friction is taken at the end of the step."""
    midpoint: bool
    C: np.ndarray
    """(N, N) of the drives, see `drive_coupling`."""
    own: bool
    """Whether rotors move by their own acceleration, see `RobotArmNode._elastic_step`."""

    def matrix(self, dt: float) -> np.ndarray:
        """(q, q̇, x, ẋ) after a step from those before, (2 N + 2 E, 2 N + 2 E)."""
        n, e = len(self.M), len(self.elastic)
        at = np.eye(n)[:, list(self.elastic)]  # of an elastic joint among all: (N, E)
        h = 0.5 * dt if self.midpoint else dt
        spring = self.k * h + self.v
        q, qd, x, xd = np.split(np.eye(2 * (n + e)), np.cumsum([n, n, e]))
        s0 = self.k[:, None] * x + spring[:, None] * xd
        rubbed = self.C.T @ (np.where(at.any(1), 0, self.F)[:, None] * self.C)
        rotor_rubbed = self.F @ at
        implicit = dt if self.implicit else 0.0
        links = self.M + implicit * rubbed + at @ np.diag(spring * h) @ at.T
        rotors = np.diag(self.J + implicit * rotor_rubbed + spring * h)
        across = -at @ np.diag(spring * h)
        on_links = -self.K[:, None] * q - rubbed @ qd - at @ s0
        on_rotors = s0 - rotor_rubbed[:, None] * (at.T @ qd - xd)
        H = np.block([[links, across], [across.T, rotors]])
        acceleration = np.linalg.solve(H, np.concatenate([on_links, on_rotors]))
        qdd, xdd = acceleration[:n], at.T @ acceleration[:n] - acceleration[n:]
        new_qd = qd + dt * qdd
        new_q = q + dt * new_qd
        if self.midpoint and self.own:
            new_q = new_q - dt * h * at @ xdd
        elif self.midpoint and e:
            both = self.M + at @ np.diag(self.J) @ at.T
            shared = self.M @ qdd + at @ (self.J[:, None] * acceleration[n:])
            new_q = new_q - dt * h * (qdd - np.linalg.solve(both, shared))
        return np.concatenate([new_q, new_qd, x + dt * (xd + h * xdd), xd + dt * xdd])

    def growth(self, dt: float) -> tuple[float, int]:
        """The largest eigenvalue, and the joint whose spring has most of that motion's energy."""
        values, vectors = np.linalg.eig(self.matrix(dt))
        fastest = int(np.argmax(np.abs(values)))
        angles = vectors[: len(self.M), fastest]
        return float(np.abs(values[fastest])), int(np.argmax(self.K * np.abs(angles) ** 2))

    def longest(self, dt: float) -> float:
        """The longest step below dt, which is not stable, that is; 0 when none was found."""
        least, most = 0.0, dt
        for _ in range(_HALVINGS):
            middle = (least + most) / 2
            stable = self.growth(middle)[0] <= 1 + _GROWTH
            least, most = (middle, most) if stable else (least, middle)
        return least


def spring_warnings(arm: RobotArmParameters) -> Iterator[Warning]:
    """Springs beside the joints that are too stiff for the arm's step: joint and longest step."""
    dt, elastic = arm.timestep, arm.elastic_joints
    k = arm.tree.spring_stiffness_n_m_per_rad
    if k is None or arm.integrator in HIGHER_ORDER:
        return
    none = np.zeros(0)
    numbers = (
        arm.joint_friction_n_m_s,
        arm.joint_stiffness_n_m_per_rad if elastic else none,
        arm.joint_stiffness_damping_n_m_s if elastic else none,
    )
    if not known(*numbers, *jax.tree.leaves(arm.loaded_tree)) or not np.any(np.asarray(k)):
        return
    F, stiffness, damping = (np.asarray(x, float) for x in numbers)
    steps = [
        LinearStep(
            M,
            np.asarray(arm.tree.armature, float)[list(elastic)],
            np.asarray(k, float),
            F,
            stiffness,
            damping,
            elastic,
            arm.integrator == "implicit",
            arm.spring_integrator == "midpoint",
            np.eye(arm.num_joints) if (C := arm.tree.drive_coupling) is None else np.asarray(C),
            arm.servo is not None or arm.friction is not None,
        )
        for M in mass_matrices(without_rotors(arm.loaded_tree, rigid_joints(arm, float)))
    ]
    growth, j = max(step.growth(dt) for step in steps)
    if growth <= 1 + _GROWTH:
        return
    longest = min(step.longest(dt) for step in steps)
    a_second = np.exp(min(np.log(growth) / dt, 99.0))
    advice = f"Take at most {longest:.3g} s, or a softer spring"
    if elastic and arm.spring_integrator == "midpoint":
        advice += ", or spring_integrator 'backward_euler'"
    yield StabilityWarning(
        f"{arm.label}: the spring of {float(k[j]):g} N·m/rad beside joint "
        f"{arm.tree.joint_names[j]!r} is too stiff for a timestep of {dt:g} s: the arm would "
        f"shake, and {a_second:.3g} times as much a second later. {advice}."
    )
