"""A search by Optuna's samplers: members are asked for in batches, and told when they are known.

Optuna remembers nothing between calls. A search that goes on asks it the same questions from the
beginning, by the same seed, and the store has the answers.
"""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from mime.studies.dimensions import Space
from mime.studies.evaluations import Evaluations
from mime.studies.objectives import Aim, OptimiseTable
from mime.studies.store import StudyError

_BATCH = {"tpe": 16, "nsga2": 40}
_DIRECTIONS = {"minimise": "minimize", "maximise": "maximize"}
_MOST_IDLE = 5
"""Batches in a row without a new member, after which there is nothing more to ask."""
_MOST_ASKED = 3
"""Times the budget. Among few members a sampler names the good ones again and again."""


def search_by_optuna(space: Space, aim: Aim, table: OptimiseTable, evaluations: Evaluations) -> str:
    """Ask and tell until the budget is spent; in words, what was done."""
    optuna = import_optuna()
    several = len(aim.objectives) > 1
    sampler = table.sampler if table.sampler != "auto" else "nsga2" if several else "tpe"
    batch = table.batch or _BATCH[sampler]
    with _quiet(optuna):
        own = optuna.create_study(
            directions=[_DIRECTIONS[objective.direction] for objective in aim.objectives],
            sampler=optuna.samplers.TPESampler(seed=table.seed)
            if sampler == "tpe"
            else optuna.samplers.NSGAIISampler(seed=table.seed, population_size=max(batch, 2)),
        )
        idle = 0
        most = _MOST_ASKED * table.budget
        while evaluations.left and idle < _MOST_IDLE and len(own.trials) < most:
            before = len(evaluations)
            trials = [own.ask() for _ in range(min(batch, evaluations.left))]
            points = np.array([[_value(t, d) for d in space.dimensions] for t in trials])
            columns = space.columns(points)
            allowed = space.allowed(columns)
            members: np.ndarray = np.full(len(trials), -1)
            if allowed.any():
                some = {name: column[allowed] for name, column in columns.items()}
                members[allowed] = evaluations.of(some)
            for trial, member in zip(trials, members.tolist(), strict=True):
                _tell(optuna, own, trial, aim, evaluations, member)
            idle = idle + 1 if len(evaluations) == before else 0
    name = {"tpe": "TPE", "nsga2": "NSGA-II"}[sampler]
    asked = f"{name} of Optuna, {batch} members at once"
    return f"{asked}; in the end it named known members only" if evaluations.left else asked


def _value(trial: Any, dimension: Any) -> float:
    name = " and ".join(dimension.names)
    low, high = dimension.low, dimension.high
    if dimension.kind in ("linear", "log"):
        return trial.suggest_float(name, low, high, log=dimension.kind == "log")
    if dimension.is_ordered:
        return trial.suggest_int(name, int(low), int(high))
    return trial.suggest_categorical(name, list(range(int(high) + 1)))


def _tell(
    optuna: Any, own: Any, trial: Any, aim: Aim, evaluations: Evaluations, member: int
) -> None:
    """A member's costs and limits; one that may not be, or has no such figures, has failed."""
    figures = {n: values[[member]] for n, values in evaluations.figures.items()}
    sound = member >= 0 and all(np.isfinite(figures[name]).all() for name in aim.figures)
    if not sound:
        own.tell(trial, state=optuna.trial.TrialState.FAIL)
        return
    for index, excess in enumerate(aim.excess(figures)[0]):
        trial.set_constraint(str(index), float(excess))
    own.tell(trial, [float(figures[o.figure][0]) for o in aim.objectives])


@contextlib.contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Without Optuna's lines for each trial, and what it warns of its own defaults."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="optuna")
            yield
    finally:
        optuna.logging.set_verbosity(before)


def import_optuna() -> Any:
    """The package, or words on how to have it."""
    try:
        import optuna
    except ImportError as error:
        raise StudyError(
            "a search among whole numbers, entries or for several objectives needs Optuna: "
            "pip install 'mime-sim[search]'"
        ) from error
    return optuna
