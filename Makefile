# One command for each thing. Each target sets up what it needs.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup try test e2e check bench soak fix clean
.venv/.ready: pyproject.toml
	@echo "Setting up .venv with what lorehooks and its tests need; once, a minute or two"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

setup: .venv/.ready

try: setup       ## the main job on a scratch home: memories in, blocks out, replayed
	$(BIN)/python -m lorehooks.installers.tour

test: setup      ## all tests that need only PyPI
	$(BIN)/pytest -m 'not e2e'

e2e: setup       ## real agent programs, pinned, from their registries
	$(BIN)/pytest -m 'e2e and not soak' tests/e2e

check: setup     ## style, types, import arrows, spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=.typing $(BIN)/lint-imports
	$(BIN)/codespell

bench: setup     ## latency and recall quality; writes docs/benchmarks.md
	$(BIN)/python tests/bench/bench.py

soak: setup      ## long runs; writes docs/soak.md
	$(BIN)/pytest -m soak tests/e2e
	$(BIN)/python tests/bench/soak.py

fix: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv .e2e build dist *.egg-info
