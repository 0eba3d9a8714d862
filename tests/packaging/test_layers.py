"""The rooms of docs/architecture.md: imports point down, and no modules import each other."""

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import mime

SOURCE = Path(mime.__file__).parents[1]
STOREYS = [
    {"_text", "_files"},
    {"xla"},
    {"native"},
    {"core"},
    {"running", "models"},
    {"control"},
    {"nodes", "maze"},
    {"mouse"},
    {"scenarios"},
    {"replay"},
    {"reporting"},
    {"optimise"},
    {"fitting"},
    {"studies"},
    {"tuning"},
    {"verification"},
    {"commands"},
    {"cli"},
    {"__main__"},
]
"""From the ground up. A room imports from itself and from lower storeys, lazily or not."""
HEIGHT = {room: height for height, rooms in enumerate(STOREYS) for room in rooms}
CONTRACT_IMPORTS = {"core", "native", "xla", "_text", "_files"}
"""Rooms that `core` may know; it has no use for `models`."""


def module_name(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in SOURCE.rglob("*.py")}


@cache
def parsed(module):
    """When it is asked for: to collect this test, every worker would parse them all."""
    return ast.parse(MODULES[module].read_text())


def imports(tree, types=True):
    """Modules of MIME that a module imports, anywhere in it; `types`: also for annotations only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from filter(None, (home(node.module, alias.name) for alias in node.names))
        elif types or not is_for_types(node):
            yield from imports(node, types)


def is_for_types(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def home(module, name):
    """The module that `from module import name` loads."""
    if f"{module}.{name}" in MODULES:
        return f"{module}.{name}"
    if module == "mime":  # its public names are those of modules further up
        return mime._HOMES.get(name, "mime")
    return module if module in MODULES else None


def room(module):
    return module.split(".")[1] if "." in module else "mime"


def upward(module, imported):
    if room(module) == "mime":
        return room(imported) != "xla"
    if room(imported) == "mime":  # the version is all that is there
        return False
    below = HEIGHT[room(imported)] < HEIGHT[room(module)]
    return not below and room(imported) != room(module)


def test_every_room_has_its_storey():
    assert {room(module) for module in MODULES} - {"mime"} == set(HEIGHT)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_point_down(module):
    found = {imported for imported in imports(parsed(module)) if upward(module, imported)}
    assert found == set()


def test_the_contract_imports_the_compilers_and_two_helpers_only():
    inside = [parsed(module) for module in MODULES if room(module) == "core"]
    assert {room(name) for tree in inside for name in imports(tree)} <= CONTRACT_IMPORTS


def test_no_modules_import_each_other_not_even_lazily():
    graph = {module: set(imports(parsed(module), types=False)) for module in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_an_upward_import_would_be_found():
    lazy = ast.parse("def f():\n    from mime.reporting import plots\n    import mime.running.job")
    assert [*imports(lazy)] == ["mime.reporting.plots", "mime.running.job"]
    assert upward("mime.running.trajectory", "mime.reporting.plots")
    assert upward("mime.maze.grid", "mime.nodes.control.tool_path")
    assert not upward("mime.running.trajectory", "mime.running.job")
    public = ast.parse("from mime import GraphManager, __version__")
    assert [*imports(public)] == ["mime.running.graph", "mime"]
