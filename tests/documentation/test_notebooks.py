"""The how-tos as notebooks hold the code of the pages, which `test_pages` runs, and no other."""

import json
from pathlib import Path

import pytest

from documentation.pages import BLOCK
from website.notebooks import notebook

HOWTOS = sorted((Path(__file__).parents[2] / "docs" / "howto").glob("*.md"))


@pytest.mark.parametrize("path", HOWTOS, ids=lambda path: path.stem)
def test_a_notebook_is_the_code_that_is_tested_and_shows_what_it_prints(path):
    page = path.read_text(encoding="utf-8")
    cells = json.loads(notebook(page))["cells"]
    run, shown = [], []
    for language, title, text in BLOCK.findall(page):
        if language == "text":
            shown.append(text)
        elif title:
            run.append(f"%%writefile {title}\n{text}")
        elif language == "sh":
            run.append("".join(f"!{line}\n" for line in text.splitlines()))
        elif language == "python":
            run.append(text)
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert ["".join(cell["source"]) for cell in code] == [text.rstrip("\n") for text in run]
    outputs = [output for cell in code for output in cell["outputs"]]
    assert ["".join(output["text"]) for output in outputs] == shown


@pytest.mark.parametrize("path", HOWTOS, ids=lambda path: path.stem)
def test_a_notebook_has_what_its_format_asks_for(path):
    whole = json.loads(notebook(path.read_text(encoding="utf-8")))
    assert (whole["nbformat"], whole["nbformat_minor"]) == (4, 5)
    assert whole["metadata"]["kernelspec"]["language"] == "python"
    names = [cell["id"] for cell in whole["cells"]]
    assert len(set(names)) == len(names)
    for cell in whole["cells"]:
        code = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | code
        assert "".join(cell["source"]).strip()


def test_words_stay_and_links_to_other_pages_become_words():
    text = "# Title\n\nSee [this](../native.md#x) and $x^2$.\n\n```python\nprint(1)\n```\n"
    words, code = json.loads(notebook(text))["cells"]
    assert "".join(words["source"]) == "# Title\n\nSee this and $x^2$."
    assert "".join(code["source"]) == "print(1)"
