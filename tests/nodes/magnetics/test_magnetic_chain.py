"""Motor, magnet, body and swimmer as one graph: the drag of the swimmer comes back to the motor."""

import numpy as np
import pytest

from mime import HelicalSwimmerNode, MagneticBodyNode, MotorNode, PermanentMagnetNode
from mime.verification.benchmarks.magnetic_energy import chain

KT, OHM, DAMPING, DRAG = 0.05, 1.0, 1e-4, 1e-6
"""Motor: kt = ke, R, b. Swimmer: c1 about its axis."""


def test_the_motor_turns_and_draws_current_as_if_the_swimmers_drag_were_its_own():
    dt = 1e-4
    motor = MotorNode(
        "motor", dt, inertia_kg_m2=1e-5, kt_n_m_per_a=KT, r_ohm=OHM, l_henry=1e-3,
        damping_n_m_s=DAMPING, axis_in_parent_frame=(0.0, 0.0, 1.0),
    )  # fmt: skip
    magnet = PermanentMagnetNode("magnet", dt, moment_a_m2=18.89)
    body = MagneticBodyNode("body", dt, moment_a_m2=(-0.1, 0.0, 0.0))
    # A rod in a fluid so thick that the magnet's pull moves it by a tenth of a millimetre.
    swimmer = HelicalSwimmerNode(
        "swimmer", dt, pitch_m=1e-2, helix_radius_m=1e-8, turns=1.0, filament_radius_m=1e-5,
        viscosity_pa_s=1e3, linear_drag_n_m_s=DRAG,
    )  # fmt: skip
    below = np.array([0.0, 0.0, -0.15, 1.0, 0.0, 0.0, 0.0])
    run = (
        chain(motor, magnet, body, swimmer)
        .compile()
        .run(
            1.0,
            inputs={"motor": {"commanded_voltage": 1.0}},
            initial_state={"swimmer": {"pose_world": below}},
            record={
                "motor": ["angular_velocity", "current"],
                "swimmer": ["spin_rate"],
                "body": ["load_torque"],
            },
        )
    )
    speed, current = (run["motor"][name][-1] for name in ("angular_velocity", "current"))
    spin, load = run["swimmer"]["spin_rate"][-1], run["body"]["load_torque"][-1]
    # The magnet's pull shifts the lag by some 1e-3 rad/s of 19; load and spin keep their balance.
    assert spin == pytest.approx(speed, rel=1e-3)
    assert load == pytest.approx(-DRAG * spin, rel=1e-6)
    both = DAMPING + DRAG
    assert speed == pytest.approx(KT / (OHM * both + KT**2), rel=1e-6)
    assert speed != pytest.approx(KT / (OHM * DAMPING + KT**2), rel=1e-4)  # without a swimmer
    assert current == pytest.approx(both * speed / KT, rel=1e-5)
    # Power in is heat of the winding, friction, and drag of the swimmer.
    heat, friction, drag = OHM * current**2, DAMPING * speed**2, DRAG * speed * spin
    assert current * 1.0 == pytest.approx(heat + friction + drag, rel=1e-6)
