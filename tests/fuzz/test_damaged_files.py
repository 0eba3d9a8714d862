"""Damaged checkpoints and results: refused as damaged, or read as what was written."""

import hashlib
import io
import json
import warnings

import numpy as np
import pytest

from damage import damaged, seeds
from elements import Cell
from mime import CheckpointError, GraphManager, ResultError, SalvageWarning, Trajectory
from mime.running.checkpoint import Wanted, load, read_header
from mime.running.job import Job


def simulation():
    graph = GraphManager()
    graph.add_node(Cell("a", 0.01))
    graph.add_external_input("a", "s")
    return graph.compile()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A checkpoint of 40 of 100 steps, its prints, and the run that wants it."""
    path = tmp_path_factory.mktemp("whole") / "run.checkpoint"
    cell = simulation()

    def job(steps):
        signals = cell.signals({"a": {"s": 1.0}}, steps)
        return Job(cell, cell.init_state(), signals, cell.select(None), steps, 2)

    first = job(40)
    first.attach(path, False, 1e9)
    first.finish(False)
    whole = job(100)
    whole._allocate()
    return path, first.prints, Wanted(100, 2, whole.start, whole.recorded)


@pytest.mark.parametrize("block", range(2))
def test_a_damaged_checkpoint_is_refused_as_damaged(checkpoint, tmp_path, block):
    path, prints, wanted = checkpoint
    assert load(path, prints, wanted).done == 40
    whole, file = path.read_bytes(), tmp_path / "damaged"
    for seed in seeds(500)[block::2]:
        content, kind = damaged(whole, seed)
        if content == whole:
            continue
        file.write_bytes(content)
        for read in (read_header, lambda file: load(file, prints, wanted)):
            with pytest.raises(CheckpointError, match="damaged") as caught:
                read(file)
            assert caught.value.reason == "damaged", (seed, kind)


STRANGE = [None, True, -1, 0, 1, 39, 41, 2**31, 2**70, 1e300, float("nan"), "x", [], [40], {}]


def crafted(whole, seed):
    """A checkpoint with a right checksum and one thing in it that `save` never writes."""
    random = np.random.default_rng(seed)
    with np.load(io.BytesIO(whole[:-32])) as archive:
        arrays = dict(archive)
    header = json.loads(bytes(arrays["header"]))
    if seed % 2:
        key = str(random.choice([*header, "new"]))
        header[key] = STRANGE[int(random.integers(len(STRANGE)))]
        if random.integers(3) == 0 and key in header:
            del header[key]
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    else:
        name = str(random.choice(sorted(arrays)))
        strange = [np.zeros(3), np.zeros((2, 2), np.int8), np.array("x"), arrays[name][..., None]]
        arrays[name] = strange[int(random.integers(len(strange)))]
        if random.integers(4) == 0:
            del arrays[name]
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue() + hashlib.sha256(file.getvalue()).digest()


def test_a_crafted_checkpoint_is_refused_or_the_same(checkpoint, tmp_path):
    path, prints, wanted = checkpoint
    whole, file = path.read_bytes(), tmp_path / "crafted"
    for seed in seeds(300):
        file.write_bytes(crafted(whole, seed))
        try:
            found = load(file, prints, wanted)
        except CheckpointError as error:
            assert error.reason in ("damaged", "other run"), seed  # noqa: PT017
        else:  # `total` may be any number of steps: a run may be asked for a longer one
            assert (found.done, found.records) == (40, 20), seed


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """A result with parameters, and one of a batch."""
    folder = tmp_path_factory.mktemp("results")
    one = simulation().run(0.5, {"a": {"s": 1.0}})
    many = simulation().run_batch(0.05, {"a": {"s": 1.0}}, parameters={"a.gain": [0.1, 0.2]})
    one.save(folder / "one.nc")
    many.save(folder / "many.nc")
    return folder, {"one.nc": one.to_xarray(), "many.nc": many.to_xarray()}


@pytest.mark.parametrize("name", ["one.nc", "many.nc"])
def test_a_damaged_result_is_refused_or_read_as_it_was_written(result, tmp_path, name):
    folder, written = result
    whole, file = (folder / name).read_bytes(), tmp_path / "damaged.nc"
    assert Trajectory.load(folder / name).to_xarray().identical(written[name])
    salvaged = 0
    for seed in seeds(150):
        content, kind = damaged(whole, seed)
        file.write_bytes(content)
        try:
            assert Trajectory.load(file).to_xarray().identical(written[name]), (seed, kind)
            continue
        except ResultError:
            pass
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SalvageWarning)
                rest = Trajectory.load(file, salvage=True)
        except ResultError:
            continue
        salvaged += 1
        for field, values in rest.fields.get("a", {}).items():
            assert written[name][f"a.{field}"].values.tobytes() == values.tobytes(), (seed, kind)
    assert salvaged


@pytest.mark.parametrize("name", ["one.nc", "many.nc"])
def test_a_damaged_field_is_named_and_the_others_are_salvaged(result, tmp_path, name):
    folder, written = result
    whole, file = (folder / name).read_bytes(), tmp_path / "damaged.nc"
    values = written[name]["a.x"].values.tobytes()
    at = whole.index(values) + 8
    file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(ResultError, match=r"damaged in a\.x; .*salvage") as caught:
        Trajectory.load(file)
    assert caught.value.damaged == ("a.x",)
    with pytest.warns(SalvageWarning, match=r"lost: a\.x"):
        rest = Trajectory.load(file, salvage=True)
    assert set(rest["a"]) == {"y", "z"}
    assert rest.to_xarray().identical(written[name].drop_vars("a.x"))
