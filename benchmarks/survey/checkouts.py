"""Folders of public repositories: checkouts, or bare git snapshots that are unpacked first."""

import hashlib
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_GIT = os.environ | {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}


@dataclass(frozen=True)
class Repository:
    """OWNER/NAME and where its files are."""

    name: str
    folder: Path

    def files(self, *suffixes: str) -> list[Path]:
        """Those with a suffix, sorted; links are not followed to folders."""
        found = (f for f in self.folder.rglob("*") if f.name.endswith(suffixes) and f.is_file())
        return sorted(found)

    def relative(self, file: Path) -> str:
        return file.relative_to(self.folder).as_posix()


def repositories(folder: Path, unpacked: Path) -> list[Repository]:
    """Every subfolder OWNER+NAME; a snapshot in OWNER+NAME/repo is unpacked into `unpacked`."""
    found = []
    for sub in sorted(path for path in folder.iterdir() if path.is_dir()):
        name = sub.name.replace("+", "/", 1)
        bare = next((place for place in (sub, sub / "repo") if _is_bare(place)), None)
        if bare is not None:
            sub = unpacked / sub.name
            if not sub.exists():
                unpack(bare, sub)
        found.append(Repository(name, sub.resolve()))
    return found


def _is_bare(folder: Path) -> bool:
    return all((folder / part).exists() for part in ("HEAD", "objects", "refs"))


def unpack(bare: Path, folder: Path) -> int:
    """Write the files of HEAD whose blobs are there; the number of those that are missing."""
    git = ["git", "--git-dir", str(bare)]
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "-z", "HEAD"], capture_output=True, check=True, env=_GIT
    ).stdout
    missing = 0
    with subprocess.Popen(
        [*git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_GIT
    ) as blobs:
        assert blobs.stdin
        assert blobs.stdout
        for entry in filter(None, listed.split(b"\0")):
            about, _, path = entry.partition(b"\t")
            mode, kind, digest = about.split()
            file = folder / os.fsdecode(path)
            if kind != b"blob" or ".." in file.parts:
                continue
            blobs.stdin.write(digest + b"\n")
            blobs.stdin.flush()
            head = blobs.stdout.readline().split()
            if head[1:2] != [b"blob"]:
                missing += 1
                continue
            content = blobs.stdout.read(int(head[2]))
            blobs.stdout.read(1)
            file.parent.mkdir(parents=True, exist_ok=True)
            if mode == b"120000":
                _link(file, os.fsdecode(content), folder)
            else:
                file.write_bytes(content)
    return missing


def _link(file: Path, target: str, top: Path) -> None:
    """A symbolic link, unless it leads out of the checkout."""
    if Path(os.path.normpath(file.parent / target)).is_relative_to(top):
        file.symlink_to(target)


class Distinct(NamedTuple):
    """The first file of a content, the content's hash, and how many files have it."""

    file: Path
    digest: str
    copies: int


def distinct(files: list[Path]) -> list[Distinct]:
    """One entry for each content."""
    alike: dict[str, list[Path]] = {}
    for file in files:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
        alike.setdefault(digest, []).append(file)
    return [Distinct(same[0], digest, len(same)) for digest, same in alike.items()]


def sampled(repository: Repository, files: list[Distinct], most: int) -> list[Distinct]:
    """At most so many files of one pattern, evenly spaced.

    Two files are of one pattern if their paths differ in digits alone: random_urdfs/012/012.urdf.
    """
    patterns: dict[str, list[Distinct]] = {}
    for entry in files:
        pattern = re.sub(r"\d+", "#", repository.relative(entry.file))
        patterns.setdefault(pattern, []).append(entry)
    kept = []
    for alike in patterns.values():
        count = min(most, len(alike))
        kept += [alike[i * len(alike) // count] for i in range(count)]
    return sorted(kept)
