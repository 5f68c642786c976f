"""Moves over choices against the posterior by quadrature: three weights that all alternatives share.

With u_j = λ_j/Λ and v_j = ln λ_j − ln λ_3 the posterior of v and ln a is L(u) Π u_j^a Γ(3a)/Γ(a)³ p(ln a) on a grid. A
chain of one move, with a slice now and then so that it comes everywhere, must have its means.
"""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from conftest import situation_rows
from plackett.data.observations import Situations
from plackett.inference.moves.memory import Laws, remember
from plackett.inference.moves.schedule import COORDINATE, LEAP, NAMES, PART, REDRAW, SWAP, SWAP_NEAR
from plackett.inference.situation_moves.cache import hold, make_point
from plackett.inference.situation_moves.leap import counted_sweeps
from plackett.inference.situation_moves.schedule import run_moves
from plackett.inference.sweeps import SHAPE, Target
from plackett.priors import LogUniform, tabulate
from plackett.responses import Outcomes, make_response

N, A, P = 8, 3, 3  # situations, alternatives, features
FIXED, LEARNED = (0.3, 0.3), (0.2, 1.5)
REACH, STEP = 70.0, 0.35  # of the grid of v
ITERATIONS, BATCHES = 24_000, 60

rng = np.random.default_rng(0)
W = np.exp(1.5 * rng.normal(size=(N, A, P)))
W /= W.max(axis=(1, 2), keepdims=True)  # the first alternative is the chosen one


def situations():
    entries = np.arange(N * A)
    return Situations(Outcomes.choices(np.full(N, A)), np.zeros(N * A, dtype=np.int64), entries)


def rows():
    return situation_rows("auto", W.reshape(-1, P), situations(), make_response("choice"), 1)


def statistics(u, log_shape):
    """Of shares (..., 3) and ln a."""
    return np.stack([
        u[..., 0], u[..., 1], u[..., 0] * u[..., 1], u.max(axis=-1), (u[..., 0] < 1e-2) * 1.0, (u[..., 1] < 1e-6) * 1.0,
        (u[..., 2] < 1e-3) * 1.0, np.maximum(np.log(u + 1e-300), -20).sum(axis=-1), log_shape + 0 * u[..., 0],
        log_shape * u.max(axis=-1),
    ], axis=-1)  # fmt: skip


def exact(prior):
    """Posterior means by quadrature."""
    line = np.arange(-REACH, REACH, STEP)
    v = np.stack(np.meshgrid(line, line, [0.0], indexing="ij"), axis=-1)[:, :, 0]
    v = np.concatenate([v[..., :2], np.zeros((*v.shape[:2], 1))], axis=-1)
    log_u = v - logsumexp(v, axis=-1, keepdims=True)
    u = np.exp(log_u)
    log_likelihood = sum(np.log(u @ W[t, 0]) - np.log(u @ W[t].sum(axis=0)) for t in range(N))
    logs = np.linspace(*np.log(prior), 60) if prior[0] < prior[1] else np.log(prior[:1])
    ends = np.where(np.isin(np.arange(len(logs)), [0, len(logs) - 1]) & (len(logs) > 1), 0.5, 1.0)
    whole, means = -np.inf, 0.0
    for log_a, end in zip(logs, ends, strict=True):
        a = np.exp(log_a)
        density = log_likelihood + a * log_u.sum(axis=-1) + gammaln(P * a) - P * gammaln(a) + np.log(end)
        mass = logsumexp(density)
        mean = np.einsum("ij,ijs->s", np.exp(density - mass), statistics(u, log_a))
        total = np.logaddexp(whole, mass)
        means = means * np.exp(whole - total) + mean * np.exp(mass - total)
        whole = total
    return means


def laws(learn):
    """Any will do that stay the same: here those of sweeps from random places."""
    rng = np.random.default_rng(5)
    theta, shapes = rng.normal(scale=3, size=(2, 12, 1, P)), np.exp(rng.uniform(*np.log(LEARNED), size=(2, 12)))
    sweeps = counted_sweeps(rows(), theta - logsumexp(theta, axis=-1, keepdims=True), shapes, seed=1)
    whole = remember(sweeps, 1, [np.arange(P)], np.ones(1), learn)
    return Laws(whole, remember(sweeps, 1, [np.array([0, 1]), np.array([1, 2])], np.array([1.0, 2.0]), learn))


def means_of_chain(move, prior, seed=0):
    """Batch means (batch, statistic)."""
    learn = prior[0] < prior[1]
    target = Target(1.0, learn, *tabulate(LogUniform(*prior) if learn else LogUniform()))
    held, response, proposed, rng = (
        hold(rows(), None),
        make_response("choice"),
        laws(learn),
        np.random.default_rng(seed),
    )
    theta, numbers = np.full((1, P), -np.log(P)), np.zeros(4)
    numbers[SHAPE] = np.sqrt(prior[0] * prior[1])
    point, nothing = make_point(theta, numbers, held), np.zeros((2, len(NAMES)))
    often, seldom = np.zeros(len(NAMES)), np.zeros(len(NAMES))
    often[move] = 6.0
    seldom[COORDINATE] = 1.0
    if learn:
        seldom[REDRAW] = 1.0  # of a
    found = np.empty((ITERATIONS, P + 1))
    for t in range(ITERATIONS):
        for plan in (often, seldom):
            run_moves(held, point, response.expect_block, rng, target, plan, *proposed, *nothing, False)
        found[t] = *np.exp(theta[0]), np.log(numbers[SHAPE])
    values = statistics(found[:, :P], found[:, P])
    return values.reshape(BATCHES, -1, values.shape[-1]).mean(axis=1)


CASES = [(move, FIXED) for move in (REDRAW, COORDINATE, SWAP, SWAP_NEAR, LEAP, PART)]
CASES += [(move, LEARNED) for move in (REDRAW, LEAP)]  # those that move a


@pytest.mark.brief(1)
@pytest.mark.parametrize(("move", "prior"), CASES, ids=lambda case: NAMES[case] if isinstance(case, int) else str(case))
def test_each_move_has_the_means_of_the_posterior(move, prior):
    batches = means_of_chain(move, prior)
    error = batches.std(axis=0, ddof=1) / np.sqrt(BATCHES)
    difference = np.abs(batches.mean(axis=0) - exact(prior))
    z = np.divide(difference, error, out=np.zeros_like(error), where=error > 1e-12)
    assert z.max() < 4.5, np.round(z, 1)
