"""Install each peer of the `bench` extra by itself: one that fails stops none of the others.

The reasons of those that failed are kept in the environment, for the results to tell.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    failed = {}
    for requirement in project["optional-dependencies"]["bench"]:
        name = requirement.partition(">")[0]
        command = [*pip, "-c", str(ROOT / "constraints.txt"), requirement]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            errors = [x for x in done.stderr.splitlines() if x.startswith("ERROR")]
            failed[name] = (errors or ["pip failed"])[0].removeprefix("ERROR: ")[:200]
        print(f"{name:<22}{failed.get(name, 'installed')}", flush=True)
    (Path(sys.prefix) / "peers_failed.json").write_text(json.dumps(failed))


if __name__ == "__main__":
    main()
