"""How MIME and Pinocchio take a file, as plain values."""

import re
import tempfile
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mime.control.kinematics import KinematicTree, RobotFileError
from mime.control.kinematics.report import RobotFileWarning

Read = Callable[..., KinematicTree]
LOADS, REFUSED, INTERNAL_ERROR = "loads", "refused", "internal error"
_LONGEST = 140


def taken(read: Read, hidden: Sequence[Path], **options: Any) -> tuple[KinematicTree | None, Any]:
    """The tree, if MIME reads it, and its verdict. `hidden` folders are left out of messages."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            tree = read(**options)
        except RobotFileError as error:
            reasons = list(dict.fromkeys(normalised(finding.what) for finding in error.findings))
            words = [brief(str(error.findings[0]), hidden), *reasons[1:]]
            return None, {"status": REFUSED, "message": "; ".join(words), "reasons": reasons}
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            words = f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
            reasons = [f"internal error: {type(error).__name__}"]
            return None, {
                "status": INTERNAL_ERROR,
                "message": brief(words, hidden),
                "reasons": reasons,
            }
    reported = [finding for finding in tree.report if finding.kind == "reported"]
    return tree, {
        "status": LOADS,
        "joints": tree.num_joints,
        "base": tree.base,
        "kinematics_only": not np.any(tree.masses) and not _floating_mass(tree),
        "warnings": sum(issubclass(w.category, RobotFileWarning) for w in said),
        "reported": len(reported),
        "reasons_reported": list(dict.fromkeys(normalised(finding.what) for finding in reported)),
        "findings": len(tree.report),
    }


def _floating_mass(tree: KinematicTree) -> bool:
    return tree.base == "floating" and bool(float(tree.root_body.mass))


def normalised(words: str) -> str:
    """A reason without names and numbers, so that files can be counted by it."""
    words = re.sub(r"'[^']*'", "'…'", " ".join(words.split()))
    words = re.sub(r"'…'((, | and )'…')*( and \d+ more)?", "'…'", words)
    words = re.sub(r"^<(\w+)>|^(\w+) '…'", lambda m: f"<{m[1] or m[2]}>", words)
    words = re.sub(r"(?<![\w.])[-+]?(\d[\d.]*(e[-+]?\d+)?|nan|inf)(?!\w)", "#", words)
    words = re.sub(r"#(,? #)+", "#", words)
    return words if len(words) <= _LONGEST else words[:_LONGEST] + "…"


def brief(words: str, hidden: Sequence[Path], longest: int = 400) -> str:
    """A message on one line without the folders of this machine."""
    for folder in hidden:
        words = words.replace(f"{folder}/", "").replace(str(folder), "")
    words = re.sub(rf"{re.escape(tempfile.gettempdir())}/[^/\s']*/?", "", words)
    words = " ".join(words.split())
    return words if len(words) <= longest else words[: longest - 1] + "…"


def pinocchio_takes(file: Path) -> tuple[Any, Any, str]:
    """Pinocchio's model or None, its verdict, and what its parser said."""
    import pinocchio

    from survey.workers import listening

    with listening() as heard:
        try:
            model = pinocchio.buildModelFromUrdf(str(file))
        except Exception as error:
            model, words = None, str(error).rpartition("message:")[2] or str(error)
    if model is None:
        return None, {"status": REFUSED, "message": brief(words, [file.parent])}, heard.words
    return model, {"status": LOADS, "nv": model.nv}, heard.words
