"""A node of one's own in a scenario, by the file that it is in; and no code without leave."""

import pytest

from mime.cli import main
from mime.scenarios import ScenarioError, load_scenario
from motor_scenario import motor_scenario

NODE = """
from mime import Node, Output, Scalar, parameter

print("executed")


class PropellerNode(Node):
    thrust_n: Scalar = parameter("N", above=0.0, default=2.0)

    def boundary_input_spec(self):
        return {}

    def boundary_flux_spec(self):
        return {"thrust": Output((), "N")}

    def state_spec(self):
        return {}

    def update(self, state, boundary_inputs, dt):
        return state

    def compute_boundary_fluxes(self, state, boundary_inputs, dt):
        return {"thrust": self.thrust_n}
"""


@pytest.fixture
def scenario(tmp_path):
    """A motor and a propeller whose file is beside the scenario's."""
    (tmp_path / "propeller.py").write_text(NODE)
    file = tmp_path / "flight.toml"
    file.write_text(
        motor_scenario(more='[nodes.fan]\ntype = "propeller.py:PropellerNode"\nthrust_n = 3.0\n')
    )
    return file


def test_code_is_refused_with_the_way_to_allow_it_and_is_not_executed(scenario, capsys):
    with pytest.raises(ScenarioError, match=r"--allow-code \(allow_code=True in load_scenario\)"):
        load_scenario(scenario)
    assert capsys.readouterr().out == ""


def test_a_node_in_a_file_runs_where_code_is_allowed(scenario, tmp_path, monkeypatch, capsys):
    loaded = load_scenario(scenario, allow_code=True)
    assert loaded.run()["fan"]["thrust"][-1] == 3.0
    again = load_scenario(scenario, allow_code=True)
    assert type(again.simulation.nodes["fan"]) is type(loaded.simulation.nodes["fan"])
    assert capsys.readouterr().out == "executed\n"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mime.cli.enable_compilation_cache", lambda: None)
    main(["graph", "flight.toml", "--allow-code"])
    assert "fan  PropellerNode" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("propeller.py:PropelerNode", "propeller.py has no node type 'PropelerNode' (did you mean"),
        ("propeller.py:jnp", "propeller.py has no node type 'jnp'"),
        ("rotor.py:RotorNode", "no such file: rotor.py in"),
        ("broken.py:Node", "does not load: ZeroDivisionError: division by zero"),
    ],
)
def test_what_is_wrong_with_the_file_is_told_at_the_type(scenario, tmp_path, name, expected):
    (tmp_path / "broken.py").write_text("1 / 0\n")
    scenario.write_text(scenario.read_text().replace("propeller.py:PropellerNode", name))
    with pytest.raises(ScenarioError) as refusal:
        load_scenario(scenario, allow_code=True)
    (problem,) = refusal.value.problems
    assert problem.place == ("nodes", "fan", "type")
    assert expected in problem.message


def test_an_unknown_type_tells_of_nodes_in_files(scenario):
    scenario.write_text(scenario.read_text().replace("propeller.py:PropellerNode", "Propeller"))
    with pytest.raises(ScenarioError, match=r'type = "FILE.py:CLASS"'):
        load_scenario(scenario)
