"""One small maze in each of the formats that hold any size, and an empty one as `.mz`."""

EMPTY_MZ_LINE = "| " + "_ " * 15 + "|"
EMPTY_MZ = [EMPTY_MZ_LINE] * 15 + ["|" + "_" * 31 + "|"]

TEXT = """\
o---o---o---o
|     G |   |
o   o---o   o
| S |       |
o---o---o---o
"""

NUM = """\
0 0 0 1 1 1
0 1 1 0 0 1
1 0 1 0 1 1
1 1 1 1 1 0
2 0 0 1 1 0
2 1 1 1 0 1
"""
