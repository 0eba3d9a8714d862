"""Elementary functions of lanes: errors, exceptions, and the same bits in every lane."""

import platform
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from llvmlite import ir

from elementary_functions import (
    TWO_ARGUMENTS,
    arguments,
    compiled,
    denormals_are_zero,
    engine,
    largest_error,
    target,
)
from mime.native import elementary
from mime.native.elementary import NAMES, coefficients, define

TOOLS = Path(__file__).parents[3] / "tools"
COUNT = 4000
"""Arguments of each kind; `python tests/elementary_functions.py` takes a hundred times as many."""
extended = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="here NumPy has no numbers longer than 64 bits"
)


def stated_errors(name, bits, fma):
    """What the table in the package's docstring says, in units in the last place."""
    row = re.search(rf"^ *{name} +(.*)$", elementary.__doc__, re.MULTILINE)
    return float(row[1].split()[2 * (bits == 32) + (not fma)])


@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("bits", [pytest.param(64, marks=extended), 32])
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_at_most_those_that_the_docstring_states(name, bits, fma):
    error, where = largest_error(name, bits, fma, COUNT)
    assert error <= stated_errors(name, bits, fma), where


def mixed(name, bits):
    """Arguments of all kinds side by side: usual, huge, special ones."""
    sets = arguments(name, bits, 240)
    order = np.random.default_rng(1).permutation(240 * len(sets))
    return [np.concatenate(parts)[order] for parts in zip(*sets, strict=True)]


def same_bits(a, b):
    """Any NaN is as good as any other: LLVM says nothing of its sign and payload."""
    a, b = (np.where(np.isnan(x), np.nan, x) for x in (a, b))
    return a.tobytes() == b.tobytes()


@pytest.mark.parametrize("bits", [64, 32])
@pytest.mark.parametrize("name", NAMES)
def test_a_lane_has_the_same_bits_whatever_its_neighbours(name, bits):
    inputs = mixed(name, bits)
    function = compiled(name, 4, bits)
    alone = np.asarray(function(*(np.repeat(x, 4) for x in inputs)))
    assert same_bits(function(*inputs), alone[..., ::4])


SOME = ("sincos", "atan2", "exp", "log1p", "rem")
"""For the second precision, which differs in constants alone: each costs time to compile."""


@pytest.mark.small("64-names0-1", "32-names1-8")
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize(("bits", "names"), [(64, NAMES), (32, SOME)])
def test_any_number_of_lanes_gives_the_same_bits(bits, names, lanes):
    for name in names:
        inputs = mixed(name, bits)
        wide = compiled(name, lanes, bits, names=names)(*inputs)
        assert same_bits(wide, compiled(name, 4, bits)(*inputs)), name


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="a register of x86")
@pytest.mark.parametrize("bits", [64, 32])
def test_where_denormals_are_zero_other_numbers_keep_their_bits(bits):
    least = np.finfo(f"float{bits}").tiny
    for name in [
        n for n in NAMES if n != "atan2"
    ]:  # one unit in the last place, beside the least number
        inputs = [np.where(np.abs(x) < least, 0.0, x) for x in mixed(name, bits)]
        function = compiled(name, 4, bits)
        usual = np.asarray(function(*inputs))
        with denormals_are_zero():
            flushed = function(*inputs)
        assert same_bits(
            np.where(np.abs(usual) < least, np.copysign(0.0, usual), usual), flushed
        ), name


def test_sincos_has_the_bits_of_sin_and_of_cos():
    inputs = mixed("sincos", 64)
    assert same_bits(compiled("sincos")(*inputs), [compiled(n)(*inputs) for n in ("sin", "cos")])


@pytest.mark.parametrize("plain", [False, True])
def test_the_code_calls_no_library_on_this_processor_or_the_least_of_its_kind(plain):
    _, module = engine(4, 64, not plain, NAMES)
    assembly = target(plain).emit_assembly(module)
    called = re.findall(r"(?:movabsq\s+\$|\b(?:call\w*|bl)\s+)([a-z][\w.]*)", assembly)
    assert "mime.long_division.64" in called
    assert all(name.startswith("mime.") for name in called), set(called)
    assert not plain or "vfmadd" not in assembly


def test_a_function_is_built_once_in_a_module_and_only_the_module_sees_it():
    module = ir.Module()
    first = define(module, "atan2", 4, 64)
    assert define(module, "atan2", 4, 64) is first
    assert first.linkage == "internal"
    assert str(first.args[0].type) == str(first.args[1].type) == "<4 x double>"
    assert define(module, "atan2", 4, 64, fma=False) is not first


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(KeyError, match=r"besselj.*sin.*cos"):
        define(ir.Module(), "besselj", 4, 64)


CASES = [
    ("pow", (0.0, 0.0), 1.0), ("pow", (np.nan, 0.0), 1.0), ("pow", (1.0, np.nan), 1.0),
    ("pow", (-1.0, np.inf), 1.0), ("pow", (-0.0, -3.0), -np.inf), ("pow", (-0.0, -2.0), np.inf),
    ("pow", (-np.inf, 3.0), -np.inf), ("pow", (-np.inf, -3.0), -0.0),
    ("pow", (-8.0, 0.3), np.nan),
    ("pow", (-2.0, 3.0), -8.0), ("pow", (-np.inf, 0.5), np.inf), ("pow", (0.5, np.inf), 0.0),
    ("atan2", (-0.0, -1.0), -np.pi), ("atan2", (0.0, -0.0), np.pi), ("atan2", (-0.0, 0.0), -0.0),
    ("atan2", (np.inf, -np.inf), 3 * np.pi / 4), ("atan2", (np.nan, np.inf), np.nan),
    ("rem", (-6.0, 4.0), -2.0), ("rem", (-4.0, 2.0), -0.0), ("rem", (1.0, 0.0), np.nan),
    ("rem", (5.0, -np.inf), 5.0), ("rem", (np.inf, 2.0), np.nan), ("rem", (1e308, 5e-324), 0.0),
    ("log", (-0.0,), -np.inf), ("log", (-1.0,), np.nan), ("log1p", (-1.0,), -np.inf),
    ("log1p", (-0.0,), -0.0), ("expm1", (-0.0,), -0.0), ("expm1", (-np.inf,), -1.0),
    ("sin", (np.inf,), np.nan), ("sin", (-0.0,), -0.0), ("tanh", (-np.inf,), -1.0),
    ("acosh", (0.5,), np.nan), ("atanh", (-1.0,), -np.inf), ("cbrt", (-np.inf,), -np.inf),
    ("exp", (-np.inf,), 0.0), ("logistic", (-np.inf,), 0.0), ("asin", (1.5,), np.nan),
]  # fmt: skip


@pytest.mark.parametrize("bits", [64, 32])
@pytest.mark.parametrize(("name", "inputs", "wanted"), CASES)
def test_exceptions_are_those_of_c99(name, inputs, wanted, bits):
    with np.errstate(over="ignore"):
        got = compiled(name, 4, bits)(*(np.full(4, x) for x in inputs))[0]
    if bits == 32 and inputs == (1e308, 5e-324):
        wanted = np.nan  # as numbers of 32 bits these are infinity and zero
    np.testing.assert_array_equal(got, got.dtype.type(wanted))
    assert np.isnan(wanted) or np.signbit(got) == np.signbit(wanted)


def test_constants_are_those_that_the_tool_derives(monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    import elementary_coefficients as tool

    monkeypatch.delitem(sys.modules, "elementary_coefficients")
    for name, bits in (("SIN", 64), ("EXP", 32), ("LOG", 64)):
        derived = tuple(tool.digits(c, tool.DIGITS[bits]) for c in tool.polynomial(name, bits))
        assert getattr(coefficients, name)[bits] == derived
    assert tool.two_over_pi(tool.TWO_OVER_PI_BITS) == coefficients.TWO_OVER_PI


def test_names_say_which_functions_take_two_arguments():
    module = ir.Module()
    for name in NAMES:
        assert len(define(module, name, 1, 64).args) == 1 + (name in TWO_ARGUMENTS)
