"""Fits to the logs of real machines, MIME's beside the same models by SciPy.

    python benchmarks/fit_real_logs.py xl330 FOLDER

FOLDER has the logs, which are not part of the project. A benchmark is a module of `real_logs` with
a function `main(folder)`, which prints its table.
"""

import argparse
import importlib
import pkgutil
from pathlib import Path

import real_logs


def main() -> None:
    """Run the benchmark that the command line names."""
    names = sorted(module.name for module in pkgutil.iter_modules(real_logs.__path__))
    modules = {name: importlib.import_module(f"real_logs.{name}") for name in names}
    known = {name: module for name, module in modules.items() if hasattr(module, "main")}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("machine", choices=known)
    parser.add_argument("folder", type=Path, help="where the logs are")
    given = parser.parse_args()
    known[given.machine].main(given.folder)


if __name__ == "__main__":
    main()
