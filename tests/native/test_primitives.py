"""Each primitive in native code beside JAX: numbers of all kinds, both precisions, any lanes.

XLA on processors takes numbers below the smallest normal one for zero, in operands and results;
native code computes with them, as IEEE 754 and NumPy do. So exact operations are compared with XLA
where no such number occurs, and with NumPy where they do. Elementary functions are compared with
NumPy: XLA's exp2, sinh and cosh are wrong by up to 400 units in the last place.
"""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from scipy import special

from native_kernels import by_jax, natively, same_bits, ulps

AWAY, EVEN = lax.RoundingMethod.AWAY_FROM_ZERO, lax.RoundingMethod.TO_NEAREST_EVEN
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")

OF_ONE_FLOAT = {
    "neg": lax.neg, "abs": lax.abs, "sign": lax.sign, "floor": lax.floor, "ceil": lax.ceil,
    "round": lambda x: lax.round(x, AWAY), "round_even": lambda x: lax.round(x, EVEN),
    "sqrt": lax.sqrt, "rsqrt": lax.rsqrt, "square": lax.square, "is_finite": lax.is_finite,
    "integer_pow": lambda x: lax.integer_pow(x, 3), "inverse": lambda x: lax.integer_pow(x, -2),
    "to_the_0": lambda x: lax.integer_pow(x, 0), "copy": jnp.copy,
    "reduce_precision": lambda x: lax.reduce_precision(x, *PRECISIONS[x.dtype.name]),
    "bitcast_convert_type": lambda x: lax.bitcast_convert_type(x, f"int{8 * x.dtype.itemsize}"),
}  # fmt: skip
PRECISIONS = {"float64": (11, 52), "float32": (8, 23)}
OF_TWO_FLOATS = {
    "add": lax.add, "sub": lax.sub, "mul": lax.mul, "div": lax.div, "rem": lax.rem,
    "max": lax.max, "min": lax.min, "eq": lax.eq, "ne": lax.ne, "lt": lax.lt, "le": lax.le,
    "gt": lax.gt, "ge": lax.ge, "select_n": lambda x, y: lax.select_n(x < y, x, y),
    "clamp": lambda x, y: lax.clamp(x, y, x + 1), "add_any": jax.interpreters.ad.add_jaxvals,
}  # fmt: skip
ELEMENTARY = {
    **{name: (getattr(lax, name), getattr(np, name)) for name in (
        "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log", "log1p", "cbrt",
    )},
    **{name: (getattr(lax, name), getattr(np, name.replace("a", "arc", 1))) for name in (
        "asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2",
    )},
    "logistic": (lax.logistic, lambda x: np.where(x < -40, np.exp(x), 1 / (1 + np.exp(-x)))),
    "pow": (lax.pow, np.power),
    "erf": (lax.erf, special.erf),
    "erfc": (lax.erfc, np.vectorize(math.erfc)),
    "erf_inv": (lax.erf_inv, special.erfinv),
}  # fmt: skip
OF_ONE_INTEGER = {
    "neg": lax.neg, "sign": lax.sign, "not": lax.bitwise_not,
    "integer_pow": lambda x: lax.integer_pow(x, 3),
    "abs": lambda x: x if x.dtype.kind == "u" else lax.abs(x),
}  # fmt: skip
OF_TWO_INTEGERS = {
    **{name: f for name, f in OF_TWO_FLOATS.items() if name != "clamp"},
    "and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor,
    "shift_left": lax.shift_left, "shift_right_logical": lax.shift_right_logical,
    "shift_right_arithmetic": lax.shift_right_arithmetic, "clamp": lambda x, y: lax.clamp(x, y, y),
}  # fmt: skip
OF_BOOLS = {
    "and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor, "max": lax.max,
    "min": lax.min, "eq": lax.eq, "ne": lax.ne, "lt": lax.lt, "ge": lax.ge,
    "not": lambda x, y: ~(x & y),
}  # fmt: skip


def all_of(functions):
    """One function with the results of all: one kernel, one program of XLA."""
    return lambda *x: [f(*x) for f in functions.values()]


def floats(dtype, denormal):
    """Numbers at the ends and kinks of the format."""
    info = np.finfo(dtype)
    small = [info.tiny, -info.tiny]
    if denormal:
        small += [info.smallest_subnormal, -5 * info.smallest_subnormal, info.tiny / 3]
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, -info.max, info.eps, 1 - info.epsneg]
    usual = [1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999, 3, -7, 1e5, 2.0**31, -(2.0**63), 1e22]
    return np.array(ends + usual + small, dtype)


def integers(dtype):
    info = np.iinfo(dtype)
    ends = [info.min, info.min + 1, info.max - 1, info.max, 0, 1, 2, 3, 7, 8, 31, 63]
    return np.array(ends + ([-1, -2, -7] if info.min else [64, 100]), dtype)


def pairs(values, rng):
    """All pairs, in members of three elements; the last member may be left out."""
    a, b = map(np.array, zip(*itertools.product(values, values), strict=True))
    order = rng.permutation(len(a) // 3 * 3)
    return a[order].reshape(-1, 3), b[order].reshape(-1, 3)


def usual(dtype, rng):
    """Random numbers of many magnitudes; huge angles among them."""
    return (rng.normal(size=300) * 10.0 ** rng.integers(-9, 9, 300)).astype(dtype)


def alike(mine, reference, normal=None):
    """Same bits; with `normal`, only where the reference is no result that XLA made zero."""
    if normal is None:
        return same_bits(mine, reference)
    if mine.dtype.kind == "f":
        tiny = np.finfo(mine.dtype).tiny
        normal = normal & ~((np.abs(mine) <= tiny) & (reference == 0))
    return same_bits(mine[normal], reference[normal])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_exact_operations_on_floats_have_the_bits_of_xla(dtype):
    rng = np.random.default_rng(1)
    a, b = pairs(floats(dtype, denormal=False), rng)
    for functions, args in ((OF_ONE_FLOAT, (a,)), (OF_TWO_FLOATS, (a, b))):
        function = all_of(functions)
        results = zip(functions, natively(function, *args), by_jax(function, *args), strict=True)
        for name, mine, reference in results:
            if name == "rsqrt":  # XLA's own is a unit away from 1/sqrt(x) here and there
                assert np.max(ulps(mine, reference)) <= 1
            else:
                normal = np.ones(mine.shape, bool)
                assert alike(mine, reference, normal), name


NUMPY_OF_TWO = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "rem": np.fmod,
    "max": np.maximum, "min": np.minimum, "eq": np.equal, "ne": np.not_equal, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
NUMPY_OF_ONE = {
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "floor": np.floor, "ceil": np.ceil,
    "round_even": np.rint, "sqrt": np.sqrt, "square": np.square, "is_finite": np.isfinite,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_denormal_numbers_are_computed_with_as_ieee_754_says(dtype):
    a, b = pairs(floats(dtype, denormal=True), np.random.default_rng(2))
    for table, reference, args in (
        (OF_ONE_FLOAT, NUMPY_OF_ONE, (a,)),
        (OF_TWO_FLOATS, NUMPY_OF_TWO, (a, b)),
    ):
        found = natively(all_of({name: table[name] for name in reference}), *args)
        with np.errstate(all="ignore"):
            for name, mine in zip(reference, found, strict=True):
                wanted = reference[name](*args)
                if name in ("max", "min"):  # NumPy takes either zero of two
                    mine, wanted = mine + 0, wanted + 0
                elif name == "sign":  # NumPy's loses the sign of a zero
                    wanted = np.where(a == 0, a, wanted)
                assert same_bits(mine, wanted), name


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_elementary_functions_are_those_of_numpy_within_its_own_error(dtype):
    rng = np.random.default_rng(3)
    a, b = pairs(floats(dtype, denormal=True), rng)
    x = usual(dtype, rng).reshape(-1, 3)
    a, b = np.concatenate([a, x]), np.concatenate([b, x[::-1]])
    two = ("atan2", "pow")
    for names, args in (([n for n in ELEMENTARY if n not in two], (a,)), (two, (a, b))):
        found = natively(all_of({name: ELEMENTARY[name][0] for name in names}), *args)
        with np.errstate(all="ignore"):
            for name, mine in zip(names, found, strict=True):
                wide = [np.asarray(x, np.float64) for x in args]
                wanted = ELEMENTARY[name][1](*wide).astype(dtype)
                if name != "erf_inv":  # SciPy's loses the sign of a zero
                    assert np.all((np.signbit(mine) == np.signbit(wanted)) | np.isnan(wanted)), name
                far = ulps(mine, wanted)
                # NumPy's own functions are a few units away, libm's erfc more; logistic adds and
                # divides besides. The errors themselves are tested in `elementary`.
                bad = far > (8 if name == "erfc" else 4)
                assert not bad.any(), (name, args[0][bad], mine[bad], wanted[bad])


@pytest.mark.small("int8", "uint64")
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64"])
def test_operations_on_integers_have_the_bits_of_xla(dtype):
    a, b = pairs(integers(dtype), np.random.default_rng(4))
    for functions, args in ((OF_ONE_INTEGER, (a,)), (OF_TWO_INTEGERS, (a, b))):
        function = all_of(functions)
        results = zip(functions, natively(function, *args), by_jax(function, *args), strict=True)
        for name, mine, reference in results:
            assert alike(mine, reference), name


def test_operations_on_truth_values_have_the_bits_of_xla():
    a, b = pairs([False, True, True], np.random.default_rng(5))
    function = all_of(OF_BOOLS)
    for name, mine, reference in zip(
        OF_BOOLS, natively(function, a, b), by_jax(function, a, b), strict=True
    ):
        assert alike(mine, reference), name


@pytest.mark.small("float64")
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_code_that_is_there_sooner_has_the_same_bits(dtype, monkeypatch):
    """All other tests of operations may then compile quickly."""
    is_float = dtype.startswith("f")
    a, b = pairs(
        floats(dtype, denormal=True) if is_float else integers(dtype), np.random.default_rng(7)
    )
    one, two = (OF_ONE_FLOAT, OF_TWO_FLOATS) if is_float else (OF_ONE_INTEGER, OF_TWO_INTEGERS)
    if is_float:
        of_two = ("atan2", "pow")
        one = {**one, **{n: f for n, (f, _) in ELEMENTARY.items() if n not in of_two}}
        two = {**two, **{n: ELEMENTARY[n][0] for n in of_two}}

    def everything(x, y):
        return [*all_of(one)(x), *all_of(two)(x, y)]

    found = []
    for level in "01":
        monkeypatch.setenv("MIME_NATIVE_OPTIMISE", level)
        found.append(natively(everything, a, b, singles=1))
    for name, quick, usual_ in zip([*one, *two], *found, strict=True):
        assert same_bits(quick, usual_), name


@pytest.mark.small("float64", "bool", "int32", "uint64")
@pytest.mark.parametrize("source", ["float64", "float32", "bool", *INTEGERS])
def test_conversions_have_the_bits_of_xla(source):
    if source == "bool":
        x = np.array([[True, False]] * 5)
    else:
        kind = floats(source, denormal=False) if source.startswith("f") else integers(source)
        x = np.tile(kind[: len(kind) // 2 * 2].reshape(-1, 2), (1, 1))
    targets = [t for t in ("float64", "float32", "bool", *INTEGERS) if t != source]

    def converted(x):
        return [lax.convert_element_type(x, t) for t in targets]

    # As numbers of the program, and as values that are known only when it runs.
    constant = natively(lambda y: [c + y.astype(c.dtype) for c in converted(jnp.asarray(x))],
                        np.zeros(3, np.int8))  # fmt: skip
    results = zip(targets, natively(converted, x), constant, by_jax(converted, x), strict=True)
    for target, mine, folded, reference in results:
        normal = np.ones(x.shape, bool)
        assert alike(mine, reference, normal), target
        if target != "bool":
            assert alike(folded[0] + 0, mine + 0, None), target


@pytest.mark.small("float64-shared0", "uint64-shared1")
@pytest.mark.parametrize("shared", [(True, False), (False, True)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint64"])
def test_an_operand_that_all_members_share_changes_no_bit(dtype, shared):
    rng = np.random.default_rng(6)
    kind = floats(dtype, denormal=True) if dtype.startswith("f") else integers(dtype)
    a, b = pairs(kind, rng)
    functions = OF_TWO_FLOATS if dtype.startswith("f") else OF_TWO_INTEGERS
    if dtype.startswith("f"):
        functions = {**functions, "pow": lax.pow, "atan2": lax.atan2}
    one = b[7] if shared[1] else a[7]
    args = (one, b) if shared[0] else (a, one)
    full = [np.broadcast_to(x, a.shape).copy() for x in args]
    function = all_of(functions)
    for name, some, all_ in zip(
        functions, natively(function, *args, shared=shared), natively(function, *full), strict=True
    ):
        assert same_bits(some, all_), name


@pytest.mark.small("float64")
@pytest.mark.parametrize("dtype", ["float64", "float32", "uint32"])
def test_a_constant_operand_gives_the_number_that_a_variable_gives(dtype):
    """The compiler knows that x·1 = x, 0·x = 0, x + 0 = x: zeros may lose their sign, and a NaN or
    an infinity times a constant zero is zero.
    """
    if dtype.startswith("f"):
        a, functions = floats(dtype, denormal=True), OF_TWO_FLOATS
        constants = np.array([0.0, 1.0, -2.5, -np.inf, np.nan], dtype)
    else:
        a, functions = integers(dtype), OF_TWO_INTEGERS
        constants = a[[0, 3, 4, 5]]
    names = [n for n in functions if n not in ("add_any", "clamp")]

    def with_variables(x, *given):
        return [r for n in names for c in given for r in (functions[n](x, c), functions[n](c, x))]

    fixed = natively(lambda x: with_variables(x, *map(np.asarray, constants)), a, singles=1)
    shared = [False, *(True for _ in constants)]
    free = natively(with_variables, a, *map(np.asarray, constants), shared=shared, singles=1)
    cases = [(n, c) for n in names for c in constants for _ in range(2)]
    for (name, c), mine, wanted in zip(cases, fixed, free, strict=True):
        if mine.dtype.kind == "f":
            mine, wanted = mine + 0, wanted + 0
            if name == "mul" and c == 0:
                wanted = np.zeros_like(wanted)
        assert same_bits(mine, wanted), (name, c, a[mine != wanted], mine[mine != wanted])
