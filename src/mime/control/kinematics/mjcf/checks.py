"""What an MJCF has and a tree of hinges and sliders has not, with the rule for each."""

from collections.abc import Iterator

import numpy as np

from mime.control.kinematics.mjcf.actuators import reason_against
from mime.control.kinematics.mjcf.model import Compiled
from mime.control.kinematics.report import Finding, Findings
from mime.control.kinematics.urdf.elements import look_like_degrees

Judged = tuple[str, Finding]
"""A rule of the table, and what falls under it."""


def check(compiled: Compiled, found: Findings, open_loops: bool) -> None:
    """Add all that is worth a word to `found`; raise the error of what is refused."""
    for judge in (_base, _joints, _passive, _actuators, _contacts):
        for rule, finding in judge(compiled):
            found.add(rule, finding)
    for finding in _loops(compiled):
        found.add("open loop" if open_loops else "loop", finding)
    found.refuse(compiled.document.root.refusal)


def _base(compiled: Compiled) -> Iterator[Judged]:
    """A machine has one base, which is fixed or floats; the joint of one that floats is free."""
    model, free, selection = compiled.model, compiled.free_joints, compiled.selection
    if compiled.base == "floating" and not free:
        words = "has no free joint, so no base of it floats. Give its base a <freejoint/>"
        yield "structure", compiled.document.root.finding(words)
    for j in free if len(free) > 1 else []:
        words = f"is free: one of {len(free)} bodies that fly freely"
        yield "several bodies", compiled.element("joints", j).finding(words)
    if len(free) != 1 or compiled.base == "fixed":
        return
    element, dofs = compiled.element("joints", free[0]), int(model.jnt_dofadr[free[0]])
    for name in ("damping", "frictionloss", "armature"):
        if np.any(getattr(model, f"dof_{name}")[dofs : dofs + 6]):
            yield "base passive", element.finding(f"is free and has {name}")
    if model.jnt_stiffness[free[0]]:
        yield "base passive", element.finding("is free and has a spring")
    for j in range(model.njnt):
        if selection.moves(j) and int(model.jnt_bodyid[j]) not in compiled.bodies:
            words = "moves beside the body that flies freely"
            yield "several bodies", compiled.element("joints", j).finding(words)


def _joints(compiled: Compiled) -> Iterator[Judged]:
    model, kinds, selection = compiled.model, compiled.mujoco.mjtJoint, compiled.selection
    for j in range(model.njnt):
        element = compiled.element("joints", j)
        if not selection.moves(j):
            continue
        if model.jnt_type[j] == kinds.mjJNT_BALL:
            yield "ball", element.finding("is a ball joint: MIME simulates hinges and sliders")
        if model.jnt_type[j] == kinds.mjJNT_FREE:
            continue
        if np.any(model.jnt_stiffnesspoly[j]):
            yield "nonlinear", element.finding("has a stiffness that is not linear")
        if model.jnt_springyield[j]:
            yield "nonlinear", element.finding("has a spring that yields (springyield)")
        lower, upper = (float(x) for x in model.jnt_range[j])
        hinge = model.jnt_type[j] == kinds.mjJNT_HINGE and model.jnt_limited[j]
        if hinge and look_like_degrees(lower, upper):
            words = f"has limits {lower:g} and {upper:g} rad, which look like degrees"
            yield "degrees", element.finding(words)
        if model.jnt_stiffness[j] < 0.0:
            words = f"has stiffness {model.jnt_stiffness[j]:g}; expected 0 or more"
            yield "negative", element.finding(words)
        dof = int(model.jnt_dofadr[j])
        if np.any(model.dof_dampingpoly[dof]):
            yield "nonlinear", element.finding("has a damping that is not linear")
        for name in ("damping", "frictionloss", "armature"):
            value = getattr(model, f"dof_{name}")[dof]
            if value < 0.0:
                yield "negative", element.finding(f"has {name} {value:g}; expected 0 or more")
        off = compiled.disabled("mjDSBL_CONSTRAINT") or compiled.disabled("mjDSBL_FRICTIONLOSS")
        if model.dof_frictionloss[dof] > 0.0 and not off:
            words = f"has frictionloss {model.dof_frictionloss[dof]:g}"
            yield "friction", element.finding(words)


def _passive(compiled: Compiled) -> Iterator[Judged]:
    model = compiled.model
    if model.opt.density or model.opt.viscosity:
        options = compiled.document.root.findall("option")
        said = [o for o in options if "density" in o.attrib or "viscosity" in o.attrib]
        words = f"is a fluid of density {model.opt.density:g}, viscosity {model.opt.viscosity:g}"
        yield "fluid", (said or [compiled.document.root])[-1].finding(words)
    for t in range(model.ntendon):
        if not compiled.selection.pulls(t):
            continue
        yield "tendon", compiled.element("tendons", t).finding("is a tendon")


def _loops(compiled: Compiled) -> Iterator[Finding]:
    """`connect` and `weld` between wanted bodies that move against each other."""
    model, kinds, selection = compiled.model, compiled.mujoco.mjtEq, compiled.selection
    off = compiled.disabled("mjDSBL_CONSTRAINT") or compiled.disabled("mjDSBL_EQUALITY")
    loops = (int(kinds.mjEQ_CONNECT), int(kinds.mjEQ_WELD))
    for e in range(0 if off else model.neq):
        if int(model.eq_type[e]) not in loops or not model.eq_active0[e]:
            continue
        bodies = [_body(compiled, e, int(i[e])) for i in (model.eq_obj1id, model.eq_obj2id)]
        wanted = all(body in selection.bodies for body in bodies)
        if wanted and len({selection.carrier(body) for body in bodies}) == 2:
            one, other = (compiled.body_names[body] for body in bodies)
            words = f"closes a loop between bodies {one!r} and {other!r}"
            yield compiled.element("equalities", e).finding(words)


def _body(compiled: Compiled, equality: int, index: int) -> int:
    """The body that an equality names, by itself or by a site on it."""
    sites = int(compiled.model.eq_objtype[equality]) == int(compiled.mujoco.mjtObj.mjOBJ_SITE)
    return int(compiled.model.site_bodyid[index]) if sites else index


def _actuators(compiled: Compiled) -> Iterator[Judged]:
    model = compiled.model
    for j in range(model.njnt):
        low, high = model.jnt_actfrcrange[j]
        if model.jnt_actfrclimited[j] and low != -high and compiled.selection.moves(j):
            words = f"bears {low:g} to {high:g} of its actuators, which is not as much both ways"
            yield "one-sided", compiled.element("joints", j).finding(words)
    if model.ngravcomp and (not model.nu or compiled.disabled("mjDSBL_ACTUATION")):
        for j in np.flatnonzero(model.jnt_actgravcomp):
            words = "leaves its weight to actuators (actuatorgravcomp), and the file has none"
            yield "borne", compiled.element("joints", j).finding(words)
    for a in range(model.nactuator):
        if compiled.selection.drives(a) and (why := reason_against(compiled, a)):
            yield "actuator", compiled.element("actuators", a).finding(why)


def _contacts(compiled: Compiled) -> Iterator[Judged]:
    """One line for all geoms that can touch, at the first of them; each <pair> has its own."""
    model = compiled.model
    if compiled.disabled("mjDSBL_CONSTRAINT") or compiled.disabled("mjDSBL_CONTACT"):
        return
    for p in range(model.npair):
        yield "contact", compiled.element("pairs", p).finding("is a contact")
    if touching := _touching_geoms(compiled):
        words = f"can touch another: {len(touching)} geoms in all have contacts"
        yield "contact", compiled.element("geoms", touching[0]).finding(words)


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
