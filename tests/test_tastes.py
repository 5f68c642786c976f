"""Random tastes: passes against the definition, moves that leave the posterior as it is, and the model as a whole."""

import numpy as np
import pytest
from scipy.special import logsumexp

from plackett.linear.likelihood import evaluate, pack_linear
from plackett.model.taste_law import TasteLaw, correlations, deviations
from plackett.responses.base import Outcomes
from plackett.tastes.moves import Mover
from plackett.tastes.panel import Panel
from plackett.tastes.person_steps import FIRST_STEP, MEAN_STEP, STEP, Persons, add_up, place_persons
from plackett.tastes.population import Population, PopulationPrior

LAWS = {
    "independent": TasteLaw.of([0, 1], [0, 0], 3, False),
    "correlated": TasteLaw.of([0, 2], [0, 0], 3, True),
    "log-normal": TasteLaw.of([0, 1], [0, -1], 3, True),
}


def panel_of(law, n_persons=4, seed=0, stages=1):
    """Some situations of each person, of two to four alternatives; the first entries were chosen."""
    rng = np.random.default_rng(seed)
    owned = np.append(0, np.cumsum(rng.integers(1, 4, n_persons)))
    sizes = rng.integers(2, 5, owned[-1])
    start = np.append(0, np.cumsum(sizes))
    placed = np.minimum(stages, sizes)
    outcomes = Outcomes(start, np.append(0, np.cumsum(placed)), np.ones(placed.sum(), dtype=int), np.ones(owned[-1]))
    packed = pack_linear(rng.normal(size=(start[-1], law.n_columns)), outcomes)
    pieces = np.array([0, n_persons // 2, n_persons])
    return Panel(packed, owned.astype(np.int64), pieces, np.ones(law.n_columns), np.arange(owned[-1]))


def some_law(law, rng, prior=None):
    d = len(law.random)
    factor = np.diag(np.exp(0.3 * rng.normal(size=d)))
    if law.correlated:
        factor += np.tril(0.4 * rng.normal(size=(d, d)), -1)
    return Population(0.5 * rng.normal(size=d), factor, 0.5 * rng.normal(size=len(law.fixed)))


def placed(mover, at, u):
    N, p, d = mover.panel.n_persons, mover.panel.n_columns, u.shape[1]
    steps = np.zeros((4, N))
    steps[[STEP, MEAN_STEP]] = np.log(FIRST_STEP)
    persons = Persons(np.empty((N, d)), np.empty((N, p)), np.empty(N), steps)
    mover.place(at, u, persons)
    return persons


def reference(panel, law, b, fixed):
    """V_i of all persons, from the definition."""
    found, start = np.zeros(panel.n_persons), panel.packed.outcomes.start
    for i in range(panel.n_persons):
        c = law.coefficients(b[i], fixed)
        for t in range(panel.owned[i], panel.owned[i + 1]):
            u = panel.packed.X[start[t] : start[t + 1]] @ c
            found[i] += sum(u[s] - logsumexp(u[s:]) for s in range(panel.packed.stages[t]))
    return found


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("name", LAWS)
def test_values_and_gradients_of_a_law(name, stages):
    law, rng = LAWS[name], np.random.default_rng(1)
    panel = panel_of(law, stages=stages)
    mover = Mover(panel, law, PopulationPrior.of(law), 4)
    at, u = some_law(law, rng), rng.normal(size=(panel.n_persons, 2))
    persons, x = placed(mover, at, u), mover.coordinates.pack(at)
    np.testing.assert_allclose(persons.values, reference(panel, law, at.mean + u @ at.factor.T, at.fixed), rtol=1e-12)

    def density(x):
        law_at = mover.coordinates.unpack(x)
        values = reference(panel, law, law_at.mean + u @ law_at.factor.T, law_at.fixed)
        return values.sum(), mover.prior.log_density(law_at)

    value, gradient = mover.sums(add_up, at, u, persons)
    np.testing.assert_allclose(value, density(x)[0])
    np.testing.assert_allclose(gradient, mover.sums(place_persons, at, u, persons)[1])
    of_mean, of_factor, of_fixed = mover.prior.slopes(at)
    below = mover.coordinates.below
    of_prior = np.concatenate([of_mean, of_fixed, np.diag(of_factor), of_factor[below]])
    h = 1e-5
    for j, e in enumerate(np.eye(len(x)) * h):
        up, down = density(x + e), density(x - e)
        np.testing.assert_allclose(gradient[j], (up[0] - down[0]) / (2 * h), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(of_prior[j], (up[1] - down[1]) / (2 * h), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["independent", "correlated"])
def test_curvature_is_that_of_the_likelihood(name):
    """Of normal laws of one person's situations, in the limit of a law without spread, it is the logit's."""
    law, rng = LAWS[name], np.random.default_rng(2)
    panel = panel_of(law)
    mover = Mover(panel, law, PopulationPrior.of(law), 4)
    at = some_law(law, rng)
    u = np.zeros((panel.n_persons, 2))
    found = mover.curvature(at, placed(mover, at, u))
    order = np.append(law.random, law.fixed)
    expected = evaluate(panel.packed, law.coefficients(at.mean, at.fixed)).information[np.ix_(order, order)]
    n = law.n_columns
    np.testing.assert_allclose(found[:n, :n] - np.eye(n) / 100, expected, atol=1e-12)


def test_prior_draws_and_density_agree():
    """Deviations are half-t with 2 degrees of freedom, of which half are below A √(2/3); correlations are uniform."""
    prior, rng = PopulationPrior.of(TasteLaw.of([0, 1, 2], [0, 0, -1], 4, True)), np.random.default_rng(0)
    draws = [prior.draw(rng, 1) for _ in range(2000)]
    sd = np.array([deviations(each.factor) for each in draws])
    correlation = np.array([correlations(each.factor)[1, 0] for each in draws])
    below = (sd < np.sqrt(2 / 3) * prior.sd_scale).mean(axis=0)
    assert (np.abs(below - 0.5) < 4.5 * 0.5 / np.sqrt(len(draws))).all()
    for q in (0.1, 0.5, 0.8):
        assert abs((correlation < 2 * q - 1).mean() - q) < 4.5 * np.sqrt(q * (1 - q) / len(draws))


def small_prior(law):
    """A prior under which choices are not certain."""
    d = len(law.random)
    return PopulationPrior(law.correlated, np.full(d, 1.0), np.full(d, 0.7), 1.0)


def choose(panel, law, b, fixed, rng):
    """New choices: the row of the chosen entry changes places with the first."""
    start, X = panel.packed.outcomes.start, panel.packed.X
    for i in range(panel.n_persons):
        c = law.coefficients(b[i], fixed)
        for t in range(panel.owned[i], panel.owned[i + 1]):
            rows = slice(start[t], start[t + 1])
            e = start[t] + np.argmax(X[rows] @ c + rng.gumbel(size=start[t + 1] - start[t]))
            X[[start[t], e]] = X[[e, start[t]]]


def statistics(law, at, persons):
    factor = at.factor
    found = [np.tanh(at.mean), at.fixed, np.log(deviations(factor)), np.tanh(persons.tastes[:2]).ravel()]
    squares = np.tanh(at.mean**2), at.fixed**2, np.tanh((persons.tastes - at.mean) ** 2).mean(axis=0)
    found += [
        np.concatenate(squares),
        [persons.values.sum()],
        np.tanh((persons.tastes - at.mean) * at.mean).mean(axis=0),
    ]
    return np.concatenate([*found, correlations(factor)[np.tril_indices(len(factor), -1)]])


def invariance(law, transition, replicates, seed, steps=4):
    """|z| of the change of each statistic from draws of the joint law to where transitions take them."""
    rng, prior = np.random.default_rng(seed), small_prior(law)
    panel, changes = panel_of(law, seed=5), []
    mover = Mover(panel, law, prior, 4)
    root = np.linalg.cholesky(mover.curvature(*middle(mover)))
    for _ in range(replicates):
        at = prior.draw(rng, len(law.fixed))
        u = rng.normal(size=(panel.n_persons, len(law.random)))
        choose(panel, law, at.mean + u @ at.factor.T, at.fixed, rng)
        persons = placed(mover, at, u)
        before = statistics(law, at, persons)
        for _ in range(steps):
            at = transition(mover, rng, persons, at, root)
        changes.append(statistics(law, at, persons) - before)
    changes = np.array(changes)
    error = changes.std(axis=0) / np.sqrt(replicates)
    return np.divide(np.abs(changes.mean(axis=0)), error, out=np.zeros_like(error), where=error > 1e-12)


def middle(mover):
    """A law and persons at which the metric of a test is measured."""
    d, q = mover.coordinates.d, mover.coordinates.q
    at = Population(np.zeros(d), 0.7 * np.eye(d), np.zeros(q))
    return at, placed(mover, at, np.random.default_rng(3).normal(size=(mover.panel.n_persons, d)))


def by_persons(mover, rng, persons, at, root):
    mover.move_persons(rng, persons, at, False, 0)
    return at


def by_law(mover, rng, persons, at, root):
    return mover.prior.renew(rng, at, persons.tastes)


def by_all(mover, rng, persons, at, root):
    return mover.move_together(rng, persons, at, root, 0.6, 1 + int(rng.integers(3)))[0]


MOVES = {"persons": by_persons, "law": by_law, "together": by_all}


@pytest.mark.brief("correlated")
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("move", MOVES)
def test_a_move_leaves_the_posterior_as_it_is(move, name):
    """Prior draw, data, moves: the law and the tastes are distributed as before (Geweke 2004; Gandy & Scott 2020)."""
    assert invariance(LAWS[name], MOVES[move], 600, seed=7).max() < 4.5


class WithoutJacobian(PopulationPrior):
    """A prior whose density forgets that deviations move by their logarithms."""

    def log_density(self, at):
        return super().log_density(at) - 2 * np.log(np.diag(at.factor)).sum()


class TooSure(PopulationPrior):
    """Scatter counted twice."""

    def renew(self, rng, at, tastes):
        return super().renew(rng, at, np.vstack([tastes, tastes]))


def stale(mover, rng, persons, at, root):
    """Persons who step from the values of others."""
    persons.values[:] = np.roll(persons.values, 1)
    return by_persons(mover, rng, persons, at, root)


@pytest.mark.parametrize(("move", "prior"), [("together", WithoutJacobian), ("law", TooSure)])
def test_a_wrong_move_of_the_law_is_found(move, prior, monkeypatch):
    monkeypatch.setattr("test_tastes.PopulationPrior", prior)
    assert invariance(LAWS["correlated"], MOVES[move], 400, seed=7).max() > 6


def test_a_wrong_move_of_persons_is_found():
    assert invariance(LAWS["correlated"], stale, 400, seed=7).max() > 6
