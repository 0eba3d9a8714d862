"""A small scenario to spoil."""

import pytest

MOTOR = """
[simulation]
duration = 0.01
timestep = 1e-4

[nodes.rotor]
type = "MotorNode"
inertia_kg_m2 = 1e-4
kt_n_m_per_a = 0.05
r_ohm = 1.0
l_henry = 1e-3
damping_n_m_s = 5e-4
command_mode = "voltage"

[inputs."rotor.commanded_voltage"]
kind = "constant"
value = 5.0
"""


@pytest.fixture
def write(tmp_path):
    """Write a scenario: `write(text)`, or `write(replace={old: new}, add=text)` of a motor's."""

    def write(text=None, replace=None, add=""):
        text = MOTOR if text is None else text
        for old, new in (replace or {}).items():
            assert old in text
            text = text.replace(old, new)
        file = tmp_path / "motor.toml"
        file.write_text(text + add, encoding="utf-8")
        return file

    return write
