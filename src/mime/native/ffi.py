"""The door to all kernels, for XLA and for Python. (Behind it: the files `*.ll`.)

    void kernel(void** args, void** results, void* workspace, long first, long last, long members)

computes members `first` to `last`, the first axis of every array; `first` is a multiple of the
lanes. Members are independent: results are the same bits for any number of threads.

A program names its kernel by a hash of the kernel's content, never by an address: JAX keeps
programs on disk for other processes. XLA looks the kernel up when it loads a program, and holds it
until the last run of that program is over, whatever Python has dropped meanwhile.
"""

import ctypes
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from struct import Struct
from typing import Any, NamedTuple

import jax
import numpy as np

from mime.native.machine import Code, NativeError, compile_ir, host

TARGET = "mime_native"
SPLIT_NS = 50_000
"""Work that takes longer goes to all cores: handing it over costs a few microseconds."""
BLOCK_NS = 10_000
"""The least work that is handed over at once."""


class _Record(ctypes.Structure):
    """A kernel as kernels.ll knows it."""

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
    """A loaded kernel: XLA finds it by its key while this object lives.

    `cost_ns` estimates the time per member; `keepalive` holds the code at `address`; `key` is a
    hash of the content, in 64 bits with a sign.
    """

    address: int
    lanes: int
    workspace_bytes: int
    cost_ns: float
    key: int
    keepalive: Any = field(repr=False)
    alone: int = field(init=False, repr=False)
    """The most members that one thread computes."""
    record: int = field(init=False, repr=False)
    """The address of its record."""
    door: "_Door" = field(init=False, repr=False)

    def __post_init__(self) -> None:
        cost_ns = max(self.cost_ns, 1e-3)
        alone = max(self.lanes, int(SPLIT_NS / cost_ns))
        block = -(-int(BLOCK_NS / cost_ns + 1) // self.lanes) * self.lanes
        record = _Record(
            None, 0, self.key, self.address, self.lanes, self.workspace_bytes, alone, block
        )
        for name, value in (
            ("alone", alone), ("record", ctypes.addressof(record)), ("door", door())
        ):  # fmt: skip
            object.__setattr__(self, name, value)
        _reap()
        self.door.insert(self.record)
        weakref.finalize(self, _retire, record, self.keepalive).atexit = False


def ffi_call(
    entry: Entry, members: int, args: Sequence[Any], result_types: Sequence[Any]
) -> list[Any]:
    """Results of a kernel for JAX arrays whose first axis is the members."""
    call = jax.ffi.ffi_call(TARGET, list(result_types))
    return list(call(*args, key=np.int64(entry.key), members=np.int64(members)))


def call_direct(
    entry: Entry,
    args: Sequence[np.ndarray],
    results: Sequence[np.ndarray],
    members: int,
    threads: int | None = None,
) -> None:
    """Fill `results` with what the kernel makes of `args`, without JAX and without Python's lock.

    All are contiguous NumPy arrays of the kernel's types, and nobody else writes to them meanwhile.
    `threads=None` takes all cores for what takes long.
    """
    call = _words(len(args) + len(results)).pack(
        entry.record, members, len(args), len(results), *map(id, args), *map(id, results)
    )
    if members <= entry.alone or threads == 1:
        done = entry.door.direct(call)
    else:
        done = _on_threads(entry.door, call, threads or _cores())
    if not done:
        raise _no_memory(entry)


class StraightCall:
    """`call_direct` for one member and one result, again and again, with arguments as they come.

    `kinds` has the shape of each array, None where None must stand, and ... where anything may,
    which is none of the kernel's.
    """

    def __init__(self, entry: Entry, dtype: np.dtype, kinds: Sequence[Any]):
        words = [entry.record, len(kinds), id(np.ndarray), id(dtype), id(None)]
        for kind in kinds:
            words += {None: [_NONE], ...: [_ANYTHING]}.get(kind) or [len(kind), *kind]
        pattern = (ctypes.c_int64 * len(words))(*words)
        self._held = pattern, dtype, entry
        self.fill: Callable[[tuple[Any, ...], np.ndarray], bool] = partial(
            entry.door.straight, ctypes.addressof(pattern)
        )
        """(arguments, result) -> done; False, and nothing is done, where they are of another kind.
        Keeps Python's lock: to give it back and wait for it takes as long as such a kernel."""


_ANYTHING, _NONE = -1, -2
"""In the pattern of a call: see straight.ll."""


def _no_memory(entry: Entry) -> MemoryError:
    return MemoryError(f"no memory for the {entry.workspace_bytes} bytes of a kernel's work")


def _on_threads(door: "_Door", call: bytes, threads: int) -> bool:
    job = door.direct_job(call, threads)
    if not job:
        return door.direct(call)
    holders = ctypes.c_int64.from_address(job).value
    for _ in range(holders - 1):
        try:
            _pool().submit(door.help, job)
        except RuntimeError:  # the interpreter is about to end
            door.leave(job)
    return door.lead(job)


@cache
def _words(arrays: int) -> Struct:
    return Struct(f"={4 + arrays}q")


@cache
def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, _cores() - 1), thread_name_prefix="mime-native")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child inherits no threads


class _Door(NamedTuple):
    """The functions of kernels.ll that Python calls, and their code."""

    insert: Any
    remove: Any
    uses: Any
    direct: Any
    direct_job: Any
    help: Any
    lead: Any
    leave: Any
    straight: Any
    code: Code


def door() -> _Door:
    """The door, compiled and made known to XLA once in this process."""
    with _making:
        return _make_door()


_making = threading.RLock()


@cache
def _make_door() -> _Door:
    stages = ("instantiate", "execute")
    types = ("type_id", "type_info")
    word, text = ctypes.c_int64, ctypes.c_char_p
    brief, long = ctypes.PYFUNCTYPE, ctypes.CFUNCTYPE  # `brief` ones keep Python's lock
    functions = {
        "insert": brief(None, word),
        "remove": brief(None, word),
        "uses": brief(word, word),
        "direct": long(ctypes.c_bool, text),
        "direct_job": brief(word, text, word),
        "help": long(None, word),
        "lead": long(ctypes.c_bool, word),
        "leave": brief(None, word),
        "straight": brief(ctypes.c_bool, word, ctypes.py_object, ctypes.py_object),
    }
    code = compile_ir(_ir(), [*stages, *types, *functions], level=0)  # 0.1 s sooner
    capsules = {name: _capsule(code.address(name)) for name in (*stages, *types)}
    type_id, type_info = capsules["type_id"], capsules["type_info"]
    jax.ffi.register_ffi_type(TARGET, {"type_id": type_id, "type_info": type_info}, platform="cpu")
    jax.ffi.register_ffi_target(TARGET, {name: capsules[name] for name in stages}, platform="cpu")
    called = {name: kind(code.address(name)) for name, kind in functions.items()}
    return _Door(**called, code=code)


def _ir() -> str:
    """The text of the door, with the words in which this Python keeps tuples and NumPy arrays."""
    folder = files("mime.native")
    names = ("kernels.ll", "straight.ll", "handler.ll")
    text = "".join((folder / name).read_text() for name in names)
    mode = (folder / f"denormals_{'arm' if host().is_arm else 'x86'}.ll").read_text()
    give_way = "SwitchToThread" if os.name == "nt" else "sched_yield"
    filled = {"yield": give_way, "denormals": mode, **_layout()}
    for name, words in filled.items():
        text = text.replace(f"@@{name}@@", words)
    return text


def _layout() -> dict[str, str]:
    """Which word of an object holds what; a `NativeError` where a probe says otherwise."""
    data = object.__basicsize__ // 8  # behind what each object begins with, its type the last
    places = {
        **{"type": data - 1, "data": data, "axes": data + 1, "lengths": data + 2},
        **{"dtype": data + 5, "flags": data + 6},
        **{"size": data, "items": tuple.__basicsize__ // 8},
    }
    array = np.zeros((3, 5))
    pair = (array, None)

    def word(name: str, owner: Any = array) -> int:
        return ctypes.c_int64.from_address(id(owner) + 8 * places[name]).value

    is_right = {
        "type": word("type") == id(np.ndarray),
        "data": word("data") == array.ctypes.data,
        "axes": word("axes") & 0xFFFFFFFF == array.ndim,
        "lengths": tuple((ctypes.c_int64 * 2).from_address(word("lengths"))) == array.shape,
        "dtype": word("dtype") == id(array.dtype),
        "flags": word("flags") & 0xFFFFFFFF == array.flags.num,
        "size": word("size", pair) == len(pair),
        "items": word("items", pair) == id(array),
    }
    if wrong := [name for name, right in is_right.items() if not right]:
        raise NativeError(f"this Python keeps NumPy arrays in another way: {', '.join(wrong)}")
    return {name: str(index) for name, index in places.items()}


def _capsule(address: int) -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address, None, None)


_retired: deque[tuple[_Record, Any]] = deque()
"""Kernels that Python has dropped and executables may still hold."""


def _retire(record: _Record, keepalive: Any) -> None:
    door().remove(ctypes.addressof(record))
    _retired.append((record, keepalive))
    _reap()


def _reap() -> None:
    """Drop the retired kernels that no executable holds. (A collection may interrupt this.)"""
    for _ in range(len(_retired)):
        try:
            record, keepalive = _retired.popleft()
        except IndexError:
            return
        if door().uses(ctypes.addressof(record)):
            _retired.append((record, keepalive))
