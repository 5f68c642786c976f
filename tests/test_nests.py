"""Nested logit: the law by simulation and by hand, its slopes, its maximum, its posterior and what it predicts."""

import warnings
from itertools import pairwise

import numba
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import chisquare
from sklearn.exceptions import ConvergenceWarning

from commands import plackett
from nuts import sampled
from plackett import EM, ChoiceSets, Gibbs, PlackettLuceChooser, Rankings, Tastes, explain, load
from plackett.data.choice_nests import nests_of
from plackett.data.choice_outcomes import chosen
from plackett.data.observations import Observations, Situations
from plackett.directions import LearnedDirections
from plackett.directions.density import density_of
from plackett.directions.prior import size
from plackett.directions.situation_task import make_situation_task
from plackett.features.choice_design import ChoiceDesign, EntryTable
from plackett.inference.driver import Source
from plackett.linear import LinearUtility
from plackett.responses import Choice, make_response
from plackett.responses.nests import nested_slopes, nested_utilities
from test_posterior_agreement import worst_difference

LABELS = np.array(["bus", "car", "metro", "train", "walk"])
NESTS = {"rails": ["train", "metro"], "road": ["bus", "car"]}


def some_nests(*dissimilarity):
    nests = nests_of(NESTS, LABELS)
    return nests.at(*dissimilarity) if dissimilarity else nests


def situations(rng, n, spread=2.0):
    """Starts, alternatives and log-rates of situations with one to five alternatives."""
    sets = [rng.permutation(5)[: rng.integers(1, 6)] for _ in range(n)]
    start = np.append(0, np.cumsum([len(each) for each in sets]))
    return start, np.concatenate(sets), spread * rng.standard_normal(start[-1])


def compiled(nests, start, alternative, log_rates):
    """V, slopes in ln r and in α of the kernel."""
    T, G = len(start) - 1, len(nests.names)
    values, to_rates, to_alpha = np.empty(T), np.empty(start[-1]), np.empty((T, G))
    nested_slopes(start, nests.of_alternative[alternative], log_rates, nests.dissimilarity, values, to_rates, to_alpha)
    return values, to_rates, to_alpha


def stable(rng, alpha, n):
    """Positive stable variables with E e^{−sS} = e^{−s^α} (Chambers, Mallows & Stuck 1976)."""
    u, e = np.pi * rng.random(n), rng.standard_exponential(n)
    return np.sin(alpha * u) / np.sin(u) ** (1 / alpha) * (np.sin((1 - alpha) * u) / e) ** ((1 - alpha) / alpha)


def test_probabilities_are_those_of_races_with_a_frailty_of_each_nest():
    rng, n, nests = np.random.default_rng(0), 200_000, some_nests(0.4, 0.7)
    log_rates = np.array([0.3, -0.2, 0.5, 0.1, 0.0])
    times = np.empty((n, 5))
    for a, g in enumerate(nests.of_alternative):
        times[:, a] = rng.standard_exponential(n) / np.exp(log_rates[a] / (1.0 if g < 0 else nests.dissimilarity[g]))
    for g, alpha in enumerate(nests.dissimilarity):
        inside = nests.of_alternative == g
        times[:, inside] = (times[:, inside] / stable(rng, alpha, n)[:, None]) ** alpha
    won = np.bincount(times.argmin(axis=1), minlength=5) / n
    orders = [np.roll(np.arange(5), -a) for a in range(5)]
    p = np.exp([nests.answer(log_rates[order], order).value for order in orders])
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    assert (np.abs(won - p) < 4.5 * np.sqrt(p * (1 - p) / n)).all()


def test_the_kernel_is_the_reference_and_its_slopes_are_differences():
    start, alternative, log_rates = situations(np.random.default_rng(1), 60)
    nests, h = some_nests(0.3, 0.85), 1e-5
    values, to_rates, to_alpha = compiled(nests, start, alternative, log_rates)
    for t, (low, high) in enumerate(pairwise(start)):
        found = nests.answer(log_rates[low:high], alternative[low:high])
        assert found.value == pytest.approx(values[t], abs=1e-12)
        np.testing.assert_allclose(found.to_rates, to_rates[low:high], atol=1e-12)
        np.testing.assert_allclose(found.to_dissimilarity, to_alpha[t], atol=1e-11)
    for e, change in enumerate(h * np.eye(len(log_rates))):
        up, down = (compiled(nests, start, alternative, log_rates + s * change)[0].sum() for s in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(to_rates[e], abs=1e-8)
    for g, change in enumerate(h * np.eye(2)):
        up, down = (
            compiled(nests.at(*(nests.dissimilarity + s * change)), start, alternative, log_rates)[0] for s in (1, -1)
        )
        np.testing.assert_allclose((up - down) / (2 * h), to_alpha[:, g], atol=1e-7)


def test_far_log_rates_and_small_dissimilarities_stay_finite():
    start, alternative, log_rates = situations(np.random.default_rng(2), 200, spread=300.0)
    for nests in (some_nests(0.01, 0.02), some_nests(1.0, 0.5)):
        for found in compiled(nests, start, alternative, log_rates):
            assert np.isfinite(found).all()


def test_a_dissimilarity_of_1_is_the_plain_choice():
    start, alternative, log_rates = situations(np.random.default_rng(3), 40)
    values, to_rates, _ = compiled(some_nests(1.0, 1.0), start, alternative, log_rates)
    for t, (low, high) in enumerate(pairwise(start)):
        rates = np.exp(log_rates[low:high])
        value, arrivals, at_risk = Choice().expect(rates, [1])
        assert values[t] == pytest.approx(value, abs=1e-12)
        np.testing.assert_allclose(to_rates[low:high], arrivals - rates * at_risk, atol=1e-12)


def test_utilities_are_those_of_the_reference():
    rng, nests = np.random.default_rng(4), some_nests(0.3, 0.8)
    log_rates, available = rng.normal(size=(3, 7, 5)), rng.random((7, 5)) < 0.7
    available[:, 4] = True
    alpha = rng.uniform(0.2, 1, (3, 2))
    utilities = nested_utilities(np.where(available, log_rates, -np.inf), nests.of_alternative, alpha)
    p = np.exp(utilities) / np.exp(utilities).sum(axis=2, keepdims=True)
    for s, t, a in np.argwhere(np.broadcast_to(available, p.shape)):
        there = np.flatnonzero(available[t])
        order = np.append(a, there[there != a])
        assert np.log(p[s, t, a]) == pytest.approx(nests.at(*alpha[s]).answer(log_rates[s, t, order], order).value)


@pytest.mark.parametrize(
    ("nests", "words"),
    [
        ({}, "must be a dictionary"),
        ([["bus", "car"]], "must be a dictionary"),
        ({"road": "bus"}, "lists of alternatives"),
        ({1: ["bus", "car"]}, "lists of alternatives"),
        ({"road": ["car"]}, "'road' needs two alternatives or more"),
        ({"road": ["car", "car"]}, "needs two alternatives or more"),
        ({"road": ["bus", "car"], "four": ["car", "walk"]}, "'car' is in 'road' and in 'four'"),
        ({"road": ["bus", "plane"]}, "'plane' of 'road' is none of the alternatives"),
    ],
)
def test_nests_that_make_no_sense_are_refused(nests, words):
    with pytest.raises(ValueError, match=words):
        nests_of(nests, LABELS)


def survey(rng, n, nests, beta=(-0.8, -1.0), bent=False):
    """Trips with costs and times of all five alternatives, of which some are not there, and what was chosen."""
    table = {f"{x}_{a}": rng.integers(1, 9, n) / 2 for a in LABELS for x in ("cost", "time")}
    there = {f"there_{a}": 1 * (rng.random(n) < (0.8 if a in ("bus", "metro", "train") else 2.0)) for a in LABELS}
    frame = pd.DataFrame(table | there)
    X = ChoiceSets.from_wide(frame, alternatives=list(LABELS), attributes=["cost", "time"], available="there")
    log_rates = X.values @ np.array(beta) + (np.log(X.values[:, 0]) if bent else 0.0)
    wide = np.full((1, n, 5), -np.inf)
    wide[0, X.situation, X.alternative] = log_rates
    utilities = nested_utilities(wide, nests.of_alternative, nests.dissimilarity[None])[0]
    return X, LABELS[np.argmax(utilities + rng.gumbel(size=utilities.shape), axis=1)]


def learned_task(rng, n=60):
    """Choices in nests as learned directions take them, and the task without nests."""
    nests = some_nests(0.4, 0.7)
    X, y = survey(rng, n, nests)
    design, given = ChoiceDesign().fit(X), chosen(X, y)
    Z = design.transform(EntryTable.of(X))
    seen = Observations.of_situations(
        Situations(given.outcomes, np.zeros_like(given.entry), given.entry), make_response("choice"), 1
    )
    source, nest = Source(np.random.SeedSequence(0)), nests.of_alternative[X.alternative]
    nested = make_situation_task([Z], seen, source, False, "numba", nests, nest)
    return nested, make_situation_task([Z], seen, source, False, "numba")


@pytest.mark.parametrize("of_coordinates", [True, False])
def test_slopes_of_learned_directions_are_differences(of_coordinates):
    rng = np.random.default_rng(5)
    task, _ = learned_task(rng)
    prior = task.reader.prior(task, LearnedDirections(components=2, own_shape=0.5), 1.0)
    density = density_of(task.prepared(np.float64), prior, task.n_columns, of_coordinates)
    q, gradient = 0.5 * rng.standard_normal(size(prior, task.n_columns)), np.empty(size(prior, task.n_columns))
    density(q, gradient)
    for i, change in enumerate(1e-5 * np.eye(len(q))):
        up, down = (density(q + s * change, np.empty_like(q)) for s in (1, -1))
        assert (up - down) / 2e-5 == pytest.approx(gradient[i], rel=1e-5, abs=1e-5)


def test_learned_directions_with_dissimilarities_of_1_are_those_without_nests():
    rng = np.random.default_rng(6)
    nested, plain = learned_task(rng)
    settings = LearnedDirections(components=2, own_shape=0.5)
    priors = [task.reader.prior(task, settings, 1.0) for task in (nested, plain)]
    assert [prior.parameters for prior in priors] == [2, 0]
    q = 0.5 * rng.standard_normal(size(priors[0], nested.n_columns))
    q[-2:] = 40.0  # a dissimilarity of 1 but for 1e-9
    with_nests, without = np.empty_like(q), np.empty(len(q) - 2)
    found = density_of(nested.prepared(np.float64), priors[0], nested.n_columns, False)(q, with_nests)
    assert found == pytest.approx(
        density_of(plain.prepared(np.float64), priors[1], plain.n_columns)(q[:-2], without), abs=1e-5
    )
    np.testing.assert_allclose(with_nests[:-2], without, atol=1e-5)
    positions = [(nested, q[None], priors[0]), (plain, q[None, :-2], priors[1])]
    p = [task.predicted(position, prior, np.arange(len(task.seen))) for task, position, prior in positions]
    assert sorted(p[0][:, 0].round(6)) == sorted(p[1][:, 0].round(6))


@pytest.fixture(scope="module")
def trips():
    """Choices with strong nests, and as many that are held out."""
    rng, nests = np.random.default_rng(7), some_nests(0.35, 0.6)
    return survey(rng, 500, nests), survey(rng, 500, nests)


@pytest.fixture(scope="module")
def learned(trips):
    """The mode of learned directions with nests."""
    settings = LearnedDirections(components=1)
    return PlackettLuceChooser(EM(cv=2), features=settings, nests=NESTS).fit(*trips[0])


def test_em_learns_nests_with_directions(trips, learned):
    """The dissimilarity of the strong nest, and better predictions than without nests."""
    found = learned.parameters()
    assert found.index.tolist() == ["rails", "road"] and found["lower"].isna().all()
    assert 0.2 < found.loc["rails", "mean"] < 0.5 and 0.35 < found.loc["road", "mean"] < 0.75
    plain = PlackettLuceChooser(EM(cv=2), features=LearnedDirections(components=1)).fit(*trips[0])
    assert len(plain.parameters()) == 0
    gain = learned.log_likelihood(*trips[1]) - plain.log_likelihood(*trips[1])
    assert gain.mean() > 2 * gain.std() / np.sqrt(len(gain))
    assert "nests with dissimilarities rails 0." in repr(learned)


def independent_log_likelihood(theta, wide, chosen, nest):
    """ln Pr of choices by the formula: columns (situation, alternative, column), NaN where one is not there."""
    beta, alpha = theta[: wide.shape[2]], theta[wide.shape[2] :]
    there = ~np.isnan(wide[..., 0])
    rates = np.where(there, np.exp(np.nan_to_num(wide) @ beta), 0.0)
    own, whole = rates.copy(), rates[:, nest < 0].sum(axis=1)
    for g, a in enumerate(alpha):
        inside = nest == g
        scaled = rates[:, inside] ** (1 / a)
        total = np.maximum(scaled.sum(axis=1, keepdims=True), 1e-300)
        own[:, inside] = scaled * total ** (a - 1)
        whole = whole + np.where(scaled.any(axis=1), total[:, 0] ** a, 0.0)
    return np.log(own[np.arange(len(chosen)), chosen]) - np.log(whole)


@pytest.fixture(scope="module")
def linear(trips):
    return PlackettLuceChooser("em", features="linear", nests=NESTS).fit(*trips[0])


def wide_columns(model, X):
    """Columns of the design in the units of the data (situation, alternative, column), NaN where not available."""
    columns = model.design_.columns(EntryTable.of(X))
    wide = np.full((len(X), 5, columns.shape[1]), np.nan)
    wide[X.situation, X.alternative] = columns
    return wide


def test_the_maximum_and_its_errors_are_those_of_an_independent_computation(trips, linear):
    """Coefficients and dissimilarities by SciPy; standard errors from second differences of the log-likelihood."""
    X, y = trips[0]
    nest = nests_of(NESTS, LABELS).of_alternative
    given = wide_columns(linear, X), np.searchsorted(LABELS, y), nest
    ours = np.append(linear.coefficients()["coefficient"], linear.parameters()["mean"])
    d = len(ours) - 2

    def loss(theta):
        return -independent_log_likelihood(theta, *given).sum()

    best = minimize(
        loss, np.append(np.zeros(d), [0.7, 0.7]), method="L-BFGS-B", bounds=[(None, None)] * d + [(0.05, 1)] * 2
    )
    polished = minimize(loss, best.x, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9, "maxiter": 4000})
    assert loss(ours) <= polished.fun + 1e-7
    np.testing.assert_allclose(ours, polished.x, atol=2e-3)
    assert linear.log_likelihood(X, y).sum() == pytest.approx(-loss(ours), abs=1e-8)
    h = 1e-4 * np.eye(d + 2)
    hessian = np.array(
        [[loss(ours + a + b) - loss(ours + a - b) - loss(ours - a + b) + loss(ours - a - b) for a in h] for b in h]
    )
    errors = np.sqrt(np.diag(np.linalg.inv(hessian / 4e-8)))
    np.testing.assert_allclose(linear.coefficients()["std_error"], errors[:d], rtol=2e-3)
    np.testing.assert_allclose(linear.parameters()["std_error"], errors[d:], rtol=2e-3)


def test_robust_errors_and_those_of_persons(trips, linear):
    """Of scores by situation; where nobody chooses twice persons are situations, but for n/(n − 1)."""
    (X, y), n = trips[0], len(trips[0][1])
    again = PlackettLuceChooser("em", features="linear", nests=NESTS).fit(X, y, groups=np.arange(n))
    robust, person = (again.coefficients(errors=kind)["std_error"] for kind in ("robust", "person"))
    np.testing.assert_allclose(person, robust * np.sqrt(n / (n - 1)), rtol=1e-6)
    assert (np.abs(robust / linear.coefficients()["std_error"] - 1) < 0.5).all()


def test_nests_that_change_nothing_have_a_dissimilarity_at_the_bound(trips):
    """Those who would walk do not take the metro instead: metro and train are alike."""
    X, y = trips[0]
    with pytest.warns(UserWarning, match="at its bound of 1"):
        nested = PlackettLuceChooser("em", features="linear", nests={"odd": ["walk", "metro"]}).fit(X, y)
    plain = PlackettLuceChooser("em", features="linear").fit(X, y)
    np.testing.assert_allclose(nested.predict_proba(X), plain.predict_proba(X), atol=1e-5)
    assert nested.parameters().loc["odd", "mean"] == 1.0 and np.isnan(nested.parameters().loc["odd", "std_error"])


def test_what_is_asked_of_nests_knows_them(trips, linear):
    """Diversion goes to the own nest first; elasticities and effects are those of differences of predictions."""
    X, _ = trips[0]
    found = linear.diversion(X, drop="train").set_index("alternative")
    plain = PlackettLuceChooser("em", features="linear").fit(*trips[0])
    before = plain.diversion(X, drop="train").set_index("alternative")
    assert found.loc["metro", "share"] > 1.3 * before.loc["metro", "share"]
    assert found["share"].sum() == pytest.approx(1.0, abs=1e-3)
    ratio = linear.coefficients().set_index("column")["coefficient"]
    value = linear.willingness_to_pay("time", "cost").set_index("alternative").loc["all", "value"]
    assert value == pytest.approx(ratio["time"] / ratio["cost"], rel=1e-3)
    shares = linear.shares(X).set_index("alternative")["share"].loc[list(LABELS)]
    np.testing.assert_allclose(shares, linear.predict_proba(X).mean(axis=0), atol=1e-3)
    with pytest.raises(ValueError, match="substitute"):
        explain(linear, X[0])


@pytest.fixture(scope="module")
def drawn(trips):
    """Draws of nested logit."""
    return PlackettLuceChooser(Gibbs(draws=500, tune=200), features="linear", nests=NESTS, random_state=0).fit(
        *trips[0]
    )


def test_draws_are_about_the_maximum(linear, drawn):
    """With 500 choices the posterior is not far from normal about the maximum, and the chains converge."""
    found, best = drawn.parameters(), linear.parameters()
    apart = (found["mean"] - best["mean"]).abs() / best["std_error"]
    assert (apart < 1).all() and (found["lower"] < found["mean"]).all() and (found["mean"] < found["upper"]).all()
    ours, theirs = drawn.coefficients().set_index("column"), linear.coefficients().set_index("column")
    assert ((ours["mean"] - theirs["coefficient"]).abs() < theirs["std_error"]).all()
    np.testing.assert_allclose(ours["sd"], theirs["std_error"], rtol=0.25)
    assert drawn.diagnostics_.worst_rhat < 1.02


def nuts_draws(wide, chosen, nest, precision, scale):
    """(β·scale, α) by nutpie, with the density of the formula and its slopes by hand (chain, draw, d + 2)."""
    T, A, d = wide.shape
    there, x = ~np.isnan(wide[..., 0]), np.nan_to_num(wide) / scale

    @numba.njit
    def density(theta):
        value, slope = 0.0, np.zeros(d + 2)
        alpha = 1 / (1 + np.exp(-theta[d:]))
        to_alpha, total, mean = np.zeros(2), np.zeros(2), np.zeros(2)
        utility, pull = np.zeros(A), np.zeros(A)
        for t in range(T):
            whole = 0.0
            total[:], mean[:] = 0.0, 0.0
            for a in range(A):
                utility[a] = 0.0
                for f in range(d):
                    utility[a] += x[t, a, f] * theta[f]
                if there[t, a] and nest[a] >= 0:
                    share = np.exp(utility[a] / alpha[nest[a]])
                    total[nest[a]] += share
                    mean[nest[a]] += share * utility[a]
                elif there[t, a]:
                    whole += np.exp(utility[a])
            for g in range(2):
                if total[g] > 0:
                    whole += total[g] ** alpha[g]
            for a in range(A):
                pull[a] = 0.0
                if there[t, a]:
                    g = nest[a]
                    if g >= 0:
                        share = np.exp(utility[a] / alpha[g]) / total[g]
                        pull[a] = -share * total[g] ** alpha[g] / whole
                        if nest[chosen[t]] == g:
                            pull[a] += (alpha[g] - 1) / alpha[g] * share
                    else:
                        pull[a] = -np.exp(utility[a]) / whole
            for g in range(2):
                if total[g] > 0:
                    inside = mean[g] / total[g]
                    to_alpha[g] -= total[g] ** alpha[g] / whole * (np.log(total[g]) - inside / alpha[g])
            k = chosen[t]
            g = nest[k]
            if g >= 0:
                value += utility[k] / alpha[g] + (alpha[g] - 1) * np.log(total[g])
                pull[k] += 1 / alpha[g]
                inside = mean[g] / total[g]
                to_alpha[g] += np.log(total[g]) - utility[k] / alpha[g] ** 2 - (alpha[g] - 1) * inside / alpha[g] ** 2
            else:
                value += utility[k]
                pull[k] += 1.0
            value -= np.log(whole)
            for a in range(A):
                for f in range(d):
                    slope[f] += pull[a] * x[t, a, f]
        for f in range(d):
            value -= 0.5 * precision * theta[f] ** 2
            slope[f] -= precision * theta[f]
        for g in range(2):
            value += np.log(alpha[g]) + np.log1p(-alpha[g])
            slope[d + g] = to_alpha[g] * alpha[g] * (1 - alpha[g]) + 1 - 2 * alpha[g]
        return value, slope

    found = sampled(density, d + 2, 1500, 800, 4, 1)
    return np.concatenate([found[:, :, :d] / scale, 1 / (1 + np.exp(-found[:, :, d:]))], axis=2)


@pytest.mark.long
def test_draws_agree_with_nuts():
    """A small set, whose posterior is not normal: means of coefficients and dissimilarities."""
    X, y = survey(np.random.default_rng(12), 60, some_nests(0.5, 0.8))
    model = PlackettLuceChooser(Gibbs(draws=2000, tune=500), features="linear", nests=NESTS, random_state=0).fit(X, y)
    columns = wide_columns(model, X)
    nest, scale = nests_of(NESTS, LABELS).of_alternative, model.design_.scale_
    nuts = nuts_draws(columns, np.searchsorted(LABELS, y), nest, 1 / 100, scale)
    posterior = model.posterior_
    ours = np.concatenate([posterior.coefficients @ model.design_.to_units().T, posterior.dissimilarity], axis=2)
    assert worst_difference(ours, nuts) < 4
    assert worst_difference(ours**2, nuts**2) < 4


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"features": "exp"}, "not conjugate"),
        ({"features": Tastes(random=["cost"]), "inference": "gibbs"}, "random tastes have no nests"),
        ({"features": "learned", "weights": "alternative"}, "nests are for weights='shared'"),
        ({"features": "learned", "engine": "numpy"}, "no pass over nests"),
        ({"features": "linear", "engine": "cupy"}, "no pass over nests|is compiled for situations in memory|cupy"),
        ({"nests": {"rails": ["train"]}}, "needs two alternatives or more"),
        ({"nests": {"rails": ["train", "tram"]}}, "none of the alternatives"),
    ],
)
def test_what_nests_do_not_serve_is_refused(trips, settings, words):
    with pytest.raises((ValueError, ImportError), match=words):
        PlackettLuceChooser(**{"inference": "em", "nests": NESTS} | settings).fit(*trips[0])


def test_rankings_and_nests_that_never_meet_are_refused(trips, linear):
    X, y = trips[0]
    rankings = Rankings.from_orders([[label] for label in y], unranked="last", items=LABELS)
    with pytest.raises(ValueError, match="nests are of choices"):
        PlackettLuceChooser("em", features="linear", nests=NESTS).fit(X, rankings)
    with pytest.raises(ValueError, match="nests are of choices"):
        linear.log_likelihood(X, rankings)
    apart = ~(X.available[:, 0] & X.available[:, 1])
    with pytest.raises(ValueError, match="no two alternatives of 'road'"):
        PlackettLuceChooser("em", features="linear", nests=NESTS).fit(X[apart], y[apart])


def test_counts_are_situations_that_come_again(trips):
    """A weight of 2 is two situations, a weight of 0 is none."""
    (X, y), weight = trips[0], np.arange(500) % 3.0
    settings = {"features": "linear", "nests": {"rails": ["train", "metro"]}}
    once = PlackettLuceChooser("em", **settings).fit(X, y, sample_weight=weight)
    again = np.repeat(np.arange(500), weight.astype(int))
    twice = PlackettLuceChooser("em", **settings).fit(X[again], y[again])
    for name in ("mean", "std_error"):
        np.testing.assert_allclose(once.parameters()[name], twice.parameters()[name], rtol=1e-5)


@pytest.mark.long
def test_learned_directions_are_drawn_with_nests(trips):
    """Chains find the dissimilarities of the maximum; the mode beside them has its own."""
    settings = {"features": LearnedDirections(components=1, leapfrogs=12), "nests": NESTS}
    model = PlackettLuceChooser(Gibbs(draws=60, tune=60, chains=2), random_state=0, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(*trips[0])
    found = model.parameters()
    assert (found["lower"] < [0.36, 0.52]).all() and (found["upper"] > [0.36, 0.52]).all()
    assert model.posterior_.of_directions.mode_parameters.shape == (2,)
    values = model.to_arviz().posterior["dissimilarity"]
    assert values.shape == (2, 60, 2) and values["nest"].to_numpy().tolist() == ["rails", "road"]
    lower, upper = model.predict_interval(trips[1][0])
    p = model.predict_proba(trips[1][0])
    assert ((lower <= p) & (p <= upper)).all()
    some = model.to_arviz(trips[1][0][:50], trips[1][1][:50])
    assert some.log_likelihood["y"].shape == (2, 60, 50)


@pytest.mark.long
def test_maxima_cover_the_truth():
    """Two nests in 100 simulated surveys: 90 % intervals hold the dissimilarities that made them in 90 of them."""
    truth, held = np.array([0.5, 0.7]), np.zeros(2)
    rng, n = np.random.default_rng(13), 100
    for _ in range(n):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = PlackettLuceChooser("em", features="linear", nests=NESTS).fit(*survey(rng, 800, some_nests(*truth)))
        table = found.parameters(0.9)
        held += (table["lower"] < truth) & (truth < table["upper"])
    assert (np.abs(held / n - 0.9) < 3.5 * np.sqrt(0.09 / n)).all()


@pytest.mark.long
def test_the_truth_has_any_rank_among_draws():
    """Simulation-based calibration of draws of β and α from the prior, a dissimilarity and a coefficient."""
    rng, ranks = np.random.default_rng(14), []
    for seed in range(100):
        alpha, beta = rng.random(2), rng.normal(size=2)
        X, _ = survey(rng, 30, some_nests(*np.maximum(alpha, 0.02)), beta)
        ranks.append(rank_of_truth(rng, X, alpha, seed))
    for column in np.array(ranks).T:
        assert chisquare(np.bincount(column * 5 // 20, minlength=5)).pvalue > 1e-3


def rank_of_truth(rng, X, alpha, seed):
    """Ranks among 19 draws of α of the first nest and of the first coefficient, drawn from the prior too."""
    design = ChoiceDesign(person=False).fit(X)
    Z = design.transform(EntryTable.of(X))
    beta = rng.normal(size=Z.shape[1])
    wide = np.full((1, len(X), 5), -np.inf)
    wide[0, X.situation, X.alternative] = Z @ beta
    utilities = nested_utilities(wide, nests_of(NESTS, LABELS).of_alternative, np.maximum(alpha, 1e-9)[None])[0]
    y = LABELS[np.argmax(utilities + rng.gumbel(size=utilities.shape), axis=1)]
    model = PlackettLuceChooser(
        Gibbs(draws=19 * 8, tune=150, chains=1), features=LinearUtility(spread=1.0), nests=NESTS, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    draws = model.posterior_.dissimilarity[0, ::8, 0], model.posterior_.coefficients[0, ::8, 0]
    return [int((each < true).sum()) for each, true in zip(draws, (alpha[0], beta[0]), strict=True)]


@pytest.mark.long
def test_the_command_line_and_the_report_know_nests(tmp_path, trips):
    X, y = trips[0]
    rows = pd.DataFrame({"t": X.situation, "by": X.alternatives[X.alternative], "cost": X.values[:, 0]})
    rows["time"], rows["y"] = X.values[:, 1], y[X.situation]
    rows.to_csv(tmp_path / "trips.csv", index=False)
    given = ("--situation", "t", "--alternative", "by", "--choice", "y", "--linear", "--inference", "em")
    nests = ("--nest", "rails=train,metro", "--nest", "road=bus, car", "--out", tmp_path / "m.plk")
    result = plackett("fit", tmp_path / "trips.csv", *given, *nests)
    assert result.exit_code == 0, result.output
    assert load(tmp_path / "m.plk").parameters().index.tolist() == ["rails", "road"]
    assert "nests with dissimilarities rails 0.36" in plackett("show", tmp_path / "m.plk").stdout
    assert plackett("report", tmp_path / "m.plk", tmp_path / "trips.csv", "--out", tmp_path / "r.html").exit_code == 0
    page = (tmp_path / "r.html").read_text()
    assert "Dissimilarity" in page and "metro, train" in page and 'id="why"' not in page
    for wrong, words in (("rails", "must be a name and alternatives"), ("rails=train", "needs two alternatives")):
        result = plackett("fit", tmp_path / "trips.csv", *given, "--nest", wrong, "--out", tmp_path / "n.plk")
        assert result.exit_code and words in " ".join(result.stderr.replace("│", " ").split())
