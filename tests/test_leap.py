"""Leaps: their laws are densities and what is drawn follows them; blocks, widths and what is remembered."""

import numpy as np
import pytest
from numba import njit
from scipy.integrate import quad
from scipy.special import gammaln

from conftest import class_rows
from geweke import double, geweke_move, laws_of
from plackett.features import ExpFeatures
from plackett.inference import Gibbs
from plackett.inference.base import Problem
from plackett.inference.gibbs import WeightRun
from plackett.inference.moves.chain import make_chain
from plackett.inference.moves.leap import law_constants, leap, log_importance, log_mixture, propose, total_weights
from plackett.inference.moves.memory import Sweeps, learn, log_laws, nothing, remember, slow_blocks, tables
from plackett.inference.moves.rows import lay_out
from plackett.inference.moves.schedule import LEAP, PART
from plackett.inference.sweeps import log_gamma
from plackett.model.mixture import normalised
from plackett.simulate import prior_weights

FIXED, LEARNED = 0.3, (0.1, 3.0)


@pytest.mark.parametrize("x", [1e-5, 1e-3, 0.02, 0.5, 1.0, 3.7, 60.0, 1e4])
def test_logarithm_of_the_gamma_function(x):
    assert njit(lambda x: log_gamma(x))(x) == pytest.approx(gammaln(x), rel=1e-9, abs=1e-8)


def some_laws(n_classes, p, S=6, seed=0):
    """Sweeps that never were, with κ for them."""
    rng = np.random.default_rng(seed)
    M = n_classes * p
    wins = rng.poisson(0.6, (S, M)) * 1.0
    log_exposure = np.tile(rng.normal(size=(S, p)), n_classes)
    sweeps = Sweeps(rng.normal(size=(S, M)), rng.normal(-1, 0.5, S), wins, log_exposure, np.arange(S) % 2)
    return sweeps, np.where(wins > 0, 0.2 + wins / 2, 0.0)


@pytest.mark.parametrize("shape", [0.3, 2.0])
def test_a_law_of_all_weights_is_a_density(shape):
    """Of ln λ_1 − ln λ_2, with two classes and one feature."""
    sweeps, kappa = some_laws(2, 1)
    kappa[0] = 0.0

    def height(x, s):
        point = np.array([[x, 0.0]])
        return np.exp(log_laws(sweeps, kappa, 0.0, np.ones(2), point, np.array([np.log(shape)]))[0, s])

    for s in range(len(kappa)):
        assert quad(height, -80, 80, args=(s,), limit=400, points=[0.0])[0] == pytest.approx(1, rel=1e-6)


def test_a_law_of_a_part_is_a_density_given_the_others():
    """Of the one weight of a block, with one class and three features."""
    sweeps, kappa = some_laws(1, 3)
    block, rest = np.array([0.0, 1.0, 0.0]), np.array([0.4, -1.1])

    def height(x, s):
        point = np.array([[rest[0], x, rest[1]]])
        return np.exp(log_laws(sweeps, kappa, 0.0, block, point, np.array([np.log(0.7)]))[0, s])

    for s in range(len(kappa)):
        assert quad(height, -80, 80, args=(s,), limit=400, points=[0.0])[0] == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("features", [[0, 1, 2, 3], [1, 3], [2]])
@pytest.mark.parametrize("spread", [0.0, 0.7])
def test_compiled_laws_equal_their_definition(features, spread):
    K, p = 3, 4
    sweeps, kappa = some_laws(K, p)
    features = np.array(features)
    memory = tables(sweeps, kappa, spread, K, [np.array([0, 2]), features], np.array([1.0, 3.0]))
    block = np.tile(np.isin(np.arange(p), features), K) * 1.0
    S, rng = len(kappa), np.random.default_rng(1)
    inside, outside, constant, total, rest, room = (np.empty(m) for m in (p, p, S, S, S, S))
    found = []
    for _ in range(5):
        theta, a = rng.normal(size=(K, p)), np.exp(rng.normal())
        total_weights(np.exp(theta), features, inside, outside)
        law_constants(memory, 1, outside, a, constant, total, rest)
        compiled = log_mixture(memory, features, theta, inside, a, constant, total, rest, room)
        values = log_laws(sweeps, kappa, spread, block, theta.reshape(1, -1), np.array([np.log(a)]))
        exact = np.logaddexp.reduce(values[0]) - a * (theta.ravel() * block).sum()
        found.append(compiled - exact)
    np.testing.assert_allclose(found, 0.0, atol=1e-7)


def test_what_is_proposed_follows_the_laws():
    """Means of ln λ of the block given the others, by quadrature and by proposals."""
    sweeps, kappa = some_laws(1, 3)
    memory = tables(sweeps, kappa, 0.0, 1, [np.array([1])], np.ones(1))
    rest, a, features = np.array([0.4, -1.1]), 0.7, np.array([1])

    def moment(x):
        point = np.array([[rest[0], x, rest[1]]])
        values = log_laws(sweeps, kappa, 0.0, np.array([0.0, 1.0, 0.0]), point, np.array([np.log(a)]))
        return x * np.exp(values[0]).mean()

    exact = quad(moment, -80, 60, limit=400, points=[0.0])[0]
    rng, draws = np.random.default_rng(0), np.empty(40_000)
    columns = lay_out(np.ones((8, 3)) + np.eye(8, 3), np.zeros(8, dtype=np.intp), 1, None)
    chain = make_chain(np.array([[rest[0], 0.0, rest[1]]]), np.array([0.0, a, 0.0, 0.0]), columns)
    outside = np.exp([rest[0], -np.inf, rest[1]])
    for t in range(len(draws)):
        propose(memory, 0, features, chain, rng, outside)
        draws[t] = chain.theta[0, 1]
    assert abs(draws.mean() - exact) < 4.5 * draws.std() / np.sqrt(len(draws))


def as_step(function):
    """A double as the harness calls it."""
    return njit(
        lambda columns, chain, rng, target, laws, move, tries: function(
            columns, chain, rng, target, laws.whole if move == LEAP else laws.parts, tries
        )
    )


WRONG = {
    "without laws": (LEAP, FIXED, "value -= log_mixture", "0 * log_mixture"),
    "without mass": (PART, FIXED, "value = -a * M * math.log(", "value = 0 * math.log("),
    "without the prior of a": (LEAP, LEARNED, "math.lgamma(a * M) - M * math.lgamma(a) + ", ""),
}


@pytest.mark.long
@pytest.mark.parametrize("name", WRONG)
def test_gewekes_test_notices_a_wrong_leap(name):
    move, shape, old, new = WRONG[name]
    wrong = double(log_importance, (old, new))
    assert geweke_move(2, shape, move, as_step(double(leap, log_importance=wrong)), n=8_000)[0].max() > 6


@pytest.mark.long
def test_gewekes_test_notices_proposals_that_do_not_follow_the_laws():
    """The scale of a part is drawn given the others; here it is theirs."""
    wrong = double(propose, ("math.log(rest) - log_gamma_draw(rng, others)", "math.log(rest)"))
    assert geweke_move(2, FIXED, PART, as_step(double(leap, propose=wrong)), n=8_000)[0].max() > 6


def two_modes(R=48, seed=0):
    """States of two chains, seven variables: the first three are active or not together, for a long time."""
    rng = np.random.default_rng(seed)
    n_features, K = 15, 2
    theta = rng.normal(-20.0, 1.0, (2, R, K, n_features))
    slow = (np.arange(R) // 12) % 2 == 0
    for v in range(3):
        theta[:, slow, 0, v] = rng.normal(0, 0.2, (2, slow.sum()))
        theta[:, ~slow, 1, v + 7] = rng.normal(0, 0.2, (2, (~slow).sum()))
    theta[:, :, 0, 4] = np.where(rng.random((2, R)) < 0.5, 0.0, -20.0)  # fast
    return theta, np.concatenate([np.arange(7) + 7, np.arange(7), [14]])


def test_blocks_hold_what_changes_slowly_and_together():
    theta, mirror = two_modes()
    sweeps = Sweeps(theta.reshape(-1, 30), np.zeros(96), np.ones((96, 30)), np.zeros((96, 30)), np.repeat([0, 1], 48))
    blocks, chance = slow_blocks(sweeps, 2, mirror, 15)
    assert len(blocks) == 3 * 8
    for v in range(3):
        np.testing.assert_array_equal(blocks[8 + v], [0, 1, 2, 7, 8, 9])
    assert chance[:3].min() > 5 * chance[3:8].max() > 0
    assert all((np.isin(mirror[block], block)).all() for block in blocks)


def test_laws_are_wider_where_chains_disagree():
    """With what the others saw a chain's states must be likely: narrow laws if all saw the same."""
    rng = np.random.default_rng(0)
    wins = rng.multinomial(200, [0.4, 0.3, 0.2, 0.1, 0, 0], size=40) * 1.0
    same = normalised(np.log(rng.standard_gamma(wins + 0.1))[:, None])[:, 0]
    apart = wins.copy()
    apart[20:] = apart[20:, ::-1]
    other = normalised(np.log(rng.standard_gamma(apart + 0.1))[:, None])[:, 0]
    found = []
    for theta, n in ((same, wins), (other, apart)):
        sweeps = Sweeps(theta, np.full(40, np.log(0.1)), n, np.zeros((40, 6)), np.repeat([0, 1], 20))
        memory = remember(sweeps, 2, [np.arange(3)], np.ones(1), False)
        found.append(memory.kappa.max())
    assert found[0] > 2 * found[1]


def test_wins_by_chance_are_left_out_of_the_laws():
    """Where weights that won one row are alive in the states, they stay in; where they are dead, they do not."""
    rng = np.random.default_rng(0)
    wins = np.zeros((40, 12))
    wins[:, :3] = rng.multinomial(200, [0.5, 0.3, 0.2], size=40)
    strays = wins.copy()
    strays[np.arange(40), 3 + np.arange(40) % 9] = 1.0
    alive = []
    for n in (strays, wins):
        theta = normalised(log_gamma_draws(rng, n + 0.02)[:, None])[:, 0]
        sweeps = Sweeps(theta, np.full(40, np.log(0.02)), strays, np.zeros((40, 12)), np.repeat([0, 1], 20))
        alive.append(remember(sweeps, 2, [np.arange(6)], np.ones(1), False).taken.sum(axis=0))
    assert (alive[0] == 4).all() and (alive[1] == 3).all()


def log_gamma_draws(rng, shape):
    """ln of Gam(shape, 1), which does not underflow."""
    return np.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential(shape.shape) / shape


def test_leaps_and_parts_are_accepted_on_real_data(iris):
    """Nothing else here would notice if laws were learned that propose in vain."""
    X, y = iris
    maker = ExpFeatures().fit(X)
    W, codes = maker.transform(X), np.unique(y, return_inverse=True)[1]
    rows = class_rows("numba", W, codes, 3)
    run = WeightRun(Gibbs(draws=1), Problem(rows, 1.0, np.random.SeedSequence(0), mirrors=maker.mirrors_), None)
    run.go()
    runs, gains = (np.sum([getattr(chain, name) for chain in run.chains], axis=0) for name in ("runs", "gains"))
    assert (gains[LEAP:] > 0.1 * runs[LEAP:]).all() and (runs[LEAP:] > 100).all()


def some_states(K, p, C=2, R=8):
    rng = np.random.default_rng(0)
    shapes = np.full((C, R), 0.3)
    return np.array([[normalised(prior_weights(K, p, 0.3, rng=rng)) for _ in row] for row in shapes]), shapes


def test_learning_is_a_function_of_the_states(wine):
    X, y = wine
    maker = ExpFeatures().fit(X)
    W, codes = maker.transform(X), np.unique(y, return_inverse=True)[1]
    panels = class_rows("numba", W, codes, 3).panels
    theta, shapes = some_states(3, W.shape[1])
    first, again = (learn(panels, theta, shapes, maker.mirrors_, True) for _ in range(2))
    for one, two in zip(first, again, strict=True):
        for x, z in zip(one, two, strict=True):
            np.testing.assert_array_equal(x, z)
    assert first.whole.won.size == 16 and first.parts.won.size == 16
    np.testing.assert_allclose(first.whole.won, first.whole.block_won[0])
    assert first.whole.chance[-1] == first.parts.chance[-1] == 1.0


def test_too_many_weights_or_too_few_states_teach_nothing():
    theta, shapes = some_states(2, 1001, 1, 2)
    assert learn(None, theta, shapes, np.empty(0, np.int64), True).whole.won.size == 0
    theta, shapes = some_states(2, 5, 1, 1)
    assert learn(None, theta, shapes, np.empty(0, np.int64), True).parts.won.size == 0
    assert nothing(5).whole.exposure.shape == (5, 0)


def test_laws_for_the_harness_are_of_all_and_of_parts():
    W = ExpFeatures().fit_transform(np.random.default_rng(0).normal(size=(9, 2)))
    laws = laws_of(W, 2, np.array([2, 3, 0, 1, 4]), True, 0.1, 1.0)
    np.testing.assert_array_equal(laws.whole.feature, np.arange(5))
    np.testing.assert_array_equal(laws.parts.feature, [0, 2, 1, 3, 4])
