"""The site in HTML, by a builder of others."""

import os
import subprocess
import sys
from pathlib import Path

from website.source import write

BUILDERS = ("zensical", "mkdocs")


class BuildError(RuntimeError):
    """The builder refused; its words."""


def build(folder: Path, builder: str = BUILDERS[0]) -> Path:
    """Write the sources into `folder` and build them, strictly; gives the folder of the HTML."""
    settings = write(folder)
    command = [sys.executable, "-m", builder, "build", "--strict", "-f", str(settings)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, env=quiet, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"{builder}:\n{done.stdout}{done.stderr}")
    return folder / "site"
