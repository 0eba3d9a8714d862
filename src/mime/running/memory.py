"""What memory there is for a run's samples: the machine's, or less where a cgroup bounds it."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

from mime.core.problem import InputError

_SURELY_THERE = 2**26
"""Bytes below which nobody asks the operating system."""


def check_memory(records: int, sample: int, members: int = 1) -> None:
    """Refuse a run whose samples do not fit in the memory that is free, before it starts."""
    needed = records * sample * members
    if needed > _SURELY_THERE and needed > (free := free_bytes()):
        times = math.ceil(needed / (0.5 * free)) if free > 0 else records
        raise InputError(
            f"record: {records:,} samples of {sample * members:,} bytes take {needed / 1e9:.3g} "
            f"GB, and {free / 1e9:.3g} GB of memory are free. Record every {times}-th step "
            f"(every={times}), or name fewer fields (record=['node.field'], or record=() for the "
            "final state alone)",
            place=("record",),
        )


def free_bytes(root: Path = Path("/")) -> float:
    """Memory that this process could have now; infinite where the system does not tell.

    root  of the files that the system tells it in
    """
    return min(_of_machine(root), *_of_cgroups(root), math.inf)


def _of_machine(root: Path) -> float:
    try:
        entries = _entries(root / "proc/meminfo")
        return 1024.0 * int(entries["MemAvailable:"])
    except (OSError, KeyError, ValueError):
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, AttributeError):
        return math.inf


def _of_cgroups(root: Path) -> Iterator[float]:
    """What is left in each cgroup that bounds this process: its own, and all that hold it.

    A container may show the process's path as the host has it, where only the top exists for it.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "none", ""][:3]
        if controllers == "":
            top, names = root / "sys/fs/cgroup", ("memory.max", "memory.current")
            cache = "inactive_file"
        elif "memory" in controllers.split(","):
            top = root / "sys/fs/cgroup/memory"
            names, cache = ("memory.limit_in_bytes", "memory.usage_in_bytes"), "total_inactive_file"
        else:
            continue
        own = Path(path.lstrip("/"))
        for folder in (top / own, *(top / above for above in own.parents)):
            try:
                limit, used = (int((folder / name).read_text(encoding="ascii")) for name in names)
                given_up = int(_entries(folder / "memory.stat").get(cache, 0))
                yield max(0.0, float(limit - used + given_up))
            except (OSError, ValueError):  # not there, or "max": no limit
                continue


def _entries(file: Path) -> dict[str, str]:
    """The first two words of each line."""
    lines = (line.split() for line in file.read_text(encoding="utf-8").splitlines())
    return {words[0]: words[1] for words in lines if len(words) > 1}
