"""Learned directions: gradients, special cases, EM, and the classifier's verbs."""

import _thread
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from plackett import EM, Gibbs, PlackettLuceClassifier, Variational, load
from plackett.directions import LearnedDirections, reference, stacking
from plackett.directions import gradient as compiled
from plackett.directions.positions import unpacked
from plackett.directions.prior import inverse_weights, log_density, log_weights_of, make_target, size
from plackett.directions.stacking import best_mixture
from plackett.directions.task import make_task, principal_axes
from plackett.explain import explain
from plackett.features import ExpFeatures
from plackett.inference.checkpoint import CheckpointError
from plackett.inference.driver import Run
from plackett.inference.limits import Clock
from plackett.posterior.directions import sharpened
from plackett.posterior.weights import normalised

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
    np.testing.assert_allclose(log_weights_of(inverse_weights(log_weights, shape), shape), log_weights, rtol=1e-12)


def test_positions_are_unpacked_as_the_density_sees_them():
    X, codes, weight, *_ = problem()
    prior = LearnedDirections(components=2).prior(3, 0.02)
    target = make_target(compiled.pack(X, codes, weight), prior)
    q = np.random.default_rng(1).normal(size=size(prior, 5))
    log_density(q, np.empty_like(q), target)
    draws = unpacked(q[None, None], prior, 5)
    np.testing.assert_allclose(target.beta, draws.directions[0, 0], rtol=1e-14)
    np.testing.assert_allclose(normalised(target.log_weights), draws.log_weights[0, 0], rtol=1e-13)
    np.testing.assert_allclose(target.scale, draws.scales[0, 0], rtol=1e-14)


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
    np.testing.assert_allclose(sharpened(scores, clf.posterior_.power), probability, atol=1e-9)
    assert clf.weights_.sum() == pytest.approx(1)


def test_intervals_hold_the_average(iris, quiet):
    X, y = iris
    clf = PlackettLuceClassifier(SHORT, features="learned", random_state=0).fit(X, y)
    lower, upper = clf.predict_interval(X, prob=0.98)
    probability = clf.predict_proba(X)
    assert (lower <= probability).all() and (probability <= upper).all()
    assert ((upper - lower).max(axis=1) > 0.01).mean() > 0.5
    with pytest.raises(ValueError, match=r"no interval. Use inference='gibbs'\.$"):
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


@pytest.fixture(scope="module")
def fitted():
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return PlackettLuceClassifier(SHORT, features="learned", random_state=0).fit(X, np.array(["a", "b", "c"])[y])


def test_relevance_finds_the_petals_and_forgets_noise(iris, quiet):
    X, y = iris
    noisy = np.column_stack([X, np.random.default_rng(0).normal(size=(len(y), 3))])
    clf = PlackettLuceClassifier(SHORT, features="learned", random_state=0).fit(noisy, y)
    assert clf.relevance_.shape == (7,)
    assert clf.relevance_[2:4].min() > 2 * clf.relevance_[4:].max()


def test_summary_and_explanation_agree_with_each_other(fitted, iris):
    X = iris[0]
    table = fitted.summary()
    assert list(table) == ["component", "share", "votes for", "vote", "covariate", "direction"]
    once = table.drop_duplicates("component")
    assert len(table) == 12 * 4 and once["share"].sum() == pytest.approx(1, abs=0.01)
    assert once["share"].is_monotonic_decreasing
    votes = fitted.posterior_.votes[fitted.readable_draw_.draw].T[once["component"]]
    np.testing.assert_allclose(once["vote"], votes.max(axis=1), atol=6e-4)
    assert once["votes for"].tolist() == fitted.classes_[votes.argmax(axis=1)].tolist()
    for _, part in table.groupby("component"):
        assert part["direction"].abs().is_monotonic_decreasing and set(part["covariate"]) == {"x0", "x1", "x2", "x3"}
    directions = table.pivot(index="component", columns="covariate", values="direction").loc[once["component"]]
    np.testing.assert_allclose(once["share"].to_numpy() @ directions, 0, atol=0.02)
    why = explain(fitted, X[100])
    assert list(why) == ["component", "gate", "votes for", "vote", "covariate", "opens"]
    once = why.drop_duplicates("component")
    assert once["gate"].sum() == pytest.approx(1, abs=0.01)
    near = (once["gate"] * once["vote"]).groupby(once["votes for"]).sum()
    assert near.idxmax() == "c" == why["votes for"].iloc[0]
    with pytest.raises(ValueError, match="expected one row, got shape"):
        explain(fitted, X[:2])


def test_columns_may_have_any_name(iris, quiet):
    X, y = iris
    names = ["share", "votes for", "gate", "component"]
    frame = pd.DataFrame(X, columns=names)
    clf = PlackettLuceClassifier(SHORT, features="learned", random_state=0).fit(frame, y)
    plain = PlackettLuceClassifier(SHORT, features="learned", random_state=0).fit(X, y)
    rename = dict(zip(["x0", "x1", "x2", "x3"], names, strict=True))
    for own, other in ((clf.summary(), plain.summary()), (explain(clf, frame.iloc[0]), explain(plain, X[0]))):
        other["covariate"] = other["covariate"].map(rename)
        pd.testing.assert_frame_equal(own, other, check_dtype=False)


def test_repr_and_html_speak_of_components_and_covariates(fitted, iris):
    text, html = repr(fitted), fitted._repr_html_inner()
    assert "3 classes, 12 learned directions of 4 covariates" in text
    error = f"{fitted.diagnostics_.monte_carlo_error:.3f}"
    assert f"standard error of {error}" in text
    assert error in repr(fitted.diagnostics_) and len(repr(fitted.diagnostics_)) < 200
    assert "Most relevant covariates" in html and "<td>x2</td>" in html
    mode = PlackettLuceClassifier("em", features="learned").fit(*iris)
    assert repr(mode).endswith("EM: one estimate without uncertainty")


def test_model_file_and_arviz(fitted, iris, tmp_path):
    X = iris[0]
    fitted.save(tmp_path / "model.plk")
    same = load(tmp_path / "model.plk")
    np.testing.assert_array_equal(same.predict_proba(X), fitted.predict_proba(X))
    pd.testing.assert_frame_equal(same.summary(), fitted.summary())
    pd.testing.assert_frame_equal(explain(same, X[100]), explain(fitted, X[100]))
    data = same.to_arviz(X, same.classes_[iris[1]])
    assert data.posterior["direction"].dims == ("chain", "draw", "component", "column")
    expected = np.log(np.concatenate(list(fitted.posterior_.probabilities(fitted._rows(X))))[:, 0, 0])
    np.testing.assert_allclose(data.log_likelihood["y"][0, 0, :50], expected[:50], atol=1e-9)
    assert "log_likelihood" not in str(same.to_arviz())


@pytest.mark.parametrize("inference", [EM(tol=1e-6), Variational(tol=1e-4)])
def test_a_fitted_model_is_a_feature_map_for_other_inferences(fitted, iris, inference):
    X, y = iris
    clf = PlackettLuceClassifier(inference, shape=0.9, features=fitted.features_).fit(X, y)
    plain = PlackettLuceClassifier(inference, shape=0.9, features="exp").fit(X, y)
    assert clf.score(X, y) > plain.score(X, y) + 0.05
    assert clf.weights_.shape == fitted.weights_.shape


def test_more_covariates_than_rows(quiet):
    rng = np.random.default_rng(0)
    y = np.arange(230) % 2
    X = rng.normal(size=(230, 200))
    X[:, :30] += y[:, None]
    clf = PlackettLuceClassifier(SHORT, features="learned", random_state=0).fit(X[:30], y[:30])
    assert clf.score(X[30:], y[30:]) > 0.85
    assert clf.relevance_.shape == (200,)
    assert clf.relevance_[:30].mean() > 1.5 * clf.relevance_[30:].mean()


def test_principal_axes_keep_every_distance():
    Z = np.random.default_rng(0).normal(size=(10, 40))
    rotated = Z @ principal_axes(Z)
    inner, outer = rotated @ rotated.T, Z @ Z.T
    np.testing.assert_allclose(inner / inner[0, 0], outer / outer[0, 0], atol=1e-12)
    assert (rotated**2).mean() == pytest.approx(1)


def test_stacking_finds_the_better_of_two_predictions_and_their_power():
    rng = np.random.default_rng(0)
    truth, noise = rng.dirichlet(np.ones(3), size=4000), rng.dirichlet(np.ones(3), size=4000)
    codes = (truth.cumsum(axis=1) < rng.uniform(size=(4000, 1))).sum(axis=1)
    ones = np.ones(4000)
    w, kappa = best_mixture(truth, noise, codes, ones)
    assert w > 0.95 and kappa == pytest.approx(1, abs=0.1)
    w, kappa = best_mixture(noise, sharpened(truth, 0.5), codes, ones)
    assert w < 0.05 and kappa == pytest.approx(2, abs=0.2)


def test_variational_says_what_to_use(iris):
    with pytest.raises(ValueError, match="features='exp'.*inference='gibbs'"):
        PlackettLuceClassifier("variational").fit(*iris)


def test_a_limit_of_time_ends_the_chains(iris, quiet):
    X, y = iris[0][::3], iris[1][::3]
    settings = Gibbs(draws=100_000, tune=50, chains=2, max_seconds=10)
    began = time.perf_counter()
    clf = PlackettLuceClassifier(settings, random_state=0).fit(X, y)
    assert time.perf_counter() - began < 60  # with the loading of kernels on a busy machine
    assert 0 < clf.trace_.shape[1] < 100_000 and 0 < clf.posterior_.mode_weight < 1


def test_a_limit_of_time_counts_the_held_out_rows(iris):
    with pytest.raises(ValueError, match=r"Gibbs\(max_seconds=0\.02\) was over while rows were held out"):
        PlackettLuceClassifier(Gibbs(max_seconds=0.02), random_state=0).fit(*iris)


def test_the_time_of_held_out_modes_counts(iris, monkeypatch):
    monkeypatch.setattr(stacking, "held_out_averages", lambda tasks, *_: [np.full((len(t.Z), 3), 1 / 3) for t in tasks])
    clock = Clock(1e-9)
    clock.start()
    task = make_task(*iris, None, np.random.SeedSequence(0))
    task, held_out = stacking.choose_scale(task, LearnedDirections(), 0.02, 100, clock)
    with pytest.raises(ValueError, match="while rows were held out"):
        stacking.stacked_mode(task, LearnedDirections(), 0.02, held_out, clock)


@pytest.mark.parametrize("setting", ["components", "own_shape", "covariate_spread", "leapfrogs"])
def test_settings_are_checked(iris, setting):
    with pytest.raises(ValueError, match=setting):
        PlackettLuceClassifier(features=LearnedDirections(**{setting: -1})).fit(*iris)


def test_a_killed_fit_goes_on_to_the_same_draws(iris, tmp_path, quiet, monkeypatch):
    X, y = iris
    path = tmp_path / "chains.ckp"
    settings = {"draws": 12, "tune": 12, "chains": 2}

    def fit(**more):
        return PlackettLuceClassifier(Gibbs(**settings, **more), features="learned", random_state=3).fit(X, y)

    whole = fit()
    rounds, real = [], Run._round

    def dies(self, pool, n):
        if len(rounds) == 3:
            raise RuntimeError("killed")
        rounds.append(n)
        return real(self, pool, min(n, 4))

    monkeypatch.setattr(Run, "_round", dies)
    with pytest.raises(RuntimeError, match="killed"):
        fit(checkpoint=path)
    monkeypatch.setattr(Run, "_round", real)
    resumed = fit(checkpoint=path)
    np.testing.assert_array_equal(resumed.posterior_.directions, whole.posterior_.directions)
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))
    settings["draws"] = 30
    extended, whole = fit(checkpoint=path), fit()
    np.testing.assert_array_equal(extended.posterior_.directions, whole.posterior_.directions)
    np.testing.assert_array_equal(extended.predict_proba(X), whole.predict_proba(X))
    with pytest.raises(CheckpointError, match="another fit"):
        PlackettLuceClassifier(Gibbs(**settings, checkpoint=path), features="learned").fit(X[:-1], y[:-1])


def test_an_interrupted_run_keeps_its_draws(iris, monkeypatch):
    real = Run._round

    def interrupted(self, pool, n):
        real(self, pool, min(n, 8))
        if self.store.count >= 4:
            _thread.interrupt_main()

    monkeypatch.setattr(Run, "_round", interrupted)
    model = PlackettLuceClassifier(Gibbs(draws=100, tune=8, chains=2), features="learned", random_state=0)
    with pytest.warns(ConvergenceWarning, match="interrupted: the [0-9]+ draws"):
        clf = model.fit(*iris)
    assert 4 <= clf.trace_.shape[1] < 20
    assert 0 < clf.posterior_.mode_weight < 1


def test_target_ess_goes_on_until_it_gives_up(iris):
    settings = Gibbs(draws=10, tune=10, chains=2, target_ess=1e6, max_draws=30)
    with pytest.warns(ConvergenceWarning, match="effective sample size of a probability"):
        clf = PlackettLuceClassifier(settings, features="learned", random_state=0).fit(*iris)
    assert clf.n_iter_ == 40


def test_a_pass_reads_each_row_once():
    for n in (320, 3200):
        X, codes, *_ = problem(n=n, K=4)
        panels = compiled.pack(X, codes, None)
        assert panels.weight.sum() == n
        assert len(panels.label) < n / compiled.LANES + 4
