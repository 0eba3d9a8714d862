"""What the page of a run says of the run itself."""

import re

from mime import load_scenario
from mime.reporting.report import write_report


def backend_told():
    page = write_report(load_scenario("motor_step"), [], [], None, "mime run motor_step")
    (told,) = re.findall(r"<td>backend</td><td>(.*?)</td>", page)
    return told


def test_a_page_says_what_computed_the_run_and_why(monkeypatch):
    assert backend_told() == "native"
    monkeypatch.setenv("MIME_NATIVE", "off")
    assert backend_told() == "XLA: the environment says MIME_NATIVE=off"
