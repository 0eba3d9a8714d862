"""A figure that a notebook shows by itself."""

from matplotlib.figure import Figure

from mime.reporting.html import png_bytes


class Picture(Figure):
    """A figure of matplotlib that is shown where it is the last line of a notebook's cell."""

    def _repr_png_(self) -> bytes:
        return png_bytes(self)

    def __repr__(self) -> str:
        width, height = self.get_size_inches()
        words = f"{len(self.axes)} axes, {width:g} x {height:g} inches"
        return f"Picture({words}): .savefig('plot.png'); a notebook shows it"
