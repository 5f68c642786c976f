"""The posterior of Dublin North's candidates against NUTS (nutpie) on the same model, in one run.

Both draw ln λ and a of λ ~ Gam(a, 1), a log-uniform, until every log-worth has an effective sample size of 400. NUTS
has a compiled gradient, once ballot by ballot and once, as the ranker does, by the distinct sets of those left.
"""

import os
import time
from pathlib import Path

import numba
import numpy as np
import nutpie
from nutpie.compiled_pyfunc import from_pyfunc

from plackett import Gibbs, PlackettLuceRanker, Rankings
from plackett.model.diagnostics import measures
from plackett.responses.left_sets import sets_of

TARGET, NUTS_TUNE, NUTS_DRAWS = 400, 300, (300, 100)  # draws by set and ballot by ballot
SMALLEST = {"TARGET": 4, "NUTS_TUNE": 20, "NUTS_DRAWS": (20, 20), "ballots": lambda: simulated_ballots(50)}
LOW, HIGH = np.log(1e-4), np.log(1e2)


@numba.njit(error_model="numpy")
def by_ballot(theta, start, item, counts):
    """ln L and its gradient, a stage at a time."""
    rates, gradient, value = np.exp(theta), np.zeros(theta.size), 0.0
    for t in range(counts.size):
        left, low, high = 0.0, start[t], start[t + 1]
        for e in range(low, high):
            left += rates[item[e]]
        waited = 0.0
        for e in range(low, high - 1):
            value += counts[t] * (theta[item[e]] - np.log(left))
            waited += counts[t] / left
            gradient[item[e]] += counts[t] - waited * rates[item[e]]
            left -= rates[item[e]]
        gradient[item[high - 1]] -= waited * rates[item[high - 1]]
    return value, gradient


@numba.njit(error_model="numpy")
def by_set(theta, item, smaller, times, wins):
    """The same a set at a time."""
    rates, left, value = np.exp(theta), np.zeros(item.size), 0.0
    gradient = wins.copy()
    for k in range(theta.size):
        value += wins[k] * theta[k]
    for v in range(1, item.size):
        left[v] = left[smaller[v]] + rates[item[v]]
        value -= times[v] * np.log(left[v])
    for v in range(item.size - 1, 0, -1):
        left[v] = times[v] / left[v]
    for v in range(item.size - 1, 0, -1):
        gradient[item[v]] -= left[v] * rates[item[v]]
        left[smaller[v]] += left[v]
    return value, gradient


@numba.njit(error_model="numpy")
def with_prior(x, value, gradient, digamma):
    """Add the log-density of ln λ and ln a, ln a = LOW + (HIGH − LOW)·logistic(x)."""
    K = x.size - 1
    share = 1.0 / (1.0 + np.exp(-x[K]))
    a = np.exp(LOW + (HIGH - LOW) * share)
    found = np.empty(x.size)
    total = 0.0
    for k in range(K):
        total += x[k]
        value += a * x[k] - np.exp(x[k])
        found[k] = gradient[k] + a - np.exp(x[k])
    value += np.log(share) + np.log1p(-share)
    slope = (HIGH - LOW) * share * (1.0 - share)
    found[K] = slope * a * (total - K * digamma) + 1.0 - 2.0 * share
    return value, found


def density(likelihood, arrays):
    """Of x = (ln λ, ln a on the line), as nutpie calls it."""
    from scipy.special import digamma, gammaln

    def value_and_gradient(x, **_):
        x = np.ascontiguousarray(x)
        a = np.exp(LOW + (HIGH - LOW) / (1.0 + np.exp(-x[-1])))
        value, gradient = with_prior(x, *likelihood(x[:-1], *arrays), digamma(a))
        return value - (x.size - 1) * gammaln(a), gradient

    return value_and_gradient


def seconds_of_nuts(likelihood, arrays, size, draws, tune):
    """Seconds until the target, by the draws made in some; the gradient is compiled before."""
    call = density(likelihood, arrays)
    call(np.zeros(size))
    model = from_pyfunc(
        ndim=size,
        make_logp_fn=lambda: call,
        make_expand_fn=lambda *_: lambda x, **__: {"x": np.asarray(x, dtype=np.float64)},
        expanded_dtypes=[np.dtype("float64")],
        expanded_shapes=[(size,)],
        expanded_names=["x"],
        make_initial_point_fn=lambda seed: 0.1 * np.random.default_rng(seed).standard_normal(size),
    )
    started = time.perf_counter()
    trace = nutpie.sample(model, draws=draws, tune=tune, chains=4, cores=2, seed=1, progress_bar=False)
    took = time.perf_counter() - started
    x = np.asarray(trace.posterior["x"].values)[..., :-1]
    log_worth = x - x.mean(axis=2, keepdims=True)
    _, bulk, tail = measures(log_worth)
    share = tune / (tune + draws)
    return took * (share + (1 - share) * TARGET / np.minimum(bulk, tail).min()), log_worth.mean(axis=(0, 1))


def ballots():
    """Dublin North's, with more than one candidate; None without the folder that holds them."""
    folder = os.environ.get("PLACKETT_DATA")
    if not folder:
        print("rankings left out: set PLACKETT_DATA to the folder with dublin_north.soi")
        return None
    R = Rankings.read_preflib(Path(folder) / "dublin_north.soi", unranked="absent")
    return R[np.diff(R.outcomes.start) > 1]


def simulated_ballots(n):
    """Orders of twelve by chance."""
    rng = np.random.default_rng(0)
    return Rankings.from_orders([rng.permutation(12).tolist() for _ in range(n)], unranked="absent")


def main():
    """Seconds of each, and their ratios."""
    R = ballots()
    if R is None:
        return
    m = PlackettLuceRanker(Gibbs(draws=250, tune=100, target_ess=TARGET), random_state=1)
    m.fit(None, R[:100])  # loads, or compiles, the kernels
    started = time.perf_counter()
    m.fit(None, R)
    own, worth = time.perf_counter() - started, m.worth()["log_worth"].loc[m.items_].to_numpy()
    print(
        f"Rankings of twelve, {R.counts.sum():,.0f} ballots: posterior in {own:.2f} s, {m.n_iter_} sweeps of 4 chains"
    )
    sets, (_, chosen, situation) = sets_of(R.outcomes, R.item, 12)
    wins = np.bincount(R.item[chosen], R.counts[situation[chosen]], minlength=12)
    for name, likelihood, arrays, draws in (
        ("by set", by_set, (*sets, wins), NUTS_DRAWS[0]),
        ("ballot by ballot", by_ballot, (R.outcomes.start, R.item, R.counts), NUTS_DRAWS[1]),
    ):
        took, other = seconds_of_nuts(likelihood, arrays, 13, draws, NUTS_TUNE)
        apart = np.abs(worth - other).max()
        print(f"  NUTS {name}: {took:.1f} s, {took / own:.1f} times as long; log-worths differ by {apart:.4f}")
