"""Machine code on disk: used when whole and private, else compiled again."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from mime.native import code_cache
from mime.native.code_cache import kept
from mime.xla.cache import active_folder, cache_bytes, clear_cache

KEY = "0" * 64


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of an empty cache that keeps everything."""
    monkeypatch.setattr(code_cache, "WORTH_S", 0.0)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    before = jax.config.jax_compilation_cache_dir, jax.config.jax_enable_compilation_cache
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    jax.config.update("jax_enable_compilation_cache", True)
    yield tmp_path / "native"
    jax.config.update("jax_compilation_cache_dir", before[0])
    jax.config.update("jax_enable_compilation_cache", before[1])


def fail() -> bytes:
    pytest.fail("was compiled again")


def test_code_is_compiled_once(folder):
    assert kept(KEY, lambda: b"code") == b"code"
    assert kept(KEY, fail) == b"code"
    assert kept("1" * 64, lambda: b"other") == b"other"


def test_folder_and_files_are_for_the_user_alone(folder):
    umask = os.umask(0)
    try:
        kept(KEY, lambda: b"code")
    finally:
        os.umask(umask)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / KEY).stat().st_mode & 0o777 == 0o600


def test_what_compiles_quickly_is_not_kept(folder, monkeypatch):
    monkeypatch.setattr(code_cache, "WORTH_S", 60.0)
    kept(KEY, lambda: b"code")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "of another key"])
def test_damaged_code_is_compiled_again(folder, damage):
    kept(KEY, lambda: b"code")
    file = folder / KEY
    whole = file.read_bytes()
    if damage == "of another key":
        kept("1" * 64, lambda: b"code")
        (folder / ("1" * 64)).replace(file)
    else:
        flipped = whole[:-1] + bytes([whole[-1] ^ 1])
        file.write_bytes({"cut": whole[:-1], "flipped": flipped, "empty": b""}[damage])
    assert kept(KEY, lambda: b"new code") == b"new code"
    assert kept(KEY, fail) == b"new code"


@pytest.mark.skipif(os.name == "nt", reason="access is not in a file's mode there")
def test_a_folder_that_others_can_write_to_is_not_used(folder):
    kept(KEY, lambda: b"code")
    folder.chmod(0o770)
    with pytest.warns(RuntimeWarning, match="only you can write to"):
        assert kept(KEY, lambda: b"new code") == b"new code"


@pytest.mark.skipif(os.name == "nt", reason="access is not in a file's mode there")
def test_a_file_that_others_can_write_to_is_not_used(folder):
    kept(KEY, lambda: b"code")
    (folder / KEY).chmod(0o602)
    assert kept(KEY, lambda: b"new code") == b"new code"


@pytest.mark.skipif(os.name == "nt", reason="files have no owner's number there")
def test_a_folder_of_another_user_is_not_used(folder, monkeypatch):
    kept(KEY, lambda: b"code")
    somebody_else = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: somebody_else)
    with pytest.warns(RuntimeWarning, match="only you can write to"):
        assert kept(KEY, lambda: b"new code") == b"new code"


def test_a_link_to_another_folder_is_not_used(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(RuntimeWarning, match="only you can write to"):
        assert kept(KEY, lambda: b"code") == b"code"


def test_a_place_that_cannot_be_written_costs_the_cache_only(folder, tmp_path):
    folder.write_text("a file where the folder should be")
    with pytest.warns(RuntimeWarning, match="not kept on disk"):
        assert kept(KEY, lambda: b"code") == b"code"


def test_the_code_used_longest_ago_goes_first(folder, monkeypatch):
    monkeypatch.setattr(code_cache, "MOST_BYTES", 2_500)
    keys = [digit * 64 for digit in "abcd"]
    for age, key in enumerate(keys[:2]):
        kept(key, lambda: bytes(1_000))
        os.utime(folder / key, (age, age))
    kept(keys[0], fail)  # used again: the other is the oldest now
    kept(keys[2], lambda: bytes(1_000))
    assert {file.name for file in folder.iterdir()} == {keys[0], keys[2]}


def test_one_switch_and_one_command_serve_both_caches(folder):
    kept(KEY, lambda: bytes(1_000))
    assert cache_bytes() > 1_000
    assert clear_cache() > 1_000
    assert not folder.exists()
    jax.config.update("jax_enable_compilation_cache", False)
    assert active_folder() is None
    kept(KEY, lambda: b"code")
    assert not folder.exists()


WRITER = """
from mime.native import code_cache
from mime.native.machine import compile_ir
code_cache.WORTH_S = 0.0
for n in range(20):
    compile_ir(f"define i64 @f() {{\\n  ret i64 {n}\\n}}", ["f"])
print("done")
"""


def test_two_processes_write_one_cache(folder, monkeypatch):
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [writer.communicate()[0] for writer in writers] == ["done\n"] * 2
    files = list(folder.iterdir())
    assert len(files) == 20
    for file in files:
        assert code_cache._read(Path(file), file.name) is not None
