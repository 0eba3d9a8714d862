"""A study and its store: members are what `run_batch` makes of them, and none is computed twice."""

import json
import os
import random
import resource
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import xarray
import zarr

import mime
from mime.native.machine import Host
from mime.studies import layout as layouts
from mime.studies import parts
from mime.studies import region as regions
from mime.studies import store as stores
from mime.studies import task as tasks
from mime.studies import versions as version
from mime.studies.file import load_study
from mime.studies.store import StoreWriteError, StudyError
from mime.studies.sweep import StudyInterrupted, sweep
from mime.studies.versions import versions
from motor_studies import content, write_study
from sizes import sized


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return load_study(write_study(tmp_path_factory.mktemp("study")))


@pytest.fixture(scope="module")
def undisturbed(study, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    return folder, sweep(study, out=folder, progress=False)


def equal(one, other):
    assert set(one.data_vars) == set(other.data_vars)
    for name in [*one.data_vars, *one.coords]:
        np.testing.assert_array_equal(one[name].values, other[name].values, err_msg=str(name))


def test_members_are_those_of_run_batch(study, undisturbed):
    folder, result = undisturbed
    assert (result.computed, result.reused, dict(result.diverged)) == (40, 0, {})
    experiment = study.experiments[0]
    batch = experiment.simulation.run_batch(
        steps=100,
        inputs=experiment.inputs,
        parameters=dict(study.columns),
        record=["rotor.current", "rotor.angular_velocity"],
    )
    data, current = result.dataset, batch["rotor"]["current"]
    np.testing.assert_array_equal(data["largest current"], current[:, 1::2].max(axis=1))
    speed = batch["rotor"]["angular_velocity"][:, 1::2]
    np.testing.assert_array_equal(data["median speed"], np.quantile(speed, 0.5, axis=1))
    np.testing.assert_array_equal(data["rotor.current"], current[:, 49::50])
    np.testing.assert_array_equal(data["time"], [0.005, 0.01])
    np.testing.assert_array_equal(data["rotor.r_ohm"], study.columns["rotor.r_ohm"])
    assert data["rotor.r_ohm"].attrs["units"] == "Ω"
    assert data["median speed"].attrs["units"] == "rad/s"
    equal(data, sweep(study, progress=False).dataset)
    equal(data, mime.open_study(folder).dataset)


def test_a_store_is_zarr_that_others_read_and_a_result_is_netcdf(undisturbed, tmp_path):
    folder, result = undisturbed
    (group,) = (folder / "members.zarr").glob("*/zarr.json")
    theirs = xarray.open_zarr(group.parent, consolidated=False, chunks=None, decode_cf=False)
    np.testing.assert_array_equal(theirs["median speed"][:40], result.dataset["median speed"])
    result.save(tmp_path / "r.nc")
    with xarray.open_dataset(tmp_path / "r.nc", engine="h5netcdf", decode_timedelta=False) as read:
        equal(result.dataset, read)


@pytest.mark.parametrize("kind", ["float64", "float32", "int32", "uint8", "bool"])
def test_an_arrays_metadata_are_those_that_zarr_writes(kind, tmp_path):
    zarr.create_group(str(tmp_path), zarr_format=3).create_array(
        "x",
        shape=(0, 3),
        chunks=(5, 3),
        dtype=kind,
        compressors=None,
        filters=None,
        fill_value=float("nan") if kind.startswith("float") else 0,
        dimension_names=["member", "time"],
        attributes={"units": "A"},
    )
    ours = layouts.array_metadata((5, 3), np.dtype(kind), ["member", "time"], {"units": "A"})
    assert ours == json.loads((tmp_path / "x" / "zarr.json").read_bytes())


@pytest.mark.parametrize("most", [1, 3, 8192])
def test_members_have_the_same_bits_for_any_part_and_threads(study, undisturbed, monkeypatch, most):
    monkeypatch.setattr(parts, "_MOST", most)
    equal(undisturbed[1].dataset, sweep(study, threads=2, progress=False).dataset)


def test_threads_record_into_memory_of_their_own(study, monkeypatch):
    both, seen = threading.Barrier(2, timeout=60), []

    def take(self, rows, samples):
        seen.append(samples["rotor"]["current"])
        both.wait()

    monkeypatch.setattr(parts.Reduction, "take", take)
    study.experiments[0].run(dict(study.columns), threads=2)
    assert [len(samples) for samples in seen] == [20, 20]
    assert not np.shares_memory(*seen)


def test_an_interrupt_in_one_thread_stops_the_others(study, monkeypatch):
    monkeypatch.setattr(parts, "_MOST", 1)
    taken = []

    def take(self, rows, samples):
        taken.append(rows)
        if len(taken) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(parts.Reduction, "take", take)
    with pytest.raises(KeyboardInterrupt):
        study.experiments[0].run(dict(study.columns), threads=2)
    assert 3 <= len(taken) <= 6  # of 40


def test_a_second_start_has_nothing_to_do_and_writes_nothing(study, undisturbed):
    folder, first = undisturbed
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*") if file.is_file()}
    again = sweep(study, out=folder, progress=False)
    assert (again.computed, again.reused) == (0, 40)
    after = {file: file.stat().st_mtime_ns for file in folder.rglob("*") if file.is_file()}
    assert before == after
    equal(first.dataset, again.dataset)


def test_an_extended_study_runs_its_new_members_alone(study, tmp_path):
    small = load_study(write_study(tmp_path, 13))
    out = tmp_path / "out"
    assert sweep(small, out=out, progress=False).computed == 13
    larger = sweep(study, out=out, progress=False)
    assert (larger.computed, larger.reused) == (27, 13)
    equal(larger.dataset, sweep(study, progress=False).dataset)
    assert sweep(small, out=out, progress=False).computed == 0
    assert mime.open_study(out).dataset.sizes["member"] == 40


def test_members_that_an_optimiser_asks_for_are_members_of_the_store(study, tmp_path):
    some = {name: column[10:20] for name, column in study.columns.items()}
    assert sweep(study.with_columns(some), out=tmp_path, progress=False).computed == 10
    assert sweep(study, out=tmp_path, progress=False).computed == 30
    with pytest.raises(mime.InputError, match=r"must be >= 0 Ω, got -1\.0 for member 0"):
        study.with_columns(some | {"rotor.r_ohm": -np.ones(10)})
    with pytest.raises(mime.InputError, match=r"must be numbers for 'rotor\.r_ohm'"):
        study.with_columns({"rotor.r_ohm": np.ones(10)})


def test_two_studies_share_a_store_and_do_not_mix(study, tmp_path):
    out = tmp_path / "out"
    first = sweep(study, out=out, progress=False)
    other = load_study(write_study(tmp_path, 9), ["rotor.l_henry=2e-3"])
    second = sweep(other, out=out, progress=False)
    assert second.computed == 9
    equal(mime.open_study(out, study).dataset, first.dataset)
    equal(mime.open_study(out, other).dataset, second.dataset)
    with pytest.raises(StudyError, match=r"holds 2 studies \(.*\): say which"):
        mime.open_study(out)
    third = load_study(write_study(tmp_path, 9), ["rotor.l_henry=3e-3"])
    with pytest.raises(StudyError, match="this study is not kept there"):
        mime.open_study(out, third)


def test_ctrl_c_keeps_what_is_done_and_the_same_call_goes_on(study, undisturbed, tmp_path):
    def stop(done, total):
        assert total == 40
        if done >= 16:
            raise KeyboardInterrupt

    with pytest.raises(StudyInterrupted, match=r"stopped after 16 of 40 members, .* sweep again"):
        sweep(study, out=tmp_path, progress=stop)
    with pytest.raises(StudyError, match="24 of 40 members are missing"):
        mime.open_study(tmp_path, study)
    assert sweep(study, out=tmp_path, progress=False).computed == 24
    assert content(tmp_path) == content(undisturbed[0])


class Killed(BaseException):
    """As SIGKILL: nothing is tidied up."""


@pytest.mark.parametrize("moment", range(sized(20, small=4)))
def test_killed_at_any_moment_a_study_goes_on_to_the_same_bytes(
    study, undisturbed, tmp_path, monkeypatch, moment
):
    moments = random.Random(moment)
    plain, left = regions.replace, [moments.randint(1, 30)]

    def dies(path, data):
        left[0] -= 1
        if left[0] == 0:
            path.with_name(f".{path.name}.x.part").write_bytes(data[: len(data) // 2])
            if moments.random() < 0.5:
                path.write_bytes(data)  # moved into place, and no more
            raise Killed
        plain(path, data)

    kills = 0
    for _ in range(20):
        for module in (regions, stores, layouts):
            monkeypatch.setattr(module, "replace", dies)
        try:
            sweep(study, out=tmp_path, progress=False)
            break
        except Killed:
            kills += 1
            left[0] = moments.randint(1, 30)
    assert kills >= 1
    monkeypatch.undo()
    sweep(study, out=tmp_path, progress=False)
    assert content(tmp_path) == content(undisturbed[0])


@pytest.mark.soak("as above and in test_cluster.py, by SIGKILL of the whole sweep")
@pytest.mark.parametrize("moment", range(5))
def test_a_sweep_that_is_really_killed_goes_on_to_the_same_bytes(tmp_path, moment):
    file = write_study(tmp_path, 800)
    study, out = load_study(file), tmp_path / "out"
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; from mime.studies.sweep import sweep\n"
        f"sweep({str(file)!r}, out={str(out)!r}, progress=False)"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        end, enough = time.monotonic() + 120, random.Random(moment).randint(1, 60)
        while len(list(out.glob("marks/*/[0-9]*.json"))) < enough:
            assert process.poll() is None
            assert time.monotonic() < end
        process.kill()
    result = sweep(study, out=out, progress=False)
    assert 0 < result.computed <= 800 - 8 * enough
    sweep(study, out=tmp_path / "undisturbed", progress=False)
    assert content(out) == content(tmp_path / "undisturbed")


def test_a_full_disk_is_told_and_costs_what_is_under_way(study, undisturbed, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(done, total):
        if done == 8:
            resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))

    try:
        with pytest.raises(StoreWriteError, match=r"cannot write to .*: File too large; .*room"):
            sweep(study, out=tmp_path, progress=fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert sweep(study, out=tmp_path, progress=False).computed == 32
    assert content(tmp_path) == content(undisturbed[0])


@pytest.mark.parametrize("damage", ["changed", "cut", "gone", "mark"])
def test_a_damaged_chunk_is_named_and_runs_again_alone(study, undisturbed, tmp_path, damage):
    sweep(study, out=tmp_path, progress=False)
    (group,) = (tmp_path / "members.zarr").glob("*/zarr.json")
    file = group.parent / "median speed" / "c" / "3"
    if damage == "mark":
        file = tmp_path / "marks" / group.parent.name / "3.json"
        file.write_text(file.read_text()[:20])
    elif damage == "gone":
        file.unlink()
    else:
        whole = bytearray(file.read_bytes())
        whole[5] ^= 1
        file.write_bytes(whole if damage == "changed" else whole[:-8])
    with pytest.raises(StudyError, match=r"chunks '3' are damaged; sweep the study again"):
        mime.open_study(tmp_path)
    assert sweep(study, out=tmp_path, progress=False).computed == 8
    assert content(tmp_path) == content(undisturbed[0])


def test_a_damaged_chunk_of_another_study_runs_again(study, tmp_path):
    small = load_study(write_study(tmp_path, 13))
    out = tmp_path / "out"
    sweep(small, out=out, progress=False)
    sweep(study, out=out, progress=False)
    (group,) = (out / "members.zarr").glob("*/zarr.json")
    (group.parent / "median speed" / "c" / "1").unlink()
    again = sweep(study, out=out, progress=False)
    assert again.computed == 5
    equal(again.dataset, sweep(study, progress=False).dataset)


def test_a_member_that_diverges_is_named_and_the_others_go_on(tmp_path):
    more = '[vary."inputs.rotor.commanded_voltage.value"]\nvalues = [5.0, 1e308]\n'
    file = write_study(tmp_path, 4)
    text = file.read_text().replace("[keep]", f"{more}[keep]")
    file.write_text(text)
    study = load_study(file)
    result = sweep(study, out=tmp_path / "out", progress=False)
    beyond = study.columns["inputs.rotor.commanded_voltage.value"] > 5.0
    assert sorted(result.diverged) == np.flatnonzero(beyond).tolist()
    data = result.dataset
    assert np.isnan(data["largest current"][beyond]).all()
    assert np.isfinite(data["largest current"][~beyond]).all()
    where = next(iter(result.diverged.values()))
    assert where.node == "rotor"
    again = mime.open_study(tmp_path / "out", study)
    assert again.diverged == result.diverged
    assert set(json.loads(again.dataset.attrs["diverged"])) == {str(m) for m in result.diverged}


def test_two_sweeps_do_not_write_to_one_store_at_once(study, tmp_path):
    def again(done, total):
        with pytest.raises(StudyError, match="another sweep is writing there"):
            sweep(study, out=tmp_path, progress=False)
        raise KeyboardInterrupt

    with pytest.raises(StudyInterrupted):
        sweep(study, out=tmp_path, progress=again)


def test_a_folder_of_something_else_is_left_alone(study, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name / "members.zarr" / "x").mkdir(parents=True)
    (tmp_path / "b" / "members.zarr" / "zarr.json").write_text('{"attributes": {}}')
    (tmp_path / "c").write_text("x")
    with pytest.raises(StudyError, match=r"has members.zarr and is no store of studies"):
        sweep(study, out=tmp_path / "a", progress=False)
    with pytest.raises(StudyError, match=r"not a store of studies; choose another folder"):
        sweep(study, out=tmp_path / "b", progress=False)
    with pytest.raises(StudyError, match=r"File exists|is a file"):
        sweep(study, out=tmp_path / "c", progress=False)
    with pytest.raises(StudyError, match=r"no study is kept there"):
        mime.open_study(tmp_path)


def test_what_the_file_names_beside_parameters_varies_too(tmp_path):
    keys = {
        "inputs.rotor.commanded_voltage.value": [1.0, 2.0],
        "initial_state.rotor.angular_velocity": [0.0, 10.0],
        "rotor.integrator": ["semi_implicit", "exact"],
    }
    write_study(tmp_path)
    study = sweep(
        tmp_path / "rotor.toml", keys, fields=["rotor.angular_velocity"], keep_every=2,
        out=tmp_path / "out", progress=False,
    )  # fmt: skip
    data = study.dataset
    assert data.sizes["member"] == 8
    scenario = mime.load_scenario(
        tmp_path / "rotor.toml",
        ["rotor.integrator=exact", "inputs.rotor.commanded_voltage.value=2",
         "simulation.initial_state.rotor.angular_velocity=10.0"],
    )  # fmt: skip
    speed = scenario.run()["rotor"]["angular_velocity"]
    np.testing.assert_allclose(data["rotor.angular_velocity"][7], speed, rtol=1e-12)
    assert data["rotor.integrator"].values.tolist() == ["semi_implicit", "exact"] * 4
    again = sweep(
        tmp_path / "rotor.toml", keys, fields=["rotor.angular_velocity"], keep_every=2,
        out=tmp_path / "out", progress=False,
    )  # fmt: skip
    assert again.computed == 0


def test_a_workers_other_version_and_another_experiment_are_refused(study, monkeypatch):
    chunk = next(study.chunks(np.arange(3), 8))
    content_, print_ = tasks.pickled(chunk.experiment), study.prints[0]
    monkeypatch.setattr(tasks, "_experiments", {})
    with pytest.raises(tasks.VersionError, match=r"has mime .*, expected 0.0.1"):
        tasks.run_shipped(content_, print_, None, versions() | {"mime": "0.0.1"})
    other = versions() | {"processor": "x86_64 without fused multiply-add"}
    with pytest.raises(tasks.VersionError, match=r"expected x86_64 without fused multiply-add"):
        tasks.run_shipped(content_, print_, None, other)
    with pytest.raises(tasks.VersionError, match=r"has model .*, expected a 486"):
        tasks.run_shipped(content_, print_, None, versions(native=False) | {"model": "a 486"})
    with pytest.raises(StudyError, match="computes something else"):
        tasks.run_shipped(content_, "other", None, versions())


def test_a_processor_that_rounds_otherwise_makes_other_addresses(study, monkeypatch):
    def prints(features):
        monkeypatch.setattr(version, "host", lambda: Host("x86_64-linux", "any", features))
        return [experiment.print() for experiment in study.experiments]

    assert prints("+avx,+fma") == prints("+avx,+fma,+avx512f")  # the same bits
    assert prints("+avx,+fma") != prints("+avx")


MEMORY = """
import resource, sys, threading, numpy as np
threading.stack_size(2**20)  # zarr's threads would reserve 8 MB each
from pathlib import Path
from mime.studies.file import load_study
from mime.studies.sweep import sweep
sys.path[:0] = {path!r}
small, large = (load_study(Path({folder!r}) / f"{{name}}.toml") for name in ("small", "large"))
sweep(small, out=Path({folder!r}) / "small", threads=1, progress=False)
pages = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
allowed = {allowed}
resource.setrlimit(resource.RLIMIT_AS, (pages + allowed, -1))
e, c = large.experiments[0], large.columns
try:
    e.simulation.run_batch(steps=e.steps, inputs=e.inputs, parameters=dict(c), record=e.record)
    print("fits")
except MemoryError:
    print("does not fit")
result = sweep(large, out=Path({folder!r}) / "large", threads=1, progress=False)
print(result.computed, sum(v.nbytes for v in result.dataset.data_vars.values()))
"""


@pytest.mark.soak("chunks are computed and written one by one above")
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a limit on memory is Linux's")
def test_a_study_of_ten_times_the_memory_that_it_may_have(tmp_path):
    allowed = 24_000_000
    for name, draws in (("small", 16), ("large", 1200)):
        file = write_study(tmp_path, draws, name=name)
        text = file.read_text().replace("chunk = 8", "chunk = 16")
        text = text.replace("every = 50", 'every = 1\nfigures = ["largest current"]')
        file.write_text(text)
    scenario = (tmp_path / "rotor.toml").read_text()
    scenario = scenario.replace("duration = 0.01", "duration = 2.5").replace("every = 2\n", "\n")
    (tmp_path / "rotor.toml").write_text(scenario)
    script = MEMORY.format(path=sys.path, folder=str(tmp_path), allowed=allowed)
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | {"MALLOC_ARENA_MAX": "1"},  # a thread would reserve 64 MB for its own
    )
    assert run.returncode == 0, run.stderr[-2000:]
    words, counts = run.stdout.splitlines()
    assert words == "does not fit"
    computed, size = map(int, counts.split())
    assert computed == 1200
    assert size >= 10 * allowed
