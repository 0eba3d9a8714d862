import sys
from pathlib import Path

# Last: the tests have modules of their own with names of benchmarks.
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
