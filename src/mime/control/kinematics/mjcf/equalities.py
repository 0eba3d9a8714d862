"""Equalities of joints:  q1 - q1_0 = a0 + a1 (q2 - q2_0) + a2 (q2 - q2_0)² + ...

One of first degree makes its joint mimic the other, and a constant one holds it: exactly, where
MuJoCo's constraint is soft.
"""

from dataclasses import dataclass, field
from typing import Any

from mime.control.kinematics.report import Findings


@dataclass
class Equalities:
    """What the equalities of a model make of its joints, by MuJoCo's numbers."""

    masters: dict[int, tuple[int, float, float]] = field(default_factory=dict)
    """Joint -> (the joint that it mimics, multiplier, offset); no master mimics another."""
    held: dict[int, float] = field(default_factory=dict)
    """Joint -> the position that it is held at."""

    def of(self, joint: int) -> tuple[int, float, float]:
        """The master of a joint, itself with 1 and 0 where it mimics none."""
        return self.masters.get(joint, (joint, 1.0, 0.0))


def read_equalities(compiled: Any, found: Findings) -> Equalities:
    """The equalities of joints that are exact; the others are added to `found`."""
    model, kinds = compiled.model, compiled.mujoco.mjtEq
    result = Equalities()
    off = compiled.disabled("mjDSBL_CONSTRAINT") or compiled.disabled("mjDSBL_EQUALITY")
    for e in range(0 if off else model.neq):
        kind, element = int(model.eq_type[e]), compiled.element("equalities", e)
        if kind == int(kinds.mjEQ_JOINT):
            both = [int(model.eq_obj1id[e]), int(model.eq_obj2id[e])]
            if not any(j >= 0 and compiled.selection.moves(j) for j in both):
                continue
        if not model.eq_active0[e]:
            found.add("equality", element.finding("is an equality that is inactive at first"))
        elif kind in (int(kinds.mjEQ_CONNECT), int(kinds.mjEQ_WELD)):
            continue  # a loop
        elif kind != int(kinds.mjEQ_JOINT):
            found.add("equality", element.finding("is an equality of tendons"))
        else:
            reason = _couple(compiled, e, result)
            rule, words = ("equality", reason) if reason else ("mimic", "is an equality of joints")
            found.add(rule, element.finding(words))
    return result


def _couple(compiled: Any, e: int, result: Equalities) -> str:
    """Put an equality into the result; why it cannot be, where it is not exact."""
    model = compiled.model
    one, other = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
    a0, a1, *higher = (float(x) for x in model.eq_data[e][:5])
    start = [float(model.qpos0[model.jnt_qposadr[j]]) for j in (one, other)]
    if other < 0:
        a1, higher = 0.0, []
    if any(higher):
        return "is an equality of joints beyond first degree"
    # multiplier q_master + offset of both sides, in coordinates that are free still
    left, right = _sides(result, one), _sides(result, other) if a1 else (None, 0.0, 0.0)
    offset = start[0] + a0 - a1 * (start[1] if other >= 0 else 0.0)
    free, m, o = left
    master, n, p = right[0], a1 * right[1], a1 * right[2] + offset
    if free is None and master is not None:  # the held joint holds the other
        free, m, o, master, n, p = master, n, p, None, 0.0, o
    if free is None or free == master or not m:
        return "is an equality of joints that follows from the others, or contradicts them"
    if master is None or not n:
        _hold(result, free, (p - o) / m)
    else:
        _follow(result, free, master, n / m, (p - o) / m)
    return ""


def _sides(result: Equalities, joint: int) -> tuple[int | None, float, float]:
    """Coordinate, multiplier and offset of a joint's position; no coordinate where it is held."""
    if joint in result.held:
        return None, 0.0, result.held[joint]
    return result.of(joint)


def _follow(result: Equalities, joint: int, master: int, multiplier: float, offset: float) -> None:
    """The joint mimics a master, and with it all that mimicked the joint."""
    result.masters[joint] = master, multiplier, offset
    for other, (above, m, o) in list(result.masters.items()):
        if above == joint:
            result.masters[other] = master, m * multiplier, m * offset + o


def _hold(result: Equalities, joint: int, position: float) -> None:
    """The joint is held, and with it all that mimicked it."""
    result.held[joint] = position
    for other, (above, m, o) in list(result.masters.items()):
        if above == joint:
            result.held[other] = m * position + o
            del result.masters[other]
