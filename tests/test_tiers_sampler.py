"""The sampler of tiers against enumeration of partitions, quadrature, and its own prior (calibration)."""

import math

import numpy as np
import pytest
from scipy.special import betaln, gammaln, logsumexp

from plackett import Gibbs, PlackettLuceRanker, Rankings, Tiers
from plackett.priors import LogUniform
from plackett.responses.photo_finish import PhotoFinish
from plackett.tiers.partition import Given, move, sums_for
from plackett.tiers.tier_chains import draw_concentration
from rankings import race
from test_ranker_calibration import check

pytestmark = pytest.mark.usefixtures("quiet")


def partitions(K):
    """All partitions of K items, as labels in order of first use."""
    found = [[0]]
    for _ in range(K - 1):
        found = [[*each, label] for each in found for label in range(max(each) + 2)]
    return np.array(found)


def named(tiers):
    """Labels in order of first use."""
    first = np.unique(tiers, return_index=True)[1]
    return tuple(np.argsort(np.argsort(first))[np.searchsorted(np.unique(tiers), tiers)].tolist())


def log_prior(labels, concentration):
    """ln α^H Π (size − 1)!."""
    sizes = np.bincount(labels)
    return len(sizes) * math.log(concentration) + gammaln(sizes).sum()


def z_scores(drawn, wanted, batches=50):
    """|z| of the frequencies of events (draw, event), with errors from batch means."""
    means = drawn[: len(drawn) // batches * batches].reshape(batches, -1, drawn.shape[1]).mean(axis=1)
    error = np.maximum(means.std(axis=0, ddof=1), 1e-4) / math.sqrt(batches)
    return np.abs(means.mean(axis=0) - wanted) / error


CASES = {
    "scans": (1, 0, 1.3, 0.4),
    "splits and merges": (0, 1, 1.3, 0.4),
    "both": (1, 2, 0.4, -1.0),
    "tiny scale": (1, 1, 0.01, -300.0),  # Λ underflows
}


@pytest.mark.parametrize("case", CASES)
def test_partitions_given_a_pass_are_those_of_enumeration(case, K=4):
    scans, attempts, a, log_rate = CASES[case]
    rng = np.random.default_rng(1)
    n = np.array([4.0, 7.0, 0.0, 3.0])
    s = np.array([2.0, 1.1, 0.3, 2.5])
    alpha, b = 0.8, math.exp(log_rate)
    every = partitions(K)

    def log_marginal(N, S):
        return a * log_rate + gammaln(a + N) - gammaln(a) - (a + N) * math.log(b + S)

    logs = np.array([
        log_prior(z, alpha) + sum(log_marginal(n[z == h].sum(), s[z == h].sum()) for h in range(z.max() + 1))
        for z in every
    ])  # fmt: skip
    wanted = np.exp(logs - logsumexp(logs))
    tier, sums, items = np.zeros(K, dtype=np.int64), sums_for(K), np.empty(K, dtype=np.int64)
    given, index = Given(n, s, a, log_rate, alpha), {tuple(z): i for i, z in enumerate(every.tolist())}
    found = np.zeros((20_000, len(every)))
    for row in found:
        assert move(rng, tier, given, sums, items, scans, attempts) == tier.max() + 1
        row[index[named(tier)]] = 1.0
    assert z_scores(found, wanted).max() < 4.5


def test_concentrations_are_those_of_their_density():
    """p(α|H) ∝ p(α) α^H Γ(α)/Γ(α + K), by quadrature."""
    rng, K, H, shape, rate = np.random.default_rng(0), 9, 4, 2.0, 0.7
    drawn = np.ones(40_001)
    for t in range(len(drawn) - 1):
        drawn[t + 1] = draw_concentration(rng, drawn[t], H, K, shape, rate)
    grid = np.linspace(1e-4, 60, 200_001)
    density = (shape - 1 + H) * np.log(grid) - rate * grid + betaln(grid, K)
    density = np.exp(density - density.max())
    density /= density.sum()
    points = np.array([0.5, 1.0, 2.0, 4.0, 8.0])
    wanted = [density[grid <= x].sum() for x in points]
    assert z_scores((drawn[1:, None] <= points).astype(float), wanted).max() < 4.5


def exact(log_likelihood, K, a, alpha, nodes=60):
    """Posterior probabilities of all partitions of K ≤ 3 items, worths of tiers ~ Dirichlet(a), by quadrature."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    x, w = (x + 1) / 2, w / 2
    logs = []
    for z in partitions(K):
        H = z.max() + 1
        if H == 1:
            points, weight = np.ones((1, 1)), np.ones(1)
        elif H == 2:
            points, weight = np.column_stack([x, 1 - x]), w.copy()
        else:
            u, v = (each.ravel() for each in np.meshgrid(x, x))
            points, weight = np.column_stack([u, (1 - u) * v, (1 - u) * (1 - v)]), np.outer(w, w).ravel() * (1 - u)
        density = gammaln(H * a) - H * gammaln(a) + (a - 1) * np.log(points).sum(axis=1) + np.log(weight)
        values = np.array([log_likelihood(worths[z]) for worths in points])
        logs.append(log_prior(z, alpha) + logsumexp(values + density))
    return np.exp(np.array(logs) - logsumexp(logs))


def tiers_of(model):
    """Names of the partitions that were drawn, (draw, item)."""
    return [named(z) for z in model.posterior_.tier_of_items()[0]]


def fitted(R, a, alpha, draws=6000, **settings):
    gibbs = Gibbs(draws=draws, tune=100, chains=1)
    return PlackettLuceRanker(gibbs, shape=a, tiers=Tiers(alpha), random_state=2, **settings).fit(None, R)


def agrees(model, wanted, K):
    every = [tuple(z) for z in partitions(K).tolist()]
    found = np.array([[name == each for each in every] for name in tiers_of(model)], dtype=float)
    assert z_scores(found, wanted).max() < 4.5


@pytest.mark.parametrize("tied", [False, pytest.param(True, marks=pytest.mark.long)])
def test_partitions_of_a_tiny_data_set_are_those_of_quadrature(tied):
    """Three items, with and without ties of unknown order."""
    orders = [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"], ["a", "c"]]
    counts = [4, 2, 1, 2]
    if tied:
        orders, counts = [*orders, [{"a", "b"}, "c"]], [*counts, 3]

    def log_likelihood(r):
        def log_order(order):
            r_left = [r["abc".index(item)] for item in order]
            return sum(math.log(r_left[i] / sum(r_left[i:])) for i in range(len(order) - 1))

        total = sum(c * log_order(order) for c, order in zip(counts, orders[:4], strict=False))
        return total + 3 * np.logaddexp(log_order("abc"), log_order("bac")) if tied else total

    R = Rankings.from_orders(orders, unranked="absent", counts=counts)
    agrees(fitted(R, 0.9, 0.7), exact(log_likelihood, 3, 0.9, 0.7), 3)


def test_partitions_with_photo_finish_and_order_effect_are_those_of_quadrature():
    """Two items; θ and η are integrated over as well."""
    theta = PhotoFinish.parameters[0]
    free, step = np.linspace(-7, 5, 241, retstep=True)
    values = np.array([theta.bound(u) for u in free])
    density = np.array([theta.log_prior(u) for u in free]) + math.log(step)
    eta = np.exp(np.linspace(-6, 3, 121))
    log_eta = np.log(eta) - eta + math.log(9 / 120)  # Exp(1), in ln η
    wins, losses, ties = 9, 3, 4

    def log_likelihood(r):
        first, t = eta[:, None] * r[0], values[None]
        win, loss = np.log(first / (first + t * r[1])), np.log(r[1] / (r[1] + t * first))
        logs = (wins + ties) * win + (losses + ties) * loss + ties * np.log(t * t - 1)
        return logsumexp(logs + density[None] + log_eta[:, None])

    R = Rankings.from_pairs(
        ["a", "b", "a"], ["b", "a", "b"], ties=[False, False, True], counts=[wins, losses, ties], first=["a"] * 3
    )
    model = fitted(R, 1.2, 0.5, 2500, ties="photo-finish", order_effect=True)
    agrees(model, exact(log_likelihood, 2, 1.2, 0.5), 2)


ITEMS, N_RANKINGS, KEPT, THIN = 5, 12, 20, 12
LOWER, UPPER = 0.5, 2.0


def tiers_from_the_prior(rng, concentration):
    """Tiers of items by the Chinese restaurant process."""
    tier = [0]
    for k in range(1, ITEMS):
        sizes = np.append(np.bincount(tier), concentration)
        tier.append(int(rng.choice(len(sizes), p=sizes / (k + concentration))))
    return np.array(tier)


def places_of_the_truth(n_sets, seed):
    """(sets, quantities) Place of ln α, ln a, the number of tiers, whether two pairs share one, and a log-worth.

    Ties between the truth and draws are broken at random.
    """
    rng, found = np.random.default_rng(seed), []
    settings = Gibbs(draws=KEPT * THIN, tune=60, chains=1, shape_prior=LogUniform(LOWER, UPPER))
    m = PlackettLuceRanker(settings, tiers=Tiers(prior=(2.0, 1.5)))
    for s in range(n_sets):
        a, alpha = np.exp(rng.uniform(np.log(LOWER), np.log(UPPER))), rng.gamma(2.0) / 1.5
        tier = tiers_from_the_prior(rng, alpha)
        worths = rng.gamma(a, size=ITEMS)[tier]
        buckets = [race(rng, worths, "error", [1] * (ITEMS - 1)) for _ in range(N_RANKINGS)]
        R = Rankings.from_orders([[set(b) for b in each] for each in buckets], unranked="last", items=range(ITEMS))
        posterior = m.set_params(random_state=s).fit(None, R).posterior_
        logs, tiers = posterior.log_weights[0, ::THIN, :, 0], posterior.tier_of_items()[0, ::THIN]
        drawn = np.column_stack([
            np.log(posterior.concentration[0, ::THIN]), np.log(posterior.shape[0, ::THIN]), tiers.max(axis=1) + 1,
            tiers[:, 0] == tiers[:, 1], tiers[:, 2] == tiers[:, 4], logs[:, 0] - logs.mean(axis=1),
        ])  # fmt: skip
        x = np.log(worths)
        truth = [np.log(alpha), np.log(a), tier.max() + 1, tier[0] == tier[1], tier[2] == tier[4], x[0] - x.mean()]
        equal = np.isclose(drawn, truth, rtol=1e-12, atol=1e-12)
        found.append(((drawn < truth) & ~equal).sum(axis=0) + rng.integers(0, equal.sum(axis=0) + 1))
    return np.array(found)


def test_tiers_are_calibrated():
    check(places_of_the_truth(45, seed=1))


@pytest.mark.slow
def test_tiers_are_calibrated_over_600_sets():
    check(places_of_the_truth(600, seed=2))
