"""`mime new-node NAME`: a node that works, its test and its page, to be written over."""

import keyword
import re
from importlib import resources
from pathlib import Path
from typing import Annotated

import tyro

from mime.commands import OK, UserMistakeError


def new_node(
    name: Annotated[
        str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME", help="such as TorsionSpring")
    ],
    out: Annotated[Path, tyro.conf.arg(metavar="DIR", help="folder")] = Path("."),
) -> int:
    """Write the skeleton of a node: NAME.py, test_NAME.py and NAME.md."""
    from mime.commands.output import prepare, write_bytes

    module, cls = _names(name)
    templates = resources.files("mime.commands") / "templates"
    files = {
        out / f"{module}.py": "node.py.txt",
        out / f"test_{module}.py": "test.py.txt",
        out / f"{module}.md": "page.md.txt",
    }
    if taken := [str(path) for path in files if path.exists()]:
        raise UserMistakeError(f"{', '.join(taken)}: already there, and not overwritten")
    prepare(out)
    for path, template in files.items():
        text = (templates / template).read_text(encoding="utf-8")
        text = text.replace("$MODULE", module).replace("$CLASS", cls)
        write_bytes(path, text.encode())
        print(f"wrote {path}")
    print(f"try it:  cd {out} && python -m pytest test_{module}.py")
    return OK


def _names(name: str) -> tuple[str, str]:
    """`TorsionSpring`, `torsion-spring` -> torsion_spring, TorsionSpringNode"""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()
    module = words.removesuffix("_node").strip("_")
    if not module.isidentifier() or not module.isascii() or keyword.iskeyword(module):
        raise UserMistakeError(f"a node's name has letters, digits and _, got {name!r}")
    return module, "".join(word.capitalize() for word in module.split("_")) + "Node"
