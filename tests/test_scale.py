"""Scales of covariates for learned directions, groups of rows held out together, and the memory of many rows."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from plackett import EM, Gibbs, PlackettLuceClassifier, load
from plackett.directions import LearnedDirections
from plackett.directions.class_task import make_class_task
from plackett.directions.stacking import choose_design
from plackett.features.normal_scores import MOST, knots_of, normal_scores
from plackett.inference.driver import Source
from plackett.inference.folds import grouped_folds
from plackett.inference.limits import Clock

SHORT = Gibbs(draws=30, tune=60, chains=2)


def test_scores_are_normal_quantiles_of_mean_ranks():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.exponential(size=90), rng.integers(0, 4, 90), np.full(90, 7.0)])
    knots = knots_of(X, np.ones(90))
    for f, x in enumerate(X.T):
        np.testing.assert_allclose(normal_scores(X, knots)[:, f], norm.ppf((rankdata(x) - 0.5) / 90), atol=1e-12)
    far = normal_scores(np.array([[1e300, -5.0, 8.0], [-1.0, 1.5, 6.0]]), knots)
    assert far[0, 0] == normal_scores(X, knots)[:, 0].max() and far[1, 0] == normal_scores(X, knots)[:, 0].min()
    assert knots[1, 1, 1] < far[1, 1] < knots[1, 1, 2]


def test_a_weight_of_two_is_two_rows_for_the_scores():
    x = np.array([[1.0], [2.0], [5.0]])
    np.testing.assert_array_equal(knots_of(x, np.array([1.0, 2.0, 1.0])), knots_of(x[[0, 1, 1, 2]], np.ones(4)))


def test_many_values_are_thinned_and_still_followed():
    x = np.random.default_rng(0).exponential(size=(5000, 1))
    knots = knots_of(x, np.ones(5000))
    assert knots.shape == (2, 1, MOST)
    exact = norm.ppf((rankdata(x[:, 0]) - 0.5) / 5000)
    inner = np.abs(exact) < 2
    np.testing.assert_allclose(normal_scores(x, knots)[inner, 0], exact[inner], atol=0.02)


def twisted(n=240, seed=0):
    """Classes that depend on z, of which only exp(3z) is seen, or z itself."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 2))
    y = (1.5 * Z[:, 0] - Z[:, 1] + rng.logistic(size=n) > 0).astype(np.intp)
    return Z, y


@pytest.mark.parametrize("seen", ["exp", "straight"])
def test_held_out_rows_choose_the_scale(seen):
    Z, y = twisted()
    X = np.exp(3 * Z) if seen == "exp" else Z**3 / 10 + Z
    task = make_class_task(X, y, None, Source(np.random.SeedSequence(0)))
    chosen, held_out = choose_design(task, LearnedDirections(components=1), 0.02, 60, Clock())
    assert (chosen.design.knots is not None) == (seen == "exp")
    assert held_out.average.shape == (len(chosen.Z), 2) and len(held_out.folds) == 10
    np.testing.assert_allclose(held_out.average.sum(axis=1), 1)


def test_a_model_on_scores_predicts_is_saved_and_explained(tmp_path, quiet):
    from plackett import explain

    Z, y = twisted()
    X = np.exp(3 * Z)
    clf = PlackettLuceClassifier(SHORT, features="learned", random_state=0).fit(X[:160], y[:160])
    assert clf.features_.knots is not None
    assert clf.score(X[160:], y[160:]) > 0.65
    assert clf.relevance_.shape == (2,) and (clf.relevance_ > 0).all()
    clf.save(tmp_path / "m.plk")
    same = load(tmp_path / "m.plk")
    np.testing.assert_array_equal(same.predict_proba(X), clf.predict_proba(X))
    assert len(explain(clf, X[0])) > 0
    lifted = PlackettLuceClassifier("variational", shape=0.9, features=clf.features_).fit(X, y)
    assert lifted.score(X, y) > 0.65


def test_scores_keep_rows_weights_and_order():
    rng = np.random.default_rng(0)
    X, y = rng.exponential(size=(40, 3)), rng.integers(0, 2, 40)
    task = make_class_task(X, y, None, Source(np.random.SeedSequence(0)))
    other = task.reader.with_scores(task)
    np.testing.assert_array_equal(other.seen.codes, task.seen.codes)
    np.testing.assert_array_equal(np.argsort(other.Z, axis=0), np.argsort(task.Z, axis=0))
    np.testing.assert_allclose(other.Z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(other.Z.std(axis=0), 1, rtol=1e-12)


def test_rows_of_a_group_are_held_out_together():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(30), 4)
    X, y = rng.integers(0, 3, (120, 2)).astype(float), rng.integers(0, 3, 120)
    task = make_class_task(X, y, None, Source(np.random.SeedSequence(0)), groups=groups)
    assert task.seen.weights.sum() == 120
    fold = grouped_folds(task.Z, task.seen.codes, task.seen.units, 5)
    assert fold.max() == 4
    for g in range(30):
        assert len(np.unique(fold[task.seen.units == g])) == 1
    task = make_class_task(X, y, None, Source(np.random.SeedSequence(0)))
    assert grouped_folds(task.Z, task.seen.codes, task.seen.units, 5).max() == 4


def test_groups_temper_what_rows_of_one_person_seem_to_say(quiet):
    """Persons with a taste of their own, and covariates that give them away: by rows, the model trusts itself."""
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(40), 6)
    X = rng.normal(size=(40, 3))[groups]
    y = (rng.random(40) < 0.5).astype(int)[groups]
    X = X + 0.01 * rng.normal(size=X.shape)
    model = PlackettLuceClassifier(SHORT, features="learned", random_state=0)
    loose = model.fit(X, y).predict_proba(X)
    tight = model.fit(X, y, groups=groups).predict_proba(X)
    assert np.log(tight.max(axis=1)).mean() < np.log(loose.max(axis=1)).mean() - 0.05


def test_groups_that_cannot_be_used(iris):
    X, y = iris
    with pytest.raises(ValueError, match="features='learned' with inference='gibbs'"):
        PlackettLuceClassifier(features="exp").fit(X, y, groups=np.arange(150))
    with pytest.raises(ValueError, match="features='learned' with inference='gibbs'"):
        PlackettLuceClassifier(EM(), features="learned").fit(X, y, groups=np.arange(150))
    with pytest.raises(ValueError, match="150 rows"):
        PlackettLuceClassifier(SHORT, features="learned").fit(X, y, groups=np.arange(149))
    with pytest.raises(ValueError, match="at least two"):
        PlackettLuceClassifier(SHORT, features="learned").fit(X, y, groups=np.zeros(150))


MEMORY = """
import warnings
from pathlib import Path
import numpy as np
from plackett import EM, Gibbs, PlackettLuceClassifier, Variational
from plackett.inference import paper_sampler

warnings.simplefilter("ignore")


def table(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    return X, (X[:, 0] + rng.logistic(size=n) > 0).astype(int) + (X[:, 1] > 1)


def peak():
    return 1024 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])


model = PlackettLuceClassifier({inference}, shape=0.5, features="exp", random_state=0)
X, y = table(6_000)
for large in (paper_sampler.LARGE, 0):  # load, or compile, what few and what many rows need
    paper_sampler.LARGE, usual = large, paper_sampler.LARGE
    model.fit(X, y).predict_proba(X)
    paper_sampler.LARGE = usual
before = peak()
X, y = table(200_000)
model.fit(X, y)
print((peak() - before) / X.nbytes)
if not isinstance(model.inference, EM):
    model.predict_proba(X[:30_000]), model.predict_interval(X[:5_000])
print((peak() - before) / X.nbytes)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of a process from /proc")
@pytest.mark.parametrize(
    "inference", ["Variational(tol=1e-2)", "EM(tol=1e-3)", "Gibbs(20, tune=0, chains=1, moves='none')"]
)
def test_a_fit_takes_four_times_the_memory_of_its_covariates(inference):
    """X itself, W, which has twice as many columns, and what a row more or less needs; predictions take no more."""
    code = MEMORY.format(inference=inference)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    fit, prediction = map(float, done.stdout.split())
    assert 2 < fit <= 4
    assert prediction <= 4
