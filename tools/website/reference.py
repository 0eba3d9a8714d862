"""The reference of all public names, from their docstrings and signatures.

griffe reads the sources and imports nothing. A name stands on one page, wherever else it can be
imported from; a member that says nothing of its own is what the class above says of it.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import griffe

from mime.scenarios.node_types import own_types
from website.docstrings import as_markdown, escaped

SOURCES = Path(__file__).parents[2] / "src"
PUBLIC = {
    "mime": "mime/__init__.pyi",
    "mime.control.kinematics": "mime/control/kinematics/__init__.py",
    "mime.maze": "mime/maze/__init__.py",
    "mime.maze.formats": "mime/maze/formats/__init__.py",
    "mime.mouse": "mime/mouse/__init__.py",
}
"""Where names are imported from, and the table of them."""
PAGES = {
    "graphs": ("Graphs, runs and scenarios", ("running", "scenarios", "xla")),
    "kinematics": ("Robots, kinematics and dynamics", ("control", "models")),
    "nodes": ("Nodes and their effects", ("nodes",)),
    "fitting": ("Parameters from logs, the next experiment", ("fitting",)),
    "tuning": ("Gains of controllers", ("tuning",)),
    "studies": ("Studies of many members", ("studies",)),
    "core": ("Nodes of your own, errors", ("core",)),
    "maze": ("Mazes", ("maze",)),
    "mouse": ("The mouse", ("mouse",)),
}
"""The pages, each with the rooms of the code whose names it has."""
_WIDE = 96


@cache
def public_names() -> dict[str, griffe.Object]:
    """What each public name is, by the path to import it from: `{"mime.MotorNode": ...}`."""
    package = griffe.load("mime", search_paths=[SOURCES], allow_inspection=False)
    found: dict[str, griffe.Object] = {}
    for module, file in PUBLIC.items():
        for entry in ast.parse((SOURCES / file).read_text(encoding="utf-8")).body:
            if isinstance(entry, ast.ImportFrom) and entry.module and entry.module != "typing":
                for alias in entry.names:
                    home = package[f"{entry.module}.{alias.name}".removeprefix("mime.")]
                    found[f"{module}.{alias.name}"] = _final(package, home)
    return found


@cache
def addresses() -> dict[str, str]:
    """The page and anchor of each name: `{"KinematicTree": "api/kinematics.md#KinematicTree"}`."""
    found: dict[str, str] = {}
    for thing, _ in _things():
        page = f"api/{_page(thing)}.md"
        found[thing.name] = f"{page}#{thing.name}"
        for member in _members(thing):
            if member.is_function:
                found[f"{thing.name}.{member.name}"] = f"{page}#{thing.name}.{member.name}"
    return found


def undocumented() -> list[str]:
    """Public names, and their methods, that have no docstring, nor had one to begin with."""
    missing = [path for path, thing in public_names().items() if not thing.docstring]
    for thing, path in _things():
        names = [name for name in thing.members if not name.startswith("_")]
        methods = [name for name in names if thing.members[name].is_function]
        missing += [f"{path}.{name}" for name in methods if not _says(thing, name)]
    return missing


def reference_pages() -> dict[str, str]:
    """The pages by path."""
    bodies: dict[str, list[str]] = {page: [] for page in PAGES}
    rows: dict[str, list[str]] = {page: [] for page in PAGES}
    for thing, path in sorted(_things(), key=lambda pair: pair[0].name.lower()):
        page = _page(thing)
        bodies[page] += _section(thing, path)
        first = escaped(_text(thing).split("\n")[0])
        rows[page].append(f"| [`{thing.name}`]({page}.md#{thing.name}) | {first} |")
    pages = {
        f"api/{page}.md": "\n".join([f"# {PAGES[page][0]}", "", *lines])
        for page, lines in bodies.items()
    }
    index = ["# Reference of all names", "", "Names, where to import them from, what they take."]
    for page, lines in rows.items():
        index += [
            "",
            f"## [{PAGES[page][0]}]({page}.md)",
            "",
            "| name | |",
            "| --- | --- |",
            *lines,
        ]
    return {"api/index.md": "\n".join(index) + "\n", **pages}


def _things() -> list[tuple[griffe.Object, str]]:
    """Each thing once, with the shortest path to import it from."""
    found: dict[str, tuple[griffe.Object, str]] = {}
    for path, thing in public_names().items():
        found.setdefault(thing.path, (thing, path))
    return list(found.values())


def _final(package: griffe.Module, thing: griffe.Object) -> griffe.Object:
    while thing.is_alias:
        thing = package[thing.target_path.removeprefix("mime.")]
    return thing


def _page(thing: griffe.Object) -> str:
    room = thing.path.split(".")[1]
    for page, (_, rooms) in PAGES.items():
        if room in rooms:
            return page
    raise LookupError(f"{thing.path} is public: PAGES has no page for the room {room!r}")


def _section(thing: griffe.Object, path: str) -> list[str]:
    name, module = thing.name, path.rpartition(".")[0]
    lines = [f"## {name} {{ #{name} }}", "", f"`from {module} import {name}`", ""]
    if name in own_types():
        lines += [f"[Parameters, inputs, fluxes and state](../reference/{name}.md).", ""]
    if thing.is_function:
        lines += _signature(thing)
    elif thing.is_class and "__init__" in thing.members:
        lines += _signature(thing.members["__init__"], name)
    lines += [*as_markdown(_text(thing)), ""]
    if thing.is_attribute:
        return [*lines, *_block(f"{name} = {thing.value}")]
    if not thing.is_class:
        return lines
    members = _members(thing)
    lines += _fields([member for member in members if member.is_attribute])
    for member in members:
        if member.is_function:
            anchor = f"{name}.{member.name}"
            lines += [f"### {anchor} {{ #{anchor} }}", "", *_signature(member)]
            lines += [*as_markdown(_text(member)), ""]
    return lines


def _members(thing: griffe.Object) -> list[griffe.Object]:
    """What a class has of its own, and of classes above it that are no public names themselves.

    What a public class above it has, `Node.update` for instance, is told there.
    """
    if not thing.is_class:
        return []
    public = [cls for cls in _above(thing) if cls.path in {other.path for other, _ in _things()}]
    elsewhere = {cls.path for base in public for cls in (base, *_above(base))}
    told = {name for base in public for cls in (base, *_above(base)) for name in cls.members}
    found: dict[str, griffe.Object] = {}
    for cls in reversed([thing, *_above(thing)]):
        if cls.path not in elsewhere:
            found |= {m.name: _meant(m) for m in cls.members.values() if not m.is_alias}
    shown = [m for name, m in found.items() if not name.startswith("_") and name not in told]
    return [m for m in shown if not m.is_function or m.docstring]


def _meant(member: griffe.Object) -> griffe.Object:
    """`poles = linear.poles` in a class is that function."""
    if not member.is_attribute or not isinstance(
        member.value, griffe.ExprName | griffe.ExprAttribute
    ):
        return member
    try:
        meant = member.modules_collection[member.value.canonical_path]
    except (KeyError, AttributeError):
        return member
    return meant if meant.is_function and meant.name == member.name else member


def _above(thing: griffe.Object) -> list[griffe.Object]:
    return [cls for cls in thing.mro() if cls.path.startswith("mime.")]


def _says(thing: griffe.Object, name: str) -> str:
    """What the class, or the first one above it that says anything, says of a member."""
    for cls in (thing, *_above(thing)):
        member = cls.members.get(name)
        if member is not None and not member.is_alias and member.docstring:
            return _text(member)
    return ""


def _text(thing: griffe.Object) -> str:
    return thing.docstring.value.strip() if thing.docstring else ""


def _fields(fields: list[griffe.Object]) -> list[str]:
    if not fields:
        return []
    rows = []
    for field in fields:
        unit, default, meaning = _declared(field)
        meaning = " ".join((_text(field) or meaning).split())
        kind = _cell(str(field.annotation)) if field.annotation else ""
        rows.append((f"`{field.name}`", kind, escaped(unit), _cell(default), escaped(meaning)))
    titles = ("field", "type and shape", "unit", "default", "meaning")
    filled = [k for k in range(len(titles)) if any(row[k] for row in rows)]
    cells = [[row[k] for k in filled] for row in (titles, ("---",) * len(titles), *rows)]
    return [*(f"| {' | '.join(row)} |" for row in cells), ""]


def _declared(field: griffe.Object) -> tuple[str, str, str]:
    """Unit, default and meaning: `parameter("N·m", default=1.0, doc="...")` says all of them."""
    if field.value is None or "property" in field.labels:
        return "", "", ""
    try:
        value = ast.parse(str(field.value), mode="eval").body
    except SyntaxError:
        return "", "", ""
    called = ast.unparse(value.func).rpartition(".")[2] if isinstance(value, ast.Call) else ""
    if called not in ("parameter", "option", "effect", "field"):
        default = str(field.value)
        return "", default if len(default) <= 40 else "…", ""
    words = {word.arg: word.value for word in value.keywords if word.arg}
    first = value.args[0] if value.args and called == "parameter" else words.get("unit")
    unit = first.value if isinstance(first, ast.Constant) else ""
    doc = words.get("doc")
    default = ast.unparse(words["default"]) if "default" in words else ""
    meaning = doc.value if isinstance(doc, ast.Constant) else ""
    return str(unit), default if len(default) <= 40 else "…", str(meaning)


def _signature(function: griffe.Object, of_class: str = "") -> list[str]:
    """`name(...) -> ...`, on one line where it fits; of a class, what makes one."""
    name = of_class or function.name
    parts = [part for part in _parameters(function) if not (of_class and part == "self")]
    start = "".join(
        f"@{label}\n" for label in ("classmethod", "staticmethod") if label in function.labels
    )
    end = f") -> {function.returns}" if function.returns and not of_class else ")"
    line = f"{name}({', '.join(parts)}{end}"
    if len(line) > _WIDE:
        line = "\n    ".join([f"{name}(", *(f"{part}," for part in parts)]) + f"\n{end}"
    return _block(f"{start}{line}")


def _parameters(function: griffe.Object) -> Iterator[str]:
    starred = False
    kinds = [parameter.kind for parameter in function.parameters]
    for k, parameter in enumerate(function.parameters):
        kind = parameter.kind
        if kind is griffe.ParameterKind.keyword_only and not starred:
            yield "*"
            starred = True
        star = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}
        starred = starred or kind is griffe.ParameterKind.var_positional
        text = f"{star.get(kind, '')}{parameter.name}"
        if parameter.annotation is not None and parameter.name not in ("self", "cls"):
            text += f": {parameter.annotation}"
        if parameter.default is not None and kind not in star:
            text += f" = {parameter.default}" if ":" in text else f"={parameter.default}"
        yield text
        last = kind is griffe.ParameterKind.positional_only
        if last and (k + 1 == len(kinds) or kinds[k + 1] is not kind):
            yield "/"


def _block(code: str) -> list[str]:
    return ["```python", code, "```", ""]


def _cell(code: str) -> str:
    return f"`{code}`".replace("|", "\\|") if code else ""
