"""Integrators of an arm: their orders, their energy, elastic joints, what is refused."""

import jax
import numpy as np
import pytest

from mime import Coulomb, GraphManager, ParameterError, RobotArmNode, model_path, parse_urdf
from mime.control.kinematics import kinetic_energy, potential_energy

TREE = parse_urdf(model_path("planar_arm_3link"))
ENDLESS = np.full((3, 2), [-np.inf, np.inf])
GRAVITY = np.array([0.0, 0.0, -9.80665])
START = {"arm": {"joint_angles": [0.5, 0.3, 0.2]}}
SPRINGS = {
    "joint_stiffness_n_m_per_rad": [400.0, 300.0, 200.0],
    "rotor_inertia_kg_m2": [1e-4] * 3,
    "gear_ratio": [50.0] * 3,
}


def simulation(integrator, timestep, **options):
    node = RobotArmNode(
        "arm",
        timestep,
        TREE,
        TREE.frame_names[-1],
        joint_limit_override=ENDLESS,
        integrator=integrator,
        **options,
    )
    graph = GraphManager()
    graph.add_node(node)
    return graph.compile()


def end(integrator, timestep, **options):
    run = simulation(integrator, timestep, **options).run(0.2, initial_state=START)
    return run["arm"]["joint_angles"][-1]


@pytest.mark.small("rigid-midpoint-2", "elastic-gauss4-4", "elastic-rk4-4")
@pytest.mark.parametrize(("integrator", "order"), [("midpoint", 2), ("gauss4", 4), ("rk4", 4)])
@pytest.mark.parametrize("springs", [{}, SPRINGS], ids=["rigid", "elastic"])
def test_errors_fall_with_the_order_of_the_scheme(integrator, order, springs):
    exact = end("gauss4", 1e-4, **springs)
    coarse, fine = (np.abs(end(integrator, dt, **springs) - exact).max() for dt in (2e-3, 1e-3))
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.2)


def test_gauss_keeps_the_energy_of_a_swinging_arm():
    """Ten seconds here; `mime verify` holds it to 1e-6 of its scale over 100 s."""
    run = simulation("gauss4", 1e-3).run(10.0, initial_state=START, every=10, watch=False)

    def energy(q, qd):
        return kinetic_energy(TREE, q, qd) + potential_energy(TREE, q, GRAVITY)

    energies = np.asarray(
        jax.vmap(energy)(run["arm"]["joint_angles"], run["arm"]["joint_velocities"])
    )
    # Order 4 at 20 rad/s: (0.02)⁴ of some 20 J, bounded.
    assert np.ptp(energies) < 2e-5


def test_dry_friction_needs_the_default():
    with pytest.raises(ParameterError, match="must be None with integrator 'rk4'") as error:
        simulation("rk4", 1e-3, friction=Coulomb([0.1, 0.0, 0.0]))
    assert error.value.problems[0].place == ("friction",)
    simulation("rk4", 1e-3, friction=Coulomb([0.0, 0.0, 0.0]))


def test_gradients_and_single_precision_go_through():
    program = simulation("gauss4", 1e-3)

    @jax.jit
    @jax.value_and_grad
    def final(mass):
        varied = program.with_parameters({"arm.link[link_3].mass_kg": mass})
        return varied.rollout(varied.init_state(START), steps=50)[0].of("arm")["joint_angles"][2]

    step = 1e-5
    slope = (final(0.6 + step)[0] - final(0.6 - step)[0]) / (2 * step)
    # Central differences: h² = 1e-10 of curvature, eps/h = 2e-11 of rounding.
    assert float(final(0.6)[1]) == pytest.approx(float(slope), rel=1e-6)
    with jax.enable_x64(False):
        run = simulation("midpoint", 1e-3).run(steps=10, initial_state=START)
        assert run["arm"]["joint_angles"].dtype == np.float32
