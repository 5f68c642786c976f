"""The walk over situations leaves the posterior as it is: Geweke's test (2004), and brute force on a tiny problem.

Positions are drawn from the prior, and by a chain that alternates new outcomes with a walk. Every mean must agree;
components have no identity, so probabilities are compared, not β.
"""

import numpy as np
import pytest
from scipy.special import logsumexp

from conftest import situation_rows
from plackett.data.observations import Situations
from plackett.directions import LearnedDirections
from plackett.directions.density import make_density, walk_on
from plackett.directions.positions import directions_and_weights
from plackett.directions.prior import inverse_weights, n_owners, parts, reflected, size
from plackett.directions.scales import renew_scales
from plackett.inference.hmc import MEAN_STEP, begin, windows
from plackett.model.mixture import log_rates, outcome_values, shares
from plackett.responses import Outcomes, make_response

A, D, N = 3, 2, 6  # entries of a situation, columns, situations
START = np.arange(N + 1) * A
BATCHES = 40
ITEMS, ATTRIBUTES = "items that persons with covariates rank", "alternatives with attributes"
SHARED = "alternatives with attributes and shared weights"
LEARNED = LearnedDirections(components=2, own_shape=0.5, covariate_spread=0.5)


def setting(kind):
    """Covariates, groups and rows of entries, and the prior."""
    rng = np.random.default_rng(0)
    if kind == ITEMS:
        prior = LEARNED.prior(A, D, 0.2)._replace(totals=True)  # as chains over items have it
        return rng.normal(size=(N, D)), np.tile(np.arange(A), N), np.repeat(np.arange(N), A), prior
    K = 1 if kind == SHARED else 2
    prior = LEARNED.prior(1, D, 0.2)._replace(shape=np.full((K, 2), 0.5))  # one owner
    return rng.normal(size=(N * A, D)), rng.integers(K, size=N * A), np.arange(N * A), prior


def from_prior(prior, rng, n):
    """Positions, written from the definition of the prior."""
    q = rng.normal(size=(n, size(prior, D)))
    _, _, t, log_s, log_sigma = parts(q, *prior.shape.shape, D, n_owners(prior))
    log_s *= prior.covariate_spread
    log_sigma[:] = prior.scale_centre + prior.scale_spread * log_sigma
    # ln Gam(a) = ln Gam(a + 1) + ln(U)/a
    log_weights = np.log(rng.gamma(prior.shape + 1, size=t.shape)) - rng.exponential(size=t.shape) / prior.shape
    t[:] = inverse_weights(log_weights, prior.shape)
    if prior.totals:
        shape = prior.shape.sum(axis=1)
        q[:, -len(shape) :] = reflected(np.log(rng.gamma(shape, size=(n, len(shape)))))
    return q


def rates_of(q, kind):
    Z, group, row, prior = setting(kind)
    beta, log_weights, _ = directions_and_weights(q, prior, D)
    return log_rates(beta, log_weights, Z, group, row)


def seen(log_r, name, rng):
    """Outcomes of races with these rates: entries of each situation in the order of the outcome, and its buckets."""
    order, sizes = [], []
    for t in range(N):
        times = rng.exponential(size=A) * np.exp(-np.clip(log_r[t * A : (t + 1) * A], -600, 600))
        order.append(t * A + np.argsort(times))
        if name == "race":
            sizes.append(np.unique(np.floor(np.minimum(times, 1e15)), return_counts=True)[1].tolist())
        else:
            sizes.append({"choice": [1], "ranking": [1] * A, "unknown-order": [2]}[name])
    return np.concatenate(order), Outcomes.of([A] * N, sizes)


def rows_of(order, outcomes, kind, name):
    Z, group, row, prior = setting(kind)
    return situation_rows(
        "auto", Z, Situations(outcomes, group[order], row[order]), make_response(name), len(prior.shape)
    )


def statistics(q, kind):
    """Pr(e comes first), its square, and the scales: (draw, statistic)."""
    p, prior = shares(rates_of(q, kind), START), setting(kind)[3]
    *_, log_s, log_sigma = parts(q, *prior.shape.shape, D, n_owners(prior))
    return np.hstack([p, p**2, log_s, log_sigma, log_sigma**2])


def fresh(position):
    walk = begin(position)
    walk.variance[0] = 1.0
    walk.numbers[MEAN_STEP] = np.log(0.25)
    return walk


def packed_of(rows, dtype=np.float64):
    """As a chain has them: in lanes where everyone has a row of their own, else by entries."""
    packed = rows.in_lanes(dtype)
    return rows.covariates if packed is None else packed


def alternating(kind, name, prior, n, reverse=False, dtype=np.float64):
    """Positions of a chain that alternates outcomes given the position and walks given the outcomes."""
    rng = np.random.default_rng(1)
    walk = fresh(from_prior(setting(kind)[3], rng, 1)[0])
    draws, values = np.empty((1, len(walk.position))), np.empty(1)
    out = np.empty((n, len(walk.position)))
    for i in range(n):
        order, outcomes = seen(rates_of(walk.position[None], kind)[0], name, rng)
        if reverse:  # the loser taken for the winner
            order = order.reshape(N, A)[:, ::-1].ravel()
        rows = rows_of(order, outcomes, kind, name)
        if prior.totals:
            renew_scales(walk.position, D, prior, rng)
        walk_on(make_density(packed_of(rows, dtype), prior, D), walk, rng, windows(0), 12, False, draws, values)
        out[i] = draws[0]
    return out


def z_scores(kind, name, prior=None, n=1600, **wrong):
    true = setting(kind)[3]
    direct = statistics(from_prior(true, np.random.default_rng(2), 4 * n), kind)
    chain = statistics(alternating(kind, name, prior or true, n, **wrong), kind)
    batches = chain.reshape(BATCHES, -1, chain.shape[1]).mean(axis=1)
    error = np.sqrt(direct.var(axis=0) / len(direct) + batches.var(axis=0, ddof=1) / BATCHES)
    return (chain.mean(axis=0) - direct.mean(axis=0)) / error


@pytest.mark.parametrize(("kind", "name"), [(ITEMS, "ranking"), (ATTRIBUTES, "choice")])
def test_the_walk_keeps_the_joint_distribution(kind, name):
    assert np.abs(z_scores(kind, name)).max() < 4.5


@pytest.mark.parametrize(("kind", "name"), [(ITEMS, "ranking"), (SHARED, "choice")])
def test_the_walk_in_floats_keeps_the_joint_distribution(kind, name):
    assert np.abs(z_scores(kind, name, dtype=np.float32)).max() < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ITEMS, ATTRIBUTES])
@pytest.mark.parametrize("name", ["choice", "ranking", "unknown-order", "race"])
def test_every_response_keeps_the_joint_distribution(kind, name):
    assert np.abs(z_scores(kind, name, n=20_000)).max() < 4.5


@pytest.mark.long
def test_a_wrong_prior_and_a_wrong_likelihood_are_found_out():
    prior = setting(ITEMS)[3]
    assert np.abs(z_scores(ITEMS, "ranking", prior._replace(scale_centre=prior.scale_centre + 0.5))).max() > 6
    assert np.abs(z_scores(ITEMS, "ranking", reverse=True)).max() > 6


@pytest.mark.brief(2)
@pytest.mark.parametrize(
    ("kind", "name"),
    [(ITEMS, "ranking"), (ITEMS, "unknown-order"), (ITEMS, "race"), (ATTRIBUTES, "choice"), (ATTRIBUTES, "ranking")],
)
def test_the_posterior_is_the_prior_weighted_by_the_likelihood(kind, name):
    """A chain against thirty thousand positions of the prior, each with the probability it gives the outcomes."""
    rng = np.random.default_rng(3)
    prior = setting(kind)[3]
    order, outcomes = seen(rates_of(from_prior(prior, rng, 1), kind)[0], name, rng)
    q = from_prior(prior, rng, 30_000)
    log_r = rates_of(q, kind)
    value = outcome_values(log_r[:, order], outcomes, make_response(name)).sum(axis=1)
    weight = np.exp(value - logsumexp(value))
    p = shares(log_r, START)
    expected = weight @ p
    error = np.sqrt(weight**2 @ (p - expected) ** 2)
    walk = fresh(from_prior(prior, rng, 1)[0])
    draws, values = np.empty((4000, len(walk.position))), np.empty(4000)
    density = make_density(packed_of(rows_of(order, outcomes, kind, name)), prior, D)
    walk_on(density, walk, rng, windows(0), 24, False, draws, values)
    found = shares(rates_of(draws, kind), START).reshape(BATCHES, -1, N * A).mean(axis=1)
    own = np.sqrt(found.var(axis=0, ddof=1) / BATCHES)
    assert error.max() < 0.02 and own.max() < 0.02
    assert np.abs((found.mean(axis=0) - expected) / np.sqrt(error**2 + own**2)).max() < 4.5
