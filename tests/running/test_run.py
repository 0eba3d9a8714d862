"""Runs: inputs of every kind, recording, gradients, bounded memory, divergence, interruption."""

import subprocess
import sys
import textwrap

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import mime
from elements import Cell, Rotor, Spring
from mime import DivergenceError, GraphManager, InputError, RunInterrupted, Trajectory


@pytest.fixture(scope="module")
def simulation():
    return oscillator().compile()


def oscillator():
    graph = GraphManager()
    graph.add_node(Rotor("rotor", 1e-3, 0.01))
    graph.add_node(Spring("spring", 1e-3, 3.0))
    graph.add_edge("rotor", "spring", "angle", "angle")
    graph.add_edge("spring", "rotor", "torque", "torque", delay=True)
    graph.add_external_input("rotor", "torque")
    return graph


def test_constants_arrays_and_functions_of_time_are_the_same_input(simulation):
    times = 1e-3 * np.arange(100)
    series = np.sin(30 * times)
    as_array = simulation.run(0.1, {"rotor": {"torque": series}})
    as_function = simulation.run(0.1, {"rotor": {"torque": lambda t: jnp.sin(30 * t)}})
    # The same sine from NumPy and from XLA differ in the last bit.
    np.testing.assert_allclose(
        as_array["rotor"]["angle"], as_function["rotor"]["angle"], rtol=1e-12
    )
    constant = simulation.run(0.1, {"rotor": {"torque": 0.3}})
    repeated = simulation.run(0.1, {"rotor": {"torque": np.full(100, 0.3)}})
    np.testing.assert_array_equal(constant["rotor"]["angle"], repeated["rotor"]["angle"])


def test_a_module_as_input_is_not_compiled_again_for_other_values(simulation):
    class Sine(eqx.Module):
        amplitude: jax.Array

        def __call__(self, t):
            return self.amplitude * jnp.sin(30 * t)

    runs = [
        simulation.run(0.05, {"rotor": {"torque": Sine(jnp.asarray(a))}})["rotor"]["angle"]
        for a in (1.0, 2.0)
    ]
    np.testing.assert_allclose(runs[1], 2 * runs[0], rtol=1e-12)  # the system is linear


def test_sample_n_is_the_state_after_step_n_plus_one(simulation):
    run = simulation.run(0.05, {"rotor": {"torque": 1.0}})
    np.testing.assert_allclose(run.time, 1e-3 * np.arange(1, 51), rtol=1e-15)
    assert run["rotor"]["speed"][0] == pytest.approx(1e-3 / (0.01 + 1e-3 * 0.1), rel=1e-15)


@pytest.mark.parametrize("every", [2, 5, 100])
def test_recording_every_kth_step_picks_from_the_full_record(simulation, every):
    full = simulation.run(0.1, {"rotor": {"torque": 1.0}})
    thin = simulation.run(0.1, {"rotor": {"torque": 1.0}}, every=every)
    np.testing.assert_array_equal(thin.time, full.time[every - 1 :: every])
    for field in ("angle", "speed"):
        np.testing.assert_array_equal(
            thin["rotor"][field], full["rotor"][field][every - 1 :: every]
        )
    np.testing.assert_array_equal(
        thin["spring"]["torque"], full["spring"]["torque"][every - 1 :: every]
    )
    assert thin.final_state == full.final_state


def test_steps_after_the_last_sample_are_still_made(simulation):
    run = simulation.run(steps=25, inputs={"rotor": {"torque": 1.0}}, every=10)
    assert len(run.time) == 2
    assert run.final_state.step == 25


def test_states_fluxes_and_inputs_can_be_recorded(simulation):
    run = simulation.run(0.01, {"rotor": {"torque": 1.0}}, record=["rotor.torque", "rotor.pose"])
    assert run["rotor"]["torque"][0] == 1.0
    assert run["rotor"]["pose"].shape == (10, 7)
    assert run.units["rotor"]["torque"] == "N·m"
    only = simulation.run(0.01, record={"spring": ["torque"]})
    assert list(only) == ["spring"]
    with pytest.raises(KeyError, match="was not recorded"):
        only["spring"]["angle"]
    with pytest.raises(KeyError, match="no node 'rotor' was recorded"):
        only["rotor"]


def test_a_run_goes_on_from_an_earlier_final_state(simulation):
    ramp = {"rotor": {"torque": lambda t: 10 * t}}
    whole = simulation.run(0.1, ramp)
    first = simulation.run(0.04, ramp)
    second = simulation.run(0.06, ramp, initial_state=first.final_state)
    joined = np.concatenate([first["rotor"]["angle"], second["rotor"]["angle"]])
    np.testing.assert_array_equal(joined, whole["rotor"]["angle"])
    np.testing.assert_array_equal(np.concatenate([first.time, second.time]), whole.time)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"duration": 0.0005}, "0.5 steps of 0.001 s"),
        ({}, "either duration"),
        ({"steps": 0}, "steps must be a whole number >= 1, got 0"),
        ({"steps": 5, "every": 0}, "every must be a whole number from 1 to 5, got 0"),
        ({"steps": 5, "record": ["rotor.sped"]}, "did you mean 'speed'"),
        ({"steps": 5, "record": ["speed"]}, "write 'node.field'"),
        ({"steps": 5, "resume": True}, "needs a checkpoint"),
        ({"steps": 5, "inputs": {"rotor": {"torque": np.ones(4)}}}, r"has shape \(4,\)"),
        ({"steps": 5, "inputs": {"rotor": {"torque": "fast"}}}, "must be a number or an array"),
        (
            {"steps": 5, "inputs": {"rotor": {"torque": lambda t: jnp.ones(2)}}},
            "function gives shape",
        ),
        (
            {"steps": 3, "inputs": {"rotor": {"torque": [0.0, np.nan, 1.0]}}},
            r"not finite at index \[1\]",
        ),
    ],
)
def test_a_bad_request_is_refused(simulation, options, message):
    with pytest.raises(InputError, match=message):
        simulation.run(**options)


def test_a_second_run_compiles_nothing(simulation, caplog):
    simulation.run(0.05, {"rotor": {"torque": 1.0}}, every=5)
    with jax.log_compiles():
        other = simulation.with_parameters({"rotor": {"damping_n_m_s": 0.2}})
        other.run(0.5, {"rotor": {"torque": 2.0}}, every=10)  # other values, duration and stride
    assert not [record for record in caplog.records if "Compiling" in record.message]


def test_gradients_through_a_thousand_steps_agree_with_central_differences():
    graph = GraphManager()
    graph.add_node(Cell("a", 0.01))
    graph.add_node(Cell("b", 0.01))
    graph.add_edge("a", "b", "y", "s")
    graph.add_edge("b", "a", "y", "s", transform=lambda y: -0.5 * y)
    graph.add_edge("b", "a", "y", "r", delay=True)
    graph.add_external_input("b", "r")
    graph.add_coupling_group(["a", "b"], tolerance=1e-13)
    simulation = graph.compile()

    @jax.jit
    def loss(decay, gain, x0, drive):
        variant = simulation.with_parameters({"a": {"decay": decay}, "b": {"gain": gain}})
        state, out = variant.rollout(
            variant.init_state({"a": {"x": x0}}), {"b": {"r": drive}}, 1000, remat_every=50
        )
        return state.of("a")["x"] ** 2 + jnp.mean(out["b"]["y"])

    point = (1.0, 0.3, 0.2, 0.7)
    gradient = jax.jit(jax.grad(loss, argnums=(0, 1, 2, 3)))(*point)
    for index, found in enumerate(gradient):
        step = 1e-5
        up, down = list(point), list(point)
        up[index] += step
        down[index] -= step
        central = (loss(*up) - loss(*down)) / (2 * step)
        # Central differences: h^2 = 1e-10 of curvature, eps/h = 2e-11 of rounding.
        assert found == pytest.approx(float(central), rel=1e-7, abs=1e-9)


@pytest.mark.soak("tests/native/test_reverse.py has segments that are recomputed")
def test_checkpointed_and_plain_reverse_mode_agree(simulation):
    def angle(torque, remat):
        state, _ = simulation.rollout(
            simulation.init_state(),
            {"rotor": {"torque": torque}},
            200,
            record=(),
            remat_every=remat,
        )
        return state.of("rotor")["angle"]

    series = jnp.sin(jnp.arange(200.0))
    np.testing.assert_allclose(
        jax.grad(angle)(series, 20), jax.grad(angle)(series, None), rtol=1e-13
    )
    with pytest.raises(InputError, match="remat_every must divide"):
        angle(series, 30)


def test_vmap_goes_through_parameters_states_and_inputs(simulation):
    def angle(k, x0, torque):
        variant = simulation.with_parameters({"spring": {"stiffness_n_m_per_rad": k}})
        state = variant.init_state({"rotor": {"angle": x0}})
        return variant.rollout(state, {"rotor": {"torque": torque}}, 50)[0].of("rotor")["angle"]

    k, x0, torque = jnp.array([1.0, 2.0]), jnp.array([0.1, 0.2]), jnp.array([0.0, 1.0])
    batched = jax.vmap(angle)(k, x0, torque)
    single = [angle(*values) for values in zip(k, x0, torque, strict=True)]
    np.testing.assert_allclose(batched, single, rtol=1e-13)


def test_divergence_names_node_field_and_time_and_keeps_what_was_computed():
    # Explicit spring with dt^2 k/J = 1e6: every step multiplies the angle by about -1e6.
    unstable = (
        oscillator()
        .compile()
        .with_parameters(
            {"spring": {"stiffness_n_m_per_rad": 1e10}, "rotor": {"damping_n_m_s": 0.0}}
        )
    )
    with pytest.raises(DivergenceError, match=r"is not finite at t = ") as error:
        unstable.run(1.0, {"rotor": {"torque": 1.0}})
    kept = error.value.trajectory
    first_bad = error.value.where.time_s
    assert error.value.where.node in ("rotor", "spring")
    assert kept.time[-1] == pytest.approx(first_bad - 1e-3)
    assert np.isfinite(kept["rotor"]["angle"]).all()
    assert len(kept.time) > 10
    with pytest.raises(DivergenceError) as coarse:
        unstable.run(1.0, {"rotor": {"torque": 1.0}}, every=20)
    assert coarse.value.where == error.value.where
    np.testing.assert_array_equal(
        coarse.value.trajectory["rotor"]["angle"], kept["rotor"]["angle"][19::20]
    )


def test_a_flux_that_is_not_finite_is_found_even_if_the_state_is():
    class Logarithm(Cell):
        def compute_boundary_fluxes(self, state, boundary_inputs, dt):
            return {"y": jnp.log(0.25 - state["x"]), "z": jnp.zeros(2)}

    graph = GraphManager()
    graph.add_node(Logarithm("log", 0.1))
    with pytest.raises(DivergenceError, match=r"log\.y is not finite at t = 0.[67] s"):
        graph.compile().run(2.0)


def test_an_interrupted_run_keeps_what_was_computed(simulation):
    def stop_in_the_middle(done, total):
        if done > 1000:
            raise KeyboardInterrupt

    with pytest.raises(RunInterrupted, match=r"stopped after \d+ of 100000 steps") as error:
        simulation.run(100.0, {"rotor": {"torque": 1.0}}, progress=stop_in_the_middle)
    assert len(error.value.trajectory.time) == error.value.trajectory.final_state.step > 1000


def test_progress_can_be_a_function_that_sees_every_chunk(simulation):
    seen = []
    simulation.run(steps=5000, progress=lambda done, total: seen.append((done, total)))
    assert len(seen) > 1
    assert seen == sorted(seen)
    assert seen[-1] == (5000, 5000)


@pytest.mark.soak("test_memory.py counts the bytes of a run")
@pytest.mark.slow
def test_ten_million_steps_recorded_every_thousandth_stay_under_a_gigabyte():
    script = """
        import sys
        sys.path.insert(0, "tests")
        from elements import Rotor
        from mime import GraphManager
        graph = GraphManager()
        graph.add_node(Rotor("rotor", 1e-3, 0.01))
        graph.add_external_input("rotor", "torque")
        run = graph.compile().run(steps=10_000_000, inputs={"rotor": {"torque": 1.0}}, every=1000)
        assert run["rotor"]["speed"].shape == (10_000,)
        # Not ru_maxrss: a child inherits its parent's.
        peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
        print(int(peak.split()[1]) / 1e6)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1.0  # GB, Python and JAX included


def test_both_precisions_run(precision):
    run = oscillator().compile().run(0.1, {"rotor": {"torque": 1.0}}, every=10)
    assert run["rotor"]["angle"].dtype.name == precision


def test_the_public_names_exist():
    assert set(mime.__all__) <= set(dir(mime))


@pytest.fixture(scope="module")
def run(simulation):
    return simulation.run(0.1, {"rotor": {"torque": 1.0}}, record=["rotor.angle", "rotor.pose"])


class TestTrajectory:
    def test_xarray_has_units_descriptions_and_parameters(self, run):
        data = run.to_xarray()
        assert data["rotor.angle"].attrs["units"] == "rad"
        assert data["rotor.pose"].dims == ("time", "rotor.pose.axis0")
        assert data.attrs["rotor.inertia_kg_m2"] == 0.01
        assert data["time"].attrs["units"] == "s"

    def test_a_file_holds_the_same(self, run, tmp_path):
        run.save(tmp_path / "run.nc")
        loaded = Trajectory.load(tmp_path / "run.nc")
        np.testing.assert_array_equal(loaded["rotor"]["pose"], run["rotor"]["pose"])
        np.testing.assert_array_equal(loaded.time, run.time)
        assert loaded.units == run.units
        assert loaded.parameters == run.parameters
        assert [file.name for file in tmp_path.iterdir()] == ["run.nc"]

    def test_other_programs_read_the_file(self, run, tmp_path):
        run.save(tmp_path / "run.nc")
        assert xarray.load_dataset(tmp_path / "run.nc").identical(run.to_xarray())

    def test_a_file_that_is_none_is_refused(self, run, tmp_path):
        path = tmp_path / "run.nc"
        run.save(path)
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ValueError, match="cut short"):
            Trajectory.load(path)
        with pytest.raises(FileNotFoundError, match="no such file"):
            Trajectory.load(tmp_path / "none.nc")
        with pytest.raises(FileNotFoundError, match="does not exist"):
            run.save(tmp_path / "none" / "run.nc")

    def test_a_failed_write_leaves_the_old_file(self, run, tmp_path, monkeypatch):
        path = tmp_path / "run.nc"
        run.save(path)
        before = path.read_bytes()

        def full_disk(self, *args, **kwargs):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("pathlib.Path.write_bytes", full_disk)
        with pytest.raises(OSError, match="No space left"):
            run.save(path)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]

    def test_a_plot_has_units_on_both_axes(self, run):
        figure = run.plot("rotor.angle")
        assert figure.axes[0].get_ylabel() == "angle\n[rad]"
        assert figure.axes[-1].get_xlabel() == "time [s]"
