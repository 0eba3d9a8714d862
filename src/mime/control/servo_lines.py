"""The falling line of a servo: its torque over the velocity that its joint reaches in the step.

    τ(v) = b - K v          K = kd + dt kp,   b = feed-forward + kp (q_des - q) + kd q̇_des
    |τ| <= T                level where the torque limit is reached
    |v| <= V                upright where the speed limit is: there the servo brakes, with up to T

From low to high velocities the line is level at T, upright at -V or level still, slopes, is upright
at V or level already, and level at -T. Dry friction takes τ_c sign(v) off it: upright at v = 0.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from mime.control.falling_torques import FallingLines


class ServoLaw(NamedTuple):
    """The lines of n servos in numbers, all (n,). T and V may be infinite, K zero."""

    b: Any
    K: Any
    T: Any
    V: Any
    friction: Any | None = None
    """τ_c; None when no joint has any."""

    def arranged(self, place: Callable[[Any, float], Any]) -> "ServoLaw":
        """For other coordinates: `place(values, of others)`, where others have no servo."""
        none = (0.0, 0.0, jnp.inf, jnp.inf, 0.0)
        pairs = zip(self, none, strict=True)
        return ServoLaw(*(None if x is None else place(x, rest) for x, rest in pairs))

    def lines(self) -> FallingLines:
        """Torque of servo and friction over velocity."""
        return servo_lines(*self)

    def torque(self, v: Any, total: Any) -> Any:
        """The servo's part of `total` (its torque less the friction) at the velocity v."""
        if self.friction is None:
            return total
        at_limit = total + self.friction * jnp.sign(v)
        sloping = self.b - self.K * v
        return jnp.clip(jnp.where(jnp.abs(v) < self.V, sloping, at_limit), -self.T, self.T)


def servo_lines(b: Any, K: Any, T: Any, V: Any, friction: Any | None = None) -> FallingLines:
    """The lines of n servos, all (n,); T and V may be infinite, K zero."""
    some = K > 0
    safe = jnp.where(some, K, 1)
    drop = jnp.where(some, safe * V, 0)
    b = jnp.clip(b, -T - drop, T + drop)  # the slope, or its end, passes through what is allowed
    left = jnp.clip(jnp.where(some, (b - T) / safe, jnp.where(b >= T, V, -V)), -V, V)
    right = jnp.clip(jnp.where(some, (b + T) / safe, jnp.where(b > -T, V, -V)), -V, V)
    zero = jnp.zeros_like(b)
    corners = [
        (-V, T),
        (left, jnp.clip(b + drop, -T, T)),
        (right, jnp.clip(b - drop, -T, T)),
        (V, -T),
    ]
    no = jnp.zeros_like(some)
    braking_left, braking_right = left <= -V, right >= V
    # upright, velocity, torque, slope
    segments = [
        (no, zero, T, zero),
        (braking_left, -V, jnp.where(braking_left, 0, T), zero),
        (no, zero, b, K),
        (braking_right, V, jnp.where(braking_right, 0, -T), zero),
        (no, zero, -T, zero),
    ]
    if friction is not None:
        corners, segments = _with_friction(corners, segments, jnp.clip(b, -T, T), friction)
    velocity, torque = (jnp.stack(column, 1) for column in zip(*corners, strict=True))
    rows = (jnp.stack(column, 1) for column in zip(*segments, strict=True))
    return FallingLines(velocity, torque, *rows)


def _with_friction(corners: list, segments: list, at_rest: Any, friction: Any) -> tuple[list, list]:
    """Two more corners, at v = 0: those at lower velocities rise by the friction, others fall."""
    zero = jnp.zeros_like(at_rest)
    ends = [(zero, at_rest + friction), (zero, at_rest - friction)]
    stands = [(jnp.ones_like(at_rest, dtype=bool), zero, zero, zero)]
    behind = sum((v <= 0).astype(jnp.int32) for v, _ in corners)

    def raised(entry: tuple, sign: int, torque: int) -> tuple:
        return (*entry[:torque], entry[torque] + sign * friction, *entry[torque + 1 :])

    def inserted(entries: list, middle: list, first: Any, torque: int) -> Iterator[tuple]:
        """`entries` with `middle` from place `first` on; one entry may be on both sides."""
        for k in range(len(entries) + 2):
            chosen = raised(entries[max(k - 2, 0)], -1, torque)
            for at, entry in enumerate(middle):
                chosen = _where(k == first + at, entry, chosen)
            yield _where(k < first, raised(entries[min(k, len(entries) - 1)], 1, torque), chosen)

    return (
        list(inserted(corners, ends, behind, 1)),
        list(inserted(segments, stands, behind + 1, 2)),
    )


def _where(condition: Any, yes: tuple, no: tuple) -> tuple:
    return tuple(lax.select(condition, a, b) for a, b in zip(yes, no, strict=True))
