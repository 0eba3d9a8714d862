"""Sobol's indices: which share of a figure's variance comes from which parameter.

    first order   S_i = Var(E[y | x_i]) / Var(y)              what x_i does alone
    total         T_i = E[Var(y | all but x_i)] / Var(y)      with all that it does with others

Of Saltelli's design (points a, b, and a with coordinate i of b) both are means over draws j:

    S_i Var(y) = mean_j  y(b_j) (y(ab_ij) - y(a_j))           Saltelli et al. 2010
    T_i Var(y) = mean_j  (y(a_j) - y(ab_ij))² / 2             Jansen 1999

Of any other members the first order is read off the members that are there. Each parameter is cut
into M classes, one for each value or as many members in each; y is fitted by a sum of functions
that are constant in a class,

    y = mean + f_1(x_1) + f_2(x_2) + ... + rest

(each f_i is the mean, class by class, of what the others leave over, again and again), and the
variance of f_i is taken, less what the rest alone would give by chance:

    S_i = (SSB_i - (M - 1) MSR) / SST

with the sum of squares SSB_i between classes and the mean square MSR of the rest. That is right
where parameters vary independently of each other. Members that lie more evenly than random ones do
(a grid, Sobol's points) owe less to chance, so the interval reaches up to what would come without
the last term.

Intervals are bootstrapped: members (or draws) are put into groups at random, and the groups are
drawn anew with repetition; the standard deviation of what comes out, times 1.96, is half of the
interval. Sums over groups are all that is kept of the members, so a million cost one pass.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mime.studies.report.table import Column, Table

_GROUPS, _RESAMPLES = 200, 400
_FEWEST = 32
"""Members, or draws of a design, below which there are no indices."""
_MOST_CLASSES = 40
_ROUNDS = 20


class Index(NamedTuple):
    """A number and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


class Indices(NamedTuple):
    """Of one figure."""

    first: dict[str, Index]
    """By parameter."""
    total: dict[str, Index]
    """Of a design for it; else nothing."""
    words: str
    """How they were found, what that assumes, and what was left out; or why there are none."""


def indices(table: Table, design: Sequence[str] = ()) -> dict[str, Indices]:
    """Of all figures; `design` names the columns of Saltelli's design, where it was drawn so."""
    names = list(design) or [c.name for c in table.parameters]
    rows = saltelli_rows({c.name: c.values for c in table.parameters}, names)
    assumed = "" if rows is not None else _dependence(table.parameters)
    return {
        column.name: of_design(column.values, rows, names)
        if rows is not None
        else of_members(column.values, table.parameters, assumed)
        for column in table.figures
    }


def saltelli_rows(columns: Mapping[str, np.ndarray], names: Sequence[str]) -> np.ndarray | None:
    """(draw, 2 + parameters) members of Saltelli's design; None where they are no such design."""
    if not names or any(name not in columns for name in names):
        return None
    size, width = len(columns[names[0]]), len(names) + 2
    if size % width:
        return None
    rows = np.arange(size).reshape(-1, width)
    for place, name in enumerate(names):
        values = columns[name][rows]
        a, b, mixed = values[:, :1], values[:, 1:2], values[:, 2:]
        expected = np.where(np.arange(len(names)) == place, b, a)
        if not np.array_equal(mixed, expected):
            return None
    others = [columns[name][rows] for name in columns if name not in names]
    if len(names) == 1 and all((v[:, 1] == v[:, 2]).all() for v in others) and size == width:
        return None  # three equal members are no design
    return rows


def of_design(y: np.ndarray, rows: np.ndarray, names: Sequence[str]) -> Indices:
    """First order and total, of the values y of all members and the rows of a design."""
    values = y[rows]
    whole = ~np.isnan(values).any(axis=1)
    kept = values[whole]
    words = (
        "First order and total of Saltelli's design, "
        f"{len(rows):,} draws of {rows.shape[1]} members. "
    )
    words += _left_out(int(np.count_nonzero(~whole)), "draws")
    if len(kept) < _FEWEST:
        return Indices({}, {}, f"{words}Too few for indices: at least {_FEWEST} draws")
    centred = kept - kept[:, :2].mean()
    a, b, mixed = centred[:, 0], centred[:, 1], centred[:, 2:]
    parts = np.stack([a, b, a**2, b**2], axis=1)
    products = np.concatenate(
        [b[:, None] * (mixed - a[:, None]), (a[:, None] - mixed) ** 2], axis=1
    )
    sums = _grouped(np.concatenate([np.ones((len(a), 1)), parts, products], axis=1))
    if not np.var(kept[:, :2]) > 0:
        return Indices({}, {}, f"{words}It is the same for all members")

    def found(sums: np.ndarray) -> np.ndarray:
        mean = sums[..., 1:] / sums[..., :1]
        middle = (mean[..., 0] + mean[..., 1]) / 2
        variance = (mean[..., 2] + mean[..., 3]) / 2 - middle**2
        first = mean[..., 4 : 4 + len(names)] / variance[..., None]
        total = mean[..., 4 + len(names) :] / (2 * variance[..., None])
        return np.concatenate([first, total], axis=-1)

    every = _with_intervals(found, sums)
    first, total = every[: len(names)], every[len(names) :]
    return Indices(dict(zip(names, first)), dict(zip(names, total)), words.strip())


def of_members(y: np.ndarray, parameters: Sequence[Column], assumed: str = "") -> Indices:
    """First order, of members as they are."""
    there = ~np.isnan(y)
    words = (
        f"First order, from {np.count_nonzero(there):,} members as they are, by a sum of functions "
        "of one parameter each, constant in classes of its values. That is right where parameters "
        f"vary independently of each other. {assumed}Totals need a design for them: "
        'sampling = "saltelli". ' + _left_out(int(np.count_nonzero(~there)), "members")
    )
    kept = y[there]
    if len(kept) < _FEWEST:
        return Indices({}, {}, f"Too few for indices: {len(kept)}, of at least {_FEWEST} members")
    if not np.var(kept) > 0:
        return Indices({}, {}, f"{words}It is the same for all members")
    y = (kept - kept.mean()) / kept.std()
    most = int(np.clip(len(y) / (3 * len(parameters)), 2, _MOST_CLASSES))  # a third would do
    classes = [_classes(column.values[there], most) for column in parameters]
    parts = _parts(y, classes)
    rest = y - sum(part[own] for part, own in zip(parts, classes))
    used = 1 + sum(len(part) - 1 for part in parts)
    free = len(y) / max(len(y) - used, 1)
    first = {
        column.name: _share(y, rest, part, own, free)
        for column, part, own in zip(parameters, parts, classes)
    }
    return Indices(first, {}, words.strip())


def _parts(y: np.ndarray, classes: Sequence[np.ndarray]) -> list[np.ndarray]:
    """(class,) values of each f_i, all of mean 0; y has mean 0."""
    counts = [np.bincount(own) for own in classes]
    parts = [np.zeros(len(count)) for count in counts]
    rest = y.copy()
    for _ in range(_ROUNDS):
        change = 0.0
        for part, own, count in zip(parts, classes, counts):
            step = np.bincount(own, rest) / count
            part += step
            rest -= step[own]
            change = max(change, float(np.abs(step).max()))
        if change < 1e-6:
            break
    return parts


def _share(
    y: np.ndarray, rest: np.ndarray, part: np.ndarray, own: np.ndarray, free: float
) -> Index:
    """S = (SSB - (M - 1) MSR) / SST, with the other parts taken away; `free` makes up for what the
    fit has taken of the rest.
    """
    count = len(part)
    if count == 1:
        return Index(0.0, 0.0, 0.0)
    alone = part[own] + rest
    group = _groups(len(y))
    place, number = group * count + own, (int(group.max()) + 1) * count
    weights = np.ones_like(y), alone, alone**2, y, y**2
    sums = np.stack([np.bincount(place, w, number) for w in weights], axis=-1)

    def found(sums: np.ndarray) -> np.ndarray:
        table = np.moveaxis(sums.reshape(*sums.shape[:-1], count, 5), -1, 0)
        n, there = table[0], (table[0] > 0).sum(-1)
        size, total, squares, y, y2 = table.sum(-1)
        between = (table[1] ** 2 / np.maximum(n, 1)).sum(-1) - total**2 / size
        inside = (squares - total**2 / size - between) * free / size
        chance = (there - 1) * inside
        return np.stack([between - chance, chance], axis=-1) / (y2 - y**2 / size)[..., None]

    share, chance = _with_intervals(found, sums.reshape(-1, 5 * count))
    return Index(share.value, share.low, share.high + chance.value)


def _classes(x: np.ndarray, most: int) -> np.ndarray:
    """The class of each member: its value where these are few, else as many members in each."""
    values, place = np.unique(x, return_inverse=True)
    if len(values) <= most:
        return place
    most = int(np.clip(np.sqrt(len(x)) / 1.5, 2, most))
    rank = np.empty(len(x), int)
    rank[np.argsort(place, kind="stable")] = np.arange(len(x))
    first = np.full(len(values), len(x))
    np.minimum.at(first, place, rank)  # equal values stay together
    return np.unique(first[place] * most // len(x), return_inverse=True)[1]


def _with_intervals(found: Callable[[np.ndarray], np.ndarray], sums: np.ndarray) -> list[Index]:
    """A function of sums over all groups, and how it scatters when groups are drawn anew."""
    random = np.random.default_rng(0)
    groups = len(sums)
    weights = random.multinomial(groups, np.full(groups, 1 / groups), size=_RESAMPLES)
    value = found(sums.sum(0))
    with np.errstate(all="ignore"):
        spread = 1.96 * np.nanstd(found(weights @ sums), axis=0)
    return [Index(*map(float, entry)) for entry in zip(value, value - spread, value + spread)]


def _groups(size: int) -> np.ndarray:
    """A group for each member, as many in each, at random."""
    return np.random.default_rng(1).permutation(size) % min(size, _GROUPS)


def _grouped(rows: np.ndarray) -> np.ndarray:
    """(group, column) sums."""
    group = _groups(len(rows))
    return np.stack([np.bincount(group, column) for column in rows.T], axis=1)


def _left_out(count: int, what: str) -> str:
    return f"{count:,} {what} without a value are left out. " if count else ""


def _dependence(parameters: Sequence[Column]) -> str:
    """Words on parameters that go together: their indices are mixed up."""
    ranks = []
    for column in parameters:
        _, place = np.unique(column.values, return_inverse=True)
        ranks.append(place.astype(float))
    found = []
    for i, one in enumerate(ranks):
        for j in range(i):
            if one.std() > 0 and ranks[j].std() > 0:
                both = float(np.corrcoef(one, ranks[j])[0, 1])
                found.append((abs(both), parameters[j].name, parameters[i].name))
    worst = max(found, default=(0.0, "", ""))
    size = len(ranks[0]) if ranks else 1
    if worst[0] < max(0.1, 3 / np.sqrt(size)):
        return ""
    words = f"{worst[1]} and {worst[2]} go together here (rank correlation {worst[0]:.2f})"
    return f"{words}: what one does is counted for the other too. "
