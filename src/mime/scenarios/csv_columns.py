"""Columns of a CSV file as an input over time."""

import csv
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from mime._text import nearest, quoted
from mime.scenarios.values import is_file
from mime.scenarios.waveforms import Csv, Samples


def read_columns(table: Csv, file: Path, size: tuple[int, ...]) -> Samples:
    """The input that a `csv` table asks for; a `ValueError` says what is wrong with the file."""
    names = [table.column] if isinstance(table.column, str) else table.column
    if isinstance(table.column, list) and size != (len(names),):
        raise ValueError(f"names {len(names)} columns for an input of shape {size}")
    if not is_file(file):
        raise ValueError(f"cannot read {file}: no such file")
    try:
        with file.open(newline="", encoding="utf-8-sig") as opened:
            rows = [row for row in csv.reader(opened) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"cannot read {file}: {error}") from error
    if not rows:
        raise ValueError(f"{file} is empty")
    header = [name.strip() for name in rows[0]]
    for name in [table.time_column, *names]:
        if name not in header:
            raise ValueError(
                f"{file} has no column {name!r}{nearest(name, header)} (columns: {quoted(header)})"
            )
    chosen = [header.index(name) for name in [table.time_column, *names]]
    numbers = np.array([_numbers(file, row, line, chosen) for line, row in enumerate(rows[1:], 2)])
    if len(numbers) < 2:
        raise ValueError(f"{file} has {len(numbers)} rows of numbers; it takes two or more")
    times = numbers[:, 0]
    if not np.all(np.diff(times) > 0):
        row = int(np.argmin(np.diff(times) > 0)) + 3
        raise ValueError(
            f"{file}:{row}: column {table.time_column!r} must increase from row to row"
        )
    values = table.scale * (numbers[:, 1] if isinstance(table.column, str) else numbers[:, 1:])
    if isinstance(table.column, str):
        values = np.broadcast_to(values.reshape(-1, *(1,) * len(size)), (len(values), *size))
    dtype = jnp.result_type(float)
    return Samples(jnp.asarray(times, dtype), jnp.asarray(values, dtype))


def _numbers(file: Path, row: list[str], line: int, chosen: list[int]) -> list[float]:
    try:
        numbers = [float(row[column]) for column in chosen]
    except (ValueError, IndexError) as error:
        raise ValueError(f"{file}:{line}: not a number in every column: {row}") from error
    if not np.all(np.isfinite(numbers)):
        raise ValueError(f"{file}:{line}: values must be finite, got {row}")
    return numbers
