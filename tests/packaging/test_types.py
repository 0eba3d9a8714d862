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
module = "script" # as strict as a user's checker can be
warn_return_any = true
disallow_any_generics = true
disallow_untyped_calls = true
enable_error_code = ["misc"]
"""


def check(script, folder):
    """mypy on a script, with what `make lint` has already read of MIME and of JAX."""
    file, settings = folder / "script.py", folder / "pyproject.toml"
    file.write_text(script, encoding="utf-8")
    mine = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    settings.write_text(mine + STRICT, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(settings), str(file)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": "src"},
    )


def test_a_script_with_plain_numbers_is_well_typed_and_a_misspelt_argument_is_not(tmp_path):
    good = check(SCRIPT, tmp_path)
    assert good.returncode == 0, good.stdout
    wrong = check(SCRIPT.replace("every=10", "evry=10"), tmp_path)
    assert 'Unexpected keyword argument "evry"' in wrong.stdout
