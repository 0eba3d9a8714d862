"""MIME: electromechanical robots, from the voltage at a motor to the pose of the tool.

The public names are those of `__init__.pyi`, kept there once: type checkers read that file as it
is, and so does this module. A name loads when it is first used, so `import mime` costs nothing.
"""

import ast
import pkgutil
from typing import Any

from mime.xla.whole_loops import compile_whole_loops

__version__ = "0.1.0"

compile_whole_loops()


def _read_homes() -> dict[str, str]:
    """The module that defines each public name: `{"MotorNode": "mime.nodes.actuation.motor"}`."""
    stub = ast.parse(pkgutil.get_data(__name__, "__init__.pyi") or b"")
    return {
        alias.name: entry.module
        for entry in stub.body
        if isinstance(entry, ast.ImportFrom) and entry.module
        for alias in entry.names
    }


_HOMES = _read_homes()
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mime' has no attribute {name!r}")
    value = getattr(_load(_HOMES[name]), name)
    globals()[name] = value  # asked for once only
    return value


def _load(module: str) -> Any:
    """Import a module without a collection in the middle: what modules define stays, and to look
    through all of JAX's objects for nothing takes longer than the imports.
    """
    import gc
    import importlib

    collects = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(module)
    finally:
        if collects:
            gc.enable()


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
