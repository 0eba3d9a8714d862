"""Reads MJCF with all its includes and meshes, each from a folder that may be read, into one text.

MuJoCo is handed that text and the meshes as bytes, and finds no name of a file in it. In the place
of a mesh that cannot be had it gets a small box, the stand-in.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from xml.sax.saxutils import quoteattr

from mime._files import MOST_MESH_BYTES, read_plain
from mime._text import brief
from mime.control.kinematics.packages import NO_MESH, NotFoundError, Packages, as_written
from mime.control.kinematics.report import Finding, Findings, RobotFileError
from mime.control.kinematics.urdf.xml import Element, read_xml

INCLUDES = (".xml", ".mjcf")
"""Suffixes of files that an <include> may name."""
READ_BY_MUJOCO = (".stl", ".obj", ".msh")
MOST_INCLUDES, MOST_DEPTH, MOST_COPIES = 1_000, 200, 10_000


class MjcfError(RobotFileError):
    """An MJCF cannot be simulated. `findings` holds all that is wrong with it."""


class MjcfElement(Element):
    """An element of an MJCF, with its file and line."""

    refusal = MjcfError
    root = "mujoco"
    advice = "Close every tag."


@dataclass
class Document:
    """An MJCF as MuJoCo gets it. Line n of the text comes from the place `origins[n - 1]`."""

    path: Path
    root: Element
    packages: Packages
    found: Findings = field(default_factory=Findings)
    """What was taken out of the text, since it has no part in the mechanics."""
    assets: dict[str, bytes] = field(default_factory=dict)
    mesh_paths: dict[str, str] = field(default_factory=dict)
    """Where the mesh of each name was read; the name as written where there is a stand-in."""
    stand_ins: dict[Element, str] = field(default_factory=dict)
    """The <mesh>es that could not be had, each with the reason."""
    text: str = ""
    origins: list[Element] = field(default_factory=list)

    def element(self, line: int) -> Element:
        """The element that stands on a line of the text."""
        return self.origins[min(max(line, 1), len(self.origins)) - 1]

    def add_mesh(self, mesh: Element, suffix: str, content: bytes, path: str) -> None:
        """Gives MuJoCo what a mesh is, by a name of ours; `path` is where it was read."""
        ours = f"mime_{len(self.assets)}{suffix}"
        self.assets[ours] = content
        mesh.set("file", ours)
        self.mesh_paths[mesh.get("name", "")] = path

    def stand_in(self, mesh: Element, name: str, reason: str) -> None:
        """Gives MuJoCo a small box for a mesh; `name` is that in the file."""
        self.stand_ins[mesh] = reason
        self.add_mesh(mesh, ".obj", box_mesh(STAND_IN_M), as_written(name))
        mesh.attrib.pop("content_type", None)
        words = f"{NO_MESH} {brief(name, 300)}: {reason}"
        self.found.add("mesh", Finding(str(mesh.path), mesh.line, words))

    def write(self) -> None:
        """Makes the text of the elements as they are now."""
        self.origins.clear()
        self.text = "\n".join(_lines(self.root, self.origins))


STAND_IN_M = (0.01, 0.015, 0.04)
"""Half lengths of a stand-in: long, so that MuJoCo can fit a capsule to it."""


def box_mesh(half: tuple[float, float, float], centre: float = 0.0) -> bytes:
    """A box as the text of an OBJ file, its centre at x = y = z."""
    x, y, z = half
    corners = [(a, b, c) for a in (-x, x) for b in (-y, y) for c in (-z, z)]
    faces = "124 143 578 586 156 162 348 387 137 175 268 284".replace(" ", "\n")
    lines = [" ".join(["v", *(repr(centre + value) for value in corner)]) for corner in corners]
    lines += [f"f {' '.join(face)}" for face in faces.split()]
    return "\n".join(lines).encode()


def read_document(path: Path, packages: Packages, found: Findings) -> Document:
    """The file with its includes and meshes; a `MjcfError` where one may not or cannot be read."""
    root = read_xml(path, found, MjcfElement)
    if root.tag != "mujoco":
        raise root.error(f"the root element is <{root.tag}>; expected <mujoco>. Convert it.")
    document = Document(path, root, packages, found)
    _include(document, root)
    _check_depth(root)
    for rule, problem in _screened(document, root, "mujoco"):
        found.add(rule, problem)
    for problem in _bad_numbers(root):
        found.add("malformed", problem)
    found.refuse(MjcfError)
    _read_meshes(document)
    document.write()
    return document


def _include(document: Document, root: Element) -> None:
    """Puts the content of each included file in the place of its <include>."""
    seen = {document.path.resolve()}
    waiting = [root]
    while waiting:
        element = waiting.pop()
        parts: list[Element] = []
        todo = list(element)[::-1]
        while todo:
            part = todo.pop()
            if part.tag != "include":
                parts.append(part)
                continue
            if len(part):
                raise part.error(f"<include> has a <{part[0].tag}> in it; expected nothing.")
            try:
                name = part.get("file", "")
                file = document.packages.file(name, INCLUDES, part.path.parent)
            except NotFoundError as error:
                raise part.error(f"{error}. Correct its file.") from error
            if file in seen or len(seen) > MOST_INCLUDES:
                raise part.error(
                    f"{brief(part.get('file'), 80)} is included a second time, or after "
                    f"{MOST_INCLUDES} others; MuJoCo takes a file once. Delete the <include>."
                )
            seen.add(file)
            inner = read_xml(file, document.found, MjcfElement)
            if inner.tag not in ("mujoco", "mujocoinclude"):
                raise inner.error(f"the root element is <{inner.tag}>; expected <mujocoinclude>.")
            todo += list(inner)[::-1]
        element[:] = parts
        waiting += parts


def _check_depth(root: Element) -> None:
    level = [root]
    for _ in range(MOST_DEPTH):
        level = [part for element in level for part in element]
        if not level:
            return
    raise level[0].error(f"stands {MOST_DEPTH} elements deep; expected a robot.")


_ACTUATORS = "general motor position velocity intvelocity orientation pid damper cylinder"
_ACTUATORS += " muscle adhesion dcmotor"
_BODY = "body inertial joint freejoint geom site frame replicate"
KEPT: dict[str, set[str]] = {
    where: set(tags.split())
    for where, tags in {
        "mujoco": "compiler option default asset worldbody contact equality tendon actuator "
        "keyframe",
        "compiler": "lengthrange",
        "option": "flag",
        "default": f"default mesh material joint geom site pair equality tendon {_ACTUATORS}",
        "asset": "mesh material",
        "worldbody": _BODY,
        "body": _BODY,
        "frame": _BODY,
        "replicate": _BODY,
        "contact": "pair exclude",
        "equality": "connect weld joint tendon",
        "tendon": "spatial fixed",
        "spatial": "site geom pulley",
        "fixed": "joint",
        "actuator": _ACTUATORS,
        "keyframe": "key",
    }.items()
}
"""What MuJoCo is handed: the tags in each place."""
UNSEEN: dict[str, set[str]] = {
    "mujoco": {"size", "visual", "statistic", "custom"},
    "default": {"texture", "camera", "light"},
    "asset": {"texture", "skin"},
    "material": {"layer"},
}
"""What has no part in the mechanics: pictures, sizes of buffers, notes."""
NOTED = {
    "mujoco": {"sensor"},
    "asset": {"hfield"},
    **{where: {"camera", "light"} for where in ("worldbody", "body", "frame", "replicate")},
}
"""What has none either, and is worth a line in the report."""
NOT_SIMULATED = {
    "composite": ("soft", "is soft or made of parts"),
    "flexcomp": ("soft", "is soft"),
    "flex": ("soft", "is soft"),
    "deformable": ("soft", "is soft"),
    "flexstrain": ("soft", "is soft"),
    "extension": ("code", "loads code"),
    "plugin": ("code", "loads code"),
    "attach": ("soft", "takes in another model"),
    "model": ("soft", "takes in another model"),
}
"""Rule and words of what makes another machine."""


def _screened(document: Document, element: Element, where: str) -> Iterator[tuple[str, Finding]]:
    """Take out what MuJoCo needs not know; yield what cannot be simulated, with its rule."""
    kept = []
    for part in element:
        tag = part.tag
        if tag in KEPT.get(where, ()):
            if tag == "geom" and part.get("hfield") is not None:
                document.found.add("sensor", part.finding("is a height field: not drawn"))
                continue
            kept.append(part)
            yield from _screened(document, part, tag)
        elif tag not in NOT_SIMULATED and (stray := _stray(part)) is not None:
            yield "malformed", stray.finding(f"does not belong inside <{tag}>")
        elif tag in NOTED.get(where, ()):
            for inner in part if len(part) else [part]:
                document.found.add("sensor", inner.finding("is not simulated"))
        elif tag not in UNSEEN.get(where, ()):
            rule, why = NOT_SIMULATED.get(tag, ("malformed", f"is not known inside <{where}>"))
            yield rule, part.finding(f"{why}: MIME does not simulate it")
    element[:] = kept
    if where == "material":
        element.attrib.pop("texture", None)
    files = [name for name in element.attrib if "file" in name]
    if files and where != "mesh":
        yield "malformed", element.finding(f"names a file by {files[0]}=, which MIME does not read")


def _stray(part: Element) -> Element | None:
    """A part of the mechanics inside of what is taken out, where it would be lost."""
    mechanics = (KEPT["mujoco"] | KEPT["body"] | KEPT["actuator"]) - {"contact"}  # a sensor too
    inside = (inner for inner in part.iter() if inner is not part)
    return next((inner for inner in inside if inner.tag in mechanics), None)


_WORDS = {"name", "class", "childclass", "model", "joint", "jointinparent", "joint1", "joint2"}
_WORDS |= {"body", "body1", "body2", "site", "site1", "site2", "geom", "geom1", "geom2", "mesh"}
_WORDS |= {"material", "tendon", "tendon1", "tendon2", "refsite", "slidersite", "cranksite"}
_WORDS |= {"sidesite", "prefix", "file", "meshdir", "assetdir", "texturedir", "sep", "actuator"}
"""Attributes that are names, and not numbers."""


def _bad_numbers(root: Element) -> Iterator[Finding]:
    """Numbers that are none, and copies that have no end."""
    waiting = [(root, 1)]
    while waiting:
        element, copies = waiting.pop()
        if element.tag == "replicate":
            count = element.get("count", "1").strip()
            copies *= int(count) if count.isascii() and count.isdigit() else 1
            if copies > MOST_COPIES:
                yield element.finding(f"makes {copies} copies; expected at most {MOST_COPIES}")
                return
        for name, text in element.attrib.items():
            if name in _WORDS:
                continue
            for word in text.split():
                try:
                    number = float(word)
                except ValueError:
                    continue
                if not math.isfinite(number) or abs(number) > 1e30 or "_" in word:
                    words = f"has {name}={brief(text, 60)}; expected finite numbers of a machine"
                    yield element.finding(words)
                    break
                if element.tag == "mesh" and name == "params" and abs(number) > 100:
                    yield element.finding("is finer than MIME lets MuJoCo make it")
        waiting += [(part, copies) for part in element]


def _read_meshes(document: Document) -> None:
    """Reads each mesh, and gives MuJoCo a name of ours for it, or a stand-in for it."""
    settings: dict[str, str] = {}
    for compiler in document.root.findall("compiler"):
        settings |= compiler.attrib
        for name in ("meshdir", "assetdir", "texturedir", "strippath"):
            compiler.attrib.pop(name, None)
    folder = settings.get("meshdir", settings.get("assetdir", ""))
    total = 0
    for mesh in document.root.iter("mesh"):
        name = mesh.attrib.pop("file", "")
        if not name:
            continue
        pure = PurePosixPath(name.replace("\\", "/"))
        if settings.get("strippath") == "true":
            pure = PurePosixPath(pure.name)
        plain = "://" not in name and "$(" not in name
        whole = str(PurePosixPath(folder) / pure) if plain else name
        mesh.set("name", mesh.get("name", pure.stem))
        try:
            file, content = _read_mesh(document, whole, 8 * MOST_MESH_BYTES - total)
        except NotFoundError as error:
            document.stand_in(mesh, whole, str(error))
            continue
        total += len(content)
        document.add_mesh(mesh, file.suffix.lower(), content, str(file))


def _read_mesh(document: Document, name: str, most: int) -> tuple[Path, bytes]:
    """Where a mesh is, and what MuJoCo is given of it; a `NotFoundError` says why not.

    `most`: how many bytes may be read after those of the meshes before.
    """
    most = min(most, MOST_MESH_BYTES)
    file = document.packages.file(name)
    if file.suffix.lower() not in READ_BY_MUJOCO:
        raise NotFoundError(f"MuJoCo reads {', '.join(READ_BY_MUJOCO)}")
    try:
        content = read_plain(file, most + 1)
    except OSError as error:
        raise NotFoundError(f"it cannot be read ({error.strerror})") from error
    if len(content) > most:
        raise NotFoundError(f"it is longer than {most} bytes")
    if content.startswith(b"version https://git-lfs"):
        raise NotFoundError("it is a pointer of Git LFS. Run `git lfs pull`")
    return file, content


def _lines(element: Element, origins: list[Element]) -> Iterator[str]:
    """The text, a line for each element; what stands on a line is told to `origins`."""
    attributes = "".join(f" {name}={quoteattr(text)}" for name, text in element.attrib.items())
    origins.append(element)
    if not len(element):
        yield f"<{element.tag}{attributes}/>"
        return
    yield f"<{element.tag}{attributes}>"
    for part in element:
        yield from _lines(part, origins)
    origins.append(element)
    yield f"</{element.tag}>"
