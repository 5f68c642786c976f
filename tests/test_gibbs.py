"""The paper's Gibbs sampler: right by an independent sampler and by Geweke's test; kind when interrupted."""

import _thread
import warnings

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.special import logsumexp
from scipy.stats import gamma as gamma_distribution
from scipy.stats import kstest
from sklearn.preprocessing import FunctionTransformer

from conftest import class_rows
from nuts import nuts_log_weights, worst_difference
from plackett import Gibbs, PlackettLuceClassifier
from plackett.features import ExpFeatures
from plackett.inference.driver import Run
from plackett.inference.paper_sampler import sweeps_of_any_engine
from plackett.inference.sweeps import (
    State,
    Target,
    log_gamma_draw,
    log_prior,
    make_room,
    sweeps,
    update,
)
from plackett.model.mixture import normalised
from plackett.model.race import Weights
from plackett.priors import Gamma, LogUniform, as_prior, tabulate
from plackett.simulate import prior_weights, race

KIND = {"chain_axis": 0, "draw_axis": 1}
NAMES = ("log_weights", "shape", "value")  # of what a sweep leaves


@pytest.mark.brief("1.0-iris")
@pytest.mark.parametrize("data", ["iris", "wine"])
@pytest.mark.parametrize("shape", [1.0, 0.3])
def test_means_agree_with_nuts(request, quiet, data, shape):
    X, y = request.getfixturevalue(data)
    W = ExpFeatures().fit_transform(X)
    nuts = nuts_log_weights(W, y, 3, shape)
    gibbs = (
        PlackettLuceClassifier(Gibbs(draws=6000, moves="none"), shape=shape, random_state=0, features="exp")
        .fit(X, y)
        .posterior_
    )
    assert worst_difference(gibbs.log_weights, nuts) < 4
    assert worst_difference(np.exp(gibbs.log_weights), np.exp(nuts)) < 4
    assert worst_difference(gibbs.log_weights**2, nuts**2) < 4


N, K, PRIOR, RATE = 8, 3, LogUniform(0.1, 3.0), 2.0
FEATURES = ExpFeatures().fit_transform(np.random.default_rng(5).normal(size=(N, 1)))
P = FEATURES.shape[1]
TABLE = tabulate(PRIOR)


def functions(log_weights, a, codes):
    """What Geweke's test looks at, for all draws at once: a, λ̄, ln λ̄ and how they go with the data."""
    x = log_weights - np.logaddexp.reduce(log_weights.reshape(len(a), -1), axis=1)[:, None, None]
    scores = np.einsum("ij,skj->sik", FEATURES, np.exp(x))
    own = np.take_along_axis(scores, codes[:, :, None], axis=2)[:, :, 0] / scores.sum(axis=2)
    counts = (codes[:, :, None] == np.arange(K)).sum(axis=1)
    columns = [np.log(a), np.log(a) ** 2, own.mean(axis=1), *np.exp(x).reshape(len(a), -1).T]
    return np.column_stack([*columns, *np.maximum(x, -30).reshape(len(a), -1).T, *(counts**2.0).T])


def geweke(transition, seed, n=15000):
    """Largest |z| between draws from prior and model and a chain that alternates data and transition."""
    rng = np.random.default_rng(seed)
    a = np.exp(rng.uniform(np.log(PRIOR.lower), np.log(PRIOR.upper), size=n))
    weights = np.array([prior_weights(K, P, each, RATE, rng=rng) for each in a])
    codes = np.array([race(FEATURES, each, rng=rng).winner for each in weights])
    direct = functions(weights, a, codes)
    state = State(normalised(weights[0]), np.array([logsumexp(weights[0]), a[0], 0.0, 0.0]))
    weights, a, codes = np.empty_like(weights), np.empty_like(a), np.empty_like(codes)
    for t in range(n):
        codes[t] = race(FEATURES, state.log_weights, rng=rng).winner
        transition(codes[t], state, rng)
        weights[t], a[t] = state.log_weights, state.numbers[1]
    chain = functions(weights, a, codes)
    error = np.hypot(direct.std(axis=0) / np.sqrt(n), array_stats.mcse(chain[None], method="mean", **KIND))
    return np.abs((direct.mean(axis=0) - chain.mean(axis=0)) / error).max()


def paper_transition(codes, state, rng):
    rows = class_rows("numba", FEATURES, codes, K)
    room = np.empty((1, K, P)), np.empty(1), np.empty(1)
    sweeps(rows.panels, state, rng, Target(RATE, True, *TABLE), make_room(rows.panels, K), False, *room)


def wrong_transition(codes, state, rng):
    """A test double: every win counts for one and a half."""
    rows = class_rows("numba", FEATURES, codes, K)
    stats = rows.sample(Weights.point(state.log_weights), int(rng.integers(1 << 62)))
    update(rng, state, 1.5 * stats.wins, stats.exposure.copy(), Target(RATE, True, *TABLE), False)


def test_geweke_joint_distribution_with_a_learned():
    assert geweke(paper_transition, seed=0) < 4.5


def test_geweke_notices_a_wrong_sampler():
    assert geweke(wrong_transition, seed=0, n=5000) > 6


def test_compiled_sweeps_equal_the_readable_ones(iris):
    """The whole chain: compiled around the compiled pass, and plain Python around the NumPy pass."""
    X, y = iris
    W = ExpFeatures().fit_transform(X)
    target = Target(1.0, True, *tabulate(LogUniform()))
    fast_rows, rows = (
        class_rows("numba", W, y, 3),
        class_rows("numpy", W, y, 3),
    )
    outcomes = []
    for fast in (True, False):
        state = State(np.full((3, 9), -np.log(27.0)), np.array([0.0, 0.5, 0.0, 0.0]))
        out, rng = (np.empty((200, 3, 9)), np.empty(200), np.empty(200)), np.random.default_rng(7)
        if fast:
            sweeps(fast_rows.panels, state, rng, target, make_room(fast_rows.panels, 3), True, *out)
        else:
            sweeps_of_any_engine(rows, state, rng, target, True, dict(zip(NAMES, out, strict=True)))
        outcomes.append(out)
    for quick, readable in zip(*outcomes, strict=True):
        np.testing.assert_allclose(quick, readable, rtol=1e-8)


@pytest.mark.parametrize("shape", [0.01, 0.3, 1.0, 5.5])
def test_logarithmic_gamma_draws(shape):
    rng = np.random.default_rng(0)
    draws = np.array([log_gamma_draw(rng, shape) for _ in range(20000)])
    assert np.isfinite(draws).all()
    if shape < 0.1:  # ln Gam(a)·a tends to −Exp(1): compare where doubles can hold the gamma
        assert kstest(np.exp(draws[draws > -700]), lambda x: _truncated(x, shape)).pvalue > 1e-3
    else:
        assert kstest(np.exp(draws), gamma_distribution(shape).cdf).pvalue > 1e-3


def _truncated(x, shape):
    d = gamma_distribution(shape)
    low = d.cdf(np.exp(-700))
    return (d.cdf(x) - low) / (1 - low)


@pytest.mark.parametrize("prior", [LogUniform(0.01, 5), Gamma(2.0, 3.0), as_prior(lambda a: -a * a)])
def test_prior_table(prior):
    target = Target(1.0, True, *tabulate(prior))
    for a in np.exp(np.random.default_rng(0).uniform(np.log(prior.lower), np.log(prior.upper), 200)):
        want = float(prior.log_density(np.array(a))) + np.log(a)
        assert log_prior(target, np.log(a)) == pytest.approx(want, rel=1e-4, abs=1e-3)
    assert log_prior(target, np.log(prior.upper) + 1e-6) == -np.inf
    assert log_prior(target, np.log(prior.lower) - 1e-6) == -np.inf


def test_sampler_recovers_the_prior_of_the_shape_when_data_say_nothing(quiet):
    """One row for each class with equal features: the posterior of λ̄ is nearly the prior, for each a."""
    X, y = np.zeros((2, 1)), np.array([0, 1])
    prior = LogUniform(0.5, 2.0)
    sampler = Gibbs(draws=20000, moves="none", shape_prior=prior)
    with pytest.warns(UserWarning, match="all rows are alike"):
        clf = PlackettLuceClassifier(sampler, random_state=0, features="exp").fit(X, y)
    a = clf.posterior_.shape
    assert prior.lower <= a.min() and a.max() <= prior.upper
    # p(y|a) = (1/K)^2-ish varies little in a: E[p1 p2] with p ~ Beta(3a, 3a)
    grid = np.linspace(np.log(0.5), np.log(2), 2001)
    weight = 3 * np.exp(grid) / (6 * np.exp(grid) + 1)
    want = (grid * weight).sum() / weight.sum()
    assert abs(np.log(a).mean() - want) < 4 * array_stats.mcse(np.log(a), method="mean", **KIND)


def test_reproducible_and_independent_of_row_order(iris, quiet):
    X, y = iris
    order = np.random.default_rng(1).permutation(len(y))
    model = PlackettLuceClassifier(Gibbs(draws=100, tune=100), random_state=3, features="exp")
    first, second = model.fit(X, y).posterior_, model.fit(X[order], y[order]).posterior_
    np.testing.assert_allclose(first.log_weights, second.log_weights, rtol=1e-9)
    other = PlackettLuceClassifier(Gibbs(draws=100, tune=100), random_state=4, features="exp").fit(X, y).posterior_
    assert not np.allclose(first.log_weights, other.log_weights)


def test_chains_do_not_depend_on_threads(iris, quiet, monkeypatch):
    X, y = iris
    model = PlackettLuceClassifier(Gibbs(draws=50, tune=50), random_state=3, features="exp")
    many = model.fit(X, y).posterior_.log_weights
    monkeypatch.setattr("plackett.inference.moves.exchange.cores", lambda: 1)
    np.testing.assert_array_equal(many, model.fit(X, y).posterior_.log_weights)


@pytest.mark.parametrize("moves", ["exchange", "none"])
def test_whole_weights_are_repeated_rows(moves, iris, quiet):
    """Not draw for draw: the rows of a weight are drawn together. In law, by two long runs."""
    X, y = iris
    weight = np.random.default_rng(0).integers(0, 4, size=len(y))
    model = PlackettLuceClassifier(Gibbs(draws=5000, tune=500, moves=moves), shape=0.7, random_state=3, features="exp")
    found = []
    for data in ((X, y, weight), (np.repeat(X, weight, axis=0), np.repeat(y, weight))):
        fit = model.fit(*data)
        found.append((np.maximum(fit.posterior_.log_weights, -30), fit.trace_))
    one, two = found
    assert worst_difference(one[0], two[0]) < 4.5
    assert worst_difference(np.exp(one[0]), np.exp(two[0])) < 4.5
    assert worst_difference(one[1], two[1]) < 4.5


@pytest.mark.parametrize("moves", ["exchange", "none"])
def test_a_table_of_counts_has_its_dirichlet_posterior(moves, quiet):
    """Rows with one feature each: the weights of a feature are in proportions Dirichlet(a + counts), independently."""
    counts = np.array([[1_000_000, 40, 3], [7, 900, 2_000_000], [5, 1, 12]])
    X, y = np.repeat(np.eye(3), 3, axis=0), np.tile(np.arange(3), 3)
    clf = PlackettLuceClassifier(
        Gibbs(draws=2500, tune=500, moves=moves), shape=0.5, features=FunctionTransformer(), random_state=1
    ).fit(X, y, sample_weight=counts.ravel())
    weights = np.exp(clf.posterior_.log_weights)
    proportions = weights / weights.sum(axis=2, keepdims=True)  # (chain, draw, class, feature)
    law = 0.5 + counts.T
    mean = law / law.sum(axis=0)
    for found, expected in ((proportions, mean), (proportions**2, mean * (law + 1) / (law.sum(axis=0) + 1))):
        error = array_stats.mcse(found, method="mean", **KIND)
        assert (np.abs(found.mean(axis=(0, 1)) - expected) / error).max() < 4.5


@pytest.mark.parametrize("moves", ["exchange", "none"])
def test_a_table_of_counts_is_drawn_by_its_rows(moves, quiet):
    """Sixty million rows in sixty: row by row they would take days."""
    X, y = np.repeat(np.random.default_rng(0).normal(size=(20, 4)), 3, axis=0), np.tile(np.arange(3), 20)
    model = PlackettLuceClassifier(Gibbs(draws=300, tune=300, moves=moves), features="exp", random_state=0)
    clf = model.fit(X, y, sample_weight=np.full(60, 1_000_000))
    pointwise = 1_000_000 * np.asarray(clf.to_arviz(X, y).log_likelihood["y"])
    assert pointwise.shape == (4, 300, 60)
    np.testing.assert_allclose(pointwise.sum(axis=2), clf.trace_, rtol=1e-9)


def test_draws_are_normalised_and_predictions_averaged(iris, quiet):
    X, y = iris
    clf = PlackettLuceClassifier(Gibbs(draws=50, tune=50), random_state=0, features="exp").fit(X, y)
    x = clf.posterior_.log_weights
    np.testing.assert_allclose(np.logaddexp.reduce(x.reshape(4, 50, -1), axis=2), 0, atol=1e-12)
    scores = np.einsum("ij,cdkj->cdik", clf.features_.transform(X), np.exp(x))
    p = scores / scores.sum(axis=3, keepdims=True)
    np.testing.assert_allclose(clf.predict_proba(X), p.mean(axis=(0, 1)), atol=1e-12)
    lower, upper = clf.predict_interval(X, prob=0.5)
    np.testing.assert_allclose(lower, np.quantile(p.reshape(200, -1, 3), 0.25, axis=0), atol=1e-12)
    assert ((lower <= upper) & (upper <= 1)).all()
    likelihood = np.log(p[:, :, np.arange(len(y)), y]).sum(axis=2)
    np.testing.assert_allclose(clf.trace_, likelihood, rtol=1e-8)


def test_step_of_a_is_tuned_only_in_tuning(iris):
    X, y = iris
    rows = class_rows("numba", ExpFeatures().fit_transform(X), y, 3)
    state = State(np.full((3, 9), -np.log(27.0)), np.array([0.0, 0.5, 0.0, 0.0]))
    out, room = (np.empty((300, 3, 9)), np.empty(300), np.empty(300)), make_room(rows.panels, 3)
    target = Target(1.0, True, *tabulate(LogUniform()))
    sweeps(rows.panels, state, np.random.default_rng(0), target, room, True, *out)
    tuned = state.numbers[2]
    assert tuned != 0.0
    sweeps(rows.panels, state, np.random.default_rng(0), target, room, False, *out)
    assert state.numbers[2] == tuned
    assert 0.2 < np.mean(np.diff(out[1]) != 0) < 0.7


@pytest.mark.long
def test_tiny_shape_and_wide_data_stay_finite(quiet):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(62, 2000)), rng.integers(2, size=62)
    clf = PlackettLuceClassifier(Gibbs(draws=20, tune=20, chains=2), shape=1e-3, random_state=0, features="exp").fit(
        X, y
    )
    assert clf.weights_.shape == (2, 4001)
    assert np.isfinite(clf.posterior_.log_weights).all() and np.isfinite(clf.predict_proba(X)).all()


BARELY_BEGUN = {"tune": 2, "chains": 2, "moves": "none"}


def test_predictions_that_are_not_to_be_trusted_are_reported(iris):
    said = r"^predictions are not .*the chains disagree\. Try Gibbs\(chains=\d+\), or Gibbs\(draws=120\), or leave"
    with pytest.warns(UserWarning, match=said):
        PlackettLuceClassifier(Gibbs(**BARELY_BEGUN, draws=30), random_state=0, features="exp").fit(*iris)
    said = r"^Gibbs\(max_draws=30\) stopped the run after 30 iterations per chain: predictions .*Gibbs\(max_draws=120\)"
    with pytest.warns(UserWarning, match=said):
        PlackettLuceClassifier(Gibbs(**BARELY_BEGUN, max_draws=30), random_state=0, features="exp").fit(*iris)


def test_the_default_goes_on_until_predictions_are_settled(iris, wine, quiet):
    """As with learned directions: the first draws are those of a run of so many, and the limit is kept and told."""
    few = wine[0][::6], wine[1][::6]
    first = PlackettLuceClassifier(Gibbs(**BARELY_BEGUN, draws=1000), random_state=0, features="exp").fit(*few)
    longer = PlackettLuceClassifier(Gibbs(**BARELY_BEGUN, max_draws=1250), random_state=0, features="exp").fit(*few)
    np.testing.assert_array_equal(longer.posterior_.log_weights[:, :1000], first.posterior_.log_weights)
    assert longer.n_iter_ == 2 + 1250 and longer.diagnostics_.ended == "limit" and first.diagnostics_.ended == ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        default = PlackettLuceClassifier(Gibbs(tune=500), random_state=0, features="exp").fit(*iris)
    assert default.diagnostics_.grade == "settled" and 1000 <= default.n_iter_ - 500 < 10_000
    assert "predictions are settled: averaged probabilities are within ±0.0" in repr(default)


@pytest.mark.usefixtures("interruptible")
def test_interruption_keeps_the_draws(wine, monkeypatch):
    """Ctrl-C after the round in which the tenth draw was made."""
    advance = Run._round

    def interrupted(self, pool, n):
        advance(self, pool, min(n, 8))
        if self.store.count >= 10:
            _thread.interrupt_main()

    clf = PlackettLuceClassifier(Gibbs(draws=1000, tune=10, chains=2), random_state=0, features="exp")
    monkeypatch.setattr(Run, "_round", interrupted)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.fit(*wine)
    assert any("interrupted" in str(w.message) and "were kept" in str(w.message) for w in caught)
    kept = clf.posterior_.shape.shape[1]
    assert 10 <= kept < 26  # the round under way may still be taken
    monkeypatch.setattr(Run, "_round", advance)
    whole = PlackettLuceClassifier(Gibbs(draws=kept, tune=10, chains=2), random_state=0, features="exp")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole.fit(*wine)
    np.testing.assert_array_equal(clf.posterior_.shape, whole.posterior_.shape)
    assert clf.predict_proba(wine[0]).shape == (178, 3)


def test_improper_prior_warns():
    with pytest.warns(UserWarning, match="no proper posterior"):
        as_prior("improper")
