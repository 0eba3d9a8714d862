"""No code of MIME looks for meaning in the words of an error: it has a place, a reason, a type."""

import ast
import re
from pathlib import Path

import pytest

import mime

SOURCES = Path(mime.__file__).parent
STRING_METHODS = {
    *("startswith", "endswith", "removeprefix", "removesuffix", "replace", "splitlines"),
    *("partition", "rpartition", "find", "rfind", "index", "split", "rsplit"),
}
PATTERN_METHODS = {"match", "fullmatch", "search", "sub", "subn", "findall", "finditer"}
WORDS = {"msg", "message", "hint", "words"}
"""Attributes and keys that hold the words of an error or of a problem."""
SPEAKS_OF_ERRORS = re.compile(rf"\b(except|{'|'.join(WORDS)})\b|Error|Exception|Interrupted")
"""What holds the words of an error names one of these: the rest, most of it, is not looked at."""
ALLOWED = {
    ("scenarios/source.py", "_toml_position"),
    ("control/kinematics/mjcf/model.py", "compile_document"),
}
"""`tomllib`, before Python 3.14, and MuJoCo tell where a mistake is in their messages alone."""


def error_names(function):
    """Names that stand for an error within a function."""
    for node in ast.walk(function):
        if isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name
        elif isinstance(node, ast.arg) and node.annotation is not None:
            kind = ast.unparse(node.annotation)
            if any(word in kind for word in ("Error", "Exception", "Interrupted")):
                yield node.arg


def is_named(node, words):
    """True for a name or a string that is one of the words."""
    return getattr(node, "id", getattr(node, "value", None)) in words


def is_text(node, errors, texts):
    """True when an expression holds the words of an error."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call | ast.FormattedValue):
            inner = part.args[:1] if isinstance(part, ast.Call) else [part.value]
            named = [word.id for word in inner if isinstance(word, ast.Name)]
            says = not isinstance(part, ast.Call) or is_named(part.func, {"str", "repr"})
            if says and set(named) & errors:
                return True
        if isinstance(part, ast.Name) and part.id in texts:
            return True
        if isinstance(part, ast.Attribute) and part.attr in WORDS:
            return True
        if isinstance(part, ast.Subscript) and is_named(part.slice, WORDS):
            return True
    return False


def parses(node, errors, texts):
    """True for a call (or an `in`) that looks for something in the words of an error."""
    if isinstance(node, ast.Compare):
        asks = any(isinstance(sign, ast.In | ast.NotIn) for sign in node.ops)
        return asks and any(is_text(side, errors, texts) for side in node.comparators)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    method, subject = node.func.attr, node.func.value
    if method in PATTERN_METHODS:
        return any(is_text(argument, errors, texts) for argument in node.args)
    joins = method == "split" and not node.args  # words put on one line, whatever they are
    return method in STRING_METHODS and not joins and is_text(subject, errors, texts)


def parsed_errors(source):
    """Name and line of each function that does it."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    lines = source.splitlines()
    if not SPEAKS_OF_ERRORS.search(source):
        return
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, functions):
            continue
        if not SPEAKS_OF_ERRORS.search("\n".join(lines[function.lineno - 1 : function.end_lineno])):
            continue
        errors, texts = set(error_names(function)), set()
        if not errors and not is_text(function, errors, texts):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and is_text(node.value, errors, texts):
                texts |= {
                    n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)
                }
        yield from (
            (function.name, node.lineno)
            for node in ast.walk(function)
            if parses(node, errors, texts)
        )


def test_no_function_parses_the_words_of_an_error():
    found = {
        (str(file.relative_to(SOURCES)), name): line
        for file in sorted(SOURCES.rglob("*.py"))
        for name, line in parsed_errors(file.read_text(encoding="utf-8"))
    }
    assert found.keys() == ALLOWED, found


@pytest.mark.parametrize(
    "line",
    [
        'str(error).startswith("cannot read")',
        're.search("errno", str(error))',
        'words = str(error); words.partition(";")',
        'f"{error}".replace("pass resume=True", "add --resume")',
        'error.problems[0].message.removeprefix("must be ")',
        'entry["msg"].removeprefix("Input should be ")',
        '"no link" in str(error)',
    ],
)
def test_the_test_above_sees_it(line):
    source = f"def f():\n    try:\n        g()\n    except ValueError as error:\n        {line}\n"
    assert [name for name, _ in parsed_errors(source)] == ["f"]


def test_words_on_one_line_are_not_parsed():
    assert not list(
        parsed_errors('def f(error: Exception):\n    return " ".join(str(error).split())')
    )
