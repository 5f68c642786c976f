# Every target sets up .venv by itself from python3 and pip.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
USABLE := .venv/.usable

.PHONY: demo test test-all test-slow test-elsewhere test-data test-base test-lowest dist test-dist browser lint format \
  bench bench-prediction test-gpu bench-gpu docs clean

demo: $(USABLE)  # classes, comparisons and choices of real data, and a report in plackett-demo.html
	$(BIN)/python -m plackett.cli.demo

test: browser
	$(BIN)/python tests/warm.py
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-all: test  # and what takes longer
	$(BIN)/python -m pytest -n 2 --dist loadfile -m 'long and not slow and not data and not gpu'

test-slow: $(READY)  # statistical checks of many minutes, for releases
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow

test-elsewhere: $(READY)  # the numerical tests as another processor would run them; PROCESSOR=nehalem for an older one
	$(BIN)/python tests/elsewhere.py $(if $(PROCESSOR),--as $(PROCESSOR)) -n 2 --dist loadfile

test-data: $(READY)  # of the sets that do not come with the package: make test-data PLACKETT_DATA=folder
	@test -d "$(PLACKETT_DATA)" || { echo "make test-data needs the folder that holds the data sets:" \
	  "make test-data PLACKETT_DATA=folder, got '$(PLACKETT_DATA)' instead." >&2; exit 1; }
	$(BIN)/python -m pytest -n 2 --dist loadfile -m data

test-base:  # with the base dependencies alone: everything works, or says what to install
	$(PYTHON) -m venv --clear .venv-base
	.venv-base/bin/python -m pip install --quiet --editable .
	.venv-base/bin/python tests/base_only.py

LOWEST = tests/test_sklearn.py tests/test_em.py tests/test_chooser.py tests/test_ranker.py tests/test_modelfile.py \
  tests/test_arviz.py tests/test_plots.py tests/test_report.py tests/test_table.py tests/test_cli.py \
  tests/test_private_names.py tests/test_dask_keeper.py tests/test_dask_partitions.py

# Old releases warn of what newer ones of their own dependencies will drop.
OLD = -W ignore::DeprecationWarning -W ignore::FutureWarning

test-lowest:  # with the lowest versions that pyproject.toml allows
	$(PYTHON) -m venv --clear .venv-lowest
	$(PYTHON) tests/lowest.py >.venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pip install --quiet --editable '.[all,dask]' polars pytest pytest-xdist \
	  --constraint .venv-lowest/lowest.txt
	NUMBA_CACHE_DIR="$(CURDIR)/.venv-lowest/kernels" .venv-lowest/bin/python -m pytest -n 2 --dist loadfile -p no:cacheprovider $(OLD) $(LOWEST)

dist: $(READY)  # sdist and wheel in dist, with their metadata checked
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

test-dist: dist  # in empty environments of the lowest and the newest Python on PATH, or of PYTHONS="python3.11 python3.13"
	$(BIN)/python tests/distributions.py dist $(PYTHONS)

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
	$(BIN)/python -m benchmarks gpu gpu_fits gpu_dask

docs: $(READY)  # pages in docs/_build/html; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

bench-prediction: $(READY)  # goes on where it was interrupted
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python -m benchmarks.prediction

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@ $(USABLE)

$(USABLE): pyproject.toml  # what users need, without the tools of developers, which $(READY) adds
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[plots]'
	touch $@

clean:
	rm -rf .venv .venv-base .venv-lowest dist plackett-demo.html .pytest_cache .mypy_cache .ruff_cache docs/_build docs/api docs/auto_examples
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
