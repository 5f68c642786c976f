"""Effective draws of the sampler with and without moves, a learned, four dispersed chains, and NUTS at a = 1."""

import time
import warnings
from functools import partial

import numpy as np

from benchmarks.data import sets
from plackett import Gibbs
from plackett.data.observations import Observations
from plackett.engines.factory import make_engine
from plackett.features import ExpFeatures
from plackett.inference.base import Problem
from plackett.inference.gibbs import WeightRun
from plackett.inference.store import empty
from plackett.model.measures import measures

GOALS = {"lenses": 20, "iris": 20, "wine": 15, "heart": 10, "pima": 5, "german": 2}
SECONDS = {"german": 60}  # of one core in which target_ess=400 should be reached; 10 for the others
SEEDS, DRAWS, TARGET = (1, 2, 3), 5000, 400
SMALLEST = {
    **{"SEEDS": (1,), "DRAWS": 20, "TARGET": 4, "STRETCHES": (1, 20), "NUTS": {"draws": 20, "tune": 20}},
    "sets": partial(sets, ("lenses",)),
}
STRETCHES, NUTS = (15, 500), {"draws": 1000, "tune": 500}  # stretches that are timed, iterations of each


def problem(X, y, seed):
    """The posterior of the paper's model with a learned."""
    features = ExpFeatures().fit(X)
    W, codes = features.transform(X), np.unique(y, return_inverse=True)[1]
    rows = make_engine("numba").rows(W, Observations.of_classes(codes, int(codes.max()) + 1))
    return Problem(rows, 1.0, np.random.SeedSequence(seed), mirrors=features.mirrors_)


def run(X, y, seed, **settings):
    """A finished run and the core-seconds it took, tuning and diagnosis included (compiled before)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        WeightRun(Gibbs(**{**settings, "draws": 20, "tune": 20, "target_ess": None}), problem(X, y, seed), None).go()
        began = time.process_time()
        finished = WeightRun(Gibbs(**settings), problem(X, y, seed), None)
        finished.go()
        finished.diagnose()
        return finished, time.process_time() - began


def iteration_seconds(finished):
    """Core-seconds of one iteration of each of some finished runs, on one core.

    The median of some stretches, taken in turns: the machine's clock changes, and ratios should not.
    """
    stretches, n = STRETCHES
    times = np.empty((stretches, len(finished)))
    for row in times:
        for place, run in enumerate(finished):
            out = {name: array[0] for name, array in empty(run.shapes, 1, n).items()}
            began = time.thread_time()
            run.runner.advance(run.chains[0], False, **out)
            row[place] = (time.thread_time() - began) / n
    return np.median(times, axis=0)


def nuts(X, y):
    """Smallest ESS and seconds of nutpie on ln λ at a = 1, with its own density; None where it is not installed."""
    try:
        from tests.nuts import nuts_log_weights
    except ImportError:
        return None
    W, codes = ExpFeatures().fit_transform(X), np.unique(y, return_inverse=True)[1]
    began = time.process_time()
    draws = nuts_log_weights(W, codes, codes.max() + 1, 1.0, **NUTS)
    return measures(draws)[1].min(), time.process_time() - began


def rate(finished, cost):
    """Effective draws, the smallest over ln λ̄, in the time of 1,000 plain sweeps."""
    return 1000 * finished.diagnose().ess_bulk.min() / (4 * finished.store.iterations) / cost


def main():
    print("\nMixing, a learned, four dispersed chains; core-seconds of whole fits, tuning and diagnosis included")
    print(
        "  set     sampler   seed   iterations   smallest ESS of ln λ̄    R-hat    ESS/s   per 1,000 plain sweeps' time"
    )
    for name, X, y in sets():
        plain, seconds = run(X, y, SEEDS[0], moves="none", draws=DRAWS, tune=DRAWS)
        sweep = iteration_seconds([plain])[0]
        _line(name, "plain", SEEDS[0], plain, seconds, 1.0, f"sweep {1e6 * sweep:.1f} µs")
        rates = []
        for seed in SEEDS:
            mixed, seconds = run(X, y, seed, target_ess=TARGET)
            sweep, iteration = iteration_seconds([plain, mixed])
            cost = iteration / sweep
            found, limit = mixed.diagnose(), SECONDS.get(name, 10)
            reached = "reached" if found.smallest_ess >= TARGET and found.worst_rhat <= 1.01 else "missed"
            words = f"iteration {cost:.1f} sweeps; target_ess={TARGET} {reached} in {seconds:.1f} s, goal {limit}"
            _line(name, "exchange", seed, mixed, seconds, cost, words)
            rates.append(rate(mixed, cost))
        print(f"  {name:8}exchange, mean of the seeds {np.mean(rates):45.2f}   (goal {GOALS[name]})")
        rival = nuts(X, y)
        if rival is not None:
            print(f"  {name:8}NUTS at a = 1 {rival[0]:33.0f}             {rival[0] / rival[1]:12.1f}")


def _line(name, sampler, seed, finished, seconds, cost, words):
    found, kept = finished.diagnose(), 4 * finished.store.iterations
    ess, iterations = found.ess_bulk.min(), 4 * finished.settings.tune + kept
    print(
        f"  {name:8}{sampler:10}{seed:4}{iterations:13,} {ess:17.0f} {found.worst_rhat:14.3f} {ess / seconds:8.1f}"
        f" {rate(finished, cost):10.2f}   ({words})"
    )
