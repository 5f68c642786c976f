"""Trajectories of the walk on worths: exact rotations of a normal law, coordinates, passes that are saved."""

import numpy as np
import pytest

from plackett import Gibbs, PlackettLuceRanker, Rankings
from plackett.engines.pairs import PairRows
from plackett.inference.base import Problem
from plackett.inference.described_walk import ArrowMetric, ShapedMetric
from plackett.inference.sweeps import State, Target
from plackett.inference.worth_walk import LOG_STEP, LONGEST_STEP, MatrixMetric, WorthWalk, whitening
from plackett.priors import LogUniform, tabulate


class Bowl:
    """Normal log-likelihood of x = ln λ with any centre and precision, which counts its passes."""

    absolute, parameters, n_seen = False, (), 1.0

    def __init__(self, centre, precision):
        self.centre, self.precision, self.n_groups, self.passes = centre, precision, len(centre), 0

    def slopes(self, x, free):
        self.passes += 1
        pull = self.precision @ (x - self.centre)
        return -0.5 * (x - self.centre) @ pull, -pull, free

    def curvature(self, x, free):
        return self.precision.copy()


def walk_in_a_bowl(rng, K=4):
    root = rng.normal(size=(K, K))
    likelihood = Bowl(rng.normal(size=K), root @ root.T + np.eye(K))
    problem = Problem(None, 1.0, np.random.SeedSequence(0))
    walk = WorthWalk(likelihood, problem, Target(1.0, False, *tabulate(LogUniform())), 1e-9)  # the prior is nearly flat
    return walk, walk.begin(State(np.zeros((K, 1)), np.array([0.0, 1e-9, 0.0, 0.0])), rng)


def places(walk, chain, n):
    one = {"log_weights": np.empty((1, 4, 1)), "shape": np.empty(1), "value": np.empty(1)}
    found = np.empty((n, 4))
    for t in range(n):
        walk.advance(chain, False, **one)
        found[t] = chain.place
    return found


def test_a_normal_law_is_rotated_exactly():
    """One step is accepted however long it is; a quarter turn forgets where it came from."""
    walk, chain = walk_in_a_bowl(np.random.default_rng(0))
    chain.step[LOG_STEP] = LONGEST_STEP
    before = walk.likelihood.passes
    found = places(walk, chain, 1500)
    assert walk.likelihood.passes - before == 2 * len(found)  # one at the start of each call of `advance`
    assert (np.diff(found, axis=0) != 0).all()
    precision = walk.likelihood.precision + 0.25  # of the sum of x/√K, as the scale is not known
    law = np.linalg.inv(precision)
    np.testing.assert_allclose(walk.mode, law @ walk.likelihood.precision @ walk.likelihood.centre, atol=1e-5)
    z = (found - walk.mode) @ np.linalg.cholesky(precision)
    error = 4 / np.sqrt(len(z))
    assert np.abs(z.mean(axis=0)).max() < error and np.abs((z**2).mean(axis=0) - 1).max() < np.sqrt(2) * error
    after = (z[1:] * z[:-1]).mean(axis=0), (z[1:] ** 2 * z[:-1] ** 2).mean(axis=0) - 1
    assert np.abs(after[0]).max() < error


@pytest.mark.parametrize("steps", [1, 5])
def test_trajectories_can_be_reversed(steps):
    """The same steps with the opposite momentum lead back."""
    walk, chain = walk_in_a_bowl(np.random.default_rng(1))
    walk.mode = walk.mode + 0.3  # the remainder is not 0
    start = chain.place.copy()
    chain.step[LOG_STEP] = np.log(np.pi / 2 / steps) + 1e-9
    density = walk._density(1e-9)

    class Fixed:
        """Random numbers of a trajectory of a quarter turn that is accepted."""

        def __init__(self, momentum):
            self.momentum, self.numbers = momentum, iter([0.5, 0.0])

        def random(self):
            return next(self.numbers)

        def standard_normal(self, n):
            return self.momentum

    def turned(q, momentum):
        """Return the end, and the momentum there."""
        chain.rng = Fixed(momentum)
        new, _ = walk._trajectory(chain, density, q, density.of_data(q), False)
        h, z, p = np.pi / 2 / steps, walk.metric.place(q - walk.mode), momentum

        def kick(z):
            return h / 2 * (walk.metric.inward(density.slopes(walk.mode + walk.metric.outward(z))[1]) + z)

        for _ in range(steps):
            p = p + kick(z)
            z, p = np.cos(h) * z + np.sin(h) * p, np.cos(h) * p - np.sin(h) * z
            p = p + kick(z)
        np.testing.assert_allclose(new, walk.mode + walk.metric.outward(z), atol=1e-10)
        return new, p

    end, momentum = turned(start, np.array([0.3, -1.0, 0.5, 2.0]))
    back, momentum = turned(end, -momentum)
    np.testing.assert_allclose(back, start, atol=1e-10)
    np.testing.assert_allclose(-momentum, [0.3, -1.0, 0.5, 2.0], atol=1e-10)
    assert np.abs(end - start).max() > 0.1


def metrics(rng):
    root, by_shape = rng.normal(size=(8, 8)), np.diag(rng.random(8))
    curvature = root @ root.T + by_shape
    z = rng.normal(size=(5, 2))
    arrow = ArrowMetric(rng.random(5), rng.random(5), rng.random(1), z - z.mean(axis=0))
    scale = rng.random(8)
    return [
        MatrixMetric(scale, 1 / scale),
        MatrixMetric(*whitening(curvature)),
        ShapedMetric.of(curvature, by_shape, 1.0).at(3.0),
        arrow.at(3.0),
    ]


@pytest.mark.parametrize("which", range(4))
def test_coordinates_are_inverted(which):
    rng = np.random.default_rng(which)
    metric, z = metrics(rng)[which], rng.normal(size=8)
    np.testing.assert_allclose(metric.place(metric.outward(z)), z, atol=1e-10)
    np.testing.assert_allclose(metric.outward(metric.place(z)), z, atol=1e-10)
    assert z @ metric.outward(z) == pytest.approx(metric.inward(z) @ z)


@pytest.mark.filterwarnings("ignore")
def test_many_votes_need_one_pass_a_draw(monkeypatch):
    """A stretch of the shape, which needs one more, is rare where worths are known well."""
    rng, passes, slopes = np.random.default_rng(0), [], PairRows.slopes
    worth = rng.gamma(1.0, size=6)
    a, b = np.nonzero(~np.eye(6, dtype=bool))
    counts = rng.binomial(400, worth[a] / (worth[a] + worth[b]))
    tied = np.arange(len(a)) >= 20
    R = Rankings.from_pairs(a, b, counts=counts, ties=tied)

    def counted(self, *at):
        passes.append(1)
        return slopes(self, *at)

    monkeypatch.setattr(PairRows, "slopes", counted)
    model = PlackettLuceRanker(Gibbs(draws=300, tune=150, chains=2), ties="davidson", random_state=0).fit(None, R)
    assert len(passes) < 1.6 * 2 * 450
    assert model.diagnostics_.smallest_ess > 250
