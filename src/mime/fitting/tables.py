"""A log's file as a table: columns by name, one value a row, and a head of single values.

    text       CSV, or columns between spaces; with a heading, or with `names`
    JSON       a head and a list of rows, or lists as columns; JSON Lines
    NumPy      .npz, .npy: structured, or two-dimensional with `names`
    NetCDF     variables are columns, attributes are the head
    Parquet    where pandas can read it

`q[2]` is the third number of each row of a column q, `state.q` a value inside an object. Nothing is
read as a number before a column is asked for.
"""

import csv
import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mime._files import is_file
from mime._text import Travels, brief, nearest, quoted, shortened

_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*")
_PART = re.compile(r"\.?([^.\[\]]+)|\[(\d{1,6})\]")
NETCDF = (".nc", ".nc4", ".h5", ".hdf5")
PARQUET = (".parquet", ".pq")
JSON_LINES = (".jsonl", ".ndjson")
_BINARY = (".npy", ".npz", *NETCDF, *PARQUET)


class LogError(Travels, ValueError):
    """A log that cannot be used: which file, row and column, what was found, what to do.

    A row is the line of a text file; elsewhere it is counted from 0.
    """

    def __init__(self, file: str, words: str, row: int | None = None, column: str | None = None):
        self.file, self.row, self.column = file, row, column
        where = file if row is None else f"{file}:{row}"
        what = "" if column is None else f"column {column!r} "
        super().__init__(shortened(f"{where}: {what}{words}"))


@dataclasses.dataclass(frozen=True)
class Table:
    """What a file holds: columns as they stand there, and a head."""

    file: str
    columns: Mapping[str, Any]
    """Lists or arrays, each with one entry a row."""
    head: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Single values, as `head.kp`."""
    first_line: int = 0
    """Of a text, where its heading is."""
    lines: np.ndarray | None = None
    """The line of each row of a text."""
    twice: frozenset[str] = frozenset()
    """Columns of a text that are there more than once."""
    is_result: bool = False
    """A result of MIME, whose inputs acted until their rows."""
    elsewhere: Mapping[str, tuple["Table", str]] = dataclasses.field(default_factory=dict)
    """Columns of files side by side: the table that has them, and their name there."""
    hint: str = ""
    """What else might be meant where a column is not there."""

    def numbers(self, name: str, is_time: bool = False) -> np.ndarray:
        """A column as floats, NaN where nothing was measured; a `LogError` says what is wrong."""
        if (key := _longest(self.elsewhere, name)) is not None:
            table, inner = self.elsewhere[key]
            return table.numbers(f"{inner}{name[len(key) :]}", is_time)
        if name in self.twice:
            raise LogError(self.file, "is there more than once", self.first_line, name)
        found = self._found(name, is_time)
        found = found if isinstance(found, list | tuple) else np.asarray(found)
        if isinstance(found, np.ndarray) and found.dtype.kind in "biuf":
            if found.ndim != 1:
                words = f"has shape {found.shape}; write one of its columns, {name}[0]"
                raise LogError(self.file, words, column=name)
            return found.astype(float)
        if isinstance(found, np.ndarray) and found.ndim != 1:
            raise LogError(self.file, f"must be numbers, got {found.dtype}", column=name)
        if (values := _all_numbers(found)) is not None:
            return values
        values = np.empty(len(found))
        for row, cell in enumerate(found):
            line = row if self.lines is None else int(self.lines[row])
            values[row] = _number(self.file, line, name, cell, is_time)
        return values

    def _found(self, name: str, is_time: bool) -> Any:
        if name in self.columns:
            return self.columns[name]
        first = _inside(self.columns, name)
        if first is not None:
            column, path = first
            return self._picked(name, column, path)
        value = value_at(self.head, name)
        if isinstance(value, list | np.ndarray) and np.ndim(value) == 1:
            return value
        words = f"has no column {name!r}{nearest(name, self.names)} (columns: {quoted(self.names)})"
        if is_time:
            words += (
                '. Say which of them has the time: time = "...", or how many rows a second has: '
                "rate_hz = ..."
            )
        raise LogError(self.file, words + (f". {self.hint}" if self.hint else ""))

    @cached_property
    def names(self) -> list[str]:
        """Of all columns; those of a column with several numbers a row are written `q[0:7]`."""
        found = []
        for name, column in self.columns.items():
            wide = isinstance(column, np.ndarray) and column.ndim == 2
            found.append(f"{name}[0:{column.shape[1]}]" if wide else str(name))
        return found

    def _picked(self, name: str, column: Any, path: Sequence[str | int]) -> Any:
        """The value at a path in every row."""
        if isinstance(column, np.ndarray) and column.dtype != object:
            if len(path) != 1 or not isinstance(path[0], int) or column.ndim != 2:
                words = f"is not there: the column has shape {column.shape}"
                raise LogError(self.file, words, column=name)
            if path[0] >= column.shape[1]:
                words = f"is not there: a row has {column.shape[1]} values, counted from 0"
                raise LogError(self.file, words, column=name)
            return column[:, path[0]]
        found = []
        for row, cell in enumerate(column):
            try:
                for part in path:
                    cell = None if cell is None else _entry(cell, part)
            except (KeyError, IndexError, TypeError):
                words = f"is not there, got {brief(cell)}"
                raise LogError(self.file, words, row, name) from None
            found.append(cell)
        return found


def read_table(
    source: Any, name: str, rows: str = "", names: Sequence[str] | Mapping[str, Any] = ()
) -> Table:
    """The table that a file is, or several files side by side, or what is in memory.

    name     what errors call a table in memory
    rows     where in a JSON or .npz file its rows are: `entries`, `data.samples`
    names    of the columns, where the file has none; of files side by side `{part: names}`
    """
    if isinstance(source, Mapping) and source and all(map(_is_path, source.values())):
        return _side_by_side(source, rows, names)
    if isinstance(names, Mapping):
        raise LogError(name, f"names must be a list for one file, got {brief(dict(names))}")
    if not _is_path(source):
        return _table(name, _in_memory(source), rows, names)
    file, kind = Path(source), Path(source).suffix.lower()
    if not is_file(file):
        raise LogError(str(file), "no such file")
    if kind in NETCDF:
        table = _from_netcdf(file)
    elif kind in (".npy", ".npz"):
        return _table(str(file), _from_numpy(file), rows, names)
    elif kind in PARQUET:
        table = _table(str(file), _from_parquet(file))
    elif kind == ".json" or kind in JSON_LINES:
        return _table(str(file), _from_json(file), rows, names)
    else:
        table = _from_text(file, names)
        names = ()
    if rows:
        words = (
            f"rows = {rows!r} says where a JSON or a NumPy file has its rows; this has one table"
        )
        raise LogError(str(file), words)
    if names:
        raise LogError(str(file), f"has names of its own for its columns: {quoted(table.names)}")
    return table


def value_at(tree: Any, name: str) -> Any:
    """The value at `a.b[2]` in a tree of mappings and lists; None where there is none."""
    if isinstance(tree, Mapping) and name in tree:
        return tree[name]
    found = _inside(tree, name)
    if found is None:
        return None
    value, path = found
    try:
        for part in path:
            value = _entry(value, part)
    except (KeyError, IndexError, TypeError):
        return None
    return value


def _entry(value: Any, part: str | int) -> Any:
    """One entry of an object or of a list; a `TypeError` where it is of the other kind."""
    is_list = isinstance(value, list | tuple | np.ndarray)
    if is_list is not isinstance(part, int) or not (is_list or isinstance(value, Mapping)):
        raise TypeError
    return value[part]


def _inside(tree: Any, name: str) -> tuple[Any, list[str | int]] | None:
    """The longest key that begins a name, its value, and the path from there: a.b[2] is b, 2."""
    if not isinstance(tree, Mapping):
        return None
    key = _longest(tree, name)
    if key is None:
        return None
    path: list[str | int] = []
    rest, at = name[len(key) :], 0
    while at < len(rest):
        match = _PART.match(rest, at)
        if match is None:
            return None
        path.append(match[1] if match[2] is None else int(match[2]))
        at = match.end()
    return tree[key], path


def _longest(tree: Iterable[Any], name: str) -> str | None:
    """The longest key that is a name or begins it."""
    keys = [k for k in tree if isinstance(k, str) and f"{name}.".startswith((f"{k}.", f"{k}["))]
    return max(keys, key=len, default=None)


def _is_path(value: Any) -> bool:
    return isinstance(value, str | Path) or hasattr(value, "__fspath__")


def _side_by_side(source: Mapping[str, Any], rows: str, names: Any) -> Table:
    """`part.column` of each file, and `column` where no other file has it."""
    if names and not isinstance(names, Mapping):
        words = f"names must be a table, {{file = [...]}}, for {quoted(source)}; got {brief(names)}"
        raise LogError(" + ".join(map(str, source.values())), words)
    for part in names or ():
        if part not in source:
            words = f"names: no file {part!r}{nearest(part, source)} ({quoted(source)})"
            raise LogError(" + ".join(map(str, source.values())), words)
    tables = {
        part: read_table(file, part, rows, (names or {}).get(part, ()))
        for part, file in source.items()
    }
    told = [name for table in tables.values() for name in table.columns]
    elsewhere = {}
    for part, table in tables.items():
        for name in table.columns:
            elsewhere[f"{part}.{name}"] = table, name
            if told.count(name) == 1:
                elsewhere[name] = table, name
    lines = [table.lines for table in tables.values() if table.lines is not None]
    same = lines and all(np.array_equal(other, lines[0]) for other in lines)
    return Table(
        file=" + ".join(map(str, source.values())),
        columns={name: table.columns[inner] for name, (table, inner) in elsewhere.items()},
        head={part: dict(table.head) for part, table in tables.items() if table.head},
        lines=lines[0] if same else None,
        elsewhere=elsewhere,
    )


def _in_memory(source: Any) -> Any:
    """What a mapping, an array or a DataFrame of pandas holds."""
    if hasattr(source, "to_numpy") and hasattr(source, "columns"):
        return {str(name): source[name].to_numpy() for name in source.columns}
    return source


def _table(file: str, data: Any, rows: str = "", names: Sequence[str] = ()) -> Table:
    """A tree of mappings, lists and arrays as a table."""
    head: Mapping[str, Any] = {}
    if rows:
        found = value_at(data, rows)
        if found is None:
            known = list(data) if isinstance(data, Mapping) else []
            near = nearest(rows, map(str, known))
            words = f"has nothing at rows = {rows!r}{near} (keys: {quoted(map(str, known))})"
            raise LogError(file, words)
        head = {key: value for key, value in data.items() if value is not found}
        data = found
    elif isinstance(data, Mapping) and len(data) == 1:
        (only,) = data.values()  # a .npz file of one array
        is_rows = isinstance(only, np.ndarray) and (only.dtype.names or (names and only.ndim == 2))
        data = only if is_rows else data
    if isinstance(data, Mapping):
        _refuse_names(file, names, "its columns have names")
        columns = {str(k): v for k, v in data.items() if _is_column(v)}
        single = {str(k): v for k, v in data.items() if not _is_column(v)}
        objects = [
            k for k, v in columns.items() if isinstance(v, list) and v and isinstance(v[0], Mapping)
        ]
        hint = f'Are its rows in {objects[0]!r}? Then say rows = "{objects[0]}"' if objects else ""
        return Table(file, columns, {**head, **single}, hint=hint)
    if isinstance(data, np.ndarray) and data.dtype.names:
        _refuse_names(file, names, "its columns have names")
        return Table(file, {name: np.ravel(data[name]) for name in data.dtype.names}, head)
    if isinstance(data, np.ndarray | list) and len(np.shape(data[:1])) and len(data):
        return Table(file, _columns_of(file, data, names), head)
    got = f"an array of shape {data.shape}" if isinstance(data, np.ndarray) else brief(data, 60)
    raise LogError(file, f"must have rows or columns, got {got}")


def _is_column(value: Any) -> bool:
    """A list or an array; a string, a number and an object are of the head."""
    return not isinstance(value, str | bytes | Mapping) and (
        isinstance(value, list | tuple) or np.ndim(value) > 0
    )


def _refuse_names(file: str, names: Sequence[str], why: str) -> None:
    if names:
        raise LogError(file, f"names are for a file without any; {why}")


def _columns_of(file: str, data: Any, names: Sequence[str]) -> dict[str, Any]:
    """Rows as columns: objects by their keys, lists and arrays by `names`."""
    if isinstance(data[0], Mapping):
        _refuse_names(file, names, "its rows have keys")
        found: dict[str, list[Any]] = {}
        for row, entry in enumerate(data):
            if not isinstance(entry, Mapping):
                words = f"must be an object, as the first row is, got {brief(entry, 60)}"
                raise LogError(file, words, row)
            for key in entry:
                if key not in found:  # what a row has not was not measured there
                    found[key] = [None] * row
            for key, cells in found.items():
                cells.append(entry.get(key))
        return found
    if isinstance(data, np.ndarray):
        if data.ndim == 2 and len(names) == data.shape[1]:
            return dict(zip(names, data.T, strict=True))
        if data.ndim == 1 and len(names) == 1:
            return {names[0]: data}
        words = f"has shape {data.shape} and no names for its columns; give names = [...]"
        if names:
            words = f"has shape {data.shape}, expected {len(names)} columns, as names has"
        raise LogError(file, words)
    if not isinstance(data[0], list):
        words = f"must have a list or an object a row, got {brief(data[0], 60)}"
        raise LogError(file, words, 0)
    if not names:
        raise LogError(file, "has lists as rows and no names for its columns; give names = [...]")
    for row, entry in enumerate(data):
        if not isinstance(entry, list) or len(entry) != len(names):
            words = f"must have {len(names)} values, as names has, got {brief(entry, 60)}"
            raise LogError(file, words, row)
    return {name: list(cells) for name, cells in zip(names, zip(*data, strict=True), strict=True)}


def _from_json(file: Path) -> Any:
    """The tree of a JSON file, or the rows of one with an object a line."""
    text = _text(file)
    try:
        if file.suffix.lower() in JSON_LINES:
            numbered = enumerate(text.splitlines(), 1)
            return [_decoded(file, line, number) for number, line in numbered if line.strip()]
        return _decoded(file, text)
    except RecursionError:
        raise LogError(str(file), "is nested too deeply for a log") from None


def _decoded(file: Path, text: str, line: int | None = None) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        at = error.lineno if line is None else line
        words = f"is not JSON: {error.msg}, at column {error.colno}"
        raise LogError(str(file), words, at) from None
    except ValueError as error:  # a number of more digits than Python reads
        raise LogError(str(file), f"is not JSON: {error}", line) from None


def _from_numpy(file: Path) -> Any:
    """Arrays by name, or the one array; nothing that would run code when it is read."""
    try:
        with file.open("rb") as stream:
            found = np.load(stream, allow_pickle=False)
            if isinstance(found, np.ndarray):
                return found
            return {name: _single(found[name]) for name in found.files}
    except Exception as error:  # zipfile, struct and NumPy raise what they like
        told = " ".join(str(error).split()) or type(error).__name__
        words = f"cannot be read as NumPy arrays; save numbers, not Python objects ({told})"
        raise LogError(str(file), words) from error


def _single(array: np.ndarray) -> Any:
    """An array of no dimensions as its value."""
    return array.item() if array.ndim == 0 else array


def _from_netcdf(file: Path) -> Table:
    import xarray

    try:
        with xarray.open_dataset(file, engine="h5netcdf", decode_times=False) as dataset:
            found = {str(name): dataset[name].values for name in dataset.variables}
            head = dict(dataset.attrs)
    except (OSError, ValueError, KeyError) as error:
        words = " ".join(str(error).split())
        raise LogError(str(file), f"cannot be read as NetCDF: {words}") from error
    table = _table(str(file), {**head, **{name: _single(array) for name, array in found.items()}})
    is_result = str(head.get("format", "")).startswith("MIME trajectory")
    return dataclasses.replace(table, is_result=is_result)


def _from_parquet(file: Path) -> Any:
    try:
        import pandas
    except ImportError:
        raise LogError(str(file), "needs pandas: pip install pandas pyarrow") from None
    try:
        return _in_memory(pandas.read_parquet(file))
    except ImportError:
        words = "pandas reads Parquet by pyarrow, which is not installed: pip install pyarrow"
        raise LogError(str(file), words) from None
    except Exception as error:  # pyarrow has errors of its own
        words = shortened(" ".join(str(error).split()), 300)
        raise LogError(str(file), f"cannot be read as Parquet: {words}") from error


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise LogError(str(file), f"cannot be read: {error}") from error


def _from_text(file: Path, names: Sequence[str]) -> Table:
    """Cells between commas, semicolons, tabs or spaces; `#` begins a comment."""
    every = list(enumerate(_text(file).splitlines(), 1))
    lines = [(n, line) for n, line in every if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise LogError(str(file), "is empty")
    mark = max(",;\t", key=lines[0][1].count)
    try:
        if mark in lines[0][1]:
            cells = list(csv.reader([line for _, line in lines], delimiter=mark))
        else:
            cells = [line.split() for _, line in lines]
    except csv.Error as error:
        raise LogError(str(file), f"cannot be read: {error}") from error
    numbers = np.array([number for number, _ in lines])
    heading = [name.strip() for name in cells[0]]
    first = lines[0][0]
    if names:
        heading = list(names)
        cells, numbers = _in_rows(cells, numbers, len(names))
    elif all(map(_is_number, heading)):
        before = [line for n, line in every if n < first and line.strip()]
        heading = _commented(str(file), before, mark, len(heading), first)
    else:
        cells, numbers = cells[1:], numbers[1:]
    if len(cells) != len(numbers):
        raise LogError(str(file), "has a cell that goes on over several lines: a quote is missing")
    for row, number in zip(cells, numbers, strict=True):
        if len(row) != len(heading):
            source = "names has" if names else "the first row has"
            words = f"has {len(row)} cells, expected {len(heading)}, as {source}"
            raise LogError(str(file), words, int(number))
    by_column = zip(*cells, strict=True) if cells else ([] for _ in heading)
    twice = frozenset(name for name in heading if heading.count(name) > 1)
    columns = dict(zip(heading, by_column, strict=True))
    return Table(str(file), columns, first_line=first, lines=numbers, twice=twice)


def _in_rows(
    cells: list[list[str]], lines: np.ndarray, width: int
) -> tuple[list[list[str]], np.ndarray]:
    """Rows of so many cells; a file with one number a line has a row in so many lines."""
    if width > 1 and all(len(row) == 1 for row in cells) and len(cells) % width == 0:
        flat = [row[0] for row in cells]
        return [flat[k : k + width] for k in range(0, len(flat), width)], lines[::width]
    return cells, lines


def _commented(file: str, before: list[str], mark: str, width: int, line: int) -> list[str]:
    """The names in the last comment before the rows, where NumPy's `savetxt` writes them."""
    comment = before[-1].lstrip().lstrip("#").strip() if before else ""
    names = comment.split(mark) if mark in comment else comment.split()
    if len(names) != width:
        words = "has no heading: its first row has numbers alone; give names = [...]"
        raise LogError(file, words, line)
    return [name.strip() for name in names]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _all_numbers(cells: Any) -> np.ndarray | None:
    """Cells as floats at once; None where one of them needs a look."""
    try:
        values = np.array(cells, dtype=float)
    except (TypeError, ValueError, OverflowError):
        return None
    return values if values.ndim == 1 and np.isfinite(values).all() else None


def _number(file: str, row: int, column: str, cell: Any, is_time: bool) -> float:
    """A cell's number; NaN for an empty one or a null, which says that nothing was measured."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return np.nan
    if isinstance(cell, str):
        try:
            value = float(cell)
        except ValueError:
            comma = _DECIMAL_COMMA.fullmatch(cell)
            hint = "; write a point for the decimal comma" if comma else ""
            words = f"must be a number, got {brief(cell)}{hint}"
            raise LogError(file, words, row, column) from None
        if not np.isfinite(value):
            hint = "" if is_time else "; leave the cell empty where a sensor has no value"
            raise LogError(file, f"must be finite, got {cell.strip()}{hint}", row, column)
        return value
    if not isinstance(cell, bool | int | float | np.integer | np.floating | np.bool_):
        raise LogError(file, f"must be a number, got {brief(cell, 60)}", row, column)
    try:
        return float(cell)
    except OverflowError:  # a whole number beyond all floats
        raise LogError(file, f"must be a number, got {brief(cell, 60)}", row, column) from None
