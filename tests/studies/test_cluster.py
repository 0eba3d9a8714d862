"""Sweeps on a Dask cluster: same bytes, and a fault costs no more than the chunks under way."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import dask
import distributed
import pytest

from mime import InputError, optimise_study
from mime.studies import cluster as clusters
from mime.studies.cluster import ClusterError, WorkerWarning
from mime.studies.file import load_study
from mime.studies.sweep import sweep
from mime.studies.task import VersionError
from motor_studies import content, write_study

SECONDS = 240
"""After which nobody waits any longer."""
pytestmark = pytest.mark.slow


@contextlib.contextmanager
def started(*words, ready):
    """A program of Dask's in a process of its own, started afresh: never forked."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]],
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    try:
        ready(process)
        yield process
    finally:
        process.kill()
        process.wait()


def waited(for_what):
    """Wait for a condition, and not for ever."""
    end = time.monotonic() + SECONDS
    while not for_what():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler on a port of its own: its process and address."""
    file = tmp_path / "scheduler.json"
    words = ["dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    words += ["--scheduler-file", str(file)]
    with started(*words, ready=lambda _: waited(file.exists)) as process:
        time.sleep(0.2)
        yield process, json.loads(file.read_text())["address"]


def worker(address, *more):
    words = ["dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    return started(*words, *more, ready=lambda _: None)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return load_study(write_study(tmp_path_factory.mktemp("study"), 64))


@pytest.fixture(scope="module")
def undisturbed(study, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    sweep(study, out=folder, progress=False)
    return content(folder)


def test_a_killed_worker_costs_its_chunk_and_a_killed_scheduler_what_is_under_way(
    study, undisturbed, scheduler, tmp_path
):
    process, address = scheduler
    with worker(address) as first, worker(address):
        killed, done = [], []

        def kill_worker(members, total):
            if not killed:
                killed.append(first.send_signal(signal.SIGKILL))

        def kill_scheduler(members, total):
            done.append(members)
            if len(done) == 2:
                process.send_signal(signal.SIGKILL)

        with distributed.Client(address, timeout=SECONDS) as client:
            client.wait_for_workers(2, timeout=SECONDS)
            result = sweep(study, out=tmp_path / "a", client=client, progress=kill_worker)
        assert killed
        assert result.computed == 64
        assert content(tmp_path / "a") == undisturbed
        assert sweep(study, out=tmp_path / "a", client=address, progress=False).computed == 0
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
            pytest.raises(ClusterError, match="the scheduler is gone; sweep again"),
        ):
            sweep(study, out=tmp_path / "b", client=address, progress=kill_scheduler)
    assert 16 <= done[-1] < 64
    result = sweep(study, out=tmp_path / "b", progress=False)  # on this machine alone
    assert 0 < result.computed <= 64 - done[-1]
    assert content(tmp_path / "b") == undisturbed


def test_a_cluster_that_adapts_starts_workers_for_the_sweep(study, undisturbed, tmp_path):
    """It starts none while nothing is asked of it: the sweep may not wait for the first."""
    cluster = distributed.LocalCluster(
        n_workers=0, threads_per_worker=1, processes=False, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        cluster.adapt(minimum=0, maximum=1, interval="50 ms")
        with pytest.warns(WorkerWarning, match="no worker yet"):
            sweep(study, out=tmp_path, client=client, progress=False)
    assert content(tmp_path) == undisturbed


def test_a_search_on_workers_asks_for_the_same_members(tmp_path):
    wanted = '[optimise]\nminimise = "largest current"\nmethod = "optuna"\nbudget = 12\nbatch = 6'
    file = write_study(tmp_path, more=wanted)
    ranges = file.read_text().replace("normal = [0.05, 0.002]", "uniform = [0.045, 0.055]")
    file.write_text(ranges)
    optimise_study(file, out=tmp_path / "here", progress=False)
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        found = optimise_study(file, out=tmp_path / "there", client=client, progress=False)
    assert found.computed == 12
    assert content(tmp_path / "there") == content(tmp_path / "here")
    with pytest.raises(InputError, match="a search on a cluster needs a store"):
        optimise_study(file, client="tcp://127.0.0.1:1", progress=False)


def test_what_is_no_cluster_is_refused(study, tmp_path, monkeypatch):
    monkeypatch.setattr(clusters, "_CONNECT_SECONDS", 1)
    with pytest.raises(InputError, match="needs a store"):
        sweep(study, client="tcp://127.0.0.1:1", progress=False)
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(ClusterError, match=r"no scheduler answers at tcp://127.0.0.1:1"),
    ):
        sweep(study, out=tmp_path, client="tcp://127.0.0.1:1", progress=False)


class Future:
    """A task that a worker of another version was given."""

    status = "error"

    def __init__(self, worker):
        self.worker = worker

    def exception(self):
        return VersionError(self.worker, {"mime": "2"}, {"mime": "1"})


class Client:
    """The part of a client that a refusal needs."""

    def __init__(self, *workers):
        self.workers = set(workers)

    def retire_workers(self, workers):
        self.workers -= set(workers)

    def scheduler_info(self, n_workers):
        return {"workers": {worker: {"nthreads": 1} for worker in self.workers}}


def test_a_worker_of_another_version_is_retired_and_the_others_go_on(study):
    client = Client("tcp://a", "tcp://b")
    work = (None, None)
    run = clusters._Run(client, study, [], 1)
    with pytest.warns(WorkerWarning, match=r"tcp://a has mime 1, expected 2; it is not used"):
        assert run._outcome(Future("tcp://a"), work) is None
    assert client.workers == {"tcp://b"}
    assert run.left == [work]
    with (
        pytest.warns(WorkerWarning),
        pytest.raises(ClusterError, match=r"no worker can be used: worker tcp://b has mime 1"),
    ):
        run._outcome(Future("tcp://b"), work)
