"""`report.html`: a study in one file, and `members.csv` beside it."""

import base64
import gzip
import json
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from mime._files import write_atomically
from mime.replay.page import json_in_html
from mime.reporting.html import Markup, folded
from mime.reporting.html import table as html_table
from mime.reporting.numbers import with_unit
from mime.studies.report.extremes import Extreme, Replays, extremes, write_replays
from mime.studies.report.heat import Cells, all_cells, maps
from mime.studies.report.selection import Selection, select
from mime.studies.report.sensitivity import Indices, indices
from mime.studies.report.slopes import slopes
from mime.studies.report.table import Column, Table, search_of, table_of
from mime.studies.result import StudyResult

CSV = "members.csv"
_MOST_NAMED = 100
SCRIPTS = (
    *("numbers.js", "colours.js", "raster.js", "members.js", "axes.js", "parallel.js", "heat.js"),
    *("front.js", "scatter.js", "member.js", "sensitivity.js", "table.js", "report.js"),
)


class Numbers:
    """The arrays of a page in one row of bytes, each in planes: lowest bytes first."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, values: np.ndarray, kind: str) -> dict[str, Any]:
        """An array of `f8`, `f4`, `u4` or `u1`, and where it stands."""
        flat = np.ascontiguousarray(values.ravel(), f"<{kind}")
        planes = flat.view(np.uint8).reshape(len(flat), -1).T
        place = {"at": self._size, "count": len(flat), "kind": kind}
        self._pieces.append(np.ascontiguousarray(planes).tobytes())
        self._size += flat.nbytes
        return place

    def base64(self) -> str:
        """All of it, as the page holds it; the same for the same numbers."""
        packed = gzip.compress(b"".join(self._pieces), 6, mtime=0)
        return base64.b64encode(packed).decode()


def write_report(result: StudyResult, path: Path) -> Path:
    """Write the page, `members.csv` and the replays beside it."""
    table = table_of(result)
    path.parent.mkdir(parents=True, exist_ok=True)
    table.write_csv(path.with_name(CSV))
    ends = extremes(table)
    replays = write_replays(result.study, table, ends, path.parent)
    content = page_html(result, table, ends, replays).encode()
    write_atomically(path, lambda part: _write(part, content))
    return path


def page_html(result: StudyResult, table: Table, ends: list[Extreme], replays: Replays) -> str:
    """The whole page. It loads nothing: one file is all of it, but for the replays it links to."""
    search = search_of(result)
    named = [m for m in (*search.get("front", ()), search.get("best")) if m is not None]
    wanted = [*named, *(member for end in ends for member in (end.best, end.worst))]
    chosen = select(table, wanted)
    numbers = Numbers()
    study = _study(result, table, chosen, numbers, search)
    study["slopes"] = {name: entry._asdict() for name, entry in slopes(result.study, ends).items()}
    study["replays"] = {member: {"file": file} for member, file in replays.files.items()}
    folder = files("mime.studies.report") / "page"

    def text(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    script = "\n".join(text(name) for name in SCRIPTS)
    return Template(text("report.html")).substitute(
        title=escape(result.title),
        about=escape(_about(result, table)),
        notes="".join(f'<p class="note">{escape(words)}</p>' for words in _notes(table, chosen)),
        extremes=_extremes(ends, replays),
        csv=f'<a href="{CSV}">{CSV}</a> <span class="dim">has all members</span>',
        run=_run(result, table),
        style=text("report.css"),
        study=json_in_html(study),
        numbers=numbers.base64(),
        script=f'(() => {{ "use strict";\n{script}\n}})();',
    )


def _study(
    result: StudyResult, table: Table, chosen: Selection, numbers: Numbers, search: dict[str, Any]
) -> dict[str, Any]:
    """What the page's script reads."""
    members, is_part = chosen.members, bool(chosen.words)
    cells = all_cells(table, is_part)
    failed = np.zeros(table.size, bool)
    failed[list(table.diverged)] = True
    first, second = _axes(table, search)
    study = result.study
    found = indices(table, study.design if study else ())
    prepared = None
    if is_part:
        prepared = [
            {
                "x": m.x,
                "y": m.y,
                "count": numbers.add(m.members, "u4"),
                "figures": {name: numbers.add(v, "f4") for name, v in m.figures.items()},
            }
            for m in maps(table, cells)
        ]
    addresses = table.addresses
    return {
        "columns": [_column(c, members, cells.get(c.name), numbers, result) for c in table.columns],
        "number": numbers.add(members, "u4"),
        "outside": numbers.add(table.outside[members], "u1"),
        "failed": numbers.add(failed[members], "u1"),
        "address": None if addresses is None else numbers.add(addresses[members], "u1"),
        "maps": prepared,
        "first": first,
        "axes": [first, second] if len(table.figures) != 1 else [second, first],
        "search": search,
        "limited": bool(table.limits) and not table.outside.all(),
        "command": list(study.command) if study else [],
        "diverged": {"named": dict(list(table.diverged.items())[:_MOST_NAMED])},
        "sensitivity": {name: _indices(entry) for name, entry in found.items()},
    }


def _axes(table: Table, search: dict[str, Any]) -> list[int]:
    """The two columns that the page begins with: objectives first, then figures that have values,
    then others.
    """
    wanted = [entry["figure"] for entry in search.get("objectives", ())]
    every = sorted(table.figures, key=lambda column: bool(np.isnan(column.values).all()))
    figures = [column.name for column in every]
    names = [column.name for column in table.columns]
    order = [name for name in dict.fromkeys([*wanted, *figures, *names]) if name in names]
    return [names.index(order[0]), names.index(order[min(1, len(order) - 1)])]


def _column(
    column: Column, members: np.ndarray, cells: Cells | None, numbers: Numbers, result: StudyResult
) -> dict[str, Any]:
    there = column.values[~np.isnan(column.values)]
    settings = {word: json.dumps(word) for word in column.words}
    if column.words and result.study is not None:
        settings |= {str(v): json.dumps(v) for v in set(result.study.columns[column.name].tolist())}
    return {
        "name": column.name,
        "unit": column.unit,
        "kind": column.kind,
        "about": column.about,
        "log": column.is_log,
        "words": list(column.words),
        "settings": [settings[word] for word in column.words],
        "low": float(there.min()) if len(there) else 0.0,
        "high": float(there.max()) if len(there) else 0.0,
        "missing": int(len(column.values) - len(there)),
        "direction": column.direction,
        "cells": cells.as_data() if cells else None,
        "place": numbers.add(column.values[members], "f8"),
    }


def _indices(found: Indices) -> dict[str, Any]:
    rows = [
        {"name": name, "first": list(index), "total": list(found.total[name])}
        if found.total
        else {"name": name, "first": list(index)}
        for name, index in found.first.items()
    ]
    return {"words": found.words, "indices": rows}


def _about(result: StudyResult, table: Table) -> str:
    varied = ", ".join(column.name for column in table.parameters)
    source = result.dataset.attrs.get("source", "")
    vary = "varies" if len(table.parameters) == 1 else "vary"
    return f"{counted(table.size)} of {source}; {varied} {vary}"


def _notes(table: Table, chosen: Selection) -> list[str]:
    """What must be known before anything is read off the page."""
    found = [f"{chosen.words}."] if chosen.words else []
    if table.diverged:
        some = list(table.diverged.items())[:3]
        words = "; ".join(f"{member}: {where}" for member, where in some)
        more = ", ..." if len(table.diverged) > len(some) else ""
        found.append(
            f"Diverged, without figures: {len(table.diverged):,} of {counted(table.size)} "
            f"({words}{more})."
        )
    if (count := int(np.count_nonzero(table.outside))) > 0:
        found.append(f"Outside of limits ({table.limits}): {counted(count)}.")
    for column in table.figures:
        missing = int(np.count_nonzero(np.isnan(column.values))) - len(table.diverged)
        if missing > 0:
            found.append(f"Without a value of {column.name}: {counted(missing)}.")
    return found


def counted(number: int) -> str:
    """`1 member`, `2,000 members`"""
    return f"{number:,} member{'s' * (number != 1)}"


def _extremes(ends: list[Extreme], replays: Replays) -> str:
    if not ends:
        return '<p class="dim">No figure has a value.</p>'
    rows = []
    for end in ends:
        cells = [
            Markup(
                f"{escape(title)}: {escape(with_unit(end.figure.values[member], end.figure.unit))} "
                f'<button type="button" data-member="{member}">member {member}</button>'
                + _link(replays.files.get(member))
            )
            for title, member in zip(end.titles, (end.best, end.worst))
        ]
        rows.append([end.figure.name, *cells])
    words = f'<p class="dim">{escape(replays.words)}</p>'
    return html_table(["", "", ""], rows) + words


def _link(file: str | None) -> str:
    return "" if file is None else f' <a href="{escape(file)}">replay</a>'


def _run(result: StudyResult, table: Table) -> str:
    versions = json.loads(result.dataset.attrs.get("versions", "{}"))
    rows = [
        ["members", f"{table.size:,}"],
        ["source", str(result.dataset.attrs.get("source", ""))],
        *([name, str(value)] for name, value in versions.items()),
    ]
    fields = [str(n) for n, v in result.dataset.data_vars.items() if v.dims != ("member",)]
    if fields:
        rows.append(["kept over time, in the store", ", ".join(fields)])
    named = [[str(m), where] for m, where in list(table.diverged.items())[:_MOST_NAMED]]
    more = folded("members that diverged", html_table(["member", ""], named)) if named else ""
    return html_table(["", ""], rows) + more


def _write(part: Path, content: bytes) -> None:
    part.write_bytes(content)
