"""What a first minute meets: a light import, the demonstration, kernels that compile without a writable cache."""

import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numba
import pytest

WORD = "plackett: compiling the kernels; this happens once, later runs load them from the cache\n"
MODELS = {
    "none": "PlackettLuceClassifier(Gibbs(draws=30, tune=30, moves='none'), features='exp', random_state=0)",
    "exchange": "PlackettLuceClassifier(Gibbs(draws=30, tune=30), features='exp', random_state=0)",
    "learned": "PlackettLuceClassifier(Gibbs(draws=30, tune=30), random_state=0)",
    "mode": "PlackettLuceClassifier('em', random_state=0)",
    "logit": "SparseLogitClassifier(draws=30, tune=30, random_state=0)",
}


def python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )


def test_import_loads_no_plotting_arviz_or_compiler():
    code = "import sys, plackett; print([m for m in ('numba', 'arviz', 'matplotlib', 'typer') if m in sys.modules])"
    assert python(code).stdout.strip() == "[]"


@pytest.mark.long
def test_demonstration_shows_three_kinds_of_data_and_leaves_a_report(tmp_path):
    command = [sys.executable, "-m", "plackett.cli.demo"]
    out = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    for word in ("Classes", "proline", "Comparisons", "chatgpt-4o-latest", "Choices", "without flights", "log-loss"):
        assert word in out
    report = tmp_path / "plackett-demo.html"
    assert str(report) in out and "<h1>Wine" in report.read_text(encoding="utf-8")


@pytest.mark.long
def test_read_only_package_without_any_cache_folder(tmp_path):
    """No place for a cache: kernels still compile, and nothing but the word about compiling is said."""
    import shutil
    from pathlib import Path

    import plackett

    shutil.copytree(
        Path(plackett.__file__).parent,
        tmp_path / "site" / "plackett",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    code = (
        "import numba.core.caching as c\n"
        "c.CacheImpl._locator_classes = []\n"  # as where neither the package nor the home can be written
        "import plackett; from sklearn.datasets import load_iris\n"
        "clf = plackett.PlackettLuceClassifier('em', shape=1).fit(*load_iris(return_X_y=True))\n"
        "print(plackett.__file__, clf.weights_.sum())"
    )
    result = python(code, PYTHONPATH=str(tmp_path / "site"))
    assert str(tmp_path) in result.stdout
    assert result.stderr in ("", WORD)


def draws_in_order(order, cache, cores="all"):
    """Digests of the draws of each model, the kernels being compiled, or loaded, in the order of the models."""
    one = "import os; hasattr(os, 'sched_setaffinity') and os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
    code = (
        (one if cores == "one" else "") + "import hashlib, json, warnings; warnings.simplefilter('ignore')\n"
        "from plackett import *; from sklearn.datasets import load_iris\n"
        "found = {}\n"
        f"for name, model in {[(name, MODELS[name]) for name in order]}:\n"
        "    clf = eval(model).fit(*load_iris(return_X_y=True))\n"
        "    draws = getattr(clf.posterior_, 'coef' if hasattr(clf, 'coef_') else 'log_weights')\n"
        "    found[name] = hashlib.sha256(draws.tobytes()).hexdigest()\n"
        "print(json.dumps(found))"
    )
    return json.loads(python(code, NUMBA_CACHE_DIR=str(cache)).stdout)


@pytest.mark.long
def test_draws_do_not_depend_on_what_was_compiled_first(tmp_path):
    orders = [
        ["learned", "exchange", "none", "logit", "mode"],
        ["mode", "logit", "none", "learned", "exchange"],
        ["none", "exchange", "logit", "mode", "learned"],
    ]
    caches = [tmp_path / str(i) for i in range(len(orders))]
    with ThreadPoolExecutor(2) as pool:
        compiled = list(pool.map(draws_in_order, orders, caches))
        loaded = list(pool.map(draws_in_order, [order[::-1] for order in orders], caches, ["one", "all", "one"]))
    assert all(any(cache.rglob("*.nbc")) for cache in caches)
    for found in (*compiled, *loaded):
        assert found == compiled[0]


def test_the_word_about_compiling_is_said_only_when_compiling(tmp_path):
    """A call that only takes long says nothing; nor does a kernel that is loaded."""
    code = (
        "import numpy as np, time\n"
        "from plackett.compute import compiled\n"
        "compiled.PATIENCE = 0.0\n"
        "from plackett.inference.sweeps import log_gamma\n"
        "log_gamma(0.5); time.sleep(0.2)\n"
    )
    assert WORD in python(code, NUMBA_CACHE_DIR=str(tmp_path)).stderr
    assert python(code, NUMBA_CACHE_DIR=str(tmp_path)).stderr == ""


@pytest.mark.long
def test_a_cache_of_an_earlier_version_is_written_anew(tmp_path):
    """Its files may name types of modules that are gone."""
    code = "from plackett.directions.positions import unpack\nunpack.variants[0].make()\nprint(unpack.py_func.__name__)"
    python(code, NUMBA_CACHE_DIR=str(tmp_path))
    files = list(tmp_path.rglob("*.nbi"))
    for file in files:
        file.write_bytes(pickle.dumps(numba.__version__) + b"cplackett.gone\nEight\n.")
    assert files
    assert python(code, NUMBA_CACHE_DIR=str(tmp_path)).stdout == "unpack\n"
