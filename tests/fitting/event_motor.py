"""Machines by SciPy from event to event: dry friction, a limited current, backlash."""

import dataclasses
from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp


@dataclasses.dataclass
class EventMotor:
    """J dw/dt = kt i - b w - s tau_f(w),   L di/dt = V - R i - kt w,   |i| <= i_max

    A rotor that sticks (way 0) slides again once |kt i| > tau_f(0). A current at its limit stays
    there while the voltage would drive it further.
    """

    inertia: float
    kt: float
    r: float
    l: float
    damping: float
    friction: Callable[[float], float]
    """tau_f of the speed."""
    i_max: float = np.inf

    def __post_init__(self):
        self.x = np.zeros(3)  # angle, speed, current
        self.changes = {"stop": 0, "breakaway": 0, "limit": 0, "release": 0}

    def log(self, volts, period):
        """Angle and current in each row, before its volts act; they are held until the next."""
        rows = []
        for V in volts:
            rows.append(self.x[[0, 2]])
            self.advance(V, period)
        return np.array(rows).T

    def advance(self, V, duration):
        """Go on for so long at that voltage."""
        t, way = 0.0, float(np.sign(self.x[1])) or self._way_from_rest()
        held = self._held(V)
        while t < duration:
            part = self._part(V, t, duration, way, held)
            t, self.x = part.t[-1], part.y[:, -1].copy()
            if part.status == 0:
                break
            moved, limited = (len(times) > 0 for times in part.t_events)
            if moved:
                self.changes["stop" if way else "breakaway"] += 1
                self.x[1] = 0.0
                way = self._way_from_rest() if way else float(np.sign(self.x[2]))
            if limited:
                self.changes["release" if held else "limit"] += 1
                if not held:
                    self.x[2] = np.copysign(self.i_max, self.x[2])
                held = 0.0 if held else float(np.sign(self.x[2]))

    def _way_from_rest(self):
        torque = self.kt * self.x[2]
        return float(np.sign(torque)) if abs(torque) > self.friction(0.0) else 0.0

    def _held(self, V):
        _, w, i = self.x
        way = np.sign(i)
        further = way * (V - self.r * i - self.kt * w) > 0
        return float(way) if abs(i) >= self.i_max and further else 0.0

    def _part(self, V, t, end, way, held):
        def slope(t, x):
            _, w, i = x
            rate = 0.0 if held else (V - self.r * i - self.kt * w) / self.l
            if way == 0:
                return [0.0, 0.0, rate]
            torque = self.kt * i - self.damping * w - way * self.friction(w)
            return [w, torque / self.inertia, rate]

        def moves(t, x):
            return way * x[1] if way else self.friction(0.0) - abs(self.kt * x[2])

        def limits(t, x):
            if held:
                return held * (V - self.r * x[2] - self.kt * x[1])
            return self.i_max - abs(x[2])

        events = [moves, limits] if np.isfinite(self.i_max) else [moves, lambda t, x: 1.0]
        for event in events:
            event.terminal, event.direction = True, -1
        first = min(1e-7, end - t)  # an event right at the start must not hide another
        how = {"rtol": 1e-11, "atol": 1e-13, "first_step": first}
        return solve_ivp(slope, (t, end), self.x, "DOP853", events=events, **how)


@dataclasses.dataclass
class EventBacklash:
    """J x2'' = u - s,   I (x1'' + x2'') = s,   s = -k d - v x1',   d = x1 less the backlash

    A rotor x2 turns an output body through a spring whose first `backlash` to either side is slack.
    """

    rotor: float
    output: float
    stiffness: float
    damping: float
    backlash: float

    def log(self, torque, period):
        """Angles of rotor and output in each row, before its torque acts."""
        x, rows, self.changes = np.zeros(4), [], 0
        for u in torque:
            rows.append([x[0], x[0] + x[2]])
            x = self._after(x, u, period)
        return np.array(rows).T

    def _after(self, x, u, duration):
        t, b = 0.0, self.backlash
        # An event ends a part at exactly ±b: its speed says on which side of it the next one is.
        side = np.sign(x[2]) * (abs(x[2]) > b or (abs(x[2]) == b and x[2] * x[3] > 0))
        while t < duration:

            def slope(t, x, side=side):
                _, w2, x1, w1 = x
                s = -self.damping * w1 - self.stiffness * (x1 - side * b) * abs(side)
                rotor = (u - s) / self.rotor
                return [w2, rotor, w1, s / self.output - rotor]

            def inside(t, x, side=side):
                return (side * x[2] if side else abs(x[2])) - b

            inside.terminal, inside.direction = True, -1 if side else 1
            how = {"rtol": 1e-11, "atol": 1e-14, "first_step": min(1e-6, duration - t)}
            part = solve_ivp(slope, (t, duration), x, "DOP853", events=inside, **how)
            t, x = part.t[-1], part.y[:, -1].copy()
            if part.status == 1:
                self.changes += 1
                x[2] = np.copysign(b, x[2])
                side = 0.0 if side else np.sign(x[2])
        return x
