"""Rebuild the JavaScript of replay pages: `python tools/replay_bundle.py`, with Node.js and npm.

Takes three.js, uPlot and esbuild of the versions below from npm's registry into a folder that is
thrown away, and writes `src/mime/replay/page/replay.min.js` and `LICENCES.txt`. No lock file: it
would record where packages came from. `tests/replay` says when the sources have changed since.
"""

import hashlib
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

PAGE = Path(__file__).parents[1] / "src/mime/replay/page"
PACKAGES = {"three": "0.187.0", "uplot": "1.6.32"}
BUNDLER = {"esbuild": "0.28.2"}
SOURCES = ("codec.js", "motion.js", "plots.js", "replay.js", "shapes.js")


def digest() -> str:
    """What the bundle was made of: the sources and the versions of the packages."""
    content = json.dumps({**PACKAGES, **BUNDLER}).encode()
    for name in SOURCES:
        content += (PAGE / name).read_bytes()
    return hashlib.sha256(content).hexdigest()


def main() -> None:
    """Install, bundle, and write what the page needs."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = [f"{name}@{version}" for name, version in {**PACKAGES, **BUNDLER}.items()]
        quiet = ["--no-package-lock", "--no-save", "--no-audit", "--no-fund", "--silent"]
        subprocess.run(["npm", "install", *quiet, *wanted], cwd=folder, check=True)
        for name in SOURCES:
            shutil.copy(PAGE / name, folder)
        options = ["--bundle", "--minify", "--format=iife", "--target=es2022", "--charset=ascii"]
        bundler = Path(folder, "node_modules/.bin/esbuild")
        told = [str(bundler), "replay.js", *options, "--legal-comments=none", "--outfile=out.js"]
        subprocess.run(told, cwd=folder, check=True)
        script = Path(folder, "out.js").read_text()
        if "</script" in script.lower() or "<!--" in script:
            raise SystemExit("the bundle would end the page's script element")
        names = ", ".join(f"{name} {version}" for name, version in PACKAGES.items())
        banner = f"/* {names}; licences in LICENCES.txt. sources {digest()} */\n"
        PAGE.joinpath("replay.min.js").write_text(banner + script)
        modules = Path(folder, "node_modules")
        style = modules.joinpath("uplot/dist/uPlot.min.css").read_text()
        PAGE.joinpath("uplot.min.css").write_text(style)
        licences = [
            f"{name} {version}\n\n{(modules / name / 'LICENSE').read_text().strip()}\n"
            for name, version in PACKAGES.items()
        ]
        PAGE.joinpath("LICENCES.txt").write_text(("\n" + 72 * "-" + "\n\n").join(licences))
    print(f"{PAGE / 'replay.min.js'}: {len(banner + script) / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
