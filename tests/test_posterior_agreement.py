"""moves="exchange" against independent samplers of the same posterior, and simulation-based calibration."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from benchmarks.data import load
from conftest import class_rows
from nuts import nuts_choice_weights, nuts_log_weights, worst_difference
from plackett import ChoiceSets, Gibbs, PlackettLuceChooser, PlackettLuceClassifier
from plackett.features import ExpFeatures
from plackett.inference.base import Problem
from plackett.inference.chains import WeightChain, begin
from plackett.inference.gibbs import exchange_sampler
from plackett.inference.store import empty
from plackett.inference.sweeps import Target
from plackett.model.mixture import normalised
from plackett.priors import Gamma, LogUniform, tabulate
from plackett.simulate import choices, prior_weights, race

slow = pytest.mark.slow


@pytest.mark.long
@pytest.mark.parametrize(
    ("data", "shape"),
    [("iris", 1.0), *[pytest.param(d, a, marks=slow) for d in ("wine", "heart") for a in (1.0, 0.3)],
     pytest.param("iris", 0.3, marks=slow)],
)  # fmt: skip
def test_means_agree_with_nuts(quiet, data, shape):
    X, y = load(data)
    classes, codes = np.unique(y, return_inverse=True)
    nuts = nuts_log_weights(ExpFeatures().fit_transform(X), codes, len(classes), shape)
    fit = PlackettLuceClassifier(Gibbs(draws=3000, moves="exchange"), shape=shape, random_state=0, features="exp").fit(
        X, y
    )
    draws = fit.posterior_.log_weights
    assert worst_difference(draws, nuts) < 4
    assert worst_difference(np.exp(draws), np.exp(nuts)) < 4


@pytest.mark.long
def test_weights_of_choices_agree_with_nuts(quiet):
    """Fixed features and a shape that is given; one alternative is not always there."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"{x}_{a}": rng.integers(1, 5, 60) / 1.0 for a in "abc" for x in ("cost", "time")})
    frame = frame.assign(there_a=1, there_b=1, there_c=1 * (rng.random(60) < 0.7))
    X = ChoiceSets.from_wide(frame, alternatives=list("abc"), attributes=["cost", "time"], available="there")
    y = choices(X, -0.5 * X.values[:, 0] - 1.0 * X.values[:, 1], rng=1)
    model = PlackettLuceChooser(Gibbs(draws=4000, tune=500), shape=0.7, features="exp", random_state=0).fit(X, y)
    entries = model._rows(X)
    log_W = entries.Z[entries.row]
    W = np.exp(log_W - np.repeat(np.maximum.reduceat(log_W.max(axis=1), X.start[:-1]), np.diff(X.start))[:, None])
    chosen = np.flatnonzero(X.alternatives[X.alternative] == np.repeat(y, np.diff(X.start)))
    nuts = nuts_choice_weights(W, X.start, chosen, 0.7)
    ours = model.posterior_.of_weights.log_weights[:, :, 0]
    assert worst_difference(np.maximum(ours, -30), np.maximum(nuts, -30)) < 4
    assert worst_difference(np.exp(ours), np.exp(nuts)) < 4


@pytest.mark.parametrize(("data", "plain"), [("lenses", 10_000), pytest.param("iris", 150_000, marks=slow)])
def test_means_agree_with_the_plain_sampler_when_a_is_learned(quiet, data, plain):
    X, y = load(data)
    found = []
    for moves, draws in (("exchange", 4000), ("none", plain)):
        sampler = Gibbs(draws=draws, tune=2000, moves=moves, shape_prior=LogUniform(0.01, 3.0))
        posterior = PlackettLuceClassifier(sampler, random_state=1, features="exp").fit(X, y).posterior_
        found.append((np.log(posterior.shape), np.exp(posterior.log_weights), np.maximum(posterior.log_weights, -30)))
    for ours, theirs in zip(*found, strict=True):
        assert worst_difference(ours, theirs) < 4


DRAWS, APART, TUNE = 31, 12, 150
PRIOR = LogUniform(0.1, 3.0)


def ranks(n_sets, K, prior, seed):
    """Ranks of the truth among nearly independent draws: ln a, two ln λ̄ and a predictive probability."""
    rng = np.random.default_rng(seed)
    target = Target(1.0, True, *tabulate(prior))
    out = np.empty((n_sets, 4), dtype=int)
    for s in range(n_sets):
        maker = ExpFeatures()
        W = maker.fit_transform(rng.normal(size=(13, 1)))
        W, new = W[:12], W[12]
        a = float(np.exp(rng.uniform(np.log(PRIOR.lower), np.log(PRIOR.upper))))
        theta = normalised(prior_weights(K, W.shape[1], a, rng=rng))
        codes = race(W, theta, rng=rng).winner
        rows = class_rows("numba", W, codes, K)
        problem = Problem(rows, 1.0, np.random.SeedSequence([seed, s]), mirrors=maker.mirrors_)
        sampler = exchange_sampler(problem, target, 5.0, None)
        own = np.random.default_rng(problem.seed)
        chain = WeightChain(begin(problem, None, PRIOR.lower, PRIOR.upper, own), own)
        half = TUNE // 2
        tuned = empty({"log_weights": theta.shape, "shape": (), "value": ()}, 1, TUNE)
        sampler.advance(chain, True, **{name: array[0, :half] for name, array in tuned.items()})
        sampler.adapt([chain], {name: array[:, :half:4] for name, array in tuned.items()}, 0.5)
        sampler.advance(chain, True, **{name: array[0, half:] for name, array in tuned.items()})
        sampler.adapt([chain], {name: array[:, ::4] for name, array in tuned.items()}, 1.0)
        draws, shapes = np.empty((DRAWS * APART, *theta.shape)), np.empty(DRAWS * APART)
        sampler.advance(chain, False, draws, shapes, np.empty(DRAWS * APART))
        draws, shapes = draws[APART - 1 :: APART], shapes[APART - 1 :: APART]
        out[s] = [(x < x0).sum() for x, x0 in zip(summaries(draws, shapes, new), summaries(theta, a, new), strict=True)]
    return out


def summaries(theta, a, w):
    scores = np.exp(theta) @ w
    return np.log(a), theta[..., 0, 0], theta[..., -1, -1], scores[..., 0] / scores.sum(axis=-1)


def least_tail(counts):
    """How far the ECDF of ranks leaves the diagonal: the smallest two-sided binomial tail over its points.

    `counts` holds how often each rank 0 … DRAWS came, in its last axis.
    """
    n, below = counts.sum(axis=-1)[..., None], counts.cumsum(axis=-1)[..., :-1]
    part = np.arange(1, DRAWS + 1) / (DRAWS + 1)
    return 2 * np.minimum(binom.cdf(below, n, part), binom.sf(below - 1, n, part)).min(axis=-1)


def p_values(found, simulated=2000):
    """Chance that uniform ranks leave the ECDF band which those of a quantity touch (Säilynoja et al. 2022)."""
    n = len(found)
    uniform = np.random.default_rng(0).multinomial(n, np.full(DRAWS + 1, 1 / (DRAWS + 1)), size=simulated)
    null = least_tail(uniform)
    seen = [least_tail(np.bincount(column, minlength=DRAWS + 1)) for column in found.T]
    return np.array([(1 + (null <= tail).sum()) / (1 + simulated) for tail in seen])


@pytest.mark.parametrize(
    ("n_sets", "K"), [(60, 2), (60, 3), pytest.param(500, 2, marks=slow), pytest.param(500, 3, marks=slow)]
)
def test_ranks_of_the_truth_are_uniform(n_sets, K):
    """Within simultaneous ECDF bands of 99.9 %."""
    assert p_values(ranks(n_sets, K, PRIOR, seed=K)).min() > 1e-3


@pytest.mark.long
def test_calibration_notices_a_wrong_prior():
    assert p_values(ranks(60, 2, Gamma(20.0, 10.0, 0.1, 3.0), seed=2))[0] < 1e-3
