"""Pictures of any width: texts stay within them, and labels of an axis do not overprint."""

import warnings
from itertools import pairwise

import matplotlib
import numpy as np
import pandas as pd
import pytest

from plackett import (
    ChoiceSets,
    Gibbs,
    PlackettLuceChooser,
    PlackettLuceClassifier,
    PlackettLuceRanker,
    Rankings,
    Variational,
    explain,
    plots,
    regularization_path,
)

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def names(n, what):
    return [f"{what} {i}" if i % 3 else f"{what} with a rather long name {i}" for i in range(n)]


@pytest.fixture(scope="module", params=[3, 30])
def calls(request):
    """Every function with a model of so many classes, columns and items, as a function of the Axes."""
    n, rng = request.param, np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(180, n)), columns=names(n, "column"))
    y = np.array(names(n, "class"))[np.arange(180) % n]
    Z, three = X, np.array(names(3, "class"))[np.digitize(X.iloc[:, 0], [-0.4, 0.4])]
    orders = [rng.permutation(names(n, "item")).tolist() for _ in range(20)]
    with warnings.catch_warnings(action="ignore"):
        fixed = PlackettLuceClassifier(Variational(draws=30), shape=0.2, features="exp", random_state=0).fit(X, y)
        learned = PlackettLuceClassifier(Gibbs(draws=6, tune=6, chains=2), random_state=0).fit(Z, three)
        ranker = PlackettLuceRanker(Gibbs(draws=10, tune=10, chains=2), random_state=0)
        ranker.fit(None, Rankings.from_orders(orders))
        tiered = PlackettLuceRanker(Gibbs(draws=10, tune=10, chains=2), tiers=True, random_state=0)
        tiered.fit(None, Rankings.from_orders(orders))
    path = regularization_path(Z.iloc[:, :3], three, shapes=[1.0, 0.5])
    return {
        "probabilities": lambda ax: plots.probabilities(fixed, X.iloc[0], ax=ax),
        "race": lambda ax: plots.race(fixed, X.iloc[0], ax=ax),
        "weights": lambda ax: plots.weights(fixed, ax=ax),
        "roc": lambda ax: plots.roc(fixed, X, y, ax=ax),
        "calibration": lambda ax: plots.calibration(fixed, X, y, ax=ax),
        "decision_boundary": lambda ax: plots.decision_boundary(fixed, X, y, grid=15, ax=ax),
        "effect": lambda ax: plots.effect(fixed, X, 0, grid=5, ax=ax),
        "contributions": lambda ax: plots.contributions(learned, Z.iloc[0], ax=ax),
        "relevance": lambda ax: plots.relevance(learned, ax=ax),
        "trace": lambda ax: plots.trace(learned, ax=ax),
        "rank": lambda ax: plots.rank(learned, ax=ax),
        "worth": lambda ax: plots.worth(ranker, ax=ax),
        "rank_distribution": lambda ax: plots.rank_distribution(ranker, ax=ax),
        "prob_better": lambda ax: plots.prob_better(ranker, ax=ax),
        "tiers": lambda ax: plots.tiers(tiered, ax=ax),
        "path": lambda ax: plots.path(path, ax=ax),
    }


def overlaps(boxes, axis):
    """How far neighbours overprint, in points of 1/72 inch."""
    ends = sorted((getattr(box, f"{axis}0"), getattr(box, f"{axis}1")) for box in boxes if box.width > 0)
    return max((a[1] - b[0] for a, b in pairwise(ends)), default=0.0)


@pytest.mark.parametrize("width", [3, 6, pytest.param(12, marks=pytest.mark.long)])
def test_texts_are_within_the_picture_and_labels_apart(calls, width):
    assert set(calls) == set(plots.__all__)
    wrong = []
    for name, draw in calls.items():
        figure, ax = plt.subplots(figsize=(width, 0.75 * width), dpi=72, layout="constrained")
        draw(ax)
        figure.canvas.draw()
        box, whole = figure.get_tightbbox().padded(-0.05), figure.bbox_inches
        if box.x0 < 0 or box.y0 < 0 or box.x1 > whole.x1 or box.y1 > whole.y1:
            wrong.append(f"{name} is cut off: {box}")
        labels = [text.get_window_extent() for text in ax.get_yticklabels() if text.get_text()]
        if overlaps(labels, "y") > 3:
            wrong.append(f"{name} overprints by {overlaps(labels, 'y'):.1f}")
        plt.close(figure)
    assert not wrong, "\n".join(wrong)


def test_small_probabilities_fill_the_picture(calls):
    ax = calls["probabilities"](plt.figure().subplots())
    points = [line.get_xdata()[0] for line in ax.lines]
    assert max(points) > 0.3 * ax.get_xlim()[1]
    plt.close("all")


def test_one_situation_is_drawn_at_a_time():
    rng = np.random.default_rng(0)
    wide = pd.DataFrame({f"cost_{a}": rng.integers(1, 5, 60) for a in ("bus", "car")})
    X = ChoiceSets.from_wide(wide, alternatives=["bus", "car"])
    model = PlackettLuceChooser(Gibbs(draws=10, tune=10, chains=2), features="linear", random_state=0)
    with warnings.catch_warnings(action="ignore"):
        model.fit(X, np.where(wide["cost_bus"] + rng.normal(size=60) < wide["cost_car"], "bus", "car"))
    for function in (plots.probabilities, plots.contributions, explain):
        with pytest.raises(ValueError, match=r"expected one situation, got 60 instead\. Take one, such as X\[0\]"):
            function(model, X)
    assert len(plots.probabilities(model, X[0]).get_yticklabels()) == 2
    said = {text.get_text().partition(" = ")[0] for text in plots.contributions(model, X[0]).get_yticklabels()}
    assert said == {"cost of bus", "cost of car"}
    plt.close("all")
