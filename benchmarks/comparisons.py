"""Comparisons in one run: maximum likelihood beside choix, evalica and SciPy, posteriors, best–worst tasks, attributes.

Libraries that are not installed are left out, and the output says so. Bradley–Terry is fitted to decided votes, the
laws of ties to all; SciPy's L-BFGS has the gradient by distinct pair, as the ranker has.
"""

import importlib.util
import time
import warnings

import numpy as np
from scipy.optimize import minimize

from plackett import EM, Gibbs, PlackettLuceRanker, Rankings
from plackett.datasets import load

TIMES, FEW, DRAWS, SPARSE, STYLED = 30, 3, 1000, (10_000, 1_000_000), (50, 100_000)
TASKS = (3000, 12, 5), (3000, 20, 4), (3000, 50, 5)  # tasks, items, and items of a task
SMALLEST = {
    "TIMES": 1,
    "FEW": 1,
    "DRAWS": 10,
    "TASKS": ((40, 6, 4),),
    "SPARSE": (30, 400),
    "STYLED": (6, 400),
    "votes": lambda: simulated_votes(6, 300)[0],
}


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


def by_choix(winner, loser, counts, K):
    """ln worths by choix's spectral iteration, from a table of wins."""
    import choix

    table = np.zeros((K, K))
    np.add.at(table, (winner, loser), counts)
    return choix.ilsr_pairwise_dense(table)


def by_evalica(winners, losers, counts, labels):
    """ln worths by Newman's iteration in evalica, from lists of labels."""
    import evalica

    won, weights = [evalica.Winner.X] * len(winners), None if counts is None else counts.tolist()
    score = evalica.bradley_terry(winners, losers, won, weights=weights, tolerance=1e-10, limit=10_000)
    return np.log([score.scores[label] for label in labels])


def newman(R):
    """Function that gives ln worths under Davidson's law of ties by Newman's iteration in evalica."""
    import evalica

    pairs, K = R.item.reshape(-1, 2), len(R.items)
    labels = [str(k) for k in range(K)]
    xs, ys = ([labels[k] for k in codes] for codes in pairs.T)
    seen, tied = R.counts.tolist(), R.outcomes.sizes[R.outcomes.bucket_start[:-1]] == 2
    won = [evalica.Winner.Draw if tie else evalica.Winner.X for tie in tied.tolist()]

    def fit():
        score = evalica.newman(xs, ys, won, weights=seen, tolerance=1e-10, limit=100_000)
        return np.log([score.scores[label] for label in labels])

    return fit


def installed(name):
    """True if this library is here; says so if not."""
    if importlib.util.find_spec(name) is None:
        print(f"  {name} is not installed")
        return False
    return True


def others(winner, loser, counts, K):
    """Functions by name that give ln worths from arrays of codes and counts, of libraries that are here."""
    found = {"SciPy, L-BFGS": lambda: by_scipy(winner, loser, counts, K)}
    if installed("choix"):
        found["choix, ilsr_pairwise_dense"] = lambda: by_choix(winner, loser, counts, K)
    if installed("evalica"):
        labels = [str(k) for k in range(K)]
        xs, ys = [labels[w] for w in winner], [labels[v] for v in loser]
        found["evalica, bradley_terry"] = lambda: by_evalica(xs, ys, counts, labels)
    return found


def others_from_votes(winners, losers, labels):
    """Functions by name that give ln worths from two lists of labels, one vote each."""
    code = {label: k for k, label in enumerate(labels)}

    def coded(names):
        return np.fromiter(map(code.__getitem__, names), np.int64, len(names))

    found = {"SciPy, L-BFGS": lambda: by_scipy(coded(winners), coded(losers), np.ones(len(winners)), len(labels))}
    if installed("choix"):
        found["choix, ilsr_pairwise_dense"] = lambda: by_choix(coded(winners), coded(losers), 1.0, len(labels))
    if installed("evalica"):
        found["evalica, bradley_terry"] = lambda: by_evalica(winners, losers, None, labels)
    return found


def compare(own, fits, times):
    """Print the seconds of `own`, which returns a fitted model, and of other functions that return ln worths."""
    took, model = seconds(own, times)
    worth = np.log(model.weights_[:, 0])
    worth -= worth.mean()
    print(f"  plackett, with intervals: {took:.4f} s")
    for name, fit in fits.items():
        other, found = seconds(fit, times)
        apart = np.abs(np.asarray(found) - np.mean(found) - worth).max()
        print(f"  {name}: {other:.4f} s; ours is {took / other:.2f} times as long; log-worths differ by {apart:.1e}")


def maxima(R):
    """Seconds to the maximum of the likelihood, by every library."""
    some, winner, loser, counts = decided(R)
    labels, model = some.items.tolist(), PlackettLuceRanker(EM(), shape=1)
    K, n = len(labels), int(counts.sum())
    print(f"Bradley–Terry, {K} worths from {len(some):,} ordered pairs with counts of {n:,} decided votes")
    compare(lambda: model.fit(None, some), others(winner, loser, counts, K), TIMES)
    print(f"Bradley–Terry from two lists of labels, one for each of {n:,} votes")
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(len(some)), counts.astype(np.int64)))
    winners, losers = ([labels[k] for k in codes[order].tolist()] for codes in (winner, loser))
    fits = others_from_votes(winners, losers, labels)
    compare(lambda: model.fit(None, Rankings.from_pairs(winners, losers)), fits, FEW)
    for ties, theirs in (
        ("davidson", {"evalica, newman": newman} if installed("evalica") else {}),
        ("photo-finish", {}),
    ):
        print(f"{ties}, from {len(R):,} outcomes of pairs with counts of {int(R.counts.sum()):,} votes")
        tying = PlackettLuceRanker(EM(), shape=1, ties=ties)
        compare(lambda tying=tying: tying.fit(None, R), {name: make(R) for name, make in theirs.items()}, TIMES)
        print(f"  {-tying.score(None, R):.5f} a vote, {tying.parameters()['mean'].iloc[0]:.4f}")


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


def best_worst(n, K, m):
    """Draws of n best–worst tasks of m among K items, by the walk and by plain sweeps."""
    rng = np.random.default_rng(0)
    log_worth, sets, best, worst = rng.normal(size=K), [], [], []
    for _ in range(n):
        some = rng.choice(K, m, replace=False)
        times = rng.exponential(np.exp(-log_worth[some]))
        sets.append(some.tolist())
        best.append(int(some[times.argmin()]))
        worst.append(int(some[times.argmax()]))
    R = Rankings.from_best_worst(sets, best, worst)
    taken, each = [], []
    for moves in ("walk", "none"):
        sampler = Gibbs(draws=DRAWS, tune=300, chains=4, moves=moves)
        started = time.process_time()
        model = PlackettLuceRanker(sampler, random_state=0).fit(None, R)
        taken.append(time.process_time() - started)
        ess = model.diagnostics_.smallest_ess
        each.append(taken[-1] / ess)
        tasks = f"{n:,} best–worst tasks of {m} among {K}"
        print(f"  {tasks}, moves={moves!r}: {taken[-1]:.1f} CPU seconds, ESS from {ess:.0f}")
    longer, worse = taken[1] / taken[0], each[1] / each[0]
    print(f"  plain sweeps take {longer:.1f} times as long, and {worse:.1f} times for an effective draw")


def styled():
    """Votes with an attribute that is never twice the same: maximum likelihood and draws."""
    K, n = STYLED
    R, _ = simulated_votes(K, n)
    attribute = np.random.default_rng(1).normal(size=(n, 1))
    pairs, tied = R.item.reshape(-1, 2), R.outcomes.sizes[R.outcomes.bucket_start[:-1]] == 2
    R = Rankings.from_pairs(*pairs.T, ties=tied, items=range(K), attributes=attribute)
    for inference, shape in ((EM(), 1), (Gibbs(), "learn")):
        started = time.process_time()
        model = PlackettLuceRanker(inference, shape=shape, ties="davidson", random_state=0).fit(None, R)
        taken, found = time.process_time() - started, getattr(model, "diagnostics_", None)
        more = "" if found is None else f", ESS from {found.smallest_ess:.0f}"
        print(f"  {n:,} votes with an attribute, {type(inference).__name__}: {taken:.1f} CPU seconds{more}")


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
    for tasks in TASKS:
        best_worst(*tasks)
    styled()
    sparse_network()
