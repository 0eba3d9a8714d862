"""Motors that joints share, from joint angles and torques: rotors and friction at the motors."""

import numpy as np
import pinocchio as pin

import mime
from fitting.arms import columns, graph_of, sines
from mime.models import model_path

URDF = str(model_path("planar_arm_3link"))
T = np.array([[40.0, 0.0, 0.0], [0.0, 50.0, 25.0], [0.0, 30.0, -15.0]])
C = T / np.diag(T)[:, None]
ROTORS = np.array([4e-5, 2e-5, 6e-5])
FRICTION, DRY = np.array([0.5, 0.3, 0.4]), np.array([0.2, 0.3, 0.1])
UNKNOWNS = ["arm.tree.rotor_inertia", "arm.joint_friction_n_m_s", "arm.friction.torque_n_m"]


def log(seed, rows=400, duration=4.0):
    """Pinocchio's rigid torques, and what motors add that turn by T q."""
    model = pin.buildModelFromUrdf(URDF)
    data, time = model.createData(), np.linspace(0.0, duration, rows)
    q, qd, qdd = sines(3, seed, time, duration)
    tau = np.array([pin.rnea(model, data, *row) for row in zip(q, qd, qdd, strict=True)])
    u = qd @ C.T
    tau = tau + (qdd @ T.T * ROTORS) @ T + (FRICTION * u + DRY * np.sign(u)) @ C
    random = np.random.default_rng(seed)
    q = q + 1e-6 * random.normal(size=q.shape)
    tau = tau + 0.01 * random.normal(size=q.shape)
    read = {f"q{j}": q[:, j] for j in range(3)} | {f"tau{j}": tau[:, j] for j in range(3)}
    return mime.Log({"time": time, **read}, name=f"log {seed}")


def fitted(tree):
    start = {"joint_friction_n_m_s": np.full(3, 0.2), "friction": mime.Coulomb(np.full(3, 0.1))}
    return mime.fit(
        graph_of(tree, **start),
        [log(0)],
        columns(3, delay=0),
        UNKNOWNS,
        by="inverse_dynamics",
        progress=False,
    )


def test_inverse_dynamics_finds_rotors_and_friction_at_the_motors():
    tree = mime.parse_urdf(URDF).with_drives(np.full(3, 3e-5), T)
    found = fitted(tree)
    assert found.is_explained, str(found)
    truth = dict(zip(UNKNOWNS, (ROTORS, FRICTION, DRY), strict=True))
    off = []
    for name, values in truth.items():
        for j, value in enumerate(values):
            e = found[f"{name}[{j}]"]
            off.append((e.value - value) / (0.5 * (e.high - e.low)))
    assert np.max(np.abs(off)) < 1.7  # 3.3 standard deviations
    arm = found.simulation.nodes["arm"]
    np.testing.assert_allclose(arm.tree.transmission, T, rtol=1e-6)  # single precision
