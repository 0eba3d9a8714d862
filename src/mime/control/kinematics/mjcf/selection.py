"""Which bodies of a model are wanted, and which of its joints move.

A subtree and locked joints take parts out before a model is judged: a gripper with a closed loop
does not stand against the arm that carries it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mime._text import brief, nearest
from mime.control.kinematics.mjcf.xml import MjcfError
from mime.control.kinematics.part import Part, ends
from mime.core.arguments import mapping


@dataclass
class Selection:
    """What is wanted of a compiled model; bodies and joints by MuJoCo's numbers."""

    compiled: Any
    subtree: Part = None
    lock: Mapping[str, Any] | None = None

    @cached_property
    def locked(self) -> dict[str, Any]:
        """The joints that are to be held, by name."""
        return dict(mapping("lock", self.lock, '{"finger": 0.02}'))

    @property
    def locked_hinges(self) -> dict[str, Any]:
        """Those of `locked` that a tree has; the others stay where the file puts them."""
        compiled, found = self.compiled, dict(self.locked)
        kinds = compiled.mujoco.mjtJoint
        for j, name in enumerate(compiled.joint_names):
            if int(compiled.model.jnt_type[j]) in (int(kinds.mjJNT_BALL), int(kinds.mjJNT_FREE)):
                position = found.pop(name, 0)
                if not isinstance(position, int | float) or position != 0:
                    element = compiled.element("joints", j)
                    words = f"is locked at {brief(position)}; expected 0, where the file puts it"
                    raise element.error(f"{element.label} {words}.", "ball")
        return found

    @cached_property
    def root(self) -> int:
        """The body that the wanted part starts at; the world where all is wanted."""
        wanted = ends(self.subtree)
        return 0 if wanted is None else self._body(wanted[0])

    @cached_property
    def bodies(self) -> set[int]:
        """The bodies of the wanted part, its root included."""
        wanted, parents = ends(self.subtree), self.compiled.model.body_parentid
        everything = range(self.compiled.model.nbody)
        if wanted is None:
            return set(everything)
        found = {self.root}
        if wanted[1] is None:
            for body in everything:
                found |= {body} if int(parents[body]) in found else set()
            return found
        body, path = self._body(wanted[1]), set()
        while body not in (0, self.root):
            path.add(body)
            body = int(parents[body])
        found |= path
        for body in everything:  # what is fixed to a link stays with it
            fixed = not self.compiled.model.body_jntnum[body]
            found |= {body} if fixed and int(parents[body]) in found else set()
        return found

    @cached_property
    def free_joints(self) -> list[int]:
        """The free joints of wanted bodies that are not held."""
        compiled = self.compiled
        kind = compiled.mujoco.mjtJoint.mjJNT_FREE
        return [
            j
            for j in range(compiled.model.njnt)
            if compiled.model.jnt_type[j] == kind
            and int(compiled.model.jnt_bodyid[j]) in self.bodies
            and not self._held(j)
        ]

    def moves(self, joint: int) -> bool:
        """True for a joint of the wanted part that is not held."""
        body = int(self.compiled.model.jnt_bodyid[joint])
        inside = body in self.bodies and (body != self.root or joint in self.free_joints)
        return inside and not self._held(joint)

    def _held(self, joint: int) -> bool:
        return self.compiled.joint_names[joint] in self.locked

    def pulls(self, tendon: int) -> bool:
        """True for a tendon on a joint that moves, or along a wanted body."""
        model, kinds = self.compiled.model, self.compiled.mujoco.mjtWrap
        first = int(model.tendon_adr[tendon])
        for w in range(first, first + int(model.tendon_num[tendon])):
            kind, index = int(model.wrap_type[w]), int(model.wrap_objid[w])
            if kind == int(kinds.mjWRAP_JOINT) and self.moves(index):
                return True
            if kind == int(kinds.mjWRAP_SITE) and self._beyond(int(model.site_bodyid[index])):
                return True
        return False

    def drives(self, actuator: int) -> bool:
        """True for an actuator on something that moves."""
        model, kinds = self.compiled.model, self.compiled.mujoco.mjtTrn
        kind, index = int(model.actuator_trntype[actuator]), int(model.actuator_trnid[actuator, 0])
        if kind in (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT)):
            return self.moves(index)
        if kind == int(kinds.mjTRN_TENDON):
            return self.pulls(index)
        if kind == int(kinds.mjTRN_BODY):
            return self._beyond(index)
        return self._beyond(int(model.site_bodyid[index]))

    def _beyond(self, body: int) -> bool:
        """True for a wanted body that a joint moves."""
        return body in self.bodies and self.carrier(body) in self.bodies - {0}

    def carrier(self, body: int) -> int:
        """The nearest body inwards that a joint moves: both are one rigid body."""
        model = self.compiled.model
        while body:
            first = int(model.body_jntadr[body])
            if any(self.moves(j) for j in range(first, first + int(model.body_jntnum[body]))):
                return body
            body = int(model.body_parentid[body])
        return 0

    def _body(self, name: str) -> int:
        compiled = self.compiled
        if name in compiled.body_names:
            return int(compiled.body_names.index(name))
        if name in compiled.site_names:
            return int(compiled.model.site_bodyid[compiled.site_names.index(name)])
        near = nearest(name, [*compiled.body_names, *compiled.site_names])
        message = f"subtree names no body or site {name!r}{near}."
        raise MjcfError(compiled.document.path, message, rule="structure")
