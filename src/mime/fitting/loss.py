"""What a residual costs: squares, or less than that where it is an outlier.

    cost = sum c² rho((u/c)²),   u = r / sigma        psi(u) = u rho'((u/c)²)
    linear    rho(s) = s
    soft_l1   rho(s) = 2 (sqrt(1 + s) - 1)
    huber     rho(s) = s below 1, 2 sqrt(s) - 1 above

c is such that clean logs lose 5 % of their information: E[psi']² / E[psi²] = 0.95 for normal noise.
The estimate has the covariance (JᵀJ)⁻¹ sigma² E[psi²] / E[psi']², the sandwich (Huber 1981), with
the means taken over the residuals that there are.
"""

import dataclasses
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

NAMES = ("linear", "soft_l1", "huber")
_EFFICIENCY = 0.95
_SURE = 0.01
"""Probability that noise alone has an outlier in a sensor."""
_IN_A_ROW, _AROUND = 4, 11
"""The most outliers in a row, and the rows around one, itself among them, whose median it is
compared with."""


@dataclasses.dataclass(frozen=True)
class Loss:
    """A loss by name; all of it in residuals over their noise."""

    name: str = "linear"

    @property
    def is_robust(self) -> bool:
        """Outliers count less."""
        return self.name != "linear"

    @property
    def scale(self) -> float:
        """c, in deviations of the noise."""
        return _scale(self.name) if self.is_robust else 1.0

    def psi(self, u: Any) -> Any:
        """What is left of a residual: u where it is small, bounded where it is not."""
        return u * _slope(self.name, np.square(np.asarray(u) / self.scale))

    def psi_slope(self, u: Any) -> Any:
        """dpsi/du."""
        s = np.square(np.asarray(u) / self.scale)
        return _slope(self.name, s) + 2.0 * s * _curvature(self.name, s)

    def costs(self, u: Any) -> np.ndarray:
        """Of every residual."""
        squares = np.square(np.asarray(u) / self.scale)
        return np.asarray(self.scale**2 * _rho(self.name, squares))

    def cost(self, u: Any) -> float:
        """The sum over all residuals."""
        return float(np.sum(self.costs(u)))

    def weights(self, u: Any) -> np.ndarray:
        """psi(u) / u: what a square counts where outliers count less."""
        return np.asarray(_slope(self.name, np.square(np.asarray(u) / self.scale)))

    def squares(self, r: np.ndarray, sigma: float) -> float:
        """n sigma² of residuals, from about this sigma: their sum of squares, or for a robust loss
        that with mean psi(r/sigma)² as normal noise has it (Huber's second proposal).
        """
        if not self.is_robust:
            return float(r @ r)
        expected = _moments(self.name, self.scale)[1]
        for _ in range(100):
            ratio = np.sqrt(np.mean(self.psi(r / sigma) ** 2) / expected)
            sigma = float(sigma * max(ratio, 0.1))
            if abs(ratio - 1.0) < 1e-6 or sigma == 0.0:
                break
        return len(r) * sigma**2

    def bounded(self, r: Any, sigma: float) -> Any:
        """Residuals without what outliers have beyond the rest, as large as they are on average."""
        expected = _moments(self.name, self.scale)[1]
        return sigma * self.psi(np.asarray(r) / sigma) / np.sqrt(expected)

    def information(self, u: Any) -> tuple[float, float]:
        """mean psi' and mean psi² of these residuals; 1 and 1 for squares."""
        if not self.is_robust:
            return 1.0, 1.0
        return float(np.mean(self.psi_slope(u))), float(np.mean(self.psi(u) ** 2))

    def for_scipy(self, rows: int) -> str | Callable[[Any], Any]:
        """As `least_squares` takes it, with f_scale=c: of the first rows; priors stay squares."""
        if not self.is_robust:
            return "linear"

        def rho(s: Any) -> Any:
            found = np.stack([s, np.ones_like(s), np.zeros_like(s)])
            own = s[:rows]
            found[:, :rows] = (
                _rho(self.name, own), _slope(self.name, own), _curvature(self.name, own),
            )  # fmt: skip
            return found

        return rho


def outliers(u: np.ndarray) -> np.ndarray:
    """Which residuals, row by row, lie where noise has one in a hundred such sensors.

    They are that far from the median of the rows around them, too, and few in a row: what lies
    beyond the noise for longer is what the model has not.
    """
    from scipy.ndimage import label, median_filter
    from scipy.special import ndtri

    bound = -ndtri(0.5 * _SURE / max(len(u), 1))
    beyond = np.abs(u) > bound
    runs, _ = label(beyond)
    is_short = np.bincount(runs)[runs] <= _IN_A_ROW
    away = np.abs(u - median_filter(u, _AROUND, mode="mirror")) > bound
    found: np.ndarray = beyond & is_short & away
    return found


def _rho(name: str, s: Any) -> Any:
    if name == "soft_l1":
        return 2.0 * (np.sqrt(1.0 + s) - 1.0)
    if name == "huber":
        return np.where(s <= 1.0, s, 2.0 * np.sqrt(s) - 1.0)
    return s


def _slope(name: str, s: Any) -> Any:
    if name == "soft_l1":
        return 1.0 / np.sqrt(1.0 + s)
    if name == "huber":
        return 1.0 / np.sqrt(np.maximum(s, 1.0))
    return np.ones_like(s)


def _curvature(name: str, s: Any) -> Any:
    if name == "soft_l1":
        return -0.5 * (1.0 + s) ** -1.5
    if name == "huber":
        return np.where(s <= 1.0, 0.0, -0.5 * np.maximum(s, 1.0) ** -1.5)
    return np.zeros_like(s)


@lru_cache
def _scale(name: str) -> float:
    """c of an efficiency of 95 % on normal noise: 1.345 for Huber's."""
    from scipy.optimize import brentq

    def missing(c: float) -> float:
        first, second = _moments(name, c)
        return first**2 / second - _EFFICIENCY

    return float(brentq(missing, 0.3, 10.0))


@lru_cache
def _moments(name: str, c: float) -> tuple[float, float]:
    """E[psi'] and E[psi²] under the standard normal distribution."""
    if name == "linear":
        return 1.0, 1.0
    u = np.linspace(-12.0, 12.0, 48_001)
    density = np.exp(-0.5 * u**2) / np.sqrt(2.0 * np.pi)
    psi = u * _slope(name, np.square(u / c))
    first = np.trapezoid(density * u * psi, u)  # E[psi'] = E[u psi], by parts
    second = np.trapezoid(density * psi**2, u)
    return float(first), float(second)
