"""The limit below which XLA compiles a loop as a whole: set once; the user's word goes first."""

import os

import jax
import jax.numpy as jnp
import pytest

from mime.xla import whole_loops
from mime.xla.whole_loops import SlowLoopsWarning, compile_whole_loops

jnp.zeros(1).block_until_ready()  # XLA reads its flags now, before tests change them
OURS = f"xla_cpu_small_while_loop_byte_threshold={whole_loops.LIMIT_BYTES}"


@pytest.fixture
def before_jax(monkeypatch):
    monkeypatch.setattr(whole_loops, "_jax_has_started", lambda: False)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", f"--xla_backend_extra_options={OURS}"),
        ("--xla_cpu_max_isa=AVX", f"--xla_cpu_max_isa=AVX --xla_backend_extra_options={OURS}"),
        (
            "--xla_backend_extra_options=xla_cpu_ftz",
            f"--xla_backend_extra_options={OURS},xla_cpu_ftz",
        ),
        (
            "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=7",
            "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=7",
        ),
    ],
)
@pytest.mark.usefixtures("before_jax")
def test_the_limit_joins_the_flags_of_the_user(given, expected, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", given)
    compile_whole_loops()
    assert os.environ["XLA_FLAGS"] == expected
    compile_whole_loops()  # a second time changes nothing
    assert os.environ["XLA_FLAGS"] == expected


@pytest.mark.parametrize("allowed", ["", "0"])
@pytest.mark.usefixtures("before_jax")
def test_the_flags_are_left_alone_when_the_user_says_so(allowed, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_max_isa=AVX")
    monkeypatch.setenv("MIME_KEEP_XLA_FLAGS", "1")
    compile_whole_loops()
    assert os.environ["XLA_FLAGS"] == "--xla_cpu_max_isa=AVX"
    monkeypatch.setenv("MIME_KEEP_XLA_FLAGS", allowed)
    compile_whole_loops()
    assert OURS in os.environ["XLA_FLAGS"]


def test_nothing_is_said_when_the_flags_are_to_be_left_alone(monkeypatch, recwarn):
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setenv("MIME_KEEP_XLA_FLAGS", "1")
    compile_whole_loops()
    assert not recwarn.list


def test_too_late_is_said(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    with pytest.warns(SlowLoopsWarning, match="Import mime first"):
        compile_whole_loops()
    assert os.environ["XLA_FLAGS"] == ""


def test_a_loop_of_a_few_kilobytes_is_one_function():
    """XLA's own limit is 1 kB, so that this fails when XLA no longer knows the option."""
    loop = jax.jit(lambda x: jax.lax.fori_loop(0, 9, lambda _, y: jnp.sin(y) + y[::-1], x))
    program = loop.lower(jnp.zeros(1000)).compile().as_text()
    assert "xla_cpu_small_call" in program
