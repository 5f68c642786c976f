"""Calibration by simulation (Talts et al. 2018): among draws of the posterior the truth has any rank as probably.

Weights and directions are drawn from the prior, choices from them; then the chooser is fitted. What is ranked is the
log-odds between two alternatives of a new situation, since components have no identity.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

from plackett import ChoiceSets, Gibbs, PlackettLuceChooser
from plackett.data.observations import Observations, Situations
from plackett.directions import LearnedDirections
from plackett.directions.positions import directions_and_weights
from plackett.directions.prior import inverse_weights, n_owners, parts, size
from plackett.directions.settings import SHAPE
from plackett.directions.situation_task import make_situation_task
from plackett.features.choice_design import ChoiceDesign, EntryTable
from plackett.inference.driver import Source
from plackett.model.mixture import Entries, log_rates
from plackett.posterior.pool import Pool
from plackett.posterior.weights import WeightMembers
from plackett.responses import Outcomes, make_response

LABELS, T = ["a", "b", "c"], 15  # too few to hold some out
LEARNED = LearnedDirections(components=2, own_shape=0.5)
KEPT, BINS = 19, 5  # draws that the truth is ranked among, and bins of the ranks


def situations():
    """Situations, the last of which is not part of the fit."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"{x}_{a}": rng.integers(0, 4, T + 1) / 2 for a in LABELS for x in ("cost", "time")})
    frame["there_c"] = (np.arange(T + 1) % 3 > 0).astype(int)
    return ChoiceSets.from_wide(frame, alternatives=LABELS, attributes=["cost", "time"], available={"c": "there_c"})


def drawn_directions(rng, Z):
    """Log-rates (entries,) under a draw of the prior."""
    situations = Situations(Outcomes.choices([len(Z)]), np.zeros(len(Z), dtype=int), np.arange(len(Z)))
    seen = Observations.of_situations(situations, make_response("choice"), 1)
    task = make_situation_task([Z], seen, Source(np.random.SeedSequence(0)), False)
    prior, d = task.reader.prior(task, LEARNED, SHAPE), Z.shape[1]
    q = rng.normal(size=size(prior, d))
    _, _, t, log_s, log_sigma = parts(q, *prior.shape.shape, d, n_owners(prior))
    log_s *= prior.covariate_spread
    log_sigma[:] = prior.scale_centre + prior.scale_spread * log_sigma
    t[:] = inverse_weights(np.log(rng.gamma(prior.shape)), prior.shape)
    beta, log_weights, _ = directions_and_weights(q[None], prior, d)
    return log_rates(beta, log_weights, Z, np.zeros(len(Z), dtype=int))[0]


def rank(rng, features, inference, seed):
    """The rank of the true log-odds of the first two alternatives of the last situation among draws."""
    X = situations()
    table, old = EntryTable.of(X), EntryTable.of(X[:T])
    design = ChoiceDesign().fit(X[:T])
    if features is LEARNED:
        settings = {"features": LEARNED}
        log_rates = drawn_directions(rng, design.transform(table))
    else:
        settings = {"features": "exp", "shape": 0.5}
        model = PlackettLuceChooser(features="exp")
        model.design_, model.features_ = design, model._make_features().fit(design.columns(old))
        log_W = model._log_features(table)
        weights = rng.gamma(0.5, size=(1, 1, log_W.shape[1]))
        entries = Entries(log_W, np.zeros(len(log_W), dtype=int), np.arange(len(log_W)), table.start, logs=True)
        log_rates = WeightMembers(np.ones(1), weights).log_rates(entries)[0]
    arrived = log_rates + rng.gumbel(size=len(log_rates))
    y = [
        LABELS[table.alternative[s + np.argmax(arrived[s:e])]]
        for s, e in zip(old.start[:-1], old.start[1:], strict=True)
    ]
    model = PlackettLuceChooser(inference, random_state=seed, **settings).fit(X[:T], y)
    last = Pool.of(model.posterior_.members(every=True), model._rows(X[T])).log_rates[:, 0]
    draws = (last[:, 0] - last[:, 1])[:: max(1, len(last) // KEPT)][:KEPT]
    truth = log_rates[table.start[T]] - log_rates[table.start[T] + 1]
    return int((draws < truth).sum())


def ranks(n, features, inference):
    rng = np.random.default_rng(1)
    return np.array([rank(rng, features, inference, seed) for seed in range(n)])


def flat(found):
    """The p-value of uniform ranks 0 … KEPT."""
    return chisquare(np.bincount(found * BINS // (KEPT + 1), minlength=BINS)).pvalue


CASES = [
    pytest.param(LEARNED, Gibbs(draws=19 * 8, tune=100, chains=1), id="learned"),
    pytest.param("exp", Gibbs(draws=19 * 10, tune=100, chains=1), id="exp"),
]


@pytest.mark.brief(1)
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("features", "inference"), CASES)
def test_the_truth_has_any_rank(features, inference):
    found = ranks(60, features, inference)
    assert flat(found) > 1e-3
    assert 6 < found.mean() < 13


@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("features", "inference"), CASES)
def test_the_truth_has_any_rank_of_500(features, inference):
    assert flat(ranks(500, features, inference)) > 1e-3
