"""A value that leaves the finite numbers is seen: whatever is recorded, and though it heals."""

import jax.numpy as jnp
import numpy as np
import pytest

from elements import Rotor
from mime import (
    DivergenceError,
    DivergenceWarning,
    GraphManager,
    Input,
    InputError,
    Node,
    Output,
    parameter,
)


class Healing(Node):
    """A clock that is not a number in one step, and well again in the next."""

    bad_step: jnp.ndarray = parameter("1", default=37.0)

    def boundary_input_spec(self):
        return {"ignored": Input((), "1")}

    def boundary_flux_spec(self):
        return {}

    def state_spec(self):
        return {"count": Output((), "1"), "value": Output((2,), "1")}

    def update(self, state, boundary_inputs, dt):
        count = state["count"] + 1
        value = jnp.where(count == self.bad_step, jnp.nan, 1.0)
        return {"count": count, "value": jnp.stack([jnp.ones(()), value])}

    def compute_boundary_fluxes(self, state, boundary_inputs, dt):
        return {}


@pytest.fixture(scope="module")
def simulation():
    graph = GraphManager()
    graph.add_node(Rotor("a_rotor", 1e-3, 0.01))
    graph.add_node(Healing("clock", 1e-3))
    graph.add_external_input("clock", "ignored")
    return graph.compile()


@pytest.mark.parametrize("options", [{}, {"record": ()}, {"every": 10}], ids=str)
def test_a_nan_that_heals_is_seen_at_its_step_and_in_its_node(simulation, options):
    with pytest.raises(DivergenceError) as error:
        simulation.run(steps=100, **options)
    where = error.value.where
    assert (where.node, where.field) == ("clock", "value")
    assert where.time_s == pytest.approx(0.037)
    assert int(error.value.trajectory.final_state.step) == 36


def test_a_nan_in_an_input_that_nobody_uses_is_seen(simulation):
    def voltage(t):
        return jnp.where(t >= 0.0195, jnp.nan, 0.0)

    with pytest.raises(DivergenceError) as error:
        simulation.run(steps=30, inputs={"clock": {"ignored": voltage}})
    where = error.value.where
    assert (where.node, where.field) == ("clock", "ignored")
    assert where.time_s == pytest.approx(0.021)  # the step that starts at 20 ms ends here


@pytest.mark.parametrize("options", [{"record": ()}, {"every": 50}], ids=str)
def test_each_member_of_a_batch_that_diverged_is_known_with_its_step(simulation, options):
    steps = np.array([500.0, 12.0, 600.0, 88.0])
    with pytest.warns(DivergenceWarning, match=r"2 of 4 members.*member 1: clock.value"):
        found = simulation.run_batch(
            steps=100, parameters={"clock.bad_step": steps}, threads=2, **options
        )
    assert {index: (d.node, d.field) for index, d in found.diverged.items()} == {
        1: ("clock", "value"),
        3: ("clock", "value"),
    }
    times = [where.time_s for where in found.diverged.values()]
    np.testing.assert_allclose(times, [0.012, 0.088], rtol=1e-12)


def test_members_that_run_one_by_one_are_watched_too(simulation, monkeypatch):
    monkeypatch.setenv("MIME_NATIVE", "off")
    with pytest.warns(DivergenceWarning):
        found = simulation.run_batch(
            steps=100, parameters={"clock.bad_step": [12.0, 500.0]}, record=()
        )
    assert found.diverged[0].time_s == pytest.approx(0.012)
    assert list(found.diverged) == [0]


def test_an_initial_state_that_is_not_finite_is_refused(simulation):
    with pytest.raises(InputError, match=r"initial state: clock.value is not finite"):
        simulation.run(steps=1, initial_state={"clock": {"value": [1.0, np.nan]}})
