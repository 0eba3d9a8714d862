"""What an MJCF has and a tree of hinges and sliders has not."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mime.control.kinematics.mjcf.actuators import reason_against
from mime.control.kinematics.mjcf.model import Compiled
from mime.control.kinematics.report import Finding


class Checked(NamedTuple):
    """What stands against simulating a model, and what can be left out of it."""

    problems: list[Finding]
    """Refused always: without them it would be another machine."""
    leavable: list[Finding]
    """Contacts, tendons, equalities and actuators of other kinds: left out, or mended as they say,
    if that is wished."""


def check(compiled: Compiled) -> Checked:
    """All of both kinds, in the order of the file."""
    problems = [*_base(compiled), *_joints(compiled), *_loops(compiled), *_passive(compiled)]
    leavable = [*_contacts(compiled), *_equalities(compiled), *_tendons(compiled)]
    leavable += [*_actuators(compiled)]

    def order(finding: Finding) -> tuple[str, int]:
        return finding.place, finding.line or 0

    return Checked(sorted(problems, key=order), sorted(leavable, key=order))


def _base(compiled: Compiled) -> Iterator[Finding]:
    """A machine has one base, which is fixed or floats; the joint of one that floats is free."""
    model, free = compiled.model, compiled.free_joints
    if compiled.base == "floating" and not free:
        words = "has no free joint, so no base of it floats. Give its base a <freejoint/>"
        yield compiled.document.root.finding(words)
    for j in free if len(free) > 1 else []:
        words = f"is free: one of {len(free)} bodies that fly freely; MIME simulates one machine"
        yield compiled.element("joints", j).finding(words)
    if len(free) != 1 or compiled.base == "fixed":
        return
    element, dofs = compiled.element("joints", free[0]), int(model.jnt_dofadr[free[0]])
    for name in ("damping", "frictionloss", "armature"):
        if np.any(getattr(model, f"dof_{name}")[dofs : dofs + 6]):
            words = f"is free and has {name}, as if the world held the base"
            yield element.finding(f"{words}. Set it to 0, or take a <freejoint/>")
    if model.jnt_stiffness[free[0]]:
        yield element.finding("is free and has a spring, as if the world held the base")
    for j in range(model.njnt):
        if int(model.jnt_bodyid[j]) not in compiled.bodies:
            words = "moves beside the body that flies freely; MIME simulates one machine"
            yield compiled.element("joints", j).finding(words)


def _joints(compiled: Compiled) -> Iterator[Finding]:
    model, kinds = compiled.model, compiled.mujoco.mjtJoint
    for j in range(model.njnt):
        element = compiled.element("joints", j)
        if model.jnt_type[j] == kinds.mjJNT_BALL:
            yield element.finding("is a ball joint: MIME simulates hinges and sliders")
        if np.any(model.jnt_stiffnesspoly[j]):
            yield element.finding("has a stiffness that is not linear")
        if model.jnt_springyield[j]:
            yield element.finding("has a spring that yields (springyield)")
        if model.jnt_stiffness[j] < 0.0:
            yield element.finding(f"has stiffness {model.jnt_stiffness[j]:g}; expected 0 or more")
    for dof in range(model.nv):
        element = compiled.element("joints", model.dof_jntid[dof])
        if np.any(model.dof_dampingpoly[dof]):
            yield element.finding("has a damping that is not linear")
        for name in ("damping", "frictionloss", "armature"):
            value = getattr(model, f"dof_{name}")[dof]
            if value < 0.0:
                yield element.finding(f"has {name} {value:g}; expected 0 or more")


def _passive(compiled: Compiled) -> Iterator[Finding]:
    model = compiled.model
    if model.opt.density or model.opt.viscosity:
        options = compiled.document.root.findall("option")
        said = [o for o in options if "density" in o.attrib or "viscosity" in o.attrib]
        words = f"is a fluid of density {model.opt.density:g}, viscosity {model.opt.viscosity:g}"
        yield (said or [compiled.document.root])[-1].finding(f"{words}: MIME knows no fluids")


def _loops(compiled: Compiled) -> Iterator[Finding]:
    for e, kind in _active_equalities(compiled):
        if kind in ("connect", "weld"):
            words = "closes a loop: MIME simulates trees"
            yield compiled.element("equalities", e).finding(words)


def _equalities(compiled: Compiled) -> Iterator[Finding]:
    for e, kind in _active_equalities(compiled):
        if kind not in ("connect", "weld"):
            yield compiled.element("equalities", e).finding("is an equality of joints or tendons")


def _active_equalities(compiled: Compiled) -> Iterator[tuple[int, str]]:
    model, kinds = compiled.model, compiled.mujoco.mjtEq
    off = compiled.disabled("mjDSBL_CONSTRAINT") or compiled.disabled("mjDSBL_EQUALITY")
    names = {int(kinds.mjEQ_CONNECT): "connect", int(kinds.mjEQ_WELD): "weld"}
    for e in range(0 if off else model.neq):
        if model.eq_active0[e]:
            yield e, names.get(int(model.eq_type[e]), "other")


def _tendons(compiled: Compiled) -> Iterator[Finding]:
    for t in range(compiled.model.ntendon):
        yield compiled.element("tendons", t).finding("is a tendon")


def _actuators(compiled: Compiled) -> Iterator[Finding]:
    model = compiled.model
    for j in range(model.njnt):
        low, high = model.jnt_actfrcrange[j]
        if model.jnt_actfrclimited[j] and low != -high:
            words = f"bears {low:g} to {high:g} of its actuators, which is not as much both ways"
            yield compiled.element("joints", j).finding(words, "the larger is its effort limit")
    if model.ngravcomp and (not model.nu or compiled.disabled("mjDSBL_ACTUATION")):
        for j in np.flatnonzero(model.jnt_actgravcomp):
            words = (
                "leaves its weight to actuators (actuatorgravcomp) and the file has none that act: "
            )
            words += "MuJoCo bears nothing of it"
            yield compiled.element("joints", j).finding(
                words, "it is borne, within the effort limit"
            )
    for a in range(model.nactuator):
        why = reason_against(compiled, a)
        if why:
            yield compiled.element("actuators", a).finding(why)


def _contacts(compiled: Compiled) -> Iterator[Finding]:
    """One line for all geoms that can touch, at the first of them; each <pair> has its own."""
    model = compiled.model
    if compiled.disabled("mjDSBL_CONSTRAINT") or compiled.disabled("mjDSBL_CONTACT"):
        return
    for p in range(model.npair):
        yield compiled.element("pairs", p).finding("is a contact")
    touching = _touching_geoms(compiled)
    if touching:
        words = f"can touch another: {len(touching)} geoms in all have contacts"
        yield compiled.element("geoms", touching[0]).finding(words)


def _touching_geoms(compiled: Compiled) -> list[int]:
    """Geoms that MuJoCo would let collide, by its own filters of masks and neighbours."""
    model = compiled.model
    weld = np.asarray(model.body_weldid)
    body = weld[np.asarray(model.geom_bodyid)]
    above = weld[np.asarray(model.body_parentid)[weld]]
    contype, affinity = np.asarray(model.geom_contype), np.asarray(model.geom_conaffinity)
    excluded = {int(signature) for signature in model.exclude_signature}
    filter_parent = not compiled.disabled("mjDSBL_FILTERPARENT")
    groups: dict[tuple[int, int, int, int], list[int]] = {}
    for g, b in enumerate(np.asarray(model.geom_bodyid).tolist()):
        groups.setdefault((int(body[g]), b, int(contype[g]), int(affinity[g])), []).append(g)
    found: set[int] = set()
    for one, geoms in groups.items():
        for other, others in groups.items():
            (w1, b1, type1, affinity1), (w2, b2, type2, affinity2) = one, other
            low, high = min(b1, b2), max(b1, b2)
            meets = (type1 & affinity2) or (type2 & affinity1)
            neighbours = filter_parent and w1 and w2 and (above[w1] == w2 or above[w2] == w1)
            if meets and w1 != w2 and not neighbours and (low << 16) + high not in excluded:
                found |= {*geoms, *others}
    return sorted(found)
