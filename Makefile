# Every target sets up .venv by itself from python3 and pip.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test test-slow lint format bench bench-prediction fresh clean

demo: $(READY)
	$(BIN)/python -m plackett.demo

test: $(READY)
	$(BIN)/python -m pytest -n 2

test-slow: $(READY)
	$(BIN)/python -m pytest -n 2 -m slow

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python -m benchmarks

bench-prediction: $(READY)  # goes on where it was interrupted
	$(BIN)/python -m benchmarks.prediction

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

fresh:  # forget compiled kernels
	find src -name '*.nb[ic]' -delete

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
