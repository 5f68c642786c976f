"""Compile the kernels before the tests, so that the processes that run them hold no memory of the compiler.

Kernels with a declared signature are compiled side by side in two processes. The others are compiled by what calls
them: fits of every kind of model and passes of every response, all small, in processes that then end.

Run as a script: python tests/warm.py
"""

import multiprocessing
import pkgutil
import sys
import warnings
from importlib import import_module

import numpy as np
from scipy import sparse
from sklearn.preprocessing import FunctionTransformer

import geweke  # noqa: F401  its kernels are declared as those of the package are
import plackett
from model_kinds import FEW, KINDS, SHORT, chooser, classifier
from plackett import Gibbs, PlackettLuceClassifier, SparseLogitClassifier
from plackett.compute.compiled import APART
from plackett.compute.pieces import cores
from plackett.compute.side_by_side import make_all
from plackett.features import ExpFeatures
from test_situations import OWN, RESPONSES, SHARED, prepared

PLAIN = Gibbs(draws=4, tune=4, chains=2, moves="none")


def held_logit():
    """The sampler of Holmes & Held."""
    rng = np.random.default_rng(0)
    model = SparseLogitClassifier(draws=4, tune=4, chains=2, sampler="holmes-held", random_state=0)
    return model.fit(rng.normal(size=(40, 2)), np.arange(40) % 3)


def sparse_features(inference, dtype):
    """Features that are stored sparse."""
    X = sparse.random_array((42, 30), density=0.3, rng=np.random.default_rng(0), format="csr", dtype=dtype)
    X = sparse.csr_array(sparse.hstack([X, np.ones((42, 1), dtype)]))
    model = PlackettLuceClassifier(inference, features=FunctionTransformer(), shape=1.0, random_state=0)
    return model.fit(X, np.arange(42) % 3).predict_proba(X)


def passes(response, kind):
    """Passes over situations, and the gradient."""
    rows, weights = prepared(response, kind=kind)
    rows.expect(weights)
    rows.sample(weights, 1)
    rows.values(weights)
    rows.gradient(np.zeros((2, rows.features.shape[1])), np.zeros((rows.n_groups, 2)))


CALLS = {
    "logit of Holmes & Held": held_logit,
    **{f"passes, {name}, {kind}": lambda of=(name, kind): passes(*of) for name in RESPONSES for kind in (SHARED, OWN)},
    **{
        f"sparse features, {inference}, {dtype}": lambda of=(inference, dtype): sparse_features(*of)
        for dtype in ("float64", "float32")
        for inference in ("em", PLAIN)
    },
    "features in floats": lambda: classifier(inference="em", features=ExpFeatures(dtype="float32"), shape=0.5),
    "choices with shared weights": lambda: chooser(inference=SHORT, features=FEW),
    "plain sampler": lambda: classifier(inference=PLAIN, features="exp", shape=0.5),
    "plain sampler, shape": lambda: classifier(inference=PLAIN, features="exp"),
    "shape": lambda: classifier(inference=SHORT, features="exp"),
    **KINDS,
}


def call(name):
    """Make one call, whatever it warns of; that it fails is said, and shown by the tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            CALLS[name]()
        except Exception as error:
            print(f"{name}: {error!r}", file=sys.stderr)


if __name__ == "__main__":
    for module in pkgutil.walk_packages(plackett.__path__, "plackett."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    make_all(list(APART.values()))
    with multiprocessing.get_context("fork").Pool(min(cores(), 2)) as pool:
        for _ in pool.imap_unordered(call, CALLS, chunksize=1):
            pass
