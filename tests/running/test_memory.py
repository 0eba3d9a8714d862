"""The memory that a run may take is the machine's, or what its cgroups leave of it."""

import math

import pytest

from mime import InputError
from mime.running import memory

MEBI = 2**20
MACHINE = "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n"


@pytest.fixture
def system(tmp_path):
    """`system({path: text})`: a folder with these files, as a system's root."""

    def build(files):
        for path, text in {"proc/meminfo": MACHINE, **files}.items():
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return tmp_path

    return build


V2, V1 = "sys/fs/cgroup", "sys/fs/cgroup/memory"


def bounded_2(folder, limit, used, cache=0):
    text = f"anon 7\ninactive_file {cache * MEBI}\n"
    limit = limit if limit == "max" else f"{limit * MEBI}\n"
    return {
        f"{V2}/{folder}memory.max": limit,
        f"{V2}/{folder}memory.current": f"{used * MEBI}\n",
        f"{V2}/{folder}memory.stat": text,
    }


def bounded_1(folder, limit, used, cache=0):
    return {
        f"{V1}/{folder}memory.limit_in_bytes": f"{limit * MEBI}\n",
        f"{V1}/{folder}memory.usage_in_bytes": f"{used * MEBI}\n",
        f"{V1}/{folder}memory.stat": f"cache 7\ntotal_inactive_file {cache * MEBI}\n",
    }


HYBRID = "4:memory,cpu:/job/1\n2:pids:/\n0::/\n"


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({}, 8192),
        ({"proc/self/cgroup": "0::/\n", **bounded_2("", 1000, 300)}, 700),
        ({"proc/self/cgroup": "0::/\n", **bounded_2("", 1000, 300, cache=200)}, 900),
        ({"proc/self/cgroup": "0::/\n", **bounded_2("", "max", 300)}, 8192),
        ({"proc/self/cgroup": "0::/\n", **bounded_2("", 99_999, 300)}, 8192),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                **bounded_2("a/b/", "max", 1),
                **bounded_2("a/", 9, 4),
            },
            5,
        ),
        ({"proc/self/cgroup": "0::/host/path\n", **bounded_2("", 1000, 300)}, 700),
        ({"proc/self/cgroup": HYBRID, **bounded_1("job/1/", 1000, 300, cache=100)}, 800),
        ({"proc/self/cgroup": HYBRID, **bounded_1("", 500, 600)}, 0),
        ({"proc/self/cgroup": "nonsense\n"}, 8192),
    ],
)
def test_free_memory_is_the_least_that_is_left(system, files, free):
    assert memory.free_bytes(system(files)) == free * MEBI


def test_a_system_that_does_not_tell_is_not_asked_twice(tmp_path, monkeypatch):
    monkeypatch.delattr(memory.os, "sysconf")
    assert memory.free_bytes(tmp_path) == math.inf


@pytest.mark.parametrize(("free", "every"), [(100 * MEBI, "every=3"), (0, "every=1000000")])
def test_a_run_that_its_cgroup_has_no_room_for_is_refused(monkeypatch, free, every):
    monkeypatch.setattr(memory, "free_bytes", lambda: float(free))
    memory.check_memory(1000, 8)
    with pytest.raises(InputError, match=every):
        memory.check_memory(1_000_000, 128)
