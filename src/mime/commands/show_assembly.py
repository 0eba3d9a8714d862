"""`mime show mouse`: the keys of an assembly, from its own declarations."""

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from mime.commands.errors import OK
from mime.reporting.numbers import number
from mime.reporting.summary import wide_console
from mime.scenarios.assemblies import find_assembly
from mime.scenarios.checking import inner_model


def show_assembly(name: str) -> int:
    """Print what `[assemblies.NAME]` of that type takes."""
    from rich.table import Table
    from rich.text import Text

    cls = find_assembly(name)
    console = wide_console()
    summary, _, more = (cls.__doc__ or "").partition("\n")
    console.print(f"[bold]{name}[/bold]  {summary}", soft_wrap=True)
    console.print(f"{' '.join(more.split())}\n", soft_wrap=True, markup=False)
    table = Table("key", "default", "meaning", title="keys", title_justify="left", box=None)
    for key, default, meaning in rows(cls):
        table.add_row(Text(key), Text(default), Text(meaning))
    console.print(table)
    return OK


def rows(model: type[BaseModel], prefix: str = "") -> list[tuple[str, str, str]]:
    """Key, default and meaning of all keys; those of a table within as `table.key`."""
    found = []
    for key, field in model.model_fields.items():
        if key == "type":
            continue
        inner = inner_model(field.annotation)
        found.append((prefix + key, _default(field), field.description or ""))
        if inner is not None:
            found += rows(inner, f"{prefix}{key}.")
    return found


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    return "" if value is None or isinstance(value, BaseModel) else number(value)
