"""Logs of arms whose torques Pinocchio has computed, on motions that are sums of sines."""

import numpy as np
import pinocchio as pin
from scipy.signal import lfilter

import mime


def sines(count, seed, time, duration, size=0.5, harmonics=5):
    """q, q̇ and q̈ (rows, count) at `time` of periodic motions with random amplitudes."""
    k = np.arange(1, harmonics + 1)
    a, b = size * np.random.default_rng(seed).normal(size=(2, harmonics, count)) / k[:, None]
    w = 2 * np.pi * k / duration
    C, S = np.cos(np.outer(time, w)), np.sin(np.outer(time, w))
    return C @ a + S @ b, (C * w) @ b - (S * w) @ a, -(C * w**2) @ a - (S * w**2) @ b


class Rig:
    """A real arm: Pinocchio's, with friction, and noise on angles and torques."""

    def __init__(
        self, model, friction=0.0, middle=0.0, angle_noise=1e-5, torque_noise=0.02, correlation=0.0
    ):
        self.model, self.data = model, model.createData()
        self.friction, self.middle = friction, middle
        self.noise, self.correlation = (angle_noise, torque_noise), correlation

    def log(self, seed, rows=400, duration=4.0, late=0.0, dry=0.0, size=0.5):
        """Columns `time`, `q0`, ..., `tau0`, ...; torques are `late` seconds late."""
        n, time = self.model.nv, np.linspace(0.0, duration, rows)
        q = sines(n, seed, time, duration, size)[0] + self.middle
        before, qd, qdd = sines(n, seed, time - late, duration, size)
        return self.read(seed, time, q, (before + self.middle, qd, qdd), dry)

    def read(self, seed, time, q, felt, dry=0.0):
        """The log of a motion: angles `q`, and the torques of the states q, q̇, q̈ `felt`."""
        random, (_, qd, _) = np.random.default_rng(1000 + seed), felt
        states = zip(*felt, strict=True)
        tau = np.array([pin.rnea(self.model, self.data, *state) for state in states])
        tau = tau + self.friction * qd + dry * np.sign(qd)
        q = q + self.noise[0] * random.normal(size=q.shape)
        tau = tau + self.noise[1] * self.correlated(random.normal(size=q.shape))
        read = {f"q{j}": q[:, j] for j in range(q.shape[1])}
        return {"time": time, **read, **{f"tau{j}": tau[:, j] for j in range(q.shape[1])}}

    def correlated(self, white):
        """An autoregression of first order, of the same size."""
        rho = self.correlation
        later = lfilter([np.sqrt(1.0 - rho**2)], [1.0, -rho], white[1:], axis=0, zi=rho * white[:1])
        return np.concatenate([white[:1], later[0]])

    def regressor(self, count=60, seed=0):
        """Torques by the ten moments of every body (count n, 10 n), at random states."""
        random = np.random.default_rng(seed)
        n = self.model.nv
        states = random.normal(size=(count, 3, n))
        return np.concatenate(
            [pin.computeJointTorqueRegressor(self.model, self.data, *row).copy() for row in states]
        )


def columns(n, **options):
    angles = {f"q{j}": f"arm.joint_angles[{j}]" for j in range(n)}
    torques = {
        f"tau{j}": mime.Channel(f"arm.commanded_joint_torques[{j}]", **options) for j in range(n)
    }
    return angles | torques


def as_pinocchio(moments):
    """m, h, Ixx, Ixy, Ixz, Iyy, Iyz, Izz in Pinocchio's order: Ixx, Ixy, Iyy, Ixz, Iyz, Izz."""
    return np.asarray(moments)[..., [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]]


def guess(tree, seed=7, off=0.2):
    """The tree with other masses and inertias, each link's by up to 20 %."""
    import equinox as eqx

    factor = 1.0 + off * np.random.default_rng(seed).uniform(-1, 1, tree.num_links)
    masses = np.asarray(tree.masses) * factor
    inertias = np.asarray(tree.inertias) * factor[:, None, None]
    return eqx.tree_at(lambda t: (t.masses, t.inertias), tree, (masses, inertias))


def graph_of(tree, **options):
    graph = mime.GraphManager()
    options = {"gravity_world": (0.0, 0.0, -9.81), **options}
    graph.add_node(mime.RobotArmNode("arm", 1e-3, tree, tree.link_names[-1], **options))
    graph.add_external_input("arm", "commanded_joint_torques")
    return graph.compile()
