"""A tree whose elastic joints hang on extra bodies, as engines without transmissions have it.

Joint j becomes two on the same axis: the spring's (x1), which carries a massless ball of inertia
I_f, and the motor's (x2), which carries the link: q_j = x1 + x2. The armature is the second's.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.control.kinematics import KinematicTree
from mime.control.kinematics.editing.arrays import stacked


def with_inserted_bodies(
    tree: KinematicTree, joints: tuple[int, ...], inertia_kg_m2: Float[Any, " e"]
) -> KinematicTree:
    """The tree with a ball of `inertia_kg_m2` before each of `joints`; N + E coordinates.

    Links and coordinates keep their order, each ball before its link, x1 before x2.
    """
    c_of = tree.coordinate_idxs
    links = _doubled([(i, c in joints) for i, c in enumerate(c_of)])
    coordinates = _doubled([(c, c in joints) for c in range(tree.num_joints)])
    at = {i: new for new, (i, ball) in enumerate(links) if not ball}

    def parent(i: int, ball: bool) -> int:
        if not ball and c_of[i] in joints:
            return at[i] - 1
        return at.get(tree.parent_idxs[i], -1)

    def per_link(array: Any, of_ball: Any) -> Any:
        return stacked([of_ball if ball else array[i] for i, ball in links])

    def per_joint(array: Any, of_spring: Any) -> Any:
        return stacked([of_spring if spring else array[c] for c, spring in coordinates])

    def names(old: tuple[str, ...], new: Sequence[tuple[int, bool]], suffix: str) -> Any:
        return tuple(old[i] + suffix if extra else old[i] for i, extra in new)

    frames = [
        np.eye(4) if not ball and c_of[i] in joints else tree.joint_frames[i] for i, ball in links
    ]
    inertias = [
        inertia_kg_m2[joints.index(c_of[i])] * np.eye(3) if ball else tree.inertias[i]
        for i, ball in links
    ]
    compensated = {}
    if tree.compensated_masses is not None:
        compensated = {
            "compensated_masses": per_link(tree.compensated_masses, 0.0),
            "compensated_moments": per_link(tree.compensated_moments, np.zeros(3)),
        }
    return dataclasses.replace(
        tree,
        **compensated,
        joint_frames=stacked(frames),
        joint_axes_local=stacked([tree.joint_axes_local[i] for i, _ in links]),
        mimic_multiplier=per_link(tree.mimic_multiplier, 1.0),
        mimic_offset=per_link(tree.mimic_offset, 0.0),
        masses=per_link(tree.masses, 0.0),
        coms=per_link(tree.coms, np.zeros(3)),
        inertial_shifts=per_link(tree.inertial_shifts, np.zeros(3)),
        inertias=stacked(inertias),
        joint_friction=per_joint(tree.joint_friction, 0.0),
        joint_coulomb_friction=per_joint(tree.joint_coulomb_friction, 0.0),
        joint_limits=per_joint(tree.joint_limits, np.array([-np.inf, np.inf])),
        effort_limits=per_joint(tree.effort_limits, np.inf),
        velocity_limits=per_joint(tree.velocity_limits, np.inf),
        gear_ratio=per_joint(tree.gear_ratio, 1.0),
        rotor_inertia=per_joint(tree.rotor_inertia, 0.0),
        drive_coupling=None if tree.drive_coupling is None else _coupling(tree, coordinates),
        joint_names=names(tree.joint_names, coordinates, "_spring"),
        link_names=names(tree.link_names, links, "_ball"),
        link_joint_names=names(tree.link_joint_names, links, "_spring"),
        joint_kinds=tuple(tree.joint_kinds[i] for i, _ in links),
        parent_idxs=tuple(parent(i, ball) for i, ball in links),
        coordinate_idxs=tuple(coordinates.index((c_of[i], ball)) for i, ball in links),
        frame_link_idxs=tuple(at.get(i, -1) for i in tree.frame_link_idxs),
        spring_stiffness_n_m_per_rad=None,  # of x1 + x2: `forces.link_torques` has them
        spring_reference_rad=None,
    )


def _coupling(tree: KinematicTree, coordinates: Sequence[tuple[int, bool]]) -> Any:
    """C with a drive of its own for each spring; elastic joints share none."""
    n = len(coordinates)
    xp: Any = np if isinstance(tree.drive_coupling, np.ndarray) else jnp
    own = [at for at, (_, spring) in enumerate(coordinates) if not spring]
    C = np.eye(n)
    if xp is np:
        C[np.ix_(own, own)] = tree.drive_coupling
        return C
    return jnp.asarray(C).at[np.ix_(own, own)].set(tree.drive_coupling)


def interleaved(
    x1: Float[Array, " e"], x2: Float[Array, " n"], joints: tuple[int, ...]
) -> Float[Array, " n_and_e"]:
    """The coordinates of the tree with bodies, from those of the springs and of the motors."""
    coordinates = _doubled([(c, c in joints) for c in range(x2.shape[0])])
    return jnp.stack([x1[joints.index(c)] if spring else x2[c] for c, spring in coordinates])


def separated(
    coordinates: Float[Array, " n_and_e"], joints: tuple[int, ...]
) -> tuple[Float[Array, " e"], Float[Array, " n"]]:
    """The inverse of `interleaved`: (x1, x2)."""
    n = coordinates.shape[0] - len(joints)
    order = _doubled([(c, c in joints) for c in range(n)])
    springs = [coordinates[order.index((c, True))] for c in joints]
    motors = [coordinates[order.index((c, False))] for c in range(n)]
    return jnp.stack(springs), jnp.stack(motors)


def _doubled(entries: Sequence[tuple[int, bool]]) -> list[tuple[int, bool]]:
    """(index, is it the extra one?): each elastic entry as its extra and itself."""
    return [
        (index, extra)
        for index, elastic in entries
        for extra in ((True, False) if elastic else (False,))
    ]
