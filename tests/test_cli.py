"""The `mime` command and the cache it manages."""

import subprocess
import sys

import pytest

import mime


def run(*arguments, **environment):
    import os

    command = [sys.executable, "-c", "from mime.cli import main; main()", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )


@pytest.mark.parametrize("arguments", [["--version"], ["version"]])
def test_the_version_is_printed(arguments):
    assert run(*arguments).stdout == f"mime {mime.__version__}\n"


def test_the_cache_can_be_seen_and_cleared(tmp_path):
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "program").write_bytes(b"x" * 2_000_000)
    shown = run("cache", JAX_COMPILATION_CACHE_DIR=str(folder))
    assert shown.stdout == f"{folder}: 2.0 MB of compiled programs\n"
    cleared = run("cache", "--clear", JAX_COMPILATION_CACHE_DIR=str(folder))
    assert cleared.stdout == f"removed 2.0 MB from {folder}\n"
    assert not folder.exists()
    again = run("cache", JAX_COMPILATION_CACHE_DIR=str(folder))
    assert again.stdout == f"{folder}: 0.0 MB of compiled programs\n"


def test_a_wrong_command_is_answered_without_a_traceback():
    result = run("cach")
    assert result.returncode != 0
    assert "Traceback" not in result.stderr
    assert "cache" in result.stderr + result.stdout
