"""`mime.design`: the experiment to run next, by gradient through the simulator.

    maximise  log det F_parameters      F = JᵀJ over the noise, delays and offsets projected out
    over      u(t) = limit tanh(sum a_k B_k(t))     B: harmonics of 1 / T and a constant, or splines

D-optimal: the volume of the intervals, whatever units the parameters have. Limits of other fields
(amperes, speed) are limits of the optimiser, and at the end the input shrinks until it keeps them.
"""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

import jax
import numpy as np

from mime._files import write_atomically
from mime._text import quoted
from mime.core.arguments import instance, mapping, real, whole, wrong
from mime.core.arguments import path as path_of
from mime.core.problem import InputError
from mime.fitting.exact import note, with_exact_motors
from mime.fitting.log import count_rows
from mime.fitting.model import in_double
from mime.fitting.plan import Outlook, Plan
from mime.fitting.unknown import Unknown
from mime.running.progress import Progress, check_progress
from mime.running.simulation import Simulation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHAPES = ("fourier", "spline")


@dataclasses.dataclass(frozen=True)
class Design:
    """An input to run, what it would tell, and what a step and a chirp as long would."""

    time_s: np.ndarray
    inputs: Mapping[str, np.ndarray]
    """By field, in its own unit; each value holds until the next row."""
    outlook: Outlook
    others: Mapping[str, Outlook]
    """`step` and `chirp`, within the same limits."""
    reached: Mapping[str, tuple[float, float, str]]
    """What each field with a limit reaches, the limit, and their unit."""
    is_complete: bool = True
    """False when it was interrupted: the best input until then."""
    ends: tuple[Outlook, ...] = ()
    """Where the descent from each start has ended; the best of them is the design."""
    notes: tuple[str, ...] = ()
    """What was done otherwise than asked."""

    def __str__(self) -> str:
        names = list(self.outlook.half)
        width = max(map(len, names))
        columns = {"design": self.outlook, **self.others}
        lines = [f"{'':{width}}  " + "".join(f"{title:>12}" for title in columns)]
        for name in names:
            cells = "".join(f"{100 * found.half[name]:>10.3g} %" for found in columns.values())
            lines.append(f"{name:{width}}  {cells}")
        dets = "".join(f"{found.log_det:>12.2f}" for found in columns.values())
        lines.append(f"{'log det':{width}}  {dets}")
        for field, (value, limit, unit) in self.reached.items():
            lines.append(f"{field} reaches {value:.4g} of {limit:g} {unit}".rstrip())
        if len(self.ends) > 1:
            found = sorted(end.log_det for end in self.ends)
            lines.append(f"log det from {len(found)} starts: {found[0]:.2f} to {found[-1]:.2f}")
        if not self.is_complete:
            lines.append("interrupted: the best input until then")
        lines.extend(self.notes)
        return "\n".join(lines)

    def gain(self, name: str, other: str) -> float:
        """By which factor the interval of a parameter is narrower than with `step` or `chirp`."""
        return self.others[other].half[name] / self.outlook.half[name]

    def plot(self) -> "Figure":
        """The inputs over time."""
        from mime.fitting.design_page import picture

        return picture(self)

    def report(self, title: str = "Design") -> str:
        """One HTML page with all of it."""
        from mime.fitting.design_page import report_page

        return report_page(self, title)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write time and inputs for the rig."""
        table = np.column_stack([self.time_s, *self.inputs.values()])
        heading = ",".join(["time", *self.inputs])

        def write(part: Path) -> None:
            np.savetxt(part, table, "%.9g", ",", header=heading, comments="")

        write_atomically(path_of("path", path), write)


def design(
    simulation: Simulation,
    inputs: Mapping[str, float],
    sensors: Mapping[str, float],
    unknowns: Mapping[str, Unknown | float | None] | Sequence[str],
    *,
    duration: SupportsFloat,
    period: SupportsFloat,
    limits: Mapping[str, float] | None = None,
    shape: str = "fourier",
    harmonics: SupportsIndex = 10,
    constants: Mapping[str, Mapping[str, Any]] | None = None,
    initial: Mapping[str, float] | None = None,
    starts: SupportsIndex = 4,
    seed: SupportsIndex = 0,
    progress: Progress = False,
) -> Design:
    """The input within limits that tells most of the unknowns.

    simulation       the graph, with the best values of its parameters so far
    inputs           `{"motor.commanded_voltage": 12.0}`: what to drive, and its largest value
    sensors          `{"motor.current": 0.05}`: what will be logged, with its noise, in their units
    unknowns         as in `fit`
    duration         seconds of the experiment, and `period` seconds from row to row of its log
    limits           `{"motor.current": 5.0}`: largest values of other fields
    shape            "fourier", or "spline" for cubic splines
    harmonics        of 1 / duration: the highest frequency is their number times that. A spline
                     has as many pieces as a series of so many harmonics has terms
    constants        `{node: {input: constant}}`, external inputs that are not driven
    initial          `{"motor.angular_velocity": 3.0}`: the state at the start, else at rest
    starts, seed     how many inputs it starts from, and what draws them
    progress         as in `Simulation.run`; Ctrl-C ends it with the best input so far
    """
    instance("simulation", simulation, Simulation)
    period_s = real("period", period, "s", above=0)
    rows = count_rows(real("duration", duration, "s", above=0), period_s)
    most = whole("harmonics", harmonics, 1, rows // 4)
    count, random = whole("starts", starts, 1, 1000), np.random.default_rng(whole("seed", seed))
    driven = _positive("inputs", inputs)
    noise, bounds = _positive("sensors", sensors), _positive("limits", limits)
    check_progress(progress)
    if shape not in SHAPES:
        raise wrong("shape", f"one of {quoted(SHAPES)}", shape)
    if not driven or not noise:
        raise InputError("design needs an input to drive and a sensor to log", place=("inputs",))
    log = {"constants": constants, "initial": dict(initial or {})}
    with jax.enable_x64(True):
        double, exact = with_exact_motors(in_double(simulation))  # as the fit of its log
        plan = Plan(double, driven, noise, bounds, unknowns, rows, period_s, **log)
        plan.refuse_hopeless()
        waves = basis(shape, plan.part, most)
        shapes, is_complete = plan.ends(waves, count, random, progress)
        ends = tuple(map(plan.outlook, shapes))
        best = shapes[int(np.argmax([end.log_det for end in ends]))]
        chirp = np.sin(2 * np.pi * (plan.part + 0.5 * (most - 1) * plan.part**2))
        step = np.where(plan.part < 0.5, 1.0, -1.0)
        others = {
            name: plan.outlook(plan.kept(np.tile(wave, (len(driven), 1))))
            for name, wave in (("step", step), ("chirp", chirp))
        }
        time = period_s * np.arange(rows)
        outlook, reached = plan.outlook(best), plan.reached(best)
        return Design(
            time, outlook.inputs, outlook, others, reached, is_complete, ends, note(exact)
        )


def basis(shape: str, part: np.ndarray, harmonics: int) -> np.ndarray:
    """B_k at parts of the duration (functions, rows): 2 harmonics + 1 of them."""
    if shape == "spline":
        from scipy.interpolate import BSpline

        degree, count = 3, max(2 * harmonics + 1, 4)
        inner = np.linspace(0.0, 1.0, count - degree + 1)
        knots = np.concatenate([np.zeros(degree), inner, np.ones(degree)])
        return np.asarray(BSpline.design_matrix(part, knots, degree).toarray().T)
    angles = 2 * np.pi * np.outer(np.arange(harmonics + 1), part)
    return np.concatenate([np.sin(angles[1:]), np.cos(angles)])


def _positive(name: str, given: Any) -> dict[str, float]:
    found = mapping(name, given, "{'node.field': number}")
    return {field: real(f"{name}[{field!r}]", value, above=0) for field, value in found.items()}
