# Everything sets itself up: a fresh clone needs Python 3.11 to 3.13 and make, nothing else.
PYTHON ?= python3
BIN := .venv/bin
BENCH := .venv-bench/bin

# Compiled programs are kept here between runs; `make clean` removes them.
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.cache/jax
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS ?= 0.1
export JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES ?= -1
export JAX_PLATFORMS ?= cpu

# Modules that are compiled once are kept: the workers, and the programs that tests start, share them.
export PYTHONDONTWRITEBYTECODE =

.NOTPARALLEL:  # one installation at a time in one folder; the tests use all cores by themselves

.PHONY: help setup browser demo test test-quick fuzz soak lint bench bench-quick docs picture contest verify clean
.DEFAULT_GOAL := demo

# Modules are compiled when they are first imported: most of the 15,000 in here never are.
INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
		{ echo "MIME needs Python 3.11 to 3.13; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python $(INSTALL) --upgrade pip  # Python's own may be years old, and takes twice as long
	@touch $@

.venv/.runtime: pyproject.toml constraints.txt | .venv/.made
	$(BIN)/python $(INSTALL) -e .
	@touch $@

# One installation holds all of it: to resolve and build the runtime first would cost a minute more.
.venv/.tests: pyproject.toml constraints.txt | .venv/.made
	$(BIN)/python $(INSTALL) -e '.[test]'
	@touch .venv/.runtime $@

.venv/.docs: pyproject.toml constraints.txt | .venv/.made
	$(BIN)/python $(INSTALL) -e '.[docs,test]'
	@touch .venv/.runtime .venv/.tests $@

# Other simulators and the builders of the site, which `make test` does not ask: half a gigabyte.
.venv/.soak: pyproject.toml constraints.txt | .venv/.made
	$(BIN)/python $(INSTALL) -e '.[soak]'
	@touch .venv/.runtime .venv/.tests .venv/.docs $@

help:  ## these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

setup: .venv/.tests browser  ## the environment with all that the tests need

browser:  ## Debian's Chromium for the tests of pages, where it may be installed and is not
	@if [ -z "$$CHROME" ] && ! { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null || true; \
		else echo "no browser: the tests of pages are skipped (install chromium, or set CHROME to one)"; fi; \
	fi

demo: .venv/.runtime  ## run the main job; writes pages, pictures and results to demo_output/
	$(BIN)/mime demo --out demo_output

picture: demo  ## the README's picture, from the demo, and those of the site's gallery
	cp demo_output/overview.png docs/images/demo_overview.png
	$(BIN)/python tools/website/gallery.py build/replays --pictures

lint: .venv/.tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: lint browser  ## lint, format, types, all tests, the longest of them at a stated small size
	$(BIN)/python -m pytest -n 2 --dist worksteal -q

test-quick: .venv/.tests browser  ## an answer in about two minutes: all tests but the slow ones
	$(BIN)/python -m pytest -n 2 --dist worksteal -q -m "not slow"

fuzz: .venv/.tests  ## the generators of bad inputs in full: 10,000 of each, 1,000 of xacro (MIME_FUZZ=1000 make fuzz)
	MIME_FUZZ=$${MIME_FUZZ:-10000} $(BIN)/python -m pytest -n 2 --dist worksteal -q tests/fuzz tests/running/test_calls.py

soak: .venv/.soak browser  ## all tests at full size: every robot, case and seed; some 45 minutes on two quiet cores
	MIME_SOAK=1 $(BIN)/python -m pytest -q tests/soak
	MIME_SOAK=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q --ignore=tests/soak

verify: .venv/.tests  ## the verification benchmarks; writes docs/validation/benchmark_reports/
	$(BIN)/mime verify --out docs/validation/benchmark_reports

.venv-bench/.peers: pyproject.toml constraints.txt benchmarks/install.py
	$(PYTHON) -m venv .venv-bench
	$(BENCH)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	$(BENCH)/python benchmarks/install.py
	@touch $@

bench: .venv-bench/.peers  ## MIME beside its peers; writes benchmarks/results/ and docs/benchmarks.md
	$(BENCH)/python benchmarks/run.py

bench-quick: .venv-bench/.peers  ## a part, compared with the recorded ratios; fails if one is worse
	$(BENCH)/python benchmarks/run.py --quick

# Runs every bundled scenario, so only when the code has changed since.
build/replays/.made: .venv/.tests $(shell find src/mime -name '*.py' -o -name '*.toml' -o -name '*.urdf' -o -name '*.js')
	$(BIN)/python tools/website/gallery.py build/replays
	@touch $@

docs: .venv/.docs build/replays/.made  ## the documentation as a site, in site/
	$(BIN)/python tools/guide_pages.py
	$(BIN)/python tools/website

contest: .venv/.runtime  ## 100 mice in 100 mazes; writes docs/mouse_contest.md
	$(BIN)/python benchmarks/mouse_contest.py

clean:
	rm -rf .venv .venv-bench .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis demo_output build dist site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
