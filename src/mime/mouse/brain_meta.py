"""Metadata of `MouseBrainNode`."""

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
