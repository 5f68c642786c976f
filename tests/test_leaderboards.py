"""Tables of leaderboards: scales, anchors, places with intervals, the best first; and best–worst tasks."""

import itertools
import warnings

import numpy as np
import pytest

from plackett import Gibbs, PlackettLuceRanker, Rankings, plots

ITEMS = ["ash", "elm", "fir", "oak", "yew"]


@pytest.fixture(scope="module")
def ranked():
    """Draws and a mode of pairs whose best item is the last by name."""
    rng = np.random.default_rng(0)
    pairs = np.array([rng.choice(5, 2, replace=False) for _ in range(120)])
    wins = rng.random(120) < 1 / (1 + np.exp(0.7 * (pairs[:, 1] - pairs[:, 0])))
    winner, loser = np.where(wins, *pairs.T), np.where(wins, *pairs.T[::-1])
    R = Rankings.from_pairs([ITEMS[k] for k in winner], [ITEMS[k] for k in loser])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = PlackettLuceRanker(Gibbs(draws=60, tune=40, chains=2), shape=1, random_state=0).fit(None, R)
    return drawn, PlackettLuceRanker("em", shape=1).fit(None, R)


def test_points_and_anchors(ranked):
    """400 points are odds of ten to one, and an anchored item has its number under every draw."""
    for model in ranked:
        plain, elo = model.worth(0.8), model.worth(0.8, scale="elo")
        unit = 400 / np.log(10)
        np.testing.assert_allclose(elo["elo"], unit * plain["log_worth"])
        np.testing.assert_allclose(elo["lower"], unit * plain["lower"])
        assert "log_worth" not in elo and elo.index.tolist() == plain.index.tolist()
        anchored = model.worth(0.8, scale="elo", anchor={"fir": 1000})
        np.testing.assert_allclose(anchored["elo"] - elo["elo"], 1000 - elo.loc["fir", "elo"])
        assert anchored.loc["fir", "elo"] == pytest.approx(1000)
    drawn = ranked[0].worth(0.8, anchor={"fir": 2.0})
    logs = ranked[0].posterior_.log_weights.reshape(-1, 5)
    found = np.quantile(logs[:, 4] - logs[:, 2] + 2.0, [0.1, 0.9])
    np.testing.assert_allclose(drawn.loc["yew", ["lower", "upper"]].to_numpy(), found)
    np.testing.assert_allclose(drawn.loc["fir", ["lower", "upper"]].to_numpy(), 2.0)


def test_places_have_intervals(ranked):
    table, logs = ranked[0].worth(0.8), ranked[0].posterior_.log_weights.reshape(-1, 5)
    places = 1 + (logs[:, :, None] < logs[:, None]).sum(axis=2)
    low, high = np.quantile(places, [0.1, 0.9], axis=0, method="inverted_cdf")
    by_item = table.loc[ITEMS]
    np.testing.assert_array_equal(by_item["rank_lower"], low)
    np.testing.assert_array_equal(by_item["rank_upper"], high)
    np.testing.assert_allclose(by_item["rank"], places.mean(axis=0))


def test_a_mode_with_zeros_does_not_know_how_sure_it_is():
    R = Rankings.from_orders([["yew", "elm", "ash"], ["elm", "yew", "ash"], ["yew", "ash", "elm"]])
    table = PlackettLuceRanker("em", shape=0.5).fit(None, R).worth()
    assert table[["lower", "upper", "first", "rank", "rank_lower", "rank_upper"]].isna().all(axis=None)
    assert table.index[0] == "yew" and table["log_worth"].is_monotonic_decreasing


@pytest.mark.parametrize("ask", ["prob_better", "rank_distribution"])
def test_the_best_come_first(ranked, ask):
    """Tables of all items begin with the best, and `top` leaves the others out."""
    for model in ranked:
        whole, order = getattr(model, ask)(), model.worth().index.tolist()
        assert whole.index.tolist() == order
        some = getattr(model, ask)(top=2)
        assert some.shape == (2, 2) and np.array_equal(some, whole.iloc[:2, :2], equal_nan=True)
        assert getattr(model, ask)(top=99).shape == (5, 5)
    with pytest.raises(ValueError, match="top must be a whole number"):
        getattr(model, ask)(top=0)


def test_rows_of_covariates_share_one_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1))
    orders = [rng.permutation(ITEMS[:3]).tolist() for _ in range(40)]
    model = PlackettLuceRanker("em", shape=1.0, features="exp").fit(X, Rankings.from_orders(orders))
    table, order = model.prob_better(X[:3]), model.worth(X=X[:3]).index.tolist()
    assert [item for _, item in table.index] == 3 * order and table.columns.tolist() == order


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"scale": "chess"}, "scale must be one of"),
        ({"anchor": 1000}, "anchor must be one item with its value"),
        ({"anchor": {"ash": 1, "elm": 2}}, "anchor must be one item"),
        ({"anchor": {"box": 1}}, "there is no item 'box'"),
        ({"anchor": {"ash": np.inf}}, "must be a finite number"),
    ],
)
def test_mistakes(ranked, settings, words):
    with pytest.raises(ValueError, match=words):
        ranked[1].worth(**settings)


def test_forgotten_arguments_are_named():
    R = Rankings.from_pairs(["a", "b"], ["b", "a"])
    with pytest.raises(ValueError, match="rankings come second"):
        PlackettLuceRanker().fit(R)
    with pytest.raises(ValueError, match="R, the rankings, is missing"):
        PlackettLuceRanker().fit(None)


@pytest.mark.parametrize("n", [3, 30, 90])
def test_pictures_grow_with_the_number_of_items(n):
    """Every item has its label on a figure of its own, and on a small one labels are thinned."""
    import matplotlib.pyplot as plt

    items = [f"model {k}" for k in range(n)]
    R = Rankings.from_pairs(items + items[::-1], items[1:] + items[:1] + items[-2::-1] + items[-1:])
    model = PlackettLuceRanker("em", shape=2).fit(None, R)
    heights = [plots.worth(model, n=n).figure.get_figheight(), plots.prob_better(model, n=n).figure.get_figheight()]
    assert heights[0] == heights[1] and (heights[0] > 4.8) == (n > 16)
    whole = plots.worth(model, n=n)
    assert [label.get_text() for label in whole.get_yticklabels()] == model.worth().index.tolist()
    small = plots.worth(model, n=n, ax=plt.subplots(figsize=(4, 3))[1])
    assert min(n, 8) <= len(small.get_yticks()) <= 20 or n == 3
    plt.close("all")


def test_best_and_worst_are_a_race():
    """The log-likelihood of a task is the sum over all orders of the others, by enumeration."""
    sets = [ITEMS[:5], ITEMS[1:4], ITEMS[:2], ITEMS[:4]]
    best, worst = ["fir", "oak", "ash", "oak"], ["ash", "elm", "elm", "ash"]
    R = Rankings.from_best_worst(sets, best, worst, counts=[3, 2, 4, 1], items=ITEMS)
    model = PlackettLuceRanker("em", shape=2.0).fit(None, R)
    rate = dict(zip(ITEMS, model.weights_[:, 0], strict=True))
    for t, (some, top, bottom) in enumerate(zip(sets, best, worst, strict=True)):
        total = 0.0
        for between in itertools.permutations([item for item in some if item not in (top, bottom)]):
            order = [top, *between, bottom]
            total += np.prod([rate[order[s]] / sum(rate[item] for item in order[s:]) for s in range(len(order))])
        assert model.log_likelihood(None, R)[t] == pytest.approx(np.log(total), rel=1e-12)


@pytest.mark.parametrize(
    ("sets", "best", "worst", "words"),
    [
        ([["a", "b"]], ["a"], ["a"], "the same item"),
        ([["a", "b"]], ["c"], ["a"], "the best of row 0, 'c', is not among"),
        ([["a", "b"]], ["a"], ["c"], "the worst of row 0, 'c', is not among"),
        ([["a", "b", "b"]], ["a"], ["b"], "row 0 offers an item twice"),
        (["ab"], ["a"], ["b"], "a set is a list of items"),
        ([["a", "b"]], ["a"], [], "equally long"),
    ],
)
def test_mistakes_in_tasks(sets, best, worst, words):
    with pytest.raises(ValueError, match=words):
        Rankings.from_best_worst(sets, best, worst)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("learned", [False, pytest.param(True, marks=pytest.mark.long)])
def test_the_walk_on_tasks_draws_what_plain_sweeps_draw(learned):
    """Buckets of several sizes, with rankings that have no ties beside them."""
    from test_pairs import agree

    rng = np.random.default_rng(2)
    orders = []
    for _ in range(30):
        order = rng.permutation(5)[np.argsort(rng.exponential(np.arange(1, 6)))].tolist()
        orders.append([order[0], set(order[1:4]), order[4]] if rng.random() < 0.6 else order[:3])
    R = Rankings.from_orders(orders, unranked="absent", items=range(5))
    draws = []
    for moves, n in (("walk", 400), ("none", 800)):
        sampler = Gibbs(draws=n, tune=150, chains=4, moves=moves)
        model = PlackettLuceRanker(sampler, shape="learn" if learned else 1.2, random_state=0).fit(None, R)
        logs = model.posterior_.log_weights[..., 0]
        draws.append(logs - logs.mean(axis=2, keepdims=True))
    agree(*draws)
