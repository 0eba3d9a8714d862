"""The persistent compilation cache: compiled programs, kept between runs in a visible place."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any


def cache_folder() -> Path:
    """Where compiled programs are kept: $JAX_COMPILATION_CACHE_DIR, else ~/.cache/mime/jax."""
    if given := os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "mime" / "jax"


def active_folder() -> Path | None:
    """Where JAX keeps compiled programs now; None if it keeps none, or not on this machine."""
    if "jax" in sys.modules:
        import jax

        config: Any = jax.config  # its settings have no types
        given = config.jax_enable_compilation_cache and config.jax_compilation_cache_dir
    else:
        given = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    return Path(given) if given and "://" not in given else None


def enable_compilation_cache() -> Path:
    """Keep programs that take longer than 0.1 s to compile. Returns the folder."""
    folder = cache_folder()
    settings = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.1,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    if "jax" in sys.modules:
        import jax

        for name, value in settings.items():
            jax.config.update(name, value)
    else:  # JAX reads these when it is loaded, and many commands never load it
        os.environ.update({name.upper(): str(value) for name, value in settings.items()})
    return folder


def clear_cache() -> int:
    """Remove the kept programs. Returns how many bytes that freed."""
    folder = cache_folder()
    size = cache_bytes()
    shutil.rmtree(folder, ignore_errors=True)
    return size


def cache_bytes() -> int:
    """Bytes that the kept programs take on disk."""
    folder = cache_folder()
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
