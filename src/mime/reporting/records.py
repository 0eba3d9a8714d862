"""Frozen results as JSON files: written whole or not at all, and read by the version that wrote."""

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mime._files import write_atomically
from mime.core.arguments import path as path_of


def write_record(
    path: str | os.PathLike[str], record: Any, kind: str, without: tuple[str, ...] = ()
) -> None:
    """Write the fields of a dataclass under `kind`, its format with a version."""
    fields = [field.name for field in dataclasses.fields(record) if field.name not in without]
    content = {"format": kind, **{name: _plain(getattr(record, name)) for name in fields}}
    text = json.dumps(content, indent=1, allow_nan=True)
    write_atomically(path_of("path", path), lambda part: part.write_text(text, "utf-8"))


def read_record(path: str | os.PathLike[str], kind: str) -> Any:
    """The fields of a file, by name; a `ValueError` where it is of another kind."""
    file = Path(path_of("path", path))
    data: Any = json.loads(file.read_text("utf-8"))
    if not isinstance(data, dict) or data.pop("format", None) != kind:
        raise ValueError(f"{file} is no {kind}")
    return data


def _plain(value: Any) -> Any:
    """Numbers, texts, lists and dictionaries only."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, tuple | list) else value
