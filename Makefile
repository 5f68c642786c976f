# Every target sets up .venv by itself from python3 and pip.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test test-slow test-elsewhere test-data browser lint format bench bench-prediction test-gpu bench-gpu docs clean

demo: $(READY)
	$(BIN)/python -m plackett.cli.demo

test: browser
	$(BIN)/python -m pytest -n 2

test-slow: $(READY)
	$(BIN)/python -m pytest -n 2 -m slow

test-elsewhere: $(READY)  # the numerical tests as another processor would run them; AS=nehalem for an older one
	$(BIN)/python tests/elsewhere.py $(if $(AS),--as $(AS)) -n 2

test-data: $(READY)  # of the sets that do not come with the package: make test-data PLACKETT_DATA=folder
	@test -d "$(PLACKETT_DATA)" || { echo "make test-data needs the folder that holds the data sets:" \
	  "make test-data PLACKETT_DATA=folder, got '$(PLACKETT_DATA)' instead." >&2; exit 1; }
	$(BIN)/python -m pytest -n 2 -m data

test-gpu: $(READY)  # on a machine with an NVIDIA GPU: pip install 'plackett[cuda]' brings CuPy for CUDA 12
	$(BIN)/python -m pytest -n 0 -m gpu tests/gpu

AS_ROOT = $(shell test "$$(id -u)" = 0 || echo sudo -n)

browser: $(READY)  # for the tests of the report; where it cannot be had, the test run says so at its end
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || { \
	  echo "installing Chromium for the tests of the report; log in .venv/browser.log"; \
	  { $(AS_ROOT) apt-get update; \
	    $(AS_ROOT) env DEBIAN_FRONTEND=noninteractive apt-get install --yes chromium chromium-driver; \
	  } >.venv/browser.log 2>&1 || true; }

lint: $(READY)
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python -m benchmarks

bench-gpu: $(READY)  # on a machine with an NVIDIA GPU
	$(BIN)/python -m benchmarks.gpu && $(BIN)/python -m benchmarks.gpu_fits && $(BIN)/python -m benchmarks.gpu_dask

docs: $(READY)  # pages in docs/_build/html; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

bench-prediction: $(READY)  # goes on where it was interrupted
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python -m benchmarks.prediction

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache docs/_build docs/api docs/auto_examples
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
