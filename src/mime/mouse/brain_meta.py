"""Metadata of `MouseBrainNode`, and what each field of its state is."""

from mime.core.node import Mapped, NodeMeta, ValidatedRange

META = NodeMeta(
    id="MIME-NODE-130",
    version="1.0.0",
    stability="experimental",
    summary="Maze-solving controller: encoder ticks, ranges and a gyro in, two voltages out.",
    equations=(
        r"\Delta s = k\,(\Delta l + \Delta r)/2, \quad x \mathrel{+}= \Delta s\cos(\theta + "
        r"\Delta\theta/2), \quad y \mathrel{+}= \Delta s\sin(\theta + \Delta\theta/2)",
        r"\nu = d - (X - x_s)/\cos\varphi \quad\text{(extended Kalman filter, a ray a tick)}",
        r"v = v_r\cos e_\theta + k_x e_x, \quad \omega = \omega_r + e_y v_r/\lambda^2 + "
        r"2(v_r/\lambda + k_\theta)e_\theta",
        r"V = k_v\omega_w + k_a\dot\omega_w + k_p(\omega_w - \hat\omega_w) + k_i\int",
        r"\kappa(s) = \frac{\pi^2}{4L}\sin\frac{\pi s}{L} \quad\text{(curves)}",
    ),
    discretisation=("One tick a step; legs are evaluated exactly at the tick's time.",),
    assumptions=(
        "It is set down in the centre of the start cell, facing its open side.",
        "It knows the maze's size, the cells' size and the goal's cells.",
        "It stands still for the first 0.3 s.",
    ),
    limitations=(
        "No diagonals.",
        "Explores at one speed, also where it has been before.",
        "Range sensors that see the walls of the cell ahead from its edge are needed.",
    ),
    validated_ranges=(ValidatedRange("timestep", 1e-3, 2e-3, "s", "in 100 random mazes"),),
    references=(
        "Kanayama, Y. et al. (1990). A stable tracking control method for an autonomous mobile "
        "robot. IEEE ICRA.",
        "Thrun, S., Burgard, W., Fox, D. (2005). Probabilistic Robotics. MIT Press.",
    ),
    implementation=(
        Mapped("x, y, theta, k", "mime.mouse.estimator.correct"),
        Mapped("v, omega, V", "mime.mouse.tracking.track"),
        Mapped("kappa", "mime.mouse.legs.advance"),
        Mapped("walls", "mime.mouse.brain.MouseBrainNode.update"),
        Mapped("way", "mime.mouse.strategy.Strategy.explore"),
    ),
)

STATE_FIELDS = {
    "clock": ("s", "since it was switched on"),
    "ticks": ("", "left and right count of the tick before"),
    "gyro_bias": ("rad/s", "learnt while it stood still"),
    "ray": ("", "which range sensor corrects the pose next"),
    "integral": ("rad", "of the wheels' speed errors"),
    "volts": ("V", "left and right"),
    "beside": ("", "1 while a side sensor sees a wall; left, right"),
    "reference": ("m", "x, y, heading [rad] where it should be"),
    "times": ("s", "goal entered, home again, race started, race over"),
    "mean": ("m", "x, y, heading [rad], k"),
    "covariance": ("", "of the mean"),
    "phase": ("", "0 search, 1 return, 2 race, 3 done, 4 stuck"),
    "place": ("", "where the leg ends: 0 edge, 1 centre, 2 turned"),
    "cell": ("", "row and column of the cell that it enters or stands in"),
    "heading": ("", "0 east, 1 south, 2 west, 3 north"),
    "horizontal": ("", "belief: 0 unknown, 1 open, 2 wall"),
    "vertical": ("", "belief: 0 unknown, 1 open, 2 wall"),
    "evidence": ("", "votes for walls left, ahead, right"),
    "route": ("", "headings of the speed run"),
    "straight": ("", "moves in the same direction from each on"),
    "moves": ("", "of the route"),
    "move": ("", "the next"),
    "origin": ("m", "x, y, heading [rad] at the start of the leg"),
    "leg_kind": ("", "0 straight, 1 curve, 2 pivot, 3 rest"),
    "leg_turn": ("", "+1 right, -1 left"),
    "leg_length": ("m", "rad of a pivot"),
    "leg_segment_times": ("s", "of its S-curve"),
    "leg_jerk": ("m/s³", ""),
    "leg_v0": ("m/s", ""),
    "leg_time": ("s", "since its start"),
}
"""Unit and meaning."""
