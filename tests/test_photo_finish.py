"""Ties of pairs within a factor θ: the law by simulation, its parameter by EM, draws and an independent maximum."""

import warnings

import numpy as np
import pytest
from scipy import stats as laws
from scipy.optimize import minimize

from plackett import EM, Gibbs, PlackettLuceRanker, Rankings, load
from plackett.cli.rank_command import Ties
from plackett.data.observations import Observations
from plackett.engines.factory import make_engine
from plackett.inference.folds import situation_splits
from plackett.ranker import TIES
from plackett.responses import PhotoFinish

ITEMS = np.array(["ash", "elm", "fir", "oak"])


def races(rng, rates, theta, n):
    """Winners, losers and ties of n pairs that are seen within a factor of each other's times."""
    pairs = np.array([rng.choice(len(rates), 2, replace=False) for _ in range(n)])
    times = rng.exponential(1 / rates[pairs])
    first = np.argmin(times, axis=1)
    winner, loser = pairs[np.arange(n), first], pairs[np.arange(n), 1 - first]
    return winner, loser, times.max(axis=1) < theta * times.min(axis=1)


def as_rankings(winner, loser, tied, counts=None):
    orders = [
        [{ITEMS[w], ITEMS[v]}] if t else [ITEMS[w], ITEMS[v]] for w, v, t in zip(winner, loser, tied, strict=True)
    ]
    return Rankings.from_orders(orders, unranked="absent", counts=counts, items=ITEMS)


@pytest.fixture(scope="module")
def votes():
    return races(np.random.default_rng(0), np.exp([0.8, 0.2, -0.3, -0.7]), 1.6, 600)


def log_likelihood(x, winner, loser, tied):
    """Rao & Kupper (1967), of ln worths of all but the last item and ln(θ − 1)."""
    r, theta = np.exp(np.append(x[:3], 0.0)), 1 + np.exp(x[3])
    a, b = r[winner], r[loser]
    value = np.log(a) - np.log(a + theta * b)
    return np.sum(value + np.where(tied, np.log(theta**2 - 1) + np.log(b) - np.log(b + theta * a), 0.0))


def test_chances_are_those_of_the_race():
    """i first, j first and a tie sum to 1, and a tie is as frequent as it is in races."""
    rates, theta, n = np.array([1.0, 2.5]), 1.4, 200_000
    response = PhotoFinish(theta)
    chances = np.exp([response.expect(rates, [1])[0], response.expect(rates[::-1], [1])[0]])
    tie = np.exp(response.expect(rates, [2])[0])
    assert chances.sum() + tie == pytest.approx(1.0, abs=1e-12)
    *_, tied = races(np.random.default_rng(1), rates, theta, n)
    assert abs(tied.mean() - tie) < 4.5 * np.sqrt(tie * (1 - tie) / n)


def test_em_is_the_maximum(votes):
    best = minimize(lambda x: -log_likelihood(x, *votes), np.zeros(4), method="BFGS", options={"gtol": 1e-8})
    model = PlackettLuceRanker("em", shape=1, ties="photo-finish").fit(None, as_rankings(*votes))
    assert model.log_likelihood(None, as_rankings(*votes)).sum() == pytest.approx(-best.fun, abs=1e-7)
    assert model.parameters().loc["theta", "mean"] == pytest.approx(1 + np.exp(best.x[3]), rel=1e-5)
    table, steps = model.parameters(0.95), 1e-4 * np.eye(4)
    moved = [[log_likelihood(best.x + s * a + t * b, *votes) for s, t in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
            for a in steps for b in steps]  # fmt: skip
    curved = -(np.array(moved) @ [1, -1, -1, 1]).reshape(4, 4) / 4e-8
    ends = best.x[3] + np.array([-1, 1]) * 1.959964 * np.sqrt(np.linalg.inv(curved)[3, 3])
    np.testing.assert_allclose(np.log(table.loc["theta", ["lower", "upper"]].astype(float) - 1), ends, rtol=1e-3)
    assert (np.diff(model.trace_) > -1e-9).all()
    worth = model.worth().loc[ITEMS, "log_worth"].to_numpy()
    assert worth - worth[3] == pytest.approx(np.append(best.x[:3], 0.0), abs=1e-4)


def test_equal_pairs_are_counted(votes):
    """A vote of count 3 is three votes, in both engines, to rounding."""
    winner, loser, tied = (np.repeat(each, 3) for each in votes)
    once = PlackettLuceRanker("em", shape=1, ties="photo-finish").fit(None, as_rankings(*votes, counts=[3] * 600))
    for engine in ("numba", "numpy"):
        model = PlackettLuceRanker("em", shape=1, ties="photo-finish", engine=engine)
        again = model.fit(None, as_rankings(winner[:1800], loser[:1800], tied[:1800]))
        theta, same = (each.parameters().loc["theta", "mean"] for each in (once, again))
        assert same == pytest.approx(theta, rel=1e-6)


def test_draws_agree_with_a_random_walk(votes):
    """Posterior mean and deviation of ln(θ − 1) within Monte-Carlo error of those by an independent sampler."""
    model = PlackettLuceRanker(Gibbs(draws=1500, tune=200, chains=2), shape=1, ties="photo-finish", random_state=0)
    model.fit(None, as_rankings(*votes))
    drawn = np.log(model.posterior_.parameters[..., 0] - 1).ravel()
    rng, x = np.random.default_rng(3), np.array([1.0, 0.5, 0.2, -0.5])
    steps, walk, now = np.array([0.1, 0.1, 0.1, 0.08]), [], -np.inf
    for _ in range(20_000):
        new = x + steps * rng.standard_normal(4)
        r = np.exp(np.append(new[:3], 0.0))
        # Gam(1, 1) worths, whose shares are uniform on the simplex, and θ − 1 ~ Exp(1), each with its Jacobian
        value = log_likelihood(new, *votes) + np.sum(new[:3]) - 4 * np.log(r.sum()) + new[3] - np.exp(new[3])
        if np.log(rng.random()) < value - now:
            x, now = new, value
        walk.append(x[3])
    walk = np.array(walk[1000:])
    blocks = walk[: len(walk) // 50 * 50].reshape(50, -1).mean(axis=1)
    error = np.hypot(blocks.std() / np.sqrt(50), drawn.std() / np.sqrt(model.diagnostics_.parameters.ess_bulk.min()))
    assert abs(drawn.mean() - walk.mean()) < 4.5 * error
    assert drawn.std() == pytest.approx(walk.std(), rel=0.15)
    table = model.parameters()
    assert table.loc["theta", "lower"] < table.loc["theta", "mean"] < table.loc["theta", "upper"]


def test_the_shape_is_learned_by_held_out_votes(votes):
    """The loss of a fold is that with the θ of its own climb: at the start, θ = 1.5, it would be another."""
    em, R = EM(shapes=(3.0, 1.5), cv=2, tol=1e-9), as_rankings(*votes)
    model = PlackettLuceRanker(em, ties="photo-finish").fit(None, R)
    seen = Observations.of_rankings(R.outcomes, R.item, PhotoFinish(), len(R.items))
    whole = make_engine("numba").rows(None, seen)
    loss = 0.0
    for train, test in situation_splits(2, whole.order, None):
        part = PlackettLuceRanker(EM(tol=1e-9), shape=3.0, ties="photo-finish").fit(None, R[train])
        loss -= part.log_likelihood(None, R[test]).sum()
    assert model.cv_log_loss_[3.0] == pytest.approx(loss / len(R), abs=1e-6)
    assert model.shape_ in (3.0, 1.5)


def test_a_checkpoint_goes_on_with_the_same_draws(votes, tmp_path):
    sampler = {"draws": 12, "tune": 8, "chains": 2}
    shared = {"shape": 1, "ties": "photo-finish", "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = PlackettLuceRanker(Gibbs(**sampler), **shared).fit(None, as_rankings(*votes))
        for draws in (6, 12):
            inference = Gibbs(**sampler | {"draws": draws}, checkpoint=tmp_path / "votes.checkpoint")
            part = PlackettLuceRanker(inference, **shared).fit(None, as_rankings(*votes))
    np.testing.assert_array_equal(part.posterior_.parameters, whole.posterior_.parameters)
    np.testing.assert_array_equal(part.posterior_.log_weights, whole.posterior_.log_weights)


def test_what_is_predicted_knows_the_width_of_a_tie(votes):
    """A pair is won either way or tied; rankings of all items are refused."""
    model = PlackettLuceRanker("em", shape=1, ties="photo-finish").fit(None, as_rankings(*votes))
    worth, theta = model.worth().loc[ITEMS, "worth"].to_numpy(), model.parameters().loc["theta", "mean"]
    chance = model.prob_better(of="ranking").loc[ITEMS, ITEMS].to_numpy()
    expected = worth[:, None] / (worth[:, None] + theta * worth)
    np.testing.assert_allclose(chance[~np.eye(4, dtype=bool)], expected[~np.eye(4, dtype=bool)], rtol=1e-12)
    assert np.isnan(np.diag(chance)).all()
    assert f"theta {theta:.3g}" in repr(model)
    for ask in (model.sample, lambda: model.rank_distribution(of="ranking")):
        with pytest.raises(ValueError, match="law of pairs"):
            ask()


def test_the_command_line_knows_all_readings_of_ties():
    assert {each.value for each in Ties} == set(TIES)


@pytest.mark.long
def test_the_truth_has_any_rank():
    """θ from the prior ranks uniformly among draws given votes drawn with it."""
    rng, kept = np.random.default_rng(5), []
    for seed in range(300):
        lam, theta = rng.gamma(1.0, size=4), 1 + rng.exponential()
        R = as_rankings(*races(rng, lam, theta, 12))
        model = PlackettLuceRanker(Gibbs(draws=40, tune=40, chains=1), shape=1, ties="photo-finish", random_state=seed)
        model.fit(None, R)
        draws = model.posterior_.parameters[0, ::4, 0]
        kept.append((draws < theta).mean())
    assert laws.kstest(np.array(kept) + rng.uniform(-0.05, 0.05, 300), laws.uniform(-0.05, 1.1).cdf).pvalue > 1e-3


def test_file_and_arviz(votes, tmp_path):
    model = PlackettLuceRanker(Gibbs(draws=10, tune=10, chains=2), shape=1, ties="photo-finish", random_state=0)
    model.fit(None, as_rankings(*votes))
    model.save(tmp_path / "votes.plk")
    again = load(tmp_path / "votes.plk")
    np.testing.assert_array_equal(again.posterior_.parameters, model.posterior_.parameters)
    assert model.to_arviz().posterior["theta"].shape == (2, 10)


@pytest.mark.parametrize(
    ("settings", "X", "words"),
    [
        ({"inference": "variational"}, None, "no variational approximation"),
        ({"engine": "dask"}, None, "engine='dask'"),
        ({}, [[0.0]] * 600, "without covariates"),
    ],
)
def test_refused_in_words(votes, settings, X, words):
    with pytest.raises(ValueError, match=words):
        PlackettLuceRanker(ties="photo-finish", **settings).fit(X, as_rankings(*votes))


def test_longer_rankings_are_refused():
    R = Rankings.from_orders([["a", "b", "c"], [{"a", "b"}]], unranked="absent")
    with pytest.raises(ValueError, match="photo-finish' is for pairs"):
        PlackettLuceRanker(ties="photo-finish").fit(None, R)
