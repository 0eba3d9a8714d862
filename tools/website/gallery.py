"""A picture of each bundled scenario on the first page, its replay, and the lines that make it.

    python tools/website/gallery.py FOLDER            the replay of each, as FOLDER/NAME.html
    python tools/website/gallery.py FOLDER --pictures   and the pictures in docs/images/gallery/

The pictures are small and kept with the pages; the replays are large, and made for the site only.
"""

import argparse
import io
import re
import sys
from pathlib import Path

from mime.scenarios.bundled import bundled_scenarios
from mime.scenarios.scenario import Scenario, load_scenario

PICTURES = Path(__file__).parents[2] / "docs" / "images" / "gallery"
MARK = "<!-- gallery -->"
NOT_SHOWN = r"\[\[plots|\[\[figures_of_merit"
"""Parts of a scenario that say what to make of a run, and nothing of what is run."""


def gallery(replays: Path) -> str:
    """All scenarios, those with something to move first; links to the replays that are there."""
    cards = []
    for name, file in bundled_scenarios().items():
        text = Path(file).read_text(encoding="utf-8")
        cards.append((_rank(text), _card(name, text, (replays / f"{name}.html").exists())))
    shown = "\n".join(card for _, card in sorted(cards))
    return f'<div class="gallery" markdown>\n\n{shown}\n</div>\n'


def lines_that_make_it(text: str) -> str:
    """A scenario without its title, plots, figures and comments: what is simulated, and no more."""
    parts = re.split(r"^(?=\[)", text, flags=re.MULTILINE)
    parts = [re.sub(r"(?m)^(?:title|description) = .*\n", "", part) for part in parts]
    kept = "".join(part for part in parts if not re.match(NOT_SHOWN, part))
    lines = [
        re.sub(r"""^((?:[^"#]|"[^"]*")*?)\s+#.*$""", r"\1", line) for line in kept.splitlines()
    ]
    return re.sub(r"\n{2,}", "\n\n", "\n".join(x for x in lines if not x.startswith("#"))).strip()


def _card(name: str, text: str, replay: bool) -> str:
    title, about = (_value(key, text) for key in ("title", "description"))
    picture = f"![{title}](images/gallery/{name}.png)"
    watch = f" [Watch it](replays/{name}.html) or" if replay else ""
    return f"""<div markdown>

### {title}

{f"[{picture}](replays/{name}.html)" if replay else picture}

{about}{watch} `mime run {name}`

```toml
{lines_that_make_it(text)}
```

</div>
"""


def _value(key: str, text: str) -> str:
    found = re.search(rf'(?m)^{key} = "(.*)"$', text)
    return found[1] if found else ""


def _rank(text: str) -> int:
    """Mice, then arms, then what has one axis."""
    marks = ('type = "mouse"', "ToolPathNode", "RobotArmNode")
    return next((k for k, mark in enumerate(marks) if mark in text), len(marks))


def _write_picture(scenario: Scenario, run: object) -> None:
    from PIL import Image

    from mime.replay.still import still

    file = io.BytesIO()
    still(run).savefig(file, format="png", dpi=100)
    PICTURES.mkdir(parents=True, exist_ok=True)
    small = Image.open(file).convert("RGB").quantize(48, dither=Image.Dither.NONE)
    small.save(PICTURES / f"{scenario.name}.png", optimize=True)


def main() -> None:
    """Run all bundled scenarios for their replays, and for their pictures where asked."""
    from mime import enable_compilation_cache
    from mime.replay.show import replay_scenario

    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("--pictures", action="store_true")
    chosen = options.parse_args()
    enable_compilation_cache()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    for name, file in bundled_scenarios().items():
        scenario = load_scenario(file)
        run = scenario.run()
        replay_scenario(scenario, run).save(chosen.folder / f"{name}.html")
        if chosen.pictures:
            _write_picture(scenario, run)


if __name__ == "__main__":
    sys.exit(main())
