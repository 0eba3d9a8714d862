"""What the page of a run says of the run itself."""

import re
from html import unescape

import pytest

from mime import load_scenario, model_path
from mime.reporting.report import write_report
from mime.scenarios.source import ScenarioError


def backend_told():
    page = write_report(load_scenario("motor_step"), [], [], None, "mime run motor_step")
    (told,) = re.findall(r"<td>backend</td><td>(.*?)</td>", page)
    return told


def test_a_page_says_what_computed_the_run_and_why(monkeypatch):
    assert backend_told() == "native"
    monkeypatch.setenv("MIME_NATIVE", "off")
    assert backend_told() == "XLA: the environment says MIME_NATIVE=off"


def test_a_page_says_what_was_mended_in_a_robots_file(tmp_path):
    robot = model_path("planar_arm_3link").read_text()
    lower = re.search(r'lower="(\S+)" upper="(\S+)"', robot)
    swapped = f'lower="{lower[2]}" upper="{lower[1]}"'
    file = tmp_path / "arm.urdf"
    file.write_text(robot.replace(lower[0], swapped, 1) + "<!-- a -- b -->")
    other_file = f"arm.urdf_path={file}"
    with pytest.raises(
        ScenarioError, match=r"upper limit \S+\. Correct the limits\. on_problem='mend'"
    ):
        load_scenario("arm_3link_pd", [other_file])
    scenario = load_scenario("arm_3link_pd", [other_file, "arm.on_problem=mend"])
    page = unescape(write_report(scenario, [], [], None, "mime run arm_3link_pd"))
    (table,) = re.findall(rf"(?s)<h2>Report on {file}</h2>(.*?)</table>", page)
    report = scenario.simulation.nodes["arm"].tree.report
    assert [finding.kind for finding in report] == ["mended", "noted"]
    for finding in report:
        cells = (finding.kind, finding.where, finding.what, finding.consequence)
        assert "".join(f"<td>{cell}</td>" for cell in cells) in table
