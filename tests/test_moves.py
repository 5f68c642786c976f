"""The exact moves: Geweke's joint-distribution test, that it notices a wrong ratio, and laws of caches and plans."""

import itertools
import warnings

import numpy as np
import pytest
from numba import njit

from conftest import class_rows, small_problem
from geweke import double, geweke_iterations, geweke_move, laws_of
from plackett import Gibbs, PlackettLuceClassifier
from plackett.features import ExpFeatures
from plackett.inference.base import Problem
from plackett.inference.chains import WeightChain, begin
from plackett.inference.gibbs import exchange_sampler
from plackett.inference.moves.chain import keep, make_chain, metropolis, refresh, rescore
from plackett.inference.moves.memory import nothing
from plackett.inference.moves.mirror import log_chance, mirror
from plackett.inference.moves.rows import lay_out, partner_kernel, sum_log
from plackett.inference.moves.schedule import (
    COORDINATE,
    LEAP,
    MIRROR,
    NAMES,
    REDRAW,
    SWAP,
    adapted_plan,
    first_plan,
    run_move,
    sweep_work,
    upkeep,
    works,
)
from plackett.inference.moves.shape import redraw_inactive
from plackett.inference.moves.weight_moves import UNIFORM, coordinate, exchange, without
from plackett.inference.store import Store, empty
from plackett.inference.sweeps import State, Target
from plackett.model.mixture import normalised
from plackett.priors import LogUniform, tabulate
from plackett.simulate import prior_weights

FIXED, LEARNED, SMALL = 0.3, (0.1, 3.0), (0.005, 0.1)
MODELS = [(2, FIXED), (2, LEARNED), (3, FIXED), (3, LEARNED)]
BRIEF = ("0.3-coordinate", "shape1-leap", "0.3-part", "shape1-swap", "0.3-flip", "shape1-mirror")
LENGTHS = [8_000, pytest.param(60_000, marks=pytest.mark.slow)]
STRONG = {"n": 8_000, "repeats": 40, "plain_every": 20}  # settings under which an error of a move is not washed out


@pytest.mark.brief(*(f"8000-2-{case}" for case in BRIEF))
@pytest.mark.parametrize("move", range(len(NAMES)), ids=NAMES)
@pytest.mark.parametrize(("K", "shape"), MODELS)
@pytest.mark.parametrize("n", LENGTHS)
def test_each_move_alone_passes_gewekes_test(K, shape, move, n):
    z, rate = geweke_move(K, shape, move, n=n)
    assert z.max() < 4.5
    assert rate > 0.1


@pytest.mark.brief(2)
@pytest.mark.parametrize(("K", "shape"), [*MODELS, (2, SMALL), (3, SMALL)])
@pytest.mark.parametrize("n", LENGTHS)
def test_the_whole_iteration_passes_gewekes_test(K, shape, n):
    assert geweke_iterations(K, shape, np.array([0.7, 3.3, 1.2, 1.2, 1.2, 1.2, 1.6, 1.7, 1.3]), n=n).max() < 4.5


@pytest.mark.brief(4)
@pytest.mark.parametrize("move", range(len(NAMES)), ids=NAMES)
@pytest.mark.parametrize("n", LENGTHS)
def test_each_move_alone_passes_gewekes_test_with_weights(move, n):
    """Every row comes three times, and copies with the same outcome are one row of weight 2 or 3."""
    z, rate = geweke_move(2, LEARNED, move, n=n, copies=3)
    assert z.max() < 4.5
    assert rate > 0.1


@pytest.mark.brief(1)
@pytest.mark.parametrize(("K", "shape"), MODELS)
@pytest.mark.parametrize("n", LENGTHS)
def test_the_whole_iteration_passes_gewekes_test_with_weights(K, shape, n):
    plan = np.array([0.7, 3.3, 1.2, 1.2, 1.2, 1.2, 1.6, 1.7, 1.3])
    assert geweke_iterations(K, shape, plan, n=n, copies=3).max() < 4.5


def as_step(function, kind=None):
    """A double as the harness calls it."""
    if kind is not None:
        return njit(lambda columns, chain, rng, target, laws, move, tries: int(function(columns, chain, rng, kind)))
    if function.py_func.__code__.co_argcount == 4:
        return njit(lambda columns, chain, rng, target, laws, move, tries: int(function(columns, chain, rng, target)))
    return njit(lambda columns, chain, rng, target, laws, move, tries: int(function(columns, chain, rng)))


def without_jacobian():
    return double(
        coordinate,
        ("theta + (alpha + 1.0 - a * M) * math.log(rest + old)", "theta + (alpha - a * M) * math.log(rest + old)"),
        ("theta + (alpha + 1.0 - a * M) * math.log(rest + new)", "theta + (alpha - a * M) * math.log(rest + new)"),
    )


def without_mass():
    """The exchange with a Metropolis step that forgets (Λ′/Λ)^(−aM)."""
    old = "log_ratio -= a * M * math.log(mass_of(chain.weights) / mass_of(chain.old_weights))"
    return double(exchange, metropolis=double(metropolis, (old, "pass")))


def redraw_without_mass():
    return double(
        redraw_inactive,
        (" - old * M * math.log(mass_of(chain.weights) / active_mass)", ""),
        ("after = -new * M * math.log(mass_of(chain.weights) / active_mass)", "after = 0.0"),
    )


WIDE = ("(0.3 if k1 == k2 else 0.7)", "2.0")  # steps so wide that the chances of selection differ


@pytest.mark.long
@pytest.mark.parametrize(
    ("move", "make", "kind", "shape"),
    [
        (COORDINATE, without_jacobian, None, FIXED),
        (SWAP, without_mass, UNIFORM, FIXED),
        (REDRAW, redraw_without_mass, None, LEARNED),
    ],
    ids=["coordinate without Jacobian", "Metropolis without mass", "redraw without mass"],
)
def test_gewekes_test_notices_a_wrong_ratio(move, make, kind, shape):
    assert geweke_move(2, shape, move, as_step(make(), kind))[0].max() > 6


@pytest.mark.long
def test_the_chance_of_selection_matters_in_exchanges():
    """With wide steps the exchange is still right, and wrong without (f₂′/F′)/(f₁/F)."""
    right = as_step(double(exchange, WIDE), UNIFORM)
    wrong = as_step(double(exchange, WIDE, ("math.log(back / chance)", "0.0")), UNIFORM)
    assert geweke_move(2, FIXED, SWAP, right, **STRONG)[0].max() < 4.5
    assert geweke_move(2, FIXED, SWAP, wrong, **STRONG)[0].max() > 6


@pytest.mark.slow
def test_the_chance_of_selection_matters_in_mirrors():
    """One variable at a time, drawn by its share, with wide steps: right, and wrong without P(V|new)/P(V|old)."""
    by_share = ("math.exp(-7.0 + 5.0 * rng.random())", "10.0")
    forgotten = ("log_ratio + log_chance(activity, chosen)", "0.0")
    right = as_step(double(mirror, by_share, SPREAD=1.5, MOST=1))
    wrong = as_step(double(mirror, by_share, forgotten, SPREAD=1.5, MOST=1))
    often = {"n": 80_000, "repeats": 20, "plain_every": 2}
    assert geweke_move(2, FIXED, MIRROR, right, **often)[0].max() < 4.5
    assert geweke_move(2, FIXED, MIRROR, wrong, **often)[0].max() > 6


@pytest.mark.parametrize("dead", [1e-3, 1e-14, 1e-20, 1e-250])
def test_chances_of_all_choices_of_variables_add_up_to_one(dead):
    activity = np.array([0.9, 0.7, dead, 0.5 * dead])
    for m in (1, 2, 3):
        choices = [np.array(c) for c in itertools.permutations(range(4), m)]
        assert sum(np.exp(log_chance(activity.copy(), c)) for c in choices) == pytest.approx(1, rel=1e-12)


def laid_out(shape, seed=0, n=40, n_classes=3, spread=1.0):
    """Columns and a refreshed chain at a draw from the prior."""
    rng = np.random.default_rng(seed)
    maker = ExpFeatures().fit(spread * rng.normal(size=(n, 3)))
    W = maker.transform(spread * rng.normal(size=(n, 3)))
    codes = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)])
    columns = lay_out(W, codes, n_classes, maker.mirrors_)
    theta = normalised(prior_weights(n_classes, W.shape[1], shape, rng=rng))
    chain = make_chain(theta, np.array([0.0, shape, 0.0, 0.0]), columns)
    refresh(columns, chain)
    return columns, chain


def exact_caches(columns, chain):
    """Scores, rivals and sums of logarithms, from θ alone, and which rows are not padding."""
    real = np.concatenate([np.arange(a, a + m) for a, m in zip(columns.start[:-1], columns.size, strict=True)])
    scores = np.exp(chain.theta) @ columns.W
    own = [
        np.log(scores[k, a : a + m]).sum() for k, (a, m) in enumerate(zip(columns.start, columns.size, strict=False))
    ]
    rival = scores[:, real].sum(axis=0)
    return real, scores[:, real], rival, np.array([*own, np.log(rival).sum()])


def check_caches(columns, chain):
    real, scores, rival, logs = exact_caches(columns, chain)
    np.testing.assert_allclose(chain.weights, np.exp(chain.theta), rtol=1e-8)
    np.testing.assert_allclose(chain.mass[0], np.exp(chain.theta).sum(), rtol=1e-8)
    np.testing.assert_allclose(chain.scores[:, real], scores, rtol=1e-8)
    np.testing.assert_allclose(chain.rival[real], rival, rtol=1e-8)
    np.testing.assert_allclose(chain.logs, logs, rtol=1e-8, atol=1e-8)
    padding = np.setdiff1d(np.arange(columns.W.shape[1]), real)
    assert (chain.scores[:, padding] == 1).all() and (chain.rival[padding] == 1).all()


@pytest.mark.parametrize("shape", [0.01, 0.1, 0.3, 2.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_caches_equal_what_the_weights_say_after_any_moves(shape, n_classes):
    """As many moves in a row as an iteration makes before it makes the caches afresh, and more."""
    target = Target(1.0, True, *tabulate(LogUniform(0.3 * shape, 3 * shape)))
    rng = np.random.default_rng(1)
    moved = np.zeros(len(NAMES))
    for seed in range(6):
        columns, chain = laid_out(shape, seed, n_classes=n_classes)
        W = columns.W[:, exact_caches(columns, chain)[0]].T
        laws = laws_of(W, n_classes, columns.mirror, True, 0.3 * shape, 3 * shape)
        for _ in range(100):
            move = int(rng.integers(len(NAMES)))
            moved[move] += run_move(columns, chain, rng, target, laws, move, 2)
            check_caches(columns, chain)
    assert (moved > 0).all()


@pytest.mark.parametrize("rest", [1e-5, 1e-11, 1e-30, 1e-300])
def test_scores_without_a_dominant_weight_are_summed_afresh(rest):
    columns, chain = laid_out(0.3)
    chain.theta[:] = np.log(rest) + np.random.default_rng(0).normal(size=chain.theta.shape)
    chain.theta[1, 2] = 0.0
    refresh(columns, chain)
    without(columns, chain, 1, 2)
    weights = chain.weights.copy()
    weights[1, 2] = 0.0
    real = exact_caches(columns, chain)[0]
    np.testing.assert_allclose(chain.new_scores[1, real], (weights @ columns.W)[1, real], rtol=1e-6)
    np.testing.assert_allclose(chain.new_rival[real], (weights @ columns.W)[:, real].sum(axis=0), rtol=1e-6)
    assert (chain.new_rival > 0).all()


def test_a_score_that_cancels_in_a_proposal_is_summed_afresh():
    columns, chain = laid_out(0.3)
    chain.theta[:] = -30.0
    chain.theta[0, 0] = 0.0
    refresh(columns, chain)
    keep(chain)
    chain.theta[0, 0], chain.weights[0, 0] = -30.0, np.exp(-30.0)
    rescore(columns, chain, 0, 1.0, np.array([0]))
    real = exact_caches(columns, chain)[0]
    np.testing.assert_allclose(chain.new_scores[0, real], (chain.weights[0] @ columns.W)[real], rtol=1e-12)


@pytest.mark.parametrize("size", [8, 16, 2048, 2056, 6144, 10000])
@pytest.mark.parametrize("reach", [1.0, 60.0, 300.0, 690.0])
def test_sum_of_logarithms(size, reach):
    """From ordinary terms to such that products of four leave the range of doubles."""
    rng = np.random.default_rng(0)
    x, y = np.exp(rng.uniform(-reach, reach, size=(2, size)))
    none, weight = np.empty(0), rng.integers(0, 4, size=size) * 1.0
    weight[size // 2] = 1.0
    for d in (0.0, 0.5, 1e-3):
        logs = np.log(x + d * y)
        assert sum_log(x, y, d, none) == pytest.approx(logs.sum(), rel=1e-12, abs=1e-10 * size)
        assert sum_log(x, y, d, weight) == pytest.approx(weight @ logs, rel=1e-12, abs=1e-10 * size)
    x[size // 2] = 0.0
    assert sum_log(x, x, 0.0, none) == sum_log(x, x, 0.0, weight) == -np.inf
    weight[size // 2] = 0.0
    assert np.isfinite(sum_log(x, x, 0.0, weight))


def test_columns_of_weighted_rows_are_those_of_repeated_ones(wine):
    X, y = wine
    maker, weight = ExpFeatures().fit(X), np.random.default_rng(0).integers(1, 4, size=len(y))
    W = maker.transform(X)
    one = lay_out(W, y, 3, maker.mirrors_, weight * 1.0)
    two = lay_out(np.repeat(W, weight, axis=0), np.repeat(y, weight), 3, maker.mirrors_)
    np.testing.assert_allclose(one.near, two.near, rtol=1e-9)
    np.testing.assert_allclose(one.level, two.level, rtol=1e-9)
    np.testing.assert_array_equal(one.class_weight, two.class_weight)
    assert one.weight.sum() == weight.sum() and two.weight.size == 0
    theta, found = np.log(np.random.default_rng(1).dirichlet(np.ones(27 * 3))).reshape(3, 27), []
    for columns in (one, two):
        chain = make_chain(theta.copy(), np.array([0.0, 0.5, 0.0, 0.0]), columns)
        refresh(columns, chain)
        found.append(chain.logs)
    np.testing.assert_allclose(*found, rtol=1e-12)


def test_partner_kernel(iris, wine):
    for X, _ in (iris, wine):
        maker = ExpFeatures(pair_sums=X.shape[1] < 5).fit(X)
        for mirrors in (maker.mirrors_, np.empty(0, dtype=np.int64)):
            kernel = partner_kernel(maker.transform(X), mirrors, np.ones(len(X)))
            np.testing.assert_allclose(kernel, kernel.T, rtol=1e-12)
            np.testing.assert_allclose(kernel.sum(axis=1), 1, rtol=1e-10)
            np.testing.assert_array_equal(np.diag(kernel), 0)
            assert (kernel + np.eye(len(kernel)) > 0).all()
            if mirrors.size:
                np.testing.assert_allclose(kernel[mirrors][:, mirrors], kernel, rtol=1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_kept_does_not_depend_on_the_portions(seed):
    rng = np.random.default_rng(seed)
    capacity, total = int(rng.integers(2, 40)), int(rng.integers(1, 400))
    shapes = {"log_weights": (3, 4), "shape": (), "value": ()}
    everything = {name: rng.normal(size=array.shape) for name, array in empty(shapes, 2, total).items()}
    store = Store(2, capacity, shapes)
    while store.iterations < total:
        if store.room() == 0:
            store.halve()
        n = min(int(rng.integers(1, 30)), store.room(), total - store.iterations)
        part = {name: array[:, store.iterations : store.iterations + n] for name, array in everything.items()}
        store.add(store.select(part), n)
    thin = 1
    while capacity * thin < total:
        thin *= 2
    assert store.thin == thin
    assert list(store.filled()) == list(everything)
    for name, kept in store.filled().items():
        np.testing.assert_array_equal(kept, everything[name][:, ::thin])


def test_the_plan_keeps_to_the_budget_and_is_a_function_of_counts():
    columns, _ = laid_out(0.3)
    rng = np.random.default_rng(0)
    laws = laws_of(columns.W.T[columns.W.sum(axis=0) > 0], 3, columns.mirror, True, 0.1, 1.0)
    work = works(columns, 3, laws.whole.won.size)
    plan = first_plan(columns, 3)
    for budget in (0.1, 1.0, 5.0, 100.0):
        runs, gains = rng.integers(1, 1000, size=len(NAMES)).astype(float), rng.exponential(size=len(NAMES))
        gains[LEAP:] = 0.3 * runs[LEAP:]
        before = runs.copy(), gains.copy()
        adapted = adapted_plan(columns, 3, laws, runs, gains, budget)
        whole = budget * sweep_work(columns, 3)
        assert adapted @ work <= max(whole - upkeep(columns, 3), 0.1 * whole) * (1 + 1e-12)
        assert ((adapted > 0) == (np.arange(len(NAMES)) >= LEAP) | (plan > 0)).all()
        np.testing.assert_array_equal(adapted, adapted_plan(columns, 3, laws, *before, budget))
        np.testing.assert_allclose(adapted, adapted_plan(columns, 3, laws, 7 * runs, 7 * gains, budget), rtol=1e-12)
    better = gains.copy()
    better[COORDINATE] *= 4
    less, more = (adapted_plan(columns, 3, laws, runs, g, 1e9) for g in (gains, better))
    assert more[COORDINATE] > less[COORDINATE] and more[MIRROR] <= less[MIRROR]


def test_leaps_get_more_of_the_budget_the_more_are_accepted():
    columns, _ = laid_out(0.3)
    laws = laws_of(columns.W.T[columns.W.sum(axis=0) > 0], 3, columns.mirror, True, 0.1, 1.0)
    runs, plans = np.full(len(NAMES), 100.0), []
    for accepted in (0.0, 0.5, 3.0, 40.0):
        gains = np.full(len(NAMES), 5.0)
        gains[LEAP] = accepted
        plans.append(adapted_plan(columns, 3, laws, runs, gains, 5.0))
    assert plans[0][LEAP] == plans[1][LEAP] == 0 < plans[2][LEAP] < plans[3][LEAP]
    assert plans[0][COORDINATE] >= plans[2][COORDINATE] > plans[3][COORDINATE]
    without = adapted_plan(columns, 3, nothing(columns.W.shape[0]), runs, gains, 5.0)
    assert (without[LEAP:] == 0).all()


def problem(W, codes, n_classes, mirrors=None, seed=0):
    rows = class_rows("numba", W, codes, n_classes)
    return Problem(rows, 1.0, np.random.SeedSequence(seed), mirrors=mirrors)


def test_a_fit_is_reproducible_and_independent_of_threads_and_row_order(wine, quiet, monkeypatch):
    X, y = wine
    model = PlackettLuceClassifier(Gibbs(draws=40, tune=40, chains=3, moves="exchange"), random_state=3, features="exp")
    first = model.fit(X, y).posterior_
    order = np.random.default_rng(1).permutation(len(y))
    np.testing.assert_allclose(model.fit(X[order], y[order]).posterior_.log_weights, first.log_weights, rtol=1e-9)
    monkeypatch.setattr("plackett.inference.moves.exchange.cores", lambda: 1)
    again = model.fit(X, y).posterior_
    np.testing.assert_array_equal(again.log_weights, first.log_weights)
    np.testing.assert_array_equal(again.shape, first.shape)


def started(given):
    """A chain at a dispersed state."""
    rng = np.random.default_rng(np.random.SeedSequence(1))
    return WeightChain(begin(given, None, 1e-4, 1e2, rng), rng)


def test_a_map_without_mirrors_goes_without_mirror_moves():
    W, codes, _ = small_problem()
    sampler = exchange_sampler(problem(W, codes, 3), Target(1.0, True, *tabulate(LogUniform())), 5.0, None)
    chain = started(problem(W, codes, 3))
    out = empty({"log_weights": (3, 7), "shape": (), "value": ()}, 1, 50)
    one = {name: array[0] for name, array in out.items()}
    sampler.advance(chain, True, **one)
    sampler.adapt([chain], out, 0.5)
    sampler.advance(chain, True, **one)
    mirrored = np.array([name in ("flip", "flip near", "mirror") for name in NAMES])
    assert (chain.runs[mirrored] == 0).all() and (chain.runs[~mirrored] > 0).all()
    sampler.adapt([chain], out, 1.0)
    assert (sampler.plan[mirrored] == 0).all()


def test_chains_begin_again_in_the_first_half_of_tuning_only():
    W, codes, _ = small_problem()
    fresh = State(normalised(np.zeros((3, 7))), np.array([0.0, 0.5, 0.0, 0.0]))
    target = Target(1.0, True, *tabulate(LogUniform()))
    sampler = exchange_sampler(problem(W, codes, 3), target, 5.0, lambda rng: fresh)
    chain = started(problem(W, codes, 3))
    states = {"log_weights": chain.state.log_weights[None, None].repeat(8, axis=1), "shape": np.full((1, 8), 0.3)}
    began = chain.state.log_weights.copy()
    for done in (1.0, 0.5):
        sampler.adapt([chain], states, done)
        np.testing.assert_array_equal(chain.state.log_weights, began)
        assert sampler.laws.whole.won.size > 0
    sampler.adapt([chain], states, 0.4)
    np.testing.assert_array_equal(chain.state.log_weights, fresh.log_weights)
    assert chain.state.numbers[1] == 0.5


@pytest.mark.parametrize("p", [1, 2, 7])
@pytest.mark.parametrize("sizes", [(5, 6, 9), (1, 10, 9), (1, 1, 1), (19, 1)])
def test_few_features_and_classes_of_one_row(p, sizes):
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    W = np.exp(rng.normal(size=(len(codes), p)))
    W /= W.max(axis=1, keepdims=True)
    fit = Gibbs(draws=30, tune=30, chains=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draws = fit.fit(problem(W, codes, len(sizes), np.arange(p)[::-1].copy()), None).posterior
    assert draws.log_weights.shape == (2, 30, len(sizes), p)
    assert np.isfinite(draws.log_weights).all() and (draws.shape > 0).all()
    np.testing.assert_allclose(np.exp(draws.log_weights).sum(axis=(2, 3)), 1, rtol=1e-10)
