"""d figure / d parameter at the best member, through the simulator."""

from typing import Any

from mime.studies.report.table import Table
from mime.studies.result import StudyResult


def slopes(result: StudyResult, table: Table, search: dict[str, Any]) -> dict[str, Any]:
    """By figure: its slopes at its best member, or why there are none."""
    return {}
