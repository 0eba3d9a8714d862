"""Fits of a motor's log: values, intervals and time, where all can be known and where not.

    python benchmarks/fit_motor.py

The log is by a matrix exponential in NumPy; nobody's simulator made it. Times are processor time of
the best of three fits, after everything has compiled.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import mime
from fitting.motors import COLUMNS, NAMES, TRUE, UNKNOWNS, bench, motor_log

SPEED = {name: field for name, field in COLUMNS.items() if name != "current"}
CASES = {
    "volts, speed, current": (COLUMNS, (0.0, 0.0)),
    "the same, clock one row late": (COLUMNS, (1.0, 1.0)),
    "the same, clock 0.4 rows late": (COLUMNS, (0.4, 0.4)),
    "volts, speed": (SPEED, (0.0, 0.0)),
}


def main() -> None:
    simulation = bench()
    for title, (columns, late) in CASES.items():
        times = {}
        for starts in (1, 8):
            for seed in (3, 2, 1, 0):
                began = time.process_time()
                found = mime.fit(
                    simulation,
                    motor_log(seed, late=late),
                    columns,
                    UNKNOWNS,
                    starts=starts,
                    progress=False,
                )
                took = time.process_time() - began
                times[starts] = min(took, times.get(starts, took))
        told = ", ".join(f"{took:.3f} s from {starts} starts" for starts, took in times.items())
        print(f"\n{title}: {told}")
        for name, address, truth in zip(NAMES, UNKNOWNS, TRUE.values(), strict=True):
            estimate = found[address]
            if estimate.value is None:
                print(f"  {name:14} {estimate.kind}")
                continue
            off = estimate.value / truth - 1
            half = 0.5 * (estimate.high - estimate.low) / estimate.value
            print(f"  {name:14} {100 * off:+.2f} % off, told ± {100 * half:.2f} %")


if __name__ == "__main__":
    main()
