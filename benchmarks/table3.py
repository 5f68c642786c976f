"""Table 3 of the paper, measured: time of 10,000 iterations, smallest ESS, and time for one effective draw."""

import time
import warnings
from functools import partial

import numpy as np

from benchmarks.data import sets
from benchmarks.nuts_logit import nuts_logit
from plackett import Gibbs, PlackettLuceClassifier, SparseLogitClassifier
from plackett.model.measures import plain_ess

BURN_IN, KEPT = 5000, 5000
SMALLEST = {"BURN_IN": 20, "KEPT": 20, "sets": partial(sets, ("lenses",))}
TARGET = 60.0  # seconds, holmes-held on German
METHODS = (
    ("holmes-held, none", lambda X, y, size: sparse_logit(X, y, size, "holmes-held", "none")),
    ("holmes-held, all", lambda X, y, size: sparse_logit(X, y, size, "holmes-held", "all")),
    ("polya-gamma, none", lambda X, y, size: sparse_logit(X, y, size, "polya-gamma", "none")),
    ("polya-gamma, all", lambda X, y, size: sparse_logit(X, y, size, "polya-gamma", "all")),
    ("logit by NUTS", lambda X, y, size: nuts(X, y, size)),
    ("PL-Gibbs, none", lambda X, y, size: plackett_luce(X, y, size, "none")),
    ("PL-Gibbs, exchange", lambda X, y, size: plackett_luce(X, y, size, "exchange")),
)


def sparse_logit(X, y, size, sampler, moves):
    """Coefficients of the covariates, (draw, quantity)."""
    tune, draws = size
    clf = SparseLogitClassifier(sampler, tune=tune, draws=draws, chains=1, moves=moves, random_state=0)
    return clf.fit(X, y).posterior_.coef[0, :, :-1].reshape(draws, -1)


def nuts(X, y, size):
    tune, draws = size
    classes, codes = np.unique(y, return_inverse=True)
    beta, _ = nuts_logit((X - X.mean(axis=0)) / X.std(axis=0), codes, len(classes), tune=tune, draws=draws, chains=1)
    return beta[0, :, :, 1:].reshape(draws, -1)


def plackett_luce(X, y, size, moves):
    """ln of the normalised weights, (draw, quantity)."""
    tune, draws = size
    clf = PlackettLuceClassifier(Gibbs(tune=tune, draws=draws, chains=1, moves=moves), random_state=0, features="exp")
    return clf.fit(X, y).posterior_.log_weights[0].reshape(draws, -1)


def measure(method, X, y):
    """Seconds and smallest ESS, the kernels being compiled; None if this version has no such moves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            method(X, y, (20, 20))
        except ValueError as error:
            if "moves" not in str(error):
                raise
            return None
        started = time.perf_counter()
        draws = method(X, y, (BURN_IN, KEPT))
        seconds = time.perf_counter() - started
    return seconds, float(plain_ess(draws.T[:, None]).min())


def main():
    print(
        f"\nTable 3: one chain of {BURN_IN} + {KEPT} iterations. Seconds of the whole fit; smallest ESS of the kept "
        "draws over the coefficients,\nor ln weights, by the initial monotone sequence (below about 50 it is itself a "
        "guess); and how many times\nfaster for one effective draw than the slowest of the set."
    )
    print(f"  {'Dataset':8} {'Method':20} {'Time':>7} {'ESS':>6} {'Time/ESS':>9} {'Relat. speed':>13}")
    german = None
    for name, X, y in sets():
        found = [(label, measure(method, X, y)) for label, method in METHODS]
        slowest = max(seconds / ess for seconds, ess in (result for _, result in found if result))
        for row, (label, result) in enumerate(found):
            start = f"  {name if row == 0 else '':8} {label:20}"
            if result is None:
                print(f"{start} left out: this version of Gibbs has no such moves")
                continue
            seconds, ess = result
            print(f"{start} {seconds:7.2f} {ess:6.0f} {seconds / ess:9.4f} {slowest * ess / seconds:13.0f}", flush=True)
        if name == "german":
            german = found[0][1][0]
    if german is not None:
        print(f"  10,000 iterations of holmes-held on German: {german:.1f} s (target < {TARGET:.0f} s)")
