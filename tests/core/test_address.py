"""Addresses of parameters: one string for a parameter, an effect's, an entry by name."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mime import (
    Effect,
    GraphManager,
    Input,
    Node,
    Output,
    ParameterError,
    Problem,
    Scalar,
    Trajectory,
    effect,
    option,
    parameter,
)
from mime.core.address import find, split_addresses
from mime.core.parameters import NamedEntries
from mime.reporting.report import _parameters


class Brake(Effect):
    """tau = -c w"""

    coefficient_n_m_s: Scalar = parameter("N·m·s/rad", at_least=0.0, doc="c")
    limit_n_m: Scalar | None = parameter("N·m", above=0.0, default=None, doc="largest torque")

    def value_problems(self):
        if self.limit_n_m is not None and float(self.limit_n_m) > 100.0:
            yield Problem(("limit_n_m",), "must be <= 100 N·m", "Take two brakes")


class Wheels(Node):
    """J_k dw_k/dt = tau - c w_k, one wheel per name."""

    inertia_kg_m2: jax.Array = parameter("kg·m²", shape=None, above=0.0, folds=True)
    brake: Brake | None = effect(Brake)
    mode: str = option(default="on", choices=("on", "off"))
    names: tuple[str, ...] = eqx.field(static=True, default=("left", "right"))

    def named_entries(self):
        return {"wheel": {"inertia_kg_m2": NamedEntries("inertia_kg_m2", self.names, "kg·m²")}}

    def boundary_input_spec(self):
        return {"torque": Input((), "N·m")}

    def boundary_flux_spec(self):
        return {"speeds": Output((2,), "rad/s")}

    def state_spec(self):
        return {"speeds": Output((2,), "rad/s")}

    def update(self, state, boundary_inputs, dt):
        c = 0.0 if self.brake is None else self.brake.coefficient_n_m_s
        w = state["speeds"]
        return {"speeds": w + dt * (boundary_inputs["torque"] - c * w) / self.inertia_kg_m2}

    def compute_boundary_fluxes(self, state, boundary_inputs, dt):
        return {"speeds": state["speeds"]}


def wheels(**options):
    return Wheels("cart", 0.01, inertia_kg_m2=(1.0, 2.0), **options)


def simulation(node):
    graph = GraphManager()
    graph.add_node(node)
    graph.add_external_input("cart", "torque")
    return graph.compile()


def test_an_address_reaches_parameters_effects_and_named_entries():
    node = wheels(brake=Brake(0.5))
    assert find(node, "brake.coefficient_n_m_s").of(node) == 0.5
    assert find(node, "wheel[right].inertia_kg_m2").of(node) == 2.0
    changed = node.with_params(
        **{"brake.coefficient_n_m_s": 0.25, "wheel[right].inertia_kg_m2": 3.0}
    )
    assert changed.brake.coefficient_n_m_s == 0.25
    np.testing.assert_array_equal(changed.inertia_kg_m2, [1.0, 3.0])
    np.testing.assert_array_equal(node.inertia_kg_m2, [1.0, 2.0])


def test_flat_and_nested_parameters_are_the_same():
    flat = {"cart.brake.coefficient_n_m_s": 1.0}
    nested = {"cart": {"brake.coefficient_n_m_s": 1.0}}
    assert list(split_addresses(flat)) == list(split_addresses(nested))


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("brake.coeficient_n_m_s", "did you mean 'coefficient_n_m_s'"),
        ("break.coefficient_n_m_s", "did you mean 'brake'"),
        ("wheel[lft].inertia_kg_m2", "did you mean 'left'"),
        ("wheel[left].mass_kg", "a wheel with no 'mass_kg'"),
        ("axle[left].mass_kg", "nothing named 'axle'"),
        ("brake", "no number at 'brake'"),
        ("brake..coefficient_n_m_s", "is no address of a parameter"),
        ("mode", "no parameter 'mode'"),
    ],
)
def test_a_wrong_address_is_answered_with_the_nearest(address, message):
    with pytest.raises(ParameterError, match="Wheels 'cart'") as error:
        wheels(brake=Brake(0.5)).with_params(**{address: 1.0})
    assert message in str(error.value)


def test_a_parameter_of_an_absent_effect_is_refused():
    with pytest.raises(ParameterError, match="has no brake"):
        wheels().with_params(**{"brake.coefficient_n_m_s": 1.0})


def test_values_of_effects_are_checked_in_the_effect_and_in_the_node():
    with pytest.raises(ParameterError, match="Brake: coefficient_n_m_s must be >= 0") as error:
        Brake(-1.0)
    assert error.value.problems[0].place == ("coefficient_n_m_s",)
    with pytest.raises(ParameterError, match=r"limit_n_m must be <= 100 N·m. Take two brakes"):
        Brake(1.0, 200.0)
    with pytest.raises(ParameterError) as error:
        wheels(brake=Brake(0.5)).with_params(**{"brake.coefficient_n_m_s": -2.0})
    assert error.value.problems[0].place == ("brake", "coefficient_n_m_s")
    with pytest.raises(ParameterError, match="brake must be a Brake or None, got 3"):
        wheels(brake=3)


def test_all_problems_of_a_node_are_told_at_once():
    with pytest.raises(ParameterError) as error:
        Wheels("cart", -1.0, inertia_kg_m2=(1.0, -2.0), mode="of")
    assert [problem.place for problem in error.value.problems] == [
        ("timestep",),
        ("mode",),
        ("inertia_kg_m2",),
    ]


def test_addresses_go_through_batches_and_gradients():
    graph = simulation(wheels(brake=Brake(0.5)))
    inputs = {"cart": {"torque": 1.0}}
    values = np.array([0.0, 0.5, 1.0])
    batch = graph.run_batch(
        steps=10,
        inputs=inputs,
        parameters={"cart.brake.coefficient_n_m_s": values, "cart.wheel[left].inertia_kg_m2": 4.0},
    )
    for member, value in enumerate(values):
        alone = graph.with_parameters(
            {"cart": {"brake.coefficient_n_m_s": value, "wheel[left].inertia_kg_m2": 4.0}}
        ).run(steps=10, inputs=inputs)
        # The same operations, compiled in two ways: a few roundings.
        np.testing.assert_allclose(
            batch["cart"]["speeds"][member], alone["cart"]["speeds"], rtol=1e-14
        )

    def final_speed(inertia):
        varied = graph.with_parameters({"cart.wheel[right].inertia_kg_m2": inertia})
        return varied.rollout(varied.init_state(), inputs, 10)[0].of("cart")["speeds"][1]

    step = 1e-5
    slope = (final_speed(2.0 + step) - final_speed(2.0 - step)) / (2 * step)
    # Central differences: h² = 1e-10 of curvature, eps/h = 2e-11 of rounding.
    assert jax.grad(final_speed)(2.0) == pytest.approx(float(slope), rel=1e-8)


def test_a_derived_parameter_follows_what_it_is_derived_from_and_is_not_set():
    graph = GraphManager()
    graph.add_node(wheels(brake=Brake(0.5)))
    graph.add_node(Wheels("trailer", 0.01, inertia_kg_m2=(5.0, 10.0)))
    graph.add_derived_parameter("trailer", "inertia_kg_m2", five_times, ["cart"], ["inertia_kg_m2"])
    program = graph.compile()
    varied = program.with_parameters({"cart.inertia_kg_m2": (2.0, 3.0)})
    np.testing.assert_array_equal(varied.nodes["trailer"].inertia_kg_m2, [10.0, 15.0])
    other = program.with_parameters({"cart.brake.coefficient_n_m_s": 0.1})
    assert other.nodes["trailer"] is program.nodes["trailer"]
    with pytest.raises(
        ParameterError, match=r"follows inertia_kg_m2 of 'cart'. Vary those instead"
    ):
        program.with_parameters({"trailer.inertia_kg_m2": jnp.ones(2)})


def five_times(cart):
    return 5.0 * cart.inertia_kg_m2


def test_results_and_reports_name_the_parameters_of_effects_by_their_address(tmp_path):
    compiled = simulation(wheels(brake=Brake(0.5)))
    run = compiled.run(steps=1)
    assert set(run.parameters["cart"]) == {"inertia_kg_m2", "brake.coefficient_n_m_s"}
    assert run.parameters["cart"]["brake.coefficient_n_m_s"] == 0.5
    page = _parameters(compiled.nodes["cart"])
    assert (
        "<td>brake.coefficient_n_m_s</td><td class=n>0.5</td><td>N·m·s/rad</td><td>c</td>" in page
    )

    batch = compiled.run_batch(steps=1, parameters={"cart.brake.coefficient_n_m_s": [0.1, 0.2]})
    batch.save(tmp_path / "batch.nc")
    for kept in (batch, Trajectory.load(tmp_path / "batch.nc")):
        assert kept.varied == (("cart", "brake.coefficient_n_m_s"),)
        np.testing.assert_array_equal(
            kept.parameters["cart"]["brake.coefficient_n_m_s"], [0.1, 0.2]
        )
