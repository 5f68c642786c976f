"""Geweke's joint-distribution test (2004) for moves of the exact sampler, compiled.

Two ways to draw (a, λ̄, y): from prior and model, and by a chain that alternates new data y with a transition that is
meant to leave the posterior given y as it is. Every mean must agree. The plain sweep of the harness is written from
the definition of the model, equations (11) to (13), and shares nothing with the package. What is tested is called
through a pointer, so that it is the package's own compiled code and the harness compiles in seconds.
"""

import inspect
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit, typeof, types

from conftest import class_rows
from plackett.compute.compiled import apart, jit
from plackett.engines.panels import Panels
from plackett.features import ExpFeatures
from plackett.inference.moves.chain import CachedChain, make_chain, refresh
from plackett.inference.moves.memory import Laws, counted_sweeps, remember
from plackett.inference.moves.rows import MoveColumns, lay_out
from plackett.inference.moves.schedule import iterations, run_move
from plackett.inference.sweeps import SHAPE, Room, Target
from plackett.model.mixture import normalised
from plackett.priors import LogUniform, tabulate
from plackett.simulate import prior_weights

DEAD = -30.0  # ln λ̄ is cut here in the statistics
DIRECT, PARTS = 100_000, 10  # draws from prior and model, and parts of them that are in memory in turn
LANES = 64
BATCHES = 50


class Setting(NamedTuple):
    """The model of a test: features, classes and the prior of a (one point when it is fixed)."""

    features: np.ndarray  # (n, p)
    columns: MoveColumns  # what does not depend on y: mirrors, kernel, levels
    n_classes: int
    lower: float
    upper: float
    target: Target
    laws: Laws


def laws_of(W, n_classes, mirror, learn, lower, upper, seed=5):
    """Laws for leaps from prior draws and unrelated labels: any will do, as long as they stay the same."""
    rng = np.random.default_rng(seed)
    codes = np.arange(len(W)) % n_classes
    panels = class_rows("numba", W, codes, n_classes).panels
    p = W.shape[1]
    shapes = np.exp(rng.uniform(np.log(lower), np.log(upper), (2, 12)))
    theta = np.array([[normalised(prior_weights(n_classes, p, a, rng=rng)) for a in row] for row in shapes])
    sweeps = counted_sweeps(panels, theta, shapes, seed=1)
    pair = np.array([0, mirror[0]])
    blocks = [np.sort(pair), np.setdiff1d(np.arange(p), pair)]
    whole = remember(sweeps, n_classes, [np.arange(p)], np.ones(1), learn)
    return Laws(whole, remember(sweeps, n_classes, blocks, np.array([1.0, 2.0]), learn))


def setting(n_classes, shape, n=7, d=2, rate=1.0, seed=3, copies=1):
    """Random features with mirrors; shape is a number (fixed) or (lower, upper) of a log-uniform prior.

    With copies, every row comes so often, and what is tested sees copies with the same outcome as one row of a weight.
    """
    learn = isinstance(shape, tuple)
    lower, upper = shape if learn else (shape, shape)
    maker = ExpFeatures().fit(np.random.default_rng(seed).normal(size=(n, d)))
    W = np.repeat(maker.transform(np.random.default_rng(seed).normal(size=(n, d))), copies, axis=0)
    weight = None if copies == 1 else np.ones(len(W))
    columns = lay_out(W, np.arange(len(W)) % n_classes, n_classes, maker.mirrors_, weight)
    table = tabulate(LogUniform(*shape) if learn else LogUniform())
    laws = laws_of(W, n_classes, maker.mirrors_, learn, lower, upper)
    return Setting(W, columns, n_classes, lower, upper, Target(rate, learn, *table), laws)


_example = setting(2, 0.3)
MATRIX, VECTOR, INTEGERS, BLOCK = types.float64[:, ::1], types.float64[::1], types.int64[::1], types.float64[:, :, ::1]
COLUMNS, CHAIN = typeof(_example.columns), typeof(make_chain(np.zeros((2, 5)), np.zeros(4), _example.columns))
RNG, TARGET, LAWS = typeof(np.random.default_rng(0)), typeof(_example.target), typeof(_example.laws)
PANELS = types.NamedTuple((BLOCK, *[INTEGERS] * 4, VECTOR, types.boolean[::1], MATRIX), Panels)
ROOM = types.NamedTuple((*[MATRIX] * 5, VECTOR), Room)
MODEL = (RNG, MATRIX, COLUMNS, TARGET, LAWS, types.float64, types.float64)
OUT = (BLOCK, VECTOR, types.int64[:, ::1])
STEP = types.FunctionType(types.int64(COLUMNS, CHAIN, RNG, TARGET, LAWS, types.int64, types.int64))
ITERATIONS = types.FunctionType(
    types.void(
        PANELS, COLUMNS, CHAIN, RNG, TARGET, VECTOR, LAWS, ROOM, VECTOR, VECTOR, types.boolean, BLOCK, VECTOR, VECTOR
    )
)


@jit
def log_gamma(rng, shape):
    return math.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential() / shape


@jit
def normalise(theta):
    """Shift ln λ so that Σ λ = 1; returns Σ ln λ̄."""
    top, total, tilt = -np.inf, 0.0, 0.0
    for x in theta.flat:
        top = max(top, x)
    for x in theta.flat:
        total += math.exp(x - top)
    for k in range(theta.shape[0]):
        for j in range(theta.shape[1]):
            theta[k, j] -= top + math.log(total)
            tilt += theta[k, j]
    return tilt


@jit
def draw_prior(rng, theta, lower, upper):
    """a and ln λ̄ from the prior; returns a."""
    a = lower * math.exp(rng.random() * math.log(upper / lower))
    for k in range(theta.shape[0]):
        for j in range(theta.shape[1]):
            theta[k, j] = log_gamma(rng, a)
    normalise(theta)
    return a


@jit
def choose(rng, x):
    """An index with probability proportional to x."""
    left = 0.0
    for value in x:
        left += value
    left *= rng.random()
    for i in range(x.size - 1):
        left -= x[i]
        if left < 0.0:
            return i
    return x.size - 1


@jit
def draw_data(rng, W, theta, y):
    """Y_i = k with probability W_i·λ_k / Σ_l W_i·λ_l, equation (2)."""
    K, p = theta.shape
    scores = np.empty(K)
    for i in range(y.size):
        for k in range(K):
            scores[k] = 0.0
            for j in range(p):
                scores[k] += W[i, j] * math.exp(theta[k, j])
        y[i] = choose(rng, scores)


@jit
def plain_sweep(rng, W, y, theta, a, rate, lower, upper):
    """Λ, Z, C, then λ, from their definitions, and random-walk steps on ln a given λ̄; returns a."""
    K, p = theta.shape
    log_mass = log_gamma(rng, a * K * p) - math.log(rate)
    wins, exposure, parts = np.zeros((K, p)), np.zeros(p), np.empty(p)  # exposure in units of Λ = 1
    for i in range(y.size):
        total = 0.0
        for j in range(p):
            parts[j] = W[i, j] * math.exp(theta[y[i], j])
            for k in range(K):
                total += W[i, j] * math.exp(theta[k, j])
        wins[y[i], choose(rng, parts)] += 1.0
        time = rng.standard_exponential() / total
        for j in range(p):
            exposure[j] += W[i, j] * time
    for j in range(p):
        x, z = math.log(rate), math.log(exposure[j]) - log_mass
        log_rate = max(x, z) + math.log1p(math.exp(-abs(x - z)))
        for k in range(K):
            theta[k, j] = log_gamma(rng, a + wins[k, j]) - log_rate
    M, tilt = K * p, normalise(theta)
    if upper > lower:
        for _ in range(3):
            new = a * math.exp(rng.standard_normal())
            gain = math.lgamma(new * M) - math.lgamma(a * M) - M * (math.lgamma(new) - math.lgamma(a))
            if lower < new < upper and -rng.standard_exponential() < gain + (new - a) * tilt:
                a = new
    return a


@jit
def counted(W, y, merge):
    """How many rows each row stands for: ones, or the first of equal rows with the same outcome for all of them."""
    count = np.ones(y.size)
    for i in range(y.size if merge else 0):
        for first in range(i):
            if count[first] > 0.0 and y[first] == y[i] and np.all(W[first] == W[i]):
                count[first], count[i] = count[first] + 1.0, 0.0
                break
    return count


@jit
def columns_of(W, y, count, n_classes, fixed):
    """Rows that stand for some, sorted by class, each class padded to a multiple of eight rows of zeros."""
    size, start = np.zeros(n_classes, dtype=np.int64), np.zeros(n_classes + 1, dtype=np.int64)
    of_class = np.zeros(n_classes)
    for i in range(y.size):
        size[y[i]] += count[i] > 0.0
        of_class[y[i]] += count[i]
    place = np.zeros(n_classes, dtype=np.int64)
    for k in range(n_classes):
        place[k] = start[k]
        start[k + 1] = start[k] + (size[k] + 7) // 8 * 8
    packed, weight = np.zeros((W.shape[1], start[n_classes])), np.zeros(start[n_classes] if fixed.weight.size else 0)
    for i in np.flatnonzero(count):
        for j in range(W.shape[1]):
            packed[j, place[y[i]]] = W[i, j]
        if fixed.weight.size:
            weight[place[y[i]]] = count[i]
        place[y[i]] += 1
    return MoveColumns(packed, start, size, fixed.mirror, fixed.near, fixed.level, weight, of_class)


@jit
def chain_of(theta, numbers, N):
    K, p = theta.shape
    return CachedChain(
        theta, np.empty((K, p)), numbers, np.empty(1), np.empty((K, N)), np.empty(N), np.empty(K + 1), np.empty(K),
        np.empty((K, N)), np.empty(N), np.empty(K + 1), np.empty((K, p)), np.empty((K, p)), np.empty(K * p),
        np.empty((K + 1, N)),
    )  # fmt: skip


@jit
def panels_of(W, y, count, n_classes):
    """One panel and one block for each class that has rows, and room for a pass."""
    n, p = W.shape
    size, Q = np.zeros(n_classes, dtype=np.int64), 0
    for i in np.flatnonzero(count):
        Q += size[y[i]] == 0
        size[y[i]] += 1
    values, weight = np.ones((Q, p, LANES)), np.zeros((Q, LANES))
    fill, first, block_class = np.zeros(Q, dtype=np.int64), np.zeros(Q, dtype=np.int64), np.zeros(Q, dtype=np.int64)
    block_start = np.zeros(Q + 1, dtype=np.int64)
    q = row = 0
    for k in range(n_classes):
        if size[k] > 0:
            block_class[q], fill[q], first[q], block_start[q + 1] = k, size[k], row, q + 1
            lane = 0
            for i in range(n):
                if y[i] == k and count[i] > 0.0:
                    weight[q, lane] = count[i]
                    for j in range(p):
                        values[q, j, lane] = W[i, j]
                    lane += 1
            row += size[k]
            q += 1
    block_weight, plain, K = np.zeros(Q), np.zeros(Q, dtype=np.bool_), n_classes
    for q in range(Q):
        block_weight[q] = np.sum(weight[q])
        plain[q] = np.all(weight[q, : fill[q]] == 1.0)
    panels = Panels(values, fill, first, block_start, block_class, block_weight, plain, weight)
    room = Room(np.empty((K, p)), np.empty((K, p)), np.empty((1, p)), np.empty((Q, p)), np.empty((Q, p)), np.empty(Q))
    return panels, room


@jit
def from_the_model(rng, W, lower, upper, thetas, shapes, codes):
    for t in range(shapes.size):
        shapes[t] = draw_prior(rng, thetas[t], lower, upper)
        draw_data(rng, W, thetas[t], codes[t])


@apart(types.float64(STEP, *[types.int64] * 3, *MODEL, *OUT), allocates=True)
def from_moves(step, move, repeats, plain_every, rng, W, fixed, target, laws, lower, upper, thetas, shapes, codes):
    """New data, now and then a plain sweep, and the move so many times; returns the part of runs that moved."""
    K, p = thetas.shape[1:]
    theta, y, numbers = np.empty((K, p)), np.empty(W.shape[0], dtype=np.int64), np.zeros(4)
    numbers[SHAPE] = draw_prior(rng, theta, lower, upper)
    moved = 0
    for t in range(shapes.size):
        draw_data(rng, W, theta, y)
        if t % plain_every == 0:
            numbers[SHAPE] = plain_sweep(rng, W, y, theta, numbers[SHAPE], target.rate, lower, upper)
        count = counted(W, y, fixed.weight.size > 0)
        columns = columns_of(W, y, count, K, fixed)
        chain = chain_of(theta, numbers, columns.start[K])
        refresh(columns, chain)
        for _ in range(repeats):
            moved += step(columns, chain, rng, target, laws, move, 1)
        normalise(theta)
        thetas[t], shapes[t], codes[t] = theta, numbers[SHAPE], y
    return moved / (shapes.size * repeats)


@apart(types.void(ITERATIONS, *MODEL, VECTOR, *OUT), allocates=True)
def from_iterations(iterations, rng, W, fixed, target, laws, lower, upper, plan, thetas, shapes, codes):
    """New data and one whole iteration of the sampler."""
    K, p = thetas.shape[1:]
    theta, y, numbers = np.empty((K, p)), np.empty(W.shape[0], dtype=np.int64), np.zeros(4)
    numbers[SHAPE] = draw_prior(rng, theta, lower, upper)
    draw, shape, value = np.empty((1, K, p)), np.empty(1), np.empty(1)
    runs, gains = np.zeros(plan.size), np.zeros(plan.size)
    for t in range(shapes.size):
        draw_data(rng, W, theta, y)
        count = counted(W, y, fixed.weight.size > 0)
        columns = columns_of(W, y, count, K, fixed)
        chain = chain_of(theta, numbers, columns.start[K])
        panels, room = panels_of(W, y, count, K)
        iterations(panels, columns, chain, rng, target, plan, laws, room, runs, gains, False, draw, shape, value)
        thetas[t], shapes[t], codes[t] = theta, numbers[SHAPE], y


def statistics(W, theta, a, y):
    """Functions of (a, λ̄, y) whose means are compared, (draw, function)."""
    n, K, p = theta.shape
    weights, cut = np.exp(theta), np.maximum(theta, DEAD)
    scores = weights @ W.T
    own = np.take_along_axis(scores, y[:, None], axis=1)[:, 0] / scores.sum(axis=1)
    squares = (weights**2).sum(axis=(1, 2))
    heights = np.take_along_axis(weights.sum(axis=2), y, axis=1).mean(axis=1)
    count = (y == 0).mean(axis=1)
    top = cut.max(axis=2, keepdims=True)
    shares = np.exp(cut - top)
    shares /= shares.sum(axis=2, keepdims=True)  # within each class
    return np.column_stack([
        np.log(a), np.log(a) ** 2, np.log(a) * squares,
        cut[:, 0, 0], cut[:, -1, -1], cut.sum(axis=(1, 2)), (cut**2).sum(axis=(1, 2)),
        weights[:, 0, 0], weights[:, -1, -1], weights[:, 0].sum(axis=1) ** 2, squares, weights.max(axis=(1, 2)),
        np.sqrt(weights).sum(axis=(1, 2)), (theta < -7).sum(axis=(1, 2)), (theta < -3).sum(axis=(1, 2)),
        np.log(np.maximum(own, 1e-30)).sum(axis=1), own.mean(axis=1), count**2, heights,
        (weights[:, 0] * weights[:, 1]).sum(axis=1), (shares**2).sum(axis=(1, 2)),
        (shares.sum(axis=1) ** 2).sum(axis=1),
    ])  # fmt: skip


def room_for(n, s):
    return np.empty((n, s.n_classes, s.features.shape[1])), np.empty(n), np.empty((n, len(s.features)), dtype=np.int64)


@lru_cache
def direct_means(K, shape, copies=1):
    """A setting, and means of the statistics of draws from its prior and model with their squared standard errors."""
    s = setting(K, shape, copies=copies)
    rng, out, sums = np.random.default_rng(99), room_for(DIRECT // PARTS, s), np.zeros((2, 1))
    for _ in range(PARTS):
        from_the_model(rng, s.features, s.lower, s.upper, *out)
        found = statistics(s.features, *out)
        sums = sums + np.array([found.sum(axis=0), (found**2).sum(axis=0)])
    mean, square = sums / DIRECT
    return s, (mean, (square - mean**2) / DIRECT)


def compare(direct, chain):
    """|z| of every statistic, with the error of the chain from batch means; 0 where nothing varies."""
    (mean, squared_error), n = direct, len(chain) // BATCHES * BATCHES
    means = chain[:n].reshape(BATCHES, -1, chain.shape[1]).mean(axis=1)
    error = np.sqrt(means.var(axis=0, ddof=1) / BATCHES + np.maximum(squared_error, 0.0))
    difference = np.abs(means.mean(axis=0) - mean)
    return np.divide(difference, error, out=np.zeros_like(error), where=error > 1e-12)


@jit
def any_move(columns, chain, rng, target, laws, move, tries):
    """The package's own moves, as something that a pointer can be made to."""
    return run_move(columns, chain, rng, target, laws, move, tries)


def geweke_move(K, shape, move, step=any_move, n=20_000, repeats=15, plain_every=5, seed=0, copies=1):
    """|z| of every statistic for one move (an index into `schedule.NAMES`), and the part of its runs that moved."""
    s, direct = direct_means(K, shape, copies)
    out, rng = room_for(n, s), np.random.default_rng([seed, move])
    model = (rng, s.features, s.columns, s.target, s.laws, s.lower, s.upper)
    rate = from_moves(step, move, repeats, plain_every, *model, *out)
    return compare(direct, statistics(s.features, *out)), rate


def geweke_iterations(K, shape, plan, n=20_000, seed=0, copies=1):
    """|z| of every statistic for the whole iteration under a plan."""
    s, direct = direct_means(K, shape, copies)
    out, rng = room_for(n, s), np.random.default_rng(seed)
    model = (rng, s.features, s.columns, s.target, s.laws, s.lower, s.upper)
    from_iterations(iterations, *model, np.asarray(plan), *out)
    return compare(direct, statistics(s.features, *out))


def double(function, *changes, **others):
    """A copy of a compiled function with expressions of its source replaced, compiled apart and never cached.

    Each change is (old, new), old occurring exactly once; others are globals it sees instead of its own.
    """
    source = inspect.getsource(function.py_func)
    for old, new in changes:
        assert source.count(old) == 1, f"{old!r} occurs {source.count(old)} times in {function.py_func.__name__}"
        source = source.replace(old, new)
    namespace = {**function.py_func.__globals__, **others}
    exec(compile(source[source.index("def ") :], "<double>", "exec"), namespace)
    return njit(error_model="numpy")(namespace[function.py_func.__name__])
