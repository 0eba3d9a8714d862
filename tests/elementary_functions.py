"""Functions of `mime.native.elementary` compiled over arrays, and their largest errors.

    PYTHONPATH=src python tests/elementary_functions.py [name ...]

measures with many samples, and prints the table that the package's docstring shows.
"""

import sys
import time
from contextlib import contextmanager
from ctypes import CFUNCTYPE, addressof, c_int64, c_uint32, c_void_p
from functools import cache

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from scipy import special

from mime.native.elementary import NAMES, define
from mime.native.elementary.coefficients import TWO_OVER_PI, TWO_OVER_PI_BITS

DTYPES = {64: np.float64, 32: np.float32}
UNSIGNED = {64: np.uint64, 32: np.uint32}
LONG = {64: np.longdouble, 32: np.float64}
"""What the right values are computed in: at least ten binary digits more."""
TWO_ARGUMENTS = ("atan2", "pow", "rem")


# -- compilation ------------------------------------------------------------


@cache
def target(plain=False):
    """This processor; `plain`: the least one of its kind."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = "" if plain else llvm.get_host_cpu_features().flatten()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu="" if plain else llvm.get_host_cpu_name(), features=features, opt=3
    )


def add_loop(module, name, function):
    """void name(count, in..., out...): the function over `count` vectors."""
    i64, vector = ir.IntType(64), function.args[0].type
    outputs = 2 if isinstance(function.function_type.return_type, ir.LiteralStructType) else 1
    pointers = [vector.as_pointer()] * (len(function.args) + outputs)
    result = ir.Function(module, ir.FunctionType(ir.VoidType(), [i64, *pointers]), name)
    entry, body, end = (result.append_basic_block(b) for b in ("entry", "body", "end"))
    b = ir.IRBuilder(entry)
    b.branch(body)
    b.position_at_end(body)
    i = b.phi(i64)
    i.add_incoming(i64(0), entry)
    count, *arrays = result.args
    sources, sinks = arrays[: len(function.args)], arrays[len(function.args) :]
    size = vector.element.get_abi_size(target().target_data)
    answer = b.call(function, [b.load(b.gep(a, [i]), align=size) for a in sources])
    parts = [b.extract_value(answer, j) for j in range(2)] if outputs == 2 else [answer]
    for part, sink in zip(parts, sinks, strict=True):
        b.store(part, b.gep(sink, [i]), align=size)
    following = b.add(i, i64(1))
    i.add_incoming(following, body)
    b.cbranch(b.icmp_signed("<", following, count), body, end)
    b.position_at_end(end)
    b.ret_void()


@cache
def engine(lanes, bits, fma, names):
    """All these functions compiled at once, and their module."""
    module = ir.Module()
    module.triple, module.data_layout = llvm.get_default_triple(), str(target().target_data)
    for name in names:
        add_loop(module, f"over_{name}", define(module, name, lanes, bits, fma=fma))
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    builder = llvm.create_pass_builder(target(), llvm.PipelineTuningOptions(speed_level=2))
    builder.getModulePassManager().run(parsed, builder)
    result = llvm.create_mcjit_compiler(parsed, target())
    result.finalize_object()
    return result, parsed


def compiled(name, lanes=4, bits=64, fma=True, names=NAMES):
    """Function of arrays, whose sizes are multiples of `lanes`; `raw` takes addresses."""
    code, _ = engine(lanes, bits, fma, names)
    outputs = 2 if name == "sincos" else 1
    inputs = 2 if name in TWO_ARGUMENTS else 1
    kind = CFUNCTYPE(None, c_int64, *[c_void_p] * (inputs + outputs))
    raw = kind(code.get_function_address(f"over_{name}"))

    def function(*arguments):
        arrays = [np.ascontiguousarray(a, DTYPES[bits]) for a in arguments]
        assert arrays[0].size % lanes == 0
        results = [np.empty_like(arrays[0]) for _ in range(outputs)]
        raw(arrays[0].size // lanes, *(a.ctypes.data for a in arrays + results))
        return results if outputs == 2 else results[0]

    function.raw = raw
    return function


@cache
def control_register():
    """Function that sets SSE's control register to the number at an address."""
    module = ir.Module()
    module.triple = llvm.get_default_triple()
    kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer()])
    load = ir.Function(module, kind, "llvm.x86.sse.ldmxcsr")
    function = ir.Function(module, kind, "set_register")
    b = ir.IRBuilder(function.append_basic_block())
    b.call(load, function.args)
    b.ret_void()
    code = llvm.create_mcjit_compiler(llvm.parse_assembly(str(module)), target())
    code.finalize_object()
    return code, CFUNCTYPE(None, c_void_p)(code.get_function_address("set_register"))


@contextmanager
def denormals_are_zero():
    """As XLA's threads have it, in which a kernel may run. x86 only."""
    usual, flushing = c_uint32(0x1F80), c_uint32(0x9FC0)
    _, set_register = control_register()
    set_register(addressof(flushing))
    try:
        yield
    finally:
        set_register(addressof(usual))


# -- arguments ------------------------------------------------------------

SPECIAL = [0.0, 1.0, 0.5, 2.0, 3.0, 1e-310, 1e-40, 5e-324, 1e-45, np.inf, np.nan, 709.78, 745.13]
SPECIAL += [88.7, 103.9, 1e22, 6381956970095103 * 2.0**797, np.finfo(np.float32).max]
SPECIAL += [np.finfo(np.float64).max, np.finfo(np.float64).tiny, np.finfo(np.float32).tiny]
USUAL = {"acosh": (1.0, 3.0), "log": (0.1, 3.0), "exp": (-750.0, 712.0), "exp2": (-1080.0, 1030.0)}
USUAL |= {"sinh": (-712.0, 712.0), "cosh": (-712.0, 712.0), "logistic": (-750.0, 50.0)}
USUAL |= dict.fromkeys(("sin", "cos", "tan", "sincos"), (-1e5, 1e5))
USUAL |= {"erfc": (-6.0, 28.0)}


def everywhere(random, count, bits):
    """Any bits: every exponent is as likely as any other."""
    return random.integers(0, 2**bits, count, dtype=UNSIGNED[bits]).view(DTYPES[bits])


def near_quarter_turns(random, count, bits):
    """Numbers nearest to multiples of pi/2, from the first to 1e300 or 1e38."""
    exponents = random.uniform(0, 996 if bits == 64 else 126, count)
    turns = [int(2.0 ** (e % 1 + 52)) << int(e) >> 52 for e in exponents]
    return np.array([(t << TWO_OVER_PI_BITS) / TWO_OVER_PI for t in turns])


def arguments(name, bits, count, seed=0):
    """Lists of arguments for a function; each array has `count` numbers, a multiple of 8."""
    with np.errstate(all="ignore"):
        return [
            [np.asarray(a).astype(DTYPES[bits]) for a in arrays]
            for arrays in _argument_sets(name, bits, count, np.random.default_rng(seed))
        ]


def _argument_sets(name, bits, count, random):
    def scattered():
        return random.normal(size=count) * 2.0 ** random.integers(-12, 5, count)

    signed = np.array([s * x for x in SPECIAL for s in (1.0, -1.0)])
    if name in TWO_ARGUMENTS:
        x, y = everywhere(random, count, bits), everywhere(random, count, bits)
        near_one = 1.0 + random.normal(size=count) * 2.0 ** random.integers(-40, -1, count)
        yield [np.resize(part, count) for part in np.meshgrid(signed, signed)]
        yield x, y
        yield x, x * random.uniform(0.1, 3.0, count)
        yield abs(x), random.uniform(-2.0, 2.0, count)
        yield near_one, y
        yield scattered(), scattered()
        yield scattered(), random.integers(-9, 9, count)
        yield random.uniform(0.0, 3.0, count), random.uniform(-300.0, 300.0, count)
    else:
        yield (np.resize(signed, count),)
        yield (everywhere(random, count, bits),)
        yield (scattered(),)
        yield (random.uniform(*USUAL.get(name, (-1.0, 1.0)), count),)
        yield (random.uniform(-1.0, 1.0, count) + (name == "acosh"),)
        if name in ("sin", "cos", "tan", "sincos"):
            yield (near_quarter_turns(random, count, bits),)


# -- errors ------------------------------------------------------------


def logistic(x):
    e = np.exp(-np.abs(x))
    return np.where(np.isnan(x), x, np.where(x < 0, e, 1) / (1 + e))


def erfc_and_erf(x):
    """(erfc x, erf |x|), by a series whose terms have one sign; beyond 1 by Laplace's fraction."""
    a = np.abs(x)
    near, far = np.minimum(a, 1), np.clip(a, 1, 1e3)
    total = term = near
    for k in range(1, 40):
        term = term * 2 * near**2 / (2 * k + 1)
        total = total + term
    fraction = far
    for k in range(400, 0, -1):
        fraction = far + k / (2 * fraction)
    root_pi = np.sqrt(4 * np.arctan(x.dtype.type(1)))
    erf = 2 / root_pi * gauss(near) * total
    beyond = gauss(far) / (fraction * root_pi)
    above = np.where(a < 1, 1 - np.copysign(erf, x), np.where(x < 0, 2 - beyond, beyond))
    return above, np.where(a < 1, erf, 1 - beyond)


def gauss(x):
    """e^(-x²) without the error of x²"""
    head = np.round(x * 64) / 64
    return np.exp(-(head**2)) * np.exp(-(x - head) * (x + head))


def erf_inv(x):
    """By Newton's steps from SciPy's value."""
    a = np.abs(x)
    y = special.erfinv(a.astype(np.float64)).astype(x.dtype)
    y = np.where(np.isfinite(y), y, 6)
    root_pi = np.sqrt(4 * np.arctan(x.dtype.type(1)))
    for _ in range(2):
        above, below = erfc_and_erf(y)
        excess = np.where(a < 0.5, below - a, (1 - a) - above)
        y = y - excess * root_pi / 2 / gauss(y)
    return np.copysign(np.where(a < 1, y, np.where(a == 1, np.inf, np.nan)), x)


RIGHT = {
    "erf": lambda x: np.copysign(erfc_and_erf(x)[1], x), "erfc": lambda x: erfc_and_erf(x)[0],
    "erf_inv": erf_inv,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "pow": np.power,
    "rem": np.fmod, "logistic": logistic, "sincos": lambda x: (np.sin(x), np.cos(x)),
}  # fmt: skip
"""The same functions by NumPy, under their other names."""


def errors(name, bits, results, inputs):
    """In units in the last place; infinite where NaN, infinity or the sign of a zero differ."""
    long, dtype = LONG[bits], DTYPES[bits]
    with np.errstate(all="ignore"):
        right = RIGHT.get(name) or getattr(np, name)
        wanted = right(*(x.astype(long) for x in inputs))
        results, wanted = (np.asarray(x) for x in (results, wanted))
        rounded = wanted.astype(dtype)
        unit = np.spacing(np.abs(rounded).clip(np.finfo(dtype).tiny)).astype(long)
        size = np.abs(wanted)
        unit = np.where(
            np.abs(rounded) > size, np.spacing(np.nextafter(np.abs(rounded), dtype(0))), unit
        )
        unit = np.maximum(unit, np.finfo(dtype).smallest_subnormal)
        error = np.abs(results.astype(long) - wanted) / unit
        special = ~np.isfinite(rounded) | ~np.isfinite(results) | (rounded == 0) & (results == 0)
        same = (results == rounded) & (np.signbit(results) == np.signbit(rounded))
        same |= np.isnan(results) & np.isnan(rounded)
    return np.where(special, np.where(same, 0.0, np.inf), error).reshape(-1, inputs[0].size).max(0)


def largest_error(name, bits, fma, count, lanes=4):
    """(error, where): the largest error in many arguments, and the arguments that have it."""
    function = compiled(name, lanes, bits, fma)
    worst = (-1.0, ())
    for inputs in arguments(name, bits, count):
        error = errors(name, bits, function(*inputs), inputs)
        i = int(np.argmax(error))
        worst = max(
            worst, (float(error[i]), tuple(x[i].item() for x in inputs)), key=lambda w: w[0]
        )
    return worst


def nanoseconds(name, bits, fma, lanes):
    """Time for one number, in a loop over many vectors of usual arguments: the best of many."""
    count = 8192
    raw = compiled(name, lanes, bits, fma).raw
    x = np.random.default_rng(0).uniform(0.1, 0.9, count).astype(DTYPES[bits]) + (name == "acosh")
    arrays = [x] * (2 if name in TWO_ARGUMENTS else 1)
    arrays += [np.empty_like(x) for _ in range(2 if name == "sincos" else 1)]
    addresses, best = [a.ctypes.data for a in arrays], np.inf
    for _ in range(300):
        begin = time.perf_counter()
        raw(count // lanes, *addresses)
        best = min(best, time.perf_counter() - begin)
    return best / count * 1e9


def table(names, count=400_000):
    for name in names:
        row = [f"{largest_error(name, b, f, count)[0]:6.2f}" for b in DTYPES for f in (True, False)]
        row += [f"{nanoseconds(name, 64, True, 4):6.1f}", f"{nanoseconds(name, 32, True, 8):6.1f}"]
        print(f"    {name:10s}", *row, flush=True)


if __name__ == "__main__":
    table(sys.argv[1:] or NAMES)
