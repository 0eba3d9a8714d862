"""A table against its model: what pydantic finds, in our words and at the file's places."""

from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from mime._text import nearest, quoted
from mime.core.problem import Place
from mime.scenarios.fields import FIELD_PATTERN, TEXT_PATTERN
from mime.scenarios.source import Source, shown

NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_-]*$"
LETTERS = "letters, digits, _ and -, and begins with a letter"
Model = TypeVar("Model", bound=BaseModel)


def validated(
    model: type[Model], table: Mapping[str, Any], source: Source, at: Place
) -> Model | None:
    """The table as its model, without the keys that are wrong, or None; problems are noted."""
    try:
        return model.model_validate(dict(table))
    except ValidationError as error:
        wrong: set[Place] = set()
        found = [(entry, _place(entry, table)) for entry in error.errors(include_url=False)]
        for entry, place in found:
            told = place in wrong  # once for all types of a union
            wrong.add(place)
            # Another type of the union was meant: what is wrong within it is told.
            told |= entry["type"] in _TYPES and any(
                len(other) > len(place) and other[: len(place)] == place for _, other in found
            )
            if not told and not _misspelt(entry, place, model):
                source.add((*at, *place), _words(entry, place, model))
    if () in wrong:  # its keys do not go together
        return None
    names = {place[0] for place in wrong}
    try:
        return model.model_validate({k: v for k, v in table.items() if k not in names})
    except ValidationError:
        return None


def first_problem(model: type[BaseModel], table: Mapping[str, Any]) -> tuple[Place, str] | None:
    """What is wrong with a table first: its place in it, and words; None where nothing is."""
    try:
        model.model_validate(dict(table))
    except ValidationError as error:
        entry = error.errors(include_url=False)[0]
        place = _place(entry, table)
        return place, _words(entry, place, model)
    return None


def _place(entry: Any, data: Any) -> Place:
    """pydantic's location without what it adds: the tags of unions, `[key]`."""
    place: list[str | int] = []
    for part in entry["loc"]:
        inside = (isinstance(data, Mapping) and part in data) or (
            isinstance(data, list) and isinstance(part, int) and part < len(data)
        )
        if inside:
            place.append(part)
            data = data[part]
    return (*place, entry["loc"][-1]) if entry["type"] == "missing" else tuple(place)


_TYPES = {
    "float_type": "a number",
    "finite_number": "a finite number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "string_type": "a string",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}
_BOUNDS = {
    "greater_than": ("> ", "gt"),
    "greater_than_equal": (">= ", "ge"),
    "less_than": ("< ", "lt"),
    "less_than_equal": ("<= ", "le"),
}
PATTERNS = {
    FIELD_PATTERN: "must be 'node.field' or 'node.field[component]'",
    NAME_PATTERN: f"a name has {LETTERS}",
    TEXT_PATTERN: "must be text without control characters",
}


def _misspelt(entry: Any, place: Place, model: type[BaseModel]) -> bool:
    """True for a missing key that stands there under a wrong name, which is told."""
    if entry["type"] != "missing":
        return False
    known = _keys(model, place[:-1])
    return bool(nearest(place[-1], [name for name in entry["input"] if name not in known]))


def _words(entry: Any, place: Place, model: type[BaseModel]) -> str:
    """A finding of pydantic in our words: expected, got, nearest right name."""
    kind, context, got = entry["type"], entry.get("ctx", {}), entry["input"]
    if kind == "missing":
        return "the key is missing"
    if kind == "extra_forbidden":
        known = _keys(model, place[:-1])
        return f"unknown key{nearest(place[-1], known)} (keys: {quoted(known)})"
    if kind == "literal_error":
        choices = _choices(_annotation(model, place))
        return f"must be one of {quoted(choices)}, got {shown(got)}{nearest(str(got), choices)}"
    if kind in _BOUNDS:
        sign, name = _BOUNDS[kind]
        return f"must be {sign}{context[name]:g}, got {shown(got)}"
    if kind == "string_pattern_mismatch" and context["pattern"] in PATTERNS:
        return f"{PATTERNS[context['pattern']]}, got {shown(got)}"
    if kind == "too_short":
        return f"must have {context['min_length']} entries or more, got {shown(got)}"
    if kind == "value_error":  # of a model that looks at all its keys
        return f"{context['error']}, got {shown(got)}"
    if kind in _TYPES:
        return f"must be {_TYPES[kind]}, got {shown(got)}"
    return f"{entry['msg']}, got {shown(got)}"


def _keys(model: type[BaseModel], place: Place) -> list[str]:
    inner = inner_model(_annotation(model, place)) or model
    return [field.alias or name for name, field in inner.model_fields.items()]


def _annotation(model: type[BaseModel], place: Place) -> Any:
    """The type that a key takes."""
    annotation: Any = model
    for part in place:
        inner = inner_model(annotation)
        fields = {f.alias or n: f for n, f in inner.model_fields.items()} if inner else {}
        annotation = fields[part].annotation if part in fields else annotation
    return annotation


def inner_model(annotation: Any) -> type[BaseModel] | None:
    """The model of a table, where a key takes one, if only among others."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(inner_model, get_args(annotation))), None)


def _choices(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return [str(choice) for choice in get_args(annotation)]
    return [choice for part in get_args(annotation) for choice in _choices(part)]
