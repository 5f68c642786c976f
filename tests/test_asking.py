"""Pairs to compare next: expected information against brute force, limits, refusals."""

import numpy as np
import pytest

from plackett import EM, Gibbs, PlackettLuceClassifier, PlackettLuceRanker, Rankings, next_pairs

pytestmark = pytest.mark.usefixtures("quiet")
GIBBS = Gibbs(draws=100, tune=60, chains=2)
ITEMS = ["ash", "elm", "fir", "oak", "yew"]
LAWS = {  # probabilities of a win of the first, of the second and of a tie, at rates r and q and the parameter
    "unknown-order": lambda r, q, _: [r / (r + q), q / (r + q)],
    "photo-finish": lambda r, q, t: [
        r / (r + t * q), q / (q + t * r), (t * t - 1) * r * q / ((r + t * q) * (q + t * r))
    ],
    "davidson": lambda r, q, v: [x / (r + q + v * (r * q) ** 0.5) for x in (r, q, v * (r * q) ** 0.5)],
    "race": lambda r, q, _: [
        x / -np.expm1(-r - q)
        for x in (-np.expm1(-r) * np.exp(-q), -np.expm1(-q) * np.exp(-r), np.expm1(-r) * np.expm1(-q))
    ],
}  # fmt: skip


def votes(ties=True):
    rng = np.random.default_rng(0)
    pairs = np.array([rng.choice(ITEMS[:4], 2, replace=False) for _ in range(60)] + [["yew", "ash"], ["elm", "yew"]])
    return Rankings.from_pairs(*pairs.T, ties=rng.random(62) < 0.3 if ties else None)


def fitted(ties="unknown-order", **settings):
    return PlackettLuceRanker(GIBBS, ties=ties, random_state=0, **settings).fit(None, votes(ties != "unknown-order"))


def entropy(p):
    return -sum(x * np.log(x) for x in p)


@pytest.mark.parametrize("ties", LAWS)
def test_gains_are_those_of_brute_force(ties):
    """Draw by draw and pair by pair, by the probabilities as the papers have them."""
    model = fitted(ties)
    posterior = model.posterior_
    rates = np.exp(posterior.log_weights[..., 0]).reshape(-1, 5)
    if posterior.log_mass is not None:
        rates = rates * np.exp(posterior.log_mass).reshape(-1, 1)
    values = np.zeros(len(rates)) if posterior.parameters is None else posterior.parameters[..., 0].ravel()
    table, order = next_pairs(model, 100), model.worth().index.tolist()
    assert len(table) == 10 and table["gain"].is_monotonic_decreasing
    for first, second, gain, share in table.itertuples(index=False):
        assert order.index(first) < order.index(second)
        i, j = (model.items_.tolist().index(item) for item in (first, second))
        p = np.array([LAWS[ties](r[i], r[j], value) for r, value in zip(rates, values, strict=True)])
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert gain == pytest.approx(entropy(p.mean(axis=0)) - np.mean([entropy(each) for each in p]), abs=1e-10)
        tie = p[:, 2].mean() if p.shape[1] == 3 else 0.0
        assert share == pytest.approx(p[:, 0].mean() + tie / 2)


def test_the_law_that_is_chosen_by_held_out_votes_has_its_ties():
    chosen = fitted("auto")
    assert next_pairs(chosen, 3).equals(next_pairs(fitted(chosen.ties_), 3))


def test_the_item_that_is_known_least_is_asked_about():
    """The yew was compared twice, all others about thirty times."""
    table = next_pairs(fitted(), 4)
    assert all("yew" in pair for pair in table[["first", "second"]].to_numpy().tolist())
    assert next_pairs(fitted(tiers=True), 1).iloc[0][["first", "second"]].isin(["yew"]).any()


def test_pairs_are_limited():
    model = fitted()
    whole = next_pairs(model, 10)
    some = next_pairs(model, 3, among=["ash", "fir", "yew"])
    assert set(some["first"]) | set(some["second"]) == {"ash", "fir", "yew"}
    pair = (whole["first"] == some["first"][0]) & (whole["second"] == some["second"][0])
    assert whole[pair]["gain"].tolist() == [some["gain"][0]]
    once = next_pairs(model, 10, each=1)
    named = [*once["first"], *once["second"]]
    assert len(once) == 2 and len(set(named)) == 4
    assert once.iloc[0].tolist() == whole.iloc[0].tolist()
    assert next_pairs(model, 10, each=4).equals(whole)


@pytest.mark.parametrize(
    ("make", "settings", "words"),
    [
        (fitted, {"n": 0}, "n must be a whole number"),
        (fitted, {"each": 0}, "each must be a whole number"),
        (fitted, {"among": ["ash"]}, "two or more different items"),
        (fitted, {"among": ["ash", "box"]}, "there is no item 'box'"),
        (lambda: PlackettLuceRanker(EM(), shape=0.5).fit(None, votes(False)), {}, "EM gives one estimate"),
        (lambda: PlackettLuceRanker("em", shape=2, features="exp").fit(np.ones((62, 1)), votes(False)), {},
         "without covariates and segments"),
        (lambda: PlackettLuceRanker("em", shape=2, segments=2).fit(None, votes(False), groups=np.arange(62) % 9), {},
         "without covariates and segments"),
        (lambda: PlackettLuceClassifier("em", shape=1.0, features="exp").fit([[0.0], [1.0], [2.0]], [0, 1, 1]), {},
         "is for a PlackettLuceRanker"),
    ],
)  # fmt: skip
def test_mistakes_are_named(make, settings, words):
    with pytest.raises(ValueError, match=words):
        next_pairs(make(), **settings)
