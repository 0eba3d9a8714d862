"""Write the last sections of every guide of a node from the node's metadata. `make docs` does."""

from pathlib import Path

from mime.reporting.node_sheet import guide_end
from mime.scenarios.node_types import own_types

GUIDES = Path(__file__).parent.parent / "docs" / "algorithm_guide" / "nodes"
BEGINS = "\n## Implementation"


def renewed(text: str) -> str:
    """A guide with sections that say what the metadata of its nodes say now.

    Its nodes are those whose ids stand before its first section.
    """
    head = text.split("\n## ")[0]
    classes = [cls for cls in own_types().values() if cls.meta and cls.meta.id in head]
    return f"{text.split(BEGINS)[0].rstrip()}\n\n{guide_end(classes)}"


if __name__ == "__main__":
    for page in sorted(GUIDES.glob("*.md")):
        page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")
