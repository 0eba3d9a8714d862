"""Kernels as functions that XLA calls: one handler, `handler.ll`, for all of them.

A program names its kernel by a hash of the kernel's content, never by an address: JAX keeps
programs on disk for other processes.
"""

import ctypes
import os
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import jax
import numpy as np

from mime.native.machine import Code, compile_ir

TARGET = "mime_native"
SPLIT_NS = 50_000
"""Work that takes longer goes to all cores: handing it over costs some 5 µs."""
BLOCK_NS = 10_000
"""The least work that is handed over at once."""


class _Record(ctypes.Structure):
    """A kernel as the handler knows it: %Record of handler.ll."""

    _fields_ = (
        ("next", ctypes.c_void_p),
        ("uses", ctypes.c_int64),
        ("key", ctypes.c_int64),
        ("address", ctypes.c_void_p),
        ("lanes", ctypes.c_int64),
        ("workspace_bytes", ctypes.c_int64),
        ("alone", ctypes.c_int64),
        ("block", ctypes.c_int64),
    )


@dataclass(frozen=True, eq=False)
class Entry:
    """A loaded kernel: XLA finds it by its key while this object or an executable of it lives.

    `cost_ns` estimates the time per member; `keepalive` holds the code at `address`.
    """

    address: int
    lanes: int
    workspace_bytes: int
    cost_ns: float
    key: int
    keepalive: Any
    _record: _Record = field(init=False, repr=False)

    def __post_init__(self) -> None:
        block = -(-int(BLOCK_NS / self.cost_ns + 1) // self.lanes) * self.lanes
        record = _Record(
            None, 0, self.key, self.address, self.lanes, self.workspace_bytes,
            int(SPLIT_NS / self.cost_ns), block,
        )  # fmt: skip
        object.__setattr__(self, "_record", record)
        _reap()
        handler().insert(ctypes.addressof(record))
        weakref.finalize(self, _retire, record, self.keepalive).atexit = False


def ffi_call(
    entry: Entry, members: int, args: Sequence[Any], result_types: Sequence[Any]
) -> list[Any]:
    """Results of a kernel for JAX arrays whose first axis is the members."""
    call = jax.ffi.ffi_call(TARGET, list(result_types))
    return list(call(*args, key=np.int64(entry.key), members=np.int64(members)))


class Handler(NamedTuple):
    """The functions of handler.ll that Python calls, and their code."""

    insert: Any
    remove: Any
    uses: Any
    code: Code


@cache
def handler() -> Handler:
    """The handler, compiled and made known to XLA once in this process."""
    text = (files("mime.native") / "handler.ll").read_text()
    text = text.replace("@@yield@@", "SwitchToThread" if os.name == "nt" else "sched_yield")
    names = ("instantiate", "execute", "type_id", "type_info", "insert", "remove", "uses")
    code = compile_ir(text, names)
    type_id, type_info = _capsule(code, "type_id"), _capsule(code, "type_info")
    jax.ffi.register_ffi_type(TARGET, {"type_id": type_id, "type_info": type_info}, platform="cpu")
    stages = {name: _capsule(code, name) for name in ("instantiate", "execute")}
    jax.ffi.register_ffi_target(TARGET, stages, platform="cpu")
    done = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)  # with Python's lock: they take nanoseconds
    count = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
    return Handler(
        done(code.address("insert")),
        done(code.address("remove")),
        count(code.address("uses")),
        code,
    )


def _capsule(code: Code, name: str) -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(code.address(name), None, None)


_retired: deque[tuple[_Record, Any]] = deque()
"""Kernels that Python has dropped and executables may still hold."""


def _retire(record: _Record, keepalive: Any) -> None:
    handler().remove(ctypes.addressof(record))
    _retired.append((record, keepalive))
    _reap()


def _reap() -> None:
    """Let go of retired kernels that no executable holds. (Safe when a collection interrupts it.)"""
    for _ in range(len(_retired)):
        try:
            record, keepalive = _retired.popleft()
        except IndexError:
            return
        if handler().uses(ctypes.addressof(record)):
            _retired.append((record, keepalive))
