"""Rows of the survey as tables in Markdown."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from survey.agreement import QUANTITIES
from survey.readers import INTERNAL_ERROR
from survey.urdf import LIMIT, loads
from survey.workers import Row

TITLES = {"urdf": "URDF", "mjcf": "MJCF", "xacro": "xacro"}
PEERS = {"urdf": "Pinocchio", "mjcf": "MuJoCo", "xacro": "Pinocchio"}
_MOST_REASONS = 40


def page(rows: Sequence[Row]) -> Iterator[str]:
    """All tables, line by line."""
    for kind, section in (("urdf", _urdf), ("mjcf", _mjcf), ("xacro", _xacro)):
        if own := [row for row in rows if row["format"] == kind]:
            yield from ["", f"## {TITLES[kind]}", ""]
            yield from section(own)
            yield from _failures(own)
    yield from ["", "## Agreement", ""]
    yield from _agreement([row for row in rows if _robot(row)])
    yield from ["", "## The ten most frequent reasons of refusal", ""]
    yield from _reasons([row for row in rows if _robot(row)], "files", most=10)


def _robot(row: Row) -> bool:
    """False for MJCFs that MuJoCo does not compile or that do not move, and for xacro's parts."""
    if row["format"] == "mjcf":
        return loads(row, "peer") and row["peer"]["nv"] > 0
    if row["format"] == "xacro":
        return row.get("links", 0) > 0
    return True


def _urdf(rows: list[Row]) -> Iterator[str]:
    yield from _per_repository(
        rows,
        {
            "files": lambda own: sum(row["copies"] for row in own),
            "distinct": len,
            "Pinocchio loads": _count("peer"),
            "MIME loads": _count("default"),
            "without a joint": _without_joint,
            "kinematics only": _kinematics_only,
            "with warnings": _warned,
            "loads when mended": _count("mend"),
            "of Pinocchio's": _share,
        },
    )
    if left := sum(row.get("left_out", 0) for row in rows):
        yield f"\n{left} more files of the same patterns were left out (`--most`)."
    yield from ["", "### Reasons of refusal", ""]
    yield from _reasons(rows, "files")
    yield from _reported(rows)
    yield from _refused(rows)


def _mjcf(rows: list[Row]) -> Iterator[str]:
    robots = [row for row in rows if _robot(row)]
    yield from _per_repository(
        robots,
        {
            "robots": len,
            "MIME loads": _count("default"),
            "with warnings": _warned,
            "findings reported": lambda own: sum(_default(row).get("reported", 0) for row in own),
            "refused": lambda own: sum(not loads(row, "default") for row in own),
            "loads when mended": _count("mend"),
            "of MuJoCo's": _share,
            "files replaced": lambda own: sum(row.get("replaced", 0) for row in own),
        },
    )
    still = sum(loads(row, "peer") and not row["peer"]["nv"] for row in rows)
    others = [row for row in rows if not loads(row, "peer") and "lost" not in row]
    yield f"\nNot counted: {len(others)} that MuJoCo does not compile, {still} that do not move."
    yield from _folded(
        "MuJoCo does not compile", [f"- {_name(row)}: {_message(row, 'peer')}" for row in others]
    )
    yield from ["", "### Reasons of refusal", ""]
    yield from _reasons(robots, "robots")
    yield from _reported(robots)
    yield from _refused(robots)


def _xacro(rows: list[Row]) -> Iterator[str]:
    called = [row for row in rows if row.get("links") != 0]
    yield from _per_repository(
        called,
        {
            "calls": len,
            "expand": _count("expands"),
            "MIME loads": _count("default"),
            "without a joint": _without_joint,
            "kinematics only": _kinematics_only,
            "with warnings": _warned,
            "loads when mended": _count("mend"),
            "Pinocchio loads": _count("peer"),
            "not self-contained": lambda own: sum("needs" in row for row in own),
        },
    )
    yield from ["", "### Reasons of refusal", ""]
    yield from _reasons([row for row in called if "default" in row], "calls")
    yield from _reported(called)
    yield from ["", "### Calls", ""]
    yield "| call | arguments | expands | MIME | Pinocchio | |"
    yield "| --- | --- | --- | --- | --- | --- |"
    texts: dict[str, Row] = {}
    for row in called:
        arguments = " ".join(f"{name}:={value}" for name, value in row["arguments"].items())
        words = [f"needs package {row['needs']} of another repository"] if "needs" in row else []
        step = next((how for how in ("expands", "default") if not loads(row, how)), "")
        words += [_message(row, step)] if step and step in row else []
        first = texts.setdefault(row.get("hash", _name(row)), row)
        words += [] if first is row else [f"the same text as {_name(first)}"]
        mime = _default(row).get("status", "")
        if _default(row).get("kinematics_only"):
            mime += ", kinematics only"
        cells = [row["file"], arguments, _yes(row, "expands"), mime, _yes(row, "peer")]
        yield _line([f"{row['repository']} `{cells[0]}`", *cells[1:], "; ".join(words)])


def _yes(row: Row, how: str) -> str:
    return "" if how not in row else "yes" if loads(row, how) else "no"


def _per_repository(rows: list[Row], columns: dict[str, Callable[[list[Row]], Any]]) -> list[str]:
    names = list(dict.fromkeys(row["repository"] for row in rows))
    lines = [_line(["repository", *columns]), _line(["---"] * (len(columns) + 1))]
    for name in names:
        own = [row for row in rows if row["repository"] == name]
        lines.append(_line([name, *(count(own) for count in columns.values())]))
    whole = {row.get("hash", _name(row)): row for row in reversed(rows)}
    total = [row for row in rows if whole[row.get("hash", _name(row))] is row]
    lines.append(_line(["**all**", *(count(total) for count in columns.values())]))
    if len(total) < len(rows):
        lines.append(f"\n{len(rows) - len(total)} of the same content; **all** has each once.")
    return lines


def _count(how: str) -> Callable[[list[Row]], str]:
    def counted(rows: list[Row]) -> str:
        count = sum(loads(row, how) for row in rows)
        return f"{count} ({100 * count / max(len(rows), 1):.0f} %)"

    return counted


def _share(rows: list[Row]) -> str:
    """Of those that the peer loads, how many MIME loads by default."""
    theirs = [row for row in rows if loads(row, "peer")]
    both = sum(loads(row, "default") for row in theirs)
    return f"{both} of {len(theirs)} ({100 * both / max(len(theirs), 1):.1f} %)"


def _default(row: Row) -> Row:
    found: Row = row.get("default", {})
    return found


def _kinematics_only(rows: list[Row]) -> int:
    """Those that load with joints and without any mass."""
    defaults = [_default(row) for row in rows]
    return sum(bool(found.get("kinematics_only") and found["joints"]) for found in defaults)


def _without_joint(rows: list[Row]) -> int:
    return sum(_default(row).get("joints") == 0 for row in rows)


def _warned(rows: list[Row]) -> int:
    return sum(_default(row).get("warnings", 0) > 0 for row in rows)


def _reasons(rows: list[Row], what: str, most: int = _MOST_REASONS) -> Iterator[str]:
    """How many files each reason refuses; a file may have several."""
    refused = [row for row in rows if "default" in row and not loads(row, "default")]
    yield from _counted(
        refused, lambda row: _default(row).get("reasons", ()), ("refused for", what), most
    )


def _reported(rows: list[Row]) -> Iterator[str]:
    warned = [row for row in rows if _default(row).get("reported")]
    if warned:
        yield from ["", "### What loads with a warning", ""]
        yield from _counted(
            warned,
            lambda row: _default(row)["reasons_reported"],
            ("reported", "files"),
            _MOST_REASONS,
        )


def _counted(
    rows: list[Row], of: Callable[[Row], Iterable[str]], titles: tuple[str, str], most: int
) -> Iterator[str]:
    if not rows:
        yield "None."
        return
    every = Counter(reason for row in rows for reason in of(row))
    alone = Counter(next(iter(of(row))) for row in rows if len(list(of(row))) == 1)
    first = {reason: row for row in reversed(rows) for reason in of(row)}
    yield _line([*titles, "for this alone", "that the peer loads", "for example"])
    yield "| --- | --- | --- | --- | --- |"
    for reason, count in every.most_common(most):
        peer = sum(loads(row, "peer") for row in rows if reason in of(row))
        yield _line([reason, count, alone[reason], peer, _name(first[reason])])
    if len(every) > most:
        yield f"\n{len(every) - most} more reasons."


def _refused(rows: list[Row]) -> Iterator[str]:
    """Every file that MIME refuses and the peer loads."""
    refused = [row for row in rows if loads(row, "peer") and not loads(row, "default")]
    peer = PEERS[rows[0]["format"]] if rows else ""
    yield from ["", f"### Refused by MIME, loaded by {peer}: {len(refused)}", ""]
    for row in refused:
        mended = " (loads when mended)" if loads(row, "mend") else ""
        yield f"- {_name(row)}{mended}: {_message(row, 'default')}"


def _failures(rows: list[Row]) -> Iterator[str]:
    """Crashes, timeouts, and errors that are no refusal."""
    lines = [f"- {_name(row)}: {row['lost']} (after {_last(row)})" for row in rows if "lost" in row]
    for row in rows:
        lines += [
            f"- {_name(row)}: internal error ({how}): {_message(row, how)}"
            for how in ("default", "mend")
            if row.get(how, {}).get("status") == INTERNAL_ERROR
        ]
        if failed := row.get("agreement", {}).get("failed"):
            lines.append(f"- {_name(row)}: not compared: {_plain(failed)}")
    if lines:
        yield from ["", "### Not answered", "", *lines]


def _last(row: Row) -> str:
    steps = [how for how in ("expands", "default", "mend", "peer") if how in row]
    return steps[-1] if steps else "nothing"


def _agreement(rows: list[Row]) -> Iterator[str]:
    compared = [row for row in rows if row.get("agreement", {}).get("errors")]
    yield _line(["", "read", "compared", *(f"worst {name}" for name in QUANTITIES)])
    yield _line(["---"] * (3 + len(QUANTITIES)))
    for kind, title in TITLES.items():
        for how in ("default", "mend"):
            own = [r for r in compared if r["format"] == kind and _how(r) == how]
            if own:
                cells = [_worst(own, name) for name in QUANTITIES]
                yield _line([f"{title} to {PEERS[kind]}", how, len(own), *cells])
    notes = Counter(note for row in rows for note in row.get("agreement", {}).get("notes", ()))
    yield ""
    yield from (f"- {count}: {_plain(note)}" for note, count in notes.most_common())
    yield from ["", f"### Beyond {LIMIT:g}", ""]
    yield "| file | read | quantity | error | reason |"
    yield "| --- | --- | --- | --- | --- |"
    for row in compared:
        errors = row["agreement"]["errors"]
        for name, reason in row["agreement"]["reasons"].items():
            yield _line([_name(row), _how(row), name, f"{errors[name]:.1e}", reason])


def _how(row: Row) -> str:
    return "default" if loads(row, "default") else "mend"


def _worst(rows: list[Row], quantity: str) -> str:
    """Of all, and of those within the limit if some is beyond it."""
    found = [(row["agreement"]["errors"][quantity], _name(row)) for row in rows
             if quantity in row["agreement"]["errors"]]  # fmt: skip
    if not found:
        return ""
    error, name = max(found)
    beyond = sum(value > LIMIT for value, _ in found)
    words = f"{error:.1e} of {len(found)} ({name}"
    if beyond:
        within = max((value for value, _ in found if value <= LIMIT), default=0.0)
        words += f"; {beyond} beyond {LIMIT:g}, the others at most {within:.1e}"
    return words + ")"


def _name(row: Row) -> str:
    arguments = "".join(f" {name}:={value}" for name, value in row.get("arguments", {}).items())
    return f"{row['repository']}/{row['file']}{arguments}"


def _message(row: Row, how: str) -> str:
    words = _plain(row.get(how, {}).get("message", "")).removeprefix(row["file"])
    words = re.sub(r"^( \(expanded\))?:(\d+): ", r"line \2: ", words)
    return words.removeprefix(": cannot be expanded by xacro: ").removeprefix(": ")


def _plain(words: str) -> str:
    return " ".join(words.split()).replace("<", "&lt;")


def _folded(title: str, lines: list[str]) -> list[str]:
    if not lines:
        return []
    return ["", f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]


def _line(cells: Sequence[Any]) -> str:
    plain = (str(cell).replace("|", "/").replace("<", "&lt;") for cell in cells)
    return f"| {' | '.join(plain)} |"
