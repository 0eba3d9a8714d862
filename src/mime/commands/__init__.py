"""The subcommands of `mime`, one a file. Each returns its exit code."""
