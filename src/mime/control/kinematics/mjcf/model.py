"""MuJoCo's compiler: the document's defaults, frames, meshes and units as plain numbers."""

import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mime._text import shortened
from mime.control.kinematics.mjcf.equalities import Equalities, read_equalities
from mime.control.kinematics.mjcf.selection import Selection
from mime.control.kinematics.mjcf.xml import Document, MjcfError, box_mesh
from mime.control.kinematics.part import Part
from mime.control.kinematics.urdf.xml import LARGEST, Element


def import_mujoco(path: Any) -> Any:
    """The package `mujoco`, or an error that says how to get it."""
    try:
        import mujoco
    except ImportError as error:
        message = "MJCF is read by MuJoCo's own compiler. Install it: pip install 'mime-sim[mjcf]'."
        raise MjcfError(path, message) from error
    return mujoco


@dataclass
class Compiled:
    """A document and what MuJoCo made of it."""

    document: Document
    mujoco: Any
    spec: Any
    model: Any
    base: str | None = None
    """"fixed" or "floating" if the user says so; None: a free joint says that it floats."""
    subtree: Part = None
    lock: Mapping[str, Any] | None = None
    equalities: Equalities = field(default_factory=Equalities)
    unweighed: set[int] = field(default_factory=set)
    """Bodies that stand still and whose mass follows from a mesh that is missing."""

    def disabled(self, flag: str) -> bool:
        """True where <option><flag> switches this part of the physics off."""
        return bool(self.model.opt.disableflags & getattr(self.mujoco.mjtDisableBit, flag))

    @cached_property
    def selection(self) -> Selection:
        """Which bodies are wanted, and which joints move."""
        return Selection(self, self.subtree, self.lock)

    @property
    def free_joints(self) -> list[int]:
        """The joints of wanted bodies that fly freely."""
        return self.selection.free_joints

    def simulated_joints(self, body: int) -> list[int]:
        """The hinges and sliders of a body, inwards first.

        One that is locked is among them: `KinematicTree.lock` holds it. A ball or a free joint that
        does not move is not.
        """
        kinds, first = self.mujoco.mjtJoint, int(self.model.body_jntadr[body])
        hinges = (int(kinds.mjJNT_HINGE), int(kinds.mjJNT_SLIDE))
        joints = range(first, first + int(self.model.body_jntnum[body]))
        return [j for j in joints if int(self.model.jnt_type[j]) in hinges]

    @property
    def root_body(self) -> int:
        """The body that is the root of the tree: the world, or the base that floats."""
        floats = self.base != "fixed" and self.free_joints
        return int(self.model.jnt_bodyid[self.free_joints[0]]) if floats else 0

    @cached_property
    def bodies(self) -> list[int]:
        """The root and all bodies beyond it, parents first."""
        found = [self.root_body]
        for body in range(1, self.model.nbody):
            if body != self.root_body and int(self.model.body_parentid[body]) in found:
                found.append(body)
        return found

    @cached_property
    def _elements(self) -> dict[tuple[str, int], Element]:
        kinds = (
            "bodies",
            "joints",
            "sites",
            "geoms",
            "actuators",
            "tendons",
            "equalities",
            "pairs",
        )
        return {
            (kind, entry.id): self._origin(entry)
            for kind in kinds
            for entry in getattr(self.spec, kind)
        }

    def _origin(self, entry: Any) -> Element:
        """Where an entry stands; MuJoCo does not say it of a <freejoint>, but of its body."""
        if "line" not in str(entry.info):
            body = self.document.element(_line(str(getattr(entry.parent, "info", ""))))
            found = body.find("freejoint")
            return body if found is None else found
        return self.document.element(_line(str(entry.info)))

    def element(self, kind: str, index: Any) -> Element:
        """The element in the file of the compiled body, joint, ... of that index."""
        return self._elements.get((kind, int(index)), self.document.root)

    @cached_property
    def body_names(self) -> list[str]:
        return self._names("body", self.model.nbody)

    @cached_property
    def joint_names(self) -> list[str]:
        return self._names("joint", self.model.njnt)

    @cached_property
    def site_names(self) -> list[str]:
        return self._names("site", self.model.nsite)

    @cached_property
    def actuator_names(self) -> list[str]:
        return self._names("actuator", self.model.nactuator)

    def _names(self, kind: str, count: int) -> list[str]:
        """The name of each; one that has none is called by its kind and number."""
        given = [getattr(self.model, kind)(i).name for i in range(count)]
        taken, names = set(given), []
        for i, name in enumerate(given):
            number = i
            while not name:
                candidate = f"{kind}_{number}"
                name = candidate if candidate not in taken else ""
                number += count
            taken.add(name)
            names.append(name)
        return names


def compile_document(
    document: Document,
    base: str | None = None,
    subtree: Part = None,
    lock: Mapping[str, Any] | None = None,
) -> Compiled:
    """What MuJoCo simulates, every body kept; its refusals with file and line of ours.

    A mesh that MuJoCo does not read gets a stand-in.
    """
    mujoco = import_mujoco(document.path)
    while True:
        try:
            spec, model, said = _made(mujoco, document, document.assets)
            break
        except (ValueError, TypeError, RuntimeError, mujoco.FatalError) as error:
            words = " ".join(str(error).split())
            element = document.element(_line(words))
            reason = shortened(re.sub(r"[,(]? *line \d+\)?", "", words), 300)
            path = document.mesh_paths.get(element.get("name", ""))
            if element.tag != "mesh" or element in document.stand_ins or path is None:
                raise element.error(f"MuJoCo does not read {element.label}: {reason}") from error
            document.stand_in(element, path, f"MuJoCo does not read it: {reason}")
            document.write()
    for warning in said:
        words = shortened(" ".join(str(warning.message).split()), 300)
        finding = document.root.finding(f"brings a warning of MuJoCo's: {words}")
        document.found.add("warning", finding)
    compiled = Compiled(document, mujoco, spec, model, base, subtree, lock)
    for body, words in _masses_of_stand_ins(compiled) if document.stand_ins else ():
        element = compiled.element("bodies", body)
        if compiled.selection.carrier(body):
            words += ". Add the mesh, or an <inertial> to the body"
            document.found.add("mesh mass", element.finding(words))
        else:  # nothing feels the mass of what stands still
            compiled.unweighed.add(body)
            document.found.add("mesh", element.finding(words, "it stands still, without mass"))
    document.found.refuse(MjcfError)
    _check_numbers(compiled)
    compiled.equalities = read_equalities(compiled, document.found)
    return compiled


def _made(
    mujoco: Any, document: Document, assets: dict[str, bytes]
) -> tuple[Any, Any, list[warnings.WarningMessage]]:
    """MuJoCo's specification and model of the text, and what it warned of."""
    spec = mujoco.MjSpec.from_string(document.text, assets=assets)
    spec.compiler.fusestatic = False
    spec.compiler.discardvisual = False
    spec.compiler.LRopt.mode = mujoco.mjtLRMode.mjLRMODE_NONE
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = spec.compile()
    return spec, model, said


_OTHER_BOX = (0.02, 0.025, 0.09), 0.1
"""Half lengths and centre of a second stand-in, which has no measure of the first."""
_MASS = ("body_mass", "body_ipos", "body_iquat", "body_inertia")


def _masses_of_stand_ins(compiled: Compiled) -> Iterator[tuple[int, str]]:
    """The bodies whose mass is another with another stand-in: the file does not say it itself."""
    document, model = compiled.document, compiled.model
    boxes = {mesh.get("file", ""): box_mesh(*_OTHER_BOX) for mesh in document.stand_ins}
    _, other, _ = _made(compiled.mujoco, document, document.assets | boxes)
    changed = np.zeros(model.nbody, bool)
    for name in _MASS:
        one, two = (np.asarray(getattr(m, name)).reshape(m.nbody, -1) for m in (model, other))
        changed |= np.any(one != two, axis=1)
    reasons = {mesh.get("name", ""): reason for mesh, reason in document.stand_ins.items()}
    for body in compiled.spec.bodies:
        if changed[body.id]:
            used = [geom for geom in body.geoms if geom.meshname in reasons]
            heavy = [geom.meshname for geom in used if geom.mass != 0 and geom.density != 0]
            name = [*heavy, *reasons][0]  # of settotalmass, that of any mesh
            yield body.id, f"takes its mass from mesh {name!r}: {reasons[name]}"


def _line(words: str) -> int:
    found = re.findall(r"line (\d+)", words)
    return int(found[-1]) if found else 1


def _check_numbers(compiled: Compiled) -> None:
    """Numbers that computing in the compiler has made too large."""
    model = compiled.model
    arrays = {
        "bodies": "body_pos body_quat body_ipos body_iquat body_mass body_inertia body_gravcomp",
        "joints": "jnt_pos jnt_axis jnt_range jnt_stiffness",
        "sites": "site_pos site_quat",
        "actuators": "actuator_gear actuator_gainprm actuator_biasprm actuator_dynprm",
    }
    for kind, names in arrays.items():
        for name in names.split():
            values = np.asarray(getattr(model, name))
            good = np.isfinite(values) & (np.abs(values) <= LARGEST)
            if not good.all():
                index = int(np.argwhere(~good)[0][0])
                element = compiled.element(kind, index)
                what = f"{element.label} gives {name} {values[index]}"
                raise element.error(f"{what}; expected finite numbers of a machine.")
