"""The folder of a run: nothing half, nothing lost, and no result that is another run's."""

import contextlib
import errno
import io
import json
import os
import re
from pathlib import Path

import pytest

from mime import Trajectory
from mime.cli import main
from mime.commands.output import RunFolder, open_folder, reason
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
    """All but the list of what is ours."""
    found = {str(path.relative_to("here")) for path in Path("here").rglob("*") if path.is_file()}
    return found - {".mime-run.json"}


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
    assert re.sub(r"takes [\d.]+ MB", "takes some MB", err) == (
        f"cannot write here/{name}: No space left on device (it takes some MB).\n"
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
    words = "before is not kept (cannot write here/result.partial.nc: No space left on device (it"
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
    assert run() == (2, FOREIGN.format("here/checkpoint.npz"))
    code, err = run("--resume")
    assert code == 2
    assert "not a checkpoint of this version of MIME, or cut short" in err
    assert Path("here/checkpoint.npz").read_bytes() == b"none"
    assert files() == {*RESULTS, "checkpoint.npz"}


FOREIGN = (
    "{}: not written by a run in this folder, and not overwritten; "
    "move it away, or choose another folder with --out\n"
)


@pytest.mark.parametrize(
    "name", ["result.nc", "report.html", "plot_1.png", "checkpoint.npz", "earlier_run/result.nc"]
)
def test_a_foreign_file_stops_a_run_before_it_starts(run, monkeypatch, name):
    path = Path("here", name)
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    monkeypatch.setattr(Scenario, "run", None)
    assert run() == (2, FOREIGN.format(path))
    assert path.read_text() == "mine"
    assert files() == {name}


def test_a_file_put_in_the_place_of_a_result_is_foreign(run):
    assert run() == (0, "")
    Path("here/plot_1.png").write_text("mine")
    assert run() == (2, FOREIGN.format("here/plot_1.png"))
    assert files() == RESULTS


MINE = {"notes.txt", "plot_2.png", "plot_current.png", ".x.part", ".result.nc.1.x.part"}
MINE |= {"earlier_run/notes.txt", "earlier_run/plot_9.png"}


def test_files_that_are_not_a_runs_stay(run):
    Path("here/earlier_run").mkdir(parents=True)
    for name in MINE:
        Path("here", name).write_text("mine")
    for words in ((), ("--set", "rotor.r_ohm=2.0")):
        assert run(*words) == (0, "")
        assert files() == MINE | RESULTS
    assert run("--set", "rotor.kt_n_m_per_a=1e9")[0] == 1
    assert files() == MINE | ASIDE | {"result.partial.nc"}
    assert all(Path("here", name).read_text() == "mine" for name in MINE)


def test_a_file_that_appears_during_a_run_is_not_replaced(run, monkeypatch):
    first = Scenario.run

    def place(scenario, **options):
        trajectory = first(scenario, **options)
        Path("here/result.nc").write_text("mine")
        return trajectory

    with monkeypatch.context() as patch:
        patch.setattr(Scenario, "run", place)
        code, err = run()
    assert code == 1
    assert "not overwritten" in err
    assert "The run is kept in here/checkpoint.npz." in err
    assert Path("here/result.nc").read_text() == "mine"
    Path("here/result.nc").unlink()
    assert run("--resume") == (0, "")


def test_what_a_killed_run_was_writing_is_removed_by_the_next(run):
    assert run() == (0, "")
    manifest = Path("here/.mime-run.json")
    text = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(text | {"process": 4_000_001}))
    Path("here/.result.nc.4000001.abc.part").write_text("half")
    assert run() == (0, "")
    assert files() == RESULTS


def test_results_that_a_killed_run_had_set_aside_are_still_a_runs(run, monkeypatch):
    def die(*_, **__):
        raise SystemExit(137)

    assert run() == (0, "")
    with monkeypatch.context() as patch:
        patch.setattr(Scenario, "run", die)
        patch.setattr(RunFolder, "settle", lambda files: None)
        assert run() == (137, "")
    assert files() == ASIDE
    assert run() == (0, "")
    assert files() == RESULTS


@pytest.mark.small("", '{"files": 3}')
@pytest.mark.parametrize("content", ["", "[]", '{"format": "MIME run 1"}', '{"files": 3}'])
def test_a_damaged_list_owns_nothing(run, content):
    assert run() == (0, "")
    Path("here/.mime-run.json").write_text(content)
    assert run()[0] == 2
    assert files() == RESULTS


def test_a_list_that_leads_elsewhere_owns_nothing(run):
    assert run() == (0, "")
    Path("mine.txt").write_text("mine")
    manifest = Path("here/.mime-run.json")
    text = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(text | {"files": {"../mine.txt": 4, "result.nc": None}}))
    assert run()[0] == 2
    assert Path("mine.txt").read_text() == "mine"


def test_a_second_run_in_a_folder_is_told_and_the_first_goes_on(run):
    with open_folder(Path("here")) as first:
        first.claim(["checkpoint.npz"])
        words = f"here: another run is writing there (process {os.getpid()}); "
        assert run() == (2, f"{words}wait for its end, or choose another folder with --out\n")
        assert files() == {".mime-run.lock"}
    assert run() == (0, "")
    assert files() == RESULTS


def test_the_lock_of_a_dead_process_is_taken_over(run):
    Path("here").mkdir()
    Path("here/.mime-run.lock").write_text("4000001")
    assert run() == (0, "")
    assert files() == RESULTS


def test_a_scenario_with_a_strange_name_has_a_folder_of_its_own(cli):
    Path("...toml").write_text(Path("motor.toml").read_text())
    Path("result.nc").write_text("mine")
    assert cli("run", "...toml", "--quiet") == (0, "")
    assert Path("result.nc").read_text() == "mine"
    assert Path("mime_output/unnamed/result.nc").is_file()


def test_new_node_leaves_other_files_alone(cli):
    Path(".mine.part").write_text("mine")
    assert cli("new-node", "TorsionSpring") == (0, "")
    assert Path(".mine.part").read_text() == "mine"


def test_at_a_terminal_a_full_disk_is_waited_for(run, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

        def readline(self, *_):
            disk.close()  # somebody has made room
            return "\n"

    disk = contextlib.ExitStack()
    disk.enter_context(full_disk("result.nc"))
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    code, err = run()
    assert code == 0
    assert " MB). Make room and press Enter; Ctrl-C gives up.\n" in err
    assert files() == RESULTS


def test_a_damaged_result_is_plotted_in_part_when_asked_for(run, cli):
    assert run() == (0, "")
    path = Path("here/result.nc")
    whole, values = path.read_bytes(), Trajectory.load(path)["rotor"]["current"].tobytes()
    path.write_bytes(whole.replace(values, bytes(len(values))))
    code, err = cli("plot", "here/result.nc", "--out", "p.png")
    assert code == 2
    assert "here/result.nc: damaged in rotor.current; " in err
    code, err = cli("plot", "here/result.nc", "--out", "p.png", "--salvage")
    assert (code, err) == (0, "warning: here/result.nc: damaged, and lost: rotor.current\n")


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
