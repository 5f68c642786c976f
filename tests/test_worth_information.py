"""Intervals of worths after EM: the inverse of the observed information, against other routes to it."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr, ndtri

from plackett import PlackettLuceRanker, Rankings, load, next_pairs
from plackett.model.weights import GIG
from plackett.simulate import rankings

ITEMS = ["ash", "elm", "fir", "oak", "yew"]
LOG_WORTH = np.array([0.0, 0.4, -0.3, 0.9, 0.1])
CENTRED = np.eye(5) - 1 / 5


def half(table, prob=0.9):
    """Standard deviations that a table of worths shows, by item."""
    by_item = table.loc[ITEMS]
    return ((by_item["upper"] - by_item["lower"]) / (2 * ndtri(0.5 + prob / 2))).to_numpy()


def pairs(n=400, seed=0):
    """Winners, losers and who was at home, with an advantage of home."""
    rng = np.random.default_rng(seed)
    home, away = np.array([rng.choice(5, 2, replace=False) for _ in range(n)]).T
    won = rng.random(n) < 1 / (1 + np.exp(-(LOG_WORTH[home] - LOG_WORTH[away] + 0.3)))
    return np.where(won, home, away), np.where(won, away, home), home


def named(codes):
    return [ITEMS[k] for k in codes]


def ranked(n=60, length=5):
    """Orders of items, the best first."""
    rng = np.random.default_rng(1)
    return [np.argsort(-(LOG_WORTH + rng.gumbel(size=5)))[:length].tolist() for _ in range(n)]


def information_of(orders, log_worth):
    """Minus the second derivatives: of each stage, the covariance of who is chosen."""
    found = np.zeros((5, 5))
    for order in orders:
        for s in range(len(order) - 1):
            left = np.array(order[s:])
            p = np.exp(log_worth[left]) / np.exp(log_worth[left]).sum()
            found[np.ix_(left, left)] += np.diag(p) - np.outer(p, p)
    return found


def test_pairs_with_a_home_advantage_are_logistic_regression():
    winner, loser, home = pairs()
    R = Rankings.from_pairs(named(winner), named(loser), first=named(home))
    model = PlackettLuceRanker("em", shape=1, order_effect=True).fit(None, R)
    table, eta = model.worth(0.9), model.parameters(0.9).loc["eta"]
    x = table.loc[ITEMS, "log_worth"].to_numpy()
    design = np.zeros((len(winner), 6))
    design[np.arange(len(winner)), winner], design[np.arange(len(winner)), loser] = 1.0, -1.0
    design[:, 5] = np.where(winner == home, 1.0, -1.0)
    p = 1 / (1 + np.exp(-design @ np.append(x, np.log(eta["mean"]))))
    covariance = np.linalg.pinv(design.T @ (design * (p * (1 - p))[:, None]))
    np.testing.assert_allclose(half(table), np.sqrt(np.diag(CENTRED @ covariance[:5, :5] @ CENTRED)), rtol=1e-6)
    far = ndtri(0.95) * np.sqrt(covariance[5, 5])
    np.testing.assert_allclose(
        np.log([eta["lower"], eta["upper"]]), np.log(eta["mean"]) + np.array([-far, far]), rtol=1e-6
    )
    anchored = model.worth(0.9, anchor={"fir": 0.0}, scale="elo")
    unit = 400 / np.log(10)
    differences = np.sqrt(np.diag(covariance)[:5] + covariance[2, 2] - 2 * covariance[2, :5])
    np.testing.assert_allclose(half(anchored), unit * differences, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("shape", [1.0, 3.0])
@pytest.mark.parametrize("length", [3, 5])
def test_rankings_add_up_the_information_of_their_stages(shape, length):
    orders = ranked(length=length)
    R = Rankings.from_orders([named(order) for order in orders], unranked="absent")
    model = PlackettLuceRanker("em", shape=shape).fit(None, R)
    table = model.worth()
    x = table.loc[ITEMS, "log_worth"].to_numpy()
    share = np.exp(x) / np.exp(x).sum()
    information = information_of(orders, x) + (shape - 1) * 5 * (np.diag(share) - np.outer(share, share))
    covariance = np.linalg.pinv(information)
    np.testing.assert_allclose(half(table), np.sqrt(np.diag(CENTRED @ covariance @ CENTRED)), rtol=1e-5)


def test_draws_about_the_estimate_tell_places_and_the_estimate_predicts(tmp_path):
    R = Rankings.from_orders([named(order) for order in ranked()])
    model = PlackettLuceRanker("em", shape=1).fit(None, R)
    table = model.worth()
    np.testing.assert_allclose(model.predict_proba(), model.weights_[:, 0])
    np.testing.assert_allclose(table["first"].sum(), 1.0)
    assert table["rank_lower"].le(table["rank"]).all() and table["rank"].le(table["rank_upper"]).all()
    low, high = model.predict_interval(None, 0.9)
    assert ((low < model.predict_proba()) & (model.predict_proba() < high)).all()
    better = model.prob_better()
    x = table["log_worth"]
    gap, covariance = x["oak"] - x["ash"], model.posterior_.covariance
    expected = ndtr(gap / np.sqrt(covariance[0, 0] + covariance[3, 3] - 2 * covariance[0, 3]))
    assert abs(better.loc["oak", "ash"] - expected) < 3 * np.sqrt(expected * (1 - expected) / 400)
    assert len(next_pairs(model, 2)) == 2
    model.save(tmp_path / "model")
    pd.testing.assert_frame_equal(load(tmp_path / "model").worth(), table)


def test_intervals_agree_with_draws_where_data_are_many():
    R = rankings(np.tile(LOG_WORTH, (2000, 1)), items=ITEMS, rng=0)
    em = PlackettLuceRanker("em", shape=1).fit(None, R).worth()
    gibbs = PlackettLuceRanker(shape=1, random_state=0).fit(None, R).worth()
    np.testing.assert_allclose(half(em), half(gibbs), rtol=0.1)


@pytest.mark.parametrize("settings", [{"shape": 0.5}, {"prior": GIG(1.0, 0.1, 1.0)}], ids=str)
def test_where_there_are_no_intervals(settings):
    model = PlackettLuceRanker("em", **settings).fit(None, Rankings.from_orders([named(order) for order in ranked()]))
    assert model.worth()["lower"].isna().all()
    with pytest.raises(ValueError, match="EM gives one estimate"):
        model.predict_interval()


def test_what_would_take_long_is_left_out(monkeypatch):
    R = Rankings.from_orders([named(order) for order in ranked()])
    monkeypatch.setattr("plackett.fit.QUICK", 10)
    assert PlackettLuceRanker("em", shape=1).fit(None, R).worth()["lower"].isna().all()
    monkeypatch.setattr("plackett.fit.DENSE", 4)
    winner, loser, _ = pairs()
    votes = Rankings.from_pairs(named(winner), named(loser))
    assert PlackettLuceRanker("em", shape=1).fit(None, votes).worth()["lower"].isna().all()


@pytest.mark.parametrize("ties", ["photo-finish", "davidson"])
def test_chances_of_pairs_are_those_of_the_estimate(ties):
    """Draws about the estimate have weight 0 in predictions, and a law of ties has its own parameter under each."""
    winner, loser, home = pairs()
    tied = np.arange(len(winner)) % 7 == 0
    R = Rankings.from_pairs(named(winner), named(loser), ties=tied, first=named(home))
    model = PlackettLuceRanker("em", shape=1, ties=ties, order_effect=True).fit(None, R)
    r, value = model.weights_[:, 0], model.parameters()["mean"].iloc[0]
    a, b = r[3], r[0]
    wins = a / (a + value * b) if ties == "photo-finish" else a / (a + b + value * np.sqrt(a * b))
    assert model.prob_better(of="ranking").loc["oak", "ash"] == pytest.approx(wins, rel=1e-9)
    assert len(next_pairs(model, 3)) == 3
