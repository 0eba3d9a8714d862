"""The types that MIME ships: a strict checker accepts a right script and refuses a wrong one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # the checker reads all of MIME and of JAX
SCRIPT = """
from mime import Gear, GraphManager, MotorNode

motor = MotorNode("motor", 1e-4, 1e-4, 0.05, 1.0, 1e-3, 5e-4, gear=Gear(ratio=20.0))
graph = GraphManager()
graph.add_node(motor)
run = graph.compile().run(1.0, {"motor": {"commanded_voltage": 5.0}}, every=10)
print(run["motor"]["current"][-1], run.time.shape)
"""


ROOT = Path(__file__).parents[2]
STRICT = """
[[tool.mypy.overrides]]
module = ["right", "wrong"] # as strict as a user's checker can be
warn_return_any = true
disallow_any_generics = true
disallow_untyped_calls = true
enable_error_code = ["misc"]
"""


def check(folder, **scripts):
    """mypy on scripts, with what `make lint` has already read of MIME and of JAX."""
    files, settings = [folder / f"{name}.py" for name in scripts], folder / "pyproject.toml"
    for file, script in zip(files, scripts.values(), strict=True):
        file.write_text(script, encoding="utf-8")
    mine = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    settings.write_text(mine + STRICT, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(settings), *map(str, files)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": "src"},
    )


def test_a_script_with_plain_numbers_is_well_typed_and_a_misspelt_argument_is_not(tmp_path):
    done = check(tmp_path, right=SCRIPT, wrong=SCRIPT.replace("every=10", "evry=10"))
    assert 'Unexpected keyword argument "evry"' in done.stdout
    assert "right.py" not in done.stdout, done.stdout
    assert "Found 1 error in 1 file (checked 2 source files)" in done.stdout
