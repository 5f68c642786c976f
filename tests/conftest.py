import os
import warnings

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before SciPy: without it scikit-learn skips a check

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

from plackett.features import ExpFeatures


@pytest.fixture(scope="session")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="session")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture
def quiet():
    """For fits that are short on purpose: the advice about mixing is tested elsewhere."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(R-hat|effective sample size|draws a chain).*")
        yield


def small_problem(n=40, d=3, n_classes=3, seed=0):
    """Features, codes and weights of a small random problem."""
    rng = np.random.default_rng(seed)
    W = ExpFeatures().fit_transform(rng.normal(size=(n, d)))
    codes = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)])
    return W, codes, np.log(rng.gamma(0.5, size=(n_classes, W.shape[1])))
