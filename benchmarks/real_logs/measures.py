"""How far a model is off a log that it was not fitted to."""

import numpy as np


def error_percent(left: np.ndarray, torque: np.ndarray) -> float:
    """100 sqrt(sum e² / sum (tau - mean of its joint)²) of (rows, joints)."""
    spread = torque - torque.mean(axis=0)
    return float(100 * np.sqrt(np.sum(left**2) / np.sum(spread**2)))


def low_passed(values: np.ndarray, rate_hz: float, cut_hz: float = 40.0) -> np.ndarray:
    """Zero phase: a Butterworth filter of fourth order, forwards and backwards."""
    from scipy.signal import butter, filtfilt

    b, a = butter(4, cut_hz / (0.5 * rate_hz))
    return np.asarray(filtfilt(b, a, values, axis=0))


def local_speed(time_s: np.ndarray, angle: np.ndarray, at: int, rows: int = 8) -> float:
    """Slope of a parabola through the rows around one."""
    near = slice(max(at - rows, 0), at + rows + 1)
    return float(np.polyfit(time_s[near] - time_s[at], angle[near], 2)[1])
