"""What the writers of robot files share: XML that escapes, comments, numbers that read back."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from mime import __version__
from mime._files import write_atomically
from mime._text import counted, nearest
from mime.core.arguments import path as path_of
from mime.core.arguments import wrong
from mime.core.parameters import known


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """The file, whole or not at all."""
    file = path_of("path", path)
    write_atomically(file, lambda part: Path(part).write_text(text, encoding="utf-8"))


def numbers(values: Any) -> str:
    """Decimals that read back to the same bits."""
    return " ".join(repr(float(x) + 0.0) for x in np.atleast_1d(values).ravel())


class Xml:
    """Lines of XML, indented; `value` attributes that are None are left out."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._open: list[str] = []

    def tag(self, name: str, /, **attributes: Any) -> None:
        """An element without content."""
        self._line(f"<{name}{_attributes(attributes)}/>")

    def open(self, name: str, /, **attributes: Any) -> None:
        """Begin an element."""
        self._line(f"<{name}{_attributes(attributes)}>")
        self._open.append(name)

    def close(self) -> None:
        """End the innermost element."""
        name = self._open.pop()
        self._line(f"</{name}>")

    def text(self, name: str, content: str) -> None:
        """An element with a number in it."""
        self._line(f"<{name}>{content}</{name}>")

    def comment(self, *lines: str) -> None:
        """Words for people; markup in them stays words."""
        for line in lines:
            self._line(f"<!-- {_plain(line)} -->")

    def _line(self, text: str) -> None:
        self.lines.append("  " * len(self._open) + text)

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"


def _attributes(attributes: Mapping[str, Any]) -> str:
    words = []
    for name, value in attributes.items():
        if value is not None:
            text = value if isinstance(value, str) else numbers(value)
            words.append(f" {name.rstrip('_')}={quoteattr(text)}")
    return "".join(words)


def _plain(line: str) -> str:
    """A comment's text: `--` would end it, and a control character is none of XML's."""
    printable = "".join(c if c.isprintable() else " " for c in line)
    return printable.replace("--", "- -").rstrip("-")


class Comments:
    """Where values came from and how well they are known, by address: `link[forearm].mass_kg`."""

    def __init__(
        self,
        tree: Any,
        origins: Mapping[str, str] | None = None,
        uncertainties: Mapping[str, Any] | None = None,
    ):
        self.origins, self.uncertainties = dict(origins or {}), dict(uncertainties or {})
        names = {"link": tree.link_names, "joint": tree.joint_names}
        addresses = [f"{kind}[{name}]" for kind, found in names.items() for name in found]
        for label, given in (("origins", self.origins), ("uncertainties", self.uncertainties)):
            for address in given:
                part = str(address).partition("].")[0] + "]"
                if part not in addresses:
                    form = "addresses such as 'link[forearm].mass_kg'"
                    near = nearest(part, addresses, 3)
                    known = f"It has {counted(part, addresses, 'part')}{near}"
                    raise wrong(label, form, address, known)

    def of(self, kind: str, name: str) -> list[str]:
        """One line for each value of a link or joint that something is known of."""
        start = f"{kind}[{name}]."
        found = dict.fromkeys([*self.origins, *self.uncertainties])
        return [self._line(address) for address in found if address.startswith(start)]

    def _line(self, address: str) -> str:
        words = address
        if address in self.uncertainties:
            words += f": ± {numbers(self.uncertainties[address])}"
        if address in self.origins:
            words += f" ({self.origins[address]})"
        return words


def header(tree: Any, form: str, unsaid: Iterable[str]) -> Sequence[str]:
    """The first comment of a file."""
    lines = [f"Written by MIME {__version__}: {tree.name}, read from {Path(tree.source).name}."]
    cannot = list(unsaid)
    if cannot:
        lines.append(f"What {form} cannot say, and is not in this file:")
        lines += [f"  {line}" for line in cannot]
    return lines


def checked_tree(tree: Any) -> Any:
    """The tree, all of whose numbers must be known: a traced one cannot be written."""
    for name, value in vars(tree).items():
        if hasattr(value, "shape") and not known(value):
            raise wrong("tree", f"a tree whose {name} is known", value, "Write it outside of jit")
    return tree


def own_offset(tree: Any, link_idx: int) -> np.ndarray:
    """The frame that bears the link's name, in the link: not the identity after an MJCF."""
    name = tree.link_names[link_idx]
    if name in tree.frame_names:
        i = tree.frame_names.index(name)
        if tree.frame_link_idxs[i] == link_idx:
            return np.asarray(tree.frame_offsets[i], float)
    return np.eye(4)


def other_frames(tree: Any, link_idx: int) -> list[tuple[str, np.ndarray]]:
    """Frames fixed to a link (-1: to the root), but the one with its own name."""
    own = tree.root_link_name if link_idx < 0 else tree.link_names[link_idx]
    frames = zip(tree.frame_names, tree.frame_link_idxs, tree.frame_offsets, strict=True)
    return [(name, np.asarray(T, float)) for name, i, T in frames if i == link_idx and name != own]


def independent(tree: Any, link_idx: int) -> bool:
    """True when the joint above a link is a coordinate, and mimics none."""
    own = tree.joint_names[tree.coordinate_idxs[link_idx]]
    return bool(tree.link_joint_names[link_idx] == own)


def inverse(T: np.ndarray) -> np.ndarray:
    """T⁻¹ of a pose."""
    back = np.eye(4)
    back[:3, :3] = T[:3, :3].T
    back[:3, 3] = -T[:3, :3].T @ T[:3, 3]
    return back
