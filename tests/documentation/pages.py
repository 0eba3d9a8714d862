"""Run a page of the documentation: its Python, its commands, and compare what it shows.

```python            run, in one namespace a page
```python title=F    written to the file F, as toml and others with a title are
```sh                a command a line; `mime` runs in this process, `cp` copies from the repository
```text              what the block before it prints; ... stands for anything
"""

import contextlib
import io
import math
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from mime.cli import main

BLOCK = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROOT = Path(__file__).parents[2]
INSTALLS = ("make", "pip", "cd", "source")
"""Commands that set a machine up; other tests see to those."""


def run_page(path):
    """Run all of a page in the current folder; `(shown, printed)` of every block with an output."""
    space, pairs, printed, failed = {"__name__": "__main__"}, [], "", False
    for language, title, text in BLOCK.findall(path.read_text(encoding="utf-8")):
        assert language == "text" or not failed, f"{path}: fails, and the page shows no output"
        if title:
            Path(title).write_text(text, encoding="utf-8")
        elif language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as stdout:
                exec(compile(text, path.name, "exec"), space)
            printed = stdout.getvalue()
        elif language == "sh":
            results = [_command(line) for line in text.splitlines()]
            printed, failed = "".join(out for out, _ in results), any(code for _, code in results)
        elif language == "text":
            pairs.append((text, printed))
            failed = False
        elif language:
            raise AssertionError(f"{path}: a block of {language!r} that nobody runs: {text[:60]!r}")
    return pairs


def _command(line):
    """What a command prints, and its exit code."""
    words = shlex.split(line, comments=True)
    if not words or words[0] in INSTALLS:
        return "", 0
    if words[0] == "cp":
        shutil.copy(ROOT / words[1], words[2])
        return "", 0
    if words[0] == "python":
        command = [sys.executable, *words[1:]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return done.stdout, done.returncode
    assert words[0] == "mime", f"a command that nobody runs: {line}"
    code, printed = 0, io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            main(words[1:])
        except SystemExit as ended:
            code = ended.code
    return printed.getvalue(), code


def agree(shown, printed):
    """Word by word, in order; numbers to a part in a thousand."""
    words = printed.split()
    at = 0
    for index, part in enumerate(re.split(r"(?:^|\s)\.\.\.(?:\s|$)", shown)):
        wanted = part.split()
        starts = range(at, len(words) - len(wanted) + 1) if index else [0]
        at = next((s + len(wanted) for s in starts if _same(wanted, words[s:])), None)
        if at is None:
            return False
    return at == len(words) or shown.rstrip().endswith("...")


def _same(wanted, words):
    return len(words) >= len(wanted) and all(map(_same_word, wanted, words))


def _same_word(wanted, word):
    try:
        return math.isclose(float(wanted), float(word), rel_tol=1e-3)
    except ValueError:
        return wanted == word
