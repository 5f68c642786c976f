"""Comparisons of pairs in one run: maximum likelihood beside choix, evalica and SciPy, posteriors, best–worst tasks.

Libraries that are not installed are left out, and the output says so. Bradley–Terry is fitted to decided votes, the
laws of ties to all; SciPy's L-BFGS has the gradient by distinct pair, as the ranker has.
"""

import time
import warnings

import numpy as np
from scipy.optimize import minimize

from plackett import EM, Gibbs, PlackettLuceRanker, Rankings
from plackett.datasets import load

DRAWS, TASKS, SPARSE = 1000, (3000, 12), (10_000, 1_000_000)
SMALLEST = {"DRAWS": 10, "TASKS": (40, 6), "SPARSE": (30, 400), "votes": lambda: simulated_votes(6, 300)[0]}


def votes():
    """The arena's votes."""
    return load("arena").y


def simulated_votes(K, n, seed=0):
    """Votes on pairs along a ring with chords, and the log-worths they come from."""
    rng = np.random.default_rng(seed)
    log_worth = rng.normal(size=K)
    a = rng.integers(0, K, n)
    b = (a + rng.integers(1, max(K // 3, 2), n)) % K
    d = log_worth[a] - log_worth[b]
    total = np.exp(d / 2) + np.exp(-d / 2) + 0.6
    u = rng.random(n) * total
    tied, second = u < 0.6, u > 0.6 + np.exp(d / 2)
    return Rankings.from_pairs(np.where(second, b, a), np.where(second, a, b), ties=tied, items=range(K)), log_worth


def seconds(function, times=3):
    """The shortest of some runs, and the result."""
    found = []
    for _ in range(times):
        started = time.perf_counter()
        result = function()
        found.append(time.perf_counter() - started)
    return min(found), result


def decided(R):
    """Winners, losers and counts of votes that are no ties."""
    some = R[R.outcomes.sizes[R.outcomes.bucket_start[:-1]] == 1]
    pairs = some.item.reshape(-1, 2)
    return some, pairs[:, 0], pairs[:, 1], some.counts


def by_scipy(winner, loser, counts, K):
    """ln worths by L-BFGS on Σ count · ln r_w/(r_w + r_l)."""

    def negative(x):
        d = x[winner] - x[loser]
        p = counts / (1.0 + np.exp(d))
        slope = np.bincount(loser, p, K) - np.bincount(winner, p, K)
        return (counts * np.logaddexp(0.0, -d)).sum(), slope

    found = minimize(negative, np.zeros(K), jac=True, method="L-BFGS-B", options={"maxiter": 10_000, "ftol": 1e-14})
    return found.x - found.x.mean()


def others(winner, loser, counts, K):
    """Functions by name that give ln worths, of libraries that are here."""
    found = {"SciPy, L-BFGS": lambda: by_scipy(winner, loser, counts, K)}
    try:
        import choix

        table = np.zeros((K, K))
        np.add.at(table, (winner, loser), counts)
        found["choix, ilsr_pairwise_dense"] = lambda: choix.ilsr_pairwise_dense(table)
    except ImportError:
        print("  choix is not installed")
    try:
        import evalica

        labels = [str(k) for k in range(K)]
        xs, ys = [labels[w] for w in winner], [labels[v] for v in loser]
        wins = [evalica.Winner.X] * len(xs)

        def newman():
            score = evalica.bradley_terry(xs, ys, wins, weights=counts.tolist(), tolerance=1e-10, limit=10_000)
            return np.log([score.scores[label] for label in labels])

        found["evalica, bradley_terry"] = newman
    except ImportError:
        print("  evalica is not installed")
    return found


def maxima(R):
    """Seconds to the maximum of the likelihood, by every library."""
    some, winner, loser, counts = decided(R)
    K = len(R.items)
    print(f"Maximum likelihood of {K} worths from {counts.sum():,.0f} decided votes on {len(some):,} ordered pairs")
    own, model = seconds(lambda: PlackettLuceRanker(EM(), shape=1).fit(None, some))
    worth = np.log(model.weights_[:, 0])
    worth -= worth.mean()
    print(f"  plackett, Bradley–Terry: {own:.3f} s")
    for name, fit in others(winner, loser, counts, K).items():
        took, found = seconds(fit)
        apart = np.abs(np.asarray(found) - np.mean(found) - worth).max()
        print(f"  {name}: {took:.3f} s, {took / own:.1f} times as long; log-worths differ by {apart:.1e}")
    for ties in ("photo-finish", "davidson"):
        took, model = seconds(lambda ties=ties: PlackettLuceRanker(EM(), shape=1, ties=ties).fit(None, R))
        parameter = model.parameters()["mean"].iloc[0]
        print(f"  plackett, {ties}: {took:.3f} s, {-model.score(None, R):.5f} a vote, {parameter:.4f}")


def posteriors(R):
    """Seconds of draws, with R-hat and effective sample sizes of all worths and parameters."""
    for ties in ("photo-finish", "davidson", "race"):
        sampler = Gibbs(draws=DRAWS, tune=300, chains=4)
        fit = PlackettLuceRanker(sampler, ties=ties, random_state=0).fit
        took, model = seconds(lambda fit=fit: fit(None, R), times=1)
        found = model.diagnostics_
        print(
            f"  posterior, {ties}: {took:.1f} s, {4 * DRAWS} draws, R-hat up to {found.worst_rhat:.3f}, "
            f"ESS from {found.smallest_ess:.0f}"
        )


def best_worst():
    """Draws of best–worst tasks, by the walk and by plain sweeps."""
    n, K = TASKS
    rng = np.random.default_rng(0)
    log_worth, sets, best, worst = rng.normal(size=K), [], [], []
    for _ in range(n):
        some = rng.choice(K, 5, replace=False)
        times = rng.exponential(np.exp(-log_worth[some]))
        sets.append(some.tolist())
        best.append(int(some[times.argmin()]))
        worst.append(int(some[times.argmax()]))
    R = Rankings.from_best_worst(sets, best, worst)
    taken = []
    for moves in ("walk", "none"):
        sampler = Gibbs(draws=DRAWS, tune=300, chains=4, moves=moves)
        started = time.process_time()
        model = PlackettLuceRanker(sampler, random_state=0).fit(None, R)
        taken.append(time.process_time() - started)
        ess = model.diagnostics_.smallest_ess
        print(f"  {n:,} best–worst tasks, moves={moves!r}: {taken[-1]:.1f} CPU seconds, ESS from {ess:.0f}")
    print(f"  plain sweeps take {taken[1] / taken[0]:.1f} times as long")


def sparse_network():
    """Many items and comparisons."""
    K, n = SPARSE
    R, log_worth = simulated_votes(K, n)
    for ties in ("davidson",):
        took, model = seconds(lambda ties=ties: PlackettLuceRanker(EM(), shape=2, ties=ties).fit(None, R), times=1)
        error = np.log(model.weights_[:, 0])
        error = np.std(error - error.mean() - log_worth)
        print(f"  {K:,} items, {n:,} comparisons, {ties}: {took:.1f} s, log-worths off by {error:.2f}")


def main():
    """Every part; worse results are printed too."""
    warnings.simplefilter("ignore")
    R = votes()
    maxima(R)
    PlackettLuceRanker(Gibbs(draws=5, tune=5, chains=2), ties="race").fit(
        None, R[:50]
    )  # loads, or compiles, the kernels
    posteriors(R)
    best_worst()
    sparse_network()
