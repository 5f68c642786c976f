"""Calibration of the ranker (Talts et al. 2018): true log-worths are like any draw of their posterior.

Weights and shape come from the prior, rankings from the race, both without the package. The place of the truth among
draws that are far apart in the chain must be uniform.
"""

import numpy as np
import pytest
from scipy import stats
from sklearn.preprocessing import FunctionTransformer

from plackett import Gibbs, PlackettLuceRanker, Rankings
from plackett.priors import LogUniform
from rankings import race

ITEMS, N_RANKINGS, KEPT, THIN = 4, 10, 20, 15
LOWER, UPPER = 0.5, 2.0
FORMS = {"unknown-order": ([2, 1], [1, 1, 1], [1, 2]), "error": (None, [1, 1], [1]), "race": (None,)}


def places_of_the_truth(ties, p, n_sets, seed):
    """(sets, quantities) Place of each true contrast of log-worths, and of ln a, among 20 draws."""
    rng = np.random.default_rng(seed)
    settings = Gibbs(draws=KEPT * THIN, tune=60, chains=1, shape_prior=LogUniform(LOWER, UPPER))
    features = "learned" if p == 0 else FunctionTransformer()
    m = PlackettLuceRanker(settings, ties=ties, features=features, random_state=0)
    found = []
    for s in range(n_sets):
        a = np.exp(rng.uniform(np.log(LOWER), np.log(UPPER)))
        weights = rng.gamma(a, size=(ITEMS, max(p, 1)))
        X = None if p == 0 else rng.uniform(0.1, 1.0, size=(N_RANKINGS, p))
        rates = np.broadcast_to(weights.sum(axis=1), (N_RANKINGS, ITEMS)) if X is None else X @ weights.T
        forms = FORMS[ties]
        buckets = [race(rng, rates[t], ties, forms[t % len(forms)]) for t in range(N_RANKINGS)]
        R = Rankings.from_orders([[set(b) for b in each] for each in buckets], unranked="last", items=range(ITEMS))
        posterior = m.set_params(random_state=s).fit(X, R).posterior_
        draws = posterior.log_weights[0, ::THIN].reshape(KEPT, -1)
        truth = np.log(weights).ravel()
        quantities = [(draws - draws[:, [0]])[:, 1:], np.log(posterior.shape[0, ::THIN, None])]
        wanted = [(truth - truth[0])[1:], [np.log(a)]]
        if ties == "race":
            quantities.append(posterior.log_mass[0, ::THIN, None])
            wanted.append([np.log(weights.sum())])
        found.append((np.hstack(quantities) < np.concatenate(wanted)).sum(axis=0))
    return np.array(found)


def check(places):
    """No quantity's places are unlike a uniform law: chi-square over seven bins, all quantities at once."""
    bins = np.array([np.bincount(column // 3, minlength=7) for column in places.T])
    want = len(places) * np.bincount(np.arange(KEPT + 1) // 3) / (KEPT + 1)
    p_values = stats.chi2.sf(((bins - want) ** 2 / want).sum(axis=1), 6)
    assert p_values.min() * len(p_values) > 1e-3, p_values


CASES = [("error", 0), ("unknown-order", 0), ("race", 0), ("unknown-order", 2)]


@pytest.mark.brief(2)
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("ties", "p"), CASES)
def test_log_worths_are_calibrated(ties, p):
    check(places_of_the_truth(ties, p, 60, seed=1))


@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("ties", "p"), CASES)
def test_log_worths_are_calibrated_over_500_sets(ties, p):
    check(places_of_the_truth(ties, p, 500, seed=2))
