"""Described items: λ_k ~ Gam(a, a e^(−z_k·γ)). The density, the sampler, the mode, new items, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import betaln, expit

import plackett
from commands import mistake
from commands import plackett as plackett_command
from plackett import ChoiceSets, PlackettLuceChooser, PlackettLuceRanker, Rankings, plots
from plackett.data.item_covariates import ItemCovariates
from plackett.data.observations import Observations
from plackett.engines.by_passes import ByPasses
from plackett.engines.factory import make_engine
from plackett.inference import EM, Gibbs
from plackett.inference.base import Problem
from plackett.inference.described_walk import SPREAD, ArrowMetric, DescribedDensity, DescribedWalk, ShapedMetric
from plackett.inference.sweeps import SHAPE, State, Target
from plackett.inference.worth_mode import WorthPrior
from plackett.linear import LinearUtility
from plackett.priors import GIG, LogUniform, tabulate
from plackett.report import write_report
from plackett.responses import make_response
from plackett.segments import Segments

LABELS = ["ash", "elm", "fir", "oak", "yew"]
pytestmark = pytest.mark.usefixtures("quiet")
FEW = Gibbs(draws=40, tune=40, chains=2)


class Duels:
    """Likelihood of pairs: wins[i, j] times was i ahead of j. Written from its definition, for the tests alone."""

    absolute, parameters = False, ()

    def __init__(self, wins):
        self.wins, self.n_groups, self.n_seen = wins, len(wins), wins.sum()

    def slopes(self, x, free):
        ahead = x[:, None] - x
        lost = self.wins * expit(-ahead)
        return -(self.wins * np.logaddexp(0, -ahead)).sum(), lost.sum(axis=1) - lost.sum(axis=0), free

    def curvature(self, x, free):
        pull = (self.wins + self.wins.T) * expit(x[:, None] - x) * expit(x - x[:, None])
        return np.diag(pull.sum(axis=1)) - pull


def standardised(z):
    return (z - z.mean(axis=0)) / z.std(axis=0)


def density_of(K=4, d=2, shape=0.7, seed=0):
    rng = np.random.default_rng(seed)
    wins = rng.integers(0, 4, (K, K)) * (1 - np.eye(K))
    z = standardised(rng.normal(size=(K, d)))
    return DescribedDensity(Duels(wins), WorthPrior(shape, 1.0, 0.0, True), z), rng.normal(size=K + d)


def differences(f, q, h=1e-6):
    return np.array([(f(q + h * e) - f(q - h * e)) / (2 * h) for e in np.eye(len(q))])


def orders_of(log_worths, n, size, rng):
    """Rankings of `size` items each, drawn from the race."""
    some = [rng.choice(len(log_worths), size, replace=False) for _ in range(n)]
    return [each[np.argsort(rng.exponential(size=size) / np.exp(log_worths[each]))] for each in some]


def rankings(n=30, size=3, seed=0, log_worths=(-1.0, -0.5, 0.0, 0.5, 1.0)):
    found = orders_of(np.array(log_worths), n, size, np.random.default_rng(seed))
    return Rankings.from_orders([[LABELS[k] for k in order] for order in found], unranked="absent", items=LABELS)


def rankings_in_memory():
    R = rankings()
    return R.outcomes, R.item, make_response("ranking")


def table():
    return pd.DataFrame({"height": [30.0, 35, 50, 40, 60], "kind": list("abcab")}, index=LABELS)


def fitted(inference=FEW, items=None, R=None, **settings):
    items = table() if items is None else items
    return PlackettLuceRanker(inference, random_state=0, **settings).fit(None, R or rankings(), items=items)


# The density and its coordinates


def test_gradient_and_curvature_are_those_of_the_density():
    density, q = density_of()
    value, slope = density.slopes(q)
    y = q[:4] - density.z @ q[4:]
    law = 0.7 * (y - np.logaddexp.reduce(y)).sum() - 2 * y.mean() ** 2 - 0.5 * (q[4:] ** 2).sum() / SPREAD**2
    assert value == pytest.approx(density.likelihood.slopes(q[:4], q[:0])[0] + law)
    np.testing.assert_allclose(slope, differences(lambda at: density.slopes(at)[0], q), rtol=1e-5, atol=1e-6)
    curvature = -differences(lambda at: density.slopes(at)[1], q)
    np.testing.assert_allclose(density.curvature(q), curvature, rtol=1e-5, atol=1e-6)


def test_coordinates_follow_the_shape():
    density, q = density_of(shape=2.0)
    shares = np.exp(density.residuals(q))
    shares *= 4 / shares.sum()
    by_shape = density.of_residuals(np.diag(shares) - np.outer(shares, shares) / 4)
    metric = ShapedMetric.of(density.curvature(q), by_shape, 2.0)
    for shape in (0.3, 2.0, 50.0):
        other, _ = density_of(shape=shape)
        A = metric.at(shape).scale
        np.testing.assert_allclose(A.T @ other.curvature(q) @ A, np.eye(6), atol=1e-8)


def test_many_items_have_coordinates_without_a_matrix():
    z, rng = standardised(np.random.default_rng(0).normal(size=(5, 2))), np.random.default_rng(1)
    data, shares, others = rng.random(5), np.ones(5), np.array([2.0])
    metric = ArrowMetric(data, shares, others, z).at(3.0)
    to_y = np.hstack([np.eye(5), np.zeros((5, 1)), -z])
    curvature = 3.0 * to_y.T @ to_y + np.diag([*data, *others, *[SPREAD**-2] * 2])
    A = np.column_stack([metric.outward(e) for e in np.eye(8)])
    np.testing.assert_allclose(A.T @ curvature @ A, np.eye(8), atol=1e-10)
    np.testing.assert_allclose([metric.inward(e) for e in np.eye(8)], A, atol=1e-12)


# The sampler


def geweke(n, seed=0, lower=0.4, upper=4.0, K=3):
    """|z| of statistics of (a, γ, λ, wins), drawn from prior and model, and by a chain with new data at each step."""
    rng, z = np.random.default_rng(seed), standardised(np.array([[0.0], [1.0], [5.0]]))
    pairs = np.triu(np.full((K, K), 2), 1)

    def data(x):
        upper = rng.binomial(pairs, expit(x[:, None] - x))
        return (upper + (pairs - upper).T * (pairs.T > 0)).astype(float)

    def statistics(a, gamma, x, wins):
        x = x - x.mean()
        first = wins[0].sum()
        return [np.log(a), np.log(a) ** 2, gamma, gamma**2, x[0], x[2], x[0] ** 2, np.log(a) * x[2] ** 2, gamma * x[2],
                first, first**2, gamma * first, first * x[0]]  # fmt: skip

    direct = np.empty((4 * n, 13))
    for t in range(len(direct)):
        a, gamma = np.exp(rng.uniform(np.log(lower), np.log(upper))), SPREAD * rng.normal()
        x = z[:, 0] * gamma + np.log(rng.gamma(a, size=K))
        direct[t] = statistics(a, gamma, x, data(x))
    target = Target(1.0, True, *tabulate(LogUniform(lower, upper)))
    problem = Problem(None, 1.0, np.random.SeedSequence(0), shape_steps=2)
    walk = DescribedWalk(Duels(data(np.zeros(K))), problem, target, None, z)
    chain = walk.begin(State(np.zeros((K, 1)), np.array([0.0, 1.0, 0.0, 0.0])), rng)
    found, one = np.empty((n, 13)), {"log_weights": np.empty((1, K, 1)), "gamma": np.empty((1, 1))}
    one |= {"shape": np.empty(1), "value": np.empty(1)}
    for t in range(n):
        walk.likelihood = Duels(data(chain.place[:K]))
        for _ in range(3):
            walk.advance(chain, False, **one)
        found[t] = statistics(chain.state.numbers[SHAPE], chain.place[K], chain.place[:K], walk.likelihood.wins)
    means = found.reshape(40, -1, 13).mean(axis=1)
    error = np.sqrt(means.var(axis=0, ddof=1) / 40 + direct.var(axis=0) / len(direct))
    return np.abs(means.mean(axis=0) - direct.mean(axis=0)) / error


def test_geweke():
    assert geweke(2000).max() < 4


@pytest.mark.long
def test_geweke_longer():
    assert geweke(40_000, seed=1).max() < 4


def by_quadrature(won, lost, ln_a):
    """Means of γ, γ², ln odds, its square and ln a, uniform on a grid, of two items with z = −1, 1.

    The odds are e^(2γ)·p/(1−p) with p ~ Beta(a, a).
    """
    a = np.exp(ln_a)[:, None, None]
    gamma = np.linspace(-4 * SPREAD, 4 * SPREAD, 161)[:, None]
    y = np.linspace(-50, 50, 801)  # ln p/(1−p)
    odds = 2 * gamma + y
    law = a * (np.log(expit(y)) + np.log(expit(-y))) - betaln(a, a) - 0.5 * (gamma / SPREAD) ** 2
    law = np.exp(law - won * np.logaddexp(0, -odds) - lost * np.logaddexp(0, odds))
    if len(a) > 1:
        law[[0, -1]] /= 2  # trapezoids
    return [(law * f).sum() / law.sum() for f in (gamma, gamma**2, odds, odds**2, np.log(a))]


@pytest.mark.parametrize("shape", ["learn", 2.0])
def test_draws_agree_with_quadrature(shape):
    R = Rankings.from_pairs(["b", "a"], ["a", "b"], counts=[9, 3])
    prior = LogUniform(0.3, 5.0) if shape == "learn" else None
    m = fitted(Gibbs(draws=1000, tune=200, shape_prior=prior), {"a": 0.0, "b": 1.0}, R, shape=shape)
    gamma, odds = m.posterior_.gamma[..., 0], np.diff(m.posterior_.log_weights[..., 0], axis=2)[..., 0]
    drawn = gamma, gamma**2, odds, odds**2, np.log(m.posterior_.shape)
    ln_a = np.linspace(np.log(0.3), np.log(5.0), 25) if shape == "learn" else np.log([2.0])
    for each, exact in zip(drawn, by_quadrature(9, 3, ln_a), strict=True):
        batches = each.reshape(4, 20, -1).mean(axis=2)
        assert abs(each.mean() - exact) < 4 * batches.std(ddof=1) / np.sqrt(batches.size) + 1e-3 * abs(exact)


@pytest.mark.long
def test_draws_agree_with_nuts():
    from nuts import nuts_described

    rng, z = np.random.default_rng(2), standardised(np.random.default_rng(3).normal(size=(5, 2)))
    R = rankings(n=25, size=4)
    items = pd.DataFrame(z, index=LABELS, columns=["u", "v"])
    prior = LogUniform(0.3, 30.0)
    m = fitted(Gibbs(draws=3000, tune=300, shape_prior=prior), items, R)
    held = R.item.reshape(25, 4)
    other = nuts_described(held, z, SPREAD, np.log(0.3), np.log(30.0), seed=int(rng.integers(1000)))
    x = m.posterior_.log_weights[..., 0]
    own = np.dstack([x - x.mean(axis=2, keepdims=True), m.posterior_.gamma, np.log(m.posterior_.shape)[..., None]])
    for found in (own, own**2):
        power = 1 if found is own else 2
        means = [each.reshape(4, 10, -1, 8).mean(axis=2).reshape(40, 8) for each in (own**power, other**power)]
        error = np.sqrt(sum(each.var(axis=0, ddof=1) for each in means) / 40)
        assert (np.abs(means[0].mean(axis=0) - means[1].mean(axis=0)) < 4 * error).all()


def many_items(K, n, size, seed, shape, gamma=1.0):
    """A table of K items, the log-worths drawn from the prior, and rankings of the first two thirds."""
    rng, names = np.random.default_rng(seed), [f"i{k:03d}" for k in range(K)]
    z = rng.normal(size=K)
    x = gamma * z + np.log(rng.gamma(shape, size=K) / shape)
    ranked = 2 * K // 3
    found = orders_of(x[:ranked], n, size, rng)
    R = Rankings.from_orders([[names[k] for k in order] for order in found], unranked="absent", items=names[:ranked])
    return pd.DataFrame({"z": z}, index=names), x, R


def covered(seeds, inference, **sizes):
    """Share of the new items whose log-worth, relative to the mean of the ranked ones, is in its 90 % interval."""
    inside = []
    for seed in seeds:
        items, x, R = many_items(seed=seed, **sizes)
        m = PlackettLuceRanker(inference, random_state=seed).fit(None, R, items=items)
        worth = m.worth()
        new = worth.index[worth["new"]]
        places = items.index.get_indexer(new)
        truth = x[places] - x[: len(R.items)].mean()
        inside.append(((worth.loc[new, "lower"] <= truth) & (truth <= worth.loc[new, "upper"])).mean())
    return np.array(inside)


def check_coverage(inside):
    error = max(inside.std(ddof=1), 0.05) / np.sqrt(len(inside))
    assert abs(inside.mean() - 0.9) < 4 * error


def test_intervals_of_new_items_are_calibrated():
    short = Gibbs(draws=150, tune=100, chains=2)
    inside = covered(range(8), short, K=30, n=60, size=5, shape=4.0)
    check_coverage(inside)
    assert inside.mean() < 0.985  # they are not too wide either


@pytest.mark.slow
def test_intervals_of_new_items_are_calibrated_over_the_prior():
    rng = np.random.default_rng(0)
    inside = [
        covered([s], Gibbs(), K=24, n=60, size=5, shape=np.exp(rng.uniform(-1, 3)), gamma=rng.normal())
        for s in range(80)
    ]
    check_coverage(np.concatenate(inside))


class Cliff(Duels):
    """Slopes are no numbers, and then the value is not, where log-worths are far apart."""

    def slopes(self, x, free):
        value, slope, free = super().slopes(x, free)
        return -np.inf if np.ptp(x) > 4 else value, slope * (np.nan if np.ptp(x) > 3 else 1.0), free


def test_trajectories_that_end_nowhere_are_rejected():
    z, K = standardised(np.arange(3.0)[:, None]), 3
    target = Target(1.0, True, *tabulate(LogUniform(0.05, 5.0)))
    problem = Problem(None, 1.0, np.random.SeedSequence(0), shape_steps=2)
    walk = DescribedWalk(Duels(np.ones((K, K)) - np.eye(K)), problem, target, None, z)
    chain = walk.begin(State(np.zeros((K, 1)), np.array([0.0, 1.0, 0.0, 0.0])), np.random.default_rng(0))
    chain.place[:] = walk.mode
    walk.likelihood = Cliff(walk.likelihood.wins)
    n = 300
    draws = {"log_weights": np.empty((n, K, 1)), "gamma": np.empty((n, 1)), "shape": np.empty(n), "value": np.empty(n)}
    walk.advance(chain, True, **draws)
    assert np.isfinite(chain.step).all() and chain.step[0] > -5  # of trajectories: it still moves
    spread = np.ptp(draws["log_weights"][1:, :, 0], axis=1)
    assert spread.max() <= 3 and len(np.unique(spread)) > n / 4


def test_slopes_of_large_worths_do_not_overflow():
    rows = make_engine("numba").rows(None, Observations.of_rankings(*rankings_in_memory(), 5))
    x = np.linspace(-1.0, 1.0, 5)
    (value, slope, _), (same, other, _) = (ByPasses(rows).slopes(at, x[:0]) for at in (x, x + 1000.0))
    assert same == pytest.approx(value)
    np.testing.assert_allclose(other, slope, atol=1e-9)


@pytest.mark.parametrize("tied", [False, True])
def test_rankings_that_all_agree(tied):
    """Worths differ by hundreds of units, as far as the prior allows, and everything stays finite."""
    R = Rankings.from_orders([["ash", {"elm", "fir"}, "oak"] if tied else LABELS[:4]] * 30)
    m = fitted(Gibbs(draws=150, tune=150), {"ash": 3.0, "elm": 1.0, "fir": 2.0, "oak": 2.5, "yew": 5.0}, R)
    table = m.worth()
    assert np.isfinite(table.drop(columns="new")).all(axis=None) and np.isfinite(m.trace_).all()
    assert table.index[~table["new"]][0] == "ash" and m.shape_ < 0.5


@pytest.mark.parametrize("shape", [0.2, "learn", 1e6])
def test_chains_mix_at_every_shape(shape):
    items, _, R = many_items(18, 60, 4, 0, 3.0)
    m = fitted(Gibbs(draws=300, tune=150), items, R, shape=shape)
    assert m.diagnostics_.worst_rhat < 1.05 and m.diagnostics_.smallest_ess > 150


def test_many_items_are_drawn_without_a_matrix(monkeypatch):
    """The coordinates differ, the posterior does not."""
    items, _, R = many_items(18, 60, 4, 0, 3.0)
    dense = fitted(Gibbs(draws=600, tune=150), items, R, shape=2.0)
    monkeypatch.setattr("plackett.inference.described_walk.DENSE", 0)
    monkeypatch.setattr(DescribedDensity, "dense", 0)
    other = fitted(Gibbs(draws=600, tune=150), items, R, shape=2.0)
    assert other.diagnostics_.worst_rhat < 1.05
    means = [m.posterior_.gamma.reshape(4, 10, -1).mean(axis=2).ravel() for m in (dense, other)]
    assert means[0][0] != means[1][0]
    error = np.sqrt(sum(each.var(ddof=1) for each in means) / 40)
    assert abs(means[0].mean() - means[1].mean()) < 4 * error


@pytest.mark.parametrize("shape", [0.5, 5.0, 1e4])
def test_the_mode_of_many_items_is_found_without_a_matrix(monkeypatch, shape):
    items, _, R = many_items(18, 60, 4, 0, 3.0)
    dense = fitted(EM(), items, R, shape=shape)
    monkeypatch.setattr(DescribedDensity, "dense", 0)
    other = fitted(EM(), items, R, shape=shape)
    np.testing.assert_allclose(other.posterior_.gamma, dense.posterior_.gamma, rtol=1e-3)
    np.testing.assert_allclose(np.log(other.weights_), np.log(dense.weights_), atol=1e-3)


# The mode, and the linear limit


def test_em_is_the_mode():
    m = fitted(EM(), shape=2.0)
    x, gamma = np.log(m.weights_[:, 0]), m.posterior_.gamma
    z = m.item_covariates_.z

    def log_posterior(x, gamma):
        y = x - z @ gamma
        values = (R.counts * PlackettLuceRanker.log_likelihood(at(x), None, R)).sum()
        return values + 2.0 * (y - np.logaddexp.reduce(y)).sum() - 0.5 * (gamma**2).sum() / SPREAD**2

    def at(x):
        moved = fitted(EM(), shape=2.0)
        moved.posterior_ = type(m.posterior_)(np.exp(x - np.logaddexp.reduce(x))[:, None], gamma=gamma)
        return moved

    R = rankings()
    best = log_posterior(x, gamma)
    rng = np.random.default_rng(0)
    for _ in range(8):
        u, v = 1e-2 * rng.normal(size=5), 1e-2 * rng.normal(size=3)
        assert log_posterior(x + u, gamma + v) < best


def test_large_shapes_are_the_linear_model():
    """Exploded conditional logit of the items' covariates, with the same prior of the coefficient."""
    items, _, R = many_items(18, 50, 4, 0, 3.0)
    z = items["z"].to_numpy()[: len(R.items)]
    m = fitted(EM(), items.iloc[: len(z)], R, shape=1e7)
    frame = pd.DataFrame({"trip": R.situation, "item": R.items[R.item], "z": z[R.item]})
    sets = ChoiceSets.from_long(frame, situation="trip", alternative="item", attributes=["z"])
    spread = SPREAD * frame["z"].std(ddof=0) / z.std()
    linear = PlackettLuceChooser("em", features=LinearUtility(constants=False, spread=spread)).fit(sets, R)
    own = m.parameters().loc["gamma[z]", "mean"]
    assert own == pytest.approx(linear.coefficients().iloc[0]["coefficient"], rel=1e-4)
    worths = m.worth().loc[R.items.tolist(), "log_worth"]
    np.testing.assert_allclose(worths, own * (z - z.mean()), atol=1e-4)


def test_large_shapes_are_pladmm(monkeypatch):
    """R's PlackettLuce 0.4, pladmm(salad, ~ acetic + gluconic): 32 persons ordered four dressings by tartness.

    Rankings of Vargo (1989), published by Critchlow and Fligner (1991). Maximum likelihood has no prior.
    """
    monkeypatch.setattr("plackett.inference.described_walk.SPREAD", 1e3)
    salad = {
        "ABCD": 2,
        "BACD": 1,
        "BADC": 2,
        "CABD": 1,
        "BCAD": 2,
        "BDAC": 1,
        "DCAB": 1,
        "BCDA": 11,
        "BDCA": 6,
        "CBDA": 3,
        "CDBA": 1,
        "DCBA": 1,
    }
    R = Rankings.from_orders([list(order) for order in salad], counts=list(salad.values()))
    acids = pd.DataFrame({"acetic": [0.5, 0.5, 1, 0], "gluconic": [0, 10, 0, 10]}, index=list("ABCD"))
    mode = fitted(EM(), acids, R, shape=1e7)
    published, error = np.array([3.27431, 0.27392]), np.array([0.57650, 0.04505])
    np.testing.assert_allclose(mode.parameters()["mean"].iloc[:2], published, rtol=2e-3)  # it stops at 1e-4
    assert -2 * (R.counts * mode.log_likelihood(None, R)).sum() == pytest.approx(152.9, abs=0.05)
    draws = fitted(Gibbs(draws=500, tune=150), acids, R, shape=1e7).posterior_.effects() / acids.std(ddof=0).to_numpy()
    np.testing.assert_allclose(draws.std(axis=0), error, rtol=0.12)


def test_small_shapes_are_free_worths():
    R = rankings(n=200)
    free = PlackettLuceRanker("em", shape=1.0).fit(None, R).worth()["log_worth"]
    own = fitted(EM(), R=R, shape=1e-3).worth()["log_worth"]
    np.testing.assert_allclose(own[free.index], free, atol=0.02)


def test_em_chooses_the_shape_by_held_out_rankings():
    items, _, R = many_items(60, 60, 4, 0, 1e4)  # few rankings of each, on a line: free worths predict badly
    m = fitted(EM(cv=3), items, R)
    losses = m.cv_log_loss_
    assert m.shape_ == min(losses, key=losses.get) >= 30 and len(losses) == 8 and losses[0.3] > losses[300.0] + 0.05
    assert 0 < min(losses.values()) < np.log(24)  # that of equal chances
    assert list(fitted(EM(cv=2, shapes=(5.0, 2.0)), items, R).cv_log_loss_) == [5.0, 2.0]


@pytest.mark.parametrize("ties", ["photo-finish", "davidson"])
@pytest.mark.parametrize("inference", [EM(), FEW], ids=["em", "gibbs"])
def test_pairs_with_ties_and_an_order_effect(ties, inference):
    rng = np.random.default_rng(0)
    pairs = np.array([rng.choice(LABELS, 2, replace=False) for _ in range(60)])
    R = Rankings.from_pairs(*pairs.T, ties=rng.random(60) < 0.3, first=pairs[:, 0])
    m = fitted(inference, R=R, ties=ties, order_effect=True, shape=3.0)
    names = ["theta" if ties == "photo-finish" else "nu", "eta", "gamma[height]", "gamma[kind=b]", "gamma[kind=c]"]
    assert m.parameters().index.tolist() == [*names, "shape"]
    assert m.parameters().loc["eta", "mean"] > 1.5  # who was shown first won or tied every time
    assert np.isfinite(m.score(None, R))
    train, test = np.arange(40), np.arange(40, 60)
    chosen = fitted(EM(cv=[(train, test)], shapes=(5.0, 2.0)), R=R, ties=ties, order_effect=True)
    held_out = fitted(EM(), R=R[train], ties=ties, order_effect=True, shape=5.0).score(None, R[test])
    assert chosen.cv_log_loss_[5.0] == pytest.approx(-held_out)


@pytest.mark.parametrize("inference", [EM(), FEW], ids=["em", "gibbs"])
def test_other_engines_weights_and_ties(inference):
    R = rankings()
    reference = fitted(inference, R=R, engine="numpy", shape=2.0)
    np.testing.assert_allclose(fitted(inference, R=R, shape=2.0).weights_, reference.weights_, rtol=1e-6)
    twice = PlackettLuceRanker(EM(), shape=2.0).fit(None, R, np.full(30, 2.0), items=table())
    copies = fitted(EM(), R=R[np.repeat(np.arange(30), 2)], shape=2.0)
    np.testing.assert_allclose(twice.weights_, copies.weights_, rtol=1e-6)
    tied = Rankings.from_orders([[{"ash", "elm"}, "fir"], ["oak", {"yew", "ash"}, "fir"], LABELS], unranked="absent")
    assert np.isfinite(fitted(inference, R=tied, shape=2.0).score(None, tied))


@pytest.mark.parametrize("ties", ["unknown-order", "photo-finish"])
def test_free_worths_with_a_column_that_says_nothing(ties):
    """With γ far from the data's reach the model is the ranker without items, for each kind of rows."""
    rng = np.random.default_rng(1)
    pairs = np.array([rng.choice(LABELS, 2, replace=False) for _ in range(80)])
    tied = rng.random(80) < 0.2
    R = Rankings.from_pairs(*pairs.T, ties=tied) if ties == "photo-finish" else rankings(n=200)
    free = PlackettLuceRanker("em", shape=1.0, ties=ties).fit(None, R)
    own = fitted(EM(), R=R, shape=1e-3, ties=ties)
    np.testing.assert_allclose(own.worth()["log_worth"][free.worth().index], free.worth()["log_worth"], atol=0.02)
    if ties == "photo-finish":
        assert own.parameters().loc["theta", "mean"] == pytest.approx(free.parameters().loc["theta", "mean"], rel=1e-3)


# The table of items


def test_the_order_of_rows_does_not_matter():
    shuffled = table().sample(frac=1.0, random_state=1)[["kind", "height"]][["height", "kind"]]
    pd.testing.assert_frame_equal(fitted().worth(), fitted(items=shuffled).worth())
    pd.testing.assert_frame_equal(fitted().parameters(), fitted(items=shuffled).parameters())


def test_items_that_were_never_ranked_change_no_estimate():
    more = pd.concat([table(), pd.DataFrame({"height": [500.0, 20], "kind": ["b", "c"]}, index=["bay", "box"])])
    m, few = fitted(items=more), fitted()
    pd.testing.assert_frame_equal(m.parameters(), few.parameters())
    own, columns = m.worth(), ["log_worth", "lower", "upper"]
    assert own.index[own["new"]].tolist() in (["bay", "box"], ["box", "bay"]) and not few.worth()["new"].any()
    known = own[~own["new"]]
    pd.testing.assert_frame_equal(known[columns], few.worth().loc[known.index, columns])
    assert own["worth"].sum() == pytest.approx(1.0)
    new = few.worth(items=more.iloc[::-1])  # those of the fit may be in the table, in any order
    pd.testing.assert_frame_equal(new, own)
    assert own.loc["bay", "upper"] - own.loc["bay", "lower"] > known["upper"].sub(known["lower"]).max()


@pytest.mark.parametrize("ties", ["unknown-order", "davidson"])
def test_new_items_are_compared_and_placed(ties):
    """Tables list what `worth` lists, with the same draws; those of ranked items stay as they were."""
    more = pd.concat([table(), pd.DataFrame({"height": [500.0, 20], "kind": ["b", "c"]}, index=["bay", "box"])])
    rng = np.random.default_rng(0)
    pairs = np.array([rng.choice(LABELS, 2, replace=False) for _ in range(60)])
    R = Rankings.from_pairs(*pairs.T, ties=rng.random(60) < 0.3) if ties == "davidson" else rankings()
    few, m = (fitted(items=items, R=R, ties=ties) for items in (table(), more))
    worth, places, better = m.worth(), m.rank_distribution(), m.prob_better()
    assert worth["new"].sum() == 2 and places.columns.tolist() == [*range(1, 8)]
    assert places.index.tolist() == better.index.tolist() == better.columns.tolist() == worth.index.tolist()
    np.testing.assert_allclose(places.sum(axis=1), 1.0)
    np.testing.assert_allclose(places.to_numpy() @ np.arange(1, 8), worth["rank"])
    np.testing.assert_allclose(places[1], worth["first"])
    np.testing.assert_allclose(7 - better.sum(axis=1), worth["rank"])  # one more than those that are better
    known = few.worth().index
    for of in ("worth", "ranking"):
        own = m.prob_better(of=of)
        pd.testing.assert_frame_equal(own.loc[known, known], few.prob_better(of=of))
        pd.testing.assert_frame_equal(few.prob_better(of=of, items=more), own)
        sums = (own + own.T).to_numpy()[~np.eye(7, dtype=bool)]
        assert (sums < 1).all() if ties == "davidson" and of == "ranking" else np.allclose(sums, 1)
    pd.testing.assert_frame_equal(few.rank_distribution(items=more), places)
    assert few.rank_distribution(items=more, top=3).shape == (3, 3)
    if ties == "davidson":
        with pytest.raises(ValueError, match="law of pairs"):
            m.rank_distribution(of="ranking")
    else:
        drawn = m.rank_distribution(of="ranking")
        np.testing.assert_allclose(drawn[1], worth["worth"], atol=5 * drawn.attrs["error"])
    for ask in (few.prob_better, few.rank_distribution):
        with pytest.raises(ValueError, match="there is no column 'kind'"):
            ask(items=more[["height"]])


def test_new_items_after_em_are_on_the_line():
    m = fitted(EM(), {name: k for k, name in enumerate(LABELS)}, shape=4.0)
    gamma = m.parameters().loc["gamma[z0]", "mean"]
    new = m.worth(items={"low": 1.0, "high": 3.0})
    assert new.loc["high", "log_worth"] - new.loc["low", "log_worth"] == pytest.approx(2 * gamma)
    assert np.isnan(new.loc["low", "lower"])


def test_forms_of_tables():
    heights = table()["height"]
    as_frame = fitted(EM(), heights.to_frame(), shape=2.0).worth()["worth"]
    named = {item: {"height": height} for item, height in heights.items()}
    listed = {item: [height] for item, height in heights.items()}
    for items in (heights.to_dict(), named, listed, heights.tolist(), heights.to_numpy()[:, None]):
        np.testing.assert_array_equal(fitted(EM(), items, shape=2.0).worth()["worth"], as_frame)
    numbers = Rankings.from_orders([[1, 2, 3], [2, 1, 3]])
    m = fitted(EM(), pd.DataFrame({"x": [1.0, 2, 4, 9]}, index=[1, 2, 3, 4]), numbers, shape=2.0)
    assert sorted(m.worth().index.tolist()) == [1, 2, 3, 4]


def test_kinds_of_columns():
    frame = pd.DataFrame({"a": [True, False, True, False, True], "b": pd.array([1, 2, 3, 4, 9], dtype="Int64"),
                          "c": pd.Categorical(list("uvuvu"))}, index=LABELS)  # fmt: skip
    found = ItemCovariates.learn(frame, np.array(LABELS))
    assert found.names == ("a", "b", "c=v")
    np.testing.assert_allclose(found.z[:, 0], -found.z[:, 2])


def test_levels_of_texts():
    found = ItemCovariates.learn(table(), np.array(LABELS))
    assert found.names == ("height", "kind=b", "kind=c")
    np.testing.assert_allclose(found.z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(found.z.std(axis=0), 1)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda t: t.drop(index=["fir", "oak"]), "items has no row for 'fir', 'oak', which were ranked"),
        (lambda t: t.assign(height=[30, np.nan, 50, 40, 60]), "'height' of items is missing for 'elm'. Fill it in"),
        (lambda t: t.assign(kind=["a", None, "c", "a", "b"]), "'kind' of items is missing for 'elm'"),
        (lambda t: t.assign(height=1.0), "'height' of items is the same for all ranked items: leave it out"),
        (lambda t: t.assign(kind=pd.Timestamp("2020-01-01")), "'kind' of items holds dates"),
        (lambda t: t[[]], "items has no columns"),
        (lambda t: t.rename(index={"elm": "ash"}), "items names 'ash' twice"),
        (lambda t: t["height"].tolist()[:3], "got list of shape [(]3,[)]; there are 5 items"),
        (lambda t: {}, "got an empty dictionary"),
        (lambda t: t.assign(height=np.inf), "'height' of items is infinite for some items"),
    ],
)
def test_errors_of_the_table(change, words):
    with pytest.raises(ValueError, match=words):
        fitted(items=change(table()))


def test_errors_of_new_items():
    m = fitted(EM(), shape=2.0)
    for items, words in (
        (table().assign(height=1.0), "'ash' was in the fit with other covariates"),
        (pd.DataFrame({"height": [1.0]}, index=["bay"]), "there is no column 'kind'"),
        (pd.DataFrame({"height": [np.nan], "kind": ["a"]}, index=["bay"]), "'height' of items is missing for 'bay'"),
        ([[1.0]], "new items have labels"),
    ):
        with pytest.raises(ValueError, match=words):
            m.worth(items=items)
    plain = PlackettLuceRanker("em", shape=2.0).fit(None, rankings())
    for ask in (plain.worth, plain.prob_better, plain.rank_distribution):
        with pytest.raises(ValueError, match="fitted without covariates of the items"):
            ask(items=table())


# What is refused


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"inference": "variational"}, "no variational approximation"),
        ({"inference": "bootstrap"}, "bootstrap|Bootstrap"),
        ({"inference": Gibbs(moves="none")}, "drawn by Hamiltonian trajectories"),
        ({"inference": Gibbs(moves="exchange")}, "Gibbs[(]moves='exchange'[)]"),
        ({"inference": Gibbs(move_budget=2.0)}, "move_budget"),
        ({"inference": EM(tol=1e-3), "shape": 2.0}, "EM[(]tol=0.001[)] would be ignored"),
        ({"inference": EM(accelerate=False), "shape": 2.0}, "found by Newton's method"),
        ({"ties": "race"}, "ties='race' identify the scale"),
        ({"segments": 2}, "segments have worths of their own"),
        ({"segments": Segments("auto")}, "segments have worths of their own"),
        ({"prior": GIG(1.0, 1.0)}, "belongs to prior='gamma'|would be ignored"),
        ({"rate": 2.0}, "rate=2.0"),
        ({"features": "exp"}, "features='exp'"),
        ({"engine": "dask"}, "items= cannot be had with engine='dask'"),
    ],
)
def test_refused_settings(settings, words):
    with pytest.raises(ValueError, match=words):
        fitted(**{"inference": "gibbs", **settings})


def test_covariates_of_rankers_are_refused():
    with pytest.raises(ValueError, match="Leave X or items out"):
        PlackettLuceRanker("em", features="exp", shape=2.0).fit(np.ones((30, 1)), rankings(), items=table())
    with pytest.raises(ValueError, match="groups say which rankings to hold out"):
        PlackettLuceRanker("em", shape=2.0).fit(None, rankings(), groups=np.arange(30) % 3, items=table())


# What users see


@pytest.mark.parametrize("inference", [EM(), FEW], ids=["em", "gibbs"])
def test_a_model_is_saved_and_loaded(inference, tmp_path):
    more = pd.concat([table(), pd.DataFrame({"height": [50.0], "kind": ["b"]}, index=["bay"])])
    m = fitted(inference, more, shape=2.0)
    m.save(tmp_path / "m.plk")
    other = plackett.load(tmp_path / "m.plk")
    pd.testing.assert_frame_equal(m.worth(), other.worth())
    pd.testing.assert_frame_equal(
        m.worth(items=more.rename(index={"bay": "box"})), other.worth(items=more.rename(index={"bay": "box"}))
    )
    pd.testing.assert_frame_equal(m.parameters(), other.parameters())
    assert repr(other) == repr(m) and "5 items described by 3 covariates" in repr(m)


def test_a_fit_without_items_forgets_them():
    m = fitted(EM(), shape=2.0).fit(None, rankings())
    assert not hasattr(m, "item_covariates_") and "new" not in m.worth() and m.parameters().empty


def test_tables_from_the_command_line(tmp_path):
    more = pd.concat([table(), pd.DataFrame({"height": [50.0], "kind": ["b"]}, index=["bay"])])
    more.to_csv(tmp_path / "items.csv", index_label="item")
    pd.DataFrame(rankings(size=5).to_orders()).to_csv(tmp_path / "orders.csv", index=False)
    run = tmp_path / "orders.csv", "--table", "orders", "--inference", "em", "--shape", 2, "--out", tmp_path / "m.plk"
    said = plackett_command("rank", *run, "--items", tmp_path / "items.csv").stdout
    assert "5 items described by 3 covariates" in said and "gamma[height] = " in said
    (line,) = (line for line in said.splitlines() if "bay" in line.split())
    assert "new" in line
    m = plackett.load(tmp_path / "m.plk")
    pd.testing.assert_frame_equal(m.worth(), fitted(EM(), more, rankings(size=5), shape=2.0).worth(), check_dtype=False)
    more.index.to_frame().to_csv(tmp_path / "labels.csv", index=False)
    wrong = mistake("rank", *run, "--force", "--items", tmp_path / "labels.csv", notes=False)
    assert "labels of the items in its first column" in wrong


@pytest.mark.parametrize("inference", [EM(), FEW], ids=["em", "gibbs"])
def test_reports_and_plots_show_new_items_and_coefficients(inference, tmp_path):
    more = pd.concat([table(), pd.DataFrame({"height": [50.0], "kind": ["b"]}, index=["bay"])])
    m = fitted(inference, more, shape=2.0)
    write_report(m, None, rankings(), tmp_path / "r.html")
    said = (tmp_path / "r.html").read_text()
    assert ">bay (new)<" in said and ">bay<" not in said and "gamma[height]" in said
    for plot in (plots.worth, plots.rank_distribution, plots.prob_better):
        assert "bay (new)" in [each.get_text() for each in plot(m).get_yticklabels()]
    assert "bay (new)" in [each.get_text() for each in plots.prob_better(m).get_xticklabels()]


def test_arviz_has_gamma_per_unit():
    m = fitted()
    posterior = m.to_arviz(R=rankings()).posterior
    assert posterior["gamma"].dims == ("chain", "draw", "covariate")
    assert posterior["covariate"].values.tolist() == ["height", "kind=b", "kind=c"]
    means = posterior["gamma"].mean(("chain", "draw")).values
    np.testing.assert_allclose(means, m.parameters()["mean"].iloc[:3])
    assert "shape" in posterior and "weight" not in posterior
    some = m.posterior_.thinned(10)
    assert some.gamma.shape[:2] == some.log_weights.shape[:2] == (2, 4)


def test_draws_go_on_from_a_checkpoint(tmp_path):
    path = str(tmp_path / "c.plk")
    whole = fitted(Gibbs(draws=40, tune=40, chains=2))
    fitted(Gibbs(draws=10, tune=40, chains=2, checkpoint=path))
    rest = fitted(Gibbs(draws=40, tune=40, chains=2, checkpoint=path))
    np.testing.assert_array_equal(rest.posterior_.gamma, whole.posterior_.gamma)
    np.testing.assert_array_equal(rest.posterior_.log_weights, whole.posterior_.log_weights)
    with pytest.raises(ValueError, match="belongs to another fit"):
        fitted(Gibbs(draws=40, tune=40, chains=2, checkpoint=path), table()[["height"]])
