"""Checkpoints of a run: written atomically, refused when cut short or of another run."""

import dataclasses
import hashlib
import json
import marshal
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from mime._files import write_atomically
from mime.core.program import Program
from mime.core.recorder import Selection
from mime.core.signals import Signals
from mime.core.step import SimulationState

_FORMAT = "MIME checkpoint 1"


Reason = Literal["missing", "damaged", "unfinished", "other run", "too long"]


class CheckpointError(ValueError):
    """A checkpoint that cannot be used: `what` is wrong, for which `reason`."""

    def __init__(self, reason: Reason, what: str, advice: str):
        self.reason, self.what = reason, what
        super().__init__(f"{what}; {advice}")


@dataclasses.dataclass(frozen=True)
class Reached:
    """How far a run has come: what a checkpoint holds."""

    done: int
    """Steps made since the run's start."""
    total: int
    """Steps the run was asked for."""
    state: SimulationState
    records: int
    """Samples recorded so far."""


def fingerprint(
    program: Program, state: SimulationState, signals: Signals, selection: Selection, every: int
) -> dict[str, str]:
    """Digests of all that decides a run's result, by part, so that a refusal can name the part."""
    wiring = program.wiring
    edges = [(str(edge), edge.delay, _describe(edge.transform)) for edge in wiring.edges]
    nodes = [(type(n).__module__, str(jax.tree.structure(n))) for n in program.nodes.values()]
    shape = (wiring.timestep, edges, wiring.external, wiring.schedule, wiring.periods, nodes)
    return {
        "graph": _digest(repr(shape)),
        "parameters": _digest(*_leaves(program)),
        "initial state": _digest(*_leaves(state)),
        "inputs": _digest(*_leaves(signals)),
        "recorded fields": _digest(repr((selection, every))),
    }


def save(
    path: Path, prints: Mapping[str, str], reached: Reached, recorded: list[np.ndarray]
) -> None:
    """Write a checkpoint. The file at `path` is always a whole one."""
    header = {
        "format": _FORMAT,
        "fingerprint": dict(prints),
        "done": reached.done,
        "total": reached.total,
        "records": reached.records,
    }
    arrays = {f"state{i}": np.asarray(x) for i, x in enumerate(jax.tree.leaves(reached.state))}
    arrays |= {f"record{i}": values[: reached.records] for i, values in enumerate(recorded)}

    def write(part: Path) -> None:
        with part.open("wb") as file:
            text = np.frombuffer(json.dumps(header).encode(), np.uint8)
            np.savez(file, allow_pickle=False, header=text, **arrays)

    write_atomically(path, write)


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The header of a checkpoint, or a `CheckpointError` that says what the file is instead."""
    try:
        with np.load(path, allow_pickle=False) as file:
            header = json.loads(bytes(file["header"]))
    except FileNotFoundError as error:
        words = f"{path}: no such checkpoint"
        raise CheckpointError("missing", words, "start the run without resume=True") from error
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, EOFError) as error:
        words = f"{path}: not a checkpoint, or cut short ({error})"
        raise CheckpointError("damaged", words, "delete it and start anew") from error
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        words = f"{path}: not a checkpoint of this version of MIME"
        raise CheckpointError("damaged", words, "delete it and start anew")
    return header


def load(
    path: str | os.PathLike[str],
    prints: Mapping[str, str],
    like: SimulationState,
    recorded: list[np.ndarray],
) -> Reached:
    """Read a checkpoint of this very run into `recorded`; refuse any other."""
    header = read_header(path)
    changed = [part for part, digest in prints.items() if header["fingerprint"].get(part) != digest]
    if changed:
        raise CheckpointError(
            "other run",
            f"{path}: written by another run (different {', '.join(changed)})",
            "resume with what it was started with, or start anew with another file",
        )
    count = header["records"]
    if recorded and count > len(recorded[0]):
        words = f"{path}: already {header['done']} steps long, more than this run's"
        raise CheckpointError("too long", words, "ask for a longer one")
    try:
        with np.load(path, allow_pickle=False) as file:
            leaves = [
                jax.numpy.asarray(file[f"state{i}"]) for i in range(len(jax.tree.leaves(like)))
            ]
            for i, values in enumerate(recorded):
                values[:count] = file[f"record{i}"]
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, EOFError) as error:
        words = f"{path}: damaged ({error})"
        raise CheckpointError("damaged", words, "delete it and start anew") from error
    state = jax.tree.unflatten(jax.tree.structure(like), leaves)
    return Reached(header["done"], header["total"], state, count)


def _digest(*parts: str | bytes) -> str:
    sha = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode()
        sha.update(len(data).to_bytes(8, "little") + data)
    return sha.hexdigest()


def _leaves(tree: Any) -> list[str | bytes]:
    """Every leaf's path, dtype and bytes; a function by its code."""
    parts: list[str | bytes] = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree, is_leaf=_is_function):
        parts.append(jax.tree_util.keystr(path))
        if _is_function(leaf):
            parts.append(_describe(leaf))
        else:
            array = np.asarray(leaf)
            parts += [array.dtype.str, repr(array.shape), array.tobytes()]
    return parts


def _is_function(leaf: Any) -> bool:
    return isinstance(leaf, jax.tree_util.Partial)


def _describe(function: Any) -> str:
    """A function by its name, its code and what it closes over; the same in every process."""
    if isinstance(function, jax.tree_util.Partial):
        return _describe(function.func) + repr(function.args)
    code = getattr(function, "__code__", None)
    name = (
        f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function))}"
    )
    if code is None:
        return name
    closed = [cell.cell_contents for cell in function.__closure__ or ()]
    # Version 2 of marshal writes no references, so equal code gives equal bytes.
    return name + _digest(marshal.dumps(code, 2)) + repr(closed)
