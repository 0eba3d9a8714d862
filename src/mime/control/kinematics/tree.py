"""A robot as a value: which link hangs on which, and what each joint and link measures."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float, Int

from mime._text import shortened, unknown_name
from mime.control.kinematics.actuator import Actuator, Keyframe
from mime.control.kinematics.driven import Driven
from mime.control.kinematics.editing import Editable
from mime.control.kinematics.editing.bodies import NO_BODY, NO_MOMENTS, FirstMoments, RigidBody
from mime.control.kinematics.joint_types import JOINT_TYPE_CONTINUOUS as JOINT_TYPE_CONTINUOUS
from mime.control.kinematics.joint_types import JOINT_TYPE_FIXED as JOINT_TYPE_FIXED
from mime.control.kinematics.joint_types import JOINT_TYPE_PRISMATIC as JOINT_TYPE_PRISMATIC
from mime.control.kinematics.joint_types import JOINT_TYPE_REVOLUTE as JOINT_TYPE_REVOLUTE
from mime.control.kinematics.report import Finding
from mime.control.kinematics.rules import RULES
from mime.control.kinematics.scalar import Array
from mime.core.pose import IDENTITY_POSE
from mime.core.printing import cut
from mime.core.spec import parameter
from mime.core.upward import drawer
from mime.running.drawing import Page


class Visual(NamedTuple):
    """A shape to draw. Plain data: it takes no part in the dynamics."""

    frame_name: str
    """The URDF link that it belongs to; `tree.frame(name)` says where that link is."""
    shape: str
    """box, cylinder, sphere, capsule or mesh."""
    size: tuple[float, ...]
    """box: x y z; cylinder, capsule: radius, length; sphere: radius; mesh: scale x y z."""
    xyz: tuple[float, float, float]
    rpy: tuple[float, float, float]
    rgba: tuple[float, float, float, float] | None
    mesh_path: str | None


class LinkFrame(NamedTuple):
    """Where a URDF link is: fixed to a moving link (-1: the root), at an offset."""

    link_idx: int
    offset: Float[Array, "4 4"]


class KinematicTree(Editable, Driven, eqx.Module):
    """A tree of `num_links` moving links, driven by `num_joints` independent coordinates q.

    The two numbers differ only when joints mimic others. Links are sorted parents first. Arrays
    are NumPy as parsed, so they are constants that fold when JAX traces; replace one by a JAX array
    (`eqx.tree_at`, `jax.grad`) and it is a variable.
    """

    joint_frames: Float[Array, "links 4 4"]
    """Link frame in the parent link's frame, at q = 0."""
    joint_axes_local: Float[Array, "links 3"]
    """Unit vector, in the link's frame."""
    mimic_multiplier: Float[Array, " links"]
    mimic_offset: Float[Array, " links"]
    """Position of the joint of link i: multiplier · q[coordinate_idxs[i]] + offset. 1 and 0 unless
    it mimics.
    """
    masses: Float[Array, " links"] = parameter("kg", shape=None, at_least=0.0, folds=True)
    """kg, fixed links included."""
    coms: Float[Array, "links 3"] = parameter("m", shape=None, folds=True)
    """m, centre of mass in the link's frame, fixed links included."""
    inertial_shifts: Float[Array, "links 3"]
    """m, from there to the link's own URDF `<inertial>` origin: 0 where nothing was merged."""
    inertias: Float[Array, "links 3 3"] = parameter("kg·m²", shape=None, folds=True)
    """kg·m², about the centre of mass, in the link's axes."""

    joint_friction: Float[Array, " joints"]
    """Viscous, N·m·s/rad or N·s/m (URDF `damping`). Not part of the dynamics below: tau is what
    remains.
    """
    joint_coulomb_friction: Float[Array, " joints"]
    """N·m or N (URDF `friction`). Not part of the dynamics either."""
    joint_limits: Float[Array, "joints 2"]
    """Lower, upper; rad or m, infinite where there is none."""
    effort_limits: Float[Array, " joints"]
    """N·m or N, infinite where the file says nothing (or 0)."""
    velocity_limits: Float[Array, " joints"]
    """rad/s or m/s, infinite where the file says nothing (or 0)."""
    gear_ratio: Float[Array, " joints"] = parameter("", shape=None, folds=True)
    """Turns of the motor for one of the joint (URDF `mechanicalReduction`).

    Where drives move several joints, those for one turn of the drive: see `drive_coupling`.
    """
    rotor_inertia: Float[Array, " joints"] = parameter(
        "kg·m²", shape=None, at_least=0.0, folds=True
    )
    """kg·m² at the motor, before the gear; see `reflected_inertia`."""

    frame_offsets: Float[Array, "frames 4 4"]

    name: str = eqx.field(static=True)
    source: str = eqx.field(static=True)
    joint_names: tuple[str, ...] = eqx.field(static=True)
    """Names of the coordinates q; mimicking joints are not among them."""
    link_names: tuple[str, ...] = eqx.field(static=True)
    link_joint_names: tuple[str, ...] = eqx.field(static=True)
    """The joint above each link, mimicking ones included."""
    root_link_name: str = eqx.field(static=True)
    joint_kinds: tuple[int, ...] = eqx.field(static=True)
    """`joint_types`, as programs depend on it."""
    parent_idxs: tuple[int, ...] = eqx.field(static=True)
    """Parent link of each link; -1 is the root."""
    coordinate_idxs: tuple[int, ...] = eqx.field(static=True)
    """Which entry of q moves each link."""
    frame_names: tuple[str, ...] = eqx.field(static=True)
    """Every link of the URDF, merged ones and the root included."""
    frame_link_idxs: tuple[int, ...] = eqx.field(static=True)
    visuals: tuple[Visual, ...] = eqx.field(static=True)
    report: tuple[Finding, ...] = eqx.field(static=True)
    """What the file says and MIME does not simulate as it is written; `print(tree)` shows it."""

    spring_stiffness_n_m_per_rad: Float[Array, " joints"] | None = parameter(
        "N·m/rad", shape=None, at_least=0.0, folds=True, default=None
    )
    """A spring beside each joint, between parent and child (MJCF `stiffness`); N/m of a slider.
    tau = -k (q - q0) is not part of the dynamics below, as friction is not; None without any.
    """
    spring_reference_rad: Float[Array, " joints"] | None = parameter(
        "rad", shape=None, folds=True, default=None
    )
    """q0 at which that spring is relaxed; m of a slider."""
    compensated_masses: Float[Array, " links"] | None = parameter(
        "kg", shape=None, folds=True, default=None
    )
    """Σ c_k m_k of the parts of each link, whose weight something bears (MJCF `gravcomp` c, any
    number). `compensating_torques` gives what that does to the joints; it is not part of the
    dynamics below, as springs are not. None without any. Other masses leave it as it is.
    """
    compensated_moments: Float[Array, "links 3"] | None = parameter(
        "kg·m", shape=None, folds=True, default=None
    )
    """Σ c_k m_k r_k of the same parts, in the link's frame."""
    actuator_compensated_joints: tuple[str, ...] = eqx.field(static=True, default=())
    """Joints whose compensation their actuators give, within the effort limit (MJCF
    `actuatorgravcomp`); at all others it acts beside the actuators, without a limit.
    """
    gravity_m_per_s2: tuple[float, float, float] | None = eqx.field(static=True, default=None)
    """In the axes of the root, or of the world where the root floats, if the file says it (MJCF
    does, URDF does not).
    """
    actuators: tuple[Actuator, ...] = eqx.field(static=True, default=())
    keyframes: tuple[Keyframe, ...] = eqx.field(static=True, default=())
    root_body: RigidBody = NO_BODY
    """What is fixed to the root, in its frame: no joint feels it until the root is attached to
    something, or floats.
    """
    root_compensated: FirstMoments = NO_MOMENTS
    """What is compensated of that, in the root's frame."""
    drive_coupling: Float[Array, "drives joints"] | None = None
    """C: drive i turns by (C q)_i after its own gear, its motor by gear_ratio_i (C q)_i. None where
    each drive moves its own joint. Drive i has the name of joint i. Friction, effort and velocity
    limits are the drives', after their gears; `with_drives` sets it.
    """
    base: str = eqx.field(static=True, default="fixed")
    """"fixed": the root stands still. "floating": it is a body that flies freely (no contact)."""
    base_start_pose_world: tuple[float, ...] = eqx.field(static=True, default=IDENTITY_POSE)
    """Where a floating base is at first, [x y z qw qx qy qz]: where an MJCF puts it."""

    @property
    def num_joints(self) -> int:
        return len(self.joint_names)

    @property
    def num_links(self) -> int:
        return len(self.link_names)

    @property
    def joint_types(self) -> Int[np.ndarray, " links"]:
        """JOINT_TYPE_REVOLUTE, ... of the joint above each link."""
        return np.array(self.joint_kinds)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Parts of the file that MIME does not simulate, from `report`."""
        return tuple(finding.what for finding in self.report if RULES[finding.rule].ignored)

    @property
    def inertial_origins(self) -> Float[Array, "links 3"]:
        """m, the link's own `<inertial>` origin, in its frame.

        External wrenches act there, and link poses and Jacobians are of that point.
        """
        return self.coms + self.inertial_shifts.astype(self.coms.dtype)

    def to_urdf(
        self,
        path: str | os.PathLike[str],
        *,
        origins: Mapping[str, str] | None = None,
        uncertainties: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the tree, as it is now, as a URDF; its header lists what a URDF cannot say.

        `origins={"link[forearm].mass_kg": "fit of May"}` and `uncertainties={...: 0.02}` become
        comments beside the values.
        """
        from mime.control.kinematics.urdf.write import urdf_text
        from mime.control.kinematics.writing import write_text

        write_text(path, urdf_text(self, origins, uncertainties))

    def to_mjcf(
        self,
        path: str | os.PathLike[str],
        *,
        origins: Mapping[str, str] | None = None,
        uncertainties: Mapping[str, Any] | None = None,
        mend: bool = False,
    ) -> None:
        """Write the tree, as it is now, as an MJCF; likewise.

        MuJoCo reads no link that moves without mass, with a moment of inertia of 0, or with one
        above the sum of the other two. Such a tree is refused with the names of these links; with
        `mend` they get tiny masses and the nearest physical inertia, and the header lists them.
        """
        from mime.control.kinematics.mjcf.write import mjcf_text
        from mime.control.kinematics.writing import write_text

        write_text(path, mjcf_text(self, origins, uncertainties, mend=mend))

    def show(self, path: str | os.PathLike[str] | None = None) -> Page:
        """A page with the robot in 3D and a slider for each joint, in one file.

        It shows limits, frames, inertia boxes and the table of masses. With a path it is written
        there; a notebook shows what is returned, and its `open()` a browser.
        """
        return drawer("KinematicTree.show")(self, path)

    def frame(self, name: str) -> LinkFrame:
        """The frame of any URDF link, merged or not."""
        if name not in self.frame_names:
            words, known = unknown_name(name, self.frame_names, "link")
            raise KeyError(shortened(f"{self.source}: {words}. {known}"))
        i = self.frame_names.index(name)
        return LinkFrame(self.frame_link_idxs[i], self.frame_offsets[i])

    def __repr__(self) -> str:
        kinds = ("revolute", "prismatic", "continuous")
        root = "floating base" if self.base == "floating" else "root"
        count, name = self.num_joints, self.root_link_name
        lines = [f"KinematicTree {self.name!r}: {count} joints on {root} {name!r}"]
        joints = []
        for i, parent in enumerate(self.parent_idxs):
            joint, coordinate = self.link_joint_names[i], self.joint_names[self.coordinate_idxs[i]]
            mimics = "" if joint == coordinate else f", mimics {coordinate!r}"
            above = self.root_link_name if parent < 0 else self.link_names[parent]
            joints.append(
                f"  {joint!r} ({kinds[self.joint_kinds[i]]}{mimics}): {above!r} -> "
                f"{self.link_names[i]!r}"
            )
        lines += cut(joints, 16, ": .link_joint_names")
        for kind in ("reported", "mended", "noted"):
            found = [f"    {finding.briefly}" for finding in self.report if finding.kind == kind]
            lines += [f"  {kind}:"] * bool(found) + cut(found, 8, ": .report", 400)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return drawer("KinematicTree.html")(self)


def ancestor_mask(parent_idxs: Sequence[int] | np.ndarray) -> Bool[np.ndarray, "links links"]:
    """mask[i, j] is true when the joint of link j moves link i: j is i, or carries it.

    Parents come before their children, as in a tree's `parent_idxs`; -1 is the root.
    """
    mask = np.eye(len(parent_idxs), dtype=bool)
    for i, parent in enumerate(parent_idxs):
        if parent >= 0:
            mask[i] |= mask[parent]
    return mask


def path_to_root(tree: KinematicTree, link_idx: int) -> list[int]:
    """The link and all links that carry it."""
    path = []
    while link_idx >= 0:
        path.append(link_idx)
        link_idx = tree.parent_idxs[link_idx]
    return path


def is_prismatic(tree: KinematicTree, link_idx: int) -> bool:
    """True when the joint above this link slides."""
    return tree.joint_kinds[link_idx] == JOINT_TYPE_PRISMATIC
