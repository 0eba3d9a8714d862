"""The articulated-body algorithm: accelerations of given torques (Featherstone, chapter 7).

Its cost grows with the number of links, where that of a mass matrix grows with its square.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from .in_loops import link_masses, link_motions, needed_wrenches, six, table
from .placement import placed, product
from .recursion import columns, common_dtype, inward, outward, runs
from .scalar import Array, add, unpack
from .spatial import Vector, cross_matrix
from .tree import KinematicTree


def articulated_bodies(
    tree: KinematicTree,
    q: Float[Array, " joints"],
    qd: Float[Array, " joints"],
    tau: Float[Array, " joints"],
    gravity_world: Float[Array, "3"],
    F_ext: Float[Array, "links 6"] | None,
    diagonal: Float[Array, " joints"] | None,
) -> Float[jax.Array, " joints"]:
    """q̈ of a tree without mimic joints. From the tips to the root,

        U_i = I_i S_i                                 wrench that moves joint i alone
        D_i = S_i · U_i + armature + diagonal
        u_i = tau_i - S_i · p_i
        I_p += X_i (I_i - U_i D_i⁻¹ U_iᵀ)             the body from link i on, its joint free
        p_p += X_i (p_i + U_i D_i⁻¹ u_i)

    and from the root to the tips,

        a_i = X_i⁻¹ a_p
        q̈_i = D_i⁻¹ (u_i - U_i · a_i)
        a_i += S_i q̈_i

    p_i starts as the wrench that link i needs when q̈ = 0, and a_i is the acceleration beyond that
    motion: gravity and the velocity products then appear in p alone.
    """
    dtype = common_dtype(tree, q, qd, tau, gravity_world, F_ext, diagonal)
    qd, tau = (jnp.asarray(x, dtype) for x in (qd, tau))
    resistance = columns(tree.armature, dtype)
    if diagonal is not None:
        resistance = add(resistance, columns(diagonal, dtype))
    tree_runs = runs(tree.parent_idxs)
    links = placed(tree, q, dtype, tree_runs)
    mass = link_masses(tree, dtype)
    motion = link_motions(links, qd, 0.0, -Vector(unpack(gravity_world)), dtype, tree_runs)
    p = needed_wrenches(tree, links, mass, motion, F_ext, dtype)

    def release(beyond: Any, link: Any) -> Any:
        (I, p), (I_i, R, p_i, S, r, tau, resistance) = beyond, link
        I, p = I + turned(R, turned(R, I_i).T).T, p + p_i
        U = jnp.sum(I * S[None, :], axis=1)
        inverse_D = 1.0 / (jnp.sum(U * S) + resistance)
        u = tau - jnp.sum(S * p)
        I, p = I - U[:, None] * (inverse_D * U)[None, :], p + U * (inverse_D * u)
        I = moved(r, moved(r, I).T).T
        return (I, moved(r, p[:, None])[:, 0]), (U, inverse_D, u)

    def accelerate(parent: Any, link: Any) -> Any:
        (a, _), (S, r, U, inverse_D, u) = parent, link
        a = a.at[:3].add(-product(r, a[3:, None])[:, 0])
        qdd = inverse_D * (u - jnp.sum(U * a))
        return a + S * qdd, qdd

    n = tree.num_links
    r, S = table(cross_matrix(links.X.r), n, dtype), six(links.S, n, dtype).T
    resistances = jnp.broadcast_to(jnp.asarray(resistance, dtype), n)
    I = table(mass.matrix(), n, dtype)
    start = jnp.zeros((6, 6), dtype), jnp.zeros(6, dtype)
    bodies = (I, links.array[:, :, :3], six(p, n, dtype).T, S, r, tau, resistances)
    U, inverse_D, u = inward(tree_runs, release, start, bodies, dtype)
    still: tuple[jax.Array, Any] = jnp.zeros(6, dtype), 0.0
    return outward(tree_runs, accelerate, still, (S, r, U, inverse_D, u), dtype)[1]


def moved(r: jax.Array, wrenches: jax.Array) -> jax.Array:
    """Columns [F; N] at a link's origin, seen at its parent's: [F; N + [r]× F]."""
    F, N = wrenches[:3], wrenches[3:]
    return jnp.concatenate([F, N + product(r, F)])


def turned(R: jax.Array, wrenches: jax.Array) -> jax.Array:
    """Columns [F; N] in other axes: [R F; R N]."""
    return jnp.concatenate([product(R, wrenches[:3]), product(R, wrenches[3:])])
