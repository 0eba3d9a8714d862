"""What a release must have in step: versions, changelog, and tools of the pre-commit hooks."""

import re
from pathlib import Path

import yaml

import mime

ROOT = Path(__file__).parents[2]


def test_the_citation_has_the_version_of_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == mime.__version__


def test_the_changelog_begins_with_this_version_and_has_the_three_kinds():
    newest = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1]
    assert mime.__version__ in newest.splitlines()[0]
    assert set(re.findall(r"^### (\w+)$", newest, re.MULTILINE)) <= {"Added", "Changed", "Fixed"}


def test_the_hooks_are_what_make_lint_runs():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    commands = [hook["entry"] for repo in config["repos"] for hook in repo["hooks"]]
    lint = (ROOT / "Makefile").read_text(encoding="utf-8")
    tools = [command.removeprefix(".venv/bin/").removesuffix(" --fix") for command in commands]
    assert tools == ["ruff format", "ruff check", "mypy"]
    assert all(f"$(BIN)/{tool}" in lint for tool in tools)
