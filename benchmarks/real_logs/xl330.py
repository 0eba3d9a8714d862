"""A Dynamixel XL330 turns a pendulum: the same model by SciPy and by `mime fit`.

    (m l² + J) q'' = tau_m - b q' - m g l sin q - friction,    tau_m = (V - k q') / r
    friction at most c + mu |tau_m + m g l sin q|,   r = R / k in V/(N·m)

Logs of Rhoban/bam (Apache-2.0), branch xl330: JSON files with a head of mass, length and gain.
"""

import dataclasses
import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import mime
from real_logs.measures import local_speed

BENCH, FIT = (Path(__file__).with_name(f"xl330_{name}.toml") for name in ("bench", "fit"))
"""What `mime fit` is given, but for the files of the logs."""
LOAD_FRICTION = """type = "LoadFriction"
coulomb_torque_n_m = 5e-5
motor_load = 0.1
external_load = 0.1"""

GRAVITY = 9.80665
COUNTS_PER_RAD, FULL_DUTY = 2.546, 885.0
"""The firmware's PWM is kp times the error times the first, and full at the second."""
NAMES = ("R/k", "k", "b", "c", "J", "mu")
START = np.log([15.0, 0.35, 0.005, 0.02, 1e-3, 0.1])
_STEPS = 2
"""Between rows."""
_STARTS, _SPREAD = 4, 0.7
"""Of SciPy's fit, and their spread in logarithms: as that of `mime fit`."""


@dataclasses.dataclass(frozen=True)
class Run:
    """One log."""

    file: Path
    kp: float
    mass: float
    length: float
    time_s: np.ndarray
    angle: np.ndarray
    goal: np.ndarray
    volts: np.ndarray
    enabled: np.ndarray


def read(folder: Path) -> list[Run]:
    """All logs of a folder."""
    found = []
    for file in sorted(folder.glob("*.json")):
        head = json.loads(file.read_text())
        rows = head["entries"]
        columns = {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}
        found.append(
            Run(
                file,
                float(head["kp"]),
                head["mass"],
                head["length"],
                columns["timestamp"],
                columns["position"],
                columns["goal_position"],
                columns["input_volts"],
                columns["torque_enable"],
            )
        )
    return found


class Windows:
    """Parts of runs that are simulated side by side, each from the logged angle and speed."""

    def __init__(self, runs: list[Run], seconds: float | None):
        parts = [part for run in runs for part in _parts(run, seconds)]
        rows = max(len(part.time_s) for part in parts)

        def padded(name: str) -> np.ndarray:
            return np.array([np.pad(getattr(p, name), (0, rows - len(p.time_s)), "edge")
                             for p in parts]).T  # fmt: skip

        self.time_s, self.angle = padded("time_s"), padded("angle")
        self.goal, self.volts, self.enabled = padded("goal"), padded("volts"), padded("enabled")
        self.counted = np.array([np.arange(rows) < len(p.time_s) for p in parts]).T
        self.kp = np.array([p.kp for p in parts])
        self.weight = np.array([p.mass * GRAVITY * p.length for p in parts])
        self.inertia = np.array([p.mass * p.length**2 for p in parts])
        self.speed = np.array([local_speed(p.time_s, p.angle, 0) for p in parts])

    def angles(self, z: np.ndarray) -> np.ndarray:
        """Simulated, at every row."""
        r, k, b, c, J = np.exp(z[:5])
        mu = np.exp(z[5]) if len(z) > 5 else 0.0
        inertia, q, w = self.inertia + J, self.angle[0], self.speed
        found = [q]
        for row in range(len(self.time_s) - 1):
            dt = (self.time_s[row + 1] - self.time_s[row]) / _STEPS
            on = self.enabled[row]
            for _ in range(_STEPS):
                duty = np.clip(
                    self.kp * (self.goal[row] - q) * COUNTS_PER_RAD / FULL_DUTY, -1.0, 1.0
                )
                volts, load = on * duty * self.volts[row], self.weight * np.sin(q)
                whole = inertia + dt * (on * k / r + b)
                free = (inertia * w + dt * (volts / r - load)) / whole
                friction = c + mu * np.abs((volts - on * k * w) / r + load)
                w = np.sign(free) * np.maximum(np.abs(free) - dt * friction / whole, 0.0)
                q = q + dt * w
            found.append(q)
        return np.array(found)

    def residuals(self, z: np.ndarray) -> np.ndarray:
        return np.asarray((self.angles(z) - self.angle)[self.counted])

    def mean_error_mrad(self, z: np.ndarray) -> float:
        """Mean absolute error of the angle."""
        return float(1e3 * np.mean(np.abs(self.residuals(z))))


def _parts(run: Run, seconds: float | None) -> list[Run]:
    if seconds is None:
        return [run]
    edges = np.arange(run.time_s[0], run.time_s[-1] - 0.5 * seconds, seconds)
    at = [*np.searchsorted(run.time_s, edges), len(run.time_s)]
    columns = ("time_s", "angle", "goal", "volts", "enabled")
    return [
        dataclasses.replace(run, **{name: getattr(run, name)[a:b] for name in columns})
        for a, b in itertools.pairwise(at)
    ]


def fitted(runs: list[Run], by_load: bool, seconds: float | None = 1.0) -> np.ndarray:
    """Logarithms of the parameters by SciPy's least squares, with a robust loss: of some starts
    that with the least cost. One alone may end 5 % higher, in another valley.
    """
    from scipy.optimize import least_squares

    windows, first = Windows(runs, seconds), START[: 6 if by_load else 5]
    random = np.random.default_rng(0)
    found = [
        least_squares(
            windows.residuals,
            first + (random.normal(0.0, _SPREAD, len(first)) if number else 0.0),
            loss="soft_l1",
            f_scale=0.05,
        )
        for number in range(_STARTS)
    ]
    return np.asarray(min(found, key=lambda each: each.cost).x)


def with_load(text: str) -> str:
    """A bench or a fit whose friction grows with the load."""
    text = text.replace('type = "Coulomb"\ntorque_n_m = 7e-5', LOAD_FRICTION)
    names = ("coulomb_torque_n_m", "motor_load", "external_load")
    unknowns = ", ".join(f'"motor.friction.{name}"' for name in names)
    return text.replace('"motor.friction.torque_n_m"', unknowns)


def fitted_by_mime(runs: list[Run], by_load: bool) -> mime.Fit:
    """What `mime fit fit.toml` finds, alone in a process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = json.dumps([str(run.file.resolve()) for run in runs])
        for file, name in ((BENCH, "bench.toml"), (FIT, "fit.toml")):
            text = file.read_text(encoding="utf-8").replace('"logs/*.json"', files)
            text = with_load(text) if by_load else text
            (folder / name).write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "mime", "fit", str(folder / "fit.toml"), "--quiet"]
        subprocess.run([*command, "--out", str(folder / "out")], check=True)
        simulation = mime.load_scenario(folder / "bench.toml").simulation
        return mime.Fit.load(folder / "out" / "fit.json", simulation)


def mean_error_by_mime(found: mime.Fit, windows: Windows) -> float:
    """In mrad, of MIME's own simulation: windows are members of one batch, inputs held."""
    simulation = found.simulation
    dt, ratio = simulation.timestep, float(simulation.nodes["motor"].gear.ratio)
    since = windows.time_s - windows.time_s[0]
    steps = int(np.ceil(since.max() / dt))
    at = np.array([np.searchsorted(t, dt * np.arange(steps) + 1e-9, "right") - 1 for t in since.T])
    names = {"goal_angle": "goal", "supply_voltage": "volts", "torque_enabled": "enabled"}
    inputs = {
        field: np.take_along_axis(getattr(windows, name).T, at, axis=1)
        for field, name in names.items()
    }
    start = {"angle": ratio * windows.angle[0], "angular_velocity": ratio * windows.speed}
    run = simulation.run_batch(
        steps=steps,
        inputs={"servo": inputs},
        parameters={"servo.kp": windows.kp},
        initial_state={"motor": start},
        progress=False,
    )
    angle = np.column_stack([windows.angle[0], run["motor"]["output_angle"]])
    grid = dt * np.arange(steps + 1)
    rows = np.array([np.interp(t, grid, q) for t, q in zip(since.T, angle, strict=True)]).T
    return float(1e3 * np.mean(np.abs((rows - windows.angle)[windows.counted])))


def main(folder: Path) -> None:
    """Each gain left out in turn: mean error of the angle in windows of 1 s and free."""
    runs = read(folder)
    print("gain left out | model | by | windows, mrad | free, mrad | s")
    for kp in sorted({run.kp for run in runs}):
        others = [run for run in runs if run.kp != kp]
        parts = [Windows([run for run in runs if run.kp == kp], s) for s in (1.0, None)]
        for by_load in (False, True):
            model = "by load" if by_load else "Coulomb"
            begun = time.perf_counter()
            found = fitted_by_mime(others, by_load)
            errors = [mean_error_by_mime(found, part) for part in parts]
            _print(kp, model, "mime fit", errors, begun)
            begun = time.perf_counter()
            z = fitted(others, by_load)
            errors = [part.mean_error_mrad(z) for part in parts]
            _print(kp, model, "SciPy", errors, begun)


def _print(kp: float, model: str, by: str, errors: list[float], begun: float) -> None:
    seconds = time.perf_counter() - begun
    print(
        f"{kp:g} | {model} | {by} | {errors[0]:.1f} | {errors[1]:.1f} | {seconds:.0f}", flush=True
    )
