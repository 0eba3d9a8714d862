"""Checkpoints: a killed run ends like an undisturbed one, bit for bit; other files are refused."""

import signal
import subprocess
import sys
import textwrap
import time

import jax.numpy as jnp
import numpy as np
import pytest

from elements import Cell
from mime import CheckpointError, GraphManager

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
    options = {} if mode == "plain" else {"checkpoint": path, "checkpoint_seconds": 0.0}
    run = graph.compile().run(
        steps=3_000_000, inputs={"a": {"s": lambda t: jnp.sin(t)}}, every=3000,
        resume=mode == "resume", progress=False, **options,
    )
    np.savez(out, x=run["a"]["x"], y=run["b"]["y"], last=run.final_state.nodes["a"]["x"])
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


def test_a_run_killed_in_the_middle_resumes_bit_for_bit(tmp_path):
    finish(start(tmp_path, "plain"))
    process = start(tmp_path, "killed")
    path = tmp_path / "run.checkpoint"
    from mime.running.checkpoint import read_header

    deadline = time.monotonic() + 120
    while not (path.exists() and read_header(path)["records"] > 20):
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    header = read_header(path)
    assert 0 < header["done"] < header["total"]

    finish(start(tmp_path, "resume"))
    with np.load(tmp_path / "plain.npz") as plain, np.load(tmp_path / "resume.npz") as resumed:
        for name in plain:
            assert plain[name].tobytes() == resumed[name].tobytes()


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
