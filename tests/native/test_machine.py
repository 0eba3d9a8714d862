"""IR text to loaded code: what it computes, what it refuses, and that it goes when dropped."""

import ctypes
import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import mime.control.kinematics as kin
from mime import model_path
from mime.native import machine
from mime.native.machine import Code, Host, NativeError, compile_ir, host
from native_kernels import natively, same_bits

ADD = "define i64 @add(i64 %x) {{\n  %y = add i64 %x, {}\n  ret i64 %y\n}}\n"
FMA = """
declare <2 x double> @llvm.fma.v2f64(<2 x double>, <2 x double>, <2 x double>)
define double @fused(double %x, double %y) {
  %x0 = insertelement <2 x double> poison, double %x, i32 0
  %x1 = insertelement <2 x double> %x0, double %x, i32 1
  %y0 = insertelement <2 x double> poison, double %y, i32 0
  %y1 = insertelement <2 x double> %y0, double %y, i32 1
  %r = call <2 x double> @llvm.fma.v2f64(<2 x double> %x1, <2 x double> %x1, <2 x double> %y1)
  %r1 = extractelement <2 x double> %r, i32 1
  ret double %r1
}
"""
LIBRARY = """
declare double @llvm.sin.f64(double)
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define double @f(double %x, i64 %n) {
  %room = call ptr @malloc(i64 %n)
  call void @llvm.memset.p0.i64(ptr %room, i8 0, i64 %n, i1 false)
  %zero = load volatile double, ptr %room
  call void @free(ptr %room)
  %sum = fadd double %x, %zero
  %s = call double @llvm.sin.f64(double %sum)
  ret double %s
}
"""


def added(code: Code, x: int) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("add"))(x)


def fused(code: Code, x: float, y: float) -> float:
    kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)
    return kind(code.address("fused"))(x, y)


def test_lanes_follow_the_features_of_the_processor():
    wide = Host("x86_64-linux", "znver3", "+avx,+avx2,+fma")
    assert (wide.lanes(64), wide.lanes(32), wide.has_fma) == (4, 8, True)
    wider = Host("x86_64-linux", "znver5", "+avx,+avx2,+fma,+avx512f,+avx512dq")
    assert (wider.lanes(64), wider.lanes(32), wider.has_fma) == (8, 16, True)
    first_of_them = Host("x86_64-linux", "knl", "+avx,+avx2,+fma,+avx512f")
    assert first_of_them.lanes(64) == 4
    old = Host("x86_64-linux", "znver3", "+avx,+avx2,+fma,-avx")
    assert (old.lanes(64), old.lanes(32), old.has_fma) == (2, 4, False)
    arm = Host("aarch64-linux", "neoverse-n1", "+neon")
    assert (arm.lanes(64), arm.lanes(32), arm.has_fma) == (2, 4, True)


@pytest.mark.parametrize("features", ["", "-avx,-avx2,-fma"])
def test_a_processor_without_avx_computes_the_same(monkeypatch, features):
    monkeypatch.setenv("MIME_NATIVE_FEATURES", features)
    if features:
        assert host().lanes(64) == 2
        assert not host().has_fma
    x = 1.0 + 2.0**-30
    once_rounded = 2.0**-60  # x² - (1 + 2⁻²⁹), which two roundings would make 0
    assert fused(compile_ir(FMA, ["fused"]), x, -(1.0 + 2.0**-29)) == once_rounded


def forward_dynamics_under(monkeypatch, name, settings):
    """An arm's accelerations, compiled under each setting of an environment variable."""
    tree = kin.parse_urdf(model_path("desktop_arm_6axis"))
    gravity = np.array([0.0, 0.0, -9.81])

    def accelerations(q):
        return [kin.forward_dynamics(tree, q, jnp.tanh(q), jnp.exp(q), gravity)]

    q = np.random.default_rng(5).normal(size=(9, 6))
    found = []
    for setting in settings:
        monkeypatch.setenv(name, setting)
        found.append(natively(accelerations, q)[0])
    return found


def test_code_that_is_there_sooner_has_the_same_bits(monkeypatch):
    assert same_bits(*forward_dynamics_under(monkeypatch, "MIME_NATIVE_OPTIMISE", "01"))


def test_vectors_of_any_width_have_the_same_bits(monkeypatch):
    widths = ["", "-avx512f", "-avx512f,-avx2"]
    widest, *others = forward_dynamics_under(monkeypatch, "MIME_NATIVE_FEATURES", widths)
    assert all(same_bits(widest, other) for other in others)


def test_functions_of_the_c_library_are_found():
    kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int64)
    assert kind(compile_ir(LIBRARY, ["f"]).address("f"))(1.0, 64) == pytest.approx(0.8414709848)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("define void @f() { ret void", "LLVM refuses the code"),
        ("define i32 @f() {\n  ret void\n}", "LLVM refuses the code"),
        ("define void @f() {\na:\n  br label %a\n}", "LLVM refuses the code"),
        ("define void @g() {\n  ret void\n}", "cannot be loaded"),
        (
            "declare void @no_such()\ndefine void @f() {\n  call void @no_such()\n  ret void\n}",
            "not found: no_such",
        ),
    ],
    ids=["unfinished", "wrong type", "not verified", "no such function", "no such symbol"],
)
def test_bad_code_is_an_error_in_words(text, named):
    with pytest.raises(NativeError, match=named):
        compile_ir(text, ["f"])


def test_the_environment_switches_native_code_off(monkeypatch):
    monkeypatch.setenv("MIME_NATIVE", "off")
    with pytest.raises(NativeError, match="MIME_NATIVE=off"):
        compile_ir(ADD.format(1), ["add"])


def test_an_unknown_processor_has_no_native_code(monkeypatch):
    monkeypatch.setattr(machine.platform, "machine", lambda: "riscv64")
    assert "riscv64" in machine.why_off()


def test_a_long_line_of_code_computes_the_same_as_a_short_one():
    terms = [f"  %y{n} = add i64 %y{n - 1}, {n}" for n in range(1, machine.LONG_LINES + 1)]
    body = "\n".join(terms).replace("%y0", "%x")
    text = f"define i64 @add(i64 %x) {{\n{body}\n  ret i64 %y{len(terms)}\n}}\n"
    assert added(compile_ir(text, ["add"]), 5) == 5 + len(terms) * (len(terms) + 1) // 2


def test_threads_compile_side_by_side():
    with ThreadPoolExecutor(4) as pool:
        codes = list(pool.map(lambda n: compile_ir(ADD.format(n), ["add"]), range(16)))
    assert [added(code, 1) for code in codes] == [n + 1 for n in range(16)]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_dropped_code_leaves_memory():
    def size():
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return len(Path("/proc/self/maps").read_text().splitlines()), pages * 4096

    object_code = machine._object_code(ADD.format(7), host())

    def load_and_drop(times):
        for _ in range(times):
            assert added(machine._load(object_code, ["add"], host()), 1) == 8

    load_and_drop(100)
    maps, memory = size()
    load_and_drop(1000)
    maps_after, memory_after = size()
    assert maps_after - maps < 20
    assert memory_after - memory < 3e6  # one page of code for each would be 4 MB
