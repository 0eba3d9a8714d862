"""Checkpoints: a killed run ends like an undisturbed one, bit for bit; other files are refused."""

import functools
import pickle
import signal
import subprocess
import sys
import textwrap
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from elements import Cell
from mime import CheckpointError, GraphManager
from mime.running.checkpoint import read_header
from mime.running.identity import UnknownFunctionError, computes

SCRIPT = """
    import sys, time
    import jax, jax.numpy as jnp, numpy as np
    jax.config.update("jax_enable_x64", True)
    sys.path.insert(0, "tests")
    from elements import Cell
    from mime import GraphManager
    from mime.running import checkpoint
    graph = GraphManager()
    graph.add_node(Cell("a", 0.01)); graph.add_node(Cell("b", 0.02))
    graph.add_edge("a", "b", "y", "s"); graph.add_edge("b", "a", "y", "r", delay=True)
    graph.add_external_input("a", "s")
    path, mode, out = sys.argv[1:]
    def save_and_wait(path, prints, reached, recorded, save=checkpoint.save):
        save(path, prints, reached, recorded)
        if mode == "killed" and reached.records > 20:
            time.sleep(600)  # in its middle, however late the signal comes
    checkpoint.save = save_and_wait
    class Wave:
        def __call__(self, t):
            return jnp.sin(t)
    def around(wave):  # closes over an object and a function, whose addresses are others each time
        return lambda t: jax.nn.relu(2.0 + wave(t)) - 2.0
    def run(**options):
        inputs = {"a": {"s": around(Wave())}}
        run = graph.compile().run(
            steps=3_000_000, inputs=inputs, every=3000, progress=False, **options
        )
        return {"x": run["a"]["x"], "y": run["b"]["y"], "last": run.final_state.nodes["a"]["x"]}
    resumed = run(checkpoint=path, checkpoint_seconds=0.0, resume=mode == "resumed")
    np.savez(out, **resumed, **{f"plain {name}": x for name, x in run().items()})
"""


def start(tmp_path, mode):
    command = [
        sys.executable,
        "-c",
        textwrap.dedent(SCRIPT),
        str(tmp_path / "run.checkpoint"),
        mode,
    ]
    return subprocess.Popen([*command, str(tmp_path / f"{mode}.npz")], stderr=subprocess.PIPE)


def finish(process):
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors.decode()


@pytest.mark.soak("tests/scenarios/test_interruptions.py kills a run and resumes it")
def test_a_run_killed_in_the_middle_resumes_bit_for_bit(tmp_path):
    process = start(tmp_path, "killed")
    path = tmp_path / "run.checkpoint"
    deadline = time.monotonic() + 120
    while not (path.exists() and read_header(path)["records"] > 20):
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    header = read_header(path)
    assert 0 < header["done"] < header["total"]

    finish(start(tmp_path, "resumed"))
    with np.load(tmp_path / "resumed.npz") as found:
        for name in ("x", "y", "last"):
            assert found[name].tobytes() == found[f"plain {name}"].tobytes()


def graph(gain=0.25):
    graph = GraphManager()
    graph.add_node(Cell("a", 0.01, gain=gain))
    graph.add_external_input("a", "s")
    return graph.compile()


@pytest.fixture
def unfinished(tmp_path):
    """A checkpoint of a run that was stopped after some chunks."""
    path = tmp_path / "run.checkpoint"

    def stop_in_the_middle(done, total):
        if done > 1000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="resume from"):
        graph().run(
            steps=10_000, inputs={"a": {"s": 1.0}}, checkpoint=path, progress=stop_in_the_middle
        )
    return path


def test_an_interrupted_run_resumes(unfinished):
    resumed = graph().run(
        steps=10_000, inputs={"a": {"s": 1.0}}, checkpoint=unfinished, resume=True
    )
    plain = graph().run(steps=10_000, inputs={"a": {"s": 1.0}})
    np.testing.assert_array_equal(resumed["a"]["x"], plain["a"]["x"])
    again = graph().run(steps=10_000, inputs={"a": {"s": 1.0}}, checkpoint=unfinished, resume=True)
    np.testing.assert_array_equal(again["a"]["x"], plain["a"]["x"])
    longer = graph().run(steps=12_000, inputs={"a": {"s": 1.0}}, checkpoint=unfinished, resume=True)
    np.testing.assert_array_equal(longer["a"]["x"][:10_000], plain["a"]["x"])


def test_unfinished_work_is_not_overwritten(unfinished):
    before = unfinished.read_bytes()
    with pytest.raises(CheckpointError, match=r"an unfinished run .* of 10000 steps") as caught:
        graph().run(steps=10_000, inputs={"a": {"s": 1.0}}, checkpoint=unfinished)
    assert caught.value.reason == "unfinished"
    assert unfinished.read_bytes() == before


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ({"simulation": lambda: graph(gain=0.3)}, "parameters"),
        ({"inputs": {"a": {"s": 2.0}}}, "inputs"),
        ({"inputs": {"a": {"s": lambda t: jnp.cos(t)}}}, "inputs"),
        ({"every": 5}, "recorded fields"),
        ({"initial_state": {"a": {"x": 1.0}}}, "initial state"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(unfinished, changed, part):
    options = {"inputs": {"a": {"s": 1.0}}, **changed}
    simulation = options.pop("simulation", graph)()
    with pytest.raises(CheckpointError, match=f"another run .*{part}") as caught:
        simulation.run(steps=10_000, checkpoint=unfinished, resume=True, **options)
    assert caught.value.reason == "other run"


def test_a_checkpoint_of_another_graph_is_refused(unfinished):
    other = GraphManager()
    other.add_node(Cell("a", 0.01))
    other.add_node(Cell("b", 0.01))
    other.add_external_input("a", "s")
    with pytest.raises(CheckpointError, match="different graph"):
        other.compile().run(
            steps=10_000, inputs={"a": {"s": 1.0}}, checkpoint=unfinished, resume=True
        )


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_a_checkpoint_cut_short_is_refused(unfinished, keep):
    whole = unfinished.read_bytes()
    unfinished.write_bytes(whole[: keep if isinstance(keep, int) else int(keep * len(whole))])
    with pytest.raises(CheckpointError, match="cut short") as caught:
        graph().run(steps=10_000, inputs={"a": {"s": 1.0}}, checkpoint=unfinished, resume=True)
    assert caught.value.reason == "damaged"


def test_a_missing_checkpoint_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="no such checkpoint") as caught:
        graph().run(steps=10, checkpoint=tmp_path / "none", resume=True)
    assert caught.value.reason == "missing"


GLOBAL = 1.0


class Wave:
    def __init__(self, amplitude):
        self.amplitude = amplitude

    def __call__(self, t):
        return self.amplitude * jnp.sin(t)


def default_argument(a):
    return lambda t, a=a: a * t


def partial(a):
    return functools.partial(lambda a, t: a * t, a)


def long_array(a):
    table = np.arange(20_000.0)
    table[10_000] = a  # where `repr` prints "..."
    return lambda t: jnp.interp(t, np.arange(20_000.0), table)


def changed_global(a):
    def function(t):
        return GLOBAL * t

    globals()["GLOBAL"] = a
    return function


def closed_over(a):
    inner = Wave(a)
    return lambda t: inner(t) + (lambda: t)()


def inner_branch(a):
    return lambda t: jax.lax.cond(t > a, jnp.sin, lambda t: jnp.clip(t, 0.0, a), t)


KINDS = [default_argument, partial, Wave, changed_global, long_array, closed_over, inner_branch]


@pytest.mark.parametrize("make", KINDS)
def test_an_input_function_is_what_it_computes(make):
    of_one, again, of_two = (computes(make(a), 0.5) for a in (1.0, 1.0, 2.0))
    assert of_one == again
    assert of_one != of_two


def test_names_and_prints_are_no_part_of_what_a_function_computes():
    def plain(t):
        return jnp.where(t > 1.0, t, 0.0)

    def other(t):
        jax.debug.print("{}", t)
        return jnp.where(t > 1.0, t, 0.0)

    assert computes(plain, 0.5) == computes(other, 0.5)
    assert computes(jax.jit(plain), 0.5) == computes(jax.jit(other), 0.5)
    assert computes(plain, 0.5) != computes(plain, np.float32(0.5))


def test_random_numbers_of_a_key_are_told_apart():
    def draw(seed):
        key = jax.random.key(seed)
        return lambda t: t + jax.random.normal(jax.random.fold_in(key, 1))

    assert computes(draw(1), 0.5) == computes(draw(1), 0.5)
    assert computes(draw(1), 0.5) != computes(draw(2), 0.5)


def test_what_a_callback_does_nobody_can_tell(tmp_path):
    def call(t):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), t.dtype), t)

    with pytest.raises(UnknownFunctionError):
        computes(call, jnp.asarray(0.5))
    path = tmp_path / "run.checkpoint"
    graph().run(steps=5, inputs={"a": {"s": call}}, checkpoint=path)  # runs, and keeps its file
    with pytest.raises(CheckpointError, match="the inputs of this run call") as caught:
        graph().run(steps=10, inputs={"a": {"s": call}}, checkpoint=path, resume=True)
    assert caught.value.reason == "other run"


def test_a_longer_run_without_records_is_no_shorter_run(tmp_path):
    path = tmp_path / "run.checkpoint"
    graph().run(steps=1000, record=(), checkpoint=path)
    with pytest.raises(CheckpointError, match="already 1000 steps long") as caught:
        graph().run(steps=500, record=(), checkpoint=path, resume=True)
    assert caught.value.reason == "too long"


def test_a_full_disk_pauses_checkpoints_and_the_run_goes_on(tmp_path, monkeypatch):
    path = tmp_path / "run.checkpoint"
    write, calls = np.savez, []

    def full_after_the_first(file, **arrays):
        calls.append(len(arrays))
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        write(file, **arrays)

    monkeypatch.setattr(np, "savez", full_after_the_first)
    with pytest.warns(UserWarning, match="No space left on device; the run goes on") as told:
        run = graph().run(
            steps=20_000, inputs={"a": {"s": 1.0}}, checkpoint=path, checkpoint_seconds=0.0
        )
    assert len(told) == 1
    assert len(calls) > 3  # it tries again
    assert len(run.time) == 20_000
    assert read_header(path)["done"] == 0  # the last that was whole


def test_a_checkpoint_error_pickles_to_itself():
    error = pickle.loads(pickle.dumps(CheckpointError("damaged", "what", "advice")))
    assert (error.reason, str(error)) == ("damaged", "what; advice")
    long = CheckpointError("damaged", "what" * 10_000, "delete it")
    assert str(long).endswith("; delete it")
    assert len(str(long)) < 2000
