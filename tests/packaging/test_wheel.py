"""The wheel: has all files, and works in another folder without the source tree."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import mime

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
COMMANDS = [
    "list nodes",
    "list scenarios",
    "show RobotArmNode",
    "run motor_step --quiet",
    "run motor_step --quiet --set motor.r_ohm=1.0 --out again",
    "graph arm_3link_pd --out graph.svg",
    "plot again/result.nc motor.current --out current.png",
    "new-node TorsionSpring --out mine",
    "new-scenario --from arm_3link_pd mine.toml --robots",
]
SCRIPT = """
import mime, pytest, sys
from mime.cli import main
for command in sys.argv[1:]:
    main(command.split())
assert pytest.main(["-q", "-p", "no:cacheprovider", "mine"]) == 0
print(mime.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """A virtual environment with MIME from the wheel, and all else from this one."""
    folder = tmp_path_factory.mktemp("environment")
    _run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    # A folder named in a .pth file is searched, but its own .pth files (the source tree's) are not.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python"]
    _run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=folder)
    return folder


def _run(*command, cwd):
    """Standard output of a command that must go well, without the source tree in its path."""
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=240,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel):
    source = ROOT / "src"
    files = {path.relative_to(source).as_posix() for path in (source / "mime").rglob("*.*")}
    files = {name for name in files if (source / name).is_file() and "__pycache__" not in name}
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == files
    assert {Path(name).suffix for name in packed} >= {".toml", ".urdf", ".txt"}
    assert packed >= {"mime/__init__.pyi", "mime/py.typed"}  # names and types for type checkers


def test_the_command_works_in_another_folder(environment, tmp_path):
    command = environment / "bin" / "mime"
    assert _run(command, "--version", cwd=tmp_path) == f"mime {mime.__version__}\n"
    assert "new-node" in _run(command, "completion", "bash", cwd=tmp_path)


@pytest.mark.soak(
    "the wheel has every file and its command works; commands are tested from the sources"
)
def test_every_subcommand_and_a_new_node_work_from_the_wheel(environment, tmp_path):
    python = environment / "bin" / "python"
    lines = _run(python, "-c", SCRIPT, *COMMANDS, cwd=tmp_path).splitlines()
    assert Path(lines[-1]).is_relative_to(environment)
    for file in (
        "mime_output/motor_step/report.html",
        "again/plot_1.png",
        "graph.svg",
        "current.png",
    ):
        assert (tmp_path / file).stat().st_size > 1000, file
    assert any(line.startswith("4 passed") for line in lines)  # by the tests of the new node
