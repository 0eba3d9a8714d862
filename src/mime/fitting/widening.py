"""Intervals that hold where residuals are not white: the widest of three.

    half(g) = max(q |a|, q sqrt(aᵀ S a), t sqrt(aᵀ C a))     of a function with gradient g
    a = (D V / s)ᵀ g,   z = D V y / s
    S = sum Y_sᵀ Sigma_s Y_s                                 Y_s = J_s D V / s

The first is that of white noise. S is the covariance of y if each residual s is a stationary
process of tenth order; it holds where one window alone tells something. C is the jackknife's over
windows that hold all sensors of a log (`jackknife.py`); it holds where residuals differ from motion
to motion, or are correlated between sensors. t is Student's of one degree less than there are
windows.

Twelve windows, so that they differ as motions do; each holds four correlation times. If the
residuals are white, equally loud everywhere and uncorrelated between sensors, the plain interval
stays as it is.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from mime.fitting.explanation import LOUDER, correlations
from mime.fitting.jackknife import jackknife
from mime.fitting.rank import Rank, Widening

_WINDOWS, _LEAST, _MOST = 12, 6, 24
"""How many windows: as many, at least, and with a window a log at most."""
_TIMES = 4.0
"""Correlation times that a window holds."""
_ORDER = 10
_SURE = 0.01
"""Probability of white noise below which it is doubted."""


@dataclasses.dataclass(frozen=True)
class Residual:
    """What is left of one sensor in one log, over its noise."""

    log: int
    field: str
    time_s: np.ndarray
    values: np.ndarray
    is_known: bool = False
    """The noise is given, and does not follow from these values."""


def are_white(residuals: Sequence[Residual]) -> bool:
    """Uncorrelated in time and between sensors, and as loud in every log as the noise says."""
    from scipy.special import chdtrc

    for field in dict.fromkeys(r.field for r in residuals):
        own = [r for r in residuals if r.field == field]
        statistic = lags = 0.0
        for r in own:
            n, rho = len(r.values), correlations(r.values)
            statistic += n * (n + 2) * float(np.sum(rho**2 / (n - np.arange(1, len(rho) + 1))))
            lags += len(rho)
            allowed = 3.0 / np.sqrt(2.0 * n)
            size = float(np.sqrt(np.mean(r.values**2)))
            if (r.is_known and size > LOUDER + allowed) or size > 1.0 + 2.0 * allowed:
                return False
        if lags and chdtrc(lags, statistic) < _SURE:
            return False
    return all(
        _are_apart(a, b)
        for i, a in enumerate(residuals)
        for b in residuals[:i]
        if a.log == b.log and np.array_equal(a.time_s, b.time_s)
    )


def _are_apart(a: Residual, b: Residual) -> bool:
    """Uncorrelated row by row: n r² is chi² of one degree."""
    from scipy.special import chdtrc

    size = float(np.sqrt((a.values @ a.values) * (b.values @ b.values)))
    r = float(a.values @ b.values) / size if size > 0 else 0.0
    return bool(chdtrc(1, len(a.values) * r**2) >= _SURE)


def correlation_time(residual: Residual) -> float:
    """(1 + 2 sum rho_k²) of its period, in seconds, up to where rho_k² is that of white noise."""
    r = residual.values - np.mean(residual.values)
    n = len(r)
    if n < 8 or not r @ r > 0:
        return 0.0
    spectrum = np.abs(np.fft.rfft(r, 2 * n)) ** 2
    rho = np.fft.irfft(spectrum)[: n // 3] / (r @ r)
    grown = float(np.cumsum(rho[1:] ** 2 - 2.0 / n).max(initial=0.0))
    return (1.0 + 2.0 * max(grown, 0.0)) * float(np.median(np.diff(residual.time_s)))


def windows(residuals: Sequence[Residual]) -> list[np.ndarray]:
    """The number of the window of every row, for each residual; a window is of one log.

    With many logs a window is several logs one after the other.
    """
    logs = list(dict.fromkeys(r.log for r in residuals))
    ends = {
        log: (
            min(float(r.time_s[0]) for r in residuals if r.log == log),
            max(float(r.time_s[-1]) for r in residuals if r.log == log),
        )
        for log in logs
    }
    lengths = np.array([last - first for first, last in ends.values()])
    if len(logs) > _MOST:
        middle = np.cumsum(lengths) - 0.5 * lengths
        group = np.floor(_WINDOWS * middle / lengths.sum()).astype(int)
        number = dict(zip(logs, group, strict=True))
        return [np.full(len(r.values), number[r.log]) for r in residuals]
    correlated = _TIMES * max(correlation_time(r) for r in residuals)
    wanted = max(float(lengths.sum()) / _WINDOWS, correlated)
    pieces = np.maximum(1, np.round(lengths / wanted).astype(int))
    while pieces.sum() < _LEAST:
        pieces[np.argmax(lengths / pieces)] += 1
    first = dict(zip(logs, np.cumsum(pieces) - pieces, strict=True))
    count = dict(zip(logs, pieces, strict=True))
    found = []
    for r in residuals:
        start, last = ends[r.log]
        part = (r.time_s - start) / max(last - start, 1e-300)
        own = np.minimum((part * count[r.log]).astype(int), count[r.log] - 1)
        found.append(first[r.log] + own)
    return found


def widened_by(
    rank: Rank, jacobians: Sequence[np.ndarray], slopes: Sequence[np.ndarray], prior: np.ndarray
) -> Rank:
    """The rank with intervals by windows: J_i and J_iᵀ r_i of each, at the minimum.

    In the coordinates of the rank, (rows, n) and (n,); `prior` are the rows of what is known
    beforehand. For J_i any matrix with the same J_iᵀ J_i does.
    """
    B = rank.basis
    Y, P = [J @ B for J in jacobians], prior @ B
    return _with_windows(rank, Y, [B.T @ g for g in slopes], P)


@dataclasses.dataclass(frozen=True)
class Cut:
    """Logs that were fitted in windows, each with initial states of its own.

    The Jacobian has no part along those states any more, and rows of their prior at its end. A
    window that is left out takes its states with it, so none is left out in part.
    """

    window: np.ndarray
    """Of every row of the Jacobian."""
    seconds: np.ndarray
    """How long each window is."""
    prior: np.ndarray
    """What the prior of the states leaves: the residuals of the last rows."""

    def left_out(self, correlated_s: float) -> np.ndarray:
        """Which windows are left out together, for each of them: one by one where that can be."""
        count, total = len(self.seconds), float(self.seconds.sum())
        most = count if count <= _MOST else _WINDOWS
        groups = int(min(most, max(total / max(correlated_s, 1e-300), _LEAST)))
        if groups >= count:
            return np.arange(count)
        middle = np.cumsum(self.seconds) - 0.5 * self.seconds
        return np.floor(groups * middle / total).astype(int)


def widened(
    rank: Rank,
    residuals: Sequence[Residual],
    jacobian: np.ndarray,
    prior: np.ndarray,
    cut: Cut | None = None,
) -> Rank:
    """The rank with intervals that hold for these residuals: as it is where they are white.

    jacobian   of all rows of all residuals, over the noise, in the rank's coordinates
    prior      the Jacobian's rows of what is known beforehand
    cut        where the logs were fitted in windows
    """
    if are_white(residuals):
        return rank
    r = np.concatenate([residual.values for residual in residuals])
    if cut is None:
        own = np.concatenate(windows(residuals))
    else:
        correlated = _TIMES * max(correlation_time(residual) for residual in residuals)
        own = cut.left_out(correlated)[cut.window]
        r = np.concatenate([r, cut.prior])
    B = rank.basis
    Y, P = jacobian @ B, prior @ B
    each = [own == i for i in np.unique(own)]
    wide = _with_windows(rank, [Y[at] for at in each], [Y[at].T @ r[at] for at in each], P)
    if wide.widening is None:
        return rank
    of_states = Y[sum(len(residual.values) for residual in residuals) :]
    S = _stationary(residuals, Y) + of_states.T @ of_states + P.T @ P
    widening = dataclasses.replace(wide.widening, stationary=S)
    return dataclasses.replace(wide, widening=widening)


def _stationary(residuals: Sequence[Residual], Y: np.ndarray) -> np.ndarray:
    """S: sum Y_sᵀ Sigma_s Y_s with the autoregression of each residual (Yule and Walker).

    e_k = sum a_i e_{k-i} + w_k is e = A⁻¹ w: Yᵀ Sigma Y is |A⁻ᵀ Y|² times the variance of w, and
    A⁻ᵀ is the same filter backwards in time.
    """
    from scipy.linalg import solve_banded, solve_toeplitz

    S, first = np.zeros(2 * (Y.shape[1],)), 0
    for residual in residuals:
        r = residual.values - np.mean(residual.values)
        n, own = len(r), Y[first : first + len(r)]
        first += n
        order = min(_ORDER, n // 20)
        variance = np.array([r[k:] @ r[: n - k] for k in range(order + 1)]) / n
        if order < 1 or not variance[0] > 0:
            S += float(np.mean(residual.values**2)) * own.T @ own
            continue
        a = solve_toeplitz(variance[:-1], variance[1:])
        backwards = np.concatenate([own[::-1], np.zeros_like(own)])  # until it has died away
        band = np.tile(np.concatenate([[1.0], -a])[:, None], len(backwards))
        filtered = solve_banded((order, 0), band, backwards, check_finite=False)
        S += float(variance[0] - a @ variance[1:]) * filtered.T @ filtered
    return S


def _with_windows(
    rank: Rank, jacobians: Sequence[np.ndarray], slopes: Sequence[np.ndarray], prior: np.ndarray
) -> Rank:
    """All in coordinates y, where the sum of all information is 1."""
    from scipy.special import stdtrit

    count = len(slopes)
    if count < 2 or not prior.shape[1]:
        return rank
    C = jackknife(jacobians, slopes, prior)
    quantile = float(stdtrit(count - 1, 0.975))
    return dataclasses.replace(rank, widening=Widening(C, quantile, count))
