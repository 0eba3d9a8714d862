"""What the shells that are installed offer after Tab: typed into a terminal, and read off it."""

import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from mime.cli import main

OFFERED = {
    "ru": "run",
    "run gear": "geared_motor_voltage geared_by_me.toml",
    "run --res": "--resume",
    "run motor_step --out su": "sub/",
    "run motor_step --set ": "",
    "plot geared_b": "geared_by_me.toml",
    "de": "demo design",
    "swe": "sweep",
    "tu": "tune",
    "opt": "optimise",
    "design geared_b": "geared_by_me.toml",
    "sweep geared_b": "geared_by_me.toml",
    "optimise geared_b": "geared_by_me.toml",
    "tune geared_b": "geared_by_me.toml",
    "show maxon_re4": "maxon_re40_148877",
    "show MotorN": "MotorNode",
    "show desk": "desktop_arm_6axis desktop_arm_elastic",
    "list mo": "models motors",
    "completion z": "zsh",
    "new-scenario --from gear": "geared_motor_voltage",
    "view model:desk": "model:desktop_arm_6axis",
    "view model:pl": "model:planar_arm_3link",
    "view mod": "model:desktop_arm_6axis model:planar_arm_3link model:satellite_arm",
}
"""What is typed, and all that there is for it. Files are offered where they may stand only."""


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    """With a file and a folder that could be meant, and the three scripts outside of it."""
    monkeypatch.setattr("mime.cli.enable_compilation_cache", lambda: None)
    for shell in ("bash", "zsh", "fish"):
        main(["completion", shell])
        (tmp_path / shell).mkdir()
        (tmp_path / shell / "_mime").write_text(capsys.readouterr().out, encoding="utf-8")
    here = tmp_path / "here"
    (here / "sub").mkdir(parents=True)
    for name in ("geared_by_me.toml", "motors.txt"):
        (here / name).touch()
    return here


class Terminal:
    """A shell at a terminal."""

    def __init__(self, words, folder):
        self.end, shells = pty.openpty()
        environment = {"PATH": os.environ["PATH"], "TERM": "vt100"}
        ends = dict.fromkeys(("stdin", "stdout", "stderr"), shells)
        self.shell = subprocess.Popen(
            words, cwd=folder, env=environment, start_new_session=True, **ends
        )
        os.close(shells)

    def told(self, typed, *, until):
        """What is written until all these words are there, or nothing comes any more."""
        os.write(self.end, typed.encode())
        told, end = "", time.monotonic() + 20
        while not all(word in told for word in until) and time.monotonic() < end:
            if select.select([self.end], [], [], 0.2)[0]:
                told += os.read(self.end, 65536).decode()
                told = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|[\r\x07\x00]", "", told)
        return told

    def after(self, typed, names):
        """What a key brings up: the names are waited for, and what may come with them."""
        told = self.told(typed, until=names)
        return told + self.told("\x15echo 6$((6 * 7))9\n", until=["6429"])  # without the line

    def close(self):
        self.shell.kill()
        self.shell.wait()
        os.close(self.end)


SHELLS = {
    "bash": (
        ["bash", "--norc", "--noprofile", "-i"],
        "bind 'set show-all-if-ambiguous on'; source {script}",
    ),
    "zsh": (
        ["zsh", "-f", "-i"],
        "fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; unsetopt list_ambiguous",
    ),
}


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shutil.which(shell)])
def test_tab_offers_what_may_be_meant(shell, folder):
    script = folder.parent / shell / "_mime"
    words, setup = SHELLS[shell]
    terminal = Terminal(words, folder)
    try:
        terminal.after(setup.format(script=script, folder=script.parent) + "\n", [])
        for typed, names in OFFERED.items():
            told = terminal.after(f"mime {typed}\t", names.split()).partition("echo 6")[0]
            for name in names.split():
                assert name in told, (typed, told)
            for name in ("motors.txt", "geared_by_me.toml", "sub/", "mouse_in_maze"):
                assert name not in told or name in names, (typed, told)
    finally:
        terminal.close()


def test_help_lists_what_fits_sweeps_designs_and_tunes(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    told = capsys.readouterr().out
    assert end.value.code == 0
    for command in ("fit", "sweep", "optimise", "design", "tune"):
        assert re.search(rf"• {command} +[A-Z]", told), command


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish_offers_what_may_be_meant(folder):
    script = folder.parent / "fish" / "_mime"
    asked = "\n".join(f"echo @{typed}@; complete -C 'mime {typed}'" for typed in OFFERED)
    words = ["fish", "--no-config", "-c", f"source {script}\n{asked}"]
    environment = {**os.environ, "HOME": str(folder)}
    told = subprocess.run(words, capture_output=True, text=True, cwd=folder, env=environment)
    assert told.stderr == ""
    answers = dict(re.findall(r"@(.*)@\n([^@]*)", told.stdout))
    found = {
        typed: {line.partition("\t")[0] for line in lines.splitlines()}
        for typed, lines in answers.items()
    }
    assert found == {typed: set(names.split()) for typed, names in OFFERED.items()}
