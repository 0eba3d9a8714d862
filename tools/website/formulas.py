"""LaTeX -> MathML, which browsers draw by themselves: no script, no network, no extension."""

import re

from latex2mathml.converter import convert

from website.text import replaced

FORMULA = r"(?<!\\)\$\$(?P<block>.+?)\$\$|(?<!\\)\$(?!\s)(?P<line>(?:\\.|[^\\$\n])+?)(?<!\s)\$"


class FormulaError(ValueError):
    """An equation that cannot be drawn."""


def with_mathml(text: str, where: str) -> str:
    """`$x^2$` in a line and `$$ x^2 $$` on lines of its own, drawn."""

    def draw(match: re.Match) -> str:
        if block := match["block"]:
            return f'<span class="equation">{_mathml(block, True, where)}</span>'
        return f'<span class="formula">{_mathml(match["line"], False, where)}</span>'

    return replaced(text, FORMULA, draw)


def _mathml(tex: str, block: bool, where: str) -> str:
    tex = tex.replace(r"\mathrel{+}", "{+}")
    drawn = convert(tex, display="block" if block else "inline")
    for left, right in ((r"\lceil", "⌈"), (r"\rceil", "⌉"), (r"\_", "_")):
        drawn = drawn.replace(left, right)
    if "\\" in drawn:
        raise FormulaError(f"{where}: cannot draw the equation {tex.strip()}")
    # What would mean something to Markdown is spelt as entities.
    words = re.sub(r">[^<]+<", lambda found: re.sub(r"[*_`|\[\]]", _entity, found[0]), drawn)
    return words.replace("\n", " ")


def _entity(match: re.Match) -> str:
    return f"&#{ord(match[0])};"
