"""Checkpoints of a run: whole, checked by a checksum, and of this very run, or refused.

A file is a NumPy archive followed by the SHA-256 of it. What is in it is checked like anything that
a stranger sends: a checksum says that nobody's disk has changed it, not who wrote it.
"""

import dataclasses
import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from mime._files import write_atomically
from mime._text import Travels, shortened
from mime.core.program import Program
from mime.core.recorder import Selection
from mime.core.signals import Signals, sample
from mime.core.step import SimulationState, advance
from mime.native.folding import MOST_PROGRAMS, Constants, split
from mime.running.identity import UnknownFunctionError, array_digest, computes, digest

_FORMAT = "MIME checkpoint 2"
_CHECKSUM_BYTES = hashlib.sha256().digest_size
_MOST_HEADER_BYTES = 2**16
_UNKNOWN = "calls Python: "
"""How the print of a part begins that nobody can tell from another."""

Reason = Literal["missing", "damaged", "unfinished", "other run", "too long"]


class CheckpointError(Travels, ValueError):
    """A checkpoint that cannot be used: `what` is wrong, for which `reason`."""

    def __init__(self, reason: Reason, what: str, advice: str):
        self.reason, self.what, self.advice = reason, what, advice
        super().__init__(shortened(f"{what}; {advice}"))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reason, self.what, self.advice)


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written. The run goes on, and tries again."""


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


@dataclasses.dataclass(frozen=True)
class Wanted:
    """The run that asks for its checkpoint, and the room for what it has recorded."""

    steps: int
    every: int
    start: SimulationState
    recorded: Sequence[np.ndarray]


def fingerprint(
    program: Program, state: SimulationState, signals: Signals, selection: Selection, every: int
) -> dict[str, str]:
    """Digests of all that decides a run's result, by part, so that a refusal can name the part.

    Graph and inputs are what they compute: the jaxprs of one step and of the inputs of a step.
    """
    state, signals = jax.tree.map(
        lambda x: jax.device_put(x) if isinstance(x, np.ndarray) else x, (state, signals)
    )
    wiring = program.wiring
    nodes = [
        (name, type(node).__module__, type(node).__qualname__)
        for name, node in program.nodes.items()
    ]
    edges = [(str(edge), edge.delay) for edge in wiring.edges]
    names = (wiring.timestep, edges, wiring.external, wiring.schedule, wiring.periods, nodes)
    constants, variables = split(program)
    now = state.step, program.time_at(state.step)

    def inputs(*now: Any) -> Any:
        return sample(signals, *now)

    def step(variables: Any, state: SimulationState, external: Any) -> Any:
        merged = constants.merge(variables)
        return advance(merged.nodes, merged.wiring, state, external)

    given: dict[str, dict[str, Any]] = {}
    for node, field in wiring.external:
        shape = program.nodes[node].boundary_input_spec()[field].shape
        given.setdefault(node, {})[field] = jax.ShapeDtypeStruct(shape, now[1].dtype)
    return {
        "graph": f"{_kept_print(constants, step, variables, state, given)} {digest(repr(names))}",
        "parameters": digest(*_leaves(program)),
        "initial state": digest(*_leaves(state)),
        "inputs": _print(inputs, *now),
        "recorded fields": digest(repr((selection, every))),
    }


def save(
    path: Path, prints: Mapping[str, str], reached: Reached, recorded: Sequence[np.ndarray]
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
        with part.open("w+b") as file:
            text = np.frombuffer(json.dumps(header).encode(), np.uint8)
            np.savez(file, allow_pickle=False, header=text, **arrays)
            file.seek(0)
            checksum = hashlib.file_digest(file, "sha256").digest()
            file.seek(0, io.SEEK_END)
            file.write(checksum)

    write_atomically(path, write)


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The header of a checkpoint, or a `CheckpointError` that says what the file is instead."""
    return _read(path, _checked_header)


def load(path: str | os.PathLike[str], prints: Mapping[str, str], wanted: Wanted) -> Reached:
    """Read a checkpoint of this very run into `wanted.recorded`; refuse any other."""

    def read(file: zipfile.ZipFile) -> Reached:
        header = _checked_header(file)
        _refuse_other_run(path, header["fingerprint"], prints)
        done, count = header["done"], header["records"]
        if done > wanted.steps:
            words = f"{path}: already {done} steps long, more than this run's {wanted.steps}"
            raise CheckpointError("too long", words, "ask for a longer one")
        if wanted.recorded and count != done // wanted.every:
            raise ValueError(f"{count} samples in {done} steps, expected {done // wanted.every}")
        leaves, structure = jax.tree.flatten(wanted.start)
        state = [_array(file, f"state{i}", x.shape, x.dtype) for i, x in enumerate(leaves)]
        after = jax.tree.unflatten(structure, jax.device_put(state))
        if int(after.step) != int(wanted.start.step) + done:
            raise ValueError(f"its state is of step {int(after.step)}, not {done} after the start")
        samples = [
            _array(file, f"record{i}", (count, *x.shape[1:]), x.dtype)
            for i, x in enumerate(wanted.recorded)
        ]
        for room, values in zip(wanted.recorded, samples, strict=True):
            room[:count] = values
        return Reached(done, header["total"], after, count)

    return _read(path, read)


def _read(path: str | os.PathLike[str], read: Callable[[zipfile.ZipFile], Any]) -> Any:
    """What `read` finds in the archive, once its checksum is right."""
    try:
        with Path(path).open("rb") as file:
            length = max(0, file.seek(0, io.SEEK_END) - _CHECKSUM_BYTES)
            file.seek(0)
            found, rest = hashlib.sha256(), length
            while block := file.read(min(rest, 2**20)):
                found.update(block)
                rest -= len(block)
            if not length or file.read() != found.digest():
                raise ValueError("its checksum is wrong")
            with zipfile.ZipFile(file) as archive:
                return read(archive)
    except CheckpointError:
        raise
    except FileNotFoundError as error:
        words = f"{path}: no such checkpoint"
        raise CheckpointError("missing", words, "start the run without resume=True") from error
    except Exception as error:  # readers of a damaged file raise anything
        words = f"{path}: not a checkpoint of this version of MIME, or cut short or damaged"
        advice = "delete it and start anew"
        raise CheckpointError("damaged", f"{words} ({error})", advice) from error


def _checked_header(file: zipfile.ZipFile) -> dict[str, Any]:
    """The header with the keys, types and ranges that `save` gives it; else a `ValueError`."""
    size = file.getinfo("header.npy").file_size
    if size > _MOST_HEADER_BYTES:
        raise ValueError(f"a header of {size} bytes")
    with file.open("header.npy") as member:
        header = json.loads(bytes(np.lib.format.read_array(member, allow_pickle=False)))
    keys = {"format", "fingerprint", "done", "total", "records"}
    if not isinstance(header, dict) or header.keys() != keys or header["format"] != _FORMAT:
        raise ValueError("another format")
    prints, numbers = header["fingerprint"], [header[key] for key in ("records", "done", "total")]
    if not isinstance(prints, dict) or not all(isinstance(x, str) for x in prints.values()):
        raise ValueError("a fingerprint that is none")
    if not all(type(number) is int for number in numbers) or sorted([0, *numbers]) != [0, *numbers]:
        raise ValueError(f"samples, steps and steps in all cannot be {numbers}")
    return header


def _array(file: zipfile.ZipFile, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array of the archive, if it is the expected one."""
    member = file.getinfo(f"{name}.npy")
    if member.file_size > math.prod(shape) * dtype.itemsize + _MOST_HEADER_BYTES:
        raise ValueError(f"{name} takes {member.file_size} bytes")
    with file.open(member) as content:
        array = np.lib.format.read_array(content, allow_pickle=False)
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"{name} is {array.dtype}{array.shape}, expected {dtype}{shape}")
    return array


def _refuse_other_run(
    path: str | os.PathLike[str], found: Mapping[str, str], prints: Mapping[str, str]
) -> None:
    for part, print_ in prints.items():
        if print_.startswith(_UNKNOWN):
            raise CheckpointError(
                "other run",
                f"{path}: the {part} of this run call {print_.removeprefix(_UNKNOWN)}, which no "
                "one can tell from another function",
                "compute it with jax.numpy, or start anew with another file",
            )
    changed = [part for part, print_ in prints.items() if found.get(part) != print_]
    if changed:
        # Another graph has other parameters and states: they say nothing more.
        named = "graph" if "graph" in changed else ", ".join(changed)
        raise CheckpointError(
            "other run",
            f"{path}: written by another run (different {named})",
            "resume with what it was started with, or start anew with another file",
        )


def _print(function: Callable[..., Any], *like: Any) -> str:
    try:
        return computes(function, *like)
    except UnknownFunctionError as error:
        return f"{_UNKNOWN}{error}"


_graphs: dict[Any, str] = {}
"""Prints of graphs, as long as their programs are kept: what was compiled computes this."""


def _kept_print(constants: Constants, function: Callable[..., Any], *like: Any) -> str:
    """The same for a function of a graph, which its constants and the arguments' types decide."""
    leaves, structure = jax.tree.flatten(like)
    types = (x if isinstance(x, jax.ShapeDtypeStruct) else jax.typeof(x) for x in leaves)
    key = constants, structure, tuple(types)
    if key not in _graphs:
        if len(_graphs) >= MOST_PROGRAMS:
            _graphs.clear()
        _graphs[key] = _print(function, *like)
    return _graphs[key]


def _leaves(tree: Any) -> list[str]:
    """Every leaf's path, type and bytes."""
    parts = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        parts += [jax.tree_util.keystr(path), array_digest(np.asarray(leaf))]
    return parts
