"""Forward dynamics: the accelerations that given torques cause.

Most trees take the mass matrix with a sparse LᵀDL, unrolled: small ones in one piece, larger ones
link by link (`keep_call`). Deep ones, and many large ones at once, take articulated bodies.
benchmarks/joints.py and benchmarks/parts.py measure which is faster.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from mime.control.kinematics import in_loops
from mime.control.kinematics.aba import Bodies, articulated_bodies, bias_wrenches, solve_bodies
from mime.control.kinematics.crba import composite_rigid_bodies
from mime.control.kinematics.ltdl import solve_ltdl
from mime.control.kinematics.recursion import INLINED_SOLVES, UNROLLED_SOLVES, is_large, use_loops
from mime.control.kinematics.rnea import inverse_dynamics, unpack_wrenches
from mime.control.kinematics.scalar import Array, add, pack, sub, unpack
from mime.control.kinematics.spatial import Vector
from mime.control.kinematics.tree import (
    KinematicTree,
    joint_transforms,
    link_mass_moments,
    path_to_root,
)
from mime.native.folding import Constants, jit_folding, split
from mime.xla.keep_call import Call, inline, keep_call

_DEEP = 12
"""Articulated bodies are faster for chains of more links than this."""


def forward_dynamics(
    tree: KinematicTree,
    q: Float[Array, " joints"],
    qd: Float[Array, " joints"],
    tau: Float[Array, " joints"],
    gravity_world: Float[Array, "3"],
    F_ext: Float[Array, "links 6"] | None = None,
    diagonal: Float[Array, " joints"] | None = None,
) -> Float[Array, " joints"]:
    """M(q) q̈ = tau - c(q, q̇) - g(q) + Σ J_iᵀ F_i, solved for q̈.

    `tau` is the whole torque on the joint, friction included. `diagonal` is added to the diagonal
    of M: implicit friction f over a step dt is `diagonal = f·dt`, an extra rotor is its armature.
    """
    given = DynamicsInputs(tree, q, qd, tau, gravity_world, F_ext, diagonal)
    if not is_large(tree, 0, q, qd, tau):  # nothing to compile
        return _by_mass_matrix(given, inline)
    if not is_large(tree, UNROLLED_SOLVES, q, qd, tau):
        return _of_small(*split(given))
    if not use_loops(tree, UNROLLED_SOLVES, q, qd, tau):
        return _link_by_link(given)
    return _of_large(*split(given))


class DynamicsInputs(NamedTuple):
    """The arguments of `forward_dynamics`."""

    tree: KinematicTree
    q: Array
    qd: Array
    tau: Array
    gravity_world: Array
    F_ext: Array | None
    diagonal: Array | None


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _of_small(constants: Constants, variables: list[Array]) -> Array:
    """q̈ of a small tree: in one piece if it is very small or batched, else link by link."""
    in_one_piece = partial(_by_mass_matrix, call=inline)
    if constants.merge(variables).tree.num_links <= INLINED_SOLVES:
        return in_one_piece(constants.merge(variables))
    return _of_one_or_many(constants, variables, _link_by_link, in_one_piece)


@_of_small.defjvp
def _change_of_small(
    constants: Constants, variables: tuple[list[Array]], changes: tuple[list[Array]]
) -> tuple[Array, Array]:
    """q̈ and its change, link by link: the derivative takes four times as many operations."""
    return jax.jvp(lambda x: _link_by_link(constants.merge(x)), variables, changes)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _of_large(constants: Constants, variables: list[Array]) -> Array:
    """q̈ of a large tree: link by link for one robot, unless it is deep; in loops for many.

    Unrolled, a batch of large robots takes minutes to compile.
    """
    if _is_deep(constants.merge(variables).tree):
        return by_articulated_bodies(constants.merge(variables))[0]
    many = lambda given: by_articulated_bodies(given)[0]  # noqa: E731
    return _of_one_or_many(constants, variables, _link_by_link, many)


def _of_one_or_many(
    constants: Constants,
    variables: list[Array],
    one: Callable[[DynamicsInputs], Array],
    many: Callable[[DynamicsInputs], Array],
) -> Array:
    """one(given), and under `jax.vmap` the batched `many`."""

    @jax.custom_batching.custom_vmap
    def of_one(variables: list[Array]) -> Array:
        return one(constants.merge(variables))

    @of_one.def_vmap
    def of_many(_: int, is_batched: list[list[bool]], variables: list[Array]) -> tuple[Array, bool]:
        axes = [0 if batched else None for batched in is_batched[0]]
        return jax.vmap(lambda each: many(constants.merge(each)), (axes,))(variables), True

    return of_one(variables)


@_of_large.defjvp
def _change_of_large(
    constants: Constants, variables: tuple[list[Array]], changes: tuple[list[Array]]
) -> tuple[Array, Array]:
    """M δq̈ = -δ(ID(q, q̇, q̈) - tau) at a fixed q̈.

    The derivative is that of inverse dynamics, and then a second right side for the same M.
    """
    given = constants.merge(variables[0])
    tree, q, *_, diagonal = given
    qdd, bodies = by_articulated_bodies(given)

    def imbalance(variables: list[Array]) -> Array:
        tree, q, qd, tau, gravity_world, F_ext, diagonal = constants.merge(variables)
        needed = in_loops.inverse_dynamics(tree, q, qd, qdd, gravity_world, F_ext) - tau
        return needed if diagonal is None else needed + diagonal * qdd

    def times_M(x: Array) -> Array:
        force = in_loops.inverse_dynamics(tree, q, None, x, np.zeros(3), None)
        return force if diagonal is None else force + diagonal * x

    def solve(_: Callable, force: Array) -> Array:
        return solve_bodies(bodies, force)

    _, change = jax.jvp(imbalance, variables, changes)
    return qdd, jax.lax.custom_linear_solve(times_M, -change, solve, symmetric=True)


def _is_deep(tree: KinematicTree) -> bool:
    return max(len(path_to_root(tree, i)) for i in range(tree.num_links)) > _DEEP


def by_articulated_bodies(given: DynamicsInputs) -> tuple[Array, Bodies]:
    """q̈ in loops, for a tree without mimic joints; and what was computed on the way."""
    tree, q, qd, tau, gravity_world, F_ext, diagonal = given
    bodies = articulated_bodies(tree, q, diagonal)
    p = bias_wrenches(bodies, tree, qd, gravity_world, F_ext)
    return solve_bodies(bodies, tau, p), bodies


def _by_mass_matrix(given: DynamicsInputs, call: Call) -> Array:
    tree, q, qd, tau, gravity_world, F_ext, diagonal = given
    X = joint_transforms(tree, q, call)
    masses = link_mass_moments(tree)
    bias = inverse_dynamics(
        tree,
        X,
        masses,
        unpack(qd),
        [0.0] * tree.num_joints,
        Vector(unpack(gravity_world)),
        None if F_ext is None else unpack_wrenches(F_ext),
        call,
    )
    M = composite_rigid_bodies(tree, X, masses, call)
    if diagonal is not None:
        for c, extra in enumerate(unpack(diagonal)):
            M[c][c] = add(M[c][c], extra)
    rest = [sub(t, b) for t, b in zip(unpack(tau), bias, strict=True)]
    return pack(solve_ltdl(M, rest, call), q, qd, tau)


_link_by_link = jit_folding(partial(_by_mass_matrix, call=keep_call))
