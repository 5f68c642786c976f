"""Each picture is held against the numbers it should show."""

import warnings
from itertools import combinations, product

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from plackett import (
    Gibbs,
    PlackettLuceClassifier,
    PlackettLuceRanker,
    Rankings,
    SparseLogitClassifier,
    Variational,
    plots,
    regularization_path,
    win_probabilities,
)
from plackett.plots.prediction import poisson_binomial_interval
from plackett.plots.row import _mark_probabilities
from plackett.plots.style import DASHES, HATCHES, MARKERS, PALETTE, REST, chain_colour, colour, marker
from plackett.posterior.weights import Draws

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import to_rgb

NASTY = ["_hidden", "$x^{", "a\nb", "<script>", "w" * 80, "ünïcode"]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def iris():
    data = load_iris(as_frame=True)
    return data.data, data.target_names[data.target]


@pytest.fixture(scope="module")
def em(iris):
    return PlackettLuceClassifier("em", shape=0.9, features="exp").fit(*iris)


@pytest.fixture(scope="module")
def variational(iris):
    return PlackettLuceClassifier(Variational(draws=100), random_state=0, features="exp").fit(*iris)


@pytest.fixture(scope="module")
def gibbs(iris):
    clf = PlackettLuceClassifier(Gibbs(draws=60, tune=60, chains=2, moves="none"), random_state=0, features="exp")
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return clf.fit(*iris)


@pytest.fixture(scope="module")
def logit(iris):
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return SparseLogitClassifier(draws=30, tune=30, chains=2, random_state=0).fit(*iris)


@pytest.fixture(scope="module")
def learned(iris):
    clf = PlackettLuceClassifier(Gibbs(draws=8, tune=8, chains=2), features="learned", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sixteen draws do not settle anything
        return clf.fit(iris[0][::3], iris[1][::3])


@pytest.fixture(scope="module")
def many():
    """Thirty classes and twelve columns, some with names that make trouble."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 12)), columns=NASTY + [f"x{j}" for j in range(6)])
    y = np.array([*NASTY, *(f"class {k}" for k in range(24))])[np.arange(300) % 30]
    return X, y, PlackettLuceClassifier(Variational(draws=100), shape=0.5, random_state=0, features="exp").fit(X, y)


def pictures(clf, X, y):
    yield plots.weights, (clf,)
    yield plots.decision_boundary, (clf, X, y)
    yield plots.roc, (clf, X, y)
    yield plots.calibration, (clf, X, y)
    yield plots.probabilities, (clf, X.iloc[0])
    yield plots.race, (clf, X.iloc[0])


def test_every_plot_draws_on_the_axes_it_is_given_or_on_new_ones(variational, gibbs, learned, iris):
    calls = [
        *pictures(variational, *iris),
        (plots.trace, (gibbs,)),
        (plots.rank, (gibbs,)),
        (plots.relevance, (learned,)),
        (plots.contributions, (learned, iris[0].iloc[0])),
        (plots.effect, (learned, iris[0], 0)),
    ]
    ranker = PlackettLuceRanker("em", 1.5).fit(None, Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"]]))
    calls += [(function, (ranker,)) for function in (plots.worth, plots.rank_distribution, plots.prob_better)]
    tiered = PlackettLuceRanker(Gibbs(draws=20, tune=20, chains=1), tiers=True, random_state=0)
    calls.append((plots.tiers, (tiered.fit(None, Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"]])),)))
    calls.append((plots.path, (regularization_path(*iris, shapes=[1.0, 0.5]),)))
    assert {function.__name__ for function, _ in calls} == set(plots.__all__)
    for function, arguments in calls:
        ax = plt.figure().subplots()
        before = plt.get_fignums()
        assert function(*arguments, ax=ax) is ax
        assert plt.get_fignums() == before, function
        new = function(*arguments)
        assert len(plt.get_fignums()) == len(before) + 1 and new.figure.number == plt.get_fignums()[-1]
        new.figure.canvas.draw()
        plt.close("all")


def test_many_classes_and_troublesome_names_are_drawn(many):
    X, y, clf = many
    for function, arguments in pictures(clf, X, y):
        function(*arguments).figure.canvas.draw()
    assert plots.roc(clf, X, y).get_title() == "6 of 30 classes, each against the rest"
    ax = plots.weights(clf, n=20)
    assert ax.get_title() == "20 of 750 weights"
    assert len(ax.get_yticklabels()) == 20


def test_names_are_shown_as_they_are():
    from plackett.plots.style import LONGEST, label

    assert label("$x^{") == r"\$x^{"
    assert label("_hidden").strip() == "_hidden" and not label("_hidden").startswith("_")
    assert label("a\nb") == "a b"
    long, other = label("w" * 80 + "1"), label("w" * 80 + "2")
    assert len(long) == LONGEST and "…" in long and long != other  # names often differ at their ends
    assert label("w" * LONGEST) == "w" * LONGEST


def test_weights_and_their_intervals(variational):
    ax = plots.weights(variational, n=7, prob=0.8)
    draws = variational.posterior_.flat_draws()
    lower, median, upper = np.quantile(draws, [0.1, 0.5, 0.9], axis=0).reshape(3, -1)
    top = np.argsort(-median)[:3]
    np.testing.assert_array_equal([line.get_xdata()[0] for line in ax.lines[:3]], median[top])
    spans = [segment[:, 0] for segment in ax.collections[0].get_segments()]
    assert len(spans) == 7
    np.testing.assert_allclose(spans[:3], np.column_stack([lower, upper])[top])
    names = variational.features_.get_feature_names_out()
    k, j = np.unravel_index(top[0], variational.weights_.shape)
    assert ax.get_yticklabels()[0].get_text() == f"{variational.classes_[k]}: {names[j]}"
    assert ax.get_title() == "7 of 27 weights"


def test_em_has_points_for_active_weights_and_no_intervals(em):
    ax = plots.weights(em, n=100)
    assert len(ax.collections) == 0
    assert len(ax.lines) == (em.weights_ > 0).sum() + 1
    assert plots.weights(em, n=2).get_title() == f"2 of {(em.weights_ > 0).sum()} weights"


def test_coefficients_of_a_logit_are_those_of_its_summary(logit):
    ax = plots.weights(logit, n=3)
    frame = logit.summary()
    np.testing.assert_allclose([line.get_xdata()[0] for line in ax.lines[:3]], frame["median"][:3], atol=6e-4)
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == [f"{row[1]}: {row[2]}" for row in frame[:3].itertuples()]
    assert ax.get_title() == "3 of 10 coefficients" and ax.get_xlabel().startswith("log-odds per standard deviation")


def test_learned_directions(learned, iris):
    ax = plots.relevance(learned, n=3)
    table = learned.relevance().head(3)
    np.testing.assert_array_equal([bar.get_width() for bar in ax.patches], table["relevance"])
    assert [text.get_text() for text in ax.get_yticklabels()] == list(table.index)
    ends = [path.vertices[:, 0].tolist() for path in ax.collections[0].get_paths()]
    np.testing.assert_allclose(ends, table[["lower", "upper"]])
    assert ax.get_xlabel().replace("\n", " ").startswith("relevance: change of the log-odds between components per")
    assert plots.trace(learned).get_title() == plots.rank(learned).get_title()
    assert plots.trace(learned).get_title().startswith("probability of ")
    assert [text.get_text() for text in plots.trace(learned).get_legend().get_texts()] == ["chain 1", "chain 2"]
    ax = plots.contributions(learned, iris[0].iloc[0])
    said = learned.predict(iris[0][:1])[0]
    assert {text.get_text() for text in ax.get_legend().get_texts()} <= {f"for {said}", f"against {said}"}
    assert len(plots.probabilities(learned, iris[0].iloc[0]).collections) == 1
    for refused in (plots.weights, lambda clf: plots.race(clf, iris[0].iloc[0])):
        with pytest.raises(ValueError, match="no identity"):
            refused(learned)


def test_relevance_belongs_to_learned_directions(em):
    with pytest.raises(ValueError, match="features='learned'"):
        plots.relevance(em)


def test_path(iris):
    path = regularization_path(*iris, shapes=[1.0, 0.5, 0.1])
    ax = plots.path(path, n=4)
    curves = path.weights.reshape(3, -1)
    order = np.argsort(-curves.max(axis=0), kind="stable")
    assert len(ax.lines) == 27 and len(ax.get_legend().get_texts()) == 4
    np.testing.assert_array_equal(ax.lines[-4].get_ydata(), curves[:, order[0]])
    assert [line.get_color() for line in ax.lines[-4:]] == [colour(place // 9) for place in order[:4]]


def test_decision_regions_are_the_predicted_classes(variational, iris):
    X, y = iris
    ax = plots.decision_boundary(variational, X, y, features=(2, 3), grid=30)
    image = ax.images[0]
    pixels, (left, right, bottom, top) = image.get_array(), image.get_extent()
    rows = pd.DataFrame(np.tile(X.median(), (30, 1)), columns=X.columns)
    rows.iloc[:, 2], rows.iloc[:, 3] = np.linspace(left, right, 30), np.linspace(bottom, top, 30)
    expected = [to_rgb(PALETTE[list(variational.classes_).index(label)]) for label in variational.predict(rows)]
    np.testing.assert_allclose(pixels[np.arange(30), np.arange(30), :3], expected)
    assert len({tuple(colour) for colour in expected}) == 3
    assert {text.get_text() for text in ax.texts} == set(variational.classes_)
    named = plots.decision_boundary(variational, X, y, features=tuple(X.columns[2:]), grid=30)
    np.testing.assert_array_equal(named.images[0].get_array(), pixels)
    assert (named.get_xlabel(), named.get_ylabel()) == tuple(X.columns[2:])
    for wrong in ((0, 4), (0, -1), (0, 0), (0, 1, 2), ("petal length (cm)", "height"), "ab"):
        with pytest.raises(ValueError, match=r"two of the 4 columns.*sepal length"):
            plots.decision_boundary(variational, X, features=wrong)


def test_a_decision_boundary_is_over_the_columns_that_matter_most(variational, learned, iris):
    from sklearn.linear_model import LogisticRegression

    X, y = iris
    ax = plots.decision_boundary(learned, X, y, grid=5)
    best = X.columns[np.sort(np.argsort(-learned.relevance_.to_numpy())[:2])]
    assert (ax.get_xlabel(), ax.get_ylabel()) == tuple(best)
    noisy = np.column_stack([np.random.default_rng(0).normal(size=(150, 3)), X.to_numpy()[:, 2:]])
    ax = plots.decision_boundary(LogisticRegression(max_iter=1000).fit(noisy, y), noisy, y, grid=5)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x3", "x4")
    with pytest.raises(ValueError, match="needs two columns"):
        plots.decision_boundary(LogisticRegression().fit(noisy[:, 3:4], y), noisy[:, 3:4])


def test_points_are_full_where_the_slice_speaks_for_them(variational, iris):
    X, y = iris
    ax = plots.decision_boundary(variational, X, y, features=(2, 3), grid=5)
    at_medians = X.copy()
    at_medians.iloc[:, :2] = X.median().to_numpy()[:2]
    moved = np.abs(variational.predict_proba(X) - variational.predict_proba(at_medians)).sum(axis=1) / 2
    points = {"full": [], "pale": []}
    for part in ax.collections:
        if hasattr(part, "get_sizes") and len(part.get_sizes()):
            points["full" if part.get_alpha() is None else "pale"] += part.get_offsets().tolist()
    for kind, rows in (("full", moved <= 0.1), ("pale", moved > 0.1)):
        assert rows.any() and sorted(points[kind]) == sorted(X.to_numpy()[rows][:, 2:].tolist())
    title = ax.get_title().replace("\n", " ")
    assert title.startswith("other columns at their medians;") and f"{(moved > 0.1).sum()} rows are pale" in title


def test_many_points_are_thinned(em, iris):
    X, y = pd.concat([iris[0]] * 20), np.tile(iris[1], 20)
    assert "1,000 of 3,000 rows" in plots.decision_boundary(em, X, y, grid=5).get_title().replace("\n", " ")


def test_roc_and_calibration_come_from_the_predictions(variational, iris):
    X, y = iris
    probability = variational.predict_proba(X)
    ax = plots.roc(variational, X, y)
    for text in ax.get_legend().get_texts():
        k = list(variational.classes_).index(text.get_text().split(" ")[0])
        assert f"AUC = {roc_auc_score(y == variational.classes_[k], probability[:, k]):.2f}" in text.get_text()
    truth = y[:, None] == variational.classes_
    share, predicted = calibration_curve(truth.ravel(), probability.ravel(), n_bins=10)
    ax = plots.calibration(variational, X, y)
    np.testing.assert_allclose(ax.lines[1].get_xydata(), np.column_stack([predicted, share]))
    counts = np.histogram(probability, np.linspace(0, 1, 11))[0]
    assert [int(text.get_text()) for text in ax.texts] == counts[counts > 0].tolist()
    assert len(ax.patches) == len(share)


def test_bands_hold_what_chance_does(iris):
    """Labels drawn from the predictions themselves: a simulation against the exact distribution."""
    X, y = iris[0][50:], iris[1][50:]
    rng = np.random.default_rng(0)
    for clf, rows in (
        (PlackettLuceClassifier("em", shape=0.9, features="exp").fit(X, y), X),
        (PlackettLuceClassifier("em", shape=0.9, features="exp").fit(*iris), iris[0]),
    ):
        q = clf.predict_proba(rows)
        bars = plots.calibration(clf, rows, clf.classes_[q.argmax(axis=1)], prob=0.8).patches
        columns = slice(1, None) if q.shape[1] == 2 else slice(None)
        place = np.minimum((10 * q[:, columns]).astype(int), 9)
        drawn = (q.cumsum(axis=1)[None] < rng.random((4000, len(q), 1))).sum(axis=2)
        came = (drawn[..., None] == np.arange(q.shape[1]))[..., columns]
        for bar, b in zip(bars, np.unique(place), strict=True):
            shares = came[:, place == b].mean(axis=1)
            low, high = bar.get_y(), bar.get_y() + bar.get_height()
            error = 4 * np.sqrt(0.1 * 0.9 / 4000)
            assert (shares < low - 1e-9).mean() <= 0.1 + error and (shares > high + 1e-9).mean() <= 0.1 + error
            assert (shares <= low + 1e-9).mean() >= 0.1 - error and (shares >= high - 1e-9).mean() >= 0.1 - error


def test_successes_in_unequal_trials():
    from scipy.stats import binom

    for n in (1, 2, 7, 1000):
        p = np.full(n, 0.3)
        assert poisson_binomial_interval(p, 0.9) == tuple(binom.ppf([0.05, 0.95], n, 0.3))
    assert poisson_binomial_interval(np.array([1.0, 1.0, 0.0]), 0.9) == (2, 2)


def test_two_classes_have_one_curve(iris):
    X, y = iris[0][50:], iris[1][50:]
    clf = PlackettLuceClassifier("em", shape=0.9, features="exp").fit(X, y)
    assert [t.get_text().split(" ")[0] for t in plots.roc(clf, X, y).get_legend().get_texts()] == ["virginica"]
    share, predicted = calibration_curve(y == "virginica", clf.predict_proba(X)[:, 1], n_bins=10)
    line = plots.calibration(clf, X, y).lines[1]
    np.testing.assert_allclose(line.get_xydata(), np.column_stack([predicted, share]))


def test_unknown_labels_are_told(em, iris):
    X, y = iris
    with pytest.warns(UserWarning, match="50 rows of a class"):
        plots.calibration(em, X, np.where(y == "setosa", "other", y))
    with pytest.raises(ValueError, match="no label in y"):
        plots.roc(em, X, np.full(150, "other"))
    with pytest.raises(ValueError, match="at least two classes"):
        plots.roc(em, X[:50], y[:50])


def test_traces_are_the_chains(gibbs, logit):
    draws = gibbs.posterior_
    names = gibbs.features_.get_feature_names_out()
    for quantity, values in (
        ("shape", np.log(draws.shape)),
        ("log-likelihood", gibbs.trace_),
        (("versicolor", names[3]), draws.log_weights[:, :, 1, 3]),
    ):
        lines = plots.trace(gibbs, quantity).lines
        for line, chain in zip(lines, values, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), chain)
    assert plots.trace(logit, "penalty").get_title() == "ln θ"
    assert plots.trace(logit).get_title().startswith(("coefficient of", "ln θ"))


def test_the_quantity_that_mixes_worst_comes_by_default(gibbs):
    found = gibbs.diagnostics_
    ess = np.minimum(found.ess_bulk, found.ess_tail)
    k, j = np.unravel_index(ess.argmin(), ess.shape)
    name = "ln a"
    if ess.min() < found.shape_ess_bulk:
        name = f"ln weight of {gibbs.classes_[k]}: {gibbs.features_.get_feature_names_out()[j]}"
    assert plots.trace(gibbs).get_title() == plots.rank(gibbs).get_title() == name


def test_ranks_of_a_chain_stay_in_its_lane(gibbs):
    clf = PlackettLuceClassifier(features="exp")
    clf.classes_, clf.features_, clf.diagnostics_ = gibbs.classes_, gibbs.features_, None
    rng = np.random.default_rng(0)
    for chains in (2, 30):
        values = rng.normal(size=(chains, 100)) + np.arange(chains)[:, None]
        clf.posterior_, clf.trace_ = Draws(np.zeros((chains, 100, 3, 9)), np.exp(values)), values
        ax = plots.rank(clf, "shape")
        ranks = values.ravel().argsort().argsort().reshape(chains, 100)
        bars = np.array([[bar.get_y(), bar.get_height()] for bar in ax.patches]).reshape(chains, 20, 2)
        counts = np.stack([np.histogram(row, 20, range=(-0.5, 100 * chains - 0.5))[0] for row in ranks])
        np.testing.assert_allclose(bars[..., 1], 0.9 * counts / counts.max())
        np.testing.assert_array_equal(bars[..., 0], np.arange(chains)[:, None] * np.ones(20))
        levels = np.array([segment[0][1] for segment in ax.collections[0].get_segments()])
        np.testing.assert_allclose(levels - np.arange(chains), 0.9 * 5 / counts.max())


def test_only_chains_have_traces(em):
    with pytest.raises(ValueError, match="inference='gibbs'"):
        plots.trace(em)


def test_a_quantity_must_exist(gibbs):
    with pytest.raises(ValueError, match="'shape', 'log-likelihood', 'probability' or"):
        plots.rank(gibbs, "sahpe")
    with pytest.raises(ValueError, match="got"):
        plots.trace(gibbs, ("versicolor", "nothing"))


def test_probabilities_of_a_row(variational, em, iris):
    row = iris[0].iloc[[80]]
    centre = variational.predict_proba(row)[0]
    (lower,), (upper,) = variational.predict_interval(row, prob=0.5)
    order = np.argsort(-centre)
    ax = plots.probabilities(variational, row, prob=0.5)
    np.testing.assert_array_equal([line.get_xdata()[0] for line in ax.lines], centre[order])
    spans = [segment[:, 0] for segment in ax.collections[0].get_segments()]
    np.testing.assert_allclose(spans, np.column_stack([lower, upper])[order])
    assert not plots.probabilities(em, row).collections


def test_probabilities_of_any_classifier(iris):
    from sklearn.linear_model import LogisticRegression

    X, y = iris
    other = LogisticRegression(max_iter=1000).fit(X, y)
    ax = plots.probabilities(other, X.iloc[[80]])
    assert len(ax.lines) == 3 and not ax.collections


def test_bars_of_the_race_are_wins(variational, iris):
    row = iris[0].iloc[[80]]
    wins = win_probabilities(variational, row)[0]
    ax = plots.race(variational, row, n=3)
    teams = np.argsort(-wins.sum(axis=1))
    widths = np.array([[bar.get_width() for bar in bars] for bars in ax.containers])
    named = np.argsort(-wins.sum(axis=0))[:3]
    np.testing.assert_allclose(widths[:3], wins[teams][:, named].T)
    np.testing.assert_allclose(widths.sum(axis=0), variational.predict_proba(row)[0][teams])
    names = variational.features_.get_feature_names_out()
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [*names[named], "6 others"]
    for bars in ax.containers:
        assert [bar.get_facecolor()[:3] for bar in bars] == [to_rgb(colour(k)) for k in teams]
    assert [bars[0].get_hatch() or "" for bars in ax.containers[:3]] == list(HATCHES[:3])


def linear(colour):
    c = np.array(to_rgb(colour))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """WCAG 2.2, success criterion 1.4.11."""
    light, dark = sorted((linear(c) @ [0.2126, 0.7152, 0.0722] for c in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def lab(rgb):
    to_xyz = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])
    t = np.cbrt(to_xyz @ np.clip(rgb, 0, 1) / [0.9505, 1, 1.0888])
    return np.array([116 * t[1] - 16, 500 * (t[0] - t[1]), 200 * (t[1] - t[2])])


EYES = (
    np.eye(3),
    np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
)


def apart(one, other, eyes=EYES):
    """Distance of two colours in CIELAB, the smallest over eyes."""
    return min(np.linalg.norm(lab(eye @ linear(one)) - lab(eye @ linear(other))) for eye in eyes)


def test_colours_can_be_told_apart():
    """On white and dark paper; and by colour-blind readers, as simulated by Machado, Oliveira & Fernandes (2009)."""
    chains = [chain_colour(c, 16) for c in range(16)]
    for one, paper in product((*PALETTE, REST, *chains), ("#ffffff", "#16181d")):
        assert contrast(one, paper) >= 3, (one, paper)
    assert len(PALETTE) >= 26
    for one, other in combinations(PALETTE[:6], 2):
        assert apart(one, other) > 15
    for one, other in combinations(PALETTE, 2):
        assert apart(one, other, EYES[:1]) > 15 and apart(one, other) > 7, (one, other)
    for one, other in combinations(range(len(PALETTE)), 2):
        assert marker(one) != marker(other) or apart(PALETTE[one], PALETTE[other]) > 12, (one, other)
    for one, other in combinations([chain_colour(c, 4) for c in range(4)], 2):
        assert apart(one, other, EYES[:1]) > 15


def test_no_two_classes_look_the_same():
    assert len({(colour(k), marker(k)) for k in range(len(PALETTE) * len(MARKERS))}) == len(PALETTE) * len(MARKERS)
    assert len(set(map(str, DASHES))) == len(DASHES) and len(set(HATCHES)) == len(HATCHES)


@pytest.mark.parametrize("ends", [(-1.0, 12.0), (2.3, 2.9), (9.5, 9.9), (-20.0, -15.0)])
def test_probabilities_are_marked_above_log_odds_wherever_these_are(ends):
    ax = plt.figure().subplots()
    ax.set_xlim(*ends)
    _mark_probabilities(ax)
    (top,) = ax.child_axes
    marks = [float(text.get_text()) for text in top.get_xticklabels()]
    assert len(marks) >= 2
    np.testing.assert_allclose(top.get_xticks(), np.log(marks) - np.log1p(-np.array(marks)), rtol=1e-6)
    assert (np.array(top.get_xticks()) >= ends[0]).all() and (np.array(top.get_xticks()) <= ends[1]).all()
