"""Geweke's joint-distribution test (2004) of the Hamiltonian walk, on predictive probabilities and scales.

Positions are drawn from the prior, and by a chain that alternates new labels with a walk that is meant to leave the
posterior as it is. Every mean must agree; components have no identity, so probabilities are compared, not β.
"""

import numpy as np
import pytest
from scipy.special import logsumexp

from plackett.directions import LearnedDirections
from plackett.directions.density import make_density, walk_on
from plackett.directions.positions import directions_and_weights
from plackett.directions.prior import inverse_weights, parts, size
from plackett.engines.exponential import pack
from plackett.inference.hmc import MEAN_STEP, begin, windows
from plackett.model.mixture import Stacked, normalised, probabilities

K, M, D, N = 3, 6, 2, 8
X = np.random.default_rng(0).normal(size=(N, D))
PRIOR = LearnedDirections(components=2, own_shape=0.5, covariate_spread=0.5).prior(K, D, 0.2)
BATCHES = 40


def from_prior(rng):
    """A position, written from the definition of the prior."""
    q = rng.normal(size=size(PRIOR, D))
    _, _, t, log_s, log_sigma = parts(q, K, M, D)
    log_s *= PRIOR.covariate_spread
    log_sigma[:] = PRIOR.scale_centre + PRIOR.scale_spread * log_sigma
    # ln Gam(a) = ln Gam(a + 1) + ln(U)/a
    log_weights = np.log(rng.gamma(PRIOR.shape + 1)) - rng.exponential(size=(K, M)) / PRIOR.shape
    t[:] = inverse_weights(log_weights, PRIOR.shape)
    return q


def unpacked(positions):
    """Draws from positions (chain, draw, D)."""
    beta, log_weights, scales = directions_and_weights(positions, PRIOR, D)
    return Stacked(beta, normalised(log_weights), scales)


def statistics(positions):
    """Probabilities of all rows, their squares, and the scales: (draw, statistic)."""
    p = probabilities(unpacked(positions[None]), X)[0].reshape(len(positions), -1)
    return np.hstack([p, p**2, positions[:, -(D + 2) :], positions[:, -2:] ** 2])


def alternating(prior, n, seed=1, reorder=slice(None)):
    """Positions of a chain that alternates labels given the position and walks given the labels."""
    rng = np.random.default_rng(seed)
    walk = begin(from_prior(rng))
    walk.variance[0] = 1.0
    walk.numbers[MEAN_STEP] = np.log(0.25)
    draws, values = np.empty((1, len(walk.position))), np.empty(1)
    out = np.empty((n, len(walk.position)))
    for i in range(n):
        p = probabilities(unpacked(walk.position[None, None]), X)[0, 0]
        codes = (p.cumsum(axis=1) < rng.uniform(size=(N, 1))).sum(axis=1).clip(max=K - 1)
        walk_on(
            make_density(pack(X, codes[reorder], None, np.float32), prior, D),
            walk,
            rng,
            windows(0),
            12,
            False,
            draws,
            values,
        )
        out[i] = draws[0]
    return out


def z_scores(prior=PRIOR, n=3000, **wrong):
    rng = np.random.default_rng(2)
    direct = statistics(np.array([from_prior(rng) for _ in range(n)]))
    chain = statistics(alternating(prior, n, **wrong))
    batches = chain.reshape(BATCHES, -1, chain.shape[1]).mean(axis=1)
    error = np.sqrt(direct.var(axis=0) / n + batches.var(axis=0, ddof=1) / BATCHES)
    return (chain.mean(axis=0) - direct.mean(axis=0)) / error


def test_the_walk_keeps_the_joint_distribution():
    assert np.abs(z_scores()).max() < 4.5


@pytest.mark.long
def test_a_wrong_prior_and_a_wrong_likelihood_are_found_out():
    assert np.abs(z_scores(PRIOR._replace(scale_centre=PRIOR.scale_centre + 0.3))).max() > 6
    assert np.abs(z_scores(reorder=slice(None, None, -1))).max() > 6


def test_probabilities_are_those_of_the_model():
    q = from_prior(np.random.default_rng(3))
    draws = unpacked(q[None, None])
    beta, log_weights = draws.directions[0, 0], draws.log_weights[0, 0]
    scores = logsumexp((X @ beta.T)[:, None] + log_weights, axis=2)
    expected = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    np.testing.assert_allclose(probabilities(draws, X)[0, 0], expected, rtol=1e-10)
