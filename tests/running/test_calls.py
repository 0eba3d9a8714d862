"""Calls from Python: what is wrong is said in MIME's own words; NumPy's integers are integers."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from elements import Rotor
from mime import GraphManager, InputError, MotorNode, ParameterError

FULL = "MIME_FUZZ" in os.environ


@pytest.fixture(scope="module")
def simulation():
    graph = GraphManager()
    graph.add_node(Rotor("rotor", 1e-3, 0.01))
    graph.add_external_input("rotor", "torque")
    graph.add_external_input("rotor", "pose")
    return graph.compile()


def test_a_bad_argument_is_refused_by_an_exception_of_ours(tmp_path):
    """Here 300 of the 9,248 pairs of argument and bad value; all of them with MIME_FUZZ=1."""
    script = Path(__file__).resolve().with_name("bad_calls.py")
    path = os.pathsep.join([str(script.parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(script), "0" if FULL else "300", "15"]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(  # some of these names are files that a call writes
        command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["tried"] >= 300
    assert report["found"] == {}


@pytest.mark.parametrize(
    "options",
    [
        {"steps": np.int64(4)},
        {"steps": np.array(4)},
        {"duration": np.float32(0.004)},
        {"duration": jnp.asarray(0.004)},
        {"steps": 4, "every": np.uint8(2)},
    ],
    ids=str,
)
def test_numbers_of_numpy_and_jax_are_numbers(simulation, options):
    run = simulation.run(**options)
    assert int(run.final_state.step) == 4
    assert len(run.time) == 4 // int(options.get("every", 1))


def test_a_count_that_is_an_array_of_jax_is_a_count(simulation):
    batch = simulation.run_batch(steps=jnp.asarray(4), batch_size=np.int32(2), record=())
    assert batch.batch_size == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"duration": float("nan")}, "duration must be a finite number s, got nan"),
        ({"duration": float("inf")}, "duration must be a finite number s, got inf"),
        ({"duration": -1.0}, "at least one step of 0.001 s, got -1 s"),
        ({"steps": 5, "every": 6}, "every must be a whole number from 1 to 5, got 6"),
        ({"steps": 5, "record": "rotor.speed"}, "record must be a list, got 'rotor.speed'"),
        (
            {"steps": 5, "inputs": {"rotor": {"pose": np.zeros(7)}}},
            "quaternion of unit length, got one of length 0",
        ),
        (
            {"steps": 5, "inputs": {"rotor": {"torque": lambda t: t.nothing}}},
            "rotor.torque: the function fails",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_what_was_expected(simulation, options, message):
    with pytest.raises(InputError, match=message):
        simulation.run(**options)


@pytest.mark.parametrize("threads", [0, -1])
def test_a_batch_needs_a_thread(simulation, threads):
    with pytest.raises(InputError, match=f"threads must be a whole number >= 1, got {threads}"):
        simulation.run_batch(steps=2, batch_size=2, threads=threads)


def test_a_motor_needs_its_numbers():
    good = {"inertia_kg_m2": 1e-3, "kt_n_m_per_a": 0.1, "l_henry": 1e-3, "damping_n_m_s": 1e-3}
    with pytest.raises(ParameterError, match=r"r_ohm must be a number \[Ω\], got None"):
        MotorNode("m", 1e-3, r_ohm=None, **good)
    with pytest.raises(ParameterError, match="axis_in_parent_frame must have a length"):
        MotorNode("m", 1e-3, r_ohm=1.0, axis_in_parent_frame=(1e200, 0, 0), **good)
    with pytest.raises(ParameterError, match="timestep must be > 0 s, got nan"):
        MotorNode("m", float("nan"), r_ohm=1.0, **good)


def test_more_steps_than_can_be_counted_are_refused_before_the_run(simulation):
    with pytest.raises(InputError, match=r"end at step 2,151,579,648; steps are counted to 2,147"):
        simulation.run(steps=2**31 + 4096000, every=2**27)
    with pytest.raises(InputError, match=r"3e\+06 s is 3e\+09 steps of 0.001 s; steps are counted"):
        simulation.run(3e6, record=())
    late = simulation.run(steps=5).final_state
    with pytest.raises(InputError, match=r"end at step 2,147,483,652"):
        simulation.run(steps=2**31 - 1, initial_state=late, record=())


def test_a_run_that_does_not_fit_in_memory_is_refused_with_what_to_record(simulation):
    with pytest.raises(InputError, match=r"GB of memory are free. Record every \d+-th step"):
        simulation.run(steps=2**31 - 1, record={"rotor": ["speed", "angle", "pose"]})
    with pytest.raises(InputError, match=r"GB of memory are free"):
        simulation.run_batch(steps=10**6, batch_size=10**6)


def test_threads_run_simulations_side_by_side_as_one_after_the_other(simulation):
    def torque(size):
        return {"rotor": {"torque": lambda t: size * jnp.sin(40.0 * t)}}

    found = {}

    def work(size):
        found[size] = simulation.run(steps=300, inputs=torque(size), progress=False)

    workers = [threading.Thread(target=work, args=(size,)) for size in (1.0, 2.0, 3.0)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for size, side_by_side in found.items():
        alone = simulation.run(steps=300, inputs=torque(size), progress=False)
        np.testing.assert_array_equal(side_by_side["rotor"]["angle"], alone["rotor"]["angle"])
    assert len(found) == 3


def test_a_forked_process_is_warned_before_its_first_run():
    program = """
import os, warnings
from mime.running import forks, simulation
read, write = os.pipe()
if os.fork() == 0:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        forks.warn_if_forked()
        forks.warn_if_forked()
    os.write(write, f"{len(found)} {found[0].message}".encode())
    os._exit(0)
forks.warn_if_forked()  # not in the parent
os.wait()
print(os.read(read, 1000).decode())
"""
    done = subprocess.run(
        [sys.executable, "-W", "error::mime.running.forks.ForkWarning", "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("1 this process was forked"), done.stderr
    assert "get_context('spawn')" in done.stdout
