"""Batches: every member equals its own single run; one that diverges does not spoil the others."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

from elements import Cell, Rotor, Spring
from mime import DivergenceWarning, GraphManager, InputError, ParameterError, Trajectory

# A member's lane and a single run are compiled to different vector code: last-bit differences only.
ROUNDING = {"rtol": 1e-12, "atol": 1e-15}


@pytest.fixture(params=["native", "xla"])
def program(request, monkeypatch):
    """Either way to run a batch, whatever the library would choose."""
    monkeypatch.setenv("MIME_NATIVE", "off" if request.param == "xla" else "on")
    return request.param


@pytest.fixture(scope="module")
def simulation():
    graph = GraphManager()
    graph.add_node(Rotor("rotor", 1e-3, 0.01))
    graph.add_node(Spring("spring", 2e-3, 3.0))
    graph.add_edge("rotor", "spring", "angle", "angle")
    graph.add_edge("spring", "rotor", "torque", "torque", delay=True)
    graph.add_external_input("rotor", "torque")
    return graph.compile()


@pytest.mark.small("native-1", "native-5", "xla-5")
@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("size", [1, 5, 200])
def test_members_equal_their_single_runs(simulation, size):
    rng = np.random.default_rng(size)
    J = rng.uniform(0.01, 0.02, size)
    angle = rng.normal(size=size)
    torque = rng.normal(size=(size, 60))
    batch = simulation.run_batch(
        steps=60,
        parameters={"rotor": {"inertia_kg_m2": J, "damping_n_m_s": 0.2}},
        initial_state={"rotor": {"angle": angle, "speed": 0.5}},
        inputs={"rotor": {"torque": torque if size > 1 else torque[0]}},
        every=3,
    )
    assert batch["rotor"]["angle"].shape == (size, 20)
    assert batch.final_state.of("rotor")["angle"].shape == (size,)
    for member in {0, size // 2, size - 1}:
        variant = simulation.with_parameters(
            {"rotor": {"inertia_kg_m2": J[member], "damping_n_m_s": 0.2}}
        )
        single = variant.run(
            steps=60,
            inputs={"rotor": {"torque": torque[member]}},
            initial_state={"rotor": {"angle": angle[member], "speed": 0.5}},
            every=3,
        )
        for node, field in (("rotor", "angle"), ("rotor", "speed"), ("spring", "torque")):
            np.testing.assert_allclose(batch[node][field][member], single[node][field], **ROUNDING)
    np.testing.assert_array_equal(batch.time, single.time)


def test_the_threads_of_a_batch_keep_the_precision_of_the_caller():
    jax.config.update("jax_enable_x64", False)
    try:
        with jax.enable_x64(True):
            graph = GraphManager()
            graph.add_node(Rotor("rotor", 1e-3, 0.01))
            batch = graph.compile().run_batch(steps=10, batch_size=2)
    finally:
        jax.config.update("jax_enable_x64", True)
    assert batch["rotor"]["angle"].dtype == np.float64


@pytest.mark.usefixtures("program")
def test_a_batch_of_another_duration_compiles_nothing(simulation, caplog):
    options = {"parameters": {"rotor": {"inertia_kg_m2": np.linspace(0.01, 0.02, 6)}}, "threads": 2}
    simulation.run_batch(steps=300, record=(), **options)
    simulation.run_batch(steps=300, **options)
    with jax.log_compiles():
        simulation.run_batch(steps=1000, record=(), **options)
        simulation.run_batch(steps=500, **options)
    assert not [record for record in caplog.records if "Compiling" in record.message]


@pytest.mark.small("native")
@pytest.mark.usefixtures("program")
def test_the_number_of_threads_changes_nothing(simulation):
    J = np.linspace(0.01, 0.02, 130)
    runs = [
        simulation.run_batch(
            steps=40,
            parameters={"rotor": {"inertia_kg_m2": J}},
            inputs={"rotor": {"torque": lambda t: jnp.sin(100 * t)}},
            threads=threads,
        )["rotor"]["angle"]
        for threads in (1, 2, 3)
    ]
    np.testing.assert_allclose(runs[1], runs[0], **ROUNDING)
    np.testing.assert_allclose(runs[2], runs[0], **ROUNDING)


@pytest.mark.small("native")
@pytest.mark.usefixtures("program")
def test_inputs_are_shared_or_given_per_member(simulation):
    kinds = {
        "shared constant": 0.3,
        "shared series": np.full(20, 0.3),
        "shared series, explicit": np.full((1, 20), 0.3),
        "constant a member": np.full(5, 0.3),
        "constant a member, explicit": np.full((5, 1), 0.3),
        "series a member": np.full((5, 20), 0.3),
        "function": lambda t: jnp.asarray(0.3),
    }
    results = [
        simulation.run_batch(steps=20, batch_size=5, inputs={"rotor": {"torque": value}})
        for value in kinds.values()
    ]
    for result in results:
        np.testing.assert_allclose(
            result["rotor"]["angle"], results[0]["rotor"]["angle"], **ROUNDING
        )


@pytest.mark.usefixtures("program")
def test_with_nothing_recorded_the_final_state_is_kept(simulation):
    J = np.linspace(0.01, 0.02, 7)
    kept = simulation.run_batch(
        steps=50,
        parameters={"rotor": {"inertia_kg_m2": J}},
        record=(),
        inputs={"rotor": {"torque": 1.0}},
    )
    full = simulation.run_batch(
        steps=50, parameters={"rotor": {"inertia_kg_m2": J}}, inputs={"rotor": {"torque": 1.0}}
    )
    assert len(kept) == 0
    np.testing.assert_allclose(
        kept.final_state.of("rotor")["angle"], full["rotor"]["angle"][:, -1], **ROUNDING
    )


@pytest.mark.usefixtures("program")
def test_a_member_that_diverges_is_reported_and_does_not_spoil_the_others(simulation):
    k = np.array([3.0, 1e12, 5.0])
    arguments = {"steps": 100, "inputs": {"rotor": {"torque": 1.0}}}
    with pytest.warns(DivergenceWarning, match="1 of 3 members .* first member 1"):
        batch = simulation.run_batch(
            parameters={"spring": {"stiffness_n_m_per_rad": k}}, **arguments
        )
    assert list(batch.diverged) == [1]
    assert 0 < batch.diverged[1].time_s <= 0.1
    good = simulation.run_batch(
        parameters={"spring": {"stiffness_n_m_per_rad": k[[0, 2]]}}, **arguments
    )
    np.testing.assert_allclose(batch["rotor"]["angle"][[0, 2]], good["rotor"]["angle"], **ROUNDING)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, InputError, "nothing varies"),
        ({"batch_size": 0}, InputError, "batch_size must be a whole number from 1"),
        (
            {"parameters": {"rotor": {"inertia_kg_m2": [1.0, 2.0], "damping_n_m_s": [1.0] * 3}}},
            InputError,
            "batch axes disagree",
        ),
        (
            {"parameters": {"rotor": {"inertia_kg_m2": [1.0, -2.0]}}},
            ParameterError,
            "inertia_kg_m2 must be > 0 kg·m², got -2.0 for member 1",
        ),
        (
            {"parameters": {"roto": {"inertia_kg_m2": [1.0]}}, "batch_size": 2},
            InputError,
            "no node",
        ),
        (
            {"parameters": {"rotor": {"inertia": [1.0, 2.0]}}},
            ParameterError,
            "no parameter 'inertia'",
        ),
        ({"initial_state": {"rotor": {"angel": [1.0]}}}, InputError, "no field 'angel'"),
        ({"batch_size": 10, "inputs": {"rotor": {"torque": np.ones(10)}}}, InputError, "could be"),
        ({"batch_size": 3, "inputs": {"rotor": {"torque": np.ones((3, 4))}}}, InputError, "shape"),
        ({"batch_size": 3, "every": 3}, InputError, "every must divide"),
    ],
)
def test_a_bad_batch_is_refused(simulation, options, error, message):
    with pytest.raises(error, match=message):
        simulation.run_batch(steps=10, **options)


def chain(length):
    graph = GraphManager()
    names = [f"n{i:02}" for i in range(length)]
    for name in names:
        graph.add_node(Cell(name, 0.01))
    for source, target in itertools.pairwise(names):
        graph.add_edge(source, target, "y", "s")
    return graph.compile()


class Halving(Cell):
    """A cell with a loop that turns as often as its state asks for."""

    def update(self, state, boundary_inputs, dt):
        state = super().update(state, boundary_inputs, dt)
        return jax.tree.map(
            lambda x: jax.lax.while_loop(lambda y: jnp.abs(y) > 0.5, lambda y: 0.5 * y, x), state
        )


def test_members_that_leave_a_loop_at_different_times_equal_their_single_runs_to_the_bit():
    graph = GraphManager()
    graph.add_node(Halving("cell", 0.01))
    simulation, start = graph.compile(), np.linspace(0.1, 900.0, 9)
    batch = simulation.run_batch(steps=5, initial_state={"cell": {"x": start}})
    for member, x in enumerate(start):
        single = simulation.run(steps=5, initial_state={"cell": {"x": x}})
        np.testing.assert_array_equal(batch["cell"]["x"][member], single["cell"]["x"])


def test_a_long_step_equals_single_runs_to_the_bit():
    """One by one, a member runs in the program of a single run."""
    simulation, decay = chain(60), np.linspace(0.5, 1.5, 100)
    batch = simulation.run_batch(steps=20, parameters={"n00": {"decay": decay}}, record=["n59.y"])
    single = simulation.with_parameters({"n00": {"decay": decay[70]}}).run(
        steps=20, record=["n59.y"]
    )
    np.testing.assert_array_equal(batch["n59"]["y"][70], single["n59"]["y"])


def test_a_batch_can_be_saved_with_what_varied(simulation, tmp_path):
    J = np.linspace(0.01, 0.02, 4)
    batch = simulation.run_batch(steps=5, parameters={"rotor": {"inertia_kg_m2": J}})
    batch.save(tmp_path / "batch.nc")
    loaded = Trajectory.load(tmp_path / "batch.nc")
    assert loaded.batch_size == 4
    assert loaded.varied == (("rotor", "inertia_kg_m2"),)
    np.testing.assert_array_equal(loaded.parameters["rotor"]["inertia_kg_m2"], J)
    assert loaded.to_xarray()["rotor.angle"].dims == ("member", "time")
    assert xarray.load_dataset(tmp_path / "batch.nc").identical(batch.to_xarray())


def test_what_is_true_or_false_is_so_for_other_programs(simulation, tmp_path):
    run = simulation.run(steps=3, record=["rotor.angle"])
    far = run["rotor"]["angle"] > run["rotor"]["angle"][0]
    marked = dataclasses.replace(run, fields={"rotor": {"angle": far}})
    marked.save(tmp_path / "run.nc")
    others = xarray.load_dataset(tmp_path / "run.nc")
    assert others.identical(marked.to_xarray())
    assert others["rotor.angle"].dtype == bool  # `identical` takes 1 for True
    read = Trajectory.load(tmp_path / "run.nc")["rotor"]["angle"]
    assert read.dtype == bool
    np.testing.assert_array_equal(read, far)
