"""The subcommands of `mime`, one per file. Each returns its exit code."""

OK, FAILED, MISTAKE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141
"""All well; a run that failed; a user's mistake; Ctrl-C; a reader of the output that left."""


class UserMistakeError(ValueError):
    """Something that the user can put right; its message says how."""


class RunFailedError(RuntimeError):
    """A run that ended badly, or whose results could not be written."""
