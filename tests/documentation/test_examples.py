"""The examples: each runs in an empty folder, prints these figures and writes these files."""

import runpy
from pathlib import Path

import pytest

from documentation.pages import agree

FOLDER = Path(__file__).parents[2] / "examples"
SHOWN = {
    "two_nodes": """
        period 0.3628 s, in closed form 0.3628 s
        1000 springs, largest speed 22.20 rad/s
        d angle/dk = 0.1770 rad/(N·m/rad)
        """,
    "elastic_drive": """
        speed 4.7808 rad/s, in closed form 4.7809 rad/s
        largest current 8.84 A
        largest deflection 10.94°
        """,
    "elastic_joint_bode": """
        exact joint: resonance 49.0 rad/s, anti-resonance 20.0 rad/s
        inserted body of 0.025 kg·m²: resonance 43.0 rad/s, anti-resonance 19.5 rad/s
        """,
    "measured_motor": """
        The first 0.6 s, and nothing known beforehand:
        0 of 6 unknowns known; the parameters have rank 2 of 5, from 95 values of 1 sensor
        ...
        known only together:
          kt/(R b + kt²)           402.7 rad/(V·s) ± 0.86 %
        ...
        R, L and b as the data sheet has them, to 10 %:
        6 of 6 unknowns known; the parameters have rank 5 of 5, from 95 values of 1 sensor
        ...
        All 1.6 s:
        The model leaves 0.6 % of motor.rotor_angle unexplained; intervals are widened
        ...
        """,
    "rotor_on_arm": """
        largest tracking error 0.4189°
        rotor speed at the end 230.7630 rad/s, in closed form 230.7692 rad/s
        """,
    "helical_drive": """
        step lost at 17.6 Hz; of the mean field 16.1 Hz
        sine of the lag at 8 Hz 0.518; f / f_so = 0.496
        swims 5.000 mm/s; 8 turns are 5.050 mm
        the swimmer costs 9.007 µA; torque over kt, less back-EMF 9.006 µA
        field's axis tilted by 5.87°, within 0.11° of what is told
        way per volt 4.78376e-04 m, by central differences 4.78376e-04 m
        way per metre of standoff -1.74774e-03 m, by central differences -1.74774e-03 m
        way per metre of pitch 1.89727e-01 m, by central differences 1.89727e-01 m
        fastest: 2.588 V, 7.92 Hz, 150 mm away: 5.10 mm/s, 60.0° behind at most
        """,
    "mouse": """
        ...
        goal found after   36.17 s
        home again after   50.14 s
        speed run          7.67 s
          ideal            7.07 s, knowing the whole maze
        estimation error   3.2 mm at most
        walls touched      0 times
        """,
}
LONG = {"helical_drive", "measured_motor", "mouse", "rotor_on_arm"}


def test_every_example_is_here():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(SHOWN)


@pytest.mark.small("two_nodes", "elastic_drive", "elastic_joint_bode")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in LONG else []) for n in SHOWN]
)
def test_an_example_prints_and_draws_what_it_says(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert agree(SHOWN[name], printed), printed
    pictures = list(tmp_path.glob(f"{name}*.png"))
    assert pictures
    assert all(path.stat().st_size > 10_000 for path in pictures)
