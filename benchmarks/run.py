"""Measure MIME beside its peers: `python benchmarks/run.py [--quick] [TOPIC ...]`.

A complete run writes `benchmarks/results/<topic>.json` and docs/benchmarks.md. A quick one measures
a part, writes nothing, and fails when a ratio is worse than the recorded one beyond the noise.
Each topic has a process of its own: what one leaves behind cannot slow down the next.
"""

import argparse
import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
TOPICS = (
    "graph_overhead",
    "motor",
    "arm",
    "joints",
    "integrators",
    "kinematics",
    "gradient",
    "elastic",
    "composed",
    "chain",
    "ray_casting",
    "mouse",
    "startup",
    "replay",
    "parts",
    "fit",
    "design",
    "studies",
)
NOISE = 1.5
"""Times a ratio may be worse than the recorded one; a shared machine is that restless."""
BUSY = 0.7
"""Load average of others from which a run says so."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=", ".join(TOPICS))
    parser.add_argument("--quick", action="store_true", help="a part, compared with the record")
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--noise", type=float, default=NOISE, help="of a quick run")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.topics) - set(TOPICS):
        parser.error(f"no topic {', '.join(sorted(unknown))}; there are {', '.join(TOPICS)}")
    if options.alone:
        return measure_topic(options.topics[0], options)
    failed = [] if options.page else run_all(options.topics or TOPICS, options)
    if not options.quick:
        from harness import page

        print(f"wrote {page.write(headings(), options.noise).relative_to(FOLDER.parent)}")
    for topic in failed:
        print(f"FAILED: {topic}, see above", file=sys.stderr)
    return 1 if failed else 0


def run_all(topics: Any, options: argparse.Namespace) -> list[str]:
    """Each topic in its own process; the names of those that failed."""
    from harness.machine import machine_load, thread_environment

    load = machine_load()
    if load > BUSY:
        print(f"This machine is busy (load average {load:g}): whoever waits for a second thread, "
              "as Pinocchio does, looks slower than it is.", file=sys.stderr)  # fmt: skip
    environment = os.environ | thread_environment(options.threads)
    if not options.quick:  # first calls are recorded, so they must compile
        environment["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    common = ["--alone", f"--threads={options.threads}", f"--noise={options.noise}"]
    common += ["--quick"] if options.quick else []
    failed = []
    for topic in topics:
        command = [sys.executable, str(FOLDER / "run.py"), topic, *common]
        if subprocess.run(command, env=environment).returncode:
            failed.append(topic)
    return failed


def headings() -> dict[str, tuple[str, str]]:
    """Title and text of every topic: its module's docstring, read without running it."""
    found = {}
    for topic in TOPICS:
        docstring = ast.get_docstring(ast.parse((FOLDER / f"{topic}.py").read_text())) or topic
        title, _, text = docstring.partition("\n")
        found[topic] = (title.rstrip("."), text)
    return found


def measure_topic(topic: str, options: argparse.Namespace) -> int:
    """All cases of a topic, here and now."""
    from harness import machine

    machine.pin_to_cores(options.threads)

    import jax
    from harness import results, table
    from harness.measure import measure
    from rich.console import Console

    import mime  # noqa: F401 - before JAX computes: it asks XLA to compile loops as a whole

    jax.config.update("jax_enable_x64", True)
    module = importlib.import_module(topic)
    about = machine.describe(options.threads)
    items = [i for i in module.cases(options.threads) if i.quick or not options.quick]
    if not items:
        return 0
    entries: dict[str, Any] = {}
    for number, item in enumerate(items, 1):
        print(f"{topic} {number}/{len(items)}: {item.name}", file=sys.stderr, flush=True)
        entries[item.name] = measure(item)
    worse: list[tuple[str, str]] = []
    if options.quick:
        known = results.load(topic) or {"entries": {}}
        against = known["entries"], options.noise
        suspects = {name for name, _ in results.regressions(entries, *against)}
        for item in items:
            if item.name in suspects:  # once more, for longer, before anyone is alarmed
                entries[item.name] = measure(item, more=3)
        worse = list(results.regressions(entries, *against))
    else:
        results.save(topic, {"topic": topic, "machine": about, "entries": entries})
    console = Console(width=None if sys.stdout.isatty() else 150)
    console.print(table.for_terminal(headings()[topic][0], entries))
    for _, sentence in worse:
        print(f"WORSE: {sentence}", file=sys.stderr)
    refused = [
        f"{case}, {peer}: {their['refused']}"
        for case, entry in entries.items()
        for peer, their in entry.get("theirs", {}).items()
        if "refused" in their
    ]
    for sentence in refused:
        print(f"REFUSED: {sentence}", file=sys.stderr)
    return 1 if worse or refused else 0


if __name__ == "__main__":
    sys.exit(main())
