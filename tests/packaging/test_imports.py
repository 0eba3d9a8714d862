"""What the first second is spent on: nothing is imported before it is needed."""

import subprocess
import sys

import pytest

import mime

HEAVY = {"jax", "numpy", "equinox", "matplotlib", "xarray", "pydantic", "rich", "tyro"}


def loaded_by(code):
    """Which of the heavy packages a fresh interpreter has after running the code."""
    script = f"{code}\nimport sys\nprint(*({HEAVY!r} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stderr.split())


def after(*words):
    return loaded_by(
        "import contextlib\nfrom mime.cli import main\n"
        f"with contextlib.suppress(SystemExit): main({list(words)!r})"
    )


def test_import_mime_alone_loads_nothing_else():
    assert loaded_by("import mime") == set()


def test_the_version_is_told_without_any_other_package():
    assert after("--version") == set()


@pytest.mark.parametrize("words", [["--help"], ["completion", "zsh"], ["cache"]])
def test_commands_that_compute_nothing_load_the_parser_only(words):
    assert after(*words) == {"tyro"}


def test_a_list_of_scenarios_needs_no_jax():
    assert after("list", "scenarios") == {"tyro", "rich"}


def test_the_names_of_mime_load_no_plots_and_no_files():
    assert loaded_by("from mime import *") == {"jax", "numpy", "equinox"}


def test_every_public_name_is_found_listed_and_the_same_each_time():
    for name in mime.__all__:
        assert getattr(mime, name) is getattr(mime, name)
        assert name in dir(mime)
    assert sorted(name for names in mime._HOMES.values() for name in names) == mime.__all__
    with pytest.raises(AttributeError, match="no attribute 'Motor'"):
        _ = mime.Motor
