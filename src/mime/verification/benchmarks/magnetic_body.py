"""MIME-VER-183: force and torque on a magnetic body, and the reaction on the magnet."""

import math

import numpy as np
import scipy

from mime.core.node import Scalar, State, Values
from mime.nodes.magnetics.magnetic_body import MagneticBodyNode
from mime.nodes.magnetics.permanent_magnet import PermanentMagnetNode
from mime.verification.benchmark import Measurement, benchmark


class _NoArm(MagneticBodyNode):
    """The reaction is -tau where it should be -tau - r x F."""

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        fluxes = super().compute_boundary_fluxes(state, boundary_inputs, dt)
        return {**fluxes, "magnet_wrench_world": -fluxes["wrench_world"]}


@benchmark(183, "Torque on a magnetic body, and the reaction", MagneticBodyNode, _NoArm)
def magnetic_reaction(
    Body, *, magnet_moment_a_m2=18.89, body_moment_a_m2=1e-3, within_m=(0.05, 0.3), cases=12
):
    r"""$\mathbf F = \frac{3\mu_0}{4\pi d^4}\big((\mathbf m_1\cdot\mathbf n)\mathbf m_2 +
    (\mathbf m_2\cdot\mathbf n)\mathbf m_1 + (\mathbf m_1\cdot\mathbf m_2)\mathbf n -
    5(\mathbf m_1\cdot\mathbf n)(\mathbf m_2\cdot\mathbf n)\mathbf n\big)$,
    $\boldsymbol\tau_i = \mathbf m_i\times\mathbf B_j$

    Two dipoles: what the magnet does to the body, and the body to the magnet.

    Reference: The force between two dipoles and the torque of either in the other's field, in
    NumPy. The reference computes the torque on the magnet from the field of the body, which the
    node never does.
    Procedure:
    1. Place a body with a random moment about the magnet (seed 0), near and far.
    2. Compare force and torque on both; add up all torques about the world's origin.
    Covers: force, torque, reaction at the magnet's centre
    Excludes: the field itself (MIME-VER-180), soft bodies, the torque about a rotor's axis
    """
    random = np.random.default_rng(0)
    m_1 = np.array([magnet_moment_a_m2, 0.0, 0.0])
    magnet = PermanentMagnetNode("magnet", 1e-3, moment_a_m2=magnet_moment_a_m2)
    centre = np.array([0.1, -0.2, 0.05])
    magnet_pose = np.array([*centre, 1.0, 0.0, 0.0, 0.0])
    worst = {"force on the body": 0.0, "torque on the body": 0.0, "torque on the magnet": 0.0}
    left = 0.0
    for distance in np.geomspace(within_m[0], within_m[1], cases):
        r, m_2 = random.normal(size=(2, 3))
        r, m_2 = r * distance / np.linalg.norm(r), m_2 * body_moment_a_m2 / np.linalg.norm(m_2)
        there = centre + r
        given = {"magnet_pose_world": magnet_pose, "points_world": there}
        field = magnet.compute_boundary_fluxes({}, given, 1e-3)
        body = Body("body", 1e-3, moment_a_m2=m_2)
        wired = {name: field[name] for name in ("field_world", "field_gradient_world", "inside")}
        pose = np.array([*there, 1.0, 0.0, 0.0, 0.0])
        inputs = {"body_pose_world": pose, "magnet_pose_world": magnet_pose, **wired}
        found = body.compute_boundary_fluxes(body.initial_state(), inputs, 1e-3)
        on_body = np.array(found["wrench_world"])
        on_magnet = np.array(found["magnet_wrench_world"])
        pairs = {
            "force on the body": (on_body[:3], _force(r, m_1, m_2)),
            "torque on the body": (on_body[3:], np.cross(m_2, _field(r, m_1))),
            "torque on the magnet": (on_magnet[3:], np.cross(m_1, _field(-r, m_2))),
        }
        for words, (ours, expected) in pairs.items():
            apart = float(np.linalg.norm(ours - expected) / np.linalg.norm(expected))
            worst[words] = max(worst[words], apart)
        total = on_body[3:] + on_magnet[3:]
        total = total + np.cross(there, on_body[:3]) + np.cross(centre, on_magnet[:3])
        left = max(left, float(np.linalg.norm(total) / np.linalg.norm(on_body[3:])))
    for words, largest in worst.items():
        why = "some ten roundings; the distance loses a few more where the world's origin is far"
        yield Measurement(f"relative error, {words}", largest, 1e-13, why=why)
    yield Measurement("sum of all torques over one", left, 1e-13, why="some ten roundings")


def _field(r: np.ndarray, m: np.ndarray) -> np.ndarray:
    d = np.linalg.norm(r)
    n = r / d
    field: np.ndarray = scipy.constants.mu_0 / (4.0 * math.pi * d**3) * (3.0 * (m @ n) * n - m)
    return field


def _force(r: np.ndarray, m_1: np.ndarray, m_2: np.ndarray) -> np.ndarray:
    d = np.linalg.norm(r)
    n = r / d
    along_1, along_2 = m_1 @ n, m_2 @ n
    terms = along_1 * m_2 + along_2 * m_1 + (m_1 @ m_2) * n - 5.0 * along_1 * along_2 * n
    force: np.ndarray = 3.0 * scipy.constants.mu_0 / (4.0 * math.pi * d**4) * terms
    return force
