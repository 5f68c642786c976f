"""EM, variational scheme and Gibbs on situations: their laws, for every response, with and without features."""

import numpy as np
import pytest
from scipy.optimize import minimize

from conftest import plain_rows, situation_rows
from plackett import EM, Gibbs, Variational
from plackett.data.observations import Situations
from plackett.engines.plain_rankings import CompiledLeftSets
from plackett.inference.base import Problem
from plackett.inference.checkpoint import CheckpointError
from plackett.inference.em import Climb, TailedClimb
from plackett.inference.gibbs import WeightRun
from plackett.inference.paper_sampler import sweeps_of_any_engine
from plackett.inference.sweeps import LOG_MASS, SHAPE, State, Target
from plackett.inference.variational import Bound
from plackett.model.mixture import normalised
from plackett.model.race import Weights
from plackett.priors import GIG, LogUniform, tabulate
from plackett.responses import make_response
from rankings import collected, race

RESPONSES = ["ranking", "unknown-order", "race"]
PLACES = {"ranking": ([1, 1, 1], [1]), "unknown-order": ([2, 1], [1, 2], [2]), "race": (None,)}


def drawn(rng, response, rates, T):
    """Rankings of T persons with these rates (T, K) or (K,), of several forms."""
    forms, rates = PLACES[response], np.broadcast_to(rates, (T, np.shape(rates)[-1]))
    return collected([race(rng, rates[t], response, forms[t % len(forms)]) for t in range(T)], rates.shape[1])


def rows_of(outcomes, item, response, n_items, W=None, engine="auto"):
    if W is None:
        return plain_rows(engine, outcomes, item, make_response(response), n_items)
    situation = np.repeat(np.arange(len(outcomes.counts)), np.diff(outcomes.start))
    return situation_rows(engine, W, Situations(outcomes, item, situation), make_response(response), n_items)


def problem(response, p=1, T=40, K=4, seed=0, **settings):
    rng = np.random.default_rng(seed)
    W = None if p == 1 else rng.uniform(0.1, 1.0, size=(T, p))
    truth = rng.gamma(1.0, size=(K, p))
    outcomes, item = drawn(rng, response, truth[:, 0] if W is None else W @ truth.T, T)
    rows = rows_of(outcomes, item, response, K, W)
    return Problem(rows, 1.3, np.random.SeedSequence(seed), side_by_side=True, **settings)


@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize("response", RESPONSES)
def test_em_climbs_to_the_mode(response, p):
    """Against a general optimiser: on the simplex, or where ties know the scale with the Gamma's own density."""
    given = problem(response, p)
    rows, shape = given.rows, 1.8
    fit = EM().fit(given, shape)
    assert (np.diff(fit.trace) >= -1e-9 * np.abs(fit.trace[:-1])).all()
    found = np.log(fit.posterior.weights) + (fit.posterior.log_mass if rows.absolute else 0.0)

    def loss(x):
        theta = x.reshape(4, p)
        scale = given.rate if rows.absolute else 0.0
        level = 0.0 if rows.absolute else normalised(theta)[0, 0] - theta[0, 0]
        stats = rows.expect(Weights.point(theta))
        value = stats.value + (shape - 1) * (theta + level).sum() - scale * np.exp(theta).sum()
        slope = stats.wins + shape - 1 - np.exp(theta) * (stats.exposure + scale)
        if not rows.absolute:
            slope = slope - (shape - 1) * theta.size * np.exp(normalised(theta))
        return -value, -slope.ravel()

    best = minimize(loss, np.zeros(4 * p), jac=True, method="BFGS", options={"gtol": 1e-8})
    theta = best.x.reshape(4, p)
    np.testing.assert_allclose(found, theta if rows.absolute else normalised(theta), atol=1e-5)


def test_em_with_a_tail_where_ties_know_the_scale():
    given = problem("race", tailed=GIG(0.7, 0.2, 1.1))
    fit = EM().fit(given, 0.7)
    theta = np.log(fit.posterior.weights) + fit.posterior.log_mass
    stats = given.rows.expect(Weights.point(theta))
    prior = given.tailed
    slope = stats.wins + prior.shape - 1 - np.exp(theta) * (stats.exposure + prior.rate) + prior.tail * np.exp(-theta)
    np.testing.assert_allclose(slope, 0.0, atol=1e-5)
    assert isinstance(EM().path(given.rows, [0.7], tailed=prior)[0], TailedClimb)
    assert isinstance(EM().path(given.rows, [0.7])[0], Climb)


@pytest.mark.parametrize("shape", [0.8, None])
@pytest.mark.parametrize("response", RESPONSES)
def test_the_variational_bound_grows_and_ends_at_its_fixed_point(response, shape):
    given = problem(response, 2)
    fit = Variational(accelerate=False, draws=50).fit(given, shape)
    assert (np.diff(fit.trace) >= -1e-9 * np.abs(fit.trace[:-1])).all()
    q = type(given.prior(1.0))(fit.posterior.shape, fit.posterior.rate)
    _, image = Bound(given, fit.shape).step(given.prior(fit.shape).coordinates(q))
    after = given.prior(fit.shape).law_at(image, (4, 2))
    np.testing.assert_allclose(q.mean() / q.mean().sum(), after.mean() / after.mean().sum(), atol=1e-6)
    assert (fit.posterior.log_mass is None) == (response != "race")


def joint_draws(response, plain, learn, tail, sweeps, n, seed):
    """Pairs of states that share their rankings: the one that these were drawn from, and where sweeps lead from it."""
    rng, K, p, T, rate = np.random.default_rng(seed), 3, 1 if plain else 2, 4, 1.4
    lower, upper = (0.4, 3.0) if learn else (0.9, 0.9)
    target = Target(rate, learn, *tabulate(LogUniform(0.4, 3.0)), tail)
    prior = GIG(0.9, tail, rate) if tail else None
    for _ in range(n):
        a = np.exp(rng.uniform(np.log(lower), np.log(upper)))
        theta = np.log(rng.gamma(a, size=(K, p)) / rate) if prior is None else prior.draw(rng, (K, p))
        W = None if plain else rng.uniform(0.2, 1.0, size=(T, p))
        rates = np.exp(theta[:, 0]) if plain else W @ np.exp(theta).T
        rows = rows_of(*drawn(rng, response, rates, T), response, K, W)
        log_mass = np.logaddexp.reduce(theta, axis=None)
        state = State(normalised(theta), np.array([log_mass, a, np.log(0.7), 0.0]))
        draws = {"log_weights": np.empty((sweeps, K, p)), "shape": np.empty(sweeps), "value": np.empty(sweeps)}
        before = statistics(rows, State(*(x.copy() for x in state)))
        sweeps_of_any_engine(rows, state, rng, target, False, draws | {"log_mass": np.empty(sweeps)})
        yield before, statistics(rows, state)


def statistics(rows, state):
    """Functions of weights, shape and rankings; Λ only where the chain is to know it (else it is drawn anew)."""
    theta, log_mass, a = np.maximum(state.log_weights, -30.0), state.numbers[LOG_MASS], np.log(state.numbers[SHAPE])
    log_weights = state.log_weights + log_mass
    stats = rows.expect(Weights.point(log_weights))
    wins = stats.wins.sum(axis=1)
    products = (theta.sum(axis=1) * wins).tolist()
    scale = [log_mass, np.tanh(log_mass), log_mass * wins.sum()] if rows.absolute else []
    return [*theta.ravel(), *(theta**2).ravel(), a, a * theta.sum(), stats.value, *products, *scale]


@pytest.mark.brief(3)
@pytest.mark.parametrize(
    ("response", "plain", "learn", "tail"),
    [
        ("ranking", True, True, 0.0),
        ("ranking", False, True, 0.0),
        ("unknown-order", True, True, 0.0),
        ("unknown-order", False, False, 0.0),
        ("race", True, True, 0.0),
        ("race", False, False, 0.0),
        ("race", True, False, 0.3),
    ],
)
def test_sweeps_leave_the_joint_distribution_as_it_is(response, plain, learn, tail):
    """Geweke's test by pairs: weights from the prior, rankings from the weights, sweeps; all means must stay."""
    pairs = np.array(list(joint_draws(response, plain, learn, tail, sweeps=4, n=2500, seed=1)))
    moved = pairs[:, 1] - pairs[:, 0]
    error = moved.std(axis=0) / np.sqrt(len(moved))
    some = error > 0
    assert some.sum() >= len(some) - 2  # but for a shape that is fixed
    assert (np.abs(moved.mean(axis=0)[some] / error[some]) < 4.2).all()


class Hasty(CompiledLeftSets):
    """Sampled times that are a tenth too short."""

    def _pass(self, rates, key):
        value, exposure = super()._pass(rates, key)
        return value, exposure if key is None else 0.9 * exposure


def waited(rows, state):
    """What feels how long items were at risk: proportions of the weights beside what the rankings say of it.

    Exposures are compared with the prior's rate, and Λ is drawn anew: only proportions can tell whether their scale is
    right, where exposures of items differ much.
    """
    theta, n_items = np.maximum(state.log_weights, -30.0), len(state.log_weights)
    centred = (theta - theta.mean())[:, 0]
    at_risk = rows.expect(Weights.point(np.zeros((n_items, 1)))).exposure[:, 0]
    products = centred @ (at_risk - at_risk.mean())
    return [products, centred @ centred, np.exp(2 * theta).sum(), rows.value(Weights.point(theta))]


def waiting_z_scores(kind, n, K=20, T=2, rate=1.4):
    """Geweke's test by pairs, with a few full rankings of many items and a shape of 1."""
    rng, target = np.random.default_rng(2), Target(rate, False, *tabulate(LogUniform(0.4, 3.0)), 0.0)
    moved = []
    for _ in range(n):
        theta = np.log(rng.standard_exponential((K, 1)) / rate)
        outcomes, item = collected([race(rng, np.exp(theta[:, 0]), "ranking") for _ in range(T)], K)
        rows = rows_of(outcomes, item, "ranking", K)
        rows.__class__ = kind
        state = State(normalised(theta), np.array([np.logaddexp.reduce(theta, axis=None), 1.0, np.log(0.7), 0.0]))
        before = waited(rows, state)
        draws = {"log_weights": np.empty((6, K, 1)), "shape": np.empty(6), "value": np.empty(6)}
        sweeps_of_any_engine(rows, state, rng, target, False, draws)
        moved.append(np.subtract(waited(rows, state), before))
    return np.mean(moved, axis=0) / (np.std(moved, axis=0) / np.sqrt(n))


def test_sweeps_wait_as_long_as_they_should():
    assert np.abs(waiting_z_scores(CompiledLeftSets, 4000)).max() < 4.2


@pytest.mark.long
def test_sweeps_that_wait_too_little_are_found_out():
    assert np.abs(waiting_z_scores(Hasty, 4000)).max() > 6


@pytest.mark.usefixtures("quiet")
def test_any_number_of_threads_and_blocks_draws_the_same():
    given = problem("unknown-order", p=2)
    other = problem("unknown-order", p=2)
    other.rows.cuts = [0, 7, 20, 40]
    other.rows.set_threads(2)
    first, second = (Gibbs(draws=20, tune=20, chains=2).fit(each, None) for each in (given, other))
    np.testing.assert_allclose(first.posterior.log_weights, second.posterior.log_weights, rtol=1e-9)


@pytest.mark.usefixtures("quiet")
def test_a_checkpoint_knows_its_rankings(tmp_path):
    settings = Gibbs(draws=10, tune=5, chains=2, checkpoint=tmp_path / "chains")
    whole = Gibbs(draws=30, tune=5, chains=2).fit(problem("race"), None).posterior
    settings.fit(problem("race"), None)
    continued = settings.set_params(draws=30).fit(problem("race"), None).posterior
    np.testing.assert_array_equal(continued.log_weights, whole.log_weights)
    np.testing.assert_array_equal(continued.log_mass, whole.log_mass)
    with pytest.raises(CheckpointError, match="another fit"):
        settings.fit(problem("race", seed=1), None)


def test_diagnostics_know_the_scale_where_ties_do():
    run = WeightRun(Gibbs(draws=50, tune=50), problem("race"), None)
    run.go()
    found = run.diagnose()
    assert set(found.groups) == {"weights", "shape", "mass", "probability"}
    assert found.mass_ess_bulk > 10
