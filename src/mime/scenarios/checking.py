"""pydantic's findings in the words of a scenario file: key, got, expected, nearest right name."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from mime._text import nearest, quoted
from mime.scenarios.merits import MERITS
from mime.scenarios.problems import Path_, Source
from mime.scenarios.tables import (
    AssemblyTable,
    CouplingTable,
    EdgeTable,
    NodeTable,
    PlotTable,
    ScenarioTables,
    SimulationTable,
)
from mime.scenarios.waveforms import WAVEFORMS

Model = TypeVar("Model", bound=BaseModel)


def checked_tables(data: Mapping[str, Any], source: Source) -> ScenarioTables | None:
    """The tables of a file, or None with every problem noted in `source`."""
    tables = validated(ScenarioTables, data, source)
    if tables is not None and not tables.nodes and not tables.assemblies:
        source.add((), "nothing to simulate: add a table [nodes.NAME] or [assemblies.NAME]")
        return None
    return tables


def validated(
    model: type[Model], data: Mapping[str, Any], source: Source, at: Path_ = ()
) -> Model | None:
    """The table at a path of the file as its model, or None with every problem noted."""
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        told: set[Path_] = set()
        for entry in error.errors(include_url=False):
            path = _in_file(entry["loc"], data)
            if entry["type"] == "missing" or path not in told:  # once for all types of a union
                source.add((*at, *path), _words(entry, path, data, model))
                told.add(path)
        return None


def _in_file(location: Sequence[str | int], data: Any) -> Path_:
    """pydantic's location without what it adds: the tags of unions, `[key]`."""
    path: list[str | int] = []
    for part in location:
        inside = (isinstance(data, Mapping) and part in data) or (
            isinstance(data, list) and isinstance(part, int) and part < len(data)
        )
        if inside:
            path.append(part)
            data = data[part]
    return tuple(path)


def _words(entry: Any, path: Path_, data: Any, model: type[BaseModel]) -> str:
    kind, context, got = entry["type"], entry.get("ctx", {}), entry["input"]
    last = str(entry["loc"][-1])
    if kind == "extra_forbidden":
        known = _known_keys(path[:-1], data, model)
        return f"unknown key{nearest(last, known)} (keys: {quoted(known)})"
    if kind == "missing":
        known = _known_keys(path, data, model)
        given = [name for name in got if name not in known] if got else []
        return f"key {last!r} is missing{_instead(last, given)}"
    if kind == "union_tag_not_found":
        return f"key 'kind' is missing, expected one of {quoted(_tags(path))}"
    if kind == "union_tag_invalid":
        tag = str(context.get("tag"))
        return f"kind {tag!r} is unknown{nearest(tag, _tags(path))}, expected {quoted(_tags(path))}"
    expected = entry["msg"].removeprefix("Input should be ").removeprefix("a ")
    if kind == "literal_error":
        names = [word.strip(" '") for word in context["expected"].replace(" or ", ",").split(",")]
        return f"must be {expected}, got {shown(got)}{nearest(str(got), names)}"
    if kind == "string_pattern_mismatch":
        if path and path[0] in ("nodes", "assemblies"):
            whose = "a node" if path[0] == "nodes" else "an assembly"
            return f"{whose}'s name has letters, digits, _ and -, and begins with a letter"
        return f"must be 'node.field' or 'node.field[component]', got {shown(got)}"
    if kind in ("model_type", "dict_type", "model_attributes_type"):
        return f"must be a table, got {shown(got)}"
    if kind == "too_short":
        return f"must have {context['min_length']} entries or more, got {shown(got)}"
    return f"must be {expected.replace('valid ', '')}, got {shown(got)}"


def _instead(missing: str, given: Iterable[str]) -> str:
    near = nearest(missing, given)
    return near.replace("did you mean", "is it")


def _tags(path: Path_) -> list[str]:
    return sorted(WAVEFORMS if path and path[0] == "inputs" else MERITS)


def _known_keys(path: Path_, data: Any, model: type[BaseModel]) -> list[str]:
    """The keys of the table at `path`."""
    if model is ScenarioTables:
        model = _table_model(path, data)
    else:
        for part in path:
            model = inner_model(model.model_fields[str(part)].annotation) or model
    return [field.alias or name for name, field in model.model_fields.items()]


def inner_model(annotation: Any) -> type[BaseModel] | None:
    """The model of a table, where a key takes one, if only among others."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(inner_model, get_args(annotation))), None)


def _table_model(path: Path_, data: Any) -> type[BaseModel]:
    tables: dict[str, type[BaseModel]] = {
        "simulation": SimulationTable,
        "nodes": NodeTable,
        "assemblies": AssemblyTable,
        "edges": EdgeTable,
        "coupling": CouplingTable,
        "plots": PlotTable,
    }
    if path and path[0] in tables:
        return tables[str(path[0])]
    if path and path[0] in ("inputs", "figures_of_merit"):
        table = data
        for part in path:
            table = table[part]
        kinds: dict[str, Any] = {**WAVEFORMS, **MERITS}
        model: type[BaseModel] = kinds[table["kind"]]
        return model
    return ScenarioTables


def shown(value: Any) -> str:
    """A value as a person wrote it, cut short when long."""
    words = str(value).lower() if isinstance(value, bool) else repr(value)
    return words if len(words) <= 60 else f"{words[:57]}..."
