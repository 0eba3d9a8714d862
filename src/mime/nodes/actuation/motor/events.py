"""Dry friction in an exact step: the flow is linear between the instants at which it changes.

    slides    J dw/dt = tau - s tau_f(w) - b w,   s = sign w    until w = 0
    sticks    w = 0                                             until |tau| > tau_f(0)

tau is all torque on the rotor at rest. The rotor stops at the first root of its speed, which the
linear flow has in closed form. The torque at that instant decides: at most tau_f(0) holds the
rotor, a larger one turns it back. A rotor that sticks breaks away where the torque, a single
exponential in voltage mode and a line in velocity mode, reaches tau_f(0).

Stribeck friction is linear about the speed w_0 at the start of each part, which makes the step one
of second order (exponential Rosenbrock-Euler):

    tau_f(w) = tau_f(w_0) + tau_f'(w_0) (w - w_0)

A current that reaches its limit stays there, di/dt = 0, until the voltage would lower it:

    s (V - R i - ke w) = 0,   s = sign i

Such roots are found by Newton's rule in a bracket on which the speed, or the current, is monotone.
Their derivatives follow from one more Newton step from there, whose slope is a constant (implicit
function theorem): dt/dp = -(dw/dp) / (dw/dt).
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from mime.control.linear_flow import Matrix2, phi_1, response_integral, responses
from mime.core.parameters import with_fields
from mime.nodes.actuation.friction import Stribeck
from mime.nodes.actuation.motor.drive import (
    Fields,
    Mode,
    circuit_resistance,
    largest_current,
    limited_current,
    select,
    terminal_voltage,
)
from mime.nodes.actuation.motor.linear import linear_system
from mime.nodes.actuation.motor.parameters import MotorParameters
from mime.nodes.actuation.motor.rotor import inertia

PARTS = 5
"""Parts of one step between stops, breakaways and reversals: four of these in a step. The rest of a
step with more is spent at rest. Steps with real poles, and steps of at most half a period with
complex ones, have three (none of 400,000 at random has a fourth, with Coulomb friction); a longer
step warns."""
LIMITED_PARTS = 10
"""The same where a current has a limit, which it may reach and leave between these."""
_ROUNDS = 60
"""Newton's steps or halvings of the bracket: from the whole step to one rounding of it by halvings
alone takes 52."""


class _Part(NamedTuple):
    """Where the rotor is at the start of a part of the step."""

    omega: Any
    x: Any
    """The second state of the linear flow: current, or torque of the PI's integral."""
    turned: Any
    """The angle since the step began."""
    way: Any
    """s: 1 slides forward, -1 slides backward, 0 sticks."""
    held: Any
    """The sign of a current that is at its limit, else 0."""
    left: Any
    """Time to the end of the step."""


class _Motor(NamedTuple):
    """The linear flow of a mode, in a part of the step."""

    motor: MotorParameters
    """Its damping is b and the slope of its friction."""
    state: Fields
    u: Fields
    tau_load: Any
    mode: Mode
    J: Any
    A: Matrix2
    slides: Any
    """The friction of the linear flow, continued to a speed of zero."""
    holds: Any
    """tau_f(0)."""
    i_max: Any
    """None where nothing limits the current."""

    def about(self, at: _Part) -> "_Motor":
        """The flow of a part that starts there.

        Stribeck friction is linear about that speed; a current at its limit stands still.
        """
        friction, motor, A, slides = self.motor.friction, self.motor, self.A, self.slides
        if isinstance(friction, Stribeck):
            slope = friction.slope(at.omega)
            damping = motor.damping_n_m_s + at.way * slope
            motor = with_fields(motor, damping_n_m_s=damping)
            A = _matrix(motor, self.state, self.u, self.mode, self.J)
            slides = friction.torque(at.omega) - slope * at.omega
        if self.i_max is not None:
            moves = at.held == 0
            A = Matrix2(A.a, A.b, jnp.where(moves, A.c, 0.0), jnp.where(moves, A.d, 0.0))
        return self._replace(motor=motor, A=A, slides=slides)

    def rates(self, omega: Any, x: Any, way: Any) -> tuple[Any, Any]:
        """dw/dt and dx/dt of a rotor that slides in that way; without friction for way 0."""
        motor, u = self.motor, self.u
        b, L, R = motor.damping_n_m_s, motor.l_henry, circuit_resistance(motor, self.state, u)
        kt, ke = motor.constants(self.state["current"])
        tau = self.tau_load - way * self.slides - b * omega
        error = u["commanded_velocity"] - omega
        torque, x_dot = u["commanded_torque"] + tau, jnp.zeros_like(omega)
        if self.mode.velocity is not False:
            torque = select(self.mode.velocity, motor.velocity_kp * error + x + tau, torque)
            x_dot = select(self.mode.velocity, motor.velocity_ki * error, x_dot)
        if self.mode.voltage is not False:
            V = terminal_voltage(motor, u)
            torque = select(self.mode.voltage, kt * x + tau, torque)
            x_dot = select(self.mode.voltage, (V - R * x - ke * omega) / L, x_dot)
        return torque / self.J, x_dot


def step_with_friction(
    motor: MotorParameters, state: Fields, u: Fields, tau_load: Any, mode: Mode, dt: Any
) -> Fields:
    """The state after dt of a motor with dry friction or a limited current; else `exact_step`."""
    J = inertia(motor)
    omega = state["angular_velocity"]
    zero = jnp.zeros_like(omega)
    holds = zero if motor.friction is None else motor.friction.torque(zero)
    A, i_max = _matrix(motor, state, u, mode, J), largest_current(motor, mode)
    parts = PARTS if i_max is None else LIMITED_PARTS
    m = _Motor(motor, state, u, tau_load, mode, J, A, holds, holds, i_max)
    y = motor.velocity_ki * state["velocity_integral_error"]
    x = select(mode.voltage, state["current"], select(mode.velocity, y, jnp.zeros_like(omega)))
    at_rest, _ = m.rates(zero, x, 0.0)
    way = jnp.where(omega == 0, _way_from_rest(m, at_rest), jnp.sign(omega))
    held = zero
    if i_max is not None:
        _, x_dot = m.rates(omega, x, way)
        is_held = (jnp.abs(x) >= i_max) & (x * x_dot > 0) & mode.voltage
        held = jnp.where(is_held, jnp.sign(x), zero)
    start = _Part(omega, x, zero, way, held, jnp.full_like(omega, dt))

    part = _after(m, start)

    def rest(part: _Part) -> _Part:
        part, _ = lax.scan(lambda at, _: (_after(m, at), None), part, length=parts - 1)
        x_dot = m.rates(zero, part.x, 0.0)[1]
        x = part.x + part.left * phi_1(m.A.d * part.left) * x_dot
        is_over = part.left > 0
        return part._replace(
            omega=jnp.where(is_over, 0.0, part.omega), x=jnp.where(is_over, x, part.x)
        )

    part = lax.cond(part.left > 0, rest, lambda part: part, part)
    integral = state["velocity_integral_error"]
    error = u["commanded_velocity"] * dt - part.turned
    return {
        "angle": state["angle"] + part.turned,
        "angular_velocity": part.omega,
        "current": select(mode.voltage, limited_current(motor, part.x), 0.0),
        "velocity_integral_error": select(mode.velocity, integral + error, integral),
    }


def _matrix(motor: MotorParameters, state: Fields, u: Fields, mode: Mode, J: Any) -> Matrix2:
    """A of the mode; in torque mode the speed's alone."""
    if not (mode.voltage is False and mode.velocity is False):
        A, _, _ = linear_system(motor, state, u, 0.0, mode, J)
        if mode.voltage is True or mode.velocity is True:
            return A
    alone = Matrix2(-motor.damping_n_m_s / J, 0.0, 0.0, 0.0)
    if mode.voltage is False and mode.velocity is False:
        return alone
    either = mode.voltage | mode.velocity
    return Matrix2(*(select(either, a, b) for a, b in zip(A, alone, strict=True)))


def _way_from_rest(m: _Motor, at_rest: Any) -> Any:
    """The way in which a rotor at rest begins to slide, 0 where friction holds it."""
    return jnp.where(jnp.abs(at_rest) * m.J > m.holds, jnp.sign(at_rest), 0.0)


def _after(m: _Motor, at: _Part) -> _Part:
    """The rotor where it next stops, turns back or breaks away, or at the end of the step.

    Or where its current reaches its limit or leaves it.
    """
    zero = jnp.zeros_like(at.omega)
    sticks = at.way == 0
    m = m.about(at)
    # As it slides.
    w_dot, x_dot = m.rates(at.omega, at.x, at.way)
    free_dot, limits = x_dot, jnp.zeros_like(sticks)
    if m.i_max is not None:
        x_dot = jnp.where(at.held == 0, x_dot, 0.0)
    stop, slope, stops = lax.stop_gradient(_stop(m.A, at, w_dot, x_dot))
    stops &= ~sticks
    slope = jnp.where(stops & (slope != 0), slope, 1.0)
    speed = at.omega + responses(m.A, w_dot, x_dot, stop)[0]
    t_slide = jnp.where(stops, stop - speed / slope, at.left)
    if m.i_max is not None:
        t_limit, limits = _limit(m, at, w_dot, x_dot, free_dot)
        limits &= ~sticks & (t_limit < t_slide)
        stops &= ~limits
        t_slide = jnp.where(limits, t_limit, t_slide)
    d_omega, d_x, _ = responses(m.A, w_dot, x_dot, t_slide)
    slid = at._replace(
        omega=jnp.where(stops, 0.0, at.omega + d_omega),
        x=at.x + d_x,
        turned=at.turned + at.omega * t_slide + response_integral(m.A, w_dot, x_dot, t_slide),
    )
    at_rest, _ = m.rates(zero, slid.x, 0.0)
    way = jnp.where(stops, _way_from_rest(m, at_rest), at.way)
    # As it sticks.
    torque, x_dot = m.rates(zero, at.x, 0.0)
    if m.i_max is not None:
        x_dot = jnp.where(at.held == 0, x_dot, 0.0)
    torque_dot = m.A.b * x_dot
    to = jnp.sign(torque_dot)
    gap = jnp.maximum(m.holds / m.J - to * torque, 0.0)
    wait, breaks = _time_to(gap, jnp.abs(torque_dot), m.A.d)
    breaks &= sticks & (wait < at.left)
    t_stick = jnp.where(breaks, wait, at.left)
    if m.i_max is not None:
        gap = jnp.maximum(m.i_max - jnp.sign(x_dot) * at.x, 0.0)
        wait, reaches = _time_to(gap, jnp.abs(x_dot), m.A.d)
        reaches &= sticks & m.mode.voltage & (wait < t_stick)
        breaks &= ~reaches
        t_stick = jnp.where(reaches, wait, t_stick)
        limits |= reaches
    x_stuck = at.x + t_stick * phi_1(m.A.d * t_stick) * x_dot

    happens = jnp.where(sticks, breaks, stops)
    x, held = jnp.where(sticks, x_stuck, slid.x), at.held
    if m.i_max is not None:
        happens |= limits
        begins = limits & (held == 0)
        held = jnp.where(limits, jnp.where(begins, jnp.sign(x), 0.0), held)
        x = jnp.where(begins, held * m.i_max, x)
    left = jnp.where(happens, at.left - jnp.where(sticks, t_stick, t_slide), 0.0)
    return _Part(
        omega=jnp.where(sticks, zero, slid.omega),
        x=x,
        turned=jnp.where(sticks, at.turned, slid.turned),
        way=jnp.where(sticks, jnp.where(breaks, to, 0.0), way),
        held=held,
        left=left,
    )


def _limit(m: _Motor, at: _Part, w_dot: Any, x_dot: Any, free_dot: Any) -> tuple[Any, Any]:
    """When the current of a sliding rotor reaches its limit or leaves it, and whether it does.

    It is looked for at the limit that the current moves to. One that turns around within the part
    and reaches the other limit is held there from the end of the step on.
    """
    side = jnp.sign(x_dot)
    swapped = Matrix2(m.A.d, m.A.c, m.A.b, m.A.a)
    eps = jnp.finfo(jnp.result_type(at.x)).eps
    gap, slack = m.i_max - side * at.x, 8 * eps * m.i_max  # one that has just left is not back
    args = swapped, gap, -side * x_dot, -side * w_dot, at.left, slack
    root, slope, reaches = lax.stop_gradient(_first_root(*lax.stop_gradient(args)))
    change, _, _ = responses(swapped, x_dot, w_dot, root)
    root = root - (gap - side * change) / jnp.where(reaches & (slope != 0), slope, -1.0)
    # A current that is held: L di/dt = V - R i - ke w would fall to zero.
    _, ke = m.motor.constants(m.state["current"])
    rate = at.held * ke / m.motor.l_henry * w_dot
    wait, leaves = _time_to(jnp.maximum(at.held * free_dot, 0.0), rate, m.A.a)
    is_free = at.held == 0
    return jnp.where(is_free, root, wait), jnp.where(is_free, reaches, leaves) & m.mode.voltage


def _time_to(gap: Any, rate: Any, pole: Any) -> tuple[Any, Any]:
    """When rate phi_1(pole t) t reaches the gap, and whether it ever does."""
    grows = rate > 0
    linear = gap / jnp.where(grows, rate, 1.0)
    part = -pole * linear
    reaches = grows & (part < 1)
    return linear * _log_ratio(jnp.where(reaches, part, 0.0)), reaches


def _log_ratio(y: Any) -> Any:
    """-log(1 - y) / y, and 1 at y = 0."""
    small = jnp.abs(y) < 1e-3  # the series' first dropped term, y^5 / 6, is then below 1e-15
    safe = jnp.where(small, 0.5, y)
    series = 1.0 + y * (1 / 2 + y * (1 / 3 + y * (1 / 4 + y * (1 / 5))))
    return jnp.where(small, series, -jnp.log1p(-safe) / safe)


def _stop(A: Matrix2, at: _Part, w_dot: Any, x_dot: Any) -> tuple[Any, Any, Any]:
    """The first time at which a sliding rotor stops, its acceleration then, and whether it does.

    The distance f = s w from rest falls to a first minimum and rises, or rises to a maximum first:
    later minima lie higher, as the motion about the steady speed decays. Stribeck friction may make
    it grow: then a step must be shorter than half a period.
    """
    A, at, w_dot, x_dot = lax.stop_gradient((A, at, w_dot, x_dot))
    f_0, f_dot = at.way * at.omega, at.way * w_dot
    f_dot = jnp.where(at.omega == 0, jnp.maximum(f_dot, 0.0), f_dot)  # it has just begun to slide
    t, slope, stops = _first_root(A, f_0, f_dot, at.way * x_dot, at.left)
    return t, at.way * slope, stops


def _first_root(
    A: Matrix2, f_0: Any, f_dot: Any, x_dot: Any, left: Any, slack: Any = 0.0
) -> tuple[Any, Any, Any]:
    """The first time at which a distance f falls below zero, its slope then, and whether it does.

    f is the first state of the flow, less a constant; its rates are (f_dot, x_dot). Falls of less
    than `slack` do not count.
    """
    f_ddot = A.a * f_dot + A.b * x_dot
    turn, again = _extremum(A, f_dot, f_ddot)
    falls = (f_dot < 0) | ((f_dot == 0) & (f_ddot < 0))
    low = jnp.where(falls, 0.0, jnp.minimum(turn, left))
    high = jnp.minimum(jnp.where(falls, turn, turn + again), left)

    def f(t: Any) -> tuple[Any, Any]:
        change, _, slope = responses(A, f_dot, x_dot, t)
        return f_0 + change, f_dot + slope

    f_high, _ = f(high)
    stops = (f_high < -slack) & (high > low)
    eps = jnp.finfo(jnp.result_type(f_0)).eps
    guess = jnp.where(falls, f_0 / jnp.where(stops, f_0 - f_high, 1.0), 0.5)
    start = low + (high - low) * jnp.clip(guess, 0.0, 1.0)

    def going(loop: Any) -> Any:
        round_, _, _, _, _, done = loop
        return ~done & (round_ < _ROUNDS)

    def once(loop: Any) -> Any:
        round_, t, low, high, before, _ = loop
        value, slope = f(t)
        low, high = jnp.where(value > 0, t, low), jnp.where(value > 0, high, t)
        new = t - value / jnp.where(slope < 0, slope, -1.0)
        # Halve the bracket where Newton leaves it, or is slower than halving.
        halve = (slope >= 0) | (new <= low) | (new >= high) | (2 * jnp.abs(new - t) > before)
        new = jnp.where(halve, 0.5 * (low + high), new)
        new = jnp.where(value == 0, t, new)
        moved = jnp.abs(new - t)
        return round_ + 1, new, low, high, moved, moved <= 2 * eps * high

    loop = 0, start, low, high, high - low, ~stops
    _, t, _, _, _, _ = lax.while_loop(going, once, loop)
    return t, f(t)[1], stops


def _extremum(A: Matrix2, v: Any, v_dot: Any) -> tuple[Any, Any]:
    """The first time > 0 at which v(t) = 0, infinite if none, and how long after that the next.

    v(t) = e^(m t) (v cosh(q t) + (v' - m v) sinh(q t) / q),   m = tr/2,   q² = m² - det
    """
    half, z = 0.5 * (A.a + A.d), 0.25 * (A.a - A.d) ** 2 + A.b * A.c
    d = half * v - v_dot
    q = jnp.sqrt(jnp.abs(z))
    is_real = z >= 0
    # Real poles: tanh(q t) = q v / d.
    y = q * v / jnp.where(d == 0, 1.0, d)
    has = is_real & (d != 0) & (v * d > 0) & (y < 1)
    y = jnp.where(has, y, 0.0)
    ratio = v / jnp.where(d == 0, 1.0, d)
    real = ratio * 0.5 * (_log_ratio(y) + _log_ratio(-y))
    # Complex poles: tan(q t) = q v / d.
    angle = jnp.arctan2(q * v, d)
    angle = jnp.where(angle <= 0, angle + jnp.pi, angle)
    safe = jnp.where(is_real, 1.0, q)
    inf = jnp.full_like(real, jnp.inf)
    first = jnp.where(is_real, jnp.where(has, real, inf), angle / safe)
    return first, jnp.where(is_real, inf, jnp.pi / safe)
