"""A benchmark measures numbers and holds each to a limit; its fault must make it fail.

    @benchmark(100, "Speed after a torque step", MotorNode, scaled("inertia_kg_m2", 0.5))
    def torque_step(Motor, *, motor=REFERENCE, timestep_s=1e-4, commanded_torque_n_m=0.01):
        '''w(t) = tau/b (1 - e^{-b t/J})

        Reference: A damped rotor from rest, in NumPy.

        Procedure:
        1. Run with a constant torque.
        2. Compare the speed after each step with the closed form.

        Covers: the mechanical path of torque mode
        Excludes: the winding (MIME-VER-101)
        '''
        ...
        yield Measurement("relative rms error", rms, limit=6e-5, why="...")

The function takes the thing under test as its argument and never names it otherwise, so that the
same lines measure the sound subject and the one with the fault. Its keyword arguments are the
configuration, and its docstring is the text of the report.
"""

import importlib.util
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from mime._text import quoted

Subject = Callable[..., Any]


@dataclass(frozen=True)
class Measurement:
    """One number of a benchmark and the limit that it must keep."""

    name: str
    value: float
    limit: float
    unit: str = "1"
    at_least: bool = False
    """True when `limit` is the smallest value allowed; otherwise it is the largest."""
    why: str = ""
    """Why the limit is what it is."""

    @property
    def passed(self) -> bool:
        """True within the limit; never for a NaN."""
        return bool(self.value >= self.limit if self.at_least else self.value <= self.limit)


@dataclass(frozen=True)
class Convergence:
    """Errors against a parameter that goes to zero, for the plot: error ~ parameter^order."""

    parameter: str
    """The name with its unit: "timestep (s)"."""
    values: tuple[float, ...]
    error: str
    """The name with its unit: "error of the speed (rad/s)"."""
    errors: Mapping[str, tuple[float, ...]]
    """One curve per label."""
    order: float
    """What the theory says; drawn as a slope."""


Finding = Measurement | Convergence

SECTIONS = ("Reference", "Procedure", "Covers", "Excludes")
"""What the docstring of a benchmark holds after its goal."""


@dataclass(frozen=True)
class Fault:
    """A deliberate mistake in the subject, in words and as a function of the sound subject."""

    description: str
    apply: Callable[[Subject], Subject]

    @classmethod
    def of(cls, mistake: "Fault | Subject") -> "Fault":
        """A mistake that is a class takes the subject's place; its docstring is the description."""
        if isinstance(mistake, Fault):
            return mistake
        words = inspect.cleandoc(mistake.__doc__ or "")
        return cls(words, (lambda _: mistake) if isinstance(mistake, type) else mistake)


@dataclass(frozen=True)
class Benchmark:
    """What a report needs to know besides the numbers."""

    number: int
    title: str
    subject: Subject
    """The node or function under test, given to `measure`."""
    fault: Fault
    measure: Callable[..., Iterator[Finding]] = field(repr=False)
    node_id: str
    """The algorithm's id: "MIME-NODE-100"."""
    kind: str = "analytic"
    """What the truth is: "analytic", "independent code", "published figures", ..."""
    needs: tuple[str, ...] = ()
    """Packages beyond MIME's own dependencies, by the names they are imported with."""

    @property
    def id(self) -> str:
        """MIME-VER-100"""
        return f"MIME-VER-{self.number}"

    @property
    def configuration(self) -> dict[str, object]:
        """The keyword arguments of `measure`, {"timestep_s": 1e-4}; a mapping gives its entries."""
        configuration: dict[str, object] = {}
        for name, argument in inspect.signature(self.measure).parameters.items():
            if argument.kind is argument.KEYWORD_ONLY:
                value = argument.default
                configuration |= value if isinstance(value, Mapping) else {name: value}
        return configuration

    @property
    def text(self) -> dict[str, str]:
        """The docstring of `measure` by section, as Markdown; what stands first is the goal."""
        heading = rf"^({'|'.join(SECTIONS)}): *\n?"
        goal, *rest = re.split(heading, inspect.cleandoc(self.measure.__doc__ or ""), flags=re.M)
        text = {"Goal": goal} | dict.fromkeys(SECTIONS, "") | dict(zip(rest[::2], rest[1::2]))
        return {section: words.strip() for section, words in text.items()}

    @property
    def missing(self) -> list[str]:
        """The packages of `needs` that are not installed."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


@dataclass(frozen=True)
class Outcome:
    """What one run of a benchmark found."""

    benchmark: Benchmark
    measurements: tuple[Measurement, ...]
    convergences: tuple[Convergence, ...]

    @property
    def passed(self) -> bool:
        """True when every number keeps its limit."""
        return all(measurement.passed for measurement in self.measurements)


@dataclass(frozen=True)
class Verdict:
    """What a benchmark found in the sound subject, and in the one with the fault."""

    sound: Outcome
    faulty: Outcome

    @property
    def caught(self) -> bool:
        """True when the fault made a number leave its limit: the benchmark can fail."""
        return not self.faulty.passed

    @property
    def passed(self) -> bool:
        """True when the sound subject passes and the faulty one does not."""
        return self.sound.passed and self.caught


REGISTRY: dict[int, Benchmark] = {}


def benchmark(
    number: int,
    title: str,
    subject: Subject,
    fault: Fault | Subject,
    *,
    node_id: str | None = None,
    kind: str = "analytic",
    needs: tuple[str, ...] = (),
) -> Callable[[Callable[..., Iterator[Finding]]], Benchmark]:
    """Register the decorated generator.

    `fault` may be the function or class that makes the mistake (see `Fault.of`). A node has its
    `node_id` in its metadata; any other subject needs one here.
    """

    def register(measure: Callable[..., Iterator[Finding]]) -> Benchmark:
        if number in REGISTRY:
            raise ValueError(
                f"MIME-VER-{number} is already '{REGISTRY[number].title}'; '{title}' needs its own"
            )
        algorithm = node_id or subject.meta.id  # type: ignore[attr-defined]
        made = Benchmark(number, title, subject, Fault.of(fault), measure, algorithm, kind, needs)
        if absent := [section for section, words in made.text.items() if not words]:
            raise ValueError(f"{made.id} '{title}': its docstring lacks {quoted(absent)}")
        REGISTRY[number] = made
        return made

    return register


def run_benchmark(benchmark: Benchmark, faulty: bool = False) -> Outcome:
    """Measure in double precision; with `faulty`, the subject has its deliberate fault."""
    subject = benchmark.fault.apply(benchmark.subject) if faulty else benchmark.subject
    with jax.enable_x64(True):
        findings = list(benchmark.measure(subject))
    measurements = tuple(f for f in findings if isinstance(f, Measurement))
    if not measurements:
        raise ValueError(f"{benchmark.id} measured nothing, so it could not fail")
    return Outcome(
        benchmark, measurements, tuple(f for f in findings if isinstance(f, Convergence))
    )


def judge(benchmark: Benchmark) -> Verdict:
    """Measure the sound subject and the faulty one."""
    return Verdict(run_benchmark(benchmark), run_benchmark(benchmark, faulty=True))


def scaled(parameter: str, factor: float) -> Fault:
    """The subject built with a parameter ("r_ohm", "gear.ratio") times `factor`, where given."""
    owner, _, name = parameter.rpartition(".")

    def apply(subject: Subject) -> Subject:
        def build(*args: Any, **parameters: Any) -> Any:
            effect = parameters.get(owner)
            if effect is not None:
                value = factor * getattr(effect, name)
                parameters |= {owner: replace(effect, **{name: value})}
            elif name in parameters and not owner:
                parameters |= {name: factor * parameters[name]}
            return subject(*args, **parameters)

        return build

    return Fault(f"`{parameter}` times {factor:g}", apply)


def replaced(description: str, **values: Any) -> Fault:
    """The subject built with other values of some of its parameters, given or not."""

    def apply(subject: Subject) -> Subject:
        return lambda *args, **parameters: subject(*args, **parameters | values)

    return Fault(description, apply)


def largest(errors: Any) -> float:
    """max |errors|; NaN when one of them is, which keeps no limit."""
    return float(np.max(np.abs(np.asarray(errors))))
