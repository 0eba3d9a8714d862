"""A small study to run, interrupt and damage; and what a store holds, byte for byte."""

from pathlib import Path

from motor_scenario import motor_scenario

FIGURES = """
[[figures_of_merit]]
name = "largest current"
kind = "max"
field = "rotor.current"

[[figures_of_merit]]
name = "median speed"
kind = "quantile"
q = 0.5
field = "rotor.angular_velocity"
"""
STUDY = """
title = "Rotors"
scenario = "rotor.toml"
draws = {draws}
seed = 7
chunk = 8

[vary]
"rotor.r_ohm" = {{uniform = [0.5, 2.0]}}
"rotor.kt_n_m_per_a" = {{normal = [0.05, 0.002]}}

[keep]
fields = ["rotor.current"]
every = 50
{more}"""


def write_study(folder: Path, draws: int = 40, more: str = "", name: str = "study") -> Path:
    """A study of motors and its scenario; the study's file."""
    keys = "duration = 0.01\ntimestep = 1e-4\nevery = 2"
    (folder / "rotor.toml").write_text(motor_scenario(keys, more=FIGURES))
    file = folder / f"{name}.toml"
    file.write_text(STUDY.format(draws=draws, more=more))
    return file


def content(folder: Path) -> dict[str, bytes]:
    """All files of a store."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != ".lock"
    }
