"""The weighted likelihood bootstrap: modes under random weights of rows, rankings and situations."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from plackett import (
    EM,
    Bootstrap,
    ChoiceSets,
    Gibbs,
    PlackettLuceChooser,
    PlackettLuceClassifier,
    PlackettLuceRanker,
    explain,
    load,
)
from plackett.compute.blas import one_blas_thread
from plackett.data.observations import Observations
from plackett.directions import LearnedDirections, climbers, weighted_modes
from plackett.directions import task as tasks
from plackett.directions.class_task import make_class_task
from plackett.directions.climbers import Climber
from plackett.directions.density import density_of
from plackett.directions.map import ascend, path, pure_votes
from plackett.directions.prior import size
from plackett.directions.situation_task import make_situation_task
from plackett.directions.task import random_weights
from plackett.directions.weighted_modes import choose_scale, draw_modes
from plackett.inference.driver import Source
from plackett.inference.limits import Clock
from plackett.model.verdict import PROBABILITIES
from plackett.responses import make_response
from plackett.simulate import choices, rankings

ONE = LearnedDirections(components=1)
SHORT = Bootstrap(draws=12, max_iter=10)
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = ((X[:, 0] + X[:, 1] ** 2 + rng.normal(size=60)) > 1).astype(int)
PERSONS = rng.normal(size=(40, 2))
R = rankings(PERSONS @ rng.normal(size=(2, 3)), items=["a", "b", "c"], rng=0)
TRIPS = pd.DataFrame({f"{what}_{mode}": rng.gamma(4.0, size=40) for what in ("cost", "time") for mode in "abc"})
SETS = ChoiceSets.from_wide(TRIPS, alternatives=list("abc"), attributes=["cost", "time"])
CHOSEN = choices(SETS, -SETS.values @ [0.5, 0.3], rng=0)
FACES = {
    PlackettLuceClassifier: ((X, y), X),
    PlackettLuceRanker: ((PERSONS, R), PERSONS),
    PlackettLuceChooser: ((SETS, CHOSEN), SETS),
}
every_model = pytest.mark.parametrize("model", FACES, ids=lambda model: model.__name__)


def class_task(X, y, counts=None, groups=None, seed=0):
    return make_class_task(X, y, counts, Source(np.random.SeedSequence(seed)), groups)


def ranking_task(copies=1):
    some = np.repeat(np.arange(len(R)), copies)
    ranked, persons = R[some], PERSONS[some]
    seen = Observations.of_rankings(ranked.outcomes, ranked.item, make_response("ranking"), len(R.items))
    return make_situation_task([persons], seen, Source(np.random.SeedSequence(0)), owned=True)


def log_density(task, prior, q):
    gradient = np.empty_like(q)
    return density_of(task.prepared(np.float64), prior, task.n_columns)(q, gradient), gradient


def fitted(model, *given, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model(SHORT, features=ONE, random_state=0, **settings).fit(*given)


def test_weights_of_single_rows_are_those_of_counts_of_one():
    """Rows that count once take a shorter way to the same numbers."""
    task = class_task(X, y)
    assert (task.seen.weights == 1).all()
    gamma = np.random.default_rng(3).standard_gamma(task.seen.weights)
    gamma *= len(gamma) / gamma.sum()
    np.testing.assert_array_equal(random_weights(task.seen, np.random.default_rng(3)), gamma)


def test_held_out_modes_take_half_of_the_steps(monkeypatch):
    taken = []
    monkeypatch.setattr(climbers, "ascend", lambda *given: taken.append(given[5]) or ascend(*given))
    fitted(PlackettLuceClassifier, X, y)
    assert set(taken) == {SHORT.max_iter, SHORT.max_iter // 2}
    assert taken.count(SHORT.max_iter) == SHORT.draws


def test_weights_vary_about_the_counts_and_keep_their_sum():
    counts = np.array([1.0, 2.0, 0.5, 4.0] * 50)
    seen = Observations.of_classes(np.arange(200) % 2, 2, counts)
    found = np.array([random_weights(seen, np.random.default_rng(seed)) for seed in range(400)])
    np.testing.assert_allclose(found.sum(axis=1), counts.sum())
    np.testing.assert_allclose(found.mean(axis=0), counts, atol=5 * np.sqrt(counts.max() / 400))
    ratio = found.var(axis=0).reshape(50, 4).mean(axis=0) / counts[:4]  # Gam(c, 1) has the variance c
    np.testing.assert_allclose(ratio, 1, atol=0.1)


def test_rows_of_a_unit_share_their_weight():
    units = np.arange(60) % 7
    seen = Observations.of_classes(y, 2, None, units)
    found = random_weights(seen, np.random.default_rng(0))
    assert len(np.unique(found.round(12))) == 7
    for unit in range(7):
        assert np.ptp(found[units == unit]) < 1e-12


def test_a_weight_of_two_is_two_rows():
    task, twice = class_task(X, y), class_task(np.tile(X, (2, 1)), np.tile(y, 2))
    prior = task.reader.prior(task, ONE, 0.02)
    q = np.random.default_rng(0).normal(size=size(prior, task.n_columns))
    doubled = replace(task, seen=task.seen.weighted(2 * task.seen.weights))
    for one, other in zip(log_density(doubled, prior, q), log_density(twice, prior, q), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_weight_of_two_is_two_rankings():
    task, twice = ranking_task(), ranking_task(copies=2)
    prior = task.reader.prior(task, ONE, 0.02)
    q = np.random.default_rng(0).normal(size=size(prior, task.n_columns))
    doubled = replace(task, seen=task.seen.weighted(2 * task.seen.weights))
    for one, other in zip(log_density(doubled, prior, q), log_density(twice, prior, q), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


@pytest.mark.parametrize("make", [lambda: class_task(X, y), ranking_task], ids=["classes", "rankings"])
def test_equal_weights_and_a_prior_about_zero_give_the_mode_of_em(make, monkeypatch):
    monkeypatch.setattr(tasks, "random_weights", lambda seen, rng: seen.weights)
    task = make()
    prior = task.reader.prior(task, ONE, 0.02)
    climber = Climber(task, prior, np.random.SeedSequence(3), 500, lambda: False)
    climber.tilt[:] = 0.0
    monkeypatch.setattr(climbers, "TOLERANCE", 1e-10)
    monkeypatch.setattr(climbers, "ascend", lambda *given: ascend(*given[:-1]))  # scales s stay at 1, as in EM
    found = climber.to(1.0)
    ((mode, *_),) = path(task, prior, [1.0], 500, 1e-12)
    every = np.arange(len(task.seen))
    one, other = (task.predicted(positions, prior, every) for positions in (found, mode[None]))
    np.testing.assert_allclose(one, other, atol=2e-4)  # passes of classes are in floats


def test_draws_of_one_component_agree_with_the_normal_approximation():
    """Log-odds vary as the inverse Hessian says: the posterior is nearly normal with many rows."""
    made = np.random.default_rng(5)
    Z = made.normal(size=(300, 2))
    labels = (Z @ [1.0, -0.7] + made.logistic(size=300) > 0).astype(int)
    task = class_task(Z, labels)
    prior, scale, draws = task.reader.prior(task, ONE, 0.02), 0.35, 200
    with one_blas_thread():
        positions, _ = draw_modes(task, task.prepared(task.precision), prior, scale, draws, 100, Clock())
    density = density_of(task.prepared(np.float64), prior, 2)
    start = np.zeros(size(prior, 2))
    mode, *_ = ascend(task, prior, density, start, scale, 500, 1e-13, None, None, True)
    free = np.flatnonzero(~pure_votes(mode, prior, 2))
    free = free[free < len(mode) - 2]  # σ stays where it is
    hessian = np.empty((len(free), len(free)))
    for column, i in enumerate(free):
        step = np.zeros_like(mode)
        step[i] = 1e-4
        slopes = (log_density(task, prior, mode + sign * step)[1][free] for sign in (1, -1))
        hessian[:, column] = -np.subtract(*slopes) / 2e-4
    some = np.linspace(0, len(task.seen) - 1, 12).astype(int)

    def log_odds(position):
        p = task.predicted(position[None], prior, some)
        return np.log(p[:, 1] / p[:, 0])

    slopes = np.array([
        (log_odds(mode + 1e-4 * row) - log_odds(mode - 1e-4 * row)) / 2e-4 for row in np.eye(len(mode))[free]
    ])  # fmt: skip
    expected = np.sqrt(np.einsum("ir,ij,jr->r", slopes, np.linalg.inv(hessian), slopes))
    found = np.array([log_odds(position) for position in positions]).std(axis=0)
    np.testing.assert_allclose(found / expected, 1, atol=5 / np.sqrt(2 * draws))  # five standard errors
    centre = np.array([log_odds(position) for position in positions]).mean(axis=0)
    assert np.abs(centre - log_odds(mode)).max() < 0.5 * expected.max()


@every_model
def test_every_face_has_intervals_and_independent_draws(model, tmp_path):
    given, asked = FACES[model]
    clf = fitted(model, *given)
    found = clf.predict_proba(asked)
    lower, upper = clf.predict_interval(asked)
    assert (lower <= found + 1e-12).all() and (found <= upper + 1e-12).all() and (upper > lower).any()
    assert clf.trace_.shape == (1, 12) and np.isfinite(clf.trace_).all()
    assert clf.diagnostics_.independent and "12 independent draws" in repr(clf.diagnostics_)
    assert "12 independent draws" in repr(clf) and "bootstrap" in repr(clf) and clf.notes_ == []
    clf.save(tmp_path / "model.plk")
    same = load(tmp_path / "model.plk")
    np.testing.assert_array_equal(same.predict_proba(asked), found)
    assert same.diagnostics_.independent and same.diagnostics_.largest_error == clf.diagnostics_.largest_error


def test_the_error_of_averages_is_that_of_independent_draws():
    clf = fitted(PlackettLuceClassifier, X, y)
    task = class_task(X, y)
    probability = task.reader.probed(task, clf.posterior_, PROBABILITIES)
    errors = probability[0].std(axis=0, ddof=1) / np.sqrt(12)
    assert clf.diagnostics_.largest_error == pytest.approx(errors.max())
    assert clf.diagnostics_.error == pytest.approx(np.sqrt((errors**2).mean()))


@pytest.mark.brief(1)
@every_model
def test_a_seed_gives_the_same_draws_whatever_the_threads(model, monkeypatch):
    given, asked = FACES[model]
    found = []
    for n in (1, 3):
        monkeypatch.setattr(weighted_modes, "cores", lambda n=n: n)
        found.append(fitted(model, *given).predict_proba(asked))
    np.testing.assert_array_equal(*found)


def test_the_order_of_rows_does_not_matter():
    order = np.random.default_rng(2).permutation(len(X))
    one, other = fitted(PlackettLuceClassifier, X, y), fitted(PlackettLuceClassifier, X[order], y[order])
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    weighted = PlackettLuceClassifier(SHORT, features=ONE, random_state=0)
    one = weighted.fit(X, y, sample_weight=np.full(60, 2.0)).predict_proba(X)
    other = weighted.fit(np.repeat(X, 2, axis=0), np.repeat(y, 2)).predict_proba(X)
    np.testing.assert_array_equal(one, other)


def test_the_reference_engine_agrees():
    """The numpy engine climbs the same objective in doubles: predictions differ by how far climbs go."""
    one = fitted(PlackettLuceClassifier, X, y)
    other = fitted(PlackettLuceClassifier, X, y, engine="numpy")
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=0.02)


@pytest.mark.brief(1)
@every_model
def test_a_part_decides_and_all_refine(model, monkeypatch):
    """Of many rows σ and what is stacked are those of a part; draws and the mode are those of all."""
    given, asked = FACES[model]
    usual = fitted(model, *given)
    monkeypatch.setattr(weighted_modes, "DECIDE", 25)
    parts, wholes = [], []
    monkeypatch.setattr(weighted_modes, "choose_scale", lambda *each: parts.append(each[0]) or choose_scale(*each))
    monkeypatch.setattr(weighted_modes, "draw_modes", lambda *each: wholes.append(each[0]) or draw_modes(*each))
    clf = fitted(model, *given)
    (part,), (whole,) = parts, wholes
    assert len(part.seen) == 25 and len(whole.seen) == len(given[0])
    assert clf.posterior_ is not None and np.isfinite(clf.predict_proba(asked)).all()
    assert np.abs(clf.predict_proba(asked) - usual.predict_proba(asked)).max() > 1e-6
    assert np.abs(clf.predict_proba(asked) - usual.predict_proba(asked)).mean() < 0.2


def test_a_part_has_the_classes_in_their_shares_and_whole_units():
    codes = np.repeat([0, 1, 2], [20, 30, 50])
    task = class_task(np.random.default_rng(0).normal(size=(100, 2)), codes)
    part = task.reader.deciding(task, 50)
    np.testing.assert_array_equal(np.bincount(part.seen.codes), [10, 15, 25])
    np.testing.assert_allclose(part.design.of(part.reader.rows), part.Z)
    grouped = class_task(np.random.default_rng(0).normal(size=(100, 2)), codes, groups=np.arange(100) // 5)
    units = grouped.reader.deciding(grouped, 50).seen.units
    assert 30 <= len(units) <= 70 and (np.unique(units, return_counts=True)[1] == 5).all()
    assert task.reader.deciding(task, 100) is task


def test_few_rows_hold_nothing_out():
    clf = fitted(PlackettLuceClassifier, X[:15], y[:15])
    assert clf.posterior_.mode_directions is None and clf.posterior_.power == 1.0


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (PlackettLuceClassifier("bootstrap", features="exp"), "the bootstrap is for learned directions"),
        (PlackettLuceClassifier("bootstrap", rate=2.0), r"rate=2.0\) would be ignored"),
        (
            PlackettLuceClassifier("bootstrap", features=LearnedDirections(leapfrogs=3)),
            "the chains of inference='gibbs'",
        ),
        (PlackettLuceClassifier(Bootstrap(draws=0)), r"Bootstrap\(draws\) must be a whole number of at least 1"),
        (PlackettLuceClassifier(Bootstrap(max_iter=0)), r"Bootstrap\(max_iter\) must be"),
        (PlackettLuceClassifier(Bootstrap(max_seconds="long")), r"Bootstrap\(max_seconds\) must be"),
    ],
)
def test_what_it_cannot_do_is_refused(model, words):
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)


def test_rankings_without_covariates_are_refused():
    with pytest.raises(ValueError, match="learned directions with covariates"):
        PlackettLuceRanker("bootstrap").fit(None, R)


def test_settings_change_what_comes_out():
    usual = fitted(PlackettLuceClassifier, X, y).predict_proba(X)
    for settings in ({"draws": 7}, {"max_iter": 3}):
        changed = Bootstrap(**SHORT.get_params() | settings)
        clf = PlackettLuceClassifier(changed, features=ONE, random_state=0).fit(X, y)
        assert np.abs(clf.predict_proba(X) - usual).max() > 1e-6
        assert clf.inference_.get_params() == changed.get_params()


def test_groups_are_held_out_and_weighted_together():
    groups = np.arange(60) // 2
    clf = fitted(PlackettLuceClassifier, X, y, None, groups)
    assert np.abs(clf.predict_proba(X) - fitted(PlackettLuceClassifier, X, y).predict_proba(X)).max() > 1e-6


def test_a_limit_of_time_leaves_fewer_draws_and_says_so(seconds):
    seconds.reading = 0.05
    with pytest.warns(ConvergenceWarning, match=r"Bootstrap\(max_seconds=0.1\): there was no time"):
        clf = PlackettLuceClassifier(Bootstrap(max_seconds=0.1), features=ONE, random_state=0).fit(X, y)
    assert 1 <= clf.trace_.shape[1] < 64 and np.isfinite(clf.predict_proba(X)).all()
    assert "no time" in clf.notes_[0] and "no time" in repr(clf)


def test_the_mode_of_em_is_not_far():
    """One component, many rows: the average of the draws is near the mode."""
    made = np.random.default_rng(1)
    Z = made.normal(size=(300, 2))
    labels = (Z @ [1.0, -0.7] + made.logistic(size=300) > 0).astype(int)
    one = PlackettLuceClassifier(Bootstrap(draws=50), features=ONE, random_state=0).fit(Z, labels)
    other = PlackettLuceClassifier(EM(), features=ONE).fit(Z, labels)
    assert np.abs(one.predict_proba(Z) - other.predict_proba(Z)).mean() < 0.03
    assert isinstance(one.inference_, Bootstrap) and not isinstance(one.inference_, Gibbs)


def test_choices_have_one_chain_of_draws():
    clf = fitted(PlackettLuceChooser, SETS, CHOSEN)
    assert clf.posterior_.of_directions.directions.shape[:2] == (1, 12)


def test_it_can_be_explained_and_exported():
    clf = fitted(PlackettLuceClassifier, X, y)
    why = explain(clf, X[:1])
    p = clf.predict_proba(X[:1])[0, clf.classes_.tolist().index(why.attrs["class"])]
    assert why.attrs["reference"] + why["contribution"].sum() == pytest.approx(np.log(p / (1 - p)))
    assert (clf.effects(X)["lower"] <= clf.effects(X)["upper"]).all()
    assert clf.to_arviz(X, y).posterior.sizes["draw"] == 12
