"""What a first minute meets: a light import, the demonstration, kernels that compile without a writable cache."""

import os
import subprocess
import sys

import pytest

slow = pytest.mark.slow
MODELS = {
    "none": "PlackettLuceClassifier(Gibbs(draws=30, tune=30, moves='none'), features='exp', random_state=0)",
    "exchange": "PlackettLuceClassifier(Gibbs(draws=30, tune=30), features='exp', random_state=0)",
    "learned": "PlackettLuceClassifier(Gibbs(draws=30, tune=30), random_state=0)",
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


def test_demonstration_prints_its_tables():
    out = subprocess.run([sys.executable, "-m", "plackett.demo"], capture_output=True, text=True, check=True).stdout
    for word in ("em", "variational", "gibbs", "log-loss", "Most relevant covariates", "petal"):
        assert word in out


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
    assert result.stderr in (
        "",
        "plackett: compiling the kernels; this happens once, later runs load them from the cache\n",
    )


@pytest.mark.parametrize("model", ["none", *[pytest.param(name, marks=slow) for name in list(MODELS)[1:]]])
def test_draws_are_the_same_just_compiled_and_from_the_cache(tmp_path, model):
    code = (
        "import hashlib, warnings; warnings.simplefilter('ignore')\n"
        "from plackett import *; from sklearn.datasets import load_iris\n"
        f"clf = {MODELS[model]}.fit(*load_iris(return_X_y=True))\n"
        "draws = getattr(clf.posterior_, 'coef' if hasattr(clf, 'coef_') else 'log_weights')\n"
        "print(hashlib.sha256(draws.tobytes()).hexdigest())"
    )
    compiled, cached = (python(code, NUMBA_CACHE_DIR=str(tmp_path)).stdout for _ in range(2))
    assert any(tmp_path.rglob("*.nbc"))
    assert compiled == cached
