"""The picture of pictures."""

import io

import numpy as np
import pytest
from PIL import Image

from mime.reporting.overview import _font, overview

COLOURS = [(255, 0, 0), (0, 128, 0), (0, 0, 255), (255, 165, 0), (128, 0, 128)]
SIZES = [(800, 300), (800, 700), (800, 500), (400, 400), (900, 300)]


def png(size, colour):
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, format="png")
    return file.getvalue()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_every_picture_is_there_whole_and_undistorted(count):
    pictures = [(f"picture {i}", png(SIZES[i], COLOURS[i])) for i in range(count)]
    sheet = np.asarray(Image.open(io.BytesIO(overview(pictures))).convert("RGB"))
    assert sheet.shape[1] == 1760
    for (width, height), colour in zip(SIZES[:count], COLOURS[:count], strict=True):
        rows, columns = np.nonzero((sheet == np.array(colour)[None, None, :]).all(axis=-1))
        drawn = (np.ptp(rows) + 1, np.ptp(columns) + 1)
        assert drawn[1] / drawn[0] == pytest.approx(width / height, rel=0.01)
        assert len(rows) == drawn[0] * drawn[1]


def test_a_long_caption_is_no_wider_than_its_picture():
    words = "Six-axis desktop arm with elastic joints on a tool path"
    assert _font("Motor", 400).size == 26
    # hinting rounds each letter: by a pixel in forty
    assert 390 < _font(words, 400).getlength(words) <= 410
