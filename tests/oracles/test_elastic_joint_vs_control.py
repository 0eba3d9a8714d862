"""The elastic joint's linear side against python-control, as MIME-VER-136 and 137 by hand."""

import numpy as np
import pytest

import control
from mime.nodes.actuation import elastic_joint_analysis as analysis
from mime.nodes.actuation.elastic_joint import ElasticJointNode
from mime.verification.benchmarks.elastic_joint import JOINT, joint


def system_of(node):
    return control.ss(*(np.asarray(matrix) for matrix in node.state_space()))


@pytest.mark.parametrize("I_f", [0.0, 1e-2])
@pytest.mark.parametrize("source", ["motor", "external"])
@pytest.mark.parametrize("output", ["rotor", "output"])
def test_transfer_functions_agree(I_f, source, output):
    system, w = system_of(joint(ElasticJointNode, I_f)), np.logspace(-1, 3, 81)
    theirs = system(1j * w)[["rotor", "output"].index(output), ["motor", "external"].index(source)]
    numerator, denominator = analysis.transfer_function(
        *JOINT.values(), I_f, output=output, source=source
    )
    ours = control.tf(np.asarray(numerator), np.asarray(denominator))(1j * w)
    # Cancellation between k and I s² at both ends, some 1e6 roundings.
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_resonance_and_anti_resonance_are_poles_and_zeros():
    system = system_of(joint(ElasticJointNode, damping_n_m_s=0.0))[0, 0]
    poles, zeros = np.max(np.abs(system.poles())), np.max(np.abs(system.zeros()))
    assert poles == pytest.approx(float(analysis.resonance(0.1, 5.0, 20.0)), rel=1e-9)
    assert zeros == pytest.approx(float(analysis.anti_resonance(5.0, 20.0)), rel=1e-6)
