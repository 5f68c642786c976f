"""Learned directions over situations: densities, modes and predictions against other routes to the same numbers."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as laws
from scipy.optimize import minimize
from scipy.special import logsumexp

from conftest import class_situations
from plackett import EM, Gibbs, Variational
from plackett.data.observations import Observations, Situations
from plackett.directions import LearnedDirections, starts
from plackett.directions.class_task import make_class_task
from plackett.directions.density import (
    choice_density,
    density_of,
    entry_density,
    float_ranking_density,
    make_density,
    ranking_density,
)
from plackett.directions.learning import learn
from plackett.directions.map import ascend, path
from plackett.directions.positions import directions_and_weights
from plackett.directions.prior import log_weights_of, parts, reflected, size
from plackett.directions.scales import renew_scales
from plackett.directions.settings import shrinkage
from plackett.directions.situation_task import fold_numbers, make_situation_task
from plackett.directions.stacking import best_weight, mean_and_error
from plackett.inference import hmc
from plackett.inference.driver import Source
from plackett.model.mixture import Entries, log_rates, outcome_values, sharpened
from plackett.output import modelfile
from plackett.posterior.learned import of_situations
from plackett.posterior.pool import log_scores, outcome_log_values
from plackett.posterior.situations import SituationDraws
from plackett.responses import Outcomes, make_response

SHORT = Gibbs(draws=20, tune=30, chains=2)


def seed():
    return Source(np.random.SeedSequence(0))  # spawning changes it


def choices(T=80, A=3, d=2, seed=0, sizes=None):
    """Alternatives with attributes, chosen by conditional logit: Z, situations, and which was chosen."""
    rng = np.random.default_rng(seed)
    n = np.full(T, A) if sizes is None else sizes
    start = np.append(0, np.cumsum(n))
    Z = rng.normal(size=(start[-1], d))
    utility = Z @ np.linspace(1, -1, d) + rng.gumbel(size=len(Z))
    row = np.concatenate([low + np.argsort(-utility[low : low + m]) for low, m in zip(start[:-1], n, strict=True)])
    return Z, Situations(Outcomes.choices(n), np.zeros(len(row), dtype=np.int64), row)


def rankings(T=60, K=4, d=2, seed=0):
    """Persons with covariates who rank all items: X and situations."""
    rng = np.random.default_rng(seed)
    X, B = rng.normal(size=(T, d)), rng.normal(size=(K, d))
    order = np.argsort(-(X @ B.T + rng.gumbel(size=(T, K))), axis=1)
    return X, Situations(Outcomes.of([K] * T, [[1] * K] * T), order.ravel(), np.repeat(np.arange(T), K))


def task_of(kind, designs=None, units=None):
    if kind == "choice":
        Z, situations = choices()
        seen = Observations.of_situations(situations, make_response("choice"), 1, units)
        return make_situation_task([Z, *(designs or [])], seen, seed(), False)
    X, situations = rankings()
    seen = Observations.of_situations(situations, make_response(kind), 4, units)
    return make_situation_task([X, *(designs or [])], seen, seed(), True)


def test_classes_have_the_density_of_the_classifier():
    rng = np.random.default_rng(1)
    X, codes, weight = rng.normal(size=(50, 3)), np.arange(50) % 3, rng.gamma(1, size=50)
    classes = make_class_task(X, codes, weight, seed())
    situations = class_situations(classes.seen.codes, 3, classes.seen.weights)
    same = make_situation_task(
        [classes.Z], Observations.of_situations(situations, make_response("choice"), 3), seed(), True
    )
    settings = LearnedDirections(components=2)
    prior = same.reader.prior(same, settings, 0.02)
    q, found = rng.normal(size=size(prior, 3)), []
    for task in (classes, same):
        gradient = np.empty(len(q))
        found.append((density_of(task.prepared(np.float64), prior, 3)(q, gradient), gradient))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-10)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("groups", [1, 3])
def test_gradient_with_one_owner_by_finite_differences(groups):
    Z, situations = choices(T=20)
    rng = np.random.default_rng(2)
    situations = situations._replace(group=rng.integers(groups, size=len(situations.row)))
    task = make_situation_task(
        [Z], Observations.of_situations(situations, make_response("choice"), groups), seed(), False
    )
    prior = task.reader.prior(task, LearnedDirections(components=3), 0.02)
    assert prior.shape.shape == (groups, 3) and size(prior, 2) == (1 + 3) * 2 + 3 * groups + 4
    density, q = density_of(task.prepared(np.float64), prior, 2), rng.normal(size=size(prior, 2))
    gradient, other = np.empty(len(q)), np.empty(len(q))
    density(q, gradient)
    for i in range(len(q)):
        h = 1e-6 * (np.arange(len(q)) == i)
        assert gradient[i] == pytest.approx((density(q + h, other) - density(q - h, other)) / 2e-6, rel=1e-4, abs=1e-4)


def with_totals(components=2):
    task = task_of("ranking")
    prior = task.reader.prior(task, LearnedDirections(components=components), 0.02)._replace(totals=True)
    assert prior.totals and size(prior, 2) == size(prior._replace(totals=False), 2) + 4
    return task, prior


def test_gradient_with_totals_by_finite_differences():
    task, prior = with_totals()
    density, q = density_of(task.prepared(np.float64), prior, 2), np.random.default_rng(3).normal(size=size(prior, 2))
    gradient, other = np.empty(len(q)), np.empty(len(q))
    density(q, gradient)
    for i in range(len(q)):
        h = 1e-6 * (np.arange(len(q)) == i)
        assert gradient[i] == pytest.approx((density(q + h, other) - density(q - h, other)) / 2e-6, rel=1e-4, abs=1e-4)


def test_compiled_densities_agree():
    task, prior = with_totals()
    rows, q = task.prepared(np.float64), np.random.default_rng(4).normal(size=size(prior, 2))
    expected, gradient = np.empty(len(q)), np.empty(len(q))
    value = density_of(rows, prior, 2)(q, expected)
    for packed, compiled, tolerance in (
        (rows.covariates, entry_density, 1e-9),
        (rows.in_lanes(np.float64), ranking_density, 1e-9),
        (rows.in_lanes(np.float32), float_ranking_density, 1e-3),
    ):
        assert compiled(q, gradient, make_density(packed, prior, 2)) == pytest.approx(value, abs=tolerance)
        np.testing.assert_allclose(gradient, expected, atol=tolerance)


def test_the_compiled_density_of_choices_with_shared_weights():
    task = task_of("choice")
    prior = task.reader.prior(task, LearnedDirections(components=3), 0.02)
    rows, q = task.prepared(task.precision), np.random.default_rng(4).normal(size=size(prior, 2))
    expected, gradient = np.empty(len(q)), np.empty(len(q))
    value = density_of(rows, prior, 2)(q, expected)  # in float64
    packed = rows.packed_for(3, task.precision)
    assert choice_density(q, gradient, make_density(packed, prior, 2)) == pytest.approx(value, abs=1e-3)
    np.testing.assert_allclose(gradient, expected, atol=1e-3)


def test_shared_weights_have_no_worths_to_estimate(monkeypatch):
    """Situations of one entry say nothing, and the others have as many wins as they count."""
    _, situations = choices(sizes=np.arange(80) % 4 + 1)
    counts = np.random.default_rng(0).gamma(1, size=80)
    seen = Observations.of_situations(
        situations._replace(outcomes=situations.outcomes._replace(counts=counts)), make_response("choice"), 1
    )
    found = starts.worths(seen, "numba")
    monkeypatch.setattr(starts, "has_shared_weights", lambda *_: False)
    for one, other in zip(found, starts.worths(seen, "numba"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_totals_leave_the_start_and_the_law_of_weights():
    task, prior = with_totals()
    plain = prior._replace(totals=False)
    starts = [task.starts(each, [np.random.default_rng(0)])[0] for each in (prior, plain)]
    for found, expected in zip(*map(directions_and_weights, starts, (prior, plain), (2, 2)), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)
    rng, n, a = np.random.default_rng(5), 20_000, np.array([0.5, 0.2, 1.5])
    g, total = rng.gamma(a, size=(n, 3)), rng.gamma(a.sum(), size=n)
    weights = total[:, None] * g / g.sum(axis=1, keepdims=True)
    for j in range(3):
        assert laws.kstest(weights[:, j], laws.gamma(a[j]).cdf).pvalue > 1e-4
    assert np.abs(np.corrcoef(weights.T) - np.eye(3)).max() < 5 / np.sqrt(n)


def test_new_scales_leave_directions_where_they_are_and_the_prior_as_it_is():
    """Moments of draws of the prior, moved while β is held, are those of the prior."""
    _, prior = with_totals()
    rng, n, d = np.random.default_rng(8), 4000, 2
    q = rng.normal(size=(n, size(prior, d)))
    u, v, _, log_s, log_sigma = parts(q, *prior.shape.shape, d)
    log_s *= prior.covariate_spread
    log_sigma[:] = prior.scale_centre + prior.scale_spread * log_sigma
    before, held = q.copy(), directions_and_weights(q, prior, d)
    for position in q:
        for _ in range(50):  # a wrong power of a Jacobian shows once it has moved far
            renew_scales(position, d, prior, rng)
    for found, expected in zip(directions_and_weights(q, prior, d)[:2], held[:2], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    moved = np.abs(q - before).mean(axis=0)
    for part in (u, v, log_s / prior.covariate_spread, (log_sigma - prior.scale_centre) / prior.scale_spread):
        z = part.reshape(n, -1)
        assert np.abs(z.mean(axis=0)).max() < 5 / np.sqrt(n)
        assert np.abs((z**2).mean(axis=0) - 1).max() < 5 * np.sqrt(2 / n)
    assert (parts(moved, *prior.shape.shape, d)[0] > 0.05).all() and (moved[-8:-4] > 0.05).all()
    assert (parts(moved, *prior.shape.shape, d)[2] == 0).all() and (moved[-4:] == 0).all()


def test_the_reflection_is_its_own_inverse_and_begins_with_the_mean():
    x = np.random.default_rng(6).normal(size=(3, 5))
    np.testing.assert_allclose(reflected(reflected(x)), x)
    np.testing.assert_allclose(reflected(x)[:, 0], x.sum(axis=1) / np.sqrt(5))
    np.testing.assert_array_equal(reflected(x[:, :1]), x[:, :1])


def test_a_mass_by_slopes_finds_the_scales_of_a_normal_density():
    scales, rng = np.array([0.01, 1.0, 30.0]), np.random.default_rng(7)

    def density(q, gradient):
        gradient[:] = -q / scales**2
        return -0.5 * float(((q / scales) ** 2).sum())

    walk = hmc.begin(scales * rng.normal(size=3), by_slopes=True)
    hmc.walk_on(density, walk, rng, hmc.windows(2000), 24, True, np.empty((2000, 3)), np.empty(2000))
    np.testing.assert_allclose(np.sqrt(walk.variance[hmc.INVERSE_MASS]), scales, rtol=0.3)


def test_one_component_is_conditional_logit():
    Z, situations = choices(T=100, d=3, sizes=np.random.default_rng(3).integers(2, 6, size=100))
    task = make_situation_task([Z], Observations.of_situations(situations, make_response("choice"), 1), seed(), False)
    prior, scale = task.reader.prior(task, LearnedDirections(), 0.02, 1), 0.7
    density = density_of(task.prepared(np.float64), prior, 3)
    q, _, converged = ascend(task, prior, density, task.starts(prior, [np.random.default_rng(0)])[0], scale, 500, 1e-12)
    u, v, *_ = parts(q, 1, 1, 3)
    beta = scale * (u + v)[0]

    def loss(b):  # β = σ(u + v) has the variance 2σ²
        score, start = Z[situations.row] @ b, situations.outcomes.start
        total = np.log(np.add.reduceat(np.exp(score), start[:-1]))
        return (total - score[start[:-1]]).sum() + b @ b / (4 * scale**2)

    assert converged
    np.testing.assert_allclose(beta, minimize(loss, np.zeros(3), tol=1e-10).x, atol=1e-5)


def test_one_component_an_item_is_exploded_logit():
    X, situations = rankings(T=80, K=3)
    task = make_situation_task([X], Observations.of_situations(situations, make_response("ranking"), 3), seed(), True)
    prior, scale = task.reader.prior(task, LearnedDirections(), 0.02, 1), 0.5
    density = density_of(task.prepared(np.float64), prior, 2)
    q, _, converged = ascend(task, prior, density, task.starts(prior, [np.random.default_rng(0)])[0], scale, 500, 1e-12)
    draws = SituationDraws(**vars(task.unpacked(q[None, None], prior)))
    order = situations.group.reshape(-1, 3)

    def loss(x):  # in the coordinates t of the weights, of shape 0.05
        b, t = x[:6].reshape(3, 2), x[6:]
        log_worth, slope = log_weights_of(t, 0.05), 1 + 19 / (1 + np.exp(t))
        score = np.take_along_axis(X @ b.T + log_worth, order, axis=1)
        lost = logsumexp(score, axis=1) - score[:, 0] + logsumexp(score[:, 1:], axis=1) - score[:, 1]
        return lost.sum() + (b**2).sum() / (4 * scale**2) - (0.05 * log_worth - np.exp(log_worth) + np.log(slope)).sum()

    found = minimize(loss, np.zeros(9), tol=1e-10).x
    scores = X @ found[:6].reshape(3, 2).T + log_weights_of(found[6:], 0.05)
    expected = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    entries = Entries(X, np.tile(np.arange(3), 80), np.repeat(np.arange(80), 3), np.arange(81) * 3)
    assert converged
    np.testing.assert_allclose(draws.predict(entries), expected, atol=1e-5)


@pytest.mark.brief("gibbs")
@pytest.mark.parametrize("kind", ["choice", "ranking"])
@pytest.mark.parametrize("inference", [EM(cv=2, max_iter=500), SHORT], ids=["em", "gibbs"])
def test_nothing_depends_on_the_order_of_situations(kind, inference, quiet):
    Z, situations = choices(T=30) if kind == "choice" else rankings(T=30)
    K, found = (1, 3)[kind == "ranking"] + (kind == "ranking"), []
    persons = np.arange(30) // 2
    for order in (np.arange(30), np.random.default_rng(4).permutation(30)):
        seen = Observations.of_situations(situations.part(order), make_response(kind), K, persons[order])
        task = make_situation_task([Z, Z**3], seen, seed(), kind == "ranking")
        found.append(learn(inference, task, LearnedDirections(components=1, leapfrogs=8), 0.02))
    np.testing.assert_array_equal(found[0].posterior.directions, found[1].posterior.directions)
    np.testing.assert_array_equal(found[0].posterior.log_weights, found[1].posterior.log_weights)
    assert found[0].posterior.mode_weight == found[1].posterior.mode_weight


def test_variational_says_what_to_use():
    with pytest.raises(ValueError, match="inference='gibbs'"):
        learn(Variational(), task_of("choice"), LearnedDirections(), 0.02)


def test_persons_are_held_out_together_and_dealt_out_evenly():
    persons = np.random.default_rng(5).integers(25, size=80)
    task = task_of("choice", units=persons)
    fold = fold_numbers(task.seen, 5)
    for person in range(25):
        assert len(np.unique(fold[task.seen.units == person])) <= 1
    assert np.bincount([fold[task.seen.units == p][0] for p in np.unique(task.seen.units)]).tolist() == [5] * 5


def test_errors_of_a_gain_are_those_of_persons():
    task = task_of("choice", units=np.arange(80) // 8)
    gain = np.repeat(np.random.default_rng(6).normal(size=10), 8)[
        np.argsort(np.argsort(task.seen.units, kind="stable"))
    ]
    mean, error = mean_and_error(gain, task.seen.weights, task.seen.units)
    by_person = [gain[task.seen.units == p].mean() for p in range(10)]
    assert (mean, error) == (pytest.approx(np.mean(by_person)), pytest.approx(np.std(by_person) / np.sqrt(10)))


def test_the_weight_of_a_mode_is_the_better_of_two():
    rng = np.random.default_rng(7)
    good, bad = np.exp(rng.normal(1, 0.1, size=300)), np.exp(rng.normal(-1, 0.1, size=300))
    assert best_weight(good, bad, np.ones(300)) > 0.95
    assert best_weight(bad, good, np.ones(300)) < 0.05
    assert best_weight(good, good, np.ones(300)) == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("shared", [True, False])
def test_log_rates_by_definition(shared):
    rng = np.random.default_rng(8)
    S, M, d, K, n = 5, 4, 3, 6, 12
    beta, log_weights, Z = rng.normal(size=(S, M, d)), 3 * rng.normal(size=(S, K, M)), rng.normal(size=(n, d))
    row = rng.integers(n, size=40) if shared else rng.permutation(n)
    group = rng.integers(K, size=len(row))
    found = log_rates(beta, log_weights, Z, group, row)
    expected = logsumexp((beta @ Z.T)[:, :, row].transpose(0, 2, 1) + log_weights[:, group], axis=2)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["choice", "ranking", "unknown-order", "race"])
def test_values_are_those_of_the_response(name):
    rng, response = np.random.default_rng(9), make_response(name)
    outcomes = Outcomes.of([3, 4, 2], [[1], [1], [1]] if name == "choice" else [[1, 1], [1], [1]])
    log_r = rng.normal(size=(6, 9)) + (0 if response.absolute else 800)
    for s, values in enumerate(outcome_values(log_r, outcomes, response)):
        for t, (low, high) in enumerate(zip(outcomes.start[:-1], outcomes.start[1:], strict=True)):
            sizes = outcomes.sizes[outcomes.bucket_start[t] : outcomes.bucket_start[t + 1]]
            rates = np.exp(log_r[s, low:high] - (0 if response.absolute else 800))
            assert values[t] == pytest.approx(response.expect(rates, sizes)[0], rel=1e-10)


def test_predictions_are_mixtures_of_draws_and_mode(quiet):
    Z, situations = choices(T=40, sizes=np.random.default_rng(10).integers(2, 5, size=40))
    response, outcomes = make_response("choice"), situations.outcomes
    task = make_situation_task([Z], Observations.of_situations(situations, response, 1), seed(), False)
    draws = of_situations(learn(SHORT, task, LearnedDirections(leapfrogs=8), 0.02)).posterior
    entries = Entries(Z, situations.group, situations.row, outcomes.start)
    assert draws.mode_directions is not None and draws.power != 1
    p = draws.predict(entries)
    lower, upper = draws.interval(entries, 0.9)
    assert p.shape == (40, 4) and ((p == 0) == (np.arange(4) >= np.diff(outcomes.start)[:, None])).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert ((lower <= p) & (p <= upper)).all()
    members = draws.members()
    values = outcome_log_values(members, entries, outcomes, response)
    average = members.share @ np.exp(values)
    np.testing.assert_allclose(np.exp(log_scores(members, entries, outcomes, response)), average)
    plain = replace(draws, power=1.0).predict(entries)
    np.testing.assert_allclose(plain[:, 0], average)  # the chosen entry is the first
    np.testing.assert_allclose(p, sharpened(plain, draws.power))
    assert values.shape == (41, 40)
    chains = outcome_log_values(draws.members(every=True), entries, outcomes, response)
    np.testing.assert_allclose(chains, values[:40])


def test_a_model_file_holds_the_posterior(quiet):
    draws = of_situations(
        learn(SHORT, task_of("ranking"), LearnedDirections(components=1, leapfrogs=4), 0.02)
    ).posterior
    writer = modelfile._Writer()
    manifest = json.loads(json.dumps(writer.encode(draws, "posterior")))
    same = modelfile._Reader(writer.arrays.__getitem__).decode(manifest, "posterior", None, 0)
    X, situations = rankings()
    entries = Entries(X, situations.group, situations.row, situations.outcomes.start)
    assert type(same) is SituationDraws
    np.testing.assert_array_equal(same.predict(entries), draws.predict(entries))


def test_em_ends_at_the_mode_that_begins_without_the_first_fold(monkeypatch):
    """Without held-out folds at hand the path begins at a weak penalty, but for one component at the weakest."""
    task, begun = task_of("choice"), []

    def noted(task, prior, scales, max_iter, tol, start=None, last_tol=None, **how):
        begun.append((len(prior.owner), list(scales), start, last_tol))
        return path(task, prior, scales, max_iter, tol, start, last_tol, **how)

    for place in ("elimination", "learning"):
        monkeypatch.setattr(f"plackett.directions.{place}.path", noted)
    learn(EM(cv=3), task, LearnedDirections(components=2), 0.1)
    *folds, (m, scales, start, finest) = begun
    assert start is not None and len(scales) == 1 and finest == (1e-13 if m == 1 else 1e-9)
    widest = {m: max(max(scales) for n, scales, *_ in folds if n == m) / shrinkage(task.n_columns) for m in (1, 2)}
    assert widest == {1: pytest.approx(8.0), 2: pytest.approx(2.0)}
