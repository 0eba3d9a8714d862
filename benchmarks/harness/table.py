"""Results as rows, for the terminal and for the page."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rich.table import Table


class Row(NamedTuple):
    """One line: a case beside one peer, or a figure."""

    case: str
    ours: str
    peer: str
    theirs: str
    ratio: str
    target: str
    met: str


HEADER = Row("work", "ours", "beside", "theirs", "ours / theirs", "target", "met")
_MET = {True: "yes", False: "NO", None: ""}


def rows(entries: Mapping[str, Any]) -> Iterator[Row]:
    """All lines of a topic's entries."""
    for case, entry in entries.items():
        if "theirs" not in entry:
            yield _figure(case, entry)
            continue
        ours = f"{entry['us']:.4g} µs per {entry['unit']}"
        for peer, their in entry["theirs"].items():
            target = "" if their["target"] is None else f"≤ {their['target']:g}"
            if "ratio" in their:
                ratio, met = f"{their['ratio']:.3g}", _MET[their["met"]]
                yield Row(case, ours, peer, f"{their['us']:.4g} µs", ratio, target, met)
            else:
                why = their.get("refused") or f"missing ({their['missing']})"
                yield Row(case, ours, peer, why, "", target, "")


def _figure(name: str, entry: Mapping[str, Any]) -> Row:
    sign = "≥" if entry["at_least"] else "≤"
    target = "" if entry["target"] is None else f"{sign} {entry['target']:g} {entry['unit']}"
    if "missing" in entry:
        return Row(name, f"missing ({entry['missing']})", "", "", "", target, "")
    value = f"{entry['value']:.4g} {entry['unit']}"
    return Row(name, value, "", "", "", target, _MET[entry["met"]])


def missed(entries: Mapping[str, Any]) -> Iterator[Row]:
    """The lines whose target is not met."""
    return (row for row in rows(entries) if row.met == _MET[False])


def for_terminal(title: str, entries: Mapping[str, Any]) -> Table:
    """The table that a run prints."""
    table = Table(title=title, title_justify="left")
    for column in HEADER:
        table.add_column(column, overflow="fold")
    last = ""
    for row in rows(entries):
        same = row.case == last
        style = "red" if row.met == _MET[False] else None
        table.add_row(*(row._replace(case="", ours="") if same else row), style=style)
        last = row.case
    return table


def as_markdown(entries: Mapping[str, Any]) -> list[str]:
    """The table of a page, and every line whole."""
    lines = ["| " + " | ".join(HEADER) + " |", "| " + " | ".join(["---"] * len(HEADER)) + " |"]
    for row in rows(entries):
        met = "**no**" if row.met == _MET[False] else row.met
        lines.append("| " + " | ".join(x.replace("|", "/") for x in row._replace(met=met)) + " |")
    return lines
