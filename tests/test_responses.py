"""Responses: their laws, brute force, Geweke's test, and the compiled kernels against the readable ones."""

import math
import re
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats as laws

from plackett.model.draws import binomial, gamma, mean_share, share_out, stream_of, truncated, uniform
from plackett.responses import Choice, Outcomes, RaceTies, Ranking, UnknownOrder, make_response
from plackett.responses.unknown_order import draw_end, draw_times, expect_bucket, hull

CASES = [  # response, entries, sizes of the buckets
    ("choice", 4, [1]),
    ("choice", 1, [1]),
    ("ranking", 5, [1, 1]),
    ("ranking", 5, [1, 1, 1, 1]),
    ("ranking", 5, [1, 1, 1, 1, 1]),
    ("unknown-order", 4, [1, 1, 1, 1]),
    ("unknown-order", 3, [2]),
    ("unknown-order", 8, [2, 1, 3]),
    ("unknown-order", 6, [1, 3, 2]),
    ("unknown-order", 14, [9]),
    ("race", 4, [1, 1]),
    ("race", 6, [2, 1, 2]),
    ("race", 5, [2, 3]),
    ("race", 3, [1, 1, 1]),
    ("photo-finish", 2, [1]),
    ("photo-finish", 2, [1, 1]),
    ("photo-finish", 2, [2]),
]
KEYS = 20_000


def some_rates(n, spread=1.0, seed=0):
    return np.exp(spread * np.random.default_rng([seed, n]).normal(size=n))


def block(name, kernel, rates, outcomes, *key):
    """V, arrivals and times at risk of all situations by the compiled kernel."""
    arrivals, at_risk, values = (
        np.full(len(rates), np.nan),
        np.full(len(rates), np.nan),
        np.full(len(outcomes.counts), np.nan),
    )
    numbers = (np.arange(len(values)),) if key else ()
    getattr(make_response(name), kernel)(
        outcomes, *numbers, 0, len(values), rates, *map(np.uint64, key), arrivals, at_risk, values
    )
    return values, arrivals, at_risk


@pytest.mark.parametrize("spread", [0.3, 2.0])
@pytest.mark.parametrize("name, n, sizes", CASES)
def test_time_at_risk_is_what_the_slope_of_the_value_leaves_of_the_arrivals(name, n, sizes, spread):
    """r s = n − ∂V/∂ln r, by finite differences."""
    response, rates = make_response(name), some_rates(n, spread)
    _, arrivals, at_risk = response.expect(rates, sizes)
    for e in range(n):
        up, down = (response.expect(rates * np.exp(h * (np.arange(n) == e)), sizes)[0] for h in (1e-5, -1e-5))
        assert rates[e] * at_risk[e] == pytest.approx(arrivals[e] - (up - down) / 2e-5, abs=2e-9)


@pytest.mark.parametrize("spread", [3.0, 20.0])
@pytest.mark.parametrize("name, n, sizes", CASES)
def test_compiled_equals_reference(name, n, sizes, spread):
    response = make_response(name)
    rng = np.random.default_rng(n)
    T = 20
    rates = np.exp(spread * rng.normal(size=T * n)) * (1 if name == "race" else 1e-200)
    outcomes = Outcomes.of([n] * T, [sizes] * T, rng.integers(1, 5, size=T))
    for kernel, key in (("expect_block", ()), ("sample_block", (12345,))):
        values, arrivals, at_risk = block(name, kernel, rates, outcomes, *key)
        for t in range(T):
            own = slice(t * n, (t + 1) * n)
            draws = (int(outcomes.counts[t]), stream_of(*key, t)) if key else ()
            want = (response.sample if key else response.expect)(rates[own], sizes, *draws)
            assert values[t] == pytest.approx(want[0], rel=1e-12, abs=1e-12)
            np.testing.assert_array_equal(arrivals[own], want[1])
            np.testing.assert_allclose(at_risk[own], want[2], rtol=1e-11)


@pytest.mark.parametrize("name, n, sizes", CASES)
def test_sampled_times_average_to_the_expected_ones(name, n, sizes):
    """Within 4.5 standard errors, for counts of 1 and 3."""
    rates = some_rates(n)
    value, arrivals, at_risk = make_response(name).expect(rates, sizes)
    for count in (1, 3):
        outcomes = Outcomes.of([n] * KEYS, [sizes] * KEYS, [count] * KEYS)
        values, n_drawn, drawn = block(name, "sample_block", np.tile(rates, KEYS), outcomes, 7)
        drawn = drawn.reshape(KEYS, n)
        np.testing.assert_allclose(values, value, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(n_drawn.reshape(KEYS, n), np.tile(count * arrivals, (KEYS, 1)))
        error = drawn.std(axis=0) / np.sqrt(KEYS)
        assert (np.abs(drawn.mean(axis=0) - count * at_risk) <= 4.5 * error).all()
        assert (drawn.std(axis=0) > 0).all() == (at_risk > 0).all()


def ordered(rng, times, name):
    """Entries of each row by arrival, and the outcome that the response sees of it."""
    T, n = times.shape
    order = np.argsort(times, axis=1)
    if name != "race":
        sizes = {"choice": [1], "ranking": [1, 1, 1, 1], "unknown-order": [1, 2]}[name]
        return order, Outcomes.of([n] * T, [sizes] * T)
    slots = np.floor(np.take_along_axis(times, order, axis=1))
    new = np.column_stack([np.ones(T, dtype=bool), np.diff(slots, axis=1) > 0])
    sizes = np.diff(np.append(np.flatnonzero(new), T * n))
    return order, Outcomes(np.arange(T + 1) * n, np.append(0, np.cumsum(new.sum(axis=1))), sizes, np.ones(T))


@pytest.mark.parametrize("name", ["choice", "ranking", "unknown-order", "race"])
def test_geweke(name):
    """Chains that begin in the prior and alternate outcome | r, (n, s) | r, outcome and r | n, s stay in the prior."""
    rng = np.random.default_rng(5)
    T, n, shape, rate = 20_000, 4, 0.8, 1.5
    r = rng.gamma(shape, 1 / rate, size=(T, n))
    for key in range(12):
        order, outcomes = ordered(rng, rng.exponential(1 / r), name)
        _, arrivals, at_risk = block(name, "sample_block", np.take_along_axis(r, order, axis=1).ravel(), outcomes, key)
        new = rng.gamma(shape + arrivals, 1 / (rate + at_risk)).reshape(T, n)
        np.put_along_axis(r, order, new, axis=1)
    assert laws.kstest(r.ravel(), laws.gamma(shape, scale=1 / rate).cdf).pvalue > 1e-3
    assert laws.kstest(r.sum(axis=1), laws.gamma(n * shape, scale=1 / rate).cdf).pvalue > 1e-3
    assert laws.kstest(r[:, 0] / r.sum(axis=1), laws.beta(shape, (n - 1) * shape).cdf).pvalue > 1e-3
    top = rng.gamma(shape, 1 / rate, size=(T, n)).max(axis=1)
    assert laws.ks_2samp(r.max(axis=1), top).pvalue > 1e-3


def test_a_ranking_is_its_exploded_choices():
    rates = some_rates(6)
    value, arrivals, at_risk = Ranking().expect(rates, [1, 1, 1, 1])
    stages = [Choice().expect(rates[s:], [1]) for s in range(4)]
    assert value == pytest.approx(sum(stage[0] for stage in stages), rel=1e-14)
    for which, whole in ((1, arrivals), (2, at_risk)):
        np.testing.assert_allclose(whole, sum(np.append(np.zeros(s), stages[s][which]) for s in range(4)), rtol=1e-14)


def test_the_last_of_a_ranking_is_no_stage():
    rates = some_rates(4)
    for answers in zip(Ranking().expect(rates, [1, 1, 1]), Ranking().expect(rates, [1, 1, 1, 1]), strict=True):
        np.testing.assert_array_equal(*answers)


def over_orders(rates, size):
    """ln Pr that the first `size` come before the others, by the sum over all their orders."""
    orders = [[*order, *range(size, len(rates))] for order in permutations(range(size))]
    return np.logaddexp.reduce([Ranking().expect(rates[order], [1] * size)[0] for order in orders])


@pytest.mark.parametrize("spread", [0.1, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("size", [2, 3, 4, 6])
def test_unknown_order_is_the_sum_over_all_orders(size, spread):
    for seed in range(5):
        rates = some_rates(size + 2, spread, seed)
        assert UnknownOrder().expect(rates, [size])[0] == pytest.approx(over_orders(rates, size), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("ratio", [1e-150, 1e-9, 1.0, 1e9, 1e150])
def test_times_of_unknown_order_are_precise_at_any_ratio_of_rates(ratio):
    """Two entries of rate r before a rest of rate 1: V, T and M are known. Two long chances decide r M for large r."""
    r = ratio
    value, times, last = expect_bucket(np.array([r, r]), 1.0)
    assert value == pytest.approx(math.log(2.0) + 2 * math.log(r) - math.log(1 + r) - math.log(1 + 2 * r), abs=1e-10)
    assert last == pytest.approx(1 / (1 + r) + 1 / (1 + 2 * r), rel=1e-10)
    assert times[0] == pytest.approx(1 / (1 + 2 * r) + 0.5 / (1 + r), rel=1e-10)


@pytest.mark.parametrize("size", [10, 40, 300])
@pytest.mark.parametrize("rate", [1e-3, 0.3, 100.0])
def test_unknown_order_of_many_equal_rates(size, rate):
    """The k-th last of them to arrive is the first of k equal rates and the rest: V and M are sums over k."""
    left = rate * np.arange(1, size + 1)
    rates = np.append(np.full(size, rate), 1.0)
    values, _, at_risk = block("unknown-order", "expect_block", rates, Outcomes.of([size + 1], [[size]]))
    assert values[0] == pytest.approx(np.sum(np.log(left / (left + 1.0))), rel=1e-10)
    assert at_risk[-1] == pytest.approx(np.sum(1 / (left + 1.0)), rel=1e-10)
    assert rates @ at_risk == pytest.approx(size, rel=1e-10)  # as many arrivals as are expected


def test_chances_of_all_sets_of_unknown_order_sum_to_one():
    rates = some_rates(7)
    for size in (1, 2, 3, 5):
        chances = [
            np.exp(UnknownOrder().expect(np.append(rates[list(first)], np.delete(rates, first)), [size])[0])
            for first in combinations(range(7), size)
        ]
        assert sum(chances) == pytest.approx(1.0, abs=1e-10)


def test_a_bucket_at_the_very_end_carries_no_information():
    rates = some_rates(5)
    for answers in zip(UnknownOrder().expect(rates, [1, 1]), UnknownOrder().expect(rates, [1, 1, 3]), strict=True):
        np.testing.assert_array_equal(*answers)
    value, arrivals, at_risk = UnknownOrder().expect(rates, [5])
    assert value == 0.0 and not arrivals.any() and not at_risk.any()


def test_the_two_blocks_of_unknown_order_are_gibbs_steps_for_each_other():
    """E drawn at once has the law of max T + Exp(q), the other conditional; so has T the law of T given E."""
    rates, q, n = np.array([0.2, 1.0, 5.0]), 0.7, 20_000
    cover = hull(rates, 0, 3, q)
    ends, lasts, firsts = np.empty(n), np.empty(n), np.empty(n)
    rng = np.random.default_rng(0)
    for key in range(n):
        stream, times = stream_of(3, key), np.zeros(3)
        ends[key] = draw_end(*cover, rates, 0, 3, q, stream)
        lasts[key] = draw_times(rates, 0, 3, q, 1, stream, times)
        firsts[key] = times[0]
        assert times.max() == lasts[key]
    assert laws.ks_2samp(ends, lasts + rng.exponential(1 / q, n)).pvalue > 1e-3
    races = rng.exponential(1 / np.append(rates, q), size=(60 * n, 4))  # and both have the law of plain rejection
    seen = races[races[:, :3].max(axis=1) < races[:, 3]]
    assert len(seen) > 10_000
    assert laws.ks_2samp(ends, seen[:, 3]).pvalue > 1e-3
    assert laws.ks_2samp(lasts, seen[:, :3].max(axis=1)).pvalue > 1e-3
    assert laws.ks_2samp(firsts, seen[:, 0]).pvalue > 1e-3


@pytest.mark.parametrize("ratio", [1e-200, 1e-5, 1e5, 1e200])
def test_draws_of_unknown_order_at_any_ratio_of_rates(ratio):
    """Of two entries far slower than the rest, T is uniform below E ~ Gam(3, q); far faster ones do as they please."""
    rates, n = ratio * np.array([1.0, 1.0]), 5000
    firsts, lasts = np.empty(n), np.empty(n)
    for key in range(n):
        times = np.zeros(2)
        lasts[key] = draw_times(rates, 0, 2, 1.0, 1, stream_of(1, key), times)
        firsts[key] = times[0]
    if ratio > 1:
        assert laws.kstest(firsts * ratio, laws.expon.cdf).pvalue > 1e-3
        assert laws.kstest(np.exp(-lasts * ratio), lambda x: 1 - (1 - x) ** 2).pvalue > 1e-3
    else:
        uniforms = np.random.default_rng(1).random((n, 2)) * np.random.default_rng(2).gamma(3, size=(n, 1))
        assert laws.ks_2samp(firsts, uniforms[:, 0]).pvalue > 1e-3
        assert laws.ks_2samp(lasts, uniforms.max(axis=1)).pvalue > 1e-3


def weak_orders(items):
    """All ways to put items into buckets in order."""
    if not items:
        yield []
    for size in range(1, len(items) + 1):
        for first in combinations(items, size):
            for rest in weak_orders([i for i in items if i not in first]):
                yield [first, *rest]


@pytest.mark.parametrize("n", [2, 3, 4])
def test_chances_of_all_outcomes_of_race_ties_sum_to_one(n):
    rates = some_rates(n)
    orders = list(weak_orders(list(range(n))))
    chances = [
        np.exp(RaceTies().expect(rates[[i for bucket in order for i in bucket]], [len(b) for b in order])[0])
        for order in orders
    ]
    assert len(orders) == {2: 3, 3: 13, 4: 75}[n]
    assert sum(chances) == pytest.approx(1.0, rel=1e-13)


@pytest.mark.parametrize("rate", [1e-6, 0.3, 2.0, 40.0])
def test_two_equal_rates_tie_with_probability_tanh(rate):
    assert np.exp(RaceTies().expect([rate, rate], [2])[0]) == pytest.approx(np.tanh(rate / 2), rel=1e-12)


def test_race_ties_at_the_ends_of_the_scale():
    value, _, at_risk = RaceTies().expect([1e-250, 1e-250, 1e-250], [1])
    assert value == pytest.approx(-np.log(3)) and at_risk == pytest.approx(np.full(3, 1e250 / 3))
    value, _, at_risk = RaceTies().expect([1000.0, 1000.0, 1.0], [2])
    assert value == pytest.approx(-1.0) and at_risk == pytest.approx([1e-3, 1e-3, 1.0])


@pytest.mark.parametrize("name", ["choice", "ranking", "unknown-order"])
def test_a_common_factor_changes_nothing_but_the_unit_of_time(name):
    rates, sizes = some_rates(6), {"choice": [1], "ranking": [1, 1, 1], "unknown-order": [1, 3]}[name]
    outcomes = Outcomes.of([6], [sizes], [2])
    for factor in (1e-150, 3.0, 1e150):
        for kernel, key in (("expect_block", ()), ("sample_block", (9,))):
            values, arrivals, at_risk = block(name, kernel, rates, outcomes, *key)
            again = block(name, kernel, factor * rates, outcomes, *key)
            np.testing.assert_allclose(again[0], values, rtol=1e-12)
            np.testing.assert_array_equal(again[1], arrivals)
            np.testing.assert_allclose(factor * again[2], at_risk, rtol=1e-11)
    assert not make_response(name).absolute and RaceTies().absolute
    assert RaceTies().expect(rates, [2])[0] != pytest.approx(RaceTies().expect(3 * rates, [2])[0], abs=0.1)


@pytest.mark.parametrize(
    "name, sizes", [("choice", [1]), ("ranking", [1, 1]), ("unknown-order", [2]), ("race", [2, 1])]
)
def test_an_entry_without_a_rate_is_as_good_as_absent(name, sizes):
    rates = some_rates(5)
    with_none = np.append(rates, 0.0)
    for kernel, key in (("expect_block", ()), ("sample_block", (4,))):
        values, arrivals, at_risk = block(name, kernel, rates, Outcomes.of([5], [sizes]), *key)
        again = block(name, kernel, with_none, Outcomes.of([6], [sizes]), *key)
        assert again[0] == values and again[1][5] == 0.0
        np.testing.assert_array_equal(again[1][:5], arrivals)
        np.testing.assert_allclose(again[2][:5], at_risk, rtol=1e-14)


@pytest.mark.parametrize(
    "name, sizes", [("choice", [1]), ("ranking", [1, 1]), ("unknown-order", [2]), ("race", [2, 1])]
)
def test_an_entry_without_a_rate_cannot_arrive(name, sizes):
    rates = np.append(0.0, some_rates(4))
    for value, arrivals, at_risk in (
        block(name, "expect_block", rates, Outcomes.of([5], [sizes])),
        block(name, "sample_block", rates, Outcomes.of([5], [sizes]), 1),
        make_response(name).expect(rates, sizes),
        make_response(name).sample(rates, sizes, 1, stream_of(0, 0)),
    ):
        assert value == -np.inf and not arrivals.any() and not at_risk.any()


@pytest.mark.parametrize("name, n, sizes", [("ranking", 4, [1, 1]), ("unknown-order", 5, [2, 1]), ("race", 4, [2, 1])])
def test_a_count_of_seven_has_the_law_of_seven_copies(name, n, sizes):
    T, rates = 6000, some_rates(n)
    once = block(name, "sample_block", np.tile(rates, 7 * T), Outcomes.of([n] * 7 * T, [sizes] * 7 * T), 1)
    counted = block(name, "sample_block", np.tile(rates, T), Outcomes.of([n] * T, [sizes] * T, [7] * T), 2)
    copies, together = once[2].reshape(T, 7, n).sum(axis=1), counted[2].reshape(T, n)
    np.testing.assert_array_equal(once[1].reshape(T, 7, n).sum(axis=1), counted[1].reshape(T, n))
    for e in range(n):
        assert laws.ks_2samp(copies[:, e], together[:, e]).pvalue > 1e-3
    assert laws.ks_2samp(copies[:, 0] - copies[:, -1], together[:, 0] - together[:, -1]).pvalue > 1e-3


@pytest.mark.parametrize("count", [1, 2, 7, 500])
def test_gamma_draws(count):
    draws = np.array([gamma(count, stream_of(11, i)) for i in range(20_000)])
    assert laws.kstest(draws, laws.gamma(count).cdf).pvalue > 1e-3
    assert gamma(0, stream_of(0, 0)) == 0.0


def test_truncated_draws_and_their_mean():
    for rate, end in ((1e-12, 2.0), (0.15, 1.0), (0.25, 1.0), (3.0, 0.5), (400.0, 3.0)):
        draws = np.array([truncated(rate, end, stream_of(5, i)) for i in range(5000)])
        law = laws.truncexpon(rate * end, scale=1 / rate)
        assert laws.kstest(draws, law.cdf).pvalue > 1e-3
        y = rate * end
        assert draws.mean() == pytest.approx(end * mean_share(y, -np.expm1(-y)), abs=4.5 * draws.std() / np.sqrt(5000))
    below, above = (mean_share(y, -np.expm1(-y)) for y in (0.2 - 1e-13, 0.2 + 1e-13))
    assert below == pytest.approx(above, abs=3e-14)


@pytest.mark.parametrize(
    ("count", "chance"),
    [(1, 0.3), (30, 0.01), (30, 0.5), (40, 0.9), (1000, 0.009), (1000, 0.02), (10**6, 0.3), (10**9, 1 - 1e-8)],
)
def test_binomial_draws(count, chance):
    """By inversion and by rejection, on either side of one half: the chances of cells of about equal chance."""
    draws = np.array([binomial(float(count), chance, stream_of(3, i)) for i in range(20_000)])
    assert (draws == np.round(draws)).all()
    law = laws.binom(count, chance)
    edges = np.unique(law.ppf(np.linspace(0, 1, 21)[1:-1]))
    expected = len(draws) * np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]]))
    seen = np.bincount(np.searchsorted(edges, draws), minlength=len(expected))
    some = expected > 1e-6
    chi2 = ((seen[some] - expected[some]) ** 2 / expected[some]).sum()
    assert not seen[~some].any() and laws.chi2(max(some.sum() - 1, 1)).sf(chi2) > 1e-3


@pytest.mark.parametrize("count", [1, 5, 300, 10**6])
def test_winning_features_are_multinomial(count):
    row, own = np.array([0.0, 1.0, 3.0, 0.5, 2.0, 1.0]), np.array([1.0, 0.3, 0.5, 0.0, 1.0, 0.0])
    chances = row * own / (row @ own)
    wins = np.zeros((4000, 6))
    for i in range(4000):
        share_out(count, row, own, row @ own, stream_of(1, i), wins[i])
    assert (wins.sum(axis=1) == count).all() and not wins[:, chances == 0].any()
    alive = chances > 0
    expected = 4000 * count * chances[alive]
    chi2 = ((wins.sum(axis=0)[alive] - expected) ** 2 / expected).sum()
    assert laws.chi2(alive.sum() - 1).sf(chi2) > 1e-3
    covariance = count * (np.diag(chances) - np.outer(chances, chances))
    assert np.cov(wins.T) == pytest.approx(covariance, abs=5 * count / np.sqrt(4000))


def test_the_only_feature_with_a_chance_takes_all_without_a_draw():
    stream, wins = stream_of(1, 2), np.zeros(3)
    before = stream.copy()
    share_out(40, np.ones(3), np.array([2.0, 0.0, 0.0]), 2.0, stream, wins)
    assert wins.tolist() == [40, 0, 0] and stream == before


def test_streams_are_uniform_and_independent():
    u = np.array(
        [[uniform(stream) for _ in range(64)] for stream in (stream_of(key, i) for key in (1, 2) for i in range(500))]
    )
    assert laws.kstest(u.ravel(), laws.uniform.cdf).pvalue > 1e-3
    assert np.abs(np.corrcoef(u.T) - np.eye(64)).max() < 5 / np.sqrt(1000)
    assert np.abs(np.corrcoef(u[:500:50]) - np.eye(10)).max() < 5 / np.sqrt(64)


def test_what_is_no_outcome_is_refused():
    with pytest.raises(ValueError, match="situation 1 has 2 entries, and 3 of them in buckets"):
        Outcomes.of([3, 2], [[1], [2, 1]])
    with pytest.raises(ValueError, match="situation 0 has 0 entries"):
        Outcomes.of([0], [[]])
    with pytest.raises(ValueError, match="no bucket may be empty"):
        Outcomes.of([3], [[0]])
    with pytest.raises(ValueError, match="counts must be finite and not negative, got \\[-1"):
        Outcomes.of([3], [[1]], [-1.0])
    with pytest.raises(ValueError, match="one number more than counts"):
        Outcomes.choices([3, 3], [1.0])
    with pytest.raises(ValueError, match="one bucket of one entry"):
        Choice().check(Outcomes.of([3], [[1, 1]]))
    with pytest.raises(ValueError, match="a bucket of 2; say what a tie means"):
        Ranking().check(Outcomes.of([3], [[2]]))
    with pytest.raises(ValueError, match="response must be one of .*'choice'.* got 'rank'"):
        make_response("rank")


def test_the_response_of_the_documentation_keeps_the_law():
    """The example of docs/extending.md: r s = n − ∂V/∂ln r, chances sum to one, and draws average to expectations."""
    page = (Path(__file__).parent.parent / "docs" / "extending.md").read_text(encoding="utf-8")
    names = {"np": np}
    exec(re.search(r"^## A response.*?^```python\n(.*?)^```", page, re.S | re.M)[1], names)
    response, rates = names["PickAny"](), some_rates(4)
    value, arrivals, at_risk = response.expect(rates, [2])
    for e in range(4):
        up, down = (response.expect(rates * np.exp(h * (np.arange(4) == e)), [2])[0] for h in (1e-5, -1e-5))
        assert rates[e] * at_risk[e] == pytest.approx(arrivals[e] - (up - down) / 2e-5, abs=1e-8)
    drawn = np.array([response.sample(rates, [2], 3, stream_of(1, i))[2] for i in range(4000)])
    assert (np.abs(drawn.mean(axis=0) - 3 * at_risk) <= 4.5 * drawn.std(axis=0) / np.sqrt(4000) + 1e-12).all()
    sets = [list(each) for size in range(5) for each in combinations(range(4), size)]
    chances = [
        np.exp(response.expect(rates[each + [e for e in range(4) if e not in each]], [len(each)])[0]) for each in sets
    ]
    assert sum(chances) == pytest.approx(1.0)
    assert np.isfinite(names["stats"].value)
