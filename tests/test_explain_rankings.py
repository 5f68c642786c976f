"""Why this item first? Predictions of rankings with covariates, taken apart."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from plackett import EM, Gibbs, PlackettLuceRanker, Variational, explain, plots, win_probabilities
from plackett.directions import LearnedDirections
from plackett.report import write_report
from plackett.simulate import rankings

rng = np.random.default_rng(0)
X = pd.DataFrame({"age": rng.uniform(20, 80, 60), "home=town": 1.0 * (rng.random(60) < 0.5)})
X["home=farm"] = 1 - X["home=town"]
SLOPE = (X["age"].to_numpy() - 50) / 15
R = rankings(np.column_stack([SLOPE, X["home=town"], -SLOPE]), items=["library", "<b>pool</b>", "skatepark"], rng=1)
TWO = LearnedDirections(components=2)


def fit(inference, features=TWO, ties="unknown-order"):
    return PlackettLuceRanker(inference, features=features, ties=ties, random_state=0).fit(X, R)


@pytest.fixture(scope="module")
def em():
    return fit(EM(cv=2, max_iter=100))


@pytest.fixture(scope="module")
def drawn():
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return fit(Gibbs(draws=30, tune=30, chains=2))


@pytest.fixture(scope="module")
def fixed():
    return fit(Variational(), "exp")


def odds(p):
    return np.log(p) - np.log1p(-p)


@pytest.mark.parametrize("fitted", ["em", "drawn"])
def test_contributions_add_up_to_the_first_place(fitted, request):
    model = request.getfixturevalue(fitted)
    for i in (0, 7, 31):
        why, p = explain(model, X.iloc[i]), model.predict_proba(X.iloc[[i]])[0]
        k = int(np.argmax(p))
        assert why.attrs["class"] == model.items_[k]
        np.testing.assert_allclose(why.attrs["prediction"], odds(p[k]), atol=1e-8)
        np.testing.assert_allclose(why.attrs["reference"] + why["contribution"].sum(), odds(p[k]), atol=1e-8)
        reference = pd.DataFrame([why.attrs["reference_row"]])
        np.testing.assert_allclose(why.attrs["reference"], odds(model.predict_proba(reference)[0, k]), atol=1e-6)
        assert sorted(why["feature"]) == ["age", "home"]  # the indicators of a text are one line
        assert set(why["value"]) == {X["age"].iloc[i], "town" if X["home=town"].iloc[i] else "farm"}


def test_contributions_are_integrals_of_slopes(em):
    """By central differences of what is predicted, along the line from the reference person."""
    row, step = X.iloc[[3]].to_numpy(), 1e-5
    if em.features_.knots is not None:
        pytest.fail("choose a set whose covariates are taken as they are")
    why = explain(em, X.iloc[3])
    k, start = em.items_.tolist().index(why.attrs["class"]), np.array([list(why.attrs["reference_row"].values())])
    nodes, weights = np.polynomial.legendre.leggauss(40)
    found = np.zeros(3)
    for t, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        at = start + t * (row - start)
        for f in range(3):
            up, down = (
                odds(em.predict_proba(pd.DataFrame(at + sign * step * np.eye(3)[f], columns=X.columns))[0, k])
                for sign in (1, -1)
            )
            found[f] += weight * (up - down) / (2 * step) * (row - start)[0, f]
    by_name = why.set_index("feature")["contribution"]
    np.testing.assert_allclose([by_name["age"], by_name["home"]], [found[0], found[1:].sum()], atol=1e-5)


def test_intervals_are_those_of_single_draws(drawn):
    """Whose contributions add up to the log-odds under that draw; the line is one column where the others stay."""
    where = explain(drawn, X.iloc[0]).attrs["reference_row"] | {"age": 75.0}
    why = explain(drawn, where, prob=0.8).set_index("feature").loc["age"]
    k = int(np.argmax(drawn.predict_proba(pd.DataFrame([where]))[0]))
    start = pd.DataFrame([where | {"age": explain(drawn, where).attrs["reference_row"]["age"]}])
    pools = [next(drawn._pools(rows)) for rows in (start, pd.DataFrame([where]))]
    logs = [pool.log_rates[: pool.n_draws, 0] for pool in pools]
    shares = [np.exp(log) / np.exp(log).sum(axis=1, keepdims=True) for log in logs]
    moved = odds(shares[1][:, k]) - odds(shares[0][:, k])
    lower, upper = np.quantile(moved, [0.1, 0.9])
    np.testing.assert_allclose(
        [why["lower"], why["upper"]],
        [min(lower, why["contribution"]), max(upper, why["contribution"])],
        atol=0.02,
    )
    assert why["lower"] < why["upper"]


def test_em_has_no_intervals_and_race_ties_are_explained_too(em):
    assert explain(em, X.iloc[0])["lower"].isna().all()
    tied = fit(EM(cv=2), ties="race")
    why, p = explain(tied, X.iloc[0]), tied.predict_proba(X[:1])[0]
    np.testing.assert_allclose(why.attrs["reference"] + why["contribution"].sum(), odds(p.max()), atol=1e-8)


def test_fixed_features_are_explained_as_a_race_of_items(fixed):
    why, p = explain(fixed, X.iloc[5]), fixed.predict_proba(X[5:6])[0]
    assert why.columns.tolist() == ["item", "feature", "probability", "lower", "upper"]
    np.testing.assert_allclose(why.groupby("item")["probability"].sum()[fixed.items_], p)
    np.testing.assert_allclose(win_probabilities(fixed, X[5:6])[0].sum(axis=1), p)
    assert (why["lower"] <= why["upper"]).all()
    assert why["probability"].is_monotonic_decreasing


def test_worths_alone_explain_no_row():
    plain = PlackettLuceRanker("em", shape=1.5).fit(None, R)
    for ask in (explain, plots.contributions, plots.race):
        with pytest.raises(ValueError, match=r"without covariates.*worth\(\) lists"):
            ask(plain, None)


def test_pictures_name_items(em, fixed):
    ax = plots.contributions(em, X.iloc[0])
    assert explain(em, X.iloc[0]).attrs["class"] in ax.get_xlabel()
    ax = plots.race(fixed, X.iloc[0], n=2)
    assert ax.get_title() == "2 of 3 items"
    assert {text.get_text() for text in ax.get_yticklabels()} <= set(fixed.items_)
    plt.close("all")


@pytest.mark.parametrize(("fitted", "picture"), [("drawn", "contributions"), ("fixed", "race")])
def test_a_report_says_why(fitted, picture, request, tmp_path):
    model = request.getfixturevalue(fitted)
    write_report(model, X, R, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Why? A few rankings" in page and "<b>pool" not in page
    p = model.predict_proba(X)
    surest = int(np.argmin(-(p * np.log(p)).sum(axis=1)))
    assert f"Row {surest}, the most certain: most probably first is" in page
    assert f'<figure id="{picture}0"' in page
    write_report(PlackettLuceRanker("em", shape=1.5).fit(None, R), None, R, tmp_path / "plain.html")
    assert "Why?" not in (tmp_path / "plain.html").read_text(encoding="utf-8")
