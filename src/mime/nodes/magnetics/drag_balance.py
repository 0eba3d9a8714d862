r"""Velocities at which drag, wall and friction balance a wrench: the minimum of a convex function.

    V = argmin  ½ Vᵀ R V - Wᵀ V + c2 |w|³ / 3
                + Σ E(g + dt n . v_c) / dt + mu N sqrt(|v_s|² + v_0²)

V = (U, Omega) of the step, W the wrench, w the spin about the axis, E the wall's energy at the
depth that the step ends at, v_s the sliding velocity. The wall is implicit, so it may be as stiff
as it likes; N of friction and the geometry are those of the step's start.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mime.control.positive_definite import solve
from mime.core.node import Scalar
from mime.nodes.magnetics.tube import Contacts, Tube

MOST_ITERATIONS = 30
"""Five are the rule; a ball that is as deep in the wall as it is wide took 22."""
_TRIALS = (1.0, 0.5, 0.25, 0.1)
"""Parts of a step that are tried."""


class Balance(NamedTuple):
    """What a swimmer's velocities have to balance; all in the world, about the body's origin."""

    resistance: Float[Array, "6 6"]
    wrench: Float[Array, "6"]
    """W, with what a flow carries: R v."""
    axis: Float[Array, "3"]
    quadratic_drag: Scalar
    """c2, of the spin about the axis."""
    contacts: Contacts
    tube: Tube
    dt: Scalar


def free_twist(
    R: Float[Array, "6 6"], wrench: Float[Array, "6"], quadratic_drag: Scalar
) -> Float[Array, "6"]:
    """V where there is no wall, in the body's axes.

    S Omega + c2 |w| w e_z = T - C A⁻¹ F,   S = D - C A⁻¹ Cᵀ,   w = Omega_z

    is left when U is eliminated from R = [A Cᵀ; C D]. Its solution for c2 = 0 has the spin w_0;
    with c2 it is the root of w + c2 (S⁻¹)_zz |w| w = w_0. Then c2 |w| is known: one more linear
    drag.
    """
    A, C, force, torque = R[:3, :3], R[3:, :3], wrench[:3], wrench[3:]
    A_inverse = _inverse(A)
    turning = torque - C @ (A_inverse @ force)
    S = R[3:, 3:] - C @ A_inverse @ C.T
    S_inverse = _inverse(S)
    free_spin = S_inverse[2] @ turning
    root = jnp.sqrt(1.0 + 4.0 * quadratic_drag * S_inverse[2, 2] * jnp.abs(free_spin))
    spin = 2.0 * free_spin / (1.0 + root)
    Omega = _inverse(S.at[2, 2].add(quadratic_drag * jnp.abs(spin))) @ turning
    return jnp.concatenate([A_inverse @ (force - C.T @ Omega), Omega])


def balanced_twist(problem: Balance) -> Float[Array, "6"]:
    """V, by Newton's method on velocities and directions of friction, d = v_s / sqrt(..), at once.

    Newton's method on V alone overshoots where what slid has to stick (v_0 is a small speed). With
    d as an unknown of its own it does not (Chan, Golub and Mulet, 1999). Derivatives are those of
    the balance: the last step alone is differentiated, and it is taken from the solution.
    """
    fixed = jax.lax.stop_gradient(problem)

    def goes_on(carry: tuple[Array, Array, Array, Array]) -> Array:
        return carry[2] & (carry[3] < MOST_ITERATIONS)

    def iterate(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        V, directions, _, count = carry
        residual, slope = _residual(fixed, V), _slope(fixed, V, directions)
        step = solve(slope, -residual[:, None])[:, 0]
        trials = jnp.asarray(_TRIALS, V.dtype)
        left = jax.vmap(lambda part: jnp.abs(step @ _residual(fixed, V + part * step)))(trials)
        good = left[0] <= 0.5 * jnp.abs(step @ residual)
        change = step * jnp.where(good, 1.0, trials[jnp.argmin(left)])
        after = V + change
        rough = -(step @ residual) > jnp.finfo(V.dtype).eps * (after @ slope @ after)
        return after, _turned(fixed, V, change, directions), rough, count + 1

    V = jnp.zeros_like(fixed.wrench)
    start = (V, jnp.zeros_like(fixed.contacts.normals), jnp.ones((), bool), jnp.zeros((), int))
    V = jax.lax.stop_gradient(jax.lax.while_loop(goes_on, iterate, start)[0])
    _, along = _jacobians(problem.contacts)
    slide, speed, _ = _friction(problem, along, V)
    slope = _slope(problem, V, slide / speed[:, None])
    return V - solve(slope, _residual(problem, V)[:, None])[:, 0]


def _residual(problem: Balance, V: Float[Array, "6"]) -> Float[Array, "6"]:
    """The gradient of the function: drag and wall less the wrench."""
    tube, spin = problem.tube, problem.axis @ V[3:]
    into, along = _jacobians(problem.contacts)
    push = tube.push(problem.contacts.depths_m + problem.dt * (into @ V))
    slide, _, grip = _friction(problem, along, V)
    total = problem.resistance @ V - problem.wrench + push @ into
    total = total + jnp.einsum("n,nij,ni->j", grip, along, slide)
    return total.at[3:].add(problem.quadratic_drag * jnp.abs(spin) * spin * problem.axis)


def _slope(
    problem: Balance, V: Float[Array, "6"], directions: Float[Array, "n 3"]
) -> Float[Array, "6 6"]:
    """The derivative of the residual where directions are those of V; positive for |d| <= 1."""
    tube, spin = problem.tube, problem.axis @ V[3:]
    into, along = _jacobians(problem.contacts)
    stiff = problem.dt * tube.push_slope(problem.contacts.depths_m + problem.dt * (into @ V))
    slide, speed, grip = _friction(problem, along, V)
    d, v = (jnp.einsum("nij,ni->nj", along, x) for x in (directions, slide / speed[:, None]))
    total = problem.resistance + jnp.einsum("n,ni,nj->ij", stiff, into, into)
    total = total + jnp.einsum("n,nki,nkj->ij", grip, along, along)
    less = 0.5 * jnp.einsum("n,ni,nj->ij", grip, d, v)
    twice = 2.0 * problem.quadratic_drag * jnp.abs(spin)
    total = total - less - less.T
    return total.at[3:, 3:].add(twice * jnp.outer(problem.axis, problem.axis))


def _turned(
    problem: Balance, V: Float[Array, "6"], change: Float[Array, "6"], directions: Array
) -> Float[Array, "n 3"]:
    """The directions after a step, from d sqrt(|v_s|² + v_0²) = v_s to first order; |d| <= 1."""
    _, along = _jacobians(problem.contacts)
    slide, speed, _ = _friction(problem, along, V)
    faster = along @ change
    growth = jnp.sum(slide * faster, axis=1) / speed
    d = (slide + faster - growth[:, None] * directions) / speed[:, None]
    return d / jnp.maximum(1.0, jnp.sqrt(jnp.sum(d**2, axis=1)))[:, None]


def _friction(
    problem: Balance, along: Float[Array, "n 3 6"], V: Float[Array, "6"]
) -> tuple[Float[Array, "n 3"], Float[Array, " n"], Float[Array, " n"]]:
    """Sliding velocities, their smoothed lengths, and friction over sliding velocity."""
    slide = along @ V
    speed = jnp.sqrt(jnp.sum(slide**2, axis=1) + problem.tube.creep_speed_m_s**2)
    push = problem.tube.push(problem.contacts.depths_m)
    return slide, speed, problem.tube.friction * push / speed


def _jacobians(contacts: Contacts) -> tuple[Float[Array, "n 6"], Float[Array, "n 3 6"]]:
    """Velocity into the wall, and along it, of each contact's point by V."""
    n, arm = contacts.normals, contacts.arms_m
    into = jnp.concatenate([n, jnp.cross(arm, n)], axis=1)
    eye = jnp.eye(3, dtype=n.dtype)
    turn = jnp.cross(arm[:, None, :], eye[None])  # (Omega x arm)_i = Omega . (arm x e_i)
    same = jnp.broadcast_to(eye[None], turn.shape)
    velocity = jnp.concatenate([same, turn], axis=2)
    return into, velocity - n[:, :, None] * into[:, None, :]


def _inverse(M: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    """M⁻¹ of a symmetric matrix: its columns are cross products of M's over the determinant."""
    columns = jnp.stack([jnp.cross(M[1], M[2]), jnp.cross(M[2], M[0]), jnp.cross(M[0], M[1])], 1)
    return columns / (M[0] @ columns[:, 0])
