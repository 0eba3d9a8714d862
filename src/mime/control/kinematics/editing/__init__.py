"""How a robot is changed: each change is a function of a tree that gives another tree.

A tree is a frozen value, so the old one stays as it was. Numbers may be JAX arrays: gradients go
through masses, angles and poses.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from mime.control.kinematics.editing import operations
from mime.control.kinematics.editing import transmission as of_drives
from mime.core.arguments import mapping
from mime.core.pose import IDENTITY_POSE

Tree = TypeVar("Tree", bound="Editable")


class Editable:
    """The changes of a `KinematicTree`."""

    def with_payload(
        self: Tree, link: str, mass_kg: Any, com_m: Any = (0.0, 0.0, 0.0), inertia_kg_m2: Any = None
    ) -> Tree:
        """The robot with a body fixed to `link` (any link of the file, or a named frame).

        `com_m` is in that link's frame, `inertia_kg_m2` (3, 3) about the payload's own centre of
        mass in the link's axes; without it the payload is a point. A mass or a principal moment
        below 0 is refused. Wrenches and poses of the link stay at the link's own `<inertial>`
        origin.
        """
        return operations.with_payload(self, link, mass_kg, com_m, inertia_kg_m2)

    def with_drives(self: Tree, rotor_inertia_kg_m2: Any = None, transmission: Any = None) -> Tree:
        """The robot with other rotors and gears: theta = T q, and M has Tᵀ J T besides its links.

        Friction, effort and velocity limits are those of the drives, after their own gears: with
        T = diag(g) C (see `drive_coupling`) they act where C q turns. Where T is diagonal that is
        at the joints.

        Args:
            rotor_inertia_kg_m2: J (N,) at the motors, or a mapping from motors to values. Motors
                have the names of the joints. None: as before.
            transmission: T (N, N), turns of each motor (rows) for one of each joint (columns),
                invertible; or N gear ratios; or rows by name,
                `{"joint_6": {"joint_5": 32, "joint_6": 32}}`. None: as before.

        Raises:
            InputError: Names are not known, or T is not invertible.

        """
        return of_drives.with_drives(self, rotor_inertia_kg_m2, transmission)

    def lock(self: Tree, positions: Mapping[str, Any] | None = None, /, **joints: Any) -> Tree:
        """The robot with joints held for good: `tree.lock(finger=0.04)`, rad or m.

        Their links become part of what carries them, joints that mimic them too; all links keep
        their names as frames. A mapping serves names that are no Python names. A rotor that stands
        still is left out; one that other joints turn stays with them. With all joints held the
        robot is one rigid body.
        """
        form = "{'joint': angle}"
        return operations.lock(self, {**mapping("positions", positions, form), **joints})

    def subtree(self: Tree, root: str, tip: str | None = None) -> Tree:
        """The part from `root`, which stands still then, to `tip`; without `tip` all beyond it.

        Without a joint in it that part is one rigid body.
        Links that hang on the way but lead not to the tip are left out, with their masses. What is
        fixed to a link stays with it.
        """
        return operations.subtree(self, root, tip)

    def with_base(self: Tree, base: str) -> Tree:
        """The robot on a base that is "fixed", or "floating": a body that flies freely.

        The base has the mass and inertia of what the file fixes to its root. Forward dynamics say
        so where that is not enough, see `joints_without_inertia`.
        """
        return operations.with_base(self, base)

    def attach(
        self: Tree, other: Tree, link: str, pose: Any = IDENTITY_POSE, prefix: str = ""
    ) -> Tree:
        """The robot with another one on it, whose root is at `pose` on `link`.

        A pose is [x y z qw qx qy qz]. Joints of `other` come after this robot's; `prefix` goes
        before its names, where both robots have some in common. What was fixed to its root weighs
        now. Keyframes go: they say nothing of the other robot.
        """
        return operations.attach(self, other, link, pose, prefix)

    def with_frame(self: Tree, name: str, link: str, pose: Any = IDENTITY_POSE) -> Tree:
        """The robot with a place on it that has a name: a frame as every link has one."""
        return operations.with_frame(self, name, link, pose)
