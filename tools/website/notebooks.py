"""The how-tos as notebooks: their words and their code, cell by cell, with what the pages show.

The tests run the code of the pages; a notebook holds the same code and nothing else.
"""

import json
import re
from typing import Any

BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def notebook(page: str) -> str:
    """A page of Markdown -> a notebook (nbformat 4.5), as JSON."""
    cells: list[dict[str, Any]] = []
    end = 0
    for block in BLOCK.finditer(page):
        _add_words(cells, page[end : block.start()])
        language, title, code = block.groups()
        end = block.end()
        if language == "text" and cells and cells[-1]["cell_type"] == "code":
            output = {"output_type": "stream", "name": "stdout", "text": _lines(code)}
            cells[-1]["outputs"].append(output)
        elif language == "text":
            _add_words(cells, block[0])
        else:
            _add(cells, "code", _cell(language, title, code))
    _add_words(cells, page[end:])
    about = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": about, "language_info": {"name": "python"}}
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def _cell(language: str, title: str, code: str) -> str:
    """Code as Jupyter takes it: a file is written, a command goes to the shell."""
    if title:
        return f"%%writefile {title}\n{code}"
    if language == "sh":
        return "".join(f"!{line}\n" for line in code.splitlines() if line)
    return code


def _add_words(cells: list[dict[str, Any]], words: str) -> None:
    # A notebook is read somewhere else: links to other pages stay as their words.
    words = re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", words).strip()
    if words:
        _add(cells, "markdown", words + "\n")


def _add(cells: list[dict[str, Any]], kind: str, text: str) -> None:
    cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{len(cells)}", "metadata": {}}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    cells.append(cell | {"source": _lines(text.rstrip("\n"))})


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
