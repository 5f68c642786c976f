"""Learned directions: gradients, special cases, EM, and the classifier's verbs."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from plackett import Gibbs, PlackettLuceClassifier
from plackett.directions import LearnedDirections, reference
from plackett.directions import gradient as compiled
from plackett.directions.prior import inverse_weights, log_density, make_target, size, weights_from
from plackett.directions.task import make_task
from plackett.features import ExpFeatures

SHORT = Gibbs(draws=40, tune=40, chains=2)


def problem(n=50, d=5, K=3, M=6, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(K), rng.integers(K, size=n - K)])
    return rng.normal(size=(n, d)), codes, rng.uniform(0.5, 2, n), rng.normal(size=(M, d)), 3 * rng.normal(size=(K, M))


def compiled_likelihood(X, codes, weight, beta, log_weights):
    K, M = log_weights.shape
    room = compiled.make_room(M, X.shape[1], K)
    votes, totals = np.empty((K, M)), np.empty(M)
    panels = compiled.pack(X, codes, weight)
    value = compiled.log_likelihood(panels, beta, log_weights, votes, totals, room)
    return value, room.directions, room.wins - room.gates * votes


@pytest.mark.parametrize(("n", "d", "K", "M"), [(50, 5, 3, 6), (100, 1, 2, 2), (70, 8, 5, 3)])
def test_compiled_pass_equals_reference(n, d, K, M):
    args = problem(n, d, K, M)
    for got, expected in zip(compiled_likelihood(*args), reference.log_likelihood(*args), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11)


def test_compiled_exp_is_exact():
    x = -np.linspace(0, 600, 5001)
    np.testing.assert_allclose([compiled.exp(v) for v in x], np.exp(x), rtol=5e-16)


def test_far_scores_stay_finite():
    X, codes, weight, beta, log_weights = problem()
    value, directions, weights = compiled_likelihood(X * 1e3, codes, weight, beta, log_weights)
    assert np.isfinite(value) and np.isfinite(directions).all() and np.isfinite(weights).all()


def test_gradient_of_the_posterior_by_finite_differences():
    X, codes, weight, *_ = problem()
    task = make_task(X, codes, weight, np.random.SeedSequence(0))
    prior = LearnedDirections(components=2).prior(3, 0.02)
    target = make_target(compiled.pack(task.Z, task.codes, task.weight), prior)
    q = np.random.default_rng(1).normal(size=size(prior, 5))
    gradient, other = np.empty_like(q), np.empty_like(q)
    log_density(q, gradient, target)
    numeric = [
        (log_density(q + step, other, target) - log_density(q - step, other, target)) / 2e-5
        for step in 1e-5 * np.eye(len(q))
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)


def test_weights_and_their_coordinates_are_inverse():
    log_weights, shape = np.array([[-60, -3, 0.5], [-1, 2, 5.0]]), np.array([[0.02, 0.05, 0.02], [0.3, 1.0, 2.5]])
    back = np.empty((2, 3))
    weights_from(inverse_weights(log_weights, shape), shape, back)
    np.testing.assert_allclose(back, log_weights, rtol=1e-12)


def test_one_component_for_each_class_is_multinomial_logit(iris):
    X, y = StandardScaler().fit_transform(iris[0]), iris[1]
    C = 0.5

    def objective(x):
        coef, intercept = x[:12].reshape(3, 4), x[12:]
        log_weights = np.where(np.eye(3) > 0, intercept, -90.0)
        value, to_beta, to_weights = compiled_likelihood(X, y, np.ones(len(y)), coef, log_weights)
        return -C * value + 0.5 * (coef**2).sum(), np.append(-C * to_beta + coef, -C * np.diag(to_weights))

    found = minimize(objective, np.zeros(15), jac=True, options={"gtol": 1e-9})
    logit = LogisticRegression(C=C, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(found.x[:12].reshape(3, 4), logit.coef_, atol=1e-6)


def test_unit_directions_are_the_papers_features():
    X, codes, _, _, _ = problem(d=3)
    W = ExpFeatures(standardize=False).fit_transform(X)
    beta = np.vstack([np.eye(3), -np.eye(3), np.zeros(3)])
    log_weights = np.random.default_rng(0).normal(size=(3, 7))
    scores = W @ np.exp(log_weights).T
    expected = np.log(scores[np.arange(50), codes] / scores.sum(axis=1)).sum()
    assert compiled_likelihood(X, codes, np.ones(50), beta, log_weights)[0] == pytest.approx(expected, rel=1e-12)


def test_em_with_poisson_steps_never_falls_and_ends_where_the_gradient_is_zero():
    X, codes, weight, beta, log_weights = problem(n=60, d=2, K=3, M=4, seed=2)
    values = []
    for _ in range(300):
        values.append(reference.em_objective(X, codes, weight, beta, log_weights, 1.0, 1.0))
        beta, log_weights = reference.em_step(X, codes, weight, beta, log_weights, 1.0, 1.0)
    assert np.diff(values).min() > -1e-10
    _, to_beta, to_weights = reference.log_likelihood(X, codes, weight, beta, log_weights)
    np.testing.assert_allclose(to_beta - beta, 0, atol=1e-3)
    np.testing.assert_allclose(to_weights + 1.0 - np.exp(log_weights), 0, atol=1e-3)


@pytest.mark.parametrize("inference", ["em", SHORT])
def test_classifier_learns_and_is_its_own_feature_map(iris, quiet, inference):
    X, y = iris
    clf = PlackettLuceClassifier(inference, features="learned", random_state=0).fit(X[::2], y[::2])
    probability = clf.predict_proba(X[1::2])
    assert clf.score(X[1::2], y[1::2]) > 0.9
    W = clf.features_.transform(X[1::2])
    scores = W @ clf.weights_.T
    average = scores / scores.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clf.posterior_.calibrated(average), probability, atol=1e-9)
    assert clf.weights_.sum() == pytest.approx(1)


def test_intervals_hold_the_average(iris, quiet):
    X, y = iris
    clf = PlackettLuceClassifier(SHORT, features="learned", random_state=0).fit(X, y)
    lower, upper = clf.predict_interval(X, prob=0.98)
    probability = clf.predict_proba(X)
    assert (lower <= probability).mean() > 0.98 and (probability <= upper).mean() > 0.98
    with pytest.raises(ValueError, match="no interval"):
        PlackettLuceClassifier("em", features="learned").fit(X, y).predict_interval(X)


def test_nothing_depends_on_threads_or_on_the_order_of_rows(iris, quiet, monkeypatch):
    X, y = iris
    order = np.random.default_rng(0).permutation(len(y))
    fit = PlackettLuceClassifier(SHORT, features="learned", random_state=0).fit
    first = fit(X, y).predict_proba(X)
    monkeypatch.setattr("plackett.engines.numba.cores", lambda: 1)
    np.testing.assert_array_equal(fit(X[order], y[order]).predict_proba(X), first)
    weight = np.where(np.arange(len(y)) < 50, 2, 1)
    repeated = fit(np.vstack([X, X[:50]]), np.append(y, y[:50])).predict_proba(X)
    np.testing.assert_array_equal(fit(X, y, sample_weight=weight).predict_proba(X), repeated)
