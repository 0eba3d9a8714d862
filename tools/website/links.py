"""Links from the pages to the reference: the first time that a page names a name in code."""

import os
import re

from mime.scenarios.node_types import own_types
from website.reference import addresses
from website.text import CODE, FENCE, outside

NAME = re.compile(r"(?:mime\.)?(?P<name>[A-Za-z_]\w*(?:\.\w+)?)(?P<call>\(.*\))?")
LINKED = r"^#[^\n]*$|!?\[(?:[^\[\]]|\[[^\]]*\])*\]\([^)]*\)"
"""Titles, and what is a link already."""
CALLED = {
    "tree": "KinematicTree",
    "graph": "GraphManager",
    "run": "Trajectory",
    "batch": "Trajectory",
}
"""What pages call a value of these classes; others go by the name of their class."""


def with_references(text: str, path: str) -> str:
    """`parse_urdf` -> [`parse_urdf`](../api/kinematics.md#parse_urdf), seen from the page."""
    done: set[str] = set()

    def linked(match: re.Match) -> str:
        address = address_of(match["code"])
        page = (address or "").partition("#")[0]
        if not address or address in done or page == path:
            return match[0]
        done.add(address)
        return f"[{match[0]}]({os.path.relpath(address, os.path.dirname(path) or '.')})"

    return outside(f"{FENCE}|{LINKED}", text, CODE, linked)


def address_of(code: str) -> str | None:
    """Where the site tells of a piece of code, if it is a public name or a call of one."""
    match = NAME.fullmatch(code)
    if not match:
        return None
    name = match["name"]
    if name in own_types():
        return f"reference/{name}.md"
    if name.isalpha() and name.islower() and not match["call"]:
        return None  # a word that happens to be a name, too
    value, _, member = name.partition(".")
    if member and value not in addresses():
        classes = {cls.lower(): cls for cls in addresses() if cls[0].isupper()} | CALLED
        name = f"{classes.get(value, value)}.{member}"
    if "_" in name and not member and name not in addresses():
        # A method without its class, where only one has it: `run_batch`.
        owners = [known for known in addresses() if known.endswith(f".{name}")]
        name = owners[0] if len(owners) == 1 else name
    return addresses().get(name)
