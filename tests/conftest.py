"""Strict JAX for all tests: double precision, and no silent rank promotion."""

import gc
import os
import re
from pathlib import Path

import jax
import jaxtyping
import numpy as np
import pytest

from sizes import FULL, of_today, refuse_unknown_cases, sized

SOURCES = Path(__file__).parents[1] / "src"
WITH_SHAPES = ["mime.nodes"] + [
    ".".join(path.relative_to(SOURCES).with_suffix("").parts)
    for path in sorted(SOURCES.rglob("*.py"))
    if re.search(
        r"^from jaxtyping import|^from .*import .*\bScalar\b", path.read_text("utf8"), re.M
    )
]
"""The modules whose signatures and fields name shapes. Other types are mypy's: to check those at
each call of the compiler of native code took longer than the tests themselves."""
NAMES_SHAPES = re.compile(r"Array|Float|Int|Bool|Shaped|Num|Real|Inexact|PyTree|Key")


def where_shapes_are_named(*, typechecker, decorate=jaxtyping.jaxtyped):
    """`jaxtyped`, but of functions that name no shapes, and of those that are made anew at each
    call of another while nothing is checked: to wrap them takes longer than to trace them."""

    def decorated(thing):
        named = getattr(thing, "__annotations__", None)
        inner = "<locals>" in getattr(thing, "__qualname__", "")
        if not isinstance(thing, type) and (
            (inner and jaxtyping.config.jaxtyping_disable)
            or (named is not None and not NAMES_SHAPES.search(str(named)))
        ):
            return thing
        return decorate(thing, typechecker=typechecker)

    return decorated


jaxtyping.jaxtyped = where_shapes_are_named  # what the hook writes above each function
jaxtyping.install_import_hook(WITH_SHAPES, "beartype.beartype")

# Threads of a small product wait for each other longer than it takes, and that is counted.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MIME_NATIVE", "strict")  # a slip of the compiler fails a test
if not FULL:  # XLA's older emitter of loops takes a tenth off all tests; `make soak` has the users'
    older = "--xla_cpu_use_fusion_emitters=false"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {older}".strip()
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_include_full_tracebacks_in_locations", False)  # programs are lowered sooner
jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)  # or writing takes longer


def pytest_configure(config):
    """A warning that nobody expects is a failure. (Here, since an ini entry would import mime.)"""
    for name in ("ConvergenceWarning", "DivergenceWarning", "LimitWarning"):
        config.addinivalue_line("filterwarnings", f"error::mime.{name}")


OPTIMISED = {
    "mime.native": {
        *("elementary", "test_scenarios.py", "test_blocks.py"),
        *("test_machine.py", "test_random_programs.py"),
    },
    "XLA": {"xla", "documentation", "verification", "test_scenarios.py"},
}
"""Here machine code is optimised as it is for users, and everywhere in `make soak`. Elsewhere it is
there sooner: `mime.native`'s has the same bits (an arm's in tests/native/test_machine.py, those of
each operation in test_primitives.py), and XLA's is the same program, operation by
operation. This takes a third off a test's time."""


SHAPES_CHECKED = sized(
    {"nodes", "control", "maze", "mouse", "test_shapes.py"},
    small={
        *("test_shapes.py", "test_validated_ranges.py", "test_brain.py", "test_dynamics.py"),
        *("test_joint_limits.py", "test_maze.py", "test_tracking.py"),
    },
)
"""Here shapes are checked at each call, where the functions that name them have tests of their own.
A program takes more than twice as long to trace so."""

gc.set_threshold(100_000, 50, 100)
"""Tracing makes millions of objects that are needed: to look through them all the time finds none
to free."""


def pytest_collection_finish():
    """What is loaded by now stays: the collector need not look at it again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish():
    """Nothing is collected at the end: it takes seconds, and workers are interrupted in it."""
    gc.freeze()
    gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Before any fixture, also of a module."""
    unchecked = SHAPES_CHECKED.isdisjoint(item.path.parts)
    jaxtyping.config.update("jaxtyping_disable", unchecked)
    optimised = {
        compiler: not folders.isdisjoint(item.path.parts) for compiler, folders in OPTIMISED.items()
    }
    as_for_users = optimised["mime.native"] or FULL
    os.environ["MIME_NATIVE_OPTIMISE"] = "1" if as_for_users else "0"
    jax.config.update("jax_disable_most_optimizations", not optimised["XLA"])


SLOW_FOLDERS = ("oracles", "verification")
"""Comparisons with other simulators, and every benchmark of `mime verify`, twice."""


def pytest_collection_modifyitems(config, items):
    """Leave out what `make soak` alone runs; begin with the longest run that is shared, VER-170.

    So one worker does that, and computes it once: each begins with a contiguous part of the list.
    """
    if not any("::" in word for word in config.args):
        refuse_unknown_cases(items)
    items[:], left = of_today(items)
    config.hook.pytest_deselected(items=left)
    for item in items:
        if item.path.parent.name in SLOW_FOLDERS:
            item.add_marker("slow")
    shared = ("mouse/test_mouse.py::", "[MIME-VER-170]")
    forgets = "native/test_ffi.py::"  # all that JAX has traced and compiled: so it comes last
    items.sort(key=lambda i: (forgets in i.nodeid) - any(name in i.nodeid for name in shared))


@pytest.fixture(params=["float64", "float32"])
def precision(request):
    """Run a test in both precisions; its value is the dtype's name."""
    with jax.enable_x64(request.param == "float64"):
        yield request.param


@pytest.fixture
def record_figure(record_property):
    """Keep a measured figure with the test's report, as plain numbers (workers send no NumPy)."""

    def record(name, value):
        record_property(name, np.asarray(value).tolist())

    return record
