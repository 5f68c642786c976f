"""Learned directions: gradients, special cases, EM, and the classifier's verbs."""

import _thread
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from directions_em import em_objective, em_step
from plackett import EM, Gibbs, PlackettLuceClassifier, Variational, explain, load
from plackett.directions import LearnedDirections, sampler, stacking
from plackett.directions import walk as compiled
from plackett.directions.class_task import distinct, make_class_task, merge, principal_axes
from plackett.directions.density import class_density, density_of, make_density, walk_on
from plackett.directions.prior import inverse_weights, log_weights_of, size
from plackett.directions.stacking import best_mixture
from plackett.directions.starts import class_start
from plackett.directions.walk import HamiltonianSampler
from plackett.engines import exponential
from plackett.engines.exponential import ExponentialRows
from plackett.engines.numpy import NumpyDirections
from plackett.features import ExpFeatures
from plackett.inference import hmc
from plackett.inference.checkpoint import CheckpointError
from plackett.inference.driver import Chain, Run, Source
from plackett.inference.limits import Clock, TimeIsUp
from plackett.model.mixture import SMALLEST, normalised, probabilities, sharpened, varied
from plackett.posterior.directions import shortest

SHORT = Gibbs(draws=40, tune=40, chains=2)


def problem(n=50, d=5, K=3, M=6, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(K), rng.integers(K, size=n - K)])
    return rng.normal(size=(n, d)), codes, rng.uniform(0.5, 2, n), rng.normal(size=(M, d)), 3 * rng.normal(size=(K, M))


def compiled_likelihood(X, codes, weight, beta, log_weights):
    found = ExponentialRows(X, codes, weight, np.float64).gradient(beta, log_weights)
    return found.value, found.directions, found.log_weights


@pytest.mark.parametrize(("n", "d", "K", "M"), [(50, 5, 3, 6), (100, 1, 2, 2), (70, 8, 5, 3)])
def test_compiled_pass_equals_reference(n, d, K, M):
    *rows, beta, log_weights = problem(n, d, K, M)
    expected = NumpyDirections(*rows).gradient(beta, log_weights)
    for got, name in zip(compiled_likelihood(*rows, beta, log_weights), vars(expected), strict=True):
        np.testing.assert_allclose(got, getattr(expected, name), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("large", [0, 1 << 40])
def test_blocks_and_threads_leave_the_pass_of_a_chain(monkeypatch, large, dtype):
    """Blocks are added in one order, whether a compiled chain goes through them or threads share them out."""
    monkeypatch.setattr(exponential, "LARGE", large)
    n = 3 * exponential.BLOCK // 2
    X, codes, weight, beta, log_weights = problem(n, 2, 3, 4)
    rows = ExponentialRows(X, codes, weight, dtype)
    assert len(rows.blocks) > 1 and rows.large(4) == (large == 0)
    found = rows.gradient(beta, log_weights)
    scratch = exponential.make_scratch(4, 2, 3, dtype)
    assert found.value == rows.kernel(rows.packed, 0, len(rows.packed.label), beta, log_weights, scratch)
    np.testing.assert_array_equal(found.directions, scratch.directions)
    np.testing.assert_array_equal(found.log_weights, scratch.log_weights)
    expected = NumpyDirections(X, codes, weight).gradient(beta, log_weights)
    tolerance = 1e-9 if dtype == np.float64 else 1e-5 * n
    assert found.value == pytest.approx(expected.value, abs=tolerance)
    np.testing.assert_allclose(found.directions, expected.directions, rtol=1e-9, atol=tolerance)


def test_a_walk_around_any_engine_is_the_compiled_walk():
    """To the last bit around the same pass; around the reference as long as rounding has not grown."""
    X, codes, weight, *_ = problem()
    prior = LearnedDirections(components=2).prior(3, 5, 0.02)
    found = []
    for density in (
        None,
        density_of(ExponentialRows(X, codes, weight, np.float32), prior, 5),
        density_of(NumpyDirections(X, codes, weight), prior, 5),
    ):
        rng, walk = np.random.default_rng(3), hmc.begin(np.zeros(size(prior, 5)))
        draws, values = np.empty((30, size(prior, 5))), np.empty(30)
        how = (walk, rng, hmc.windows(30), 10, True, draws, values)
        if density is None:
            walk_on(make_density(ExponentialRows(X, codes, weight, np.float32).packed, prior, 5), *how)
        else:
            hmc.walk_on(density, *how)
        found.append((draws, values))
    np.testing.assert_array_equal(found[1][0], found[0][0])
    np.testing.assert_array_equal(found[1][1], found[0][1])
    np.testing.assert_allclose(found[2][0][:3], found[0][0][:3], rtol=1e-3, atol=1e-3)


def test_rows_shared_out_to_threads_give_the_draws_of_chains_side_by_side(monkeypatch):
    X, codes, weight, *_ = problem(n=3 * exponential.BLOCK // 2, d=2)
    task = make_class_task(X, codes, weight, Source(np.random.SeedSequence(0)))
    prior = LearnedDirections(components=1).prior(3, 2, 0.02)
    found = []
    for large in (0, 1 << 40):
        monkeypatch.setattr(exponential, "LARGE", large)
        runner = HamiltonianSampler(task, prior, 0, 4)
        assert (runner.walk_on is not None) == (large > 0)
        chain = Chain(hmc.begin(np.zeros(size(prior, 2))), np.random.default_rng(5))
        draws = np.empty((3, size(prior, 2)))
        runner.advance(chain, True, draws, np.empty(3))
        found.append(draws)
    assert np.ptp(found[0]) > 0
    np.testing.assert_array_equal(*found)


def test_far_scores_stay_finite():
    X, codes, weight, beta, log_weights = problem()
    value, directions, weights = compiled_likelihood(X * 1e3, codes, weight, beta, log_weights)
    assert np.isfinite(value) and np.isfinite(directions).all() and np.isfinite(weights).all()


def test_gradient_of_the_posterior_by_finite_differences():
    """Around a pass in float64; the compiled density of chains, in floats, has the same to their rounding."""
    X, codes, weight, *_ = problem()
    prior = LearnedDirections(components=2).prior(3, 5, 0.02)
    density = density_of(ExponentialRows(X, codes, weight, np.float64), prior, 5)
    q = np.random.default_rng(1).normal(size=size(prior, 5))
    gradient, other = np.empty_like(q), np.empty_like(q)
    value = density(q, gradient)
    numeric = [(density(q + step, other) - density(q - step, other)) / 2e-5 for step in 1e-5 * np.eye(len(q))]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)
    in_floats = make_density(exponential.pack(X, codes, weight, np.float32), prior, 5)
    assert class_density(q, other, in_floats) == pytest.approx(value, abs=1e-4)
    np.testing.assert_allclose(other, gradient, rtol=1e-4, atol=1e-4)


def test_weights_and_their_coordinates_are_inverse():
    log_weights, shape = np.array([[-60, -3, 0.5], [-1, 2, 5.0]]), np.array([[0.02, 0.05, 0.02], [0.3, 1.0, 2.5]])
    np.testing.assert_allclose(log_weights_of(inverse_weights(log_weights, shape), shape), log_weights, rtol=1e-12)


def test_positions_are_unpacked_as_the_density_sees_them():
    X, codes, weight, *_ = problem()
    prior = LearnedDirections(components=2).prior(3, 5, 0.02)
    target = make_density(exponential.pack(X, codes, weight, np.float32), prior, 5)
    q = np.random.default_rng(1).normal(size=size(prior, 5))
    class_density(q, np.empty_like(q), target)
    task = make_class_task(X, codes, weight, Source(np.random.SeedSequence(0)))
    draws = task.unpacked(q[None, None], prior)
    np.testing.assert_allclose(target.place.beta, draws.directions[0, 0], rtol=1e-14)
    np.testing.assert_allclose(normalised(target.place.log_weights), draws.log_weights[0, 0], rtol=1e-13)
    np.testing.assert_allclose(target.place.scale, draws.scales[0, 0], rtol=1e-14)


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
        values.append(em_objective(X, codes, weight, beta, log_weights, 1.0, 1.0))
        beta, log_weights = em_step(X, codes, weight, beta, log_weights, 1.0, 1.0)
    assert np.diff(values).min() > -1e-10
    found = NumpyDirections(X, codes, weight).gradient(beta, log_weights)
    np.testing.assert_allclose(found.directions - beta, 0, atol=1e-3)
    np.testing.assert_allclose(found.log_weights + 1.0 - np.exp(log_weights), 0, atol=1e-3)


@pytest.mark.parametrize("inference", ["em", SHORT])
def test_classifier_learns_and_is_its_own_feature_map(iris, quiet, inference):
    X, y = iris
    clf = PlackettLuceClassifier(inference, features="learned", random_state=0).fit(X[::2], y[::2])
    probability = clf.predict_proba(X[1::2])
    assert clf.score(X[1::2], y[1::2]) > 0.9
    W = clf.features_.transform(X[1::2])
    scores = W @ clf.weights_.T
    np.testing.assert_allclose(sharpened(scores, clf.posterior_.power, SMALLEST), probability, atol=1e-9)
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


def test_shortest_intervals_are_the_shortest_of_all_that_hold_enough():
    draws = np.random.default_rng(0).beta(0.5, 2.0, size=(5, 30, 2))
    lower, upper = shortest(iter([draws[:2], draws[2:]]), 0.8)
    for i, k in np.ndindex(5, 2):
        ends = [(b - a, a, b) for a in draws[i, :, k] for b in draws[i, :, k] if a <= b]
        enough = [end for end in ends if ((draws[i, :, k] >= end[1]) & (draws[i, :, k] <= end[2])).sum() >= 24]
        assert min(enough)[1:] == (lower[i, k], upper[i, k])


def test_intervals_are_of_draws_and_mode_as_they_are_stacked(iris, quiet):
    X, y = iris
    clf = PlackettLuceClassifier(SHORT, random_state=0).fit(X[50:], y[50:])
    rows, draws = clf._rows(X[60:90]), clf.posterior_
    apart = np.concatenate(list(draws.probabilities(rows)))
    few = np.concatenate([block[:, -1] for block in draws._shares(rows)])
    for weight, wanted in ((0.0, apart), (1.0, varied(few, apart))):
        moved = replace(draws, mode_weight=weight)
        lower, upper = shortest([sharpened(wanted, draws.power, SMALLEST)], 0.9)
        assert (
            np.array(moved.interval(rows, 0.9))
            == [np.minimum(lower, moved.predict(rows)), np.maximum(upper, moved.predict(rows))]
        ).all()
    constant = np.concatenate([np.full((1, 40, 2), 0.5), np.array([[[0.9, 0.1]]])], axis=1)
    stacked = replace(draws, mode_weight=0.3, power=1.0)._stacked(constant)[0, :, 0]
    assert sorted(stacked.round(9)) == [0.5] * 28 + [0.9] * 12
    np.testing.assert_allclose(varied(few, apart).sum(axis=-1), 1)
    lower, upper = draws.interval(rows, 0.9)  # two classes: one interval is the other's mirror
    np.testing.assert_allclose(lower[:, 0], 1 - upper[:, 1], atol=1e-9)


@pytest.mark.parametrize(("many", "alike"), [(1, True), (5000, False)])
def test_with_many_rows_steps_are_found_with_the_mass_of_all_chains(iris, quiet, monkeypatch, many, alike):
    seen = []

    def adapt(self, chains, states, done):
        if done == 1:
            seen.extend(chain.state.variance[hmc.INVERSE_MASS].copy() for chain in chains)
        share(self, chains, states, done)

    share = HamiltonianSampler.adapt
    monkeypatch.setattr(HamiltonianSampler, "adapt", adapt)
    monkeypatch.setattr(sampler, "MANY", many)
    PlackettLuceClassifier(SHORT, random_state=0).fit(*iris)
    assert (seen[0] == seen[1]).all() == alike


def test_with_many_rows_chains_begin_uphill_and_take_the_posterior_for_narrow(iris, monkeypatch):
    X, y = iris
    task = make_class_task(X, y, None, Source(np.random.SeedSequence(0)))
    prior = LearnedDirections().prior(3, 4, 0.02)
    begun, density = task.starts(prior, [np.random.default_rng(0)])[0], density_of(task.prepared(np.float64), prior, 4)
    (few,) = HamiltonianSampler(task, prior, 10, 5).begin([begun])
    monkeypatch.setattr(compiled, "MANY", len(y))
    (many,) = HamiltonianSampler(task, prior, 10, 5).begin([begun])
    assert (few.position == begun).all() and (few.variance[hmc.INVERSE_MASS] == hmc.ASSUMED).all()
    assert (many.variance[hmc.INVERSE_MASS] == compiled.NARROW / len(y)).all()
    assert (len(few.variance), len(many.variance)) == (hmc.SLOPES, hmc.SLOPES + 1)  # those of slopes besides

    def downhill(q):
        gradient = np.empty_like(q)
        return -density(q, gradient), -gradient

    before, after = -downhill(begun)[0], -downhill(many.position)[0]
    top = -minimize(downhill, many.position, jac=True, options={"maxiter": 2000}).fun
    assert before + 50 < after and top - after < 5

    monkeypatch.setattr(compiled, "CLIMB", 1)  # nowhere near: all chains begin at the best of their places
    far = begun + np.random.default_rng(1).normal(size=len(begun)) * 5
    first, second = HamiltonianSampler(task, prior, 10, 5).begin([far, many.position])
    assert (first.position == second.position).all() and first.position is not second.position


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


def test_fractions_of_a_row_add_up_to_it_in_any_order(iris, quiet):
    X, y = iris
    fit = PlackettLuceClassifier(SHORT, random_state=0).fit
    thrice, order = np.tile(np.arange(150), 3), np.random.default_rng(0).permutation(450)
    weight = np.repeat([0.1, 0.2, 0.3], 150)
    first = fit(X[thrice], y[thrice], sample_weight=weight).predict_proba(X)
    again = fit(X[thrice][order], y[thrice][order], sample_weight=weight[order]).predict_proba(X)
    np.testing.assert_array_equal(again, first)
    halves = np.append(np.arange(150), np.arange(150))
    whole = fit(X[halves], y[halves], sample_weight=np.full(300, 0.5)).predict_proba(X)
    np.testing.assert_array_equal(whole, fit(X, y).predict_proba(X))


@pytest.mark.parametrize("engine", ["numba", "numpy"])
def test_a_weight_is_the_power_of_a_likelihood(iris, engine):
    """ln of the density of a position: Σ_i w_i ln Pr(y_i | x_i), and the prior."""
    X, y = iris
    weight = np.random.default_rng(0).gamma(2.0, size=150).round(2)
    settings = LearnedDirections()
    prior, seed = settings.prior(3, 4, 0.02), np.random.SeedSequence(0)
    tasks = [make_class_task(X, y, w, Source(seed), engine=engine) for w in (weight, 2 * weight)]
    q = class_start(tasks[0].Z, tasks[0].seen, prior, np.random.default_rng(0))
    one, two = (density_of(task.prepared(np.float32), prior, 4)(q, np.empty_like(q)) for task in tasks)
    own = probabilities(tasks[0].unpacked(q[None, None], prior), tasks[0].Z)[0, 0]
    seen = tasks[0].seen
    expected = seen.weights @ np.log(own[np.arange(len(own)), seen.codes])
    assert two - one == pytest.approx(expected, rel=1e-5)
    assert seen.weights.sum() == pytest.approx(weight.sum())


@pytest.mark.parametrize("inference", ["em", SHORT])
def test_weights_of_classes_move_predictions_as_repeated_rows_do(quiet, inference):
    """Noise: predictions are shares, which balanced classes have in equal parts."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), np.array(["few"] * 40 + ["many"] * 160)
    model = PlackettLuceClassifier(inference, random_state=0)
    plain = model.fit(X, y).predict_proba(X)[:, 0]
    balanced = model.set_params(class_weight="balanced").fit(X, y).predict_proba(X)[:, 0]
    assert abs(plain.mean() - 0.2) < 0.05 and abs(balanced.mean() - 0.5) < 0.05
    stated = model.set_params(class_weight={"few": 2.5, "many": 0.625}).fit(X, y).predict_proba(X)[:, 0]
    np.testing.assert_array_equal(stated, balanced)
    weighted = clone(model).set_params(class_weight=None)
    weighted.fit(X, y, sample_weight=np.where(y == "few", 2.5, 0.625))
    np.testing.assert_array_equal(weighted.predict_proba(X)[:, 0], balanced)
    counts = np.where(np.arange(200) % 2, 2, 1)
    rows = np.repeat(np.arange(200), counts)
    told = clone(model).set_params(class_weight="balanced").fit(X, y, sample_weight=counts).predict_proba(X)
    again = clone(model).set_params(class_weight="balanced").fit(X[rows], y[rows]).predict_proba(X)
    np.testing.assert_array_equal(told, again)


def test_weights_that_differ_by_many_orders_of_magnitude(iris, quiet):
    X, y = iris
    weight = np.where(np.arange(150) % 3, 1.0, 1e-25)
    near = PlackettLuceClassifier(SHORT, random_state=0).fit(X, y, sample_weight=weight).predict_proba(X)
    assert np.isfinite(near).all() and (near.argmax(axis=1) == y).mean() > 0.9


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
    assert clf.relevance_.iloc[2:4].min() > 2 * clf.relevance_.iloc[4:].max()


def test_summary_shows_the_components_of_one_draw(fitted):
    table = fitted.summary()
    assert list(table) == ["component", "share", "votes for", "vote", "direction"]
    assert table["component"].is_unique and table["share"].sum() == pytest.approx(1, abs=0.01)
    assert table["share"].is_monotonic_decreasing
    draw, share = fitted.readable_draw_.draw, fitted.readable_draw_.share
    votes = fitted.posterior_.votes[draw].T[table["component"]]
    np.testing.assert_allclose(table["vote"], votes.max(axis=1), atol=6e-4)
    assert table["votes for"].tolist() == fitted.classes_[votes.argmax(axis=1)].tolist()
    assert set(table["component"]) == set(np.flatnonzero(share >= 5e-4))
    gates = fitted.features_
    beta = gates.along_covariates(gates.directions[draw])
    beta -= share @ beta  # a vector that all components have has no effect
    for component, words in zip(table["component"], table["direction"], strict=True):
        told = [part.split(" ") for part in words.replace("−", "-").removesuffix(", …").split(", ")]
        order = np.argsort(-np.abs(beta[component]))[:3]
        assert [name for name, _ in told] == [f"x{f}" for f in order]
        np.testing.assert_allclose([float(size) for _, size in told], beta[component][order], atol=0.006)


def test_columns_may_have_any_name(iris, quiet):
    X, y = iris
    names = ["share", "votes for", "gate", "component"]
    frame = pd.DataFrame(X, columns=names)
    clf = PlackettLuceClassifier(SHORT, features="learned", random_state=0).fit(frame, y)
    plain = PlackettLuceClassifier(SHORT, features="learned", random_state=0).fit(X, y)
    rename = dict(zip(["x0", "x1", "x2", "x3"], names, strict=True))
    for own, other in ((clf.summary(), plain.summary()), (explain(clf, frame.iloc[0]), explain(plain, X[0]))):
        column = "direction" if "direction" in other else "feature"
        other[column] = other[column].replace(rename, regex=True)
        pd.testing.assert_frame_equal(own, other, check_dtype=False)


def test_repr_and_html_speak_of_components_and_covariates(fitted, iris):
    text, html = repr(fitted), fitted._repr_html_()
    assert "3 classes, 12 learned directions of 4 covariates" in text
    error = f"{fitted.diagnostics_.error:.3f}"
    assert f"averaged probabilities are within ±{error} of" in text
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
    data, other = (clf.to_arviz(X, np.array(["a", "b", "c"])[iris[1]]) for clf in (same, fitted))
    for group in ("log_likelihood", "posterior_predictive", "observed_data"):
        np.testing.assert_array_equal(data[group]["y"].values, other[group]["y"].values)


@pytest.mark.parametrize("inference", [EM(tol=1e-6), Variational(tol=1e-4)])
def test_a_fitted_model_is_a_feature_map_for_other_inferences(fitted, iris, inference):
    X, y = iris
    clf = PlackettLuceClassifier(inference, shape=0.9, features=fitted.features_).fit(X, y)
    plain = PlackettLuceClassifier(inference, shape=0.9, features="exp").fit(X, y)
    assert clf.score(X, y) > plain.score(X, y) + 0.05
    assert clf.weights_.shape == fitted.weights_.shape


@pytest.mark.parametrize("wide", [100, 2500], ids=["principal axes", "covariates"])
def test_more_covariates_than_rows(quiet, monkeypatch, wide):
    monkeypatch.setattr("plackett.directions.class_task.MANY_COLUMNS", wide)
    rng = np.random.default_rng(0)
    y = np.arange(230) % 2
    X = rng.normal(size=(230, 200))
    X[:, :30] += y[:, None]
    clf = PlackettLuceClassifier(Gibbs(draws=150, tune=150, chains=2), random_state=0).fit(X[:30], y[:30])
    assert (clf.features_.rotation is not None) == (wide == 100)
    assert clf.score(X[30:], y[30:]) > 0.85
    assert clf.relevance_.shape == (200,)
    assert clf.relevance_.iloc[:30].mean() > 1.3 * clf.relevance_.iloc[30:].mean()


def test_few_real_covariates_are_found_among_more_than_rows(quiet):
    """Shrinkage by covariate survives where there are more of them than rows."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1200, 201))
    score = np.column_stack([2 * X[:, 0] - X[:, 1], 1.5 * X[:, 1] + X[:, 2], np.zeros(1200)])
    p = np.exp(score - logsumexp(score, axis=1, keepdims=True))
    y = (p.cumsum(axis=1) < rng.uniform(size=(1200, 1))).sum(axis=1)
    clf = PlackettLuceClassifier(Gibbs(draws=150, tune=150, chains=2), random_state=0).fit(X[:200], y[:200])
    assert set(clf.relevance().index[:2]) == {"x0", "x1"}
    loss = -np.log(clf.predict_proba(X[200:])[np.arange(1000), y[200:]]).mean()
    assert loss < 0.85  # on principal axes 0.98, by the probabilities that made the labels 0.69


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
    w, kappa = best_mixture(noise, sharpened(truth, 0.5, SMALLEST), codes, ones)
    assert w < 0.05 and kappa == pytest.approx(2, abs=0.2)


def test_variational_says_what_to_use(iris):
    with pytest.raises(ValueError, match="features='exp'.*inference='gibbs'"):
        PlackettLuceClassifier("variational").fit(*iris)


def test_a_limit_of_time_ends_the_chains(iris, quiet, seconds):
    X, y = iris
    settings = Gibbs(draws=300_000, tune=50, chains=2, max_seconds=1)
    clf = PlackettLuceClassifier(settings, random_state=0).fit(X, y)
    assert 50 <= clf.trace_.shape[1] < 70 and 0 < clf.posterior_.mode_weight < 1


def test_held_out_modes_end_with_their_share_of_the_time(iris, monkeypatch):
    averages = [np.full((len(iris[0]), 3), 1 / 3)]
    monkeypatch.setattr(stacking, "held_out_averages", lambda *_: (0, *averages, (0.0, 0.0)))
    clock = Clock(1e-9)
    clock.start()
    task = make_class_task(*iris, None, Source(np.random.SeedSequence(0)))
    task, held_out = stacking.choose_design(task, LearnedDirections(), 0.02, 100, clock)
    with pytest.raises(TimeIsUp):
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


@pytest.mark.usefixtures("interruptible")
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
        for dtype, lanes in ((np.float64, 16), (np.float32, 32)):
            panels = exponential.pack(X, codes, None, dtype)
            assert panels.weight.sum() == n
            assert len(panels.label) < n / lanes + 4


def test_the_default_goes_on_until_its_predictions_are_settled(iris):
    """By the stated standard, and no longer; other draws are exactly what is asked for."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        clf = PlackettLuceClassifier(random_state=0).fit(*iris)
    found = clf.diagnostics_
    assert found.grade == "settled" and found.error <= max(0.005, found.width / 4)
    assert 150 + 150 <= clf.n_iter_ < 150 + 1000
    assert "predictions are settled: averaged probabilities are within ±0.0" in repr(clf)
    assert clf.inference_.tune == 150 and clf.inference_.max_draws == 1000


def test_the_limit_of_work_is_kept_and_told():
    """Labels by chance of many columns: no prediction settles in a few iterations."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(19, 15)), rng.integers(4, size=19)
    with pytest.warns(
        ConvergenceWarning, match=r"predictions are not to be trusted: .*at most ±0.*Gibbs\(max_draws=\d+\)\.$"
    ):
        clf = PlackettLuceClassifier(Gibbs(chains=2, tune=2, max_draws=30), random_state=0).fit(X, y)
    assert clf.n_iter_ == 2 + 30 and clf.diagnostics_.grade == "not to be trusted"
    assert "predictions are not to be trusted" in repr(clf)


def test_two_seeds_predict_alike(quiet):
    X, y = load_wine(return_X_y=True)
    one, two = (PlackettLuceClassifier(random_state=seed).fit(X[::2], y[::2]) for seed in (1, 2))
    assert one.posterior_.power == two.posterior_.power and one.posterior_.mode_weight == two.posterior_.mode_weight
    difference = one.predict_proba(X[1::2]) - two.predict_proba(X[1::2])
    assert 0 < np.sqrt((difference**2).mean()) < 0.02


@pytest.mark.parametrize("decimals", [0, 1, 12])
def test_distinct_rows_are_those_of_numpy(decimals):
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.integers(3, size=500), rng.normal(size=(500, 3)).round(decimals), np.zeros(500)])
    table[:, 1:4] += 0.0  # no negative zeros
    table[::7] = table[0]
    rows, place = distinct(table)
    want, want_place = np.unique(table, axis=0, return_inverse=True)
    np.testing.assert_array_equal(rows, want)
    np.testing.assert_array_equal(place, want_place.ravel())


def test_rows_that_all_differ_are_merged_as_others_are():
    """Rows that differ in class and first covariate are only sorted; with one repetition all are compared."""
    made = np.random.default_rng(8)
    rows, codes, weight = made.normal(size=(60, 3)), made.integers(0, 3, 60), made.gamma(1.0, size=60)
    groups = made.integers(0, 5, 60)
    short = merge(rows, codes, weight, groups)
    again = np.append(np.arange(60), 7)
    long = merge(rows[again], codes[again], np.append(weight, 0.5), groups[again])
    place = int(np.flatnonzero((short[0] == rows[7]).all(axis=1))[0])
    for one, other in zip(short, long, strict=True):
        assert one.dtype == other.dtype and len(one) == len(other) == 60
    np.testing.assert_array_equal(short[0], long[0])
    np.testing.assert_array_equal(short[1], long[1])
    np.testing.assert_array_equal(short[3], long[3])
    np.testing.assert_allclose(long[2] - short[2], 0.5 * (np.arange(60) == place))


def test_shares_of_components_are_those_of_evenly_spaced_rows(monkeypatch):
    made = np.random.default_rng(9)
    rows = made.normal(size=(400, 2))
    labels = (rows[:, 0] + made.logistic(size=400) / 3 > 0).astype(int)
    whole, part = [], []
    for found, most in ((whole, 10**6), (part, 100)):
        monkeypatch.setattr("plackett.features.gate_summary.MOST", most)
        model = PlackettLuceClassifier(EM(), features=LearnedDirections(components=2)).fit(rows, labels)
        found += [model.readable_draw_.share, model.predict_proba(rows[:3])]
    np.testing.assert_array_equal(whole[1], part[1])
    assert whole[0].sum() == pytest.approx(1) and part[0].sum() == pytest.approx(1)
    assert not np.array_equal(whole[0], part[0])
    np.testing.assert_allclose(whole[0], part[0], atol=0.15)  # of 100 rows
