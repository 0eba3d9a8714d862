"""Several pictures as one: what `mime demo` draws, at a glance, and the picture of the README."""

import io
import math
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont

_GAP, _CAPTION, _LETTERS = 24, 40, 26
"""Pixels between pictures, above each for its caption, and of the caption's letters."""


def overview(pictures: Sequence[tuple[str, bytes]], width: int = 1760) -> bytes:
    """Captions and PNGs in rows as wide as the page, all of a row equally high; a PNG."""
    from PIL import Image, ImageDraw

    images = [(words, Image.open(io.BytesIO(png)).convert("RGB")) for words, png in pictures]
    placed, top = [], _GAP
    for row in _rows(images):
        room = width - _GAP * (len(row) + 1)
        height = min(round(room / sum(_aspect(image) for _, image in row)), width // 2)
        left = _GAP
        for words, image in row:
            size = (round(_aspect(image) * height), height)
            placed.append((words, image.resize(size, Image.Resampling.LANCZOS), left, top))
            left += size[0] + _GAP
        top += _CAPTION + height + _GAP
    sheet = Image.new("RGB", (width, top), "white")
    draw = ImageDraw.Draw(sheet)
    for words, image, x, y in placed:
        draw.text((x, y), words, fill="black", font=_font(words, image.width))
        sheet.paste(image, (x, y + _CAPTION))
    file = io.BytesIO()
    # 256 colours are plenty for plots, and a third of the bytes.
    sheet.quantize(256).save(file, format="png", optimize=True)
    return file.getvalue()


def _font(words: str, width: int) -> "FreeTypeFont":
    """Of the usual size, or of one in which a long caption is no wider than its picture."""
    from PIL import ImageFont

    font: Any = ImageFont.load_default(_LETTERS)
    wide = font.getlength(words)
    return font if wide <= width else font.font_variant(size=_LETTERS * width / wide)


def _aspect(image: "Image") -> float:
    return image.width / image.height


def _rows(images: "list[tuple[str, Image]]") -> "list[list[tuple[str, Image]]]":
    """Cut the list so that rows are about equally high and the whole is about square."""
    total = sum(_aspect(image) for _, image in images)
    count = min(max(round(math.sqrt(total)), 1), len(images))
    inner = combinations(range(1, len(images)), count - 1)
    cuts: list[tuple[int, ...]] = [(0, *between, len(images)) for between in inner]

    def widest(cut: tuple[int, ...]) -> float:
        return max(sum(_aspect(image) for _, image in images[a:b]) for a, b in pairwise(cut))

    best = min(cuts, key=widest)
    return [images[a:b] for a, b in pairwise(best)]
