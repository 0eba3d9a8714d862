"""A small scenario to spoil."""

import pytest

from motor_scenario import motor_scenario

MOTOR = motor_scenario()


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
