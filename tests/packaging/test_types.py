"""The types that MIME ships: `make lint` holds a script against them, and it runs as typed."""

import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = "tests/packaging/typed_script.py"


def test_a_script_with_plain_numbers_runs_and_a_misspelt_argument_does_not(capsys):
    with pytest.raises(TypeError, match="unexpected keyword argument 'evry'"):
        runpy.run_path(str(ROOT / SCRIPT))
    assert capsys.readouterr().out.endswith("(1000,)\n")


def test_the_strict_checker_reads_that_script_and_finds_the_error_that_it_expects():
    """mypy itself does the work in `make lint`: here only that it is asked to."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    assert settings["strict"]  # an expected error that is not there is one, too
    assert SCRIPT in settings["files"]
    assert (ROOT / SCRIPT).read_text(encoding="utf-8").count("# type: ignore[call-arg]") == 1
