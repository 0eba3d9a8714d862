"""The recursive Newton-Euler algorithm: torques of a given motion (Featherstone, chapter 5).

Each link is treated in its own axes, about its own origin. Gravity is a root that accelerates
upwards.
"""

from jaxtyping import Float

from mime.control.kinematics import in_loops
from mime.control.kinematics.recursion import UNROLLED_TORQUES, use_loops
from mime.control.kinematics.scalar import Array, Scalar, add, mul, pack, unpack
from mime.control.kinematics.spatial import (
    ZERO,
    Frame,
    LinkMotion,
    MassMoments,
    Matrix,
    Motion,
    Vector,
    Wrench,
    link_motion,
)
from mime.control.kinematics.tree import (
    KinematicTree,
    joint_motions,
    joint_transforms,
    link_coordinates,
    link_mass_moments,
)
from mime.xla.keep_call import Call, inline


def move_link(parent: LinkMotion, X: Frame, S: Motion, qd: Scalar, qdd: Scalar) -> LinkMotion:
    """A link's motion from its parent's:

        w_i  = Rᵀ w_p + u q̇
        ẇ_i  = Rᵀ ẇ_p + u q̈ + w_i × u q̇
        a_i  = Rᵀ (a_p + A_p r)                       with A = [ẇ]× + [w]×[w]×

    for a revolute joint; a prismatic one leaves w and ẇ alone and adds u q̈ + 2 w_i × u q̇ to a_i
    (Coriolis).
    """
    R, r = X
    w, w_dot, a = R.T @ parent.w, R.T @ parent.w_dot, R.T @ (parent.a + parent.A @ r)
    velocity, acceleration = S * qd, S * qdd
    w_dot = w_dot + acceleration.angular + w.cross(velocity.angular)
    w = w + velocity.angular
    a = a + acceleration.linear + w.cross(velocity.linear) * 2.0
    return link_motion(w, w_dot, a)


def link_motions(
    tree: KinematicTree,
    X: list[Frame],
    qd: list[Scalar],
    qdd: list[Scalar],
    root_acceleration: Vector,
    call: Call = inline,
) -> list[LinkMotion]:
    """The outward pass, from the root to the tips."""
    root = link_motion(ZERO, ZERO, root_acceleration)
    motions: list[LinkMotion] = []
    for i, S in enumerate(joint_motions(tree)):
        parent = tree.parent_idxs[i]
        motions.append(
            call(move_link, root if parent < 0 else motions[parent], X[i], S, qd[i], qdd[i])
        )
    return motions


def joint_torques(
    tree: KinematicTree, X: list[Frame], wrenches: list[Wrench], call: Call = inline
) -> list[Scalar]:
    """tau_i = S_i · f_i,   f_p += X_i f_i: the inward pass, from the tips to the root.

    f_i is the wrench that link i and all links beyond it need.
    """
    f = list(wrenches)
    tau: list[Scalar] = [0.0] * tree.num_links
    S = joint_motions(tree)
    for i in reversed(range(tree.num_links)):
        tau[i] = f[i].power(S[i])
        parent = tree.parent_idxs[i]
        if parent >= 0:
            f[parent] = call(_with_carried, f[parent], X[i], f[i])
    return _sum_over_coordinates(tree, tau)


def inverse_dynamics(
    tree: KinematicTree,
    X: list[Frame],
    masses: list[MassMoments],
    qd: list[Scalar],
    qdd: list[Scalar],
    gravity: Vector,
    F_ext: list[Wrench] | None,
    call: Call = inline,
) -> list[Scalar]:
    """`rnea` on scalars; `forward_dynamics` shares X and masses with it."""
    motions = link_motions(
        tree, X, link_coordinates(tree, qd), link_coordinates(tree, qdd), -gravity, call
    )
    f = [
        call(MassMoments.inertial_wrench, mass, m.a, m.A)
        for mass, m in zip(masses, motions, strict=True)
    ]
    if F_ext is not None:
        f_ext = _wrenches_at_link_origins(tree, X, F_ext, call)
        f = [a - b for a, b in zip(f, f_ext, strict=True)]
    tau = joint_torques(tree, X, f, call)
    armature = unpack(tree.armature)
    return [add(tau[j], mul(armature[j], qdd[j])) for j in range(tree.num_joints)]


def rnea(
    tree: KinematicTree,
    q: Float[Array, " joints"],
    qd: Float[Array, " joints"] | None,
    qdd: Float[Array, " joints"] | None,
    gravity_world: Float[Array, "3"],
    F_ext: Float[Array, "links 6"] | None = None,
) -> Float[Array, " joints"]:
    """τ = M(q) q̈ + c(q, q̇) + g(q) - Σ J_iᵀ F_i: the torques that make the robot move so.

    `qd` and `qdd` may be None, for zero. `F_ext` holds one wrench [F; M] per link, in the root's
    axes, at the link's own `<inertial>` origin. Joint friction is not included; the armature is.
    """
    if use_loops(tree, UNROLLED_TORQUES, q, qd, qdd):
        return in_loops.inverse_dynamics(tree, q, qd, qdd, gravity_world, F_ext)
    return pack(
        inverse_dynamics(
            tree,
            joint_transforms(tree, q),
            link_mass_moments(tree),
            _or_zeros(tree, qd),
            _or_zeros(tree, qdd),
            Vector(unpack(gravity_world)),
            None if F_ext is None else unpack_wrenches(F_ext),
        ),
        q,
        qd,
        qdd,
    )


def gravity_vector(
    tree: KinematicTree, q: Float[Array, " joints"], gravity_world: Float[Array, "3"]
) -> Float[Array, " joints"]:
    """g(q): the torques that hold the robot still."""
    return rnea(tree, q, None, None, gravity_world)


def nonlinear_bias(
    tree: KinematicTree,
    q: Float[Array, " joints"],
    qd: Float[Array, " joints"],
    gravity_world: Float[Array, "3"],
) -> Float[Array, " joints"]:
    """c(q, q̇) + g(q): centrifugal, Coriolis and gravity torques."""
    return rnea(tree, q, qd, None, gravity_world)


def unpack_wrenches(F_ext: Array) -> list[Wrench]:
    """The wrenches whose rows [F; M] an array holds."""
    return [Wrench(Vector(row[:3]), Vector(row[3:])) for row in unpack(F_ext)]


def wrench_at_link_origin(R_world: Matrix, point: Vector, wrench: Wrench) -> Wrench:
    """A wrench in world axes at a point of the link, seen in link axes at the link's origin."""
    force, moment = R_world.T @ wrench.force, R_world.T @ wrench.moment
    return Wrench(force, moment + point.cross(force))


def _with_carried(own: Wrench, X: Frame, beyond: Wrench) -> Wrench:
    return own + X.wrench(beyond)


def _or_zeros(tree: KinematicTree, values: Array | None) -> list[Scalar]:
    return [0.0] * tree.num_joints if values is None else unpack(values)


def _sum_over_coordinates(tree: KinematicTree, per_link: list[Scalar]) -> list[Scalar]:
    """Gᵀ tau: a coordinate carries its own joint and, by their multipliers, those that mimic it."""
    total: list[Scalar] = [0.0] * tree.num_joints
    multiplier = unpack(tree.mimic_multiplier)
    for i, c in enumerate(tree.coordinate_idxs):
        total[c] = add(total[c], mul(multiplier[i], per_link[i]))
    return total


def _wrenches_at_link_origins(
    tree: KinematicTree, X: list[Frame], F_ext: list[Wrench], call: Call
) -> list[Wrench]:
    R_world: list[Matrix] = []
    wrenches = []
    for i, point in enumerate(unpack(tree.inertial_origins)):
        parent = tree.parent_idxs[i]
        R_world.append(X[i].R if parent < 0 else call(Matrix.__matmul__, R_world[parent], X[i].R))
        wrenches.append(call(wrench_at_link_origin, R_world[i], Vector(point), F_ext[i]))
    return wrenches
