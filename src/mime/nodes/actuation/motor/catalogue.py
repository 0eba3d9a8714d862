"""Real motors, with figures as their makers print them. Each entry names its sheet."""

from mime.nodes.actuation.motor.datasheet import Datasheet
from mime.nodes.actuation.printed_figures import COLUMNS, FAULHABER, FRAMES, MAXON, ROWS, SERIES


def _sheet(name: str) -> Datasheet:
    figures = dict(zip(COLUMNS, map(float, ROWS[name]), strict=True))
    if name in FRAMES:
        current, *words = FRAMES[name]
        return Datasheet(**figures, stall_current_a=current, source=MAXON.format(*words))
    series = name[10:14]
    source = FAULHABER.format(SERIES[series], series)
    return Datasheet(**figures, reference_temperature_c=22.0, source=source)


CATALOGUE = {name: _sheet(name) for name in ROWS}
"""`MotorNode.from_datasheet("wheel", 1e-4, CATALOGUE["faulhaber_1524t012sr"])`"""
