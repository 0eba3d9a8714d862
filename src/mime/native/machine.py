"""LLVM IR text to machine code of this processor, loaded and callable by its address.

    text -> parsed, verified -> optimised -> object code (kept on disk) -> loaded, symbols resolved

Code generation takes most of the time, and most of that is the register allocator. Level 1 makes
code as fast as level 3 in half the time; the quick allocator makes slower code.

Whoever writes the text should know: the scheduler's time grows with the square of the loads and
stores in one block, unless `call void asm sideeffect "", "~{memory}"()` stands between every few
hundred operations. And a function with the name of one of libm's is called in the place of libm's.
"""

import ctypes
import hashlib
import itertools
import os
import platform
import re
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import llvmlite
import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import NewPassManager

from mime.native import code_cache

FORMAT = 1
"""Of the code that is kept on disk: raised whenever the same IR is to be compiled differently."""
LONG_LINES = 4_000
"""Longer texts are straight lines of explicit vectors, whose common terms are shared already."""


class NativeError(RuntimeError):
    """No machine code for this: its text says why. The work goes to XLA instead."""


class RefusedCodeError(NativeError):
    """LLVM does not take the text: a slip of whoever wrote it."""


@dataclass(frozen=True)
class Host:
    """The processor, as LLVM names it."""

    triple: str
    cpu: str
    features: str

    def has(self, feature: str) -> bool:
        """Whether the last word on a feature is a plus."""
        words = [word for word in self.features.split(",") if word[1:] == feature]
        return bool(words) and words[-1][0] == "+"

    @property
    def is_arm(self) -> bool:
        """Whether this is ARM in 64 bits, which always has NEON and a·b + c."""
        return self.triple.startswith(("aarch64", "arm64"))

    @property
    def has_fma(self) -> bool:
        """Whether a·b + c is one instruction; where it is none, LLVM calls libm once per lane."""
        return self.is_arm or (self.has("avx") and self.has("fma"))

    def lanes(self, bits: int) -> int:
        """Numbers of `bits` in a vector: 512 bits with AVX-512, 256 with AVX2, else 128."""
        needed = {512: ("avx", "avx2", "avx512f", "avx512dq"), 256: ("avx", "avx2"), 128: ()}
        return next(w for w, names in needed.items() if all(map(self.has, names))) // bits


def why_off() -> str | None:
    """The reason why this process makes no machine code; None where it does."""
    if os.environ.get("MIME_NATIVE", "").lower() == "off":
        return "the environment says MIME_NATIVE=off"
    if platform.machine().lower() not in {"x86_64", "amd64", "aarch64", "arm64"}:
        return f"no native code is made for a processor of the kind {platform.machine()!r}"
    return None


def strict() -> bool:
    """True when a slip in the compiler is an error and no reason to ask XLA: tests say so."""
    return os.environ.get("MIME_NATIVE", "").lower() == "strict"


def optimises() -> bool:
    """False when the environment wants code sooner rather than faster code; bits are the same."""
    return os.environ.get("MIME_NATIVE_OPTIMISE", "1") != "0"


def host() -> Host:
    """Of this machine; MIME_NATIVE_FEATURES, such as "-avx,-avx2,-fma", has the last word."""
    return _host(os.environ.get("MIME_NATIVE_FEATURES", ""))


class Code:
    """Loaded machine code. Its addresses are good as long as this object lives."""

    def __init__(self, linker: Any, library: Any, functions: Sequence[str]):
        self._addresses = {name: int(library[name]) for name in functions}
        weakref.finalize(self, _unload, linker, library).atexit = False

    def address(self, name: str) -> int:
        """Where the function or variable `name` stands."""
        return self._addresses[name]


def compile_ir(text: str, functions: Sequence[str], level: int | None = None) -> Code:
    """The functions of an IR module, callable by address. Raises NativeError for any reason.

    Level 0 is there in a sixth of the time of level 1, which is the default.
    """
    if reason := why_off():
        raise NativeError(reason)
    this = host()
    level = int(optimises()) if level is None else level
    parts = (text, this.cpu, this.features, this.triple, *_versions(), str(FORMAT), str(level))
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    with _lock:
        try:
            object_code = code_cache.kept(key, lambda: _object_code(text, this, level))
        except RuntimeError as error:
            raise RefusedCodeError(f"LLVM refuses the code: {error}") from error
        try:
            return _load(object_code, functions, this)
        except RuntimeError as error:
            missing = f" (not found: {', '.join(names)})" if (names := _missing(text)) else ""
            raise NativeError(f"the code cannot be loaded: {error}{missing}") from error


_lock = threading.RLock()


def _versions() -> tuple[str, str]:
    return llvmlite.__version__, ".".join(map(str, llvm.llvm_version_info))


@cache
def _host(last_word: str) -> Host:
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # not known for some ARM systems: the baseline has NEON
        features = ""
    return Host(
        triple=llvm.get_process_triple(),
        cpu=llvm.get_host_cpu_name(),
        features=",".join(filter(None, (features, last_word))),
    )


@cache
def _target_machine(this: Host, level: int = 1) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_triple(this.triple).create_target_machine(
        cpu=this.cpu, features=this.features, opt=level, jit=True
    )


def _object_code(text: str, this: Host, level: int = 1) -> bytes:
    machine = _target_machine(this, level)
    module = llvm.parse_assembly(text)
    module.triple = this.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    if level == 0:
        return machine.emit_object(module)
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.loop_vectorization = options.slp_vectorization = False
    options.loop_unrolling = options.loop_interleaving = False
    builder = llvm.create_pass_builder(machine, options)
    if text.count("\n") < LONG_LINES:
        passes = builder.getModulePassManager()
    else:  # the others find nothing here, and take much longer than these
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        passes.add_dead_code_elimination_pass()
    passes.run(module, builder)
    NewPassManager._dispose(passes)  # its class inherits an empty one, which would leak it
    passes.detach()
    return machine.emit_object(module)


def _load(object_code: bytes, functions: Sequence[str], this: Host) -> Code:
    """The linker finds what is undefined in this process (libm, libc), or raises RuntimeError."""
    number = next(_loads)
    linker = _linker(number // 32, this)
    library = llvm.JITLibraryBuilder().add_object_img(object_code).add_current_process()
    for name in functions:
        library.export_symbol(name)
    return Code(linker, library.link(linker, f"kernels{number}"), functions)


_loads = itertools.count()


@lru_cache(maxsize=1)
def _linker(age: int, this: Host) -> Any:
    """A linker for 32 libraries: one takes 150 kB, and keeps 9 kB of each library that has gone."""
    return llvm.create_lljit_compiler(_target_machine(this), suppress_errors=True)


def _unload(linker: Any, library: Any) -> None:
    library.close()  # the linker goes with the last library that holds it


def _missing(text: str) -> list[str]:
    """Functions that a module declares and this process does not have."""
    declared = re.findall(r"^declare [^@\n]*@([\w.$]+)\(", text, re.MULTILINE)
    return [n for n in declared if not n.startswith("llvm.") and not hasattr(ctypes.pythonapi, n)]
