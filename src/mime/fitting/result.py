"""What a fit returns: what is known with its interval, what is known only together, what is not."""

import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mime._text import Travels, nearest, quoted, warn_user
from mime.fitting.advice import Advice, Longer, OtherInput
from mime.fitting.combinations import Combination
from mime.fitting.explanation import Check, Explained, pooled
from mime.fitting.motion_advice import OtherMotion
from mime.fitting.parameters import KINDS
from mime.fitting.rank import Kind
from mime.reporting.records import read_record, write_record
from mime.running.simulation import Simulation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FORMAT = "MIME fit 4"


class FitError(Travels, ValueError):
    """What a fit does not give: a value that is not known, a simulation that would be a guess."""


class FitWarning(UserWarning):
    """The model of a fit leaves a part of its logs unexplained; `fit.explained` says what."""


@dataclasses.dataclass(frozen=True)
class Estimate:
    """One unknown. `value`, `low` and `high` (95 %) are None unless it is known."""

    name: str
    unit: str
    quantity: str
    """`parameter`, `body` (a moment of one), `initial`, `delay`, `offset` or `gain`."""
    kind: Kind
    """`known`, `combination` (known only together with others), `unknown`, or at its `bound`."""
    value: float | None
    low: float | None
    high: float | None
    start: float
    has_prior: bool
    """The start is a value to keep where the log tells nothing."""
    interval: str = "linear"
    """`linear`: from the Jacobian. `windows`: from leaving out windows of the logs, where residuals
    are not white. `profile`: from the likelihood, where the problem is not linear enough. `rough`:
    as the first two, since the cost is too rough for a profile."""
    nonlinearity: float = 0.0
    """How far a linear interval is off, over its half-width; beyond 0.1 it is profiled."""

    @property
    def is_known(self) -> bool:
        """True when it has a value."""
        return self.kind == "known"


@dataclasses.dataclass(frozen=True)
class Trace:
    """A sensor in a log: what was measured and what the fitted model gives."""

    log: str
    field: str
    unit: str
    time_s: np.ndarray
    measured: np.ndarray
    fitted: np.ndarray
    held_out: bool


@dataclasses.dataclass(frozen=True)
class Outliers:
    """Values of a sensor in a log that lie far beyond its noise."""

    file: str
    column: str
    field: str
    count: int
    """Of all values."""
    rows: tuple[int, ...]
    """Those of the outliers: lines of the file, or indices of a log in memory."""


@dataclasses.dataclass(frozen=True)
class FreeRun:
    """A sensor in a simulation of a whole log that was fitted, or held out, in windows."""

    log: str
    field: str
    unit: str
    left: float
    """Root mean square of the residual; infinite where the simulation leaves the finite numbers."""
    spread: float
    """Standard deviation of the signal."""
    held_out: bool


@dataclasses.dataclass(frozen=True)
class InWindows:
    """Logs were simulated in windows, each from initial states of its own."""

    seconds: float
    """The longest that a window may be."""
    fitted: int
    held_out: int
    """How many windows of fitted logs there are, and of those held out."""
    states: tuple[str, ...]
    """Initial states that are free: positions, speeds and temperatures, as `initial` names them."""
    free_runs: tuple[FreeRun, ...]
    """Of whole logs, each from where its first window starts."""
    others: tuple[str, ...] = ()
    """Free as well: currents, and what controllers and servos remember."""


@dataclasses.dataclass(frozen=True)
class Fit(Mapping[str, Estimate]):
    """`fit["motor.r_ohm"].value`; `print(fit)` tells all of it."""

    estimates: tuple[Estimate, ...]
    combinations: tuple[Combination, ...]
    trade_offs: tuple[tuple[str, str, float], ...]
    rank: int
    """Directions of the parameters that the logs determine."""
    noise: Mapping[str, tuple[float, str]]
    """Standard deviation and unit of each sensor's noise."""
    checks: tuple[Check, ...]
    held_out: tuple[Check, ...]
    covariance: np.ndarray
    """Of the estimates that are known, in the order of `known`: of values, not of logarithms."""
    rows: int
    simulations: int
    starts: tuple[int, int]
    """How many starts ended in this minimum, of how many."""
    timestep: float
    """Seconds; the steps that the fit has taken."""
    step_error: float
    """What steps half as long would change, over the noise."""
    kept: Mapping[str, Any]
    """Parameters for a simulation: as found, and near the prior where the logs leave them open."""
    advice: Advice | None = None
    """The sensor that would tell most of what is not known, and what it would tell."""
    longer: Longer | None = None
    """How often the same experiment would have to run to tell more."""
    other_input: OtherInput | None = None
    """An input of the same size that would tell more."""
    loss: str = "linear"
    outliers: tuple[Outliers, ...] = ()
    sampled: tuple[str, ...] = ()
    """Nodes that kept their own rate, as controllers do."""
    undeclared: tuple[str, ...] = ()
    """Nodes that do not say whether they are sampled, and were stepped as physics is."""
    traces: tuple[Trace, ...] = dataclasses.field(default=(), repr=False)
    model: Simulation | None = dataclasses.field(default=None, repr=False)
    how: str = ""
    """How it was made, where that was not by simulation."""
    notes: tuple[str, ...] = ()
    """What was taken otherwise than the model has it: starts of bodies that cannot exist."""
    other_motion: OtherMotion | None = None
    """A joint of an arm that would tell more if it moved more."""
    is_complete: bool = True
    """False when Ctrl-C stopped its starts: the best of them was brought to its minimum."""
    windows: InWindows | None = None
    """None where logs were simulated as a whole."""
    is_extrapolated: bool = False
    """Readings are without the steps' error of first order, 2 y(h) - y(2 h)."""

    def __getitem__(self, name: str) -> Estimate:
        for estimate in self.estimates:
            if estimate.name == name:
                return estimate
        names = list(self)
        raise KeyError(f"no unknown {name!r}{nearest(name, names)} ({quoted(names)})")

    def __iter__(self) -> Iterator[str]:
        return (estimate.name for estimate in self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    @property
    def known(self) -> list[str]:
        """Names of the unknowns that are known now."""
        return [estimate.name for estimate in self.estimates if estimate.is_known]

    @property
    def is_explained(self) -> bool:
        """True when the model explains the logs it was fitted to, and those held out."""
        return all(check.is_explained for check in (*self.checks, *self.held_out))

    @property
    def explained(self) -> dict[str, Explained]:
        """By sensor, what the model leaves unexplained in the fitted logs, and of what kind."""
        fields = dict.fromkeys(check.field for check in self.checks)
        return {f: pooled([c for c in self.checks if c.field == f]) for f in fields}

    @property
    def parameters(self) -> dict[str, float]:
        """The known parameters by address, for `with_parameters`.

        A `FitWarning` says where the model leaves a part of the logs unexplained.
        """
        self._warn_unexplained()
        return {
            e.name: e.value
            for e in self.estimates
            if e.is_known and e.quantity == "parameter" and e.value is not None
        }

    @property
    def not_known(self) -> list[str]:
        """Parameters that the logs do not tell one by one."""
        return [e.name for e in self.estimates if e.quantity in KINDS and e.kind != "known"]

    @property
    def simulation(self) -> Simulation:
        """The model with what was found; where the logs are silent it keeps the prior.

        `fit.not_known` names those. A `FitError` where an unknown has no prior to keep; a
        `FitWarning` where the model leaves a part of the logs unexplained.
        """
        open_ = [e.name for e in self.estimates if e.name in self.not_known and not e.has_prior]
        if open_:
            raise FitError(
                f"not known from these logs, and without a prior: {', '.join(open_)}. A simulation "
                "needs a number for each: log another sensor, or give Unknown(start, prior=True)"
            )
        if self.model is None:
            raise FitError("a fit that was loaded has no model; use Fit.load(path, simulation)")
        self._warn_unexplained()
        return self.model.with_parameters(dict(self.kept))

    def _warn_unexplained(self) -> None:
        if not self.is_explained:
            from mime.fitting.words import headline

            warn_user(FitWarning(headline(self)))

    def __str__(self) -> str:
        from mime.fitting.words import words

        return words(self)

    def plot(self) -> "Figure":
        """Measured and fitted over time, and what is left over the noise; an axis a sensor."""
        from mime.fitting.picture import picture

        return picture(self)

    def report(self, title: str = "Fit") -> str:
        """One HTML page with all of it."""
        from mime.fitting.page import report_page

        return report_page(self, title)

    def to_mjcf(self, path: str | os.PathLike[str], *, mend: bool = False) -> None:
        """Write `simulation` for MuJoCo, with half of each 95 % interval in a comment beside it.

        What is not known is marked as the prior that was kept; `mend` as in `Simulation.to_mjcf`.
        """
        from mime.fitting.exports import comments

        simulation = self.simulation
        origins, uncertainties = comments(self, simulation)
        simulation.to_mjcf(path, origins=origins, uncertainties=uncertainties, mend=mend)

    def to_urdf(self, path: str | os.PathLike[str]) -> None:
        """Write the arm of `simulation` as a URDF, with the same comments."""
        from mime.fitting.exports import arm_to_urdf

        arm_to_urdf(self, path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file, whole or not at all."""
        write_record(path, self, _FORMAT, without=("model",))

    @staticmethod
    def load(path: str | os.PathLike[str], simulation: Simulation | None = None) -> "Fit":
        """Read what `save` wrote; with the model it was fitted to, `fit.simulation` works again."""
        try:
            data = read_record(path, _FORMAT)
            data["estimates"] = tuple(Estimate(**e) for e in data["estimates"])
            data["combinations"] = tuple(
                Combination(**{**c, "unknowns": tuple(c["unknowns"])}) for c in data["combinations"]
            )
            for name in ("checks", "held_out"):
                data[name] = tuple(Check(**{**c, "seen": tuple(c["seen"])}) for c in data[name])
            arrays = ("time_s", "measured", "fitted")
            data["traces"] = tuple(
                Trace(**{**t, **{name: np.array(t[name]) for name in arrays}})
                for t in data["traces"]
            )
            data["covariance"] = np.array(data["covariance"]).reshape(
                2 * (len(data["covariance"]),)
            )
            data["trade_offs"] = tuple((a, b, c) for a, b, c in data["trade_offs"])
            data["noise"] = {field: (s, unit) for field, (s, unit) in data["noise"].items()}
            data["starts"] = tuple(data["starts"])
            if (found := data["advice"]) is not None:
                known = tuple((name, half) for name, half in found["known"])
                data["advice"] = Advice(found["field"], found["noise"], known)
            for name, kind in (("longer", Longer), ("other_input", OtherInput)):
                if (found := data[name]) is not None:
                    known = tuple((entry, half) for entry, half in found["known"])
                    data[name] = kind(**{**found, "known": known})
            if (found := data["other_motion"]) is not None:
                moments = tuple((name, half, unit) for name, half, unit in found["known"])
                data["other_motion"] = OtherMotion(**{**found, "known": moments})
            if (found := data.get("windows")) is not None:
                runs = tuple(FreeRun(**run) for run in found["free_runs"])
                states = {name: tuple(found.get(name, ())) for name in ("states", "others")}
                data["windows"] = InWindows(**{**found, **states, "free_runs": runs})
            data["outliers"] = tuple(
                Outliers(**{**o, "rows": tuple(o["rows"])}) for o in data["outliers"]
            )
            for name in ("sampled", "undeclared", "notes"):
                data[name] = tuple(data.get(name, ()))
            return Fit(**data, model=simulation)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FitError(f"{path}: not a fit that this version of MIME has saved") from error
