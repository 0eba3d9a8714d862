"""Strict JAX for all tests: double precision, and no silent rank promotion."""

import os
from pathlib import Path

import jax
import pytest
from jaxtyping import install_import_hook

from compiling import QUICK

SOURCES = Path(__file__).parents[1] / "src"
WITH_SHAPES = ["mime.nodes"] + [
    ".".join(path.relative_to(SOURCES).with_suffix("").parts)
    for path in sorted(SOURCES.rglob("*.py"))
    if "from jaxtyping import" in path.read_text("utf8")
]
"""The modules whose signatures and fields name shapes. Other types are mypy's: to check those at
each call of the compiler of native code took longer than the tests themselves."""
install_import_hook(WITH_SHAPES, "beartype.beartype")

os.environ.setdefault("MIME_NATIVE", "strict")  # a slip of the compiler fails a test
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")


def start_quick_xla():
    """XLA compiles several times as fast in the processes of the tests, and optimizes less.

    Its own optimizer is not what is tested here. Programs that tests start (`mime` in a process of
    its own) do not inherit this: they are compiled as users have them, and so are those of
    `make verify`, `make demo` and `make bench`.
    """
    import mime  # noqa: F401  (it adds its own option, and JAX must not have started)

    own = os.environ["XLA_FLAGS"]
    options = " ".join(f"--{name}={value}" for name, value in QUICK.items())
    os.environ["XLA_FLAGS"] = f"{own} {options}"
    jax.block_until_ready(jax.numpy.zeros(1) + 1)  # from now on XLA has read its options
    os.environ["XLA_FLAGS"] = own
    if folder := jax.config.jax_compilation_cache_dir:  # not among the programs of users
        jax.config.update("jax_compilation_cache_dir", os.path.join(folder, "quick"))


def pytest_configure(config):
    """A warning that nobody expects is a failure. (Here, since an ini entry would import mime.)"""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        start_quick_xla()  # not where the workers are started: nothing is computed there
    for name in ("ConvergenceWarning", "DivergenceWarning", "LimitWarning"):
        config.addinivalue_line("filterwarnings", f"error::mime.{name}")


SLOW_FOLDERS = ("oracles", "verification")
"""Comparisons with other simulators, and every benchmark of `mime verify`, twice."""


def pytest_collection_modifyitems(items):
    """First what shares the longest run, MIME-VER-170's: so one worker does, and computes it once.

    (Each worker begins with a contiguous part of the list.)
    """
    for item in items:
        if item.path.parent.name in SLOW_FOLDERS:
            item.add_marker("slow")
    shared = ("mouse/test_mouse.py::", "[MIME-VER-170]")
    items.sort(key=lambda item: not any(name in item.nodeid for name in shared))


@pytest.fixture(params=["float64", "float32"])
def precision(request):
    """Run a test in both precisions; its value is the dtype's name."""
    with jax.enable_x64(request.param == "float64"):
        yield request.param


@pytest.fixture
def record_figure(record_property):
    """Keep a measured figure with the test's report, as plain numbers (workers send no NumPy)."""

    def record(name, value):
        record_property(name, value.tolist() if hasattr(value, "tolist") else value)

    return record
