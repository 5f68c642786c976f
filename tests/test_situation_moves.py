"""Moves over choices and rankings leave the posterior as it is: Geweke's test (2004), move by move.

Two ways to draw (a, λ̄, outcomes): from prior and model, and by a chain that alternates new outcomes with a transition.
Every mean must agree. Outcomes are races run in the harness, which shares nothing with the package.
"""

from copy import copy
from functools import lru_cache

import numpy as np
import pytest
from numba import njit
from scipy.special import gammaln, logsumexp

from conftest import situation_rows
from geweke import double
from plackett import Gibbs
from plackett.data.observations import Situations
from plackett.features import ExpFeatures
from plackett.inference.base import Problem
from plackett.inference.checkpoint import CheckpointError
from plackett.inference.gibbs import WeightRun
from plackett.inference.moves.memory import Laws, remember
from plackett.inference.moves.schedule import (
    COORDINATE,
    FLIP_CLOSE,
    FLIP_ONE,
    LEAP,
    NAMES,
    PART,
    REDRAW,
    SWAP,
    SWAP_NEAR,
)
from plackett.inference.situation_moves import weight_moves
from plackett.inference.situation_moves.cache import (
    hold,
    judge,
    make_point,
    refresh,
    rescore_all,
    touch,
    touch_some,
)
from plackett.inference.situation_moves.leap import counted_sweeps, learn
from plackett.inference.situation_moves.schedule import run_move, run_moves
from plackett.inference.situation_moves.shape import after_pass, renew_mass
from plackett.inference.sweeps import SHAPE, Target
from plackett.model.measures import measures
from plackett.model.race import Weights
from plackett.priors import LogUniform, tabulate
from plackett.responses import Outcomes, make_response

A, N, D = 4, 5, 1  # entries of a situation, situations, covariates
MANY, RARELY = 40, 20  # runs of a wrong move for each outcome, and outcomes for each sweep: nothing is washed out
DEAD, BATCHES, FIXED, LEARNED = -30.0, 40, (0.3, 0.3), (0.1, 2.0)
BUCKETS = {"choice": [1], "ranking": [1] * (A - 1), "top": [1, 1], "unknown-order": [2, 1]}
MOVES = [REDRAW, COORDINATE, SWAP, SWAP_NEAR, FLIP_ONE, FLIP_CLOSE, LEAP, PART]


class Setting:
    """Features, groups and prior of a test; "items" have a row for each situation, the others one for each entry."""

    def __init__(self, kind, name, prior):
        rng = np.random.default_rng(3)
        own = kind != "items"
        x = rng.normal(size=(N * A if own else N, D))
        maker = ExpFeatures().fit(x)
        self.W, self.mirrors = maker.transform(x), maker.mirrors_
        self.row = np.arange(N * A) if own else np.repeat(np.arange(N), A)
        self.group = {
            "items": np.tile(np.arange(A), N),
            "alternatives": np.tile(np.arange(A), N),
            "shared": np.zeros(N * A, dtype=np.int64),
            "persons": np.repeat(np.arange(N) % 2, A),
        }[kind]
        self.K, self.p, self.name = int(self.group.max()) + 1, self.W.shape[1], name
        self.lower, self.upper = prior
        self.learn = self.lower < self.upper
        self.target = Target(1.0, self.learn, *tabulate(LogUniform(*prior) if self.learn else LogUniform()))
        self.response = make_response("ranking" if name == "top" else name)
        self.laws = self.make_laws()
        self.template = self.rows(np.tile(np.arange(A), (N, 1)))
        found = hold(self.template, self.mirrors)
        top, start = self.W.max(axis=1), np.arange(N + 1) * A
        sizes, buckets = np.tile(BUCKETS[name], N), np.arange(N + 1) * len(BUCKETS[name])
        groups = [np.unique(np.flatnonzero(self.group == k) // A) for k in range(self.K)]
        self.held = found._replace(
            W=self.W, top=top, outcomes=Outcomes(start, buckets, sizes, np.ones(N)),
            situation=np.concatenate(groups), situation_start=np.cumsum([0, *map(len, groups)]),
        )  # fmt: skip

    def from_prior(self, rng):
        """a and ln λ̄."""
        a = float(np.exp(rng.uniform(np.log(self.lower), np.log(self.upper)))) if self.learn else self.lower
        theta = np.log(rng.gamma(a + 1, size=(self.K, self.p))) - rng.exponential(size=(self.K, self.p)) / a
        top = theta.max()
        return a, theta - top - np.log(np.exp(theta - top).sum())

    def log_rates(self, theta):
        """Of all entries, (…, situation, entry)."""
        rates = np.einsum("ej,...ej->...e", self.W[self.row], np.exp(theta)[..., self.group, :])
        return np.log(np.maximum(rates, 1e-300)).reshape(*theta.shape[:-2], N, A)

    def seen(self, theta, rng):
        """The order in which the entries of each situation arrive, within a bucket by their number."""
        order = np.argsort(np.log(rng.exponential(size=(N, A))) - self.log_rates(theta), axis=1)
        ends = np.cumsum(BUCKETS[self.name])
        return np.hstack([np.sort(part, axis=1) for part in np.split(order, ends, axis=1)])

    def held_for(self, order):
        """What the moves read, with entries in this order; what does not depend on it is made once."""
        entries = (np.arange(N)[:, None] * A + order).ravel()
        group, row = self.group[entries], self.row[entries]
        placed = np.bincount(group, np.tile(np.arange(A) < sum(BUCKETS[self.name]), N), self.K)
        entry = np.argsort(group, kind="stable")
        return self.held._replace(group=group, row=row, entry=entry, placed=placed.astype(np.float64))

    def rows(self, order):
        entries = (np.arange(N)[:, None] * A + order).ravel()
        outcomes = Outcomes.of([A] * N, [BUCKETS[self.name]] * N)
        situations = Situations(outcomes, self.group[entries], self.row[entries])
        return situation_rows("auto", self.W, situations, self.response, self.K)

    def rows_for(self, held):
        """The same for passes."""
        rows = copy(self.template)
        rows.features, rows.outcomes, rows.group, rows.row = held.W, held.outcomes, held.group, held.row
        rows.situations = Situations(held.outcomes, held.group, held.row)
        return rows

    def make_laws(self):
        """Laws for leaps from prior draws and unrelated outcomes: any will do, as long as they stay the same."""
        rng = np.random.default_rng(5)
        rows = self.rows(np.argsort(rng.random((N, A)), axis=1))
        found = [[self.from_prior(rng) for _ in range(12)] for _ in range(2)]
        theta = np.array([[each[1] for each in chain] for chain in found])
        shapes = np.array([[each[0] for each in chain] for chain in found])
        sweeps, M = counted_sweeps(rows, theta, shapes, seed=1), self.K * self.p
        blocks = [np.array([0, M - 1]), np.arange(M // 2)]
        whole = remember(sweeps, 1, [np.arange(M)], np.ones(1), self.learn)
        return Laws(whole, remember(sweeps, 1, blocks, np.array([1.0, 2.0]), self.learn))


def statistics(s, found):
    """Functions of (a, ln λ̄, order) whose means are compared, (draw, function)."""
    a, theta, order = (np.array(each) for each in zip(*found, strict=True))
    w, cut = np.exp(theta), np.maximum(theta, DEAD)
    rates = s.log_rates(theta)
    shares = np.exp(rates - rates.max(axis=2, keepdims=True))
    shares /= shares.sum(axis=2, keepdims=True)
    first = np.take_along_axis(shares, order[:, :, :1], axis=2)[..., 0]
    second = np.take_along_axis(shares, order[:, :, 1:2], axis=2)[..., 0]
    squares = (w**2).sum(axis=(1, 2))
    return np.column_stack([
        np.log(a), np.log(a) ** 2, np.log(a) * squares, cut[:, 0, 0], cut[:, -1, -1], cut.sum(axis=(1, 2)),
        (cut**2).sum(axis=(1, 2)), w[:, 0, 0], w[:, -1, -1], w[:, 0].sum(axis=1) ** 2, squares, w.max(axis=(1, 2)),
        np.sqrt(w).sum(axis=(1, 2)), (theta < -7).sum(axis=(1, 2)), (theta < -3).sum(axis=(1, 2)), first.mean(axis=1),
        second.mean(axis=1), (first * second).mean(axis=1), np.log(np.maximum(first, 1e-9)).mean(axis=1),
        (shares**2).sum(axis=2).mean(axis=1), shares[:, 0, 0], shares[:, -1, -1] ** 2, (order[:, 0] == 0)[:, 0],
    ])  # fmt: skip


@lru_cache
def direct_draws(kind, name, prior):
    """A setting and the statistics of draws from prior and model."""
    s, rng, found = Setting(kind, name, prior), np.random.default_rng(99), []
    for _ in range(20_000):
        a, theta = s.from_prior(rng)
        found.append((a, theta, s.seen(theta, rng)))
    return s, statistics(s, found)


def plain_sweep(s, order, theta, numbers, rng):
    """From the pass of the engine and (13), and a few steps of a random walk on ln a given λ̄."""
    numbers[0] = np.log(rng.gamma(1 + s.K * s.p * numbers[SHAPE])) - rng.exponential() / (s.K * s.p * numbers[SHAPE])
    stats = s.rows_for(s.held_for(order)).sample(Weights.point(theta), int(rng.integers(1 << 62)))
    alpha = numbers[SHAPE] + stats.wins
    new = np.log(rng.gamma(alpha + 1)) - rng.exponential(size=alpha.shape) / alpha
    new -= np.logaddexp(0.0, np.log(stats.exposure) - numbers[0])
    theta[:] = new - logsumexp(new)
    if s.learn:

        def height(a):
            return gammaln(a * theta.size) - theta.size * gammaln(a) + a * theta.sum()

        for _ in range(3):
            a = numbers[SHAPE] * np.exp(0.7 * rng.normal())
            if s.lower < a < s.upper and -rng.exponential() < height(a) - height(numbers[SHAPE]):
                numbers[SHAPE] = a


def geweke(kind, name, prior, step, n=6000, plain_every=5, seed=0):
    """|z| of every statistic for a chain that alternates new outcomes with `step(s, order, theta, numbers, rng)`."""
    s, direct = direct_draws(kind, name, prior)
    rng, numbers, found = np.random.default_rng(seed), np.zeros(4), []
    numbers[SHAPE], theta = s.from_prior(rng)
    for t in range(n):
        order = s.seen(theta, rng)
        if plain_every and t % plain_every == 0:
            plain_sweep(s, order, theta, numbers, rng)
        step(s, order, theta, numbers, rng)
        found.append((numbers[SHAPE], theta.copy(), order))
    chain = statistics(s, found)
    means = chain.reshape(BATCHES, -1, chain.shape[1]).mean(axis=1)
    error = np.sqrt(means.var(axis=0, ddof=1) / BATCHES + direct.var(axis=0) / len(direct))
    difference = np.abs(means.mean(axis=0) - direct.mean(axis=0))
    return np.divide(difference, error, out=np.zeros_like(error), where=error > 1e-12)


def only(*moves, repeats=8):
    """These moves so many times, as an iteration runs them."""

    def step(s, order, theta, numbers, rng):
        plan = np.zeros(len(NAMES))
        plan[list(moves)] = repeats
        held = s.held_for(order)
        point = make_point(theta, numbers, held)
        run_moves(held, point, s.response.expect_block, rng, s.target, plan, *s.laws, *np.zeros((2, len(NAMES))), False)

    return step


def iteration(s, order, theta, numbers, rng):
    """One whole iteration of the sampler."""
    renew_mass(rng, theta, numbers, s.target)
    stats = s.rows_for(s.held_for(order)).sample(Weights.point(theta), int(rng.integers(1 << 62)))
    after_pass(rng, theta, numbers, stats.wins, stats.exposure, s.target)
    moves = [move for move in MOVES if s.held.mirror.size or move not in (FLIP_ONE, FLIP_CLOSE)]
    only(*moves, repeats=2)(s, order, theta, numbers, rng)


@pytest.mark.brief(8)
@pytest.mark.parametrize("prior", [FIXED, LEARNED], ids=["fixed", "learned"])
@pytest.mark.parametrize("move", MOVES, ids=[NAMES[move] for move in MOVES])
def test_each_move_keeps_the_joint_distribution(move, prior):
    assert geweke("items", "ranking", prior, only(move)).max() < 4.5


@pytest.mark.brief(1)
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("items", "ranking"),
        ("items", "top"),
        ("items", "unknown-order"),
        ("shared", "choice"),
        ("persons", "choice"),
        ("alternatives", "choice"),
        ("alternatives", "ranking"),
    ],
)
@pytest.mark.parametrize("prior", [FIXED, LEARNED], ids=["fixed", "learned"])
def test_an_iteration_keeps_the_joint_distribution(kind, name, prior):
    assert geweke(kind, name, prior, iteration, plain_every=0).max() < 4.5


def broken(function, *changes, tail=()):
    """A transition that runs a copy of a move with these expressions changed, many times."""
    wrong = double(function, *changes)

    @njit
    def many(held, point, respond, rng, more):
        for _ in range(MANY):
            wrong(held, point, respond, rng, *more)

    def step(s, order, theta, numbers, rng):
        held = s.held_for(order)
        point, respond = make_point(theta, numbers, held), s.response.expect_block
        refresh(held, point, respond)
        many(held, point, respond, rng, tuple(each(s) for each in tail))
        theta -= logsumexp(theta)

    return step


WRONG = {
    "flip without the scale": lambda: broken(
        weight_moves.exchange, ("math.log(mass_of(point) / before)", "0.0"), tail=[lambda s: weight_moves.FLIP]
    ),
    "slice without its Jacobian": lambda: broken(
        weight_moves.coordinate,
        ("(alpha + 1.0) * math.log(old + c)", "alpha * math.log(old + c)"),
        ("(alpha + 1.0) * math.log(new + c)", "alpha * math.log(new + c)"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_ratio_is_found_out(name):
    assert geweke("items", "ranking", FIXED, WRONG[name](), plain_every=RARELY).max() > 6


def situations_of(name, rng, n=30, K=4, d=2, counts=None):
    """Rankings or choices of K items by persons with covariates, the first of which speaks for the first item."""
    X = rng.normal(size=(n, d))
    maker = ExpFeatures().fit(X)
    order = np.argsort(rng.exponential(size=(n, K)) * np.exp(-X[:, :1] * np.linspace(1, -1, K)), axis=1)
    sizes = {"choice": [1], "ranking": [1, 1], "unknown-order": [2, 1]}[name]
    outcomes = Outcomes.of([K] * n, [sizes] * n, counts)
    seen = Situations(outcomes, order.ravel(), np.repeat(np.arange(n), K))
    return maker.transform(X), maker.mirrors_, seen


@pytest.mark.parametrize("name", ["choice", "ranking", "unknown-order"])
def test_caches_are_what_they_would_be_afresh(name):
    """After many moves of every kind, rates and V are those of the weights, and differences those of whole passes."""
    rng = np.random.default_rng(0)
    W, mirrors, seen = situations_of(name, rng, counts=rng.integers(0, 4, 30).astype(float))
    response = make_response(name)
    rows = situation_rows("auto", W, seen, response, 4)
    held, theta, numbers = hold(rows, mirrors), np.log(rng.gamma(0.5, size=(4, W.shape[1]))), np.zeros(4)
    numbers[SHAPE] = 0.5
    point = make_point(theta, numbers, held)
    target = Target(1.0, True, *tabulate(LogUniform()))
    states = run_of(W, mirrors, seen, name, draws=32, tune=64, chains=2)
    laws = learn(rows, states["log_weights"], states["shape"], held.mirror, True)
    refresh(held, point, response.expect_block)
    before, moved = rows.value(Weights.point(theta)), np.zeros(len(NAMES))
    assert np.isclose(held.outcomes.counts @ point.values, before)
    for i in range(800):
        move = MOVES[i % len(MOVES)]
        moved[move] += run_move(held, point, response.expect_block, rng, target, *laws, move, 1) > 0
        fresh = make_point(theta.copy(), numbers, held)
        refresh(held, fresh, response.expect_block)
        np.testing.assert_allclose(point.values, fresh.values, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(point.rates / point.mass.sum(), fresh.rates, rtol=1e-12)
        np.testing.assert_allclose(point.mass, point.weights.sum(axis=1), rtol=1e-12)
    assert (moved[MOVES] > 0).all()
    after = rows.value(Weights.point(theta))
    refresh(held, point, response.expect_block)
    point.line[:] = rng.normal(size=point.line.shape)
    point.line_weights[:] = np.exp(point.line)
    change = judge(held, point, response.expect_block, rescore_all(held, point))
    assert np.isclose(change, rows.value(Weights.point(theta)) - after)


def test_a_proposal_touches_only_the_situations_of_its_groups():
    group = np.array([0, 0, 2, 2, 1, 1, 0, 0, 2, 1])
    seen = Situations(Outcomes.choices([2] * 5), group, np.arange(10))
    rows = situation_rows(
        "auto", np.exp(np.random.default_rng(0).normal(size=(10, 3))), seen, make_response("choice"), 3
    )
    held = hold(rows, None)
    point = make_point(np.zeros((3, 3)), np.zeros(4), held)
    holds = [np.unique(np.flatnonzero(held.group == k) // 2) for k in range(3)]
    for k in range(3):
        for l in range(3):
            n = touch(held, point, k, l)
            np.testing.assert_array_equal(point.touched[:n], np.union1d(holds[k], holds[l]))
    n = touch_some(held, point, np.array([1, 0, 1]))
    np.testing.assert_array_equal(point.touched[:n], np.union1d(holds[0], holds[2]))
    assert not point.marks.any()


def run_of(W, mirrors, seen, name, seed=0, shape=None, **settings):
    rows = situation_rows("auto", W, seen, make_response(name), int(seen.group.max()) + 1)
    problem = Problem(rows, 1.0, np.random.SeedSequence(seed), mirrors=mirrors)
    run = WeightRun(Gibbs(**settings), problem, shape)
    run.go()
    run.close()
    return run.draws()


@pytest.mark.long
@pytest.mark.parametrize("shape", [0.5, None], ids=["fixed", "learned"])
@pytest.mark.parametrize("name", ["choice", "ranking", "unknown-order"])
def test_long_plain_chains_have_the_same_means(name, shape):
    W, mirrors, seen = situations_of(name, np.random.default_rng(1), n=20, K=3, d=1)
    found = []
    for moves, draws in (("none", 8000), ("exchange", 2000)):
        kept = run_of(W, mirrors, seen, name, shape=shape, moves=moves, draws=draws, tune=1000)
        first = np.exp(kept["log_weights"]) @ W[:6].T
        functions = (first / first.sum(axis=2, keepdims=True)).reshape(*first.shape[:2], -1)
        if shape is None:
            functions = np.concatenate([functions, np.log(kept["shape"])[..., None]], axis=2)
        functions = np.concatenate([functions, kept["value"][..., None]], axis=2)
        rhat, ess, _ = measures(functions)
        assert rhat.max() < 1.05
        found.append((functions.mean(axis=(0, 1)), functions.std(axis=(0, 1)) / np.sqrt(ess)))
    (one, e1), (two, e2) = found
    assert np.abs((one - two) / np.hypot(e1, e2)).max() < 4.5


@pytest.mark.brief(1)
@pytest.mark.parametrize(("name", "n"), [("choice", 3000), ("ranking", 3000), ("unknown-order", 400)])
def test_threads_rounds_and_the_order_of_situations_do_not_matter(name, n, monkeypatch):
    W, mirrors, seen = situations_of(name, np.random.default_rng(2), n=n)
    short = {"moves": "exchange", "draws": 6, "tune": 16, "chains": 2}
    one = run_of(W, mirrors, seen, name, **short)
    order = np.random.default_rng(3).permutation(n)
    monkeypatch.setattr("plackett.inference.driver.ROUND_SECONDS", 1e-6)
    monkeypatch.setattr("plackett.inference.situation_moves.sampler.cores", lambda: 1)
    two = run_of(W, mirrors, seen.part(order), name, **short)
    for key, draws in one.items():
        np.testing.assert_array_equal(draws, two[key])


def test_a_cut_checkpoint_is_continued_to_the_same_draws(tmp_path, monkeypatch):
    monkeypatch.setattr("plackett.inference.driver.ROUND_SECONDS", 0.0)
    W, mirrors, seen = situations_of("ranking", np.random.default_rng(4))
    path, short = tmp_path / "fit", {"moves": "exchange", "draws": 12, "tune": 32, "chains": 2}
    whole = run_of(W, mirrors, seen, "ranking", **short)
    run_of(W, mirrors, seen, "ranking", checkpoint=path, **short)
    data = path.read_bytes()
    for part in (0.1, 0.35, 0.6, 0.75, 0.9, 1.0):
        path.write_bytes(data[: int(part * len(data))])
        again = run_of(W, mirrors, seen, "ranking", checkpoint=path, **short)
        for key, draws in whole.items():
            np.testing.assert_array_equal(draws, again[key])
    with pytest.raises(CheckpointError, match="another fit"):
        run_of(W, None, seen, "ranking", checkpoint=path, **short)
