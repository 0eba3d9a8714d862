"""The members of a study as a table: a column for each parameter that varies.

Lists and grids are multiplied, zipped ones go side by side, and all distributions are drawn
together: their points are those of one cube, so that Sobol's and Latin hypercube's fill it evenly.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from mime._text import nearest, quoted
from mime.core.problem import InputError
from mime.studies.axes import MOST, OPEN, AnyAxis, Draw, Equals
from mime.studies.expression import evaluate, names_in

Sampling = Literal["sobol", "latin", "random", "saltelli"]
Columns = dict[str, np.ndarray]


class Correlated(NamedTuple):
    """Parameters of a fit with a common normal distribution, positive ones in logarithms."""

    names: tuple[str, ...]
    mean: np.ndarray
    covariance: np.ndarray

    def at(self, u: np.ndarray) -> Columns:
        """x = mean + L z, log x = log mean + L z where positive; z = F⁻¹(u), normal.

        L Lᵀ is the covariance of x, of log x by the slope 1 / mean.
        """
        from scipy import special

        z = special.ndtri(np.clip(u, *OPEN))
        is_log = self.mean > 0
        slope = np.where(is_log, 1.0 / np.where(is_log, self.mean, 1.0), 1.0)
        off = z @ np.linalg.cholesky(self.covariance * np.outer(slope, slope)).T
        positive = self.mean * np.exp(np.where(is_log, off, 0.0))
        return dict(zip(self.names, np.where(is_log, positive, self.mean + off).T))


class Drawing(NamedTuple):
    """How distributions are drawn."""

    draws: int | None
    sampling: Sampling
    seed: int


def members(
    axes: Mapping[str, AnyAxis],
    drawing: Drawing,
    zipped: Sequence[Sequence[str]] = (),
    constraints: Sequence[str] = (),
    correlated: Correlated | None = None,
) -> Columns:
    """A column for each parameter, in the order in which they are named; at least one member."""
    blocks = _blocks(axes, drawing, zipped, correlated)
    size = math.prod(len(next(iter(block.values()))) for block in blocks)
    if size > MOST:
        raise InputError(f"{size:,} members, more than {MOST:,}: take fewer values or draws")
    if not blocks:
        raise InputError("nothing varies: name a parameter", place=("vary",))
    columns: Columns = {}
    after = size
    for block in blocks:
        length = len(next(iter(block.values())))
        after //= length
        index = np.arange(size) // after % length
        columns |= {name: column[index] for name, column in block.items()}
    columns = followed(columns, axes)
    names = [*axes, *(correlated.names if correlated else ())]
    columns = {name: columns[name] for name in names}
    keep = allowed(columns, constraints)
    if not keep.any():
        raise InputError(f"no member keeps all of {quoted(constraints)}", place=("constraints",))
    return {name: column[keep] for name, column in columns.items()}


def _blocks(
    axes: Mapping[str, AnyAxis],
    drawing: Drawing,
    zipped: Sequence[Sequence[str]],
    correlated: Correlated | None,
) -> list[Columns]:
    """What is multiplied: single axes, zipped ones, and all draws."""
    drawn = drawn_names(axes)
    group_of = zipped_groups(axes, zipped)
    both = set(axes) & set(correlated.names if correlated else ())
    if both:
        raise InputError(f"{quoted(sorted(both))} varies twice: by the fit, and by [vary]")
    blocks: dict[object, Columns] = {}
    for name, axis in axes.items():
        if isinstance(axis, Draw):
            blocks.setdefault("draws", {})
        elif not isinstance(axis, Equals):
            blocks.setdefault(group_of.get(name, (name,)), {})[name] = axis.column()
    for group, block in blocks.items():
        sizes = {name: len(column) for name, column in block.items()}
        if group != "draws" and len(set(sizes.values())) > 1:
            found = ", ".join(f"{name}: {size}" for name, size in sizes.items())
            raise InputError(
                f"zipped parameters need as many values each ({found})", place=("zip",)
            )
    if drawn or correlated:
        blocks["draws"] = _draws(axes, drawn, drawing, correlated)
    elif drawing.draws is not None:
        raise InputError("nothing is drawn: no parameter has a distribution", place=("draws",))
    return list(blocks.values())


def drawn_names(axes: Mapping[str, AnyAxis]) -> list[str]:
    """The axes that are distributions."""
    return [name for name, axis in axes.items() if isinstance(axis, Draw)]


def zipped_groups(
    axes: Mapping[str, AnyAxis], zipped: Sequence[Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """Of each name that is zipped, all names that go side by side with it."""
    found: dict[str, tuple[str, ...]] = {}
    for group in zipped:
        for name in group:
            if name not in axes:
                near = nearest(name, axes)
                raise InputError(f"{name!r} does not vary{near} ({quoted(axes)})", place=("zip",))
            if isinstance(axes[name], Draw | Equals):
                raise InputError(f"{name!r} has no list or grid to zip", place=("zip",))
            if name in found:
                raise InputError(f"{name!r} is zipped twice", place=("zip",))
            found[name] = tuple(group)
    return found


def _draws(
    axes: Mapping[str, AnyAxis],
    drawn: Sequence[str],
    drawing: Drawing,
    correlated: Correlated | None,
) -> Columns:
    if drawing.draws is None:
        raise InputError("say how many members are drawn: draws = 100", place=("draws",))
    fitted = correlated.names if correlated else ()
    if fitted and drawing.sampling == "saltelli":
        words = "Saltelli's design is of independent parameters; those of a fit are not"
        raise InputError(f"{words}: take another sampling", place=("sampling",))
    points = cube(drawing, len(drawn) + len(fitted))
    columns: Columns = {}
    for name, u in zip(drawn, points.T):
        axis = axes[name]
        assert isinstance(axis, Draw)
        columns[name] = axis.at(u)
    return columns | (correlated.at(points[:, len(drawn) :]) if correlated else {})


def cube(drawing: Drawing, dimension: int) -> np.ndarray:
    """(members, dimension) numbers from 0 to 1. Of Sobol's and of random points and of Saltelli's
    design, fewer draws give the first of more; of a Latin hypercube they do not.

    Saltelli's design is, for each draw, two points a and b, and for each parameter the point a with
    that one coordinate of b: dimension + 2 members.
    """
    count, sampling, seed = drawing
    assert count is not None
    random = np.random.default_rng(seed)
    if sampling == "random":
        return random.random((count, dimension))
    from scipy.stats import qmc

    if sampling == "latin":
        return qmc.LatinHypercube(dimension, rng=random).random(count)
    if sampling == "saltelli":
        both = cube(Drawing(count, "sobol", seed), 2 * dimension)
        a, b = both[:, None, :dimension], both[:, None, dimension:]
        mixed = np.where(np.eye(dimension, dtype=bool), b, a)
        return np.concatenate([a, b, mixed], axis=1).reshape(-1, dimension)
    with warnings.catch_warnings():  # that they are most even at powers of two is in the docs
        warnings.simplefilter("ignore", UserWarning)
        return qmc.Sobol(dimension, scramble=True, rng=random).random(count)


def followed(columns: Columns, axes: Mapping[str, AnyAxis]) -> Columns:
    """With those that follow from others, which may follow in turn."""
    left = {name: axis.equals for name, axis in axes.items() if isinstance(axis, Equals)}
    while left:
        ready = [name for name, text in left.items() if not names_in(text) & left.keys()]
        if not ready:
            raise InputError(f"{quoted(left)} follow from each other", place=("vary",))
        for name in ready:
            try:
                value = evaluate(left.pop(name), columns)
            except InputError as error:
                raise InputError(str(error), place=("vary", name, "equals")) from error
            if value.dtype.kind != "f":
                raise InputError(f"must be a number, got {value[:1]}", place=("vary", name))
            columns[name] = np.array(value)
    return columns


def allowed(columns: Columns, constraints: Sequence[str]) -> np.ndarray:
    """(member,): which of them keep all constraints."""
    keep = np.ones(len(next(iter(columns.values()))), bool)
    for index, text in enumerate(constraints):
        try:
            kept = evaluate(text, columns)
        except InputError as error:
            raise InputError(str(error), place=("constraints", index)) from error
        if kept.dtype != bool:
            raise InputError(f"{text!r} is no comparison", place=("constraints", index))
        keep &= kept
    return keep
