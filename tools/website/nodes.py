"""A page for each node, from its own declarations: what `mime show NODE --markdown` prints."""

from pathlib import Path

from mime.reporting.node_sheet import markdown, node_sheet
from mime.scenarios.node_types import own_types
from mime.xla.cache import enable_compilation_cache

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = "algorithm_guide/nodes"


def node_pages() -> dict[str, str]:
    """The pages by path."""
    enable_compilation_cache()  # some nodes of the examples compile a program when built
    return {f"reference/{name}.md": _node_page(name) for name in own_types()}


def _node_page(name: str) -> str:
    cls = own_types()[name]
    page = markdown(node_sheet(cls))
    stems = [path.stem for path in (DOCS / GUIDE).glob("*.md")]
    for part in reversed(cls.__module__.split(".")):  # mime.nodes.actuation.motor.node -> motor
        for stem in stems:
            if stem.endswith(part):
                title, rest = page.split("\n", 1)
                link = f"[How it works, why, and the evidence](../{GUIDE}/{stem}.md)."
                return f"{title}\n\n{link}\n{rest}"
    return page
