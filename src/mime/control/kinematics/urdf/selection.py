"""Takes out of a <robot> what a subtree and locked joints leave out, before anything is judged.

A closed loop or a planar joint in a gripper does not refuse the arm that carries it. Elements that
are malformed stay: their readers say what is wrong.
"""

from collections.abc import Mapping
from typing import Any

from mime._text import brief
from mime.control.kinematics.part import Part, ends
from mime.control.kinematics.urdf.xml import Element
from mime.core.arguments import mapping

_HELD = ("planar", "floating")
"""Types of joints that a tree does not have; `lock` holds them where the file puts them."""


def select(robot: Element, subtree: Part, lock: Mapping[str, Any] | None) -> dict[str, Any]:
    """Leave what is wanted; return the locked joints that the tree is to hold."""
    locked = dict(mapping("lock", lock, '{"finger": 0.02}'))
    for joint in robot.findall("joint"):
        if joint.get("type") in _HELD and (name := joint.get("name", "")) in locked:
            position = locked.pop(name)
            if not isinstance(position, int | float) or position != 0:
                words = f"is locked at {brief(position)}; expected 0, where the file puts it"
                raise joint.error(f"{joint.label} {words}.", "joint type")
            joint.set("type", "fixed")
    if (wanted := ends(subtree)) is not None:
        _cut(robot, *wanted)
    return locked


def _cut(robot: Element, root: str, tip: str | None) -> None:
    """Remove the links that neither the part nor what carries it has, and their joints."""
    joints = [joint for joint in robot.findall("joint") if all(_links(joint))]
    carrier: dict[str, str] = {}
    for parent, child in map(_links, joints):
        carrier.setdefault(child, parent)
    path = list(_inwards(root if tip is None else tip, carrier))
    names = {link.get("name") for link in robot.findall("link")}
    if root not in path or not names.issuperset(path):
        return  # the tree says which name is wrong
    part = {root} if tip is None else set(path[: path.index(root) + 1])
    kept = _carried(_spread(part, joints, rigid_alone=tip is not None), carrier)
    while more := _coupled(robot, joints, kept) - kept:
        kept |= _carried(more, carrier)
    for joint in joints:
        if not kept.issuperset(_links(joint)):
            robot.remove(joint)
    colours = {m.get("name"): m for m in robot.iter("material") if m.find("color") is not None}
    for link in robot.findall("link"):
        if link.get("name", root) not in kept:
            robot.remove(link)
    materials = list(robot.iter("material"))
    for name in dict.fromkeys(m.get("name") for m in materials if m.find("color") is None):
        if name in colours and colours[name] not in materials:
            robot.append(colours[name])  # a link that is removed defines it
    left = {joint.get("name") for joint in robot.findall("joint")}
    for transmission in robot.findall("transmission"):
        driven = {joint.get("name") for joint in transmission.findall("joint")}
        if driven and left.isdisjoint(driven):
            robot.remove(transmission)


def _links(joint: Element) -> tuple[str, str]:
    """Parent and child of a <joint>; empty where the file does not say it."""
    both = [joint.find(tag) for tag in ("parent", "child")]
    parent, child = ("" if part is None else part.get("link", "") for part in both)
    return parent, child


def _inwards(link: str, carrier: Mapping[str, str]) -> dict[str, None]:
    """A link and all that carry it, in this order."""
    path = {link: None}
    while link in carrier and (link := carrier[link]) not in path:
        path[link] = None
    return path


def _carried(part: set[str], carrier: Mapping[str, str]) -> set[str]:
    """A part with all that carries it."""
    found = set(part)
    for link in part:
        while link in carrier and (link := carrier[link]) not in found:
            found.add(link)
    return found


def _spread(part: set[str], joints: list[Element], rigid_alone: bool) -> set[str]:
    """A part with what hangs on it; or with what is one rigid body with a link of it."""
    beside: dict[str, list[str]] = {}
    for joint in joints:
        parent, child = _links(joint)
        rigid = joint.get("type") == "fixed"
        if rigid or not rigid_alone:
            beside.setdefault(parent, []).append(child)
        if rigid:
            beside.setdefault(child, []).append(parent)
    found, waiting = set(part), list(part)
    while waiting:
        new = {link for link in beside.get(waiting.pop(), []) if link not in found}
        found |= new
        waiting += new
    return found


def _coupled(robot: Element, joints: list[Element], kept: set[str]) -> set[str]:
    """What moves with kept links: by a mimic, which shares limits and friction, or by a motor."""
    moved = {joint.get("name", ""): _links(joint)[1] for joint in joints}
    groups = [
        [joint.get("name", ""), mimic.get("joint", "")]
        for joint in joints
        if (mimic := joint.find("mimic")) is not None
    ]
    groups += [
        [joint.get("name", "") for joint in transmission.findall("joint")]
        for transmission in robot.findall("transmission")
    ]
    found: set[str] = set()
    for group in groups:
        links = {moved[name] for name in group if name in moved}
        if not kept.isdisjoint(links):
            found |= links
    return found
