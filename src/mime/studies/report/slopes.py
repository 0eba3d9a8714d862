"""d figure / d parameter at the best member, through the simulator, all other parameters held.

    elasticity = d figure / d parameter · parameter / figure

is by how many percent the figure grows when the parameter grows by one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mime._text import shortened
from mime.fitting.model import in_double
from mime.scenarios.merits import Merit
from mime.studies.experiment import Experiment
from mime.studies.report.extremes import Extreme
from mime.studies.slopes import WITHOUT, figures_of
from mime.studies.study import Study


class Slopes(NamedTuple):
    """Of one figure."""

    member: int
    words: str
    """At which member, or why there are none."""
    rows: list[dict[str, Any]]
    """Of each parameter: name, slope, unit and elasticity; or why there is none."""


def slopes(study: Study | None, ends: Sequence[Extreme]) -> dict[str, Slopes]:
    """By figure, at its best member; nothing without a study, which knows the simulator."""
    if study is None:
        return {}
    found: dict[str, Slopes] = {}
    for variant in sorted({int(study.variant[end.best]) for end in ends}):
        own = [end for end in ends if study.variant[end.best] == variant]
        found |= _of_experiment(study, study.experiments[variant], own)
    return {end.figure.name: found[end.figure.name] for end in ends}


def _of_experiment(
    study: Study, experiment: Experiment, ends: Sequence[Extreme]
) -> dict[str, Slopes]:
    """All figures whose best members are of one graph: one program for them."""
    merits = {merit.name: merit for merit in experiment.merits}
    found = {}
    for end in ends:
        kind = merits[end.figure.name].kind
        if kind in WITHOUT:
            found[end.figure.name] = Slopes(end.best, f"No slopes: {WITHOUT[kind]}.", [])
    smooth = [end for end in ends if end.figure.name not in found]
    names = [name for name in study.columns if experiment.lanes.get(name) is not None]
    free = [name for name in names if experiment.lanes[name].road != "seed"]
    if not smooth or not free:
        why = "nothing that varies is a number of the graph"
        return found | {e.figure.name: Slopes(e.best, f"No slopes: {why}.", []) for e in smooth}
    members = np.array([end.best for end in smooth])
    seeds = {name: study.columns[name][members] for name in names if name not in free}
    points = np.stack([study.columns[name][members] for name in free], axis=1).astype(float)
    wanted = [merits[end.figure.name] for end in smooth]
    try:
        table = _jacobian(experiment, wanted, free, seeds, points)
    except (TypeError, ValueError, NotImplementedError) as error:  # what JAX cannot differentiate
        why = shortened(" ".join(str(error).split()), 200)
        return found | {
            e.figure.name: Slopes(e.best, f"Not differentiable: {why}", []) for e in smooth
        }
    for place, end in enumerate(smooth):
        words = f"By how much it changes, where it is {end.titles[0]}, when one parameter does."
        rows = _rows(study, free, end, table[place, place], points[place])
        found[end.figure.name] = Slopes(end.best, words, rows)
    return found


def _jacobian(
    experiment: Experiment,
    merits: Sequence[Merit],
    free: Sequence[str],
    seeds: Mapping[str, np.ndarray],
    points: np.ndarray,
) -> np.ndarray:
    """(member, figure, parameter): forward, as many directions as there are parameters."""
    if seeds and len(points) > 1:  # the noise of each member is its own
        each = range(len(points))
        own = [{name: values[[i]] for name, values in seeds.items()} for i in each]
        return np.concatenate(
            [_jacobian(experiment, merits, free, own[i], points[[i]]) for i in each]
        )
    fixed = {name: values[0] for name, values in seeds.items()}
    with jax.enable_x64(True):
        simulation = in_double(experiment.simulation)

        def values(point: Any) -> Any:
            lanes = dict(zip(free, point)) | fixed
            return jnp.stack(figures_of(experiment, simulation, merits, lanes))

        return np.asarray(jax.jit(jax.vmap(jax.jacfwd(values)))(jnp.asarray(points)))


def _rows(
    study: Study, free: Sequence[str], end: Extreme, slopes: np.ndarray, point: np.ndarray
) -> list[dict[str, Any]]:
    value = end.figure.values[end.best]
    rows: list[dict[str, Any]] = []
    for name in study.columns:
        if name not in free:
            why = "no slope: it is no number of the graph, but a key of the scenario, or a seed"
            rows.append({"name": name, "why": why})
            continue
        slope, x = slopes[free.index(name)], point[free.index(name)]
        if not np.isfinite(slope):
            rows.append({"name": name, "why": "no slope: it is not finite here"})
            continue
        unit = f"{end.figure.unit} per {study.units[name] or '1'}".strip()
        elasticity = float(slope * x / value) if value else None
        rows.append({"name": name, "slope": float(slope), "unit": unit, "elasticity": elasticity})
    return rows
