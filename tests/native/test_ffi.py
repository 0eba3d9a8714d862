"""Kernels called by XLA and by Python: any number of members and threads, and never a lost one."""

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

from affine_kernel import NAPS, SIGNS, affine
from mime.native import ffi
from mime.native.ffi import call_direct, ffi_call

ALWAYS_SPLIT = 1e6
"""Nanoseconds per member, with which more than four members are work for several threads."""


def by_xla(entry, x):
    (y,) = ffi_call(entry, len(x), [x], [jax.ShapeDtypeStruct(x.shape, x.dtype)])
    return y


def jitted(entry):
    return jax.jit(lambda x: by_xla(entry, x))


def by_python(entry, x, threads=None):
    y = np.full_like(x, np.nan)
    call_direct(entry, (x,), (y,), len(x), threads)
    return y


def uses(entry):
    return ffi._Record.from_address(entry.record).uses


@pytest.mark.parametrize("cost_ns", [1.0, ALWAYS_SPLIT], ids=["one thread", "all threads"])
@pytest.mark.parametrize("members", [0, 1, 3, 4, 5, 17, 1000, 10_007])
def test_every_member_is_computed(members, cost_ns):
    entry = affine(2.0, 1.0, cost_ns)
    x = np.random.default_rng(members).normal(size=members)
    np.testing.assert_array_equal(by_python(entry, x), 2.0 * x + 1.0)
    np.testing.assert_array_equal(by_python(entry, x, threads=3), 2.0 * x + 1.0)
    if members in {5, 10_007}:
        np.testing.assert_array_equal(jax.jit(by_xla, static_argnums=0)(entry, x), 2.0 * x + 1.0)


def test_a_kernel_runs_inside_a_scan():
    entry = affine(0.5, 1.0)

    @jax.jit
    def after(x):
        return jax.lax.scan(lambda s, _: (by_xla(entry, s), None), x, None, length=50)[0]

    np.testing.assert_array_equal(after(jnp.arange(6.0)), 2.0 + (np.arange(6.0) - 2.0) * 0.5**50)


def test_a_kernel_that_is_not_loaded_is_an_error_in_words():
    entry = affine(key=0xABC)
    lowered = jitted(entry).lower(jnp.zeros(4))
    del entry
    jax.clear_caches()
    gc.collect()
    with pytest.raises(jax.errors.JaxRuntimeError, match="kernel 0000000000000abc is not loaded"):
        lowered.compile()


def test_an_executable_holds_its_kernel_after_python_has_dropped_it():
    entry = affine(3.0, 0.5)
    compiled = jitted(entry).lower(jnp.zeros(4)).compile()
    assert uses(entry) == 1
    retired = len(ffi._retired)
    del entry
    jax.clear_caches()
    gc.collect()
    assert len(ffi._retired) == retired + 1
    np.testing.assert_array_equal(compiled(jnp.ones(4)), np.full(4, 3.5))
    del compiled
    gc.collect()
    ffi._reap()
    assert len(ffi._retired) == retired


@pytest.mark.skipif(os.name == "nt", reason="naps are POSIX")
def test_a_run_under_way_survives_that_everything_is_dropped():
    entry = affine(2.0, 1.0, besides=NAPS)
    run = jitted(entry)
    y = run(jnp.arange(64.0))  # 8 ms of naps, while Python goes on
    del run, entry
    jax.clear_caches()
    gc.collect()
    affine(5.0, 5.0)  # would be loaded where the code was
    np.testing.assert_array_equal(y, 2.0 * np.arange(64.0) + 1.0)


@pytest.mark.parametrize("cost_ns", [1.0, ALWAYS_SPLIT], ids=["one thread", "all threads"])
def test_several_callers_at_once(cost_ns):
    """All threads of XLA's pool are in handlers that split their work: nobody waits for ever."""
    entries = [affine(a, 1.0, cost_ns) for a in range(1, 5)]
    x = np.random.default_rng(0).normal(size=401)

    @jax.jit
    def all_of_them(x):
        return [by_xla(entry, x) for entry in entries]

    def work(_):
        direct = [by_python(entry, x) for entry in entries]
        return [*all_of_them(x), *direct]

    with ThreadPoolExecutor(6) as pool:
        for results in pool.map(work, range(24)):
            for y, a in zip(results, [1, 2, 3, 4] * 2, strict=True):
                np.testing.assert_array_equal(y, a * x + 1.0)


@pytest.mark.skipif(os.name == "nt" or ffi._cores() < 2, reason="naps are POSIX, on two cores")
@pytest.mark.parametrize("caller", ["xla", "python"])
def test_large_work_goes_to_several_threads(caller):
    entry = affine(cost_ns=ALWAYS_SPLIT, besides=SIGNS)
    x = np.zeros(1000)  # 250 naps of half a millisecond: time for a thread to wake up
    who = np.zeros(1000, np.int64)
    if caller == "python":
        call_direct(entry, (x,), (np.zeros(1000), who), 1000)
    else:
        types = [jax.ShapeDtypeStruct((1000,), dtype) for dtype in (float, int)]
        who = np.asarray(jax.jit(lambda x: ffi_call(entry, 1000, [x], types))(x)[1])
    assert len(set(who[::4])) > 1


@pytest.fixture
def loaded_from_disk(tmp_path):
    """Events of JAX that say that a program came from its cache, which is empty to begin with."""
    events = []

    def listen(event, **_):
        if event == "/jax/compilation_cache/cache_hits":
            events.append(event)

    wanted = {
        "jax_compilation_cache_dir": str(tmp_path),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
        "jax_enable_compilation_cache": True,
    }
    before = {name: getattr(jax.config, name) for name in wanted}
    for settings in (wanted, before):
        for name, value in settings.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
        if settings is wanted:
            jax.monitoring.register_event_listener(listen)
            yield events
            jax.monitoring.unregister_event_listener(listen)


def test_a_program_from_disk_finds_the_kernel_where_it_is_now(loaded_from_disk):
    entries = []
    for loaded in (False, True):
        entries.append(affine(4.0, 1.0, key=0x5EED))
        run = jitted(entries[-1])
        np.testing.assert_array_equal(run(jnp.ones(4)), np.full(4, 5.0))
        assert bool(loaded_from_disk) is loaded
        jax.clear_caches()
    assert entries[0].address != entries[1].address


def test_a_thousand_kernels_leave_nothing_behind():
    code = affine().keepalive
    address = code.address("kernel")
    retired = len(ffi._retired)
    for key in range(1000):
        entry = ffi.Entry(address, 4, 64, 1.0, key, code)
    assert by_python(entry, np.ones(3)).tolist() == [3.0] * 3
    del entry
    gc.collect()
    assert len(ffi._retired) == retired
    assert threading.active_count() < 50
