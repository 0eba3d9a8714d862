"""The page of the documentation, from the files of results and the notes on what is still lost."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import plots, results, table
from mime._files import write_atomically

ROOT = Path(__file__).parent.parent.parent
NOTES = Path(__file__).parent.parent / "notes.toml"
_INTRODUCTION = """\
# Benchmarks

MIME beside the packages that its users would otherwise take. `make bench` sets up an environment
with all of them, measures and writes this page. The numbers of a section are from one run on one
machine; ratios travel better than times. `make bench-quick` measures a part and fails when a ratio
is more than {noise:g} times the one recorded here.

- **Same work**: model, step, scheme, double precision, number of threads. Results are compared
  before any clock runs, and not timed if they differ by more than the case's tolerance; the files
  in `benchmarks/results/` hold every difference and tolerance.
- **Same machine**: every process is kept on {threads} cores, and who can use threads is given so
  many. Ours and theirs run in turns of 10 ms and more; the best of several counts. Smaller ratios
  are better.
- **Ours as users get it**: `run`, `run_batch` and `rollout` of a compiled graph, and functions
  called with NumPy arrays or under `jax.jit` and `jax.vmap`, without further options. Compilation
  is not in these times; the first call is recorded beside them.
"""


def write(topics: Mapping[str, tuple[str, str]], noise: float, root: Path = ROOT) -> Path:
    """Write docs/benchmarks.md. `topics` maps a name to its title and text, in order."""
    found = {name: results.load(name) for name in topics}
    measured = {name: result for name, result in found.items() if result}
    machines = [result["machine"] for result in measured.values()]
    threads = machines[0]["threads"] if machines else 0
    lines = [_INTRODUCTION.format(noise=noise, threads=threads), *_machine(machines)]
    for name, (title, text) in topics.items():
        lines += ["", f"## {title}", "", text.strip()]
        if name not in measured:
            lines += ["", "Not measured yet."]
            continue
        entries = measured[name]["entries"]
        for picture in plots.draw(name, entries, root / "docs" / "images"):
            lines += ["", f"![{title}: cost and compile time](images/{picture.name})"]
        lines += ["", *table.as_markdown(entries)]
    lines += ["", *_losses({name: result["entries"] for name, result in measured.items()}, topics)]
    path = root / "docs" / "benchmarks.md"
    write_atomically(path, lambda part: part.write_text("\n".join(lines) + "\n"))
    return path


def _machine(machines: Sequence[Mapping[str, Any]]) -> list[str]:
    if not machines:
        return []
    load = [machine["load"] for machine in machines]
    one = machines[-1]
    packages = ", ".join(f"{name} {version}" for name, version in one["versions"].items())
    return [
        f"{one['processor']}, {one['cores']} cores, {one['system']}; load average at the start of "
        f"a topic, this program's own included: {min(load):g} to {max(load):g}. Python "
        f"{one['python']}; {packages}."
    ]


def _losses(entries: Mapping[str, Any], topics: Mapping[str, tuple[str, str]]) -> list[str]:
    """The targets that are missed, under what is known of the cause."""
    lines = ["## Targets missed, and why", ""]
    for topic, found in entries.items():
        causes: dict[str, list[table.Row]] = {}
        for row in table.missed(found):
            causes.setdefault(note(topic, row.case, row.peer), []).append(row)
        lines += [f"### {topics[topic][0]}", ""] if causes else []
        for text, rows in causes.items():
            lines += ["| work | beside | value | target |", "| --- | --- | --- | --- |"]
            lines += [
                f"| {row.case} | {row.peer} | {row.ratio or row.ours} | {row.target} |"
                for row in rows
            ]
            lines += ["", text, ""]
    return lines if len(lines) > 2 else [*lines, "None.", ""]


def note(topic: str, case: str, peer: str, file: Path = NOTES) -> str:
    """What `notes.toml` says: its first note that fits. A key that is absent fits all, a `case` or
    a `peer` all that contain it.
    """
    notes = tomllib.loads(file.read_text()).get("note", []) if file.exists() else []
    wanted = {"topic": topic, "case": case, "peer": peer}
    for entry in notes:
        if all(entry.get(key, "") in value for key, value in wanted.items()):
            return str(entry["text"]).strip()
    return "Not analysed."
