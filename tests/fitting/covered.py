"""How often the intervals of whole fits hold the truth, and the bars that this is held to."""

import jax
import numpy as np

import mime
from mime.fitting.coordinates import coordinates
from mime.fitting.exact import with_exact_motors
from mime.fitting.experiment import experiment
from mime.fitting.log import Log
from mime.fitting.model import Model
from mime.fitting.rates import KEPT


def covered(case, simulation, columns, unknowns, logs):
    """Fit each log: whether each interval holds the truth, and its width over the truth.

    Both are NaN where an unknown has no value, or is at its bound.
    """
    inside, relative = np.full((2, len(logs), len(unknowns)), np.nan)
    errors = []
    for seed, log in enumerate(logs):
        found = mime.fit(simulation, log, columns, list(unknowns), starts=1, progress=False)
        errors.append(found.step_error)
        for j, (name, truth) in enumerate(unknowns.items()):
            if found[name].is_known:
                inside[seed, j] = found[name].low <= truth <= found[name].high
                relative[seed, j] = (found[name].high - found[name].low) / truth
    pooled, each = 100 * np.nanmean(inside), (100 * np.nanmean(inside, axis=0)).round(1)
    print(f"\n{case}, {len(logs)} logs: {pooled:.1f} % pooled, each {each}")
    print(f"known: {100 * np.isfinite(inside).mean():.1f} %; error of steps: {max(errors):.2g}")
    return inside, relative


def check_bars(inside, above=0.0, below=0.0):
    """Of 1,000 logs 93 to 97 % pooled, no unknown outside of 91 to 99 %; of fewer as many
    standard deviations. `above` and `below` widen the bars of a case that says why.
    """
    wider = np.sqrt(1000 / len(inside))
    pooled, each = np.nanmean(inside), np.nanmean(inside, axis=0)
    assert -0.02 * wider <= pooled - 0.95 <= (0.02 + above) * wider, (pooled, each)
    assert np.all(each - 0.95 <= (0.04 + above) * wider), each
    assert np.all(each - 0.95 >= -(0.04 + below) * wider), each


def check_width(relative, least):
    """The median width is 0.9 to 1.5 times that of Cramér and Rao."""
    width = np.nanmedian(relative, axis=0) / least
    print("median width over that of Cramér and Rao:", width.round(2))
    assert np.all((width > 0.9) & (width < 1.5)), width


def least_widths(simulation, log, columns, unknowns, noise, sensing=None, fineness=KEPT):
    """Widths that 95 % intervals of no unbiased estimate are below, over the truth.

    From the Jacobian of the simulation at the truth. `sensing`: delays and their like. noise: the
    columns' standard deviations.
    """
    with jax.enable_x64(True):
        simulation, _ = with_exact_motors(simulation)
        one = experiment(simulation, Log(log), columns)
        found = coordinates(simulation, list(unknowns), [one])
        model = Model(simulation, (one,), found, fineness)
        truth = {**unknowns, **(sensing or {})}
        z = np.array([c.z(truth[c.name]) for c in found])
        _, J = model.programs.linearised(z, model.data)
        field = {name: getattr(column, "field", column) for name, column in columns.items()}
        J = np.concatenate([np.asarray(J[field[name]]) / sigma for name, sigma in noise.items()])
        scale = [1.0 if c.is_log else c.scale / truth[c.name] for c in found]
        return 2 * 1.96 * (np.sqrt(np.diag(np.linalg.inv(J.T @ J))) * scale)[: len(unknowns)]
