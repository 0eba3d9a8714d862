"""The springs of elastic joints, taken implicitly and eliminated from a step of the arm.

    J θ̈ = tau + s,    M(q) q̈ = ... - s,    s = k x + v ẋ,    x = q - θ

θ is the rotor after its gear and J what it weighs there. Over a step the spring's torque is taken
at the time h: half of the step (midpoint rule) or all of it (backward Euler). With K = k h + v,

    s = s0 + K h (q̈ - θ̈),                       s0 = k x + K ẋ
    θ̈ = (tau + s0 + K h q̈) / (J + K h)
    (M + rho J) q̈ = ... + rho tau - (1 - rho) s0,    rho = K h / (J + K h)

rho is the share of its rotor that a link feels within a step. It is 1 for a rigid joint, whose
rotor is then the armature on the diagonal of M, so a spring of any stiffness fits between: the
dynamics are those of a rigid arm with another diagonal and another torque.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class Springs(NamedTuple):
    """The E springs of an arm and the state they are in, over a step. All (E,), N·m, rad, s."""

    k: Any
    v: Any
    J: Any
    """Inertia of the rotor after the gear; implicit friction of the rotor over the step added."""
    x: Array
    xd: Array
    tau: Array
    """Torque on the rotor, after the gear."""
    h: Any

    @property
    def K(self) -> Any:
        return self.k * self.h + self.v

    @property
    def share(self) -> Any:
        """rho = K h / (J + K h)"""
        Kh = self.K * self.h
        return Kh / (self.J + Kh)

    @property
    def diagonal(self) -> Any:
        """rho J, what M gains."""
        return self.share * self.J

    @property
    def torque(self) -> Any:
        """rho tau - (1 - rho) s0, the torque on the link."""
        rho = self.share
        return rho * self.tau - (1 - rho) * (self.k * self.x + self.K * self.xd)

    def rotor_acceleration(self, qdd: Float[Array, " e"]) -> Any:
        """θ̈ = (tau + s0 + K h q̈) / (J + K h)"""
        s0 = self.k * self.x + self.K * self.xd
        return (self.tau + s0 + self.K * self.h * qdd) / (self.J + self.K * self.h)


def spread(values: Any, joints: tuple[int, ...], n: int) -> Any:
    """(E,) to (N,): the value of each elastic joint at its place, 0 at rigid ones."""
    if isinstance(values, np.ndarray):
        full = np.zeros(n, values.dtype)
        full[list(joints)] = values
        return full
    if len(joints) == n:
        return values
    zero = jnp.zeros((), values.dtype)
    return jnp.stack([values[joints.index(j)] if j in joints else zero for j in range(n)])


def only(values: Any, joints: tuple[int, ...]) -> Any:
    """(N,) to (E,): the elastic joints' entries."""
    if isinstance(values, np.ndarray):
        return values[list(joints)]
    if len(joints) == values.shape[0]:
        return values
    return jnp.stack([values[j] for j in joints])
