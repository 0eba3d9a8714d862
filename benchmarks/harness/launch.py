"""Run a command and print what it took as JSON: `python -S -E launch.py COMMAND ...`.

A process of its own because Linux counts the memory of whoever starts a process as the least that
the new one held: this one is small.
"""

import json
import resource
import subprocess
import sys
import time


def main() -> int:
    began = time.perf_counter()
    with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.read(1)
        first = time.perf_counter() - began
        process.stdout.read()
    total = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    to_mb = 1e-6 if sys.platform == "darwin" else 1e-3
    took = {"first_output_s": first, "total_s": total, "peak_mb": peak * to_mb}
    print(json.dumps(took))
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
