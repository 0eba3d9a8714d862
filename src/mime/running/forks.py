"""A process that was forked after JAX had started: its threads are not there, and it may wait for
them for ever.
"""

import os

from mime._text import warn_user


class ForkWarning(RuntimeWarning):
    """A simulation runs in a process that was forked from one that had run some."""


_forked = False


def warn_if_forked() -> None:
    """Warn, once per process, before the first run in a forked process."""
    global _forked
    if _forked:
        _forked = False
        warn_user(
            ForkWarning(
                "this process was forked from one in which JAX had started threads, which a fork "
                "does not copy: it may hang. Start worker processes with "
                "multiprocessing.get_context('spawn') instead"
            )
        )


def _note_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):  # this module is imported with JAX, when a graph is
    os.register_at_fork(after_in_child=_note_fork)
