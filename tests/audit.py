"""What a piece of code does beyond computing: files that it opens, processes that it starts."""

import contextlib
import sys
from collections.abc import Iterator

_WATCHED = ("open", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect")
_seen: list[tuple[str, str]] | None = None


def _watch(event: str, arguments: tuple) -> None:
    if _seen is not None and event in _WATCHED:
        name = str(arguments[0]) if arguments else ""
        if not name.endswith((".py", ".pyc", ".so")):  # a module that is imported late
            _seen.append((event, name))


sys.addaudithook(_watch)  # there is no way to take one off again


@contextlib.contextmanager
def events() -> Iterator[list[tuple[str, str]]]:
    """Events of the body, each with its first argument; imports of modules left out."""
    global _seen
    _seen = []
    try:
        yield _seen
    finally:
        _seen = None
