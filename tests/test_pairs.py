"""Pairs by distinct pair: laws of ties and of who is shown first, their slopes, EM, and the walk on worths."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats as laws
from scipy.optimize import minimize

from plackett import EM, Gibbs, PlackettLuceRanker, Rankings, load
from plackett.data.observations import Observations, Situations
from plackett.engines.factory import make_engine
from plackett.engines.pairs import PairRows
from plackett.inference.folds import situation_splits
from plackett.inference.worth_mode import Density, WorthPrior
from plackett.model.race import Weights
from plackett.model.verdict import SETTLED
from plackett.priors import GIG
from plackett.responses import Outcomes, make_response
from plackett.responses.base import parameters_of
from plackett.responses.order_effect import OrderEffect
from plackett.responses.pair_laws import BradleyTerry, Davidson, PairLaw, RaoKupper, Slots, law_of

K = 5
NAMES = ("unknown-order", "photo-finish", "davidson", "race")
LAWS = [(name, order) for name in NAMES for order in (False, True) if order or name != "unknown-order"]
QUIET = "ignore:.*(tell nothing|converged|too few).*"


def some_pairs(n=60, seed=0):
    """Outcomes, items, which entry was shown first, and bucket sizes of random pairs with counts."""
    rng = np.random.default_rng(seed)
    items = np.array([rng.choice(K, 2, replace=False) for _ in range(n)])
    sizes = [[2] if tied else [1] for tied in rng.random(n) < 0.3]
    shown = np.zeros((n, 2), dtype=int)
    which = rng.integers(-1, 2, n)
    shown[which >= 0, which[which >= 0]] = 1
    return Outcomes.of([2] * n, sizes, rng.integers(1, 5, n)), items, shown, sizes


def rows_of(name, order, outcomes, items, shown):
    response = OrderEffect(make_response(name)) if order else make_response(name)
    return PairRows(Observations.of_situations(Situations(outcomes, items.ravel(), shown.ravel()), response, K))


def drawn(rng, name, rates, values, n, eta=None):
    """Winners, losers, ties and who was shown first, of n pairs under the law of this name."""
    items = np.array([rng.choice(len(rates), 2, replace=False) for _ in range(n)])
    u, v = np.log(rates[items]).T
    law = law_of(make_response(name))
    chance = np.exp(law.chances(u + (0.0 if eta is None else np.log(eta)), v, values).value)
    outcome = (rng.random(n) > np.cumsum(chance, axis=0)[:2]).sum(axis=0)
    turned = outcome == 1
    winner, loser = np.where(turned, items[:, 1], items[:, 0]), np.where(turned, items[:, 0], items[:, 1])
    return winner, loser, outcome == 2, items[:, 0]


def as_rankings(winner, loser, tied, first=None, counts=None):
    return Rankings.from_pairs(winner, loser, ties=tied, counts=counts, items=range(K), first=first)


@pytest.mark.parametrize(("name", "order"), LAWS)
def test_slopes_and_curvature_are_those_of_the_value(name, order):
    """By finite differences, in ln λ and in the unconstrained parameters; r s = n − slope."""
    outcomes, items, shown, _ = some_pairs()
    rows = rows_of(name, order, outcomes, items, shown)
    rng, P, h = np.random.default_rng(1), len(rows.parameters), 1e-6
    q = rng.normal(size=K + P)

    def slopes(q):
        value, of_x, of_free = rows.slopes(q[:K], q[K:])
        return value, np.append(of_x, of_free)

    differences = [(slopes(q + h * e)[0] - slopes(q - h * e)[0]) / (2 * h) for e in np.eye(K + P)]
    np.testing.assert_allclose(slopes(q)[1], differences, atol=2e-7)
    second = [(slopes(q - h * e)[1] - slopes(q + h * e)[1]) / (2 * h) for e in np.eye(K + P)]
    np.testing.assert_allclose(rows.curvature(q[:K], q[K:]), second, atol=2e-7)
    values = np.array([each.bound(u) for each, u in zip(rows.parameters, q[K:], strict=True)])
    stats = rows.at(values).expect(Weights.point(q[:K, None]))
    np.testing.assert_allclose(stats.wins[:, 0] - stats.exposure[:, 0] * np.exp(q[:K]), slopes(q)[1][:K], atol=1e-11)
    assert stats.value == pytest.approx(slopes(q)[0], rel=1e-14)


def test_many_pairs_go_in_blocks(monkeypatch):
    """Blocks that cut runs of the same items, and two of one pair that differ in who was shown first."""
    rows = rows_of("davidson", True, *some_pairs()[:3])
    q = np.random.default_rng(1).normal(size=K + 2)
    whole = *rows.slopes(q[:K], q[K:]), rows.value(Weights.point(q[:K, None]))
    assert 0 < len(rows.runs) < len(rows.first)
    monkeypatch.setattr("plackett.engines.pairs.BLOCK", 7)
    again = *rows.slopes(q[:K], q[K:]), rows.value(Weights.point(q[:K, None]))
    for one, other in zip(whole, again, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_pairs_are_situations(name):
    """Values, wins and exposures are those of the response, pair by pair."""
    outcomes, items, shown, sizes = some_pairs()
    response, log_rates = make_response(name), np.random.default_rng(2).normal(size=K)
    stats = rows_of(name, False, outcomes, items, shown).expect(Weights.point(log_rates[:, None]))
    value, wins, exposure = 0.0, np.zeros(K), np.zeros(K)
    for count, pair, size in zip(outcomes.counts, items, sizes, strict=True):
        one, n, s = response.expect(np.exp(log_rates[pair]), size)
        value += count * one
        wins[pair] += count * n
        exposure[pair] += count * s
    assert stats.value == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(stats.wins[:, 0], wins, rtol=1e-13)
    np.testing.assert_allclose(stats.exposure[:, 0], exposure, rtol=1e-12)


@pytest.mark.parametrize("name", ["unknown-order", "photo-finish", "race"])
def test_drawn_times_average_to_the_expected_ones(name):
    outcomes, items, shown, _ = some_pairs()
    rows = rows_of(name, True, outcomes, items, shown)
    rows = rows.at(np.array([1.7] * len(rows.parameters)))
    weights = Weights.point(np.random.default_rng(2).normal(size=(K, 1)))
    times = np.array([rows.sample(weights, key).exposure[:, 0] for key in range(1500)])
    error = times.std(axis=0) / np.sqrt(len(times))
    assert (np.abs(times.mean(axis=0) - rows.expect(weights).exposure[:, 0]) < 4.5 * error).all()


def test_without_ties_all_laws_are_one():
    """θ → 1 and ν → 0 are the race without ties; the chances of three outcomes sum to 1."""
    u, v = np.random.default_rng(0).normal(size=(2, 50))
    plain = BradleyTerry().chances(u, v, np.empty(0))
    for law, near, some in ((RaoKupper(), 1.0 + 1e-12, 1.4), (Davidson(), 1e-12, 0.8)):
        np.testing.assert_allclose(law.chances(u, v, np.array([near])).value[:2], plain.value[:2], atol=1e-11)
        np.testing.assert_allclose(np.exp(law.chances(u, v, np.array([some])).value).sum(axis=0), 1.0, rtol=1e-13)


@pytest.mark.parametrize("law", [BradleyTerry(), RaoKupper(), Davidson(), Slots()])
def test_sums_over_outcomes_are_those_of_the_chances(law):
    """Sums in closed form, of log-odds of any size; without votes everything is 0."""
    rng, values = np.random.default_rng(3), np.array([1.7] * len(law.parameters))
    u, v = rng.normal(size=(2, 60)) * np.repeat([1.0, 30.0, 400.0], 20)
    counts = rng.integers(0, 4, (3, 60)).astype(float)
    own, general = law.summed(u, v, values, counts), PairLaw.summed(law, u, v, values, counts)
    assert type(law).summed is not PairLaw.summed
    assert own.value == pytest.approx(general.value, rel=1e-13)
    for one, other in zip(own[1:], general[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    empty = law.summed(u, v, values, np.zeros((3, 60)))
    assert empty.value == 0.0 and all((each == 0.0).all() for each in empty[1:])


def test_equal_pairs_are_counted_in_any_order():
    """A vote of count 3 is three votes, i–j is j–i, and the order of the votes does not matter, to the last bit."""
    rng = np.random.default_rng(0)
    winner, loser, tied, first = drawn(rng, "davidson", np.exp(rng.normal(size=K)), np.array([0.8]), 80, eta=1.5)
    once = as_rankings(winner, loser, tied, first, counts=[3] * 80)
    some = rng.permutation(np.repeat(np.arange(80), 3))
    turn = tied & (rng.random(80) < 0.5)  # of a tie either may be named first
    upper, lower = np.where(turn, loser, winner), np.where(turn, winner, loser)
    again = as_rankings(upper[some], lower[some], tied[some], first[some])
    models = [
        PlackettLuceRanker(inference, shape=1, ties="davidson", order_effect=True, random_state=0).fit(None, R)
        for inference in ("em", Gibbs(draws=20, tune=20, chains=2))
        for R in (once, again)
        if not warnings.simplefilter("ignore")
    ]
    assert np.array_equal(models[0].weights_, models[1].weights_)
    assert np.array_equal(models[2].posterior_.log_weights, models[3].posterior_.log_weights)
    assert np.array_equal(models[2].posterior_.parameters, models[3].posterior_.parameters)


@pytest.mark.parametrize("engine", ["numba", "numpy"])
def test_em_is_the_maximum(engine):
    """Davidson with an order effect, against BFGS on a likelihood written out here."""
    rng = np.random.default_rng(3)
    winner, loser, tied, first = drawn(rng, "davidson", np.exp(rng.normal(size=K)), np.array([0.7]), 400, eta=1.6)

    def negative(x):
        r, nu, eta = np.exp(np.append(x[: K - 1], 0.0)), np.exp(x[K - 1]), np.exp(x[K])
        a, b = r[winner] * np.where(first == winner, eta, 1), r[loser] * np.where(first == loser, eta, 1)
        tie = nu * np.sqrt(a * b)
        return -np.log(np.where(tied, tie, a) / (a + b + tie)).sum()

    best = minimize(negative, np.zeros(K + 1), method="BFGS", options={"gtol": 1e-7})
    model = PlackettLuceRanker("em", shape=1, ties="davidson", order_effect=True, engine=engine)
    R = as_rankings(winner, loser, tied, first)
    model.fit(None, R)
    assert model.log_likelihood(None, R).sum() == pytest.approx(-best.fun, abs=1e-6)
    assert model.parameters()["mean"].to_numpy() == pytest.approx(np.exp(best.x[K - 1 :]), rel=1e-4)
    assert model.parameters().index.tolist() == ["nu", "eta"]
    assert (np.diff(model.trace_) > -1e-9).all()
    likelihood = rows_of("davidson", True, *_outcomes(R))
    values = np.log(model.parameters()["mean"].to_numpy())
    slopes = likelihood.slopes(np.log(model.weights_[:, 0]), values)
    assert np.abs(np.append(*slopes[1:])).max() < 1e-4  # of 400 votes


def _outcomes(R):
    shown = np.zeros(len(R.item), dtype=int) if R.first is None else (R.item == R.first[R.situation]).astype(int)
    return R.outcomes, R.item, shown


@pytest.mark.parametrize("name", ["davidson", "photo-finish", "race"])
def test_newton_ends_where_passes_end(name, monkeypatch):
    """EM by passes alone comes to the mode that Newton's method starts it at, and climbs at every step."""
    rng = np.random.default_rng(3)
    values = np.array([each.start for each in parameters_of(make_response(name))])
    winner, loser, tied, _ = drawn(rng, name, np.exp(rng.normal(size=K)), values, 100)
    R, found = as_rankings(winner, loser, tied), []
    for start in (None, lambda rows, shape, rate, log_weights, *_: (rows, log_weights)):
        if start is not None:
            monkeypatch.setattr("plackett.inference.em.at_the_mode", start)
        found.append(PlackettLuceRanker(EM(tol=1e-9), shape=1.5, ties=name).fit(None, R))
    assert (np.diff(found[1].trace_) > -1e-9).all() and found[0].n_iter_ < found[1].n_iter_
    np.testing.assert_allclose(found[0].weights_, found[1].weights_, rtol=1e-6)
    np.testing.assert_allclose(*(model.parameters()["mean"] for model in found), rtol=1e-6)


@pytest.mark.parametrize("inference", [EM(), Gibbs(draws=40, tune=20, chains=2)], ids=["em", "gibbs"])
@pytest.mark.parametrize("order", [False, True])
@pytest.mark.parametrize("name", ["unknown-order", "photo-finish", "davidson", "race"])
@pytest.mark.filterwarnings(QUIET, "ignore:predictions are")
def test_votes_one_by_one_are_the_same_as_counts(name, order, inference):
    rng = np.random.default_rng(4)
    values = np.array([each.start for each in parameters_of(make_response(name))])
    winner, loser, tied, first = drawn(rng, name, np.exp(rng.normal(size=K)), values, 60)
    counts = rng.integers(1, 4, 60)
    each = rng.permutation(np.repeat(np.arange(60), counts))
    votes = as_rankings(winner[each], loser[each], tied[each], first[each])
    model = PlackettLuceRanker(inference, ties=name, order_effect=order, shape=1.2, random_state=0)
    both = [model.fit(None, R).worth() for R in (as_rankings(winner, loser, tied, first, counts), votes)]
    pd.testing.assert_frame_equal(*both, check_exact=True)


@pytest.mark.parametrize("order", [False, True])
@pytest.mark.parametrize("longer", [False, True])
def test_each_ranking_has_its_own_log_likelihood_however_often_it_comes(order, longer):
    rng = np.random.default_rng(5)
    winner, loser, tied, first = drawn(rng, "davidson", np.exp(rng.normal(size=K)), np.array([0.7]), 80, eta=1.5)
    R = as_rankings(winner, loser, tied, [None if t % 4 == 0 else k for t, k in enumerate(first.tolist())])
    model = PlackettLuceRanker(EM(), ties="davidson", order_effect=order, shape=1.2).fit(None, R)
    if longer:
        orders = [rng.choice(4, 3, replace=False).tolist() for _ in range(40)]
        R = Rankings.from_orders(orders, unranked="absent", items=range(K))
        model = PlackettLuceRanker(EM(), shape=1.2).fit(None, R)
    found = model.log_likelihood(None, R)
    assert len(np.unique(found)) < len(R)
    np.testing.assert_allclose(found, [model.log_likelihood(None, R[[t]])[0] for t in range(len(R))], rtol=1e-12)


def test_votes_are_held_out_one_by_one(monkeypatch):
    held = []

    def recording(cv, order, units):
        held.append(len(order))
        return situation_splits(cv, order, units)

    monkeypatch.setattr("plackett.fit.situation_splits", recording)
    rng = np.random.default_rng(0)
    winner, loser, tied, _ = drawn(rng, "davidson", np.exp(rng.normal(size=K)), np.array([0.7]), 60)
    PlackettLuceRanker(EM(shapes=(3.0, 1.5), cv=2), ties="davidson").fit(None, as_rankings(winner, loser, tied))
    assert held == [60] and K**2 < 60


def test_the_shape_is_learned_by_held_out_pairs():
    rng = np.random.default_rng(0)
    winner, loser, tied, _ = drawn(rng, "davidson", np.exp(rng.normal(size=K)), np.array([0.7]), 200)
    model = PlackettLuceRanker(EM(shapes=(3.0, 1.5), cv=2), ties="davidson")
    model.fit(None, as_rankings(winner, loser, tied))
    assert model.shape_ in (3.0, 1.5) and len(model.cv_log_loss_) == 2


@pytest.mark.parametrize("prior", ["dirichlet", "gamma", "gig"])
def test_the_law_of_worths_and_its_mode(prior):
    """Slopes and curvature of the density by finite differences, and no slope at the mode."""
    shape, tail, free = 0.8, 0.3 if prior == "gig" else 0.0, prior == "dirichlet"
    outcomes, items, shown, _ = some_pairs()
    rows = rows_of("davidson" if free else "race", True, outcomes, items, shown)
    density = Density(rows, WorthPrior(shape, 1.3, tail, free))
    q, h = np.random.default_rng(0).normal(size=K + density.P), 1e-6
    unit = np.eye(len(q))
    differences = [(density.slopes(q + h * e)[0] - density.slopes(q - h * e)[0]) / (2 * h) for e in unit]
    np.testing.assert_allclose(density.slopes(q)[1], differences, atol=5e-7)
    second = [(density.slopes(q - h * e)[1] - density.slopes(q + h * e)[1]) / (2 * h) for e in unit]
    np.testing.assert_allclose(density.curvature(q), second, atol=5e-7)
    assert np.abs(density.slopes(density.mode())[1]).max() < 1e-5


def by_plain_sweeps(name, order, R, shape, seed):
    """Draws of the walk and of plain sweeps: ln worths against the first item, and ln of parameters."""
    found = []
    for moves, draws in (("walk", 400), ("none", 600)):
        sampler = Gibbs(draws=draws, tune=150, chains=4, moves=moves)
        model = PlackettLuceRanker(sampler, shape=shape, ties=name, order_effect=order, random_state=seed)
        found.append(model.fit(None, R))
    return found


@pytest.mark.filterwarnings(QUIET)
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "order", "shape"),
    [("photo-finish", True, 0.7), ("unknown-order", True, "learn"), ("race", False, 1.5), ("race", True, "learn")],
)
def test_the_walk_draws_what_plain_sweeps_draw(name, order, shape):
    """Means and deviations of all log-worths and parameters within Monte Carlo error."""
    rng = np.random.default_rng(4)
    values = np.array([1.5] if name == "photo-finish" else [])
    winner, loser, tied, first = drawn(rng, name, np.exp(rng.normal(size=K)), values, 60, eta=1.5)
    R = as_rankings(winner, loser, tied, first)
    draws = []
    for model in by_plain_sweeps(name, order, R, shape, 0):
        logs = model.posterior_.log_weights[..., 0]
        held = [logs - logs.mean(axis=2, keepdims=True)]
        if model.posterior_.parameters is not None:
            held.append(np.log(model.posterior_.parameters))
        if model.posterior_.log_mass is not None:
            held.append(model.posterior_.log_mass[..., None])
        draws.append(np.concatenate(held, axis=2))
    agree(*draws)


def agree(one, two):
    """Means within 4.5 standard errors, by effective sample sizes; deviations within a seventh."""
    from plackett.model.measures import measures

    (_, few, _), (_, many, _) = measures(one), measures(two)
    error = np.sqrt(one.var(axis=(0, 1)) / few + two.var(axis=(0, 1)) / many)
    assert (np.abs(one.mean(axis=(0, 1)) - two.mean(axis=(0, 1))) < 4.5 * error).all()
    np.testing.assert_allclose(one.std(axis=(0, 1)), two.std(axis=(0, 1)), rtol=0.15)


@pytest.mark.long
@pytest.mark.filterwarnings(QUIET)
def test_a_prior_with_a_tail_is_walked_too():
    R = as_rankings([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2], [False, True, False, False, True, False], counts=[4] * 6)
    prior, found = GIG(0.5, 0.7, 1.0), []
    for moves, draws in (("walk", 1000), ("none", 4000)):
        sampler = Gibbs(draws=draws, tune=300, chains=4, moves=moves)
        model = PlackettLuceRanker(sampler, prior=prior, ties="race", random_state=1).fit(None, R)
        found.append(model.posterior_.log_weights[..., 0] + model.posterior_.log_mass[..., None])
    agree(*found)


@pytest.mark.long
@pytest.mark.filterwarnings(QUIET)
def test_davidson_agrees_with_nuts():
    """Log-worths, ν and η of an independent sampler, whose density is written out here."""
    import numba

    from nuts import sampled

    rng = np.random.default_rng(5)
    winner, loser, tied, first = drawn(rng, "davidson", np.exp(rng.normal(size=K)), np.array([0.7]), 120, eta=1.5)
    home = (first == winner).astype(float) - (first == loser)
    shape = 0.8

    @numba.njit
    def density(q):
        gradient = np.empty(K + 2)
        lam = np.exp(q[:K])
        value = shape * q[:K].sum() - lam.sum()
        gradient[:K] = shape - lam
        for p in range(K, K + 2):  # Exp(1)
            value += q[p] - np.exp(q[p])
            gradient[p] = 1.0 - np.exp(q[p])
        for t in range(len(winner)):
            half = (q[winner[t]] - q[loser[t]] + home[t] * q[K + 1]) / 2.0
            total = np.exp(half) + np.exp(-half) + np.exp(q[K])
            value += (q[K] if tied[t] else half) - np.log(total)
            slope = ((0.0 if tied[t] else 1.0) - (np.exp(half) - np.exp(-half)) / total) / 2.0
            gradient[winner[t]] += slope
            gradient[loser[t]] -= slope
            gradient[K + 1] += home[t] * slope
            gradient[K] += (1.0 if tied[t] else 0.0) - np.exp(q[K]) / total
        return value, gradient

    other = sampled(density, K + 2, 600, 300, 4, 1)
    other[..., :K] -= other[..., :K].mean(axis=2, keepdims=True)
    model = PlackettLuceRanker(
        Gibbs(draws=600, tune=200, chains=4), shape=shape, ties="davidson", order_effect=True, random_state=0
    ).fit(None, as_rankings(winner, loser, tied, first))
    logs = model.posterior_.log_weights[..., 0]
    own = np.concatenate([logs - logs.mean(axis=2, keepdims=True), np.log(model.posterior_.parameters)], axis=2)
    agree(own, other)
    assert model.diagnostics_.grade == SETTLED and "nu" in repr(model)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["davidson", "photo-finish", "unknown-order"])
def test_the_truth_has_any_rank(name):
    """Parameters and a log-odds from the prior rank uniformly among draws, given votes drawn with them."""
    rng, ranks = np.random.default_rng(5), []
    own = parameters_of(make_response(name))
    for seed in range(300):
        rates, eta = rng.gamma(1.0, size=K), rng.exponential()
        values = np.array([each.lower + rng.exponential() for each in own])
        winner, loser, tied, first = drawn(rng, name, rates, values, 12, eta=eta)
        sampler = Gibbs(draws=60, tune=60, chains=1)
        model = PlackettLuceRanker(sampler, shape=1, ties=name, order_effect=True, random_state=seed)
        model.fit(None, as_rankings(winner, loser, tied, first))
        found, logs = model.posterior_.parameters[0, ::4], model.posterior_.log_weights[0, ::4, :, 0]
        odds = logs[:, 0] - logs[:, 1] < np.log(rates[0] / rates[1])
        ranks.append([*(found < np.append(values, eta)).mean(axis=0), odds.mean()])
    for each in np.array(ranks).T:
        spread = each + rng.uniform(-1 / 30, 1 / 30, len(each))
        assert laws.kstest(spread, laws.uniform(-1 / 30, 1 + 2 / 30).cdf).pvalue > 1e-3


@pytest.mark.filterwarnings("ignore")
def test_a_checkpoint_goes_on_with_the_same_draws(tmp_path):
    R = as_rankings([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2], [False, True, False, False, True, False])
    sampler = {"draws": 12, "tune": 16, "chains": 2}
    shared = {"ties": "davidson", "random_state": 0}
    whole = PlackettLuceRanker(Gibbs(**sampler), **shared).fit(None, R)
    for draws in (6, 12):
        inference = Gibbs(**sampler | {"draws": draws}, checkpoint=tmp_path / "votes.checkpoint")
        part = PlackettLuceRanker(inference, **shared).fit(None, R)
    for name in ("log_weights", "shape", "parameters"):
        np.testing.assert_array_equal(getattr(part.posterior_, name), getattr(whole.posterior_, name))


@pytest.mark.filterwarnings("ignore")
def test_file_arviz_and_predictions(tmp_path):
    """A model file keeps all; of a new pair the response itself gives the chances, with and without an order."""
    R = as_rankings(
        [0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2], [False, True, False, False, True, False], [0, 2, 2, 3, 0, 0]
    )
    model = PlackettLuceRanker(
        Gibbs(draws=10, tune=10, chains=2), shape=1, ties="davidson", order_effect=True, random_state=0
    ).fit(None, R)
    model.save(tmp_path / "votes.plk")
    again = load(tmp_path / "votes.plk")
    np.testing.assert_array_equal(again.log_likelihood(None, R), model.log_likelihood(None, R))
    assert again.order_effect and model.to_arviz().posterior["eta"].shape == (2, 10)
    weights, (nu, eta) = model.posterior_.flat_draws()[..., 0], model.posterior_.parameters.reshape(-1, 2).T
    a, b = weights[:, 0] * eta, weights[:, 1]
    assert model.log_likelihood(None, R)[0] == pytest.approx(np.log((a / (a + b + nu * np.sqrt(a * b))).mean()))
    a = weights[:, 0]
    chance = model.prob_better(of="ranking").loc[0, 1]
    assert chance == pytest.approx((a / (a + b + nu * np.sqrt(a * b))).mean())


def test_the_order_effect_of_simulated_games_is_found():
    rng = np.random.default_rng(6)
    winner, loser, tied, first = drawn(rng, "unknown-order", np.exp(rng.normal(size=K)), np.empty(0), 3000, eta=1.8)
    model = PlackettLuceRanker("em", shape=1, order_effect=True).fit(None, as_rankings(winner, loser, tied, first))
    assert np.log(model.parameters().loc["eta", "mean"]) == pytest.approx(
        np.log(1.8), abs=4.5 * 2 / np.sqrt(3000) * 1.3
    )


def test_engines_know_pairs():
    """Pairs with counts of ties go by distinct pair, longer rankings situation by situation."""
    R = as_rankings([0, 1], [1, 2], [True, False])
    for name in ("davidson", "race"):
        seen = Observations.of_rankings(R.outcomes, R.item, make_response(name), K)
        assert all(isinstance(make_engine(e).rows(None, seen), PairRows) for e in ("numba", "numpy"))
    longer = Rankings.from_orders([[0, 1, 2], [{1, 2}]], unranked="absent")
    seen = Observations.of_rankings(longer.outcomes, longer.item, make_response("race"), 3)
    assert not isinstance(make_engine("numba").rows(None, seen), PairRows)


@pytest.mark.parametrize(
    ("settings", "X", "first", "words"),
    [
        ({"ties": "davidson", "inference": "variational"}, None, None, "no variational approximation"),
        ({"ties": "davidson", "engine": "dask"}, None, None, "engine='dask'"),
        ({"ties": "davidson", "inference": Gibbs(moves="none")}, None, None, "not conjugate"),
        ({"ties": "davidson"}, [[0.0]] * 2, None, "without covariates"),
        ({"order_effect": True}, [[0.0]] * 2, [0, 1], "order_effect=True is for pairs without"),
        ({"order_effect": True}, None, None, "needs to know what was shown first"),
        ({"order_effect": 1}, None, [0, 1], "must be True or False"),
        ({"inference": Gibbs(moves="walk")}, None, None, "moves='walk'"),
    ],
)
def test_refused_in_words(settings, X, first, words):
    with pytest.raises(ValueError, match=words):
        PlackettLuceRanker(**settings).fit(X, as_rankings([0, 1], [1, 0], None, first))


def test_longer_rankings_are_refused():
    R = Rankings.from_orders([["a", "b", "c"], [{"a", "b"}]], unranked="absent")
    with pytest.raises(ValueError, match="ties='davidson' is for pairs"):
        PlackettLuceRanker(ties="davidson").fit(None, R)


def test_a_tie_that_counts_connects_both_ways():
    """A maximum exists where ties alone lead back; where a parameter has none, EM says so."""
    R = as_rankings([0, 0, 1, 2, 3], [1, 1, 2, 3, 4], [False, True, True, True, True])
    for ties in ("davidson", "photo-finish"):
        model = PlackettLuceRanker("em", shape=1, ties=ties).fit(None, R)
        assert model.weights_[0] > model.weights_[1] and np.isfinite(model.parameters()["mean"].iloc[0])
        with pytest.raises(ValueError, match="every pair is a tie"):
            PlackettLuceRanker("em", shape=1, ties=ties).fit(None, as_rankings([0, 1], [1, 2], [True, True]))
    with pytest.raises(ValueError, match="who was shown first won every time"):
        PlackettLuceRanker("em", shape=2, order_effect=True).fit(None, as_rankings([0, 1], [1, 0], None, [0, 1]))


def test_ties_that_tell_nothing_are_noted():
    R = as_rankings([0, 1, 0], [1, 0, 1], [False, False, True], counts=[5, 5, 90])
    with pytest.warns(UserWarning, match="90 of 100 rankings are ties of two items, .* With ties='auto' they say"):
        PlackettLuceRanker("em", shape=1.5).fit(None, R)
    with pytest.warns(UserWarning, match="With ties='race' they say that items are alike.$"):
        PlackettLuceRanker("em", features="exp", shape=1.5).fit([[0.0], [1.0], [0.5]], R)


def test_what_was_shown_first_stays_with_its_pair():
    R = Rankings.from_pairs(["b", "a", "c"], ["a", "c", "b"], first=["a", None, "c"])
    assert R.first.tolist() == [0, -1, 2] and R[[2, 0]].first.tolist() == [2, 0]
    assert R.with_items(["c", "b", "z", "a"]).first.tolist() == [3, -1, 0]
    assert R[:2] == Rankings.from_pairs(["b", "a"], ["a", "c"], first=["a", np.nan], items=["a", "b", "c"])
    assert Rankings.from_pairs(["b", "a", "c"], ["a", "c", "b"]) != R
    with pytest.raises(ValueError, match="one of the two items, 'a' and 'b' in row 0, got 'c'"):
        Rankings.from_pairs(["a"], ["b"], first=["c"], items=["a", "b", "c"])
    with pytest.raises(ValueError, match="one label for each of the 1 pairs"):
        Rankings.from_pairs(["a"], ["b"], first=[])
