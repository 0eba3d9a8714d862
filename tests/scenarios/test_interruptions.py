"""Runs that are stopped, killed, or run out of disk: nothing is lost, nothing is half."""

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from mime import Trajectory
from mime.cli import main
from mime.running.checkpoint import read_header
from motor_scenario import motor_scenario

pytestmark = pytest.mark.slow

EVERY, TIMESTEP_S = 4_000, 1e-5
LONG, ENDLESS = 500, 250_000
"""Samples: of 2 million steps, less than a second; of a billion, half a minute or more."""
TERMINAL = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
"""Ctrl-C interrupts, as in a terminal, even where these tests run in the background (`make test &`
in a script) and programs begin with that signal ignored.
"""
HELD = """
import time
from mime.running import checkpoint

def save_and_wait(path, prints, progress, recorded, save=checkpoint.save):
    save(path, prints, progress, recorded)
    if progress.records > 100:
        time.sleep(600)

checkpoint.save = save_and_wait
"""
"""The run waits in its middle for what is to happen to it, however late that comes."""


def write_scenario(tmp_path, samples):
    """A run of so many samples, in `long.toml`."""
    duration = samples * EVERY * TIMESTEP_S
    text = motor_scenario(
        f"duration = {duration:.2f}\ntimestep = {TIMESTEP_S}\nevery = {EVERY}",
        'kind = "sine"\namplitude = 5.0\nfrequency_hz = 1.7',
    )
    (tmp_path / "long.toml").write_text(text)


@pytest.fixture
def start(tmp_path):
    """Start `mime run` of a long scenario in the background: `start("--out", "here")`."""
    write_scenario(tmp_path, LONG)
    started = []

    def start(*words, before=""):
        code = f"{TERMINAL}\n{before}\nfrom mime.cli import main\nmain()"
        options = ["--quiet", "--checkpoint-seconds", "0.01"]
        process = subprocess.Popen(
            [sys.executable, "-c", code, "run", "long.toml", *options, *words],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def in_process(tmp_path, monkeypatch):
    """Let `main` be called here, in the folder of the scenario."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mime.cli.enable_compilation_cache", lambda: None)


def wait_until_under_way(process, checkpoint):
    """Until a checkpoint holds the first samples of the run."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        if checkpoint.exists() and (header := read_header(checkpoint))["records"] > 100:
            return header
        time.sleep(0.01)
    raise AssertionError("the run never began")


def end(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def refused(capsys, *words):
    """The last part of the message of a run that never starts."""
    with pytest.raises(SystemExit) as ended:
        main(["run", "long.toml", *words])
    assert ended.value.code == 2
    return capsys.readouterr().err.strip().rpartition("; ")[2]


def test_a_run_killed_in_the_middle_and_resumed_gives_the_undisturbed_result(
    start, tmp_path, capsys, in_process
):
    killed = start("--out", "killed", before=HELD)
    header = wait_until_under_way(killed, tmp_path / "killed" / "checkpoint.npz")
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert header["done"] < header["total"]
    assert not (tmp_path / "killed" / "result.nc").exists()

    assert refused(capsys, "--out", "killed") == "add --resume to go on, or delete it to start anew"
    changed = refused(capsys, "--out", "killed", "--resume", "--set", "rotor.r_ohm=2.0")
    assert changed == "resume with what it was started with, or start anew with another file"

    main(["run", "long.toml", "--out", "killed", "--resume", "--quiet"])
    assert capsys.readouterr() == ("", "")
    main(["run", "long.toml", "--out", "whole", "--quiet"])
    files = {path.name for path in (tmp_path / "killed").iterdir()}
    assert files == {".mime-run.json", "result.nc", "report.html"}
    resumed = Trajectory.load(tmp_path / "killed" / "result.nc").to_xarray()
    assert resumed.identical(Trajectory.load(tmp_path / "whole" / "result.nc").to_xarray())


def test_ctrl_c_keeps_what_was_computed_and_says_how_to_go_on(start, tmp_path, in_process):
    checkpoint = tmp_path / "here" / "checkpoint.npz"
    write_scenario(tmp_path, ENDLESS)
    process = start("--out", "here")
    wait_until_under_way(process, checkpoint)
    process.send_signal(signal.SIGINT)
    code, _, err = end(process)
    assert code == 130
    assert "Traceback" not in err
    assert "Go on with:  mime run long.toml --out here --resume" in err
    partial = Trajectory.load(tmp_path / "here" / "result.partial.nc")
    made = len(partial.time)
    assert made == read_header(checkpoint)["records"]
    assert 100 < made < ENDLESS
    assert np.isfinite(partial["rotor"]["current"]).all()
    write_scenario(tmp_path, made + 50)  # its end, nearer: nobody waits for a billion steps
    main(["run", "long.toml", "--quiet", "--out", "here", "--resume"])
    assert not (tmp_path / "here" / "result.partial.nc").exists()
    whole = Trajectory.load(tmp_path / "here" / "result.nc")
    assert len(whole.time) == made + 50
    np.testing.assert_array_equal(whole["rotor"]["current"][:made], partial["rotor"]["current"])


SMALL_FILES = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))"
"""No file larger than 20 kB: what a full disk looks like to a program."""


@pytest.mark.soak("test_output.py has a disk that fills up")
def test_on_a_full_disk_a_run_goes_on_and_leaves_no_half_file(start, tmp_path):
    process = start("--out", "here", before=SMALL_FILES)
    code, _, err = end(process)
    assert code == 1
    assert "cannot write here/" in err
    assert "File too large; the run goes on, keeps its last checkpoint and tries again" in err
    assert re.search(r"The run is kept in here/checkpoint.npz up to step \d+ of 2000000\.", err)
    assert "Traceback" not in err
    left = {path.name for path in (tmp_path / "here").iterdir()}
    assert left == {".mime-run.json", "checkpoint.npz"}
    read_header(tmp_path / "here" / "checkpoint.npz")  # a whole one


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes where it likes")
def test_a_read_only_folder_is_reported_before_the_run(start, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    code, _, err = end(start("--out", "locked"))
    assert code == 2
    assert err == "cannot write to locked: Permission denied\n"
