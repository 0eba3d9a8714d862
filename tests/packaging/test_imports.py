"""What the first second is spent on: nothing is imported before it is needed."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import mime
import mime.mouse
import mime.nodes

STUB = Path(mime.__file__).with_suffix(".pyi")
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


@pytest.mark.small("words0")
@pytest.mark.parametrize("words", [["--help"], ["completion", "zsh"], ["cache"]])
def test_commands_that_compute_nothing_load_the_parser_only(words):
    assert after(*words) == {"tyro"}


def test_a_list_of_scenarios_needs_no_jax():
    assert after("list", "scenarios") == {"tyro", "rich"}


def test_all_names_and_a_result_file_load_no_plots_no_datasets_and_no_command_line(tmp_path):
    """xarray loads pandas, and Dask where it is installed: more than a short run takes."""
    code = f"""from mime import *
import numpy
one = {{"a": {{"x": "m"}}}}
run = Trajectory(numpy.arange(3.0), {{"a": {{"x": numpy.ones(3)}}}}, one, one, {{}})
run.save({str(tmp_path / "run.nc")!r})
Trajectory.load({str(tmp_path / "run.nc")!r})
"""
    assert loaded_by(code) == {"jax", "numpy", "equinox", "pydantic"}


def test_every_public_name_is_found_listed_and_the_same_each_time():
    for name in mime.__all__:
        assert getattr(mime, name) is getattr(mime, name)
        assert name in dir(mime)
    with pytest.raises(AttributeError, match="no attribute 'Motor'"):
        _ = mime.Motor


def test_the_table_of_names_is_what_type_checkers_read():
    """In a stub only `import X as X` is public."""
    for entry in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(entry, ast.ImportFrom):
            assert [alias.asname for alias in entry.names] == [alias.name for alias in entry.names]


def test_a_name_is_defined_where_the_table_says():
    for name, home in mime._HOMES.items():
        defined = getattr(getattr(mime, name), "__module__", "")
        if defined.startswith("mime."):  # aliases of types belong to other packages
            assert defined.startswith(home), name


def test_every_node_is_a_public_name():
    for package in (mime.nodes, mime.mouse):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    found, classes = set(), [mime.Node]
    while classes:
        cls = classes.pop()
        classes += cls.__subclasses__()
        if cls.__module__.startswith("mime.") and "meta" in vars(cls):  # no class in between
            found.add(cls.__name__)
    assert {"MotorNode", "MouseBrainNode"} <= found <= {*mime.__all__, "Node"}
