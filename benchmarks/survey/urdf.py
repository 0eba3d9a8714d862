"""The row of a URDF: MIME by default, MIME mending, Pinocchio, and how far they agree."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mime.control.kinematics import KinematicTree, parse_urdf
from survey.agreement import QUANTITIES, compared, rounding
from survey.readers import LOADS, pinocchio_takes, taken
from survey.workers import Row

LIMIT = 1e-9
"""The error from which a file is listed."""


def urdf_row(question: Row) -> Iterator[tuple[str, Any]]:
    """What becomes of one file; see `survey.workers.rows`."""
    file, hidden = Path(question["path"]), [Path(question["folder"])]

    def read(**options: Any) -> KinematicTree:
        return parse_urdf(file, **options)

    tree, verdict = taken(read, hidden)
    yield "default", verdict
    if tree is None:
        tree, verdict = taken(read, hidden, on_problem="mend")
    yield "mend", verdict
    model, verdict, said = pinocchio_takes(file)
    yield "peer", verdict
    if tree is not None and model is not None:
        yield "agreement", beside_pinocchio(tree, file, said)


def beside_pinocchio(tree: KinematicTree, file: Path, said: str) -> dict[str, Any]:
    """Errors, notes, and reasons for errors above the limit."""
    from survey.pinocchio_peer import InPinocchio, why_other

    try:
        peer = InPinocchio(tree, file)
        found = compared(tree, peer)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"[:300]}
    reasons = {}
    for quantity in QUANTITIES:
        if found["errors"].get(quantity, 0.0) > LIMIT:
            other = why_other(peer, file.read_text(errors="replace"), said)
            reasons[quantity] = rounding(found, quantity) or other or "unknown"
    return found | {"reasons": reasons}


def loads(row: Row, how: str) -> bool:
    """True where a reader took the file."""
    return row.get(how, {}).get("status") == LOADS
