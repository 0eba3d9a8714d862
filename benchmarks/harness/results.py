"""The files of results: written whole or not at all, and compared with those of another run."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mime._files import write_atomically

FOLDER = Path(__file__).parent.parent / "results"


def save(topic: str, results: Mapping[str, Any], folder: Path = FOLDER) -> Path:
    """Write `<topic>.json`; an interrupted run leaves the former one as it was."""
    folder.mkdir(exist_ok=True)
    text = json.dumps(_rounded(results), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    path = folder / f"{topic}.json"
    write_atomically(path, lambda part: part.write_text(text))
    return path


def load(topic: str, folder: Path = FOLDER) -> dict[str, Any] | None:
    """The results of a topic, if there are any."""
    path = folder / f"{topic}.json"
    return json.loads(path.read_text()) if path.exists() else None


def ratios(entries: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """`{(case, peer): ours / theirs}` of all that was timed."""
    return {
        (case, peer): their["ratio"]
        for case, entry in entries.items()
        for peer, their in entry.get("theirs", {}).items()
        if "ratio" in their
    }


def regressions(
    measured: Mapping[str, Any], committed: Mapping[str, Any], noise: float
) -> Iterator[tuple[str, str]]:
    """The case, and a sentence, for each ratio that is worse than the committed by `noise`."""
    before = ratios(committed)
    for (case, peer), ratio in ratios(measured).items():
        known = before.get((case, peer))
        if known is not None and ratio > noise * known:
            yield (
                case,
                f"{case}: ours / {peer} is {ratio:.3g}, committed {known:.3g}: "
                f"{ratio / known:.2f} times worse (allowed {noise:g})",
            )


def _rounded(value: Any) -> Any:
    """Four digits: more would be noise, and would change in every run."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, Mapping):
        return {key: _rounded(x) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(x) for x in value]
    return value
