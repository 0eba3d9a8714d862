"""A motor's log, fitted beside MuJoCo's own identification.

R, L, kt, J and b of a motor from a second of voltage steps at 1 kHz, noise of 0.5 rad/s and 50 mA,
all starts 1.5 times the truth. Nobody's simulator made the log: it is a matrix exponential in
NumPy. `mujoco.sysid` fits the states of its `dcmotor` at the log's own step, sensors weighed as it
does by default; MIME estimates noise and delays besides, and tests its intervals and its residuals.
A fit is from the log in memory to the result with intervals, from one start, after everything has
compiled.

Below are errors where the log does not tell, or its clock is late: what each prints as the value of
R, L, kt, J or b, the worst of them. Without the current none can be known: MIME prints none, and
`mujoco.sysid` prints values with infinite intervals. One row late it has L with ± 1.1 %.
"""

import io
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from harness import Case, Figure, Peer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import mime
from fitting.motors import COLUMNS, PERIOD, TRUE, UNKNOWNS, bench, motor_log

ALL = ("speed", "current")
XML = """
<mujoco>
  <option timestep="{period}" gravity="0 0 0" integrator="implicitfast"/>
  <worldbody>
    <body>
      <inertial pos="0 0 0" mass="1e-9" diaginertia="1e-12 1e-12 1e-12"/>
      <joint name="shaft" type="hinge" axis="0 0 1" armature="{J}" damping="{b}"/>
    </body>
  </worldbody>
  <actuator>
    <dcmotor name="motor" joint="shaft" motorconst="{K}" resistance="{R}" inductance="{L}"/>
  </actuator>
</mujoco>"""
OFF = 0.02
"""What the two may differ by where all can be known: MuJoCo's step of 1 ms is in it."""


def cases(threads: int) -> Iterator[Case | Figure]:
    """The happy case by time, the others by what is printed."""
    log = motor_log()
    peer = Peer("mujoco.sysid", lambda: lambda: theirs(log, ALL)[0], OFF, 0.5, worst_ratio)
    yield Case("volts, speed, current", lambda: lambda: ours(log, ALL), (peer,), 1, "fit", 5, True)
    yield Figure("the same: simulations, ours", lambda: simulations(log)[0], "of one motor")
    yield Figure("the same: simulations, mujoco.sysid", lambda: simulations(log)[1], "of one motor")
    for title, late, sensors in (
        ("volts, speed", 0.0, ("speed",)),
        ("volts, speed, current, one row late", 1.0, ALL),
        ("volts, speed, current, 0.4 rows late", 0.4, ALL),
    ):
        made = motor_log(late=(late, late))
        yield Figure(f"{title}: error of ours", printed(ours, made, sensors), "%", 2.0)
        yield Figure(f"{title}: error of mujoco.sysid", printed(theirs, made, sensors), "%")


def printed(fit: Callable[..., Any], log: Any, sensors: tuple[str, ...]) -> Callable[[], float]:
    """The largest error of a value that is printed; none printed is none wrong."""

    def measure() -> float:
        found = fit(log, sensors)
        values = found[0] if isinstance(found, tuple) else found
        off = np.abs(np.array(values, float) / list(TRUE.values()) - 1)
        return float(100 * np.nanmax(off)) if np.isfinite(off).any() else 0.0

    return measure


def worst_ratio(ours: Any, theirs: Any) -> float:
    return float(np.max(np.abs(np.asarray(ours) / np.asarray(theirs) - 1)))


@cache
def model() -> mime.Simulation:
    return bench()


def fitted(log: Mapping[str, Any], sensors: tuple[str, ...]) -> mime.Fit:
    columns = {name: COLUMNS[name] for name in ("volts", *sensors)}
    return mime.fit(model(), log, columns, UNKNOWNS, starts=1, progress=False)


def ours(log: Mapping[str, Any], sensors: tuple[str, ...]) -> list[float]:
    """Values in the order of TRUE; NaN where none is told."""
    found = fitted(log, sensors)
    return [float("nan") if (v := found[name].value) is None else v for name in UNKNOWNS]


def simulations(log: Mapping[str, Any]) -> tuple[float, float]:
    """Motors simulated: an exact Jacobian by n unknowns is as n + 1 of them."""
    found = fitted(log, ALL)
    return found.simulations * (len(found) + 1), theirs(log, ALL)[1]


def theirs(log: Mapping[str, Any], sensors: tuple[str, ...]) -> tuple[list[float], int]:
    """Values in the order of TRUE by `mujoco.sysid`, and how many motors it simulated."""
    import mujoco
    from mujoco import sysid

    if not hasattr(sysid, "optimize"):
        raise ModuleNotFoundError("mujoco.sysid is empty: pip install mujoco[sysid]")
    logging.getLogger("absl").setLevel(logging.ERROR)
    start = {name: 1.5 * value for name, value in TRUE.items()}
    spec = mujoco.MjSpec.from_string(XML.format(period=PERIOD, **start))
    params = sysid.ParameterDict()
    for name, value in start.items():
        params.add(
            sysid.Parameter(
                name, nominal=value, min_value=value / 5, max_value=5 * value,
                modifier=_MODIFIERS[name],
            )
        )  # fmt: skip
    compiled = spec.compile()
    signals = {
        "speed": ("shaft_qvel", sysid.SignalType.MjStateQVel),
        "current": ("motor_act", sysid.SignalType.MjStateAct),
    }
    names = [signals[name] for name in sensors]
    data = np.column_stack([log[name] for name in sensors])
    measured = sysid.TimeSeries.from_names(log["time"], data, compiled, names)
    control = sysid.TimeSeries(log["time"], np.asarray(log["volts"])[:, None])
    rest = sysid.create_initial_state(compiled, np.zeros(1), np.zeros(1), np.zeros(1))
    sequences = sysid.ModelSequences("motor", spec, "log", rest, control, measured, True)
    count = 0
    inner = sysid.build_residual_fn(models_sequences=[sequences], enabled_observations=names)

    def residual(x: Any, given: Any, **options: Any) -> Any:
        nonlocal count
        count += 1 if x.ndim == 1 else x.shape[1]
        return inner(x, given, **options)

    with redirect_stdout(io.StringIO()):
        found, result = sysid.optimize(params, residual, verbose=False)
        left, _, _ = inner(result.x, found)
        sysid.calculate_intervals(left, result.jac)
    return [float(found[name].value[0]) for name in TRUE], count


def _motor(spec: Any) -> Any:
    return spec.actuators[0]


def _resistance(spec: Any, parameter: Any) -> None:
    _motor(spec).gainprm[0] = parameter.value[0]


def _inductance(spec: Any, parameter: Any) -> None:
    """As a time constant, L / R; R is set before."""
    _motor(spec).dynprm[0] = parameter.value[0] / _motor(spec).gainprm[0]


def _constant(spec: Any, parameter: Any) -> None:
    _motor(spec).gainprm[1] = parameter.value[0]


def _inertia(spec: Any, parameter: Any) -> None:
    spec.joints[0].armature = parameter.value[0]


def _damping(spec: Any, parameter: Any) -> None:
    spec.joints[0].damping[0] = parameter.value[0]


_MODIFIERS = dict(zip(TRUE, (_resistance, _inductance, _constant, _inertia, _damping), strict=True))
