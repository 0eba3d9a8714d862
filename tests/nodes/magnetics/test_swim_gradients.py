"""How fast the swimmer swims, by pitch, distance and spin rate of the magnet: gradients."""

import jax
import numpy as np
import pytest

from mime import GraphManager, HelicalSwimmerNode, MagneticBodyNode, MotorNode, PermanentMagnetNode

STEPS, DT = 40, 1e-3


@pytest.fixture(scope="module")
def chain():
    """Motor, magnet, body and swimmer; the swimmer lies below the magnet, on the spin axis."""
    graph = GraphManager()
    graph.add_node(MotorNode(
        "motor", DT, inertia_kg_m2=1e-5, kt_n_m_per_a=0.05, r_ohm=1.0, l_henry=1e-3,
        damping_n_m_s=1e-4, axis_in_parent_frame=(0.0, 0.0, 1.0),
    ))  # fmt: skip
    graph.add_node(PermanentMagnetNode("magnet", DT, moment_a_m2=18.89))
    graph.add_node(MagneticBodyNode("body", DT, moment_a_m2=(-1e-3, 0.0, 0.0)))
    graph.add_node(HelicalSwimmerNode(
        "swimmer", DT, pitch_m=4e-3, helix_radius_m=1e-3, turns=2.5, filament_radius_m=1e-4,
        head_radius_m=1e-3, viscosity_pa_s=0.05,
    ))  # fmt: skip
    for target in ("magnet", "body"):
        graph.add_edge("motor", target, "rotor_pose_world", "magnet_pose_world")
    for name in ("field_world", "inside"):
        graph.add_edge("magnet", "body", name, name)
    # The torque alone, so that what is seen is swimming and not the magnet's pull.
    graph.add_edge("body", "swimmer", "wrench_world", "wrench_world", transform=only_torque)
    graph.add_edge("swimmer", "magnet", "position_world", "points_world", delay=True)
    graph.add_edge("swimmer", "body", "swimmer_pose_world", "body_pose_world", delay=True)
    graph.add_external_input("motor", "commanded_voltage")
    return graph.compile()


def only_torque(wrench):
    return wrench * np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])


def way_of(chain):
    def way(given):
        """How far the swimmer swam along the axis, m."""
        variant = chain.with_parameters({"swimmer": {"pitch_m": given["pitch_m"]}})
        place = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
        start = jax.numpy.asarray(place).at[2].set(-given["distance_m"])
        speed = {"angular_velocity": given["spin_rate"]}
        state = variant.init_state({"swimmer": {"pose_world": start}, "motor": speed})
        volts = (0.05 + 1e-4 / 0.05) * given["spin_rate"]  # back-EMF, and friction's current
        inputs = {"motor": {"commanded_voltage": volts}}
        end = variant.rollout(state, inputs, STEPS, record=())[0].of("swimmer")
        return end["pose_world"][2] + given["distance_m"]

    return way


AT = {"pitch_m": 4e-3, "distance_m": 0.1, "spin_rate": 20.0}


def test_gradients_of_the_way_are_those_of_differences(chain):
    way = way_of(chain)
    slopes = jax.grad(way)(AT)
    found = float(way(AT))
    assert abs(found) > 1e-5  # it swims
    for name, slope in slopes.items():
        h = 1e-4 * AT[name]
        up, down = way(AT | {name: AT[name] + h}), way(AT | {name: AT[name] - h})
        # 1e-8 of curvature, and 1e-16 / 1e-4 of roundings at a distance of 0.1 m in 1e-5 m.
        assert float(slope) == pytest.approx(float(up - down) / (2 * h), rel=1e-5)
        assert abs(slope * AT[name]) > 1e-2 * abs(found)
