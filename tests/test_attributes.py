"""Attributes of comparisons: their coefficients by maximum likelihood and draws, with all laws of ties."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats as laws
from scipy.optimize import minimize

from plackett import EM, Gibbs, PlackettLuceRanker, Rankings, Segments, load
from plackett.comparing import with_effects
from plackett.data.comparisons import root_mean_squares
from plackett.data.observations import Observations
from plackett.engines.factory import make_engine
from plackett.engines.pairs import PairRows
from plackett.inference.maximum import check_attained
from plackett.inference.worth_mode import Density, WorthPrior
from plackett.model.measures import measures
from plackett.model.race import Weights
from plackett.output.modelfile import ModelFileError
from plackett.responses import make_response
from plackett.responses.base import parameters_of
from plackett.responses.pair_laws import law_of

K, BETA = 5, np.array([0.6, -0.02])
NAMES = ("unknown-order", "photo-finish", "davidson", "race")
QUIET = "ignore:.*(tell nothing|converged|too few|settled|trusted).*"


def drawn(rng, name, log_rates, values, n, beta=BETA, eta=None):
    """Winners, losers, ties, who was shown first, and the differences of attributes, of n pairs under a law."""
    items = np.array([rng.choice(len(log_rates), 2, replace=False) for _ in range(n)])
    x = rng.normal(size=(n, 2)) * [1.0, 30.0]
    shift = x @ beta / 2
    u, v = log_rates[items].T
    u = u + (0.0 if eta is None else np.log(eta))
    chance = np.exp(law_of(make_response(name)).chances(u + shift, v - shift, np.asarray(values)).value)
    outcome = (rng.random(n) > np.cumsum(chance, axis=0)[:2]).sum(axis=0)
    lost = outcome == 1
    winner, loser = np.where(lost, items[:, 1], items[:, 0]), np.where(lost, items[:, 0], items[:, 1])
    return winner, loser, outcome == 2, items[:, 0], np.where(lost[:, None], -x, x)


def as_rankings(winner, loser, tied, first, x, counts=None, ordered=False):
    frame = pd.DataFrame(x, columns=["style", "length"])
    return Rankings.from_pairs(
        winner, loser, ties=tied, counts=counts, items=range(K), first=first if ordered else None, attributes=frame
    )


def votes(name, n=300, seed=0, ordered=False, **settings):
    rng = np.random.default_rng(seed)
    values = [each.start for each in parameters_of(make_response(name))]
    data = drawn(rng, name, rng.normal(size=K), values, n, eta=1.5 if ordered else None, **settings)
    return data, as_rankings(*data, ordered=ordered)


def negative(name, ordered, q, winner, loser, tied, first, x):
    """−ln likelihood, written out: worths but the last, ln θ − 1 or ln ν, ln η, coefficients of unit deviations."""
    rates, more = np.append(q[: K - 1], 0.0), list(q[K - 1 :])
    a = rates[winner] - rates[loser] + x @ (np.array(more[-2:]) / [1.0, 30.0])
    if ordered:
        a = a + np.where(first == winner, 1.0, -1.0) * more[-3]
    if name == "unknown-order":
        return np.logaddexp(0.0, -a)[~tied].sum()
    if name == "davidson":
        total = np.exp(a / 2) + np.exp(-a / 2) + np.exp(more[0])
        return -(np.where(tied, more[0], a / 2) - np.log(total)).sum()
    theta = 1 + np.exp(more[0])
    value = -np.log1p(theta * np.exp(-a))
    return -(value + np.where(tied, np.log(theta**2 - 1) - np.log1p(theta * np.exp(a)), 0.0)).sum()


@pytest.mark.filterwarnings(QUIET)
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("name", ["unknown-order", "photo-finish", "davidson"])
def test_maximum_likelihood_is_that_of_scipy(name, ordered):
    data, R = votes(name, ordered=ordered)
    size = K - 1 + (name != "unknown-order") + ordered + 2
    best = minimize(lambda q: negative(name, ordered, q, *data), np.zeros(size), method="BFGS", options={"gtol": 1e-8})
    model = PlackettLuceRanker("em", shape=1, ties=name, order_effect=ordered).fit(None, R)
    assert model.log_likelihood(None, R).sum() == pytest.approx(-best.fun, abs=1e-6)
    means = model.parameters()["mean"]
    assert means[["style", "length"]].to_numpy() * [1.0, 30.0] == pytest.approx(best.x[-2:], abs=1e-6)
    names = {"unknown-order": [], "photo-finish": ["theta"], "davidson": ["nu"]}[name] + ["eta"] * ordered
    assert means.index.tolist() == [*names, "style", "length"] and model.attributes_ == ["style", "length"]
    logs = model.worth().loc[range(K), "log_worth"].to_numpy()
    assert logs[:-1] - logs[-1] == pytest.approx(best.x[: K - 1], abs=2e-6)
    if ordered:
        assert np.log(means["eta"]) == pytest.approx(best.x[-3], abs=1e-6)
    assert (np.diff(model.trace_) > -1e-9).all()


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_slopes_and_curvature_are_those_of_the_value(name, ordered, monkeypatch):
    """By finite differences, also where pairs are passed in several blocks; and those of parameters alone."""
    _, R = votes(name, n=60, ordered=ordered)
    rows = rows_of(R, name, ordered)
    P, h = len(rows.parameters), 1e-6
    q = np.random.default_rng(1).normal(size=K + P)
    q[-2:] *= 0.3

    def slopes(q):
        value, of_x, of_free = rows.slopes(q[:K], q[K:])
        return value, np.append(of_x, of_free)

    whole = slopes(q)[1]
    monkeypatch.setattr("plackett.engines.pairs.BLOCK", 7)
    np.testing.assert_allclose(slopes(q)[1], whole, rtol=1e-10, atol=1e-10)
    differences = [(slopes(q + h * e)[0] - slopes(q - h * e)[0]) / (2 * h) for e in np.eye(K + P)]
    np.testing.assert_allclose(whole, differences, atol=3e-7)
    second = [(slopes(q - h * e)[1] - slopes(q + h * e)[1]) / (2 * h) for e in np.eye(K + P)]
    np.testing.assert_allclose(rows.curvature(q[:K], q[K:]), second, atol=5e-7)
    np.testing.assert_allclose(rows.curvature_of_parameters(q[:K], q[K:]), np.array(second)[K:, K:], atol=5e-7)
    values = np.array([each.bound(u) for each, u in zip(rows.parameters, q[K:], strict=True)])
    stats = rows.at(values).expect(Weights.point(q[:K, None]))
    np.testing.assert_allclose(stats.wins[:, 0] - stats.exposure[:, 0] * np.exp(q[:K]), whole[:K], atol=1e-9)


def rows_of(R, name, ordered=False):
    seen = Observations.of_rankings(R.outcomes, R.item, make_response(name), K)
    return PairRows(with_effects(seen, R, ordered))


@pytest.mark.parametrize("name", ["davidson", "race"])
def test_the_prior_of_coefficients(name):
    """N(0, 10²) per root mean square, whose slopes and curvature are those of the density, and its draws."""
    (*_, x), R = votes(name, n=60)
    rows = rows_of(R, name)
    style, length = rows.parameters[-2:]
    units = np.sqrt((x**2).mean(axis=0))
    assert [style.unit, length.unit] == pytest.approx(units, rel=1e-5)
    for value in (-0.3, 0.05):
        of_values = laws.norm(0, 10 / units[1]).logpdf(value) - laws.norm(0, 10 / units[1]).logpdf(0.0)
        assert length.log_prior(length.free(value)) == pytest.approx(of_values, rel=1e-4)
        assert length.bound(length.free(value)) == pytest.approx(value)
    some = [length.draw(rng_of(seed)) * units[1] for seed in range(400)]
    assert laws.kstest(some, laws.norm(0, 10).cdf).pvalue > 1e-3
    density = Density(rows, WorthPrior(0.8, 1.3, 0.0, name == "davidson"))
    q, h = np.random.default_rng(0).normal(size=K + density.P), 1e-6
    q[-2:] = [5.0, -7.0]
    unit = np.eye(len(q))
    differences = [(density.slopes(q + h * e)[0] - density.slopes(q - h * e)[0]) / (2 * h) for e in unit]
    np.testing.assert_allclose(density.slopes(q)[1], differences, atol=1e-6)
    second = [(density.slopes(q - h * e)[1] - density.slopes(q + h * e)[1]) / (2 * h) for e in unit]
    np.testing.assert_allclose(density.curvature(q), second, atol=1e-6)


def test_equal_comparisons_are_counted_in_any_order():
    """To the last bit: counts, the order of rows, i–j as j–i where they tie, and rows of weight 0."""
    (winner, loser, tied, first, x), _ = votes("davidson", n=80)
    x[:20, 1] = np.round(x[:20, 1])
    counts = 1 + np.arange(80) % 3
    once = as_rankings(winner, loser, tied, first, x, counts=counts)
    some = np.random.default_rng(1).permutation(np.repeat(np.arange(80), counts))
    turn = tied & (np.arange(80) % 2 == 0)
    upper, lower = np.where(turn, loser, winner), np.where(turn, winner, loser)
    again = as_rankings(upper[some], lower[some], tied[some], first[some], np.where(turn[:, None], -x, x)[some])
    assert len(rows_of(again, "davidson").first) == len(rows_of(once, "davidson").first) <= 80
    for inference in (EM(), Gibbs(draws=20, tune=20, chains=2)):
        found = []
        for R in (once, again, once[np.append(np.arange(80), 0)]):
            model = PlackettLuceRanker(inference, shape=1, ties="davidson", random_state=0)
            weight = np.append(np.ones(80), 0.0) if len(R) == 81 else None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append(model.fit(None, R, sample_weight=weight))
        for each in found[1:]:
            np.testing.assert_array_equal(each.weights_, found[0].weights_)
            np.testing.assert_array_equal(each.posterior_.parameters, found[0].posterior_.parameters)


def test_units_are_the_same_to_the_last_bit():
    """For counts and repeated rows in any order, of which sums of squares are rounded differently."""
    for seed in range(60):
        rng = rng_of(seed)
        x, counts = rng.normal(size=(50, 2)), rng.integers(1, 8, 50)
        some = rng.permutation(np.repeat(np.arange(50), counts))
        assert root_mean_squares(x, counts.astype(float)) == root_mean_squares(x[some], np.ones(len(some)))


def test_rankings_keep_the_sign_of_a_difference():
    """In rows, in the codes of other items, pickled and compared."""
    R = Rankings.from_pairs(
        ["b", "a", "c"], ["a", "c", "b"], ties=[True, False, True], attributes=pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    )
    assert R.attributes.ravel().tolist() == [-1.0, 2.0, -3.0]  # of ties the item with the smaller code is stored first
    other = R.with_items(["c", "b", "z", "a"])
    assert other.attributes.ravel().tolist() == [1.0, 2.0, 3.0] and other.attribute_names == ("x",)
    assert R[[2, 0]].attributes.ravel().tolist() == [-3.0, -1.0] and R[[2, 0]].attribute_names == ("x",)
    assert pickle.loads(pickle.dumps(R)) == R and other.with_items(R.items) == R
    plain = Rankings.from_pairs(["b", "a", "c"], ["a", "c", "b"], ties=[True, False, True])
    same = Rankings.from_pairs(
        ["a", "a", "b"], ["b", "c", "c"], ties=[True, False, True], attributes=pd.DataFrame({"x": [-1.0, 2.0, -3.0]})
    )
    assert same == R and plain != R and plain != R
    named = Rankings.from_pairs(["a"], ["b"], attributes=[[1.0]])
    assert named.attribute_names == ("x0",) and named != Rankings.from_pairs(["a"], ["b"], attributes=[[2.0]])
    assert named != Rankings.from_pairs(["a"], ["b"], attributes=pd.DataFrame({"x": [1.0]}))


@pytest.mark.filterwarnings(QUIET)
@pytest.mark.parametrize("name", ["davidson", "unknown-order", "race"])
def test_predictions_and_files(tmp_path, name):
    """Of new votes under their attributes, by the law written out; of items alone, where attributes are equal."""
    (winner, loser, tied, *_), R = votes(name, n=60, ordered=True)
    settings = {"ties": name, "order_effect": True, "random_state": 0, "shape": 1}
    model = PlackettLuceRanker(Gibbs(draws=10, tune=10, chains=2), **settings).fit(None, R)
    model.save(tmp_path / "votes.plk")
    again = load(tmp_path / "votes.plk")
    np.testing.assert_array_equal(again.log_likelihood(None, R), model.log_likelihood(None, R))
    assert again.attributes_ == ["style", "length"] and again.parameters().equals(model.parameters())
    draws = model.posterior_.parameters.reshape(20, -1)
    logs = np.log(model.posterior_.flat_draws()[..., 0])
    if model.posterior_.log_mass is not None:
        logs = logs + model.posterior_.log_mass.reshape(-1, 1)
    law, shown = law_of(make_response(name)), (R.item == R.first[R.situation]).reshape(-1, 2)
    chance = np.zeros((20, 60))
    for s in range(20):
        shift, eta = R.attributes @ draws[s, -2:] / 2, np.log(draws[s, -3])
        u = logs[s][R.item[::2]] + shown[:, 0] * eta + shift
        v = logs[s][R.item[1::2]] + shown[:, 1] * eta - shift
        value = law.chances(u, v, draws[s, :-3]).value
        chance[s] = np.exp(np.where(tied, value[2], value[0]))
    np.testing.assert_allclose(model.log_likelihood(None, R), np.log(chance.mean(axis=0)), rtol=1e-9, atol=1e-12)
    u, v = logs[:, 0], logs[:, 1]
    even = np.mean([np.exp(law.chances(u[[s]], v[[s]], draws[s, :-3]).value[0, 0]) for s in range(20)])
    assert model.prob_better(of="ranking").loc[0, 1] == pytest.approx(even)
    exported = model.to_arviz(R=R)
    assert exported.posterior["style"].shape == (2, 10)
    found = np.exp(exported.log_likelihood["ranking"].to_numpy()).reshape(20, -1)
    np.testing.assert_allclose(found, chance, rtol=1e-9)
    again.attributes_ = ["style"]
    with pytest.raises(ModelFileError, match="parameters must be"):
        again.save(tmp_path / "wrong.plk")


def agree(one, two):
    """Means within 4.5 standard errors, by effective sample sizes; deviations within a seventh."""
    (_, few, _), (_, many, _) = measures(one), measures(two)
    error = np.sqrt(one.var(axis=(0, 1)) / few + two.var(axis=(0, 1)) / many)
    assert (np.abs(one.mean(axis=(0, 1)) - two.mean(axis=(0, 1))) < 4.5 * error).all()
    np.testing.assert_allclose(one.std(axis=(0, 1)), two.std(axis=(0, 1)), rtol=0.15)


def of_draws(model):
    """Centred log-worths and parameters, those with bounds as logarithms."""
    logs, found = model.posterior_.log_weights[..., 0], model.posterior_.parameters.copy()
    found[..., :-2] = np.log(found[..., :-2])
    mass = [] if model.posterior_.log_mass is None else [model.posterior_.log_mass[..., None]]
    return np.concatenate([logs - logs.mean(axis=2, keepdims=True), found, *mass], axis=2)


@pytest.mark.filterwarnings(QUIET)
@pytest.mark.long
@pytest.mark.parametrize(("name", "ordered"), [("photo-finish", False), ("unknown-order", True), ("race", False)])
def test_the_walk_draws_what_plain_sweeps_draw(name, ordered):
    """Plain sweeps draw coefficients by slices, given arrival times."""
    _, R = votes(name, n=80, seed=4, ordered=ordered)
    found = []
    for moves, draws in (("walk", 300), ("none", 700)):
        sampler = Gibbs(draws=draws, tune=150, chains=4, moves=moves)
        model = PlackettLuceRanker(sampler, shape=0.8, ties=name, order_effect=ordered, random_state=0)
        found.append(of_draws(model.fit(None, R)))
    agree(*found)


@pytest.mark.filterwarnings(QUIET)
def test_much_data_have_the_law_of_the_curvature():
    """Means and deviations of coefficients by the inverse curvature at the mode, which many votes make exact."""
    _, R = votes("davidson", n=4000, seed=2)
    rows = rows_of(R, "davidson")
    best = PlackettLuceRanker("em", shape=1, ties="davidson").fit(None, R)
    values = best.parameters()["mean"].to_numpy()
    free = np.array([p.free(value) for p, value in zip(rows.parameters, values, strict=True)])
    curvature = rows.curvature(np.log(best.weights_[:, 0]), free)
    curvature[:K, :K] += 1.0  # the scale, which is not known
    deviation = np.sqrt(np.diag(np.linalg.inv(curvature))[K:])
    model = PlackettLuceRanker(Gibbs(draws=500, tune=150, chains=4), shape=1, ties="davidson", random_state=0)
    drawn_free = np.apply_along_axis(
        lambda row: [p.free(value) for p, value in zip(rows.parameters, row, strict=True)],
        2,
        model.fit(None, R).posterior_.parameters,
    )
    assert (np.abs(drawn_free.mean(axis=(0, 1)) - free) < 0.2 * deviation).all()
    np.testing.assert_allclose(drawn_free.std(axis=(0, 1)), deviation, rtol=0.12)
    interval = model.parameters().loc["style"]
    assert interval["lower"] < 0.6 < interval["upper"] or abs(interval["mean"] - 0.6) < 4 * deviation[1]


@pytest.mark.long
@pytest.mark.filterwarnings(QUIET)
def test_davidson_agrees_with_nuts():
    """Log-worths, ν and coefficients of an independent sampler, whose density is written out here."""
    import numba

    from nuts import sampled

    (winner, loser, tied, _, x), R = votes("davidson", n=120, seed=5)
    units, shape = np.sqrt((x**2).mean(axis=0)), 0.8
    z = x / units

    @numba.njit
    def density(q):
        gradient = np.empty(K + 3)
        lam = np.exp(q[:K])
        value = shape * q[:K].sum() - lam.sum() + q[K] - np.exp(q[K]) - (q[K + 1] ** 2 + q[K + 2] ** 2) / 200.0
        gradient[:K] = shape - lam
        gradient[K] = 1.0 - np.exp(q[K])
        gradient[K + 1 :] = -q[K + 1 :] / 100.0
        for t in range(len(winner)):
            half = (q[winner[t]] - q[loser[t]] + z[t, 0] * q[K + 1] + z[t, 1] * q[K + 2]) / 2.0
            total = np.exp(half) + np.exp(-half) + np.exp(q[K])
            value += (q[K] if tied[t] else half) - np.log(total)
            slope = ((0.0 if tied[t] else 1.0) - (np.exp(half) - np.exp(-half)) / total) / 2.0
            gradient[winner[t]] += slope
            gradient[loser[t]] -= slope
            gradient[K + 1 :] += z[t] * slope
            gradient[K] += (1.0 if tied[t] else 0.0) - np.exp(q[K]) / total
        return value, gradient

    other = sampled(density, K + 3, 600, 300, 4, 1)
    other[..., :K] -= other[..., :K].mean(axis=2, keepdims=True)
    other[..., K + 1 :] /= units
    sampler = Gibbs(draws=600, tune=200, chains=4)
    model = PlackettLuceRanker(sampler, shape=shape, ties="davidson", random_state=0).fit(None, R)
    agree(of_draws(model), other)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["davidson", "unknown-order", "photo-finish"])
def test_the_truth_has_any_rank(name):
    """Coefficients and a log-odds from the prior rank uniformly among draws, given votes drawn with them."""
    rng, ranks = np.random.default_rng(5), []
    own = parameters_of(make_response(name))
    for seed in range(100):
        log_rates, beta = np.log(rng.gamma(1.0, size=K)), np.empty(2)
        values = [each.lower + rng.exponential() for each in own]
        state = rng.bit_generator.state
        x = drawn(rng, name, log_rates, values, 25, np.zeros(2))[-1]  # differences do not depend on coefficients
        rng.bit_generator.state = state
        beta[:] = rng_of(seed).normal(size=2) * 10.0 / np.sqrt((x**2).mean(axis=0))
        data = drawn(rng, name, log_rates, values, 25, beta)
        assert np.allclose(np.abs(data[-1]), np.abs(x))
        sampler = Gibbs(draws=80, tune=80, chains=1)
        model = PlackettLuceRanker(sampler, shape=1, ties=name, random_state=seed).fit(None, as_rankings(*data))
        found, logs = model.posterior_.parameters[0, ::4], model.posterior_.log_weights[0, ::4, :, 0]
        odds = logs[:, 0] - logs[:, 1] < log_rates[0] - log_rates[1]
        ranks.append([*(found < np.append(values, beta)).mean(axis=0), odds.mean()])
    for each in np.array(ranks).T:
        spread = each + rng.uniform(-1 / 40, 1 / 40, len(each))
        assert laws.kstest(spread, laws.uniform(-1 / 40, 1 + 2 / 40).cdf).pvalue > 1e-3


def rng_of(seed):
    return np.random.default_rng([seed, 1])


@pytest.mark.filterwarnings("ignore")
def test_a_checkpoint_is_of_its_attributes(tmp_path):
    _, R = votes("davidson", n=60)
    sampler = Gibbs(draws=10, tune=10, chains=2, checkpoint=tmp_path / "draws")
    PlackettLuceRanker(sampler, shape=1, ties="davidson", random_state=0).fit(None, R)
    longer = Gibbs(draws=20, tune=10, chains=2, checkpoint=tmp_path / "draws")
    whole = Gibbs(draws=20, tune=10, chains=2)
    found = [PlackettLuceRanker(g, shape=1, ties="davidson", random_state=0).fit(None, R) for g in (longer, whole)]
    np.testing.assert_array_equal(*(model.posterior_.parameters for model in found))
    other = as_rankings(*votes("davidson", n=60)[0][:4], 2 * votes("davidson", n=60)[0][4])
    with pytest.raises(ValueError, match="checkpoint"):
        PlackettLuceRanker(longer, shape=1, ties="davidson", random_state=0).fit(None, other)


def test_a_smaller_shape_has_zeros_and_coefficients():
    """EM below shape 1 climbs; coefficients are at their maximum given the worths."""
    _, R = votes("davidson", n=200)
    model = PlackettLuceRanker(EM(tol=1e-9), shape=0.5, ties="davidson").fit(None, R)
    rows = rows_of(R, "davidson")
    values = model.parameters()["mean"].to_numpy()
    free = np.array([p.free(value) for p, value in zip(rows.parameters, values, strict=True)])
    with np.errstate(divide="ignore"):
        slope = rows.slopes(np.maximum(np.log(model.weights_[:, 0]), -600.0), free)[2]
    assert np.abs(slope).max() < 1e-4
    learned = PlackettLuceRanker(EM(shapes=(2.0, 1.0, 0.8), cv=2), ties="davidson").fit(None, R)
    assert learned.shape_ in (2.0, 1.0, 0.8)


def test_attributes_are_known_to_the_choice_of_ties():
    rng = np.random.default_rng(0)
    data = drawn(rng, "davidson", 1.5 * rng.normal(size=K), [1.5], 6000, beta=np.array([1.5, 0.0]))
    model = PlackettLuceRanker("em", shape=1, ties="auto", random_state=0).fit(None, as_rankings(*data))
    assert model.ties_ == "davidson" and model.parameters().index.tolist() == ["nu", "style", "length"]
    blind = Rankings.from_pairs(*data[:2], ties=data[2], items=range(K))
    without = PlackettLuceRanker("em", shape=1, ties="auto", random_state=0).fit(None, blind)
    assert model.tie_log_loss_["davidson"] < without.tie_log_loss_["davidson"] - 0.1


def test_engines_agree():
    _, R = votes("davidson")
    found = [PlackettLuceRanker("em", shape=1, ties="davidson", engine=e).fit(None, R) for e in ("numba", "numpy")]
    assert found[0].parameters().equals(found[1].parameters())
    seen = with_effects(Observations.of_rankings(R.outcomes, R.item, make_response("davidson"), K), R, False)
    assert isinstance(make_engine("numba").rows(None, seen), PairRows)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ([[1.0]], "a row for each of the 2 pairs"),
        ([1.0, 2.0], "one column or more"),
        (np.empty((2, 0)), "one column or more"),
        ([[1.0], [np.nan]], "finite numbers, got nan in column 'x0', row 1"),
        (pd.DataFrame({"a": ["long", "short"]}), "column 'a' must hold numbers"),
        (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), "must differ in their names"),
    ],
)
def test_tables_are_refused_in_words(attributes, words):
    with pytest.raises(ValueError, match=words):
        Rankings.from_pairs(["a", "b"], ["b", "a"], attributes=attributes)


@pytest.mark.parametrize(
    ("settings", "X", "words"),
    [
        ({"inference": "variational"}, None, "no variational approximation"),
        ({"inference": "bootstrap"}, None, "learned directions"),
        ({"engine": "dask"}, None, "cannot be had with engine='dask'"),
        ({}, [[0.0]] * 40, "is for pairs without covariates"),
        ({"segments": Segments(2)}, None, "segments have worths alone"),
        ({"ties": "davidson", "inference": Gibbs(moves="none")}, None, "not conjugate"),
    ],
)
def test_settings_are_refused_in_words(settings, X, words):
    _, R = votes("davidson", n=40)
    with pytest.raises(ValueError, match=words):
        PlackettLuceRanker(**({"inference": "em"} | settings)).fit(X, R)


def test_units_do_not_matter():
    """Log-likelihood and worths are the same for words as for letters, and numbers of any size are taken."""
    (winner, loser, tied, first, x), R = votes("davidson", n=200)
    best = PlackettLuceRanker("em", shape=1, ties="davidson").fit(None, R)
    for unit in (1e-3, 1e200):
        other = as_rankings(winner, loser, tied, first, x * [unit, 1.0])
        model = PlackettLuceRanker("em", shape=1, ties="davidson").fit(None, other)
        np.testing.assert_allclose(model.weights_, best.weights_, rtol=1e-6)
        slope, known = (each.parameters().loc["style", "mean"] for each in (model, best))
        assert slope * unit == pytest.approx(known, rel=1e-5)


def test_what_cannot_be_learned_is_refused_in_words():
    (winner, loser, tied, first, x), R = votes("davidson", n=80)

    def fit(columns, **settings):
        R = Rankings.from_pairs(winner, loser, ties=tied, first=first, items=range(K), attributes=columns)
        return PlackettLuceRanker("em", shape=1, ties="davidson", **settings).fit(None, R)

    price = np.array([1.0, 4.0, 2.0, 7.0, 3.0])
    with pytest.raises(ValueError, match="effect of 'price' cannot be told from the worths"):
        fit(pd.DataFrame({"style": x[:, 0], "price": price[winner] - price[loser]}))
    with pytest.raises(ValueError, match="cannot be told from the worths of the items or from the other effects"):
        fit(pd.DataFrame({"style": x[:, 0], "again": 2 * x[:, 0]}))
    with pytest.raises(ValueError, match="cannot be told"):
        fit(pd.DataFrame({"home": np.where(first == winner, 1.0, -1.0)}), order_effect=True)
    with pytest.raises(ValueError, match="'none' is 0 in all comparisons"):
        fit(pd.DataFrame({"none": np.zeros(80)}))
    with pytest.raises(ValueError, match="'nu' has the name of a parameter"):
        fit(pd.DataFrame({"nu": x[:, 0]}))
    sure = np.where(tied, 0.0, 1.0 + np.abs(x[:, 0]))
    with pytest.raises(ValueError, match="tells who wins without exception"):
        fit(pd.DataFrame({"sure": sure}))
    drawn_model = PlackettLuceRanker(Gibbs(draws=20, tune=20, chains=2), ties="davidson", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = drawn_model.fit(None, Rankings.from_pairs(winner, loser, ties=tied, attributes=sure[:, None]))
    assert found.parameters().loc["x0", "lower"] > 1.0


def test_new_votes_need_the_same_attributes():
    (winner, loser, tied, *_), R = votes("davidson", n=60)
    model = PlackettLuceRanker("em", shape=1, ties="davidson").fit(None, R)
    blind = Rankings.from_pairs(winner, loser, ties=tied, items=range(K))
    with pytest.raises(ValueError, match=r"knows the attributes \['style', 'length'\] .* have \[\]"):
        model.log_likelihood(None, blind)
    without = PlackettLuceRanker("em", shape=1, ties="davidson").fit(None, blind)
    with pytest.raises(ValueError, match=r"knows the attributes \[\]"):
        without.score(None, R)
    model.fit(None, blind)
    assert model.parameters().index.tolist() == ["nu"] and not hasattr(model, "attributes_")
    np.testing.assert_array_equal(model.weights_, without.weights_)


def test_a_coefficient_that_is_told_is_attained():
    """The information on a strong but finite effect is not taken for none."""
    data, R = votes("unknown-order", n=400, beta=np.array([4.0, 0.0]))
    model = PlackettLuceRanker("em", shape=1).fit(None, R)
    check_attained(rows_of(R, "unknown-order"), model.posterior_)
    assert 2.5 < model.parameters().loc["style", "mean"] < 7.0
