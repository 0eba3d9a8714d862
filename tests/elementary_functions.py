"""Functions of `mime.native.elementary`, compiled over arrays: for tests and for measurements."""

from ctypes import CFUNCTYPE, c_int64, c_void_p
from functools import cache

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from mime.native.elementary import define

DTYPES = {64: np.float64, 32: np.float32}
TWO_ARGUMENTS = ("atan2", "pow", "rem")


@cache
def target():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features.flatten(), opt=3
    )


def loop(module, function, name, pointers):
    """void f(count, in..., out...): the function over `count` vectors."""
    i64 = ir.IntType(64)
    vector = function.args[0].type
    kind = ir.FunctionType(ir.VoidType(), [i64, *[vector.as_pointer()] * pointers])
    result = ir.Function(module, kind, name)
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
    parts = [b.extract_value(answer, j) for j in range(2)] if len(sinks) == 2 else [answer]
    for part, sink in zip(parts, sinks, strict=True):
        b.store(part, b.gep(sink, [i]), align=size)
    following = b.add(i, i64(1))
    i.add_incoming(following, body)
    b.cbranch(b.icmp_signed("<", following, count), body, end)
    b.position_at_end(end)
    b.ret_void()


@cache
def compiled(name, lanes=4, bits=64, fma=True):
    """Function of arrays, whose sizes are multiples of `lanes`."""
    module = ir.Module()
    module.triple = llvm.get_default_triple()
    machine = target()
    inputs = 2 if name in TWO_ARGUMENTS else 1
    outputs = 2 if name == "sincos" else 1
    loop(module, define(module, name, lanes, bits, fma=fma), "loop", inputs + outputs)
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    options = llvm.PipelineTuningOptions(speed_level=3)
    llvm.create_pass_builder(machine, options).getModulePassManager().run(
        parsed, llvm.create_pass_builder(machine, options)
    )
    assembly = machine.emit_assembly(parsed)
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    call = CFUNCTYPE(None, c_int64, *[c_void_p] * (inputs + outputs))(
        engine.get_function_address("loop")
    )

    def function(*arguments, out=None):
        arrays = [np.ascontiguousarray(a, DTYPES[bits]) for a in arguments]
        assert arrays[0].size % lanes == 0
        results = [np.empty_like(arrays[0]) for _ in range(outputs)] if out is None else out
        call(arrays[0].size // lanes, *(a.ctypes.data for a in arrays + results))
        return results if outputs == 2 else results[0]

    function.engine, function.assembly = engine, assembly
    return function
