"""A robot with a number that none has is refused by name: array, link or joint, value."""

import equinox as eqx
import numpy as np
import pytest

from mime import GraphManager, JointPDNode, ParameterError, RobotArmNode, model_path, parse_urdf

TREE = parse_urdf(model_path("planar_arm_3link"))


@pytest.fixture(scope="module")
def simulation():
    graph = GraphManager()
    graph.add_node(RobotArmNode("arm", 1e-3, TREE, "link_3"))
    return graph.compile()


@pytest.mark.parametrize(
    ("address", "value", "words"),
    [
        ("link[link_2].mass_kg", -1.0, r"masses must be >= 0 kg, got -1 for link 'link_2'"),
        ("tree.masses", [1.0, 2.0, np.nan], r"masses must be >= 0 kg, got nan for link 'link_3'"),
        ("link[link_2].com_m", [0, np.inf, 0], r"coms must be finite m, got inf for link 'link_2'"),
        ("link[link_1].inertia_kg_m2", -np.eye(3), r"no moment below 0 .* -1 for link 'link_1'"),
        ("joint[elbow].rotor_inertia_kg_m2", -1e-9, r"must be >= 0 kg·m², .* for joint 'elbow'"),
        ("joint[elbow].gear_ratio", np.nan, r"gear_ratio must be finite, got nan for joint 'elbow"),
    ],
)
def test_a_parameter_that_no_robot_has_is_refused(simulation, address, value, words):
    with pytest.raises(ParameterError, match=words) as error:
        simulation.with_parameters({f"arm.{address}": value})
    assert error.value.problems[0].place[0] == "tree"


ARRAYS = [name for name, leaf in vars(TREE).items() if isinstance(leaf, np.ndarray)]
OF_THE_NODE = {"joint_friction": "joint_friction_n_m_s", "joint_coulomb_friction": "friction.tor"}


@pytest.mark.parametrize("name", ARRAYS)
def test_nan_in_any_array_of_a_tree_is_refused(name):
    spoilt = np.array(getattr(TREE, name))
    spoilt.flat[-1] = np.nan
    tree = eqx.tree_at(lambda tree: getattr(tree, name), TREE, spoilt)
    with pytest.raises(
        ParameterError, match=OF_THE_NODE.get(name, rf"tree\.{name} must be .* nan")
    ):
        RobotArmNode("arm", 1e-3, tree, "link_3")
    with pytest.raises(ParameterError, match=rf"tree\.{name} must be .*, got nan for (link|joint)"):
        JointPDNode("pd", 1e-3, tree, 1.0, 1.0)


def test_a_batch_names_the_member(simulation):
    masses = np.ones((3, 3))
    masses[2, 1] = -0.5
    with pytest.raises(ParameterError, match=r"arm\.tree\.masses must be >= 0 kg, .* member 2"):
        simulation.run_batch(steps=1, parameters={"arm.tree.masses": masses})
    with pytest.raises(ParameterError, match=r"gear_ratio must be finite, got nan for member 1"):
        simulation.run_batch(steps=1, parameters={"arm.joint[elbow].gear_ratio": [1.0, np.nan]})
