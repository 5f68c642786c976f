"""Laws of EM (section 3.2)."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from conftest import class_rows
from plackett import EM, PlackettLuceClassifier, regularization_path
from plackett.features import ExpFeatures
from plackett.inference.em import Climb, maximise_on_simplex, walk
from plackett.model.race import Weights


def statistics(clf, X, y):
    rows = class_rows("numpy", clf.features_.transform(X), y, len(clf.classes_))
    with np.errstate(divide="ignore"):
        return rows.expect(Weights.point(np.log(clf.weights_)))


@pytest.mark.parametrize("shape", [2.0, 1.0, 0.9, 0.5, 0.1])
@pytest.mark.parametrize("data", ["iris", "wine"])
def test_fixed_point_satisfies_equation_10(request, data, shape):
    """λ̄ (s + μ) = max(n + a − 1, 0) with μ = M(a−1), M the number of active weights."""
    X, y = request.getfixturevalue(data)
    clf = PlackettLuceClassifier(EM(tol=1e-13), shape=shape, features="exp").fit(X, y)
    stats, active = statistics(clf, X, y), clf.weights_ > 0
    mu = active.sum() * (shape - 1)
    residual = clf.weights_ * (stats.exposure + mu) - np.where(active, stats.wins + shape - 1, 0)
    assert np.abs(residual).max() < 1e-8
    assert (stats.wins[~active] <= 1 - shape + 1e-9).all()


@pytest.mark.parametrize("rate", [1.0, 7.0])
def test_scale_of_the_mode(iris, rate):
    """At a = 2 the mode has Λ = Kp(a−1)/b, and (10) holds literally there: 27.0 on Iris at b = 1."""
    X, y = iris
    clf = PlackettLuceClassifier("em", shape=2.0, rate=rate, features="exp").fit(X, y)
    mass = clf.weights_.size * (2.0 - 1) / rate
    weights = clf.weights_ * mass
    rows = class_rows("numpy", clf.features_.transform(X), y, 3)
    stats = rows.expect(Weights.point(np.log(weights)))
    np.testing.assert_allclose(weights, (2.0 - 1 + stats.wins) / (rate + stats.exposure), atol=1e-8)
    if rate == 1.0:
        assert mass == pytest.approx(27.0)

    def loss(theta):
        s = rows.expect(Weights.point(theta.reshape(3, 9)))
        lam = np.exp(theta.reshape(3, 9))
        return -(s.value + theta.sum() - rate * lam.sum()), -(s.wins + 1 - lam * (s.exposure + rate)).ravel()

    best = minimize(
        loss,
        np.zeros(27),
        jac=True,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
    )
    assert np.exp(best.x).sum() == pytest.approx(mass, rel=1e-5)
    np.testing.assert_allclose(np.exp(best.x).reshape(3, 9), weights, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("shape", [2.0, 1.0, 0.7, 0.3, 0.01])
def test_objective_never_falls_between_prunings(wine, shape, accelerate):
    X, y = wine
    rows = class_rows("numba", ExpFeatures().fit_transform(X), y, 3)
    start = EM().path(rows, walk(shape)[:-1])[-1].log_weights if shape < 1 else np.zeros((3, 27))
    climb = Climb(rows, shape, start, accelerate)
    previous = climb.ascent.value
    for _ in range(300):
        gain = climb.advance()
        if np.isfinite(gain):
            assert climb.ascent.value >= previous - 1e-9
        previous = climb.ascent.value
    assert np.isfinite(previous)


@pytest.mark.parametrize("data", ["iris", "wine"])
def test_trace_never_falls(request, data):
    X, y = request.getfixturevalue(data)
    for shape in (2.0, 1.0, 0.5, 0.05):
        trace = PlackettLuceClassifier("em", shape=shape, features="exp").fit(X, y).trace_
        assert np.diff(trace).min() > -1e-9


def test_trace_is_the_penalised_likelihood(iris):
    X, y = iris
    clf = PlackettLuceClassifier("em", shape=0.8, features="exp").fit(X, y)
    likelihood = np.log(clf.predict_proba(X)[np.arange(len(y)), y]).sum()
    penalty = (0.8 - 1) * np.log(clf.weights_[clf.weights_ > 0]).sum()
    assert clf.trace_[-1] == pytest.approx(likelihood + penalty, abs=1e-9)


def test_acceleration_and_plain_end_together(wine):
    X, y = wine
    for shape in (2.0, 0.9):
        fast = PlackettLuceClassifier(EM(tol=1e-9), shape=shape, features="exp").fit(X, y)
        plain = PlackettLuceClassifier(EM(tol=1e-9, accelerate=False, max_iter=50000), shape=shape, features="exp").fit(
            X, y
        )
        assert fast.n_iter_ < plain.n_iter_
        np.testing.assert_allclose(fast.weights_, plain.weights_, atol=1e-4)
        assert fast.trace_[-1] >= plain.trace_[-1] - 1e-7


def test_zeros_are_exact_and_every_class_keeps_a_weight(wine):
    X, y = wine
    for shape in (0.9, 0.5, 0.1, 1e-3):
        weights = PlackettLuceClassifier("em", shape=shape, features="exp").fit(X, y).weights_
        assert (weights == 0).sum() > 60
        assert (weights > 0).any(axis=1).all()
        assert weights.sum() == pytest.approx(1)


def test_small_shape_on_few_rows_kills_no_class():
    """n_k/p < 1 − a: from equal weights the first step would prune whole classes."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(24, 30)), np.repeat([0, 1, 2], [15, 5, 4])
    clf = PlackettLuceClassifier("em", shape=0.1, features="exp").fit(X, y)
    assert (clf.weights_ > 0).any(axis=1).all()
    assert np.isfinite(clf.trace_).all()


def test_no_row_loses_its_last_weight():
    """Indicator features: rows stand on one or two weights, and pruning both would make a row impossible."""
    rng = np.random.default_rng(1)
    W = (rng.random((30, 12)) < 0.12).astype(float)
    W[W.sum(axis=1) == 0, 0] = 1
    y = rng.integers(2, size=30)
    from sklearn.preprocessing import FunctionTransformer

    clf = PlackettLuceClassifier("em", shape=0.05, features=FunctionTransformer()).fit(W, y)
    own = clf.predict_proba(W)[np.arange(30), y]
    assert (own > 0).all() and np.isfinite(clf.trace_).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("tiny", [1e-309, 1e-200, 1e-3])
def test_m_step_with_a_claim_that_is_hardly_there(tiny):
    """Where the feature with the smallest exposure claims next to nothing, Newton's method begins next to zero."""
    claims, exposure = np.array([[tiny, 0.3, 0.0], [0.0, 0.1, 1.2]]), np.tile([0.5, 1.0, 2.0], (2, 1))
    weights = maximise_on_simplex(claims, exposure)
    used = claims > 0
    mu = claims[used] / weights[used] - exposure[used]
    np.testing.assert_allclose(mu, mu[0], rtol=1e-12)
    assert weights.sum() == pytest.approx(1)


def test_m_step_maximises_on_the_simplex():
    rng = np.random.default_rng(0)
    claims, exposure = rng.gamma(1, size=(3, 4)) * (rng.random((3, 4)) < 0.7), rng.gamma(2, 5, size=(3, 4))
    weights = maximise_on_simplex(claims, exposure)
    assert weights.sum() == pytest.approx(1)

    def objective(w):
        return (claims[claims > 0] * np.log(w[claims > 0])).sum() - (w * exposure).sum()

    best = objective(weights)
    for _ in range(200):
        other = weights * np.exp(0.05 * rng.normal(size=weights.shape))
        assert objective(other / other.sum()) <= best + 1e-12


def test_large_shape_gives_equal_probabilities(iris):
    X, y = iris
    clf = PlackettLuceClassifier("em", shape=1e8, features="exp").fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X), 1 / 3, atol=1e-5)


def test_label_names_do_not_matter(iris):
    X, y = iris
    plain = PlackettLuceClassifier("em", shape=0.9, features="exp").fit(X, y)
    renamed = PlackettLuceClassifier("em", shape=0.9, features="exp").fit(X, np.array(["z", "m", "a"])[y])
    assert list(renamed.classes_) == ["a", "m", "z"]
    np.testing.assert_allclose(plain.weights_, renamed.weights_[::-1], atol=1e-7)


@pytest.mark.long
def test_learned_shape_is_the_best_of_its_path(iris):
    X, y = iris
    clf = PlackettLuceClassifier("em", features="exp").fit(X, y)
    assert clf.cv_log_loss_[clf.shape_] == min(clf.cv_log_loss_.values())
    shuffled = np.random.default_rng(0).permutation(len(y))
    again = PlackettLuceClassifier("em", features="exp").fit(X[shuffled], y[shuffled])
    np.testing.assert_allclose(again.weights_, clf.weights_, atol=1e-7)


def test_not_converged_says_what_to_do(wine):
    with pytest.warns(ConvergenceWarning, match=r"EM\(max_iter"):
        PlackettLuceClassifier(EM(max_iter=3), shape=1, features="exp").fit(*wine)


def test_path_is_sparser_and_matches_single_fits(iris):
    X, y = iris
    path = regularization_path(X, y, shapes=[0.3, 2, 1, 0.7], inference=EM(tol=1e-12))
    assert path.shapes.tolist() == [2, 1, 0.7, 0.3] and path.weights.shape == (4, 3, 9)
    np.testing.assert_allclose(
        path.weights[0], PlackettLuceClassifier(EM(tol=1e-12), shape=2, features="exp").fit(X, y).weights_, atol=1e-5
    )
    active = (path.weights > 0).sum(axis=(1, 2))
    assert (np.diff(active) <= 0).all() and active[-1] < 9


@pytest.mark.brief("variational")
@pytest.mark.parametrize("inference", ["variational", "gibbs"])
def test_path_of_means_and_medians(iris, quiet, inference):
    X, y = iris
    mean, median = (
        regularization_path(X, y, shapes=[1, 0.05], inference=inference, statistic=s, random_state=0)
        for s in ("mean", "median")
    )
    np.testing.assert_allclose(mean.weights.sum(axis=(1, 2)), 1)
    assert ((median.weights < 1e-4).sum(axis=(1, 2)) >= (mean.weights < 1e-4).sum(axis=(1, 2))).all()
    assert (median.weights[1] < 1e-4).sum() > (median.weights[0] < 1e-4).sum()
    with pytest.raises(ValueError, match="statistic must be"):
        regularization_path(X, y, inference=inference, statistic="mode")
