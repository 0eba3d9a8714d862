"""The elementary functions that a module needs, as text; built once for each set of them."""

import re
from functools import cache

from llvmlite import ir

from mime.native.elementary import NAMES, define
from mime.native.lowering.values import Unsupported


def function_name(name: str, bits: int, lanes: int, fma: bool) -> str:
    """What `elementary.define` calls the function."""
    if name not in NAMES:
        raise Unsupported(name)
    return f"mime.{name}.{lanes}x{bits}" + ("" if fma else ".no_fma")


@cache
def elementary_text(
    wanted: tuple[tuple[str, int], ...], lanes: int, fma: bool
) -> tuple[str, frozenset[str]]:
    """The definitions, and the names of the intrinsics that they declare."""
    module = ir.Module()
    for name, bits in wanted:
        define(module, name, lanes, bits, fma=fma)
    lines = str(module).splitlines()
    text = "\n".join(x for x in lines if not x.startswith(("; ModuleID", "target ", "source_")))
    return text, frozenset(re.findall(r'^declare [^@]*@"?([\w.]+)"?\(', text, re.M))
