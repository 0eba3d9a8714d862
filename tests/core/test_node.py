"""A node is a frozen, checked, differentiable value; stepping it by hand is cheap."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from elements import Rotor
from mime import InputError, ParameterError
from mime.native.folding import jit_folding


@pytest.fixture
def rotor():
    return Rotor("rotor", 1e-3, 0.01)


def test_parameters_are_differentiable_leaves(rotor):
    assert len(jax.tree.leaves(rotor)) == 2
    state = rotor.initial_state()
    gradient = jax.grad(lambda r: r.update(state, {"torque": 1.0}, 1e-3)["speed"])(rotor)
    J, b, dt = 0.01, 0.1, 1e-3
    # w = dt tau/(J + dt b): both derivatives are one rounded division away.
    assert gradient.inertia_kg_m2 == pytest.approx(-dt / (J + dt * b) ** 2, rel=1e-14)
    assert gradient.damping_n_m_s == pytest.approx(-(dt**2) / (J + dt * b) ** 2, rel=1e-14)


def test_a_node_cannot_be_changed(rotor):
    with pytest.raises(dataclasses.FrozenInstanceError):
        rotor.inertia_kg_m2 = 2.0
    with pytest.raises(TypeError):
        rotor.params["inertia_kg_m2"] = 2.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inertia_kg_m2": -1e-4}, "inertia_kg_m2 must be > 0 kg·m², got -0.0001"),
        ({"inertia_kg_m2": 0.0}, "inertia_kg_m2 must be > 0"),
        ({"inertia_kg_m2": np.nan}, "inertia_kg_m2 must be > 0"),
        ({"inertia_kg_m2": "heavy"}, "inertia_kg_m2 must be a number [kg·m²], got 'heavy'"),
        ({"inertia_kg_m2": [1.0, 2.0]}, "inertia_kg_m2 must have shape (), got (2,)"),
        ({"inertia_kg_m2": 1.0, "damping_n_m_s": -1.0}, "damping_n_m_s must be >= 0 N·m·s"),
    ],
)
def test_a_bad_parameter_is_refused_with_what_got_and_expected(arguments, message):
    with pytest.raises(ParameterError, match="Rotor 'rotor'") as error:
        Rotor("rotor", 1e-3, **arguments)
    assert message in str(error.value)


@pytest.mark.parametrize("timestep", [0.0, -1e-3, np.inf])
def test_a_timestep_that_is_none_is_refused(timestep):
    with pytest.raises(ParameterError, match="timestep must be > 0 s"):
        Rotor("rotor", timestep, 0.01)


def test_a_node_built_under_a_transform_is_not_checked():
    J = jnp.array([1.0, 2.0, -3.0])
    speeds = jax.vmap(
        lambda j: Rotor("r", 1e-3, j).update(
            {"angle": jnp.zeros(()), "speed": jnp.ones(())}, {}, 1e-3
        )["speed"]
    )(J)
    np.testing.assert_allclose(speeds, J / (J + 1e-4), rtol=1e-15)


def test_absent_inputs_take_their_defaults(rotor):
    state = rotor.initial_state() | {"speed": jnp.asarray(2.0)}
    explicit = rotor.update(state, {"torque": 0.0, "pose": (0, 0, 0, 1, 0, 0, 0)}, 1e-3)
    assert rotor.update(state, {}, 1e-3) == explicit


def test_an_unknown_input_is_refused_with_the_known_names(rotor):
    with pytest.raises(InputError, match=r"no input 'torqe' \(did you mean 'torque'\?\)") as error:
        rotor.update(rotor.initial_state(), {"torqe": 1.0}, 1e-3)
    assert "'torque', 'pose'" in str(error.value)


def test_an_input_of_the_wrong_shape_is_refused(rotor):
    with pytest.raises(InputError, match=r"'torque' has shape \(1,\), expected \(\) \[N·m\]"):
        rotor.update(rotor.initial_state(), {"torque": [1.0]}, 1e-3)


def test_update_keeps_the_dtype_of_the_state(rotor, precision):
    rotor = Rotor("rotor", 1e-3, 0.01)
    state = rotor.update(rotor.initial_state(), {"torque": np.float64(1.0)}, np.float64(1e-3))
    assert {x.dtype.name for x in state.values()} == {precision}
    assert not any(x.weak_type for x in state.values())


def test_with_params_replaces_a_leaf_and_checks_it(rotor):
    heavier = rotor.with_params(inertia_kg_m2=2.0)
    assert heavier.params["inertia_kg_m2"] == 2.0
    assert rotor.params["inertia_kg_m2"] == 0.01
    assert rotor.with_params(extra_torque_n_m=1.0).params["extra_torque_n_m"] == 1.0
    with pytest.raises(ParameterError, match="must be > 0"):
        rotor.with_params(inertia_kg_m2=-1.0)
    with pytest.raises(ParameterError, match="did you mean 'inertia_kg_m2'"):
        rotor.with_params(inertia=1.0)
    with pytest.raises(ParameterError, match="shape"):
        rotor.with_params(inertia_kg_m2=[1.0, 2.0])


def test_eager_steps_compile_once(rotor):
    state = rotor.update(rotor.initial_state(), {"torque": 1.0}, 1e-3)
    with jax.log_compiles(), pytest.MonkeyPatch.context() as patch:
        compiled = []
        patch.setattr("jax._src.dispatch.logger.log", lambda *a, **k: compiled.append(a))
        for torque in (2.0, 3.0):
            state = rotor.update(state, {"torque": torque}, 1e-3)
    assert not compiled


def test_complete_metadata_has_no_problems(rotor):
    assert rotor.validate_mime_consistency() == []


def test_incomplete_metadata_is_found(rotor):
    meta = rotor.meta
    gone = dataclasses.replace(meta.implementation[0], function="elements.Rotor.vanish")
    wrong_range = dataclasses.replace(meta.validated_ranges[0], quantity="mass")

    class Careless(Rotor):
        meta = dataclasses.replace(
            Rotor.meta, summary="", implementation=(gone,), validated_ranges=(wrong_range,)
        )

        def boundary_flux_spec(self):
            return super().boundary_flux_spec() | {"heat": Rotor.boundary_flux_spec(self)["speed"]}

    problems = "\n".join(Careless("c", 1e-3, 1.0).validate_mime_consistency())
    for part in ("meta.summary is empty", "Rotor.vanish", "'mass'", "'heat'"):
        assert part in problems


def test_numpy_leaves_fold_and_jax_leaves_stay_arguments():
    seen = []

    @jit_folding
    def scale(pair, x):
        seen.append(type(pair[0]))
        return pair[0] * pair[1] * x

    constant, variable = np.array(2.0), jnp.array(3.0)
    assert scale((constant, variable), 1.0) == 6.0
    assert scale((constant.copy(), variable + 1), 1.0) == 8.0
    assert seen == [np.ndarray]  # traced once: an equal constant is the same program
    assert scale((np.array(5.0), variable), 1.0) == 15.0
    assert len(seen) == 2
