"""Names of fields in a scenario: `node.field`, `node.field[2]`, `node.field[0,2]`."""

import re
from typing import Annotated

from pydantic import Field

_FIELD = re.compile(r"([^\[\]]+)\.([^.\[\]]+)(?:\[(\d{1,6}(?:,\d{1,6})*)\])?")

FieldName = Annotated[str, Field(pattern=r"^[^\[\]]+\.[^.\[\]]+(\[\d{1,6}(,\d{1,6})*\])?$")]


def split_field(name: str) -> tuple[str, str, tuple[int, ...] | None]:
    """Node, field, and the component's index, if one is named."""
    match = _FIELD.fullmatch(name)
    if match is None:
        raise ValueError(f"must be 'node.field' or 'node.field[component]', got {name!r}")
    node, field, index = match.groups()
    return node, field, None if index is None else tuple(int(i) for i in index.split(","))
