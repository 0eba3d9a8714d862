"""`python tools/website`: the site in site/. `make docs` does that."""

import argparse
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))


def main() -> int:
    """Write the sources, build them, look at the result; 1 when something is wrong with it."""
    from website.build import BUILDERS, BuildError, build
    from website.check import problems

    options = argparse.ArgumentParser(description="the site, in site/")
    options.add_argument("--builder", choices=BUILDERS, default=BUILDERS[0])
    try:
        built = build(ROOT / "build" / "site", options.parse_args().builder)
    except BuildError as error:
        print(error)
        return 1
    shutil.rmtree(ROOT / "site", ignore_errors=True)
    site = built.rename(ROOT / "site")
    found = problems(site)
    print("\n".join(found) or f"the site: {site / 'index.html'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
