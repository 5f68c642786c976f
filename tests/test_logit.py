"""SparseLogitClassifier: agreement with NUTS, scikit-learn manners, clear errors, files; its runs are elsewhere."""

import functools
import itertools
import pickle
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from benchmarks.nuts_logit import nuts_logit
from plackett import SparseLogitClassifier, datasets, load
from plackett.model.measures import plain_ess

SAMPLERS = ["holmes-held", "polya-gamma"]
SHORT = {"draws": 40, "tune": 40, "chains": 2, "random_state": 0}
X = np.random.default_rng(0).normal(size=(30, 2))
y = np.arange(30) % 3


def table(name):
    found = datasets.load(name)
    return found.X.to_numpy(dtype=float), found.y


def moments(x):
    """Means and deviations of the columns of draws (chain, draw, column), with their Monte-Carlo errors."""
    mean, sd = x.mean(axis=(0, 1)), x.std(axis=(0, 1))
    square = (x - mean) ** 2
    ess, ess_square = (plain_ess(np.moveaxis(v, 2, 0)) for v in (x, square))
    error_sd = square.std(axis=(0, 1)) / np.sqrt(ess_square) / (2 * sd)
    return np.concatenate([mean, sd]), np.concatenate([sd / np.sqrt(ess), error_sd])


@functools.cache
def nuts_moments(name, penalty):
    """Of coefficients and intercepts for the covariates as they came, and ln θ where it is sampled."""
    X, y = table(name)
    classes, codes = np.unique(y, return_inverse=True)
    beta, theta = nuts_logit((X - X.mean(axis=0)) / X.std(axis=0), codes, len(classes), penalty)
    coef = beta[..., 1:] / X.std(axis=0)
    intercept = beta[..., 0] - (coef * X.mean(axis=0)).sum(axis=-1)
    return moments(columns(coef, intercept, theta, penalty))


def columns(coef, intercept, theta, penalty):
    parts = [coef.reshape(*theta.shape, -1), intercept] + ([np.log(theta)[..., None]] if penalty is None else [])
    return np.concatenate(parts, axis=2)


@pytest.mark.long
@pytest.mark.parametrize("moves", ["none", "all"])
@pytest.mark.parametrize("name, penalty, draws", [("heart", None, 5_000), ("wine", 4.0, 6_000)])
def test_samplers_agree_with_each_other_and_with_nuts(quiet, name, penalty, draws, moves):
    """Wine at a fixed penalty: its classes are separable, and with θ sampled no chain mixes well enough to compare."""
    X, y = table(name)
    found = {"nuts": nuts_moments(name, penalty)}
    for sampler in SAMPLERS:
        clf = SparseLogitClassifier(sampler, penalty or "learn", draws=draws, chains=2, moves=moves, random_state=1)
        post = clf.fit(X, y).posterior_
        found[sampler] = moments(columns(post.coef[:, :, :-1], post.intercept[:, :, :-1], post.penalty, penalty))
    for a, b in itertools.combinations(found, 2):
        (mean_a, error_a), (mean_b, error_b) = found[a], found[b]
        z = np.abs(mean_a - mean_b) / np.hypot(error_a, error_b)
        assert z.max() < 4, (a, b, np.sort(z)[-4:])


@pytest.mark.filterwarnings("ignore:.*(R-hat|effective sample size|trusted|draws a chain)")
@parametrize_with_checks([SparseLogitClassifier(s, draws=100, tune=100, chains=2) for s in SAMPLERS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module", params=SAMPLERS)
def fitted(request):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 3)) * [1.0, 50.0, 0.01] + [0.0, 300.0, 5.0]
    y = np.array(["a", "b", "c"])[np.argmax((X[:, :1] * [2, 0, -2]) + rng.gumbel(size=(80, 3)), axis=1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SparseLogitClassifier(request.param, random_state=0, draws=300, tune=300, chains=2).fit(X, y), X, y


def test_fitted_attributes(fitted):
    clf, X, y = fitted
    post = clf.posterior_
    assert post.coef.shape == (2, 300, 3, 3) and post.intercept.shape == (2, 300, 3) and post.penalty.shape == (2, 300)
    assert not post.coef[:, :, -1].any() and not post.intercept[:, :, -1].any()
    assert clf.coef_.shape == (3, 3) and clf.intercept_.shape == (3,) and clf.n_iter_ == 600
    np.testing.assert_allclose(clf.penalty_, np.exp(np.log(post.penalty).mean()))
    assert clf.diagnostics_.coef.rhat.shape == (3, 3) and clf.diagnostics_.intercept.ess_bulk.shape == (3,)
    assert 0.99 < clf.diagnostics_.worst_rhat < 1.2 and 0 < clf.diagnostics_.smallest_ess < 1000
    scores = np.einsum("ij,cdkj->cdik", X, post.coef) + post.intercept[:, :, None]
    np.testing.assert_allclose(X @ clf.coef_.T + clf.intercept_, scores.mean(axis=(0, 1)), atol=1e-9)
    p = np.exp(scores) / np.exp(scores).sum(axis=3, keepdims=True)
    np.testing.assert_allclose(clf.predict_proba(X), p.mean(axis=(0, 1)), atol=1e-9)
    lower, upper = clf.predict_interval(X, prob=0.5)
    np.testing.assert_allclose(lower, np.quantile(p.reshape(600, -1, 3), 0.25, axis=0), atol=1e-9)
    np.testing.assert_allclose(upper, np.quantile(p.reshape(600, -1, 3), 0.75, axis=0), atol=1e-9)
    own = p[:, :, np.arange(len(y)), np.searchsorted(clf.classes_, y)]
    np.testing.assert_allclose(clf.trace_, np.log(own).sum(axis=2), rtol=1e-8)
    assert clf.score(X, y) > 0.6 and set(clf.predict(X)) <= {"a", "b", "c"}


def test_shrinkage_tells_signal_from_noise(fitted):
    clf, X, _ = fitted
    standardised = np.abs(clf.coef_[0] * X.std(axis=0))
    assert standardised[0] > 4 * standardised[1:].max()


def test_arviz(fitted):
    clf, X, y = fitted
    data = clf.to_arviz(X, y)
    assert data["posterior"]["coef"].dims == ("chain", "draw", "class", "feature")
    assert list(data["posterior"]["coef"].coords["class"].values) == ["a", "b", "c"]
    assert list(data["posterior"]["coef"].coords["feature"].values) == ["x0", "x1", "x2"]
    np.testing.assert_array_equal(data["posterior"]["penalty"].values, clf.posterior_.penalty)
    np.testing.assert_allclose(data["log_likelihood"]["y"].values.sum(axis=2), clf.trace_, rtol=1e-8)
    np.testing.assert_array_equal(clf.classes_[data["observed_data"]["y"].values], y)
    shown = data["posterior"]["probability"]
    near = clf.predict_proba(X[shown.coords["at"].values])
    np.testing.assert_allclose(shown.values.mean(axis=(0, 1)), near, rtol=1e-9)
    drawn = data["posterior_predictive"]["y"].values
    assert drawn.shape == (*clf.trace_.shape, len(y)) and set(np.unique(drawn)) == {0, 1, 2}
    assert "log_likelihood" not in str(clf.to_arviz())


def test_file_clone_and_pickle(fitted, tmp_path, quiet):
    clf, X, y = fitted
    clf.save(tmp_path / "m.plk")
    same = load(tmp_path / "m.plk")
    assert type(same) is SparseLogitClassifier and repr(same) == repr(clf)
    for copy in (same, pickle.loads(pickle.dumps(clf)), clone(clf).fit(X, y)):
        np.testing.assert_array_equal(copy.predict_proba(X), clf.predict_proba(X))
        np.testing.assert_array_equal(copy.trace_, clf.trace_)
        assert copy.diagnostics_.smallest_ess == clf.diagnostics_.smallest_ess


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_keep_their_names(quiet, frame):
    clf = SparseLogitClassifier(**SHORT).fit(frame(dict(zip(["age", "dose"], X.T, strict=True))), y)
    assert list(clf.feature_names_in_) == ["age", "dose"]
    assert list(clf.to_arviz()["posterior"]["coef"].coords["feature"].values) == ["age", "dose"]
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame(dict(zip("ab", X.T, strict=True))))


def test_grid_search(quiet):
    grid = GridSearchCV(SparseLogitClassifier(**SHORT), {"penalty": [0.5, 5.0], "sampler": SAMPLERS}, cv=2).fit(X, y)
    assert set(grid.best_params_) == {"penalty", "sampler"}
    assert grid.best_estimator_.penalty_ == pytest.approx(grid.best_params_["penalty"])


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_weights_order_threads_and_seed(quiet, sampler, monkeypatch):
    model = SparseLogitClassifier(sampler, **SHORT)
    weight = np.random.default_rng(0).integers(0, 3, size=30)
    weighted = model.fit(X, y, sample_weight=weight).posterior_.coef
    order = np.random.default_rng(1).permutation(weight.sum())
    repeated = np.repeat(X, weight, axis=0)[order], np.repeat(y, weight)[order]
    np.testing.assert_array_equal(weighted, model.fit(*repeated).posterior_.coef)
    assert not np.array_equal(weighted, model.set_params(random_state=1).fit(*repeated).posterior_.coef)
    many = model.posterior_.coef
    monkeypatch.setattr("plackett.engines.numba.cores", lambda: 1)
    np.testing.assert_array_equal(many, model.fit(*repeated).posterior_.coef)


def test_standardisation_is_undone(quiet):
    """Units of the covariates change nothing but the units of the coefficients; without it they do."""
    units = np.array([10.0, 0.1])
    model = SparseLogitClassifier(**SHORT)
    plain, scaled = model.fit(X, y).coef_, clone(model).fit(X * units + 7.0, y).coef_
    np.testing.assert_allclose(scaled * units, plain, rtol=1e-6)
    model.set_params(standardize=False)
    raw, other = model.fit(X, y), clone(model).fit(X * units, y)
    assert not np.allclose(other.coef_ * units, raw.coef_, rtol=0.1)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(model.fit(standard, y).coef_ / X.std(axis=0), plain, rtol=1e-6)


def test_constant_column_has_no_coefficient(quiet):
    clf = SparseLogitClassifier(**SHORT).fit(np.column_stack([X, np.full(30, 0.1)]), y)
    assert not clf.coef_[:, 2].any() and np.isfinite(clf.diagnostics_.worst_rhat)


def test_intercept_is_penalised_only_on_request(quiet):
    """Rare class, no covariate of use: a strong penalty pulls a penalised intercept to 0, and leaves another alone."""
    labels = np.r_[np.zeros(180), np.ones(20)]
    Z = np.random.default_rng(0).normal(size=(200, 1))
    model = SparseLogitClassifier(penalty=1e4, draws=300, tune=200, chains=2, random_state=0)
    assert model.fit(Z, labels).intercept_[0] == pytest.approx(np.log(9), abs=0.3)
    assert abs(model.set_params(penalize_intercept=True).fit(Z, labels).intercept_[0]) < 0.5


def test_fixed_penalty_and_prior(quiet):
    assert (SparseLogitClassifier(penalty=3, **SHORT).fit(X, y).posterior_.penalty == 3).all()
    weak, strong = (
        SparseLogitClassifier(penalty_prior=prior, **SHORT).fit(X, y).penalty_ for prior in ((2, 10), (2, 0.001))
    )
    assert weak < 2 < strong


def test_more_columns_than_rows(quiet):
    rng = np.random.default_rng(0)
    wide, labels = rng.normal(size=(20, 200)), np.arange(20) % 2
    wide[:, 0] += 4.0 * labels
    clf = SparseLogitClassifier(**SHORT).fit(wide, labels)
    assert clf.coef_.shape == (2, 200) and clf.coef_[0, 0] < -2 * np.abs(clf.coef_[0, 1:]).mean()
    assert clf.score(wide, labels) == 1.0


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_extreme_but_legal_data(quiet, sampler):
    wild = np.column_stack([X * 1e6, np.full(30, 7.0), 1e-9 * X[:, 0]])
    wild[0, 0] = 1e12
    clf = SparseLogitClassifier(sampler, **SHORT).fit(wild, y)
    p = clf.predict_proba(np.vstack([wild, 1e300 * np.ones(4), -1e300 * np.ones(4)]))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert SparseLogitClassifier(sampler, **SHORT).fit(X[:2], ["a", "b"]).predict_proba(X).shape == (30, 2)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinite(bad, quiet):
    broken = X.copy()
    broken[3, 1] = bad
    with pytest.raises(ValueError, match="NaN|infinity"):
        SparseLogitClassifier().fit(broken, y)
    with pytest.raises(ValueError, match="NaN|infinity"):
        SparseLogitClassifier(**SHORT).fit(X, y).predict(broken)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"y": np.zeros(30)}, "at least two classes.*one class only"),
        ({"X": X[:1], "y": y[:1]}, "two classes|n_samples"),
        ({"X": X[:0], "y": y[:0]}, "0 sample"),
        ({"y": y[:20]}, "inconsistent numbers of samples"),
        ({"y": np.linspace(0, 1, 30)}, "Unknown label type|continuous"),
        ({"y": None}, "requires y"),
        ({"sample_weight": np.where(y == 1, 0, 1)}, "class .*1.* has total weight 0"),
        ({"sample_weight": -np.ones(30)}, "non-negative"),
        ({"sample_weight": np.ones(5)}, "sample_weight"),
        ({"sample_weight": np.full(30, 0.5)}, r"SparseLogitClassifier takes whole numbers.*0\.5 in row 0"),
    ],
)
def test_bad_data(change, message):
    with pytest.raises(ValueError, match=message):
        SparseLogitClassifier().fit(**{"X": X, "y": y, **change})


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"sampler": "gibbs"}, "sampler must be one of .*'holmes-held'.* got 'gibbs' instead"),
        ({"sampler": None}, "sampler must be one of"),
        ({"moves": "some"}, "moves must be one of .* got 'some' instead"),
        ({"penalty": 0}, "penalty must be a positive number or 'learn', got 0 instead"),
        ({"penalty": "many"}, "penalty must be a positive number or 'learn', got 'many' instead"),
        ({"penalty_prior": 2.0}, r"penalty_prior must be the two numbers .* got 2\.0 instead"),
        ({"penalty_prior": (1.0, -1.0)}, r"rate in penalty_prior must be a positive number, got -1\.0 instead"),
        ({"intercept_scale": np.inf}, "intercept_scale must be a positive number"),
        ({"draws": 0}, "draws must be a whole number of at least 1, got 0"),
        ({"tune": -1}, "tune must be a whole number of at least 0"),
        ({"chains": 1.5}, "chains must be a whole number"),
        ({"target_ess": -1}, "target_ess must be a non-negative number"),
        ({"max_draws": 0, "target_ess": 9}, "max_draws must be a whole number of at least 1"),
        ({"max_seconds": "long"}, "max_seconds must be a non-negative number"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        SparseLogitClassifier(**settings).fit(X, y)


def test_other_columns_and_prob_at_predict(quiet):
    clf = SparseLogitClassifier(**SHORT).fit(X, y)
    with pytest.raises(ValueError, match="3 features.*expecting 2"):
        clf.predict(np.ones((4, 3)))
    with pytest.raises(ValueError, match="prob must be"):
        clf.predict_interval(X, prob=1.5)


def test_the_better_sampler_is_used_where_it_is_installed(monkeypatch, quiet, tmp_path):
    made = SparseLogitClassifier(**SHORT).fit(X, y)
    assert made.sampler == "auto" and made.sampler_ == made._settings()["sampler"] == "polya-gamma"
    made.save(tmp_path / "m")
    monkeypatch.setitem(sys.modules, "polyagamma", None)
    kept = load(tmp_path / "m")
    assert "polya-gamma, 2 chains" in repr(kept) and kept._settings()["sampler"] == "polya-gamma"
    clf = SparseLogitClassifier(**SHORT).fit(X, y)
    assert clf.sampler_ == "holmes-held" and "holmes-held, 2 chains" in repr(clf)
    same = SparseLogitClassifier("holmes-held", **SHORT).fit(X, y)
    np.testing.assert_array_equal(clf.posterior_.coef, same.posterior_.coef)


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "polyagamma", None)
    with pytest.raises(ImportError, match=r"pip install 'plackett\[logit\]'.*holmes-held"):
        SparseLogitClassifier("polya-gamma").fit(X, y)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_covariates_too_large_without_standardisation(sampler, quiet):
    model = SparseLogitClassifier(sampler, standardize=False, **SHORT)
    with pytest.raises(ValueError, match="too large.*standardize=True"):
        model.fit(X * 1e200, y)
    assert np.isfinite(model.fit(X * 1e11, y).predict_proba(X)).all()


def test_poor_mixing_is_reported(iris):
    advised = r"not to be trusted.*Try SparseLogitClassifier\(\w+=\d+\), or .*sampler='polya-gamma', or a fixed penalty"
    with pytest.warns(UserWarning, match=advised):
        SparseLogitClassifier("holmes-held", draws=30, tune=2, random_state=2).fit(*iris)


def test_progress_is_shown(capsys, quiet):
    SparseLogitClassifier("holmes-held", progress=True, **SHORT).fit(X, y)
    assert "holmes-held, 2 chains" in capsys.readouterr().err
