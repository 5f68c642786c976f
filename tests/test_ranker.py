"""The ranker: agreement with others, what it refuses, and what it answers."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import OneHotEncoder

from plackett import EM, Gibbs, PlackettLuceClassifier, PlackettLuceRanker, Rankings, Variational, load
from plackett.priors import GIG
from rankings import race

QUICK = Gibbs(draws=200, tune=100, chains=2)


def drawn(n, K=4, seed=0, ties="unknown-order", rates=None, places=None):
    """Rankings of K items "a", "b", …, by rates (n, K) or (K,), with ties as said."""
    rng = np.random.default_rng(seed)
    rates = np.broadcast_to(np.exp(np.linspace(1, -1, K)) if rates is None else rates, (n, K))
    items = np.array(list("abcdefghijkl")[:K])
    orders = [[set(items[b]) if len(b) > 1 else items[b[0]] for b in race(rng, r, ties, places)] for r in rates]
    return Rankings.from_orders(orders, unranked="last", items=items)


@pytest.fixture(scope="module")
def fitted():
    return PlackettLuceRanker(random_state=0).fit(None, drawn(60))


PAIRS = {"ab": 7, "ba": 3, "ac": 5, "ca": 4, "bc": 6, "cb": 2, "cd": 8, "dc": 1, "da": 2, "ad": 6}
PAIRS |= {"be": 4, "eb": 5, "ed": 3, "de": 3}  # winner and loser, and how often
FIRST = {"abc": 6, "bac": 4, "cab": 3, "cabde": 5, "dce": 2, "eabcd": 3, "ade": 4, "bcde": 5, "dab": 1}  # the first of


@pytest.mark.parametrize(
    ("seen", "log_worths"),
    [
        (PAIRS, [0.59593618, 0.15955927, 0.14756645, -0.81696273, -0.08609917]),
        (FIRST, [0.48454722, 0.40295128, 0.19474869, -0.56743594, -0.51481125]),
    ],
    ids=["pairs", "first of several"],
)
def test_maximum_likelihood_is_that_of_choix(seen, log_worths):
    """choix 0.4.1: mm_pairwise and mm_top1 (alpha=0, tol=1e-13); opt_pairwise and opt_top1 have six digits the same."""
    orders = [[first, set(others)] for first, *others in seen]
    R = Rankings.from_orders(orders, unranked="absent", counts=list(seen.values()))
    found = PlackettLuceRanker("em", shape=1.0).fit(None, R).worth()["log_worth"]
    np.testing.assert_allclose(found.loc[list("abcde")], log_worths, atol=1e-6)


@pytest.mark.data
def test_drivers_who_always_came_last_have_no_maximum(folder):
    R = Rankings.from_orders(pd.read_csv(folder / "nascar2002.csv"), unranked="absent")
    with pytest.raises(ValueError, match="5 components"):
        PlackettLuceRanker("em", shape=1.0).fit(None, R)


@pytest.mark.data
def test_race_ties_of_the_pudding_data(folder):
    """R's Davidson–Luce reaches −809.71 there, with as many parameters."""
    table = pd.read_csv(folder / "pudding.csv")
    pairs = [
        (row.i, row.j, tied, count)
        for row in table.itertuples()
        for tied, count in ((False, row.wins_i), (True, row.ties))
    ]
    pairs += [(row.j, row.i, False, row.wins_j) for row in table.itertuples()]
    winners, losers, tied, counts = zip(*pairs, strict=True)
    R = Rankings.from_pairs(winners, losers, np.array(tied), counts)
    m = PlackettLuceRanker("em", shape=1.0, rate=1e-9, ties="race").fit(None, R)
    assert m.log_likelihood(None, R) @ R.counts == pytest.approx(-810.11, abs=0.01)


@pytest.mark.parametrize("top", [None, [1]])
def test_em_maximises_the_likelihood(top):
    """Of full rankings and of first places alone: no worth can be moved to a gain."""
    R = drawn(80, places=top)
    m = PlackettLuceRanker("em", shape=1.0, rate=1.0).fit(None, R)
    theta, best = np.log(m.weights_[:, 0]), m.log_likelihood(None, R).sum()
    if top:  # the shares
        np.testing.assert_allclose(m.weights_[:, 0], np.bincount(R.item[R.outcomes.start[:-1]]) / 80, atol=1e-9)
    for k, step in itertools.product(range(4), (-1e-3, 1e-3)):
        moved = load_with(m, theta + step * (np.arange(4) == k))
        assert moved.log_likelihood(None, R).sum() < best


def load_with(m, theta):
    """The same model with other worths."""
    other = clone(m)
    vars(other).update(vars(m))
    other.posterior_ = type(m.posterior_)(softmax(theta)[:, None])
    return other


def test_first_places_with_covariates_are_the_classifier():
    """A ranking of which only the first place is known is a class."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    R = drawn(120, rates=np.exp(X @ rng.normal(size=(2, 4))), places=[1])
    y = R.items[R.item[R.outcomes.start[:-1]]]
    for inference, shape in ((EM(), 1.2), (Variational(draws=3000), 0.5)):
        ranker = PlackettLuceRanker(inference, shape, features="exp", random_state=0).fit(X, R)
        classifier = PlackettLuceClassifier(inference, shape, features="exp", random_state=0).fit(X, y)
        np.testing.assert_allclose(ranker.weights_, classifier.weights_, atol=1e-6)
        np.testing.assert_allclose(ranker.predict_proba(X), classifier.predict_proba(X), atol=1e-6)
        np.testing.assert_allclose(
            ranker.log_likelihood(X, R), np.log(classifier.predict_proba(X)[np.arange(120), R.item[::4]]), atol=1e-6
        )


def test_gibbs_agrees_with_the_variational_means(fitted):
    other = PlackettLuceRanker("variational", shape=fitted.shape_, random_state=0).fit(None, drawn(60))
    np.testing.assert_allclose(fitted.worth()["worth"], other.worth()["worth"], atol=0.02)
    assert fitted.diagnostics_.smallest_ess > 400
    assert fitted.diagnostics_.worst_rhat < 1.02


def test_worth_tells_the_same_as_its_parts(fitted):
    table, draws = fitted.worth(0.8), fitted.posterior_.log_weights.reshape(-1, 4)
    assert table.columns.tolist() == [
        *("worth", "log_worth", "lower", "upper", "first", "rank", "rank_lower", "rank_upper")
    ]
    assert table.index.name == "item"
    assert table["worth"].sum() == pytest.approx(1)
    assert table["log_worth"].mean() == pytest.approx(0, abs=1e-12)
    assert table["log_worth"].is_monotonic_decreasing
    by_item, centred = table.loc[fitted.items_], draws - draws.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(by_item["lower"], np.quantile(centred, 0.1, axis=0))
    np.testing.assert_allclose(by_item["worth"], np.exp(draws).mean(axis=0))
    places = fitted.rank_distribution().loc[fitted.items_]
    np.testing.assert_allclose(by_item["first"], places[1])
    np.testing.assert_allclose(by_item["rank"], places.to_numpy() @ places.columns)
    better = fitted.prob_better().loc[fitted.items_, fitted.items_]
    assert better.loc["a", "b"] == pytest.approx((draws[:, 0] > draws[:, 1]).mean())
    assert np.isnan(np.diag(better)).all()
    np.testing.assert_allclose((better + better.T).to_numpy()[~np.eye(4, dtype=bool)], 1)
    assert fitted.predict().tolist() == table.index.tolist() == list("abcd")
    np.testing.assert_allclose(fitted.predict_proba(), by_item["worth"])
    lower, upper = fitted.predict_interval(prob=0.5)
    assert (lower < fitted.predict_proba()).all()
    assert (fitted.predict_proba() < upper).all()


def test_probabilities_of_new_rankings_are_exact_sums(fitted):
    """Over all 24 rankings: they sum to 1, and give the places and who comes before whom."""
    orders = [list(order) for order in itertools.permutations("abcd")]
    R = Rankings.from_orders(orders)
    chance = np.exp(fitted.log_likelihood(None, R))
    assert chance.sum() == pytest.approx(1)
    places = fitted.rank_distribution(of="ranking")
    assert places.attrs["error"] <= 0.0025
    for k, place in itertools.product("abcd", range(4)):
        want = sum(p for p, order in zip(chance, orders, strict=True) if order[place] == k)
        assert abs(places.loc[k, place + 1] - want) < 4.5 * places.attrs["error"]
    before = sum(p for p, order in zip(chance, orders, strict=True) if order.index("b") < order.index("d"))
    assert fitted.prob_better(of="ranking").loc["b", "d"] == pytest.approx(before)
    drawn_first = np.array([order[0] for order in fitted.sample(n=4000, random_state=1).to_orders()])
    assert abs((drawn_first == "a").mean() - fitted.predict_proba()[0]) < 4.5 * 0.5 / np.sqrt(4000)
    assert fitted.score(None, R) == pytest.approx(np.log(chance).mean())


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("ties", ["unknown-order", "race"])
def test_ties_are_predicted_as_they_are_meant(ties):
    """The probabilities of all outcomes of two items with or without a tie, and of the new rankings drawn."""
    R = drawn(150, 3, ties="race", rates=np.array([0.8, 0.5, 0.3]))
    assert R.tied
    m = PlackettLuceRanker(QUICK, ties=ties, random_state=0).fit(None, R)
    three = [["a", "b", "c"], [{"a", "b"}, "c"], ["a", {"b", "c"}], [{"a", "b", "c"}]]
    chance = np.exp(m.log_likelihood(None, Rankings.from_orders(three, unranked="last")))
    sampled = [str(order) for order in m.sample(n=20_000).to_orders()]
    share = np.mean(np.array(sampled) == str(three[0]))
    if ties == "race":
        tied = 1 - m.prob_better(of="ranking").loc["a", "b"] - m.prob_better(of="ranking").loc["b", "a"]
        times = [order for order in m.sample(n=20_000, random_state=3).to_orders() if _share(order, "a", "b")]
        assert abs(len(times) / 20_000 - tied) < 4.5 * 0.5 / np.sqrt(20_000)
        assert abs(share - chance[0]) < 4.5 * 0.5 / np.sqrt(20_000)
        assert m.diagnostics_.mass_ess_bulk > 50
    else:
        orders = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]])
        assert chance[1] == pytest.approx(np.exp(m.log_likelihood(None, orders)).sum(), rel=1e-5)
        assert abs(share - chance[0]) < 4.5 * 0.5 / np.sqrt(20_000)


def _share(order, i, j):
    return any(isinstance(place, set) and {i, j} <= place for place in order)


def test_tied_rankings_that_all_agree():
    """Log-worths are as far apart as the prior allows, beyond what an exponential can hold, and stay finite."""
    R = Rankings.from_orders([[{"a", "b"}, "c", "d"], ["a", "b", "c", "d"]] * 20)
    m = PlackettLuceRanker(Gibbs(draws=100, tune=150), random_state=0).fit(None, R)
    assert np.isfinite(m.worth()).all(axis=None) and np.isfinite(m.trace_).all() and m.predict()[0] == "a"


def test_errors_name_what_is_wrong():
    R = Rankings.from_orders([["a", "b"], ["a", "b"], ["c", "d"], ["d", "c"]], unranked="absent")
    with pytest.raises(ValueError, match=r"3 components.*'a'; 'c', 'd'; 'b'"):
        PlackettLuceRanker("em", shape=1.0).fit(None, R)
    assert np.isfinite(PlackettLuceRanker("em", shape=1.5).fit(None, R).worth()["log_worth"]).all()
    assert min(PlackettLuceRanker(EM(cv=2)).fit(None, R).cv_log_loss_) > 1
    with pytest.raises(ValueError, match="components"):
        PlackettLuceRanker(EM(cv=2, shapes=(1.0, 0.5))).fit(None, R)
    with pytest.raises(ValueError, match="nobody placed 'b'"):
        PlackettLuceRanker("em", shape=1.0, ties="race").fit(None, R[:2])
    tied = Rankings.from_orders([["a", "b", "c"], [{"a", "b"}, "c"]])
    with pytest.raises(ValueError, match="row 1, and ties='error'"):
        PlackettLuceRanker(ties="error").fit(None, tied)
    with pytest.raises(ValueError, match=r"Rankings.from_orders"):
        PlackettLuceRanker().fit(None, [["a", "b"]])
    with pytest.raises(ValueError, match="2 rows and R has 4"):
        PlackettLuceRanker(features="exp").fit(np.zeros((2, 1)), R)
    with pytest.raises(ValueError, match="whole numbers"):
        PlackettLuceRanker().fit(None, R, sample_weight=[0.5, 1, 1, 1])
    with pytest.raises(ValueError, match="weight 0"):
        PlackettLuceRanker().fit(None, R, sample_weight=np.zeros(4))
    with pytest.raises(ValueError, match="sample_weight must"):
        PlackettLuceRanker().fit(None, R, sample_weight=[-1, 1, 1, 1])
    with pytest.raises(ValueError, match="sparse features"):
        PlackettLuceRanker("em", 1.1, features=OneHotEncoder()).fit(np.zeros((4, 1)), R)


@pytest.mark.parametrize(
    ("settings", "fit", "match"),
    [
        ({"features": "exp"}, {}, "features='exp'.*ignored.*no columns"),
        ({"ties": "last"}, {}, "ties must be"),
        ({"rate": 2.0}, {}, "rate=2.0.*ignored.*ties='race'"),
        ({"inference": Gibbs(moves="exchange")}, {}, "one weight an item"),
        ({"inference": Gibbs(move_budget=2.0)}, {}, "no moves"),
        ({"inference": Gibbs(draws=5, max_draws=7)}, {}, "gives up"),
        ({"inference": "em", "shape": 1.1}, {"groups": [1, 1, 2]}, "held out"),
        ({"groups": None}, {"groups": [1, 1, 2]}, "held out"),
        ({"inference": EM(shapes=(2.0,)), "shape": 1.1}, {}, "for shape='learn'"),
        ({"prior": GIG(0.5, 0.1), "shape": 1.1}, {}, "prior='gamma'"),
        ({"prior": "flat"}, {}, "prior must be"),
        ({"engine": "spark"}, {}, "engine must be"),
    ],
)
def test_what_would_be_ignored_is_refused(settings, fit, match):
    settings = {name: value for name, value in settings.items() if value is not None}
    with pytest.raises(ValueError, match=match):
        PlackettLuceRanker(**settings).fit(None, drawn(3), **fit)


def test_questions_that_make_no_sense_are_refused(fitted):
    R = drawn(5)
    with pytest.raises(ValueError, match="without covariates"):
        fitted.predict(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="of must be"):
        fitted.prob_better(of="luck")
    with pytest.raises(ValueError, match="'z'"):
        fitted.score(None, Rankings.from_orders([["a", "z"]], unranked="absent"))
    em = PlackettLuceRanker("em", 1.5, features="exp").fit(np.arange(5.0)[:, None], R)
    with pytest.raises(ValueError, match="1 covariates"):
        em.predict()
    with pytest.raises(ValueError, match="no interval"):
        em.predict_interval(np.zeros((1, 1)))
    with pytest.raises(ValueError, match="n must be"):
        fitted.sample(n=0)


def test_with_covariates_questions_are_of_rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 2)), columns=["age", "income"])
    R = drawn(80, 3, rates=np.exp(X.to_numpy() @ [[1, 0, -1], [0, 1, 0]]))
    m = PlackettLuceRanker("variational", features="exp", random_state=0).fit(X, R)
    few = X.iloc[:5]
    chance = m.predict_proba(few)
    assert chance.shape == (5, 3)
    np.testing.assert_allclose(chance.sum(axis=1), 1)
    assert m.predict(few).shape == (5, 3)
    for table in (m.prob_better(few), m.rank_distribution(few), m.rank_distribution(few, of="ranking")):
        assert table.shape == (15, 3)
        assert table.index.names == ["row", "item"]
    np.testing.assert_allclose(m.worth(X=few)["worth"].loc[m.items_], chance.mean(axis=0))
    assert len(m.sample(few, n=4)) == 20
    lower, upper = m.predict_interval(few)
    assert (lower < upper).all()
    assert m.summary().columns.tolist()[:2] == ["item", "feature"]
    assert m.score(X, R) > PlackettLuceRanker("variational", random_state=0).fit(None, R).score(None, R)
    every = Rankings.from_orders([list(order) for order in itertools.permutations("abc")])
    one = m.log_likelihood(X.iloc[[0] * 6], every)
    assert logsumexp(one) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_counts_weights_and_the_order_of_rankings(engine):
    """A count, a weight and repeated rows are the same, in any order and with either engine."""
    R, rng = drawn(12), np.random.default_rng(1)
    times = rng.integers(0, 3, size=12)
    m = PlackettLuceRanker(Gibbs(draws=20, tune=10, chains=2), engine=engine, random_state=0)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        first = m.fit(None, R, sample_weight=times).posterior_.log_weights
        order = rng.permutation(12)
        second = clone(m).fit(None, R[order], sample_weight=times[order]).posterior_.log_weights
        other = clone(m).set_params(engine="auto").fit(None, R, sample_weight=times).posterior_.log_weights
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, other, rtol=1e-8)
    em = PlackettLuceRanker("em", shape=1.3, engine=engine)
    repeated = R[np.repeat(np.arange(12), times)]
    np.testing.assert_allclose(
        em.fit(None, R, sample_weight=times).weights_, clone(em).fit(None, repeated).weights_, atol=1e-8
    )


def test_folds_do_not_depend_on_the_order_of_rankings():
    """Also where some have ties, which are held apart from those without."""
    rng, em = np.random.default_rng(2), PlackettLuceRanker(EM(cv=3, shapes=(2.0, 1.2)))
    ranks, order = np.argsort(rng.gumbel(size=(40, 4)) + np.arange(4), axis=1) + 1, rng.permutation(40)
    ranks[::3] = (ranks[::3] + 1) // 2
    losses = [list(em.fit(None, Rankings.from_ranks(each)).cv_log_loss_.values()) for each in (ranks, ranks[order])]
    np.testing.assert_allclose(*losses, rtol=1e-12)


def test_scikit_learn_splits_rankings():
    R, empty = drawn(40), np.empty((40, 0))
    scores = cross_val_score(PlackettLuceRanker("em", shape=1.2), empty, R, cv=4)
    assert (scores < 0).all()
    assert scores.mean() > -np.log(24)
    search = GridSearchCV(PlackettLuceRanker("em"), {"shape": [1.1, 3.0]}, cv=3).fit(empty, R)
    assert search.best_params_["shape"] in (1.1, 3.0)
    assert search.predict(empty[:2]).shape == (2, 4)


@pytest.mark.long
def test_groups_are_held_out_together():
    R, raters = drawn(40), np.repeat(np.arange(10), 4)
    together = PlackettLuceRanker("em").fit(None, R, groups=raters).cv_log_loss_
    apart = PlackettLuceRanker("em").fit(None, R).cv_log_loss_
    assert together.keys() == apart.keys()
    assert together != apart


def test_a_model_is_kept_in_a_file_and_shown(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    same = load(tmp_path / "model")
    pd.testing.assert_frame_equal(same.worth(), fitted.worth())
    assert "4 items, shape a" in repr(fitted)
    assert "Worths" in fitted._repr_html_()
    assert fitted.summary().columns.tolist()[-2:] == ["ess", "rhat"]
    em = PlackettLuceRanker("em", 1.0).fit(None, drawn(60))
    assert "one estimate" in repr(em)
    assert (em.worth()["lower"] < em.worth()["log_worth"]).all()


def test_arviz_has_log_worths_and_a_log_likelihood_for_loo(fitted):
    import arviz as az

    R = drawn(60)
    data = fitted.to_arviz(R=R)
    assert data.posterior["log_worth"].dims == ("chain", "draw", "item")
    assert data.log_likelihood["ranking"].shape == (4, 1000, 60)
    loo = az.loo(data)
    found = float(getattr(loo, "elpd_loo", getattr(loo, "elpd", None)))
    assert found == pytest.approx(60 * fitted.score(None, R), abs=5)
    assert found < 60 * fitted.score(None, R)


@pytest.mark.parametrize("inference", [Gibbs(draws=200, tune=100), "variational"], ids=["gibbs", "variational"])
@pytest.mark.parametrize("ties", ["unknown-order", "race"])
@pytest.mark.filterwarnings("ignore:.*(R-hat|trusted|draws a chain)")
def test_comparisons_that_all_go_one_way(inference, ties):
    """The prior alone bounds worths, which underflow: all that is said of them is finite, without a RuntimeWarning."""
    for orders in ([["a", "b"]] * 50, [["a", "b"], ["a", "c"], ["a", "d"]] * 20):
        R = Rankings.from_orders(orders, unranked="absent")
        model = PlackettLuceRanker(inference, ties=ties, random_state=0).fit(None, R)
        found = model.worth()
        assert found.index[0] == "a" == model.predict()[0] and np.isfinite(found).all(axis=None)
        assert found["worth"]["a"] > 0.99 and (found["lower"] <= found["log_worth"]).all()
        for of in ("worth", "ranking"):
            others = model.prob_better(of=of).to_numpy()[~np.eye(len(found), dtype=bool)]
            assert ((others >= 0) & (others <= 1)).all()
            np.testing.assert_allclose(model.rank_distribution(of=of).sum(axis=1), 1)
