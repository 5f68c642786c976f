"""Laws of the variational scheme (section 3.4)."""

import numpy as np
import pytest
from scipy.special import gammaln, psi
from scipy.stats import gamma as gamma_distribution

from conftest import class_rows, small_problem
from plackett import PlackettLuceClassifier, Variational
from plackett.inference.variational import best_shape
from plackett.model.weights import Gam
from plackett.priors import Gamma, LogUniform


@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("shape", [5.0, 1.0, 0.1, 1e-3, "learn"])
def test_bound_never_falls(wine, shape, accelerate):
    trace = (
        PlackettLuceClassifier(Variational(accelerate=accelerate), shape=shape, random_state=0, features="exp")
        .fit(*wine)
        .trace_
    )
    assert len(trace) > 3 and np.diff(trace).min() > -1e-9


def independent_bound(W, codes, A, B, a, b):
    """⟨ln p(Y,C,Z,λ)⟩ + entropy of q, term by term, with q(C) and q(Z) of (18) written out row by row."""
    mean_log, mean = psi(A) - np.log(B), A / B
    bound = 0.0
    for w, k in zip(W, codes, strict=True):
        with np.errstate(divide="ignore"):
            score = np.where(w > 0, np.log(w) + mean_log[k], -np.inf)
        rho = np.exp(score - score.max())
        rho /= rho.sum()
        used = rho > 0
        rate = (w * mean).sum()
        z = 1 / rate
        # ln p(Y, C, Z | λ) of (6), for this row, and the entropies of q(C) and q(Z) = Exp(rate)
        bound += (rho[used] * score[used]).sum() - z * rate
        bound += -(rho[used] * np.log(rho[used])).sum() + (1 - np.log(rate))
    prior = a * np.log(b) - gammaln(a) + (a - 1) * mean_log - b * mean
    entropy = A - np.log(B) + gammaln(A) + (1 - A) * psi(A)
    return bound + (prior + entropy).sum()


@pytest.mark.parametrize("shape", [2.0, 0.3, "learn"])
def test_bound_equals_an_independent_evaluation(iris, shape):
    X, y = iris
    clf = PlackettLuceClassifier("variational", shape=shape, rate=2.0, random_state=0, features="exp").fit(X, y)
    q = clf.posterior_
    bound = independent_bound(clf.features_.transform(X), y, q.shape, q.rate, clf.shape_, 2.0)
    if shape == "learn":
        bound += float(LogUniform().log_density(np.array(clf.shape_)))
    assert clf.trace_[-1] == pytest.approx(bound, abs=1e-8)


def test_bound_is_below_the_evidence():
    """Importance sampling of ln p(Y) from the prior: the bound is below it, and not far."""
    W, codes, _ = small_problem(12, 1, 2, seed=3)
    rng = np.random.default_rng(0)
    weights = rng.gamma(1.0, size=(200_000, 2, 3))
    scores = np.einsum("ij,skj->sik", W, weights)
    p = scores[:, np.arange(12), codes] / scores.sum(axis=2)
    evidence = np.log(np.mean(np.prod(p, axis=1)))
    from sklearn.preprocessing import FunctionTransformer

    clf = PlackettLuceClassifier("variational", shape=1.0, features=FunctionTransformer(), random_state=0).fit(W, codes)
    assert evidence - 5 < clf.trace_[-1] < evidence


def test_fixed_point_satisfies_19(iris):
    X, y = iris
    clf = PlackettLuceClassifier(Variational(tol=1e-10), shape=0.5, random_state=0, features="exp").fit(X, y)
    q = clf.posterior_
    rows = class_rows("numpy", clf.features_.transform(X), y, 3)
    stats = rows.expect(Gam(q.shape, q.rate).weights())
    np.testing.assert_allclose(q.shape, 0.5 + stats.wins, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(q.rate, 1 + stats.exposure, rtol=1e-5)
    assert (q.shape / q.rate).sum() == pytest.approx(27 * 0.5, rel=1e-6)  # ⟨Λ⟩ = Kpa/b


def test_divergence_by_monte_carlo():
    A, B = np.array([[0.3, 2.0]]), np.array([[1.5, 4.0]])
    draws = np.random.default_rng(0).gamma(A, 1 / B, size=(400_000, 1, 2))
    q = gamma_distribution.logpdf(draws, A, scale=1 / B)
    ratio = (q - gamma_distribution.logpdf(draws, 0.7, scale=1 / 2.0)).sum(axis=(1, 2))
    assert abs(Gam(A, B).divergence(Gam(0.7, 2.0)) - ratio.mean()) < 5 * ratio.std() / np.sqrt(len(ratio))


def test_rescaling_raises_the_bound_to_its_best():
    rng = np.random.default_rng(0)
    A, B = rng.gamma(1, size=(2, 3)) + 0.1, rng.gamma(1, size=(2, 3)) + 0.1
    prior = Gam(0.4, 3.0)
    scaled = Gam(A, B).rescaled(prior)
    for factor in (0.9, 1.1):
        assert scaled.divergence(prior) < Gam(A, scaled.rate * factor).divergence(prior)


@pytest.mark.parametrize("prior", [LogUniform(), Gamma(2.0, 3.0), LogUniform(0.2, 0.3)])
def test_learned_shape_is_the_best(prior):
    """Against a fine grid of the bound with q(λ) optimal at each a."""
    rng = np.random.default_rng(4)
    wins, exposure, rate = rng.gamma(0.05, size=(3, 9)) * 20, rng.gamma(5, size=(3, 9)), 1.5
    grid = np.exp(np.linspace(np.log(prior.lower), np.log(prior.upper), 20001))

    def evidence(a):
        terms = a * np.log(rate) - gammaln(a) + gammaln(a + wins) - (a + wins) * np.log(rate + exposure)
        return terms.sum() + float(prior.log_density(np.array(a)))

    best = max(grid, key=evidence)
    for start in (prior.lower, 0.25, prior.upper):
        assert best_shape(wins, exposure, rate, prior, start) == pytest.approx(best, rel=1e-2)


def test_interval_and_draws_follow_q(iris):
    X, y = iris
    clf = PlackettLuceClassifier(Variational(draws=4000), shape=0.5, random_state=1, features="exp").fit(X, y)
    q = clf.posterior_
    fresh = np.random.default_rng(9).gamma(q.shape, 1 / q.rate, size=(4000, 3, 9))
    scores = np.einsum("ij,skj->sik", clf.features_.transform(X[:5]), fresh)
    p = scores / scores.sum(axis=2, keepdims=True)
    error = p.std(axis=0) / np.sqrt(4000)
    assert (np.abs(clf.predict_proba(X[:5]) - p.mean(axis=0)) / error).max() < 6
    lower, upper = clf.predict_interval(X[:5], prob=0.8)
    np.testing.assert_allclose(lower, np.quantile(p, 0.1, axis=0), atol=0.02)
    np.testing.assert_allclose(upper, np.quantile(p, 0.9, axis=0), atol=0.02)


def test_large_shape_gives_equal_probabilities(iris):
    clf = PlackettLuceClassifier("variational", shape=1e7, random_state=0, features="exp").fit(*iris)
    np.testing.assert_allclose(clf.predict_proba(iris[0]), 1 / 3, atol=1e-3)


@pytest.mark.parametrize("data", ["iris", "wine"])
def test_learned_shape_beats_every_fixed_one(request, data):
    """The bound can have two maxima in a; the better one is found."""
    X, y = request.getfixturevalue(data)
    learned = PlackettLuceClassifier("variational", random_state=0, features="exp").fit(X, y).trace_[-1]
    for a in (1e-3, 0.01, 0.1, 1.0, 10.0):
        fixed = PlackettLuceClassifier("variational", shape=a, random_state=0, features="exp").fit(X, y).trace_[-1]
        assert learned >= fixed - np.log(a)
