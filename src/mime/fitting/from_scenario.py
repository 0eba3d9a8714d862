"""What a fit or a design takes over from its scenario: the start, and inputs that are constant."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from mime.core.problem import InputError
from mime.scenarios.scenario import Scenario


def start_of(scenario: Scenario) -> dict[str, float]:
    """The initial state, number by number: `{"arm.joint_angles[0]": 0.3}`."""
    found: dict[str, float] = {}
    for node, fields in scenario.initial_state.items():
        for field, value in fields.items():
            for index, number in np.ndenumerate(np.asarray(value)):
                at = f"[{','.join(map(str, index))}]" if index else ""
                found[f"{node}.{field}{at}"] = float(number)
    return found


def constants_of(scenario: Scenario, others: Iterable[str], mend: str) -> dict[str, Any]:
    """External inputs apart from `others`: constants stay, those that change cannot.

    mend    what to do about one that changes, in the words of who asks
    """
    given = {field.partition("[")[0] for field in others}
    found: dict[str, dict[str, Any]] = {}
    for node, fields in scenario.inputs.items():
        for field, value in fields.items():
            if f"{node}.{field}" in given:
                continue
            if callable(value):
                raise InputError(
                    f"the scenario changes {node}.{field} over time{mend}", place=("scenario",)
                )
            found.setdefault(node, {})[field] = value
    return found
