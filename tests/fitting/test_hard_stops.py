"""A fit whose arm hits a hard stop says so, and one that does not says nothing of it."""

import numpy as np
from scipy.integrate import solve_ivp

import mime
from mime import Channel, Log

PENDULUM = """<robot name="pendulum"><link name="base"/>
<link name="bar"><inertial><origin xyz="0.3 0 0"/><mass value="0.8"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="pivot" type="revolute"><parent link="base"/><child link="bar"/>
<axis xyz="0 -1 0"/><limit lower="-0.5" upper="0.5" effort="100" velocity="100"/></joint></robot>"""
WEIGHT = 0.8 * 9.80665 * 0.3
INERTIA = 0.02 + 0.8 * 0.3**2
FRICTION, RESTITUTION, LIMIT = 0.05, 0.5, 0.5
PERIOD, ROWS = 5e-3, 80


def swing(torque):
    """The angle in each row: from hit to hit."""

    def slope(t, x):
        return [x[1], (torque - WEIGHT * np.cos(x[0]) - FRICTION * x[1]) / INERTIA]

    def hits(t, x):
        return x[0] - LIMIT

    hits.terminal, hits.direction = True, 1
    rows, x, t, end = [], [0.0, 0.0], 0.0, PERIOD * ROWS
    while t < end:
        times = PERIOD * np.arange(np.ceil(t / PERIOD), ROWS)
        part = solve_ivp(slope, (t, end), x, t_eval=times, events=hits, rtol=1e-9, atol=1e-11)
        rows += part.y[0].tolist()
        if part.status == 0:
            break
        t, x = part.t_events[0][0], [LIMIT, -RESTITUTION * part.y_events[0][0][1]]
    return np.array(rows)


def test_a_fit_names_the_joints_that_hit_a_hard_stop(tmp_path):
    file = tmp_path / "pendulum.urdf"
    file.write_text(PENDULUM)
    graph = mime.GraphManager()
    graph.add_node(
        mime.RobotArmNode(
            "arm",
            PERIOD / 4,
            file,
            "bar",
            joint_friction_n_m_s=[0.06],
            stop_restitution=RESTITUTION,
        )
    )
    graph.add_external_input("arm", "commanded_joint_torques")
    simulation = graph.compile()
    columns = {
        "torque": "arm.commanded_joint_torques[0]",
        "angle": Channel("arm.joint_angles[0]", delay=0),
    }
    torque = WEIGHT + 1.0
    clean = swing(torque)
    assert clean.argmax() < 70  # it has bounced
    noise = 1e-3 * np.random.default_rng(0).normal(size=ROWS)
    table = {
        "time": PERIOD * np.arange(ROWS),
        "torque": np.full(ROWS, torque),
        "angle": clean + noise,
    }
    unknown = ["arm.joint[pivot].friction_n_m_s"]
    before = Log(table, span=(0.0, PERIOD * (clean.argmax() - 2)))
    for log, window, hit in (
        (Log(table), "auto", True),
        (Log(table), 0.1, True),
        (before, "auto", False),
    ):
        found = mime.fit(simulation, log, columns, unknown, starts=1, window=window, progress=False)
        assert ("a hard stop is reached: arm.joint[pivot]." in str(found)) == hit
    truth = found[unknown[0]]
    assert truth.low < FRICTION < truth.high  # of this seed, before the hit
