"""The folder of a run: nothing half, nothing lost, and no result that is another run's."""

import contextlib
import errno
import os
import re
from pathlib import Path

import pytest

from mime import Trajectory
from mime.cli import main
from mime.commands.output import clean_up, put_back, reason, set_aside
from mime.scenarios.scenario import Scenario
from motor_scenario import motor_scenario

PLOT = '[[plots]]\nfields = ["rotor.current"]\n'
RESULTS = {"result.nc", "plot_1.png", "report.html"}
ASIDE = {f"earlier_run/{name}" for name in RESULTS}
EARLIER = "The result of an earlier run is in here/earlier_run/result.nc\n"


@pytest.fixture
def cli(capsys, tmp_path, monkeypatch):
    """`cli("run", ...)` beside a motor's scenario: exit code and standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mime.cli.enable_compilation_cache", lambda: None)
    (tmp_path / "motor.toml").write_text(motor_scenario(more=PLOT))

    def call(*words):
        try:
            main(words)
            code = 0
        except SystemExit as ended:
            code = ended.code
        return code, capsys.readouterr().err

    return call


@pytest.fixture
def run(cli):
    """`run("--set", ...)` of the motor into `here`."""
    return lambda *words: cli("run", "motor.toml", "--quiet", "--out", "here", *words)


@contextlib.contextmanager
def full_disk(name):
    """The disk is full half way through a file."""
    write = Path.write_bytes

    def fail(path, content):
        if not path.name.startswith(f".{name}"):
            return write(path, content)
        write(path, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "write_bytes", fail)
        yield


def files():
    return {str(path.relative_to("here")) for path in Path("here").rglob("*") if path.is_file()}


def resistance(file):
    return float(Trajectory.load(Path("here") / file).parameters["rotor"]["r_ohm"])


@pytest.mark.parametrize(
    ("name", "written"), [("result.nc", set()), ("report.html", {"result.nc", "plot_1.png"})]
)
def test_a_disk_that_fills_up_leaves_whole_files_and_the_earlier_results(run, name, written):
    assert run() == (0, "")
    with full_disk(name):
        code, err = run("--set", "rotor.r_ohm=2.0")
    assert code == 1
    assert err == (
        f"cannot write here/{name}: No space left on device.\n"
        "The run is kept in here/checkpoint.npz. Make room, then:  "
        f"mime run motor.toml --set rotor.r_ohm=2.0 --out here --resume\n{EARLIER}"
    )
    assert files() == {"checkpoint.npz", *written, *ASIDE}
    assert resistance("earlier_run/result.nc") == 1.0
    if "result.nc" in written:
        assert resistance("result.nc") == 2.0
    assert run("--set", "rotor.r_ohm=2.0", "--resume") == (0, "")
    assert files() == RESULTS
    assert resistance("result.nc") == 2.0


def test_the_result_of_an_earlier_run_is_not_taken_for_that_of_one_that_failed(run):
    assert run() == (0, "")
    code, err = run("--set", "rotor.kt_n_m_per_a=1e9")
    assert code == 1
    assert re.search(rf"rotor\.\w+ is not finite at .*; what .*\.\n{EARLIER}$", err, re.DOTALL)
    assert files() == {"result.partial.nc", *ASIDE}
    # A second failure does not replace the last whole result; a success does.
    with full_disk("result.partial.nc"):
        code, err = run("--set", "rotor.kt_n_m_per_a=1e9")
    assert code == 1
    words = "before is not kept (cannot write here/result.partial.nc: No space left on device). "
    assert words in err
    assert files() == {*ASIDE, "earlier_run/result.partial.nc"}
    assert resistance("earlier_run/result.nc") == 1.0
    assert run() == (0, "")
    assert files() == RESULTS


def test_a_run_that_does_not_start_leaves_results_where_they_are(run, monkeypatch):
    assert run() == (0, "")

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Scenario, "run", interrupt)
        assert run() == (130, "interrupted; nothing was kept\n")
    assert files() == RESULTS
    Path("here/checkpoint.npz").write_bytes(b"none")
    code, err = run()
    assert code == 2
    assert "not a checkpoint, or cut short" in err
    assert files() == {*RESULTS, "checkpoint.npz"}


def test_files_that_are_not_a_runs_stay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mine = {"notes.txt", "earlier_run/notes.txt"}
    Path("here/earlier_run").mkdir(parents=True)
    for name in (*mine, *RESULTS, *ASIDE):
        Path("here", name).write_text("x")
    moved = set_aside(Path("here"))
    assert files() == mine | ASIDE
    put_back(moved)
    assert files() == mine | RESULTS
    set_aside(Path("here"))
    clean_up(Path("here"))
    assert files() == mine


def test_a_checkpoint_that_cannot_be_written_says_how_to_go_on(run, monkeypatch):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("numpy.savez", fail)
    words = "cannot write here/checkpoint.npz: No space left on device.\n"
    assert run() == (1, f"{words}Make room, and start again\n")
    assert files() == set()


def test_a_picture_on_a_full_disk_is_told(cli, monkeypatch):
    from matplotlib.figure import Figure

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Figure, "savefig", fail)
    words = cli("graph", "motor.toml", "--out", "g.png")
    assert words == (1, "cannot write g.png: No space left on device\n")
    assert not Path("g.png").exists()


def test_the_reason_is_the_operating_systems():
    assert reason(OSError(errno.EROFS, "x")) == "Read-only file system"
    assert reason(OSError("the folder is not there")) == "the folder is not there"
