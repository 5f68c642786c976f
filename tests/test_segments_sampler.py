"""The sampler of segments: Geweke's test for both kinds of data, and the common order of draws."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from plackett import Gibbs, PlackettLuceRanker
from plackett.inference import hmc
from plackett.inference.driver import Chain
from plackett.priors import LogUniform
from plackett.segments.choices import observed_information
from plackett.segments.em import Climbed, Place, maximum, memberships
from plackett.segments.estimation import _covariances
from plackett.segments.movers import ChoiceMover, WorthMover, log_gamma
from plackett.segments.segment_chains import SegmentSampler, SegmentState, in_common_order
from test_segments import choices_of_persons, chooser, persons_with_rankings, rankers, travellers


class Joint:
    """Parameters from the prior, data from the model, and an iteration of the sampler given data (Geweke 2004)."""

    def __init__(self, persons, mover, concentration=1.5):

        C = 2
        self.persons, N = persons, len(persons.counts)
        place = Place(np.zeros((C, 2 if hasattr(persons, "own") else persons.n_items)), np.full(C, -np.log(C)))
        best = Climbed(place, 0.0, np.full((N, C), 1 / C), [0.0], True)
        self.sampler = SegmentSampler(persons, mover(persons, best), best, concentration)
        self.concentration = concentration

    def shares(self, rng):
        return np.log(rng.dirichlet(np.full(2, self.concentration)))

    def given(self, persons):
        """Continue with other data."""
        self.sampler.persons = self.sampler.mover.persons = persons


def z_scores(direct, chain, batches=40):
    means = chain[: len(chain) // batches * batches].reshape(batches, -1, chain.shape[1]).mean(axis=1)
    error = np.sqrt(means.var(axis=0, ddof=1) / batches + direct.var(axis=0) / len(direct))
    return np.abs(means.mean(axis=0) - direct.mean(axis=0)) / error


def iterate(joint, state, rng, n, redraw, statistics):

    found, chain = [], Chain(state, rng)
    D = state.parameters.shape[1]
    room = np.empty((1, 2, D)), np.empty((1, 2)), np.empty((1, 2, 2)), np.empty(1), np.empty(1)
    for _ in range(n):
        joint.given(redraw(state, rng))
        joint.sampler.advance(chain, False, *room)
        found.append(statistics(state))
    return np.array(found)


def of_shares(log_shares):
    shares = np.exp(log_shares)
    return [shares[0], shares[0] ** 2, shares.max()]


@pytest.mark.brief("True")
@pytest.mark.parametrize("ignored", [False, True])
def test_the_sampler_of_choices_passes_gewekes_test(ignored):

    persons = choices_of_persons((True, False), (ignored, False), precision=1.0, n_persons=5, each=2)
    joint = Joint(persons, lambda persons, best: ChoiceMover(persons, best, 0))
    mover, T = joint.sampler.mover, len(persons.packed.stages)
    X = persons.packed.X.reshape(T, 3, 2)

    def redraw(state, rng):
        segment = np.repeat(rng.choice(2, p=np.exp(state.log_shares), size=5), 2)
        utility = np.einsum("tad,td->ta", X, state.parameters[segment]) + rng.gumbel(size=(T, 3))
        first = np.argsort(np.arange(3) != np.argmax(utility, axis=1)[:, None], axis=1, kind="stable")
        rows = np.take_along_axis(X, first[:, :, None], axis=1).reshape(-1, 2)
        return replace(persons, packed=persons.packed._replace(X=np.ascontiguousarray(rows)))

    def statistics(state):
        b, shares = state.parameters, np.exp(state.log_shares)
        mean = shares @ b[:, 0]
        return [*of_shares(state.log_shares), b[0, 0], b[0, 0] ** 2, b[1, 0] ** 2, b[0, 1], b[0, 1] ** 2, mean, mean**2,
                b[0, 0] * b[1, 0], b[0, 0] * b[0, 1], shares[0] * b[0, 0]]  # fmt: skip

    def drawn(rng):
        parameters = mover.layout.wide(rng.standard_normal(mover.layout.size))
        return SegmentState(parameters, joint.shares(rng), *([np.empty(0)] * 3))

    rng = np.random.default_rng(3)
    direct = np.array([statistics(drawn(rng)) for _ in range(4000)])
    start = drawn(rng)
    z = np.linalg.solve(mover.root, mover.layout.flat(start.parameters) - mover.centre)
    walk = hmc.begin(z, 1.0)
    walk.numbers[hmc.MEAN_STEP] = np.log(0.7)
    chain = iterate(
        joint, start._replace(position=z, variance=walk.variance, numbers=walk.numbers), rng, 4000, redraw, statistics
    )
    varies = direct.std(axis=0) > 1e-12
    assert z_scores(direct[:, varies], chain[:, varies]).max() < 4.5


@pytest.mark.brief("True")
@pytest.mark.parametrize("learned", [True, False])
def test_the_sampler_of_rankings_passes_gewekes_test(learned):

    persons = persons_with_rankings(shape=0.8, n_persons=6, each=2)
    prior = LogUniform(0.3, 3.0) if learned else None
    joint = Joint(persons, lambda persons, best: WorthMover(persons, best, prior))

    def redraw(state, rng):
        segment = np.repeat(rng.choice(2, p=np.exp(state.log_shares), size=6), 2)
        order = np.argsort(-(state.parameters[segment] + rng.gumbel(size=(12, 4))), axis=1)
        return replace(persons, item=order.ravel())

    def statistics(state):
        worths, shares, a = np.exp(state.parameters), np.exp(state.log_shares), state.position[0]
        first = shares @ worths
        return [*of_shares(state.log_shares), a, a * a, worths[0, 0], worths[1, 3] ** 2, first[0] ** 2, worths.max(),
                (first**2).sum(), (worths[0] * worths[1]).sum(), np.sqrt(worths).sum()]  # fmt: skip

    def drawn(rng):
        a = np.exp(rng.uniform(np.log(0.3), np.log(3.0))) if learned else 0.8
        x = log_gamma(rng, np.full((2, 4), a))
        return SegmentState(persons.normalised(x), joint.shares(rng), np.array([np.log(a)]), np.empty(0), np.empty(0))

    rng = np.random.default_rng(4)
    direct = np.array([statistics(drawn(rng)) for _ in range(6000)])
    chain = iterate(joint, drawn(rng), rng, 6000, redraw, statistics)
    varies = direct.std(axis=0) > 1e-12
    assert z_scores(direct[:, varies], chain[:, varies]).max() < 4.5


def test_covariances_follow_the_order_of_the_segments():
    persons, order, alike = choices_of_persons(), np.array([2, 0, 1]), np.arange(3)
    place = maximum(persons, 3, 3, np.random.default_rng(0), 1e-6, 500).place
    pair = []
    for at, then in ((place, order), (Place(place.parameters[order], place.log_shares[order]), alike)):
        member = memberships(persons.values(at.parameters), at.log_shares)[0]
        pair.append(_covariances(*observed_information(persons, *at, member), then, 6))
    for one, other in zip(*pair, strict=True):
        np.testing.assert_allclose(one[6:, 6:], other[6:, 6:], rtol=1e-6)
        moved = persons.layout(3).places[order].ravel()
        np.testing.assert_allclose(one[np.ix_(moved, [6, 7])], other[:6, 6:], rtol=1e-6, atol=1e-9)


def test_draws_are_brought_to_a_common_order():
    rng = np.random.default_rng(0)
    parameters, shares = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([0.2, 0.5, 0.3])
    member = rng.dirichlet(np.ones(3), size=50)
    mixed = [rng.permutation(3) for _ in range(12)]
    draws = {
        "parameters": np.array([parameters[p] for p in mixed]).reshape(2, 6, 3, 2),
        "log_shares": np.log([shares[p] for p in mixed]).reshape(2, 6, 3),
        "agreement": np.array([member.T @ member[:, p] for p in mixed]).reshape(2, 6, 3, 3),
    }
    found, of_segments, order = in_common_order(draws, False)
    assert order.tolist() == [1, 2, 0]
    np.testing.assert_array_equal(found, np.broadcast_to(parameters[order], (2, 6, 3, 2)))
    np.testing.assert_allclose(of_segments, np.broadcast_to(shares[order], (2, 6, 3)))
    draws["agreement"] = np.array([[[[0.0, 9.0], [9.0, 0.0]]]])  # the last segment is not exchanged
    draws |= {"parameters": np.array([[[[1.0], [0.0]]]]), "log_shares": np.log([[[0.4, 0.6]]])}
    found, of_segments, order = in_common_order(draws, True)
    assert order.tolist() == [1, 0] and found.ravel().tolist() == [0.0, 1.0]


@pytest.mark.parametrize("kind", ["choices", "rankings"])
def test_a_run_goes_on_from_its_checkpoint(kind, tmp_path):
    """Twelve draws and then eight more are the twenty of one run, draw for draw."""

    def drawn(draws, path=None):
        gibbs = Gibbs(draws=draws, tune=16, chains=2, checkpoint=path)
        if kind == "choices":
            X, y, who, _ = travellers(n_persons=12)
            model = chooser(gibbs).fit(X, y, groups=who)
        else:
            R, who, _ = rankers(n_persons=12)
            model = PlackettLuceRanker(gibbs, segments=2, random_state=0).fit(None, R, groups=who)
        return model.posterior_.of_segments.parameters, model.trace_

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = drawn(20)
        drawn(12, tmp_path / "run.chk")
        continued = drawn(20, tmp_path / "run.chk")
    for one, other in zip(whole, continued, strict=True):
        np.testing.assert_array_equal(one, other)
