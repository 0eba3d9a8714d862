"""Docstrings are plain text; here they become Markdown."""

import re
import textwrap


def as_markdown(text: str) -> list[str]:
    """Paragraphs stay paragraphs; what stands in columns, or is set in, keeps its form."""
    lines: list[str] = []
    for part in re.split(r"\n\s*\n", text.strip("\n")):
        lines += [*_part(part), ""]
    return lines[:-1]


def escaped(text: str) -> str:
    """Words as Markdown; what is between backticks is code already."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([|*_<>\[\]$])", _spelt, part) for part in parts[::2]]
    parts[1::2] = [part.replace("|", "\\|") for part in parts[1::2]]
    return "`".join(parts)


def _part(part: str) -> list[str]:
    lines = part.split("\n")
    if rows := _arguments(lines):
        cells = (f"| `{name}` | {escaped(meaning)} |" for name, meaning in rows)
        return ["| argument | meaning |", "| --- | --- |", *cells]
    listed = any(line.startswith("- ") for line in lines)
    drawn = any(re.search(r"\S {3,}\S", line) for line in lines) and len(lines) > 1
    if not listed and (drawn or any(line.startswith("  ") for line in lines)):
        # A first line of words goes before the drawing: "q such that:" and then equations.
        head = [] if lines[0].startswith(" ") or drawn else [escaped(lines[0]), ""]
        block = textwrap.dedent("\n".join(lines[1:] if head else lines))
        return [*head, "```text", block, "```"]
    if listed and not lines[0].startswith("- "):
        first = next(k for k, line in enumerate(lines) if line.startswith("- "))
        return [*map(escaped, lines[:first]), "", *map(escaped, lines[first:])]
    return [escaped(line) for line in lines]


def _arguments(lines: list[str]) -> list[tuple[str, str]]:
    """Names and their meanings, where a part is two columns of them; else nothing.

    A meaning may go on in the lines below, in its column.
    """
    first = re.match(r"[a-z_*][\w*, /]*? {2,}(?=\S)", lines[0])
    if not first or len(lines) < 2:
        return []
    column, rows = first.end(), []
    for line in lines:
        name, meaning = line[:column].rstrip(), line[column:].strip()
        if (line[:column] and line[column - 2 : column] != "  ") or not meaning:
            return []
        if name.startswith(" ") or not (name or rows):
            return []
        if name and not re.fullmatch(r"[a-z_*][\w*, /]*", name):
            return []
        if name:
            rows.append((name, meaning))
        else:
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {meaning}")
    return rows


def _spelt(match: re.Match) -> str:
    return f"&#{ord(match[0])};"
